use super::*;

fn fault_of(name: &'static str, value: &str, read: impl FnOnce(&mut Env)) -> Option<String> {
    let mut env = Env::of([(name, value)]);
    read(&mut env);
    env.finish().err().map(|error| error.faults().join("\n"))
}

#[test]
fn a_number_is_digits_in_range_and_nothing_else() {
    let read = |env: &mut Env| {
        env.number("N", 5, 1..=9);
    };
    assert_eq!(fault_of("N", "9", read), None);
    for bad in ["0", "10", "-1", "+1", " 1", "1.0", "0x1", "ten", "99999999999999999999999"] {
        let fault = fault_of("N", bad, read).unwrap_or_else(|| panic!("{bad:?} was taken"));
        assert_eq!(fault, format!("N is {bad:?}, but must be a whole number from 1 to 9."));
    }
}

#[test]
fn an_empty_value_counts_as_not_set() {
    let mut env = Env::of([("N", ""), ("T", ""), ("F", "")]);
    assert_eq!(env.number("N", 5, 1..=9), 5);
    assert!(env.flag("F", true));
    env.table("T");
    let error = env.finish().unwrap_err();
    assert_eq!(error.faults().len(), 1);
    assert!(error.faults()[0].starts_with("T is not set."), "{error}");
}

#[test]
fn false_is_not_true_and_other_words_are_faults() {
    let mut env = Env::of([("A", "False"), ("B", "TRUE"), ("C", "no")]);
    assert!(!env.flag("A", true));
    assert!(env.flag("B", false));
    env.flag("C", false);
    assert_eq!(env.finish().unwrap_err().faults(), ["C is \"no\", but must be true or false."]);
}

#[test]
fn a_word_is_found_in_any_letter_case() {
    let mut env = Env::of([("W", "Dhl"), ("X", "post")]);
    assert_eq!(env.one_of("W", "ups", &["dhl", "ups"]), "dhl");
    assert_eq!(env.one_of("X", "ups", &["dhl", "ups"]), "ups");
    assert_eq!(env.finish().unwrap_err().faults(), ["X is \"post\", but must be one of dhl, ups."]);
}

#[test]
fn a_table_is_a_name_or_an_arn() {
    let read = |env: &mut Env| {
        env.table("T");
    };
    for good in ["orders", "a.b-c_1", "arn:aws:dynamodb:eu-west-1:123456789012:table/orders"] {
        assert_eq!(fault_of("T", good, read), None, "{good}");
    }
    for bad in [
        "ab",
        "with space",
        "orders\n",
        "arn:aws:s3:::orders",
        "arn:aws:dynamodb:eu-west-1:123:table/orders",
        "arn:aws:dynamodb:eu-west-1:123456789012:table/orders/index/x",
        &"x".repeat(256),
    ] {
        assert!(fault_of("T", bad, read).is_some(), "{bad:?} was taken");
    }
}

#[test]
fn a_url_is_absolute_and_holds_neither_a_password_nor_a_query() {
    let read = |env: &mut Env| {
        env.url("U");
    };
    assert_eq!(fault_of("U", "http://127.0.0.1:9000/v1", read), None);
    for bad in [
        "api.example.com",
        "/v1",
        "ftp://example.com",
        "http://",
        "localhost:80",
        "https://a.b/?key=c",
        "https://a.b/#c",
    ] {
        assert!(fault_of("U", bad, read).is_some(), "{bad:?} was taken");
    }
    let fault = fault_of("U", "https://me:hunter2@example.com", read).unwrap();
    assert!(fault.contains("not shown") && !fault.contains("hunter2"), "{fault}");
}

#[test]
fn an_email_is_one_plain_address() {
    let read = |env: &mut Env| {
        env.email("M");
    };
    assert_eq!(fault_of("M", "shop@example.com", read), None);
    for bad in ["shop", "@example.com", "shop@localhost", "Shop <shop@example.com>", "a@b.c,d@e.f", "a b@c.d"] {
        assert!(fault_of("M", bad, read).is_some(), "{bad:?} was taken");
    }
}

#[test]
fn a_secret_is_never_shown_and_a_long_value_is_cut() {
    let read_secret = |env: &mut Env| {
        env.number("CARRIER_API_KEY", 1, 1..=1);
    };
    let fault = fault_of("CARRIER_API_KEY", "hunter2", read_secret).unwrap();
    assert!(!fault.contains("hunter2"), "{fault}");
    let read_long = |env: &mut Env| {
        env.number("N", 1, 1..=1);
    };
    let fault = fault_of("N", &"é".repeat(5_000), read_long).unwrap();
    assert!(fault.chars().count() < 200, "{fault}");
}

#[cfg(unix)]
#[test]
fn bytes_that_are_no_text_are_a_fault() {
    use std::os::unix::ffi::OsStringExt;
    let mut env = Env::of([("N", OsString::from_vec(vec![0xff, 0xfe]))]);
    env.number("N", 1, 1..=1);
    let error = env.finish().unwrap_err();
    assert_eq!(error.faults(), ["N is not valid UTF-8, but must be a whole number from 1 to 1."]);
}

#[test]
fn all_faults_come_out_together_in_the_order_of_reading() {
    let mut env = Env::of([("B", "x")]);
    env.table("A");
    env.number("B", 1, 1..=1);
    env.fault("C and D contradict each other.");
    let faults = env.finish().unwrap_err().faults().to_vec();
    assert_eq!(faults.len(), 3);
    assert!(faults[0].starts_with('A') && faults[1].starts_with('B') && faults[2].starts_with('C'));
}
