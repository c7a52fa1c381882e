//! The files that options name: looked at before anything is done, and never lost.

use serde_json::json;

use super::{Events, dev, run, text};

#[test]
fn a_database_that_cannot_be_opened_is_named_and_nobody_is_told_to_remove_it() {
    for path in ["Cargo.toml", "no/such/folder/a.db"] {
        let output = run(&["invoke", "--db", path, "events/converse/get-order.json"]);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(
            said.contains(path) && !said.contains("remove") && !said.contains("::") && !said.contains(".."),
            "{said}"
        );
    }
}

#[cfg(unix)]
#[test]
fn a_database_that_cannot_be_written_is_named() {
    use std::os::unix::fs::PermissionsExt;
    let events = Events::new();
    let (db, path) = (events.path("orders.db"), events.path("orders.db").display().to_string());
    assert!(run(&["invoke", "--db", &path, "events/converse/get-order.json"]).status.success());
    std::fs::set_permissions(&db, PermissionsExt::from_mode(0o444)).expect("they are set");
    if std::fs::File::options().append(true).open(&db).is_ok() {
        return; // root may write everything
    }
    let output = run(&["invoke", "--db", &path, "events/converse/get-order.json"]);
    let said = text(&output.stderr);
    assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0), "{said}");
    assert!(said.contains(&path) && said.contains("cannot be written"), "{said}");
}

#[test]
fn a_file_that_cannot_be_written_is_told_before_anything_is_done() {
    let events = Events::new();
    let good = events.tool_use("get_order", &json!({"order_id": "ORD-12345"})).display().to_string();
    let folder = events.path("").display().to_string();
    for command in [["invoke", &good], ["run-loop", "examples/loop/look-up.json"]] {
        for option in ["--effects", "--metrics"] {
            for path in ["no/such/folder/file.json", &folder, "Cargo.toml/file.json"] {
                let output = dev().args(command).args([option, path]).output().expect("it runs");
                let said = text(&output.stderr);
                assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0), "{said}");
                assert!(said.contains(path) && said.contains("cannot be written"), "{said}");
                assert_eq!(said.lines().count(), 1, "something was done: {said}");
            }
        }
    }
}

#[test]
fn a_file_that_is_named_twice_is_refused_before_one_of_its_contents_is_lost() {
    let events = Events::new();
    let good = events.tool_use("get_order", &json!({"order_id": "ORD-12345"})).display().to_string();
    let [db, new] = ["orders.db", "new.json"].map(|name| events.path(name).display().to_string());
    let roundabout = events.path("./orders.db").display().to_string();
    assert!(run(&["invoke", "--db", &db, &good]).status.success());
    let kept = std::fs::read(&db).expect("a database");
    let script = std::fs::read_to_string("examples/loop/look-up.json").expect("a script");
    let script = &events.write("script.json", &script).display().to_string();
    for arguments in [
        &["invoke", "--db", &db, "--effects", &roundabout, &good][..],
        &["invoke", "--effects", &new, "--metrics", &new, &good],
        &["invoke", "--metrics", &good, &good],
        &["run-loop", "--db", &db, "--state", &db, script],
        &["run-loop", "--state", &new, "--effects", &new, script],
        &["run-loop", "--metrics", script, script],
    ] {
        let output = run(arguments);
        let said = text(&output.stderr);
        assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0), "{said}");
        assert!(said.contains("is named twice"), "{said}");
    }
    assert!(std::fs::read(&db).expect("it is there") == kept && !events.path("new.json").exists());
    let nowhere = run(&["invoke", "--effects", "/dev/null", "--metrics", "/dev/null", &good]);
    assert!(cfg!(not(unix)) || nowhere.status.success(), "{}", text(&nowhere.stderr));
}

#[cfg(unix)]
#[test]
fn a_file_behind_a_link_that_leads_nowhere_yet_is_written() {
    let events = Events::new();
    let good = events.tool_use("get_order", &json!({"order_id": "ORD-12345"}));
    std::os::unix::fs::symlink("there.json", events.path("effects.json")).expect("a link");
    let (output, effects) = events.effects_of(&[], &[&good]);
    assert_eq!(
        (output.status.code(), &effects["calls"]["get_order"]),
        (Some(0), &json!(1)),
        "{}",
        text(&output.stderr)
    );
    assert!(events.path("effects.json").is_symlink() && events.path("there.json").exists());
}

#[test]
fn files_keep_what_they_hold_where_nothing_comes_to_its_end() {
    let events = Events::new();
    let good = events.tool_use("get_order", &json!({"order_id": "ORD-12345"}));
    let metrics = events.write("metrics.json", "{}");
    for wrong in [&["--effects", "no/such/folder/file"][..], &["--db", "Cargo.toml"], &["--fault", "get=hang"]] {
        let refused =
            dev().arg("invoke").arg("--metrics").arg(&metrics).args(wrong).arg(&good).output().expect("it runs");
        assert_eq!(refused.status.code(), Some(2), "{}", text(&refused.stderr));
        assert_eq!(std::fs::read_to_string(&metrics).expect("it is there"), "{}", "{wrong:?}");
    }
    // One of effects is neither emptied nor made before the end.
    let kept = events.write("kept.json", "{}");
    for (path, left) in [(kept, Some("{}")), (events.path("new.json"), None)] {
        let kill = ["--fault", "get_order=kill-after-effect", "--effects"];
        let killed = dev().arg("invoke").args(kill).arg(&path).arg(&good).output().expect("it runs");
        assert_eq!(killed.status.code(), Some(137), "{}", text(&killed.stderr));
        assert_eq!(std::fs::read_to_string(path).ok().as_deref(), left);
    }
}

#[test]
fn another_programs_database_is_refused_and_left_as_it_is() {
    let events = Events::new();
    let (foreign, own) = (events.path("foreign.db"), events.path("own.db").display().to_string());
    std::fs::copy("tests/fixtures/foreign.db", &foreign).expect("a copy");
    let path = foreign.display().to_string();
    for arguments in [&["pending"][..], &["invoke", "events/converse/get-order.json"], &["dynamodb", "--port", "0"]] {
        let output = dev().args(arguments).args(["--db", &path]).output().expect("it runs");
        let said = text(&output.stderr);
        assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0), "{said}");
        assert!(said.contains(&path) && said.contains("another program's database"), "{said}");
    }
    let same =
        std::fs::read(&foreign).expect("the file") == std::fs::read("tests/fixtures/foreign.db").expect("a file");
    assert!(same, "it was changed");
    let made = run(&["invoke", "--db", &own, "events/converse/get-order.json"]);
    assert_eq!(made.status.code(), Some(0), "{}", text(&made.stderr));
    assert_eq!(run(&["pending", "--db", &own]).status.code(), Some(0), "its own is none");
}

#[test]
fn an_unreadable_file_stops_the_readable_ones_before_it() {
    let events = Events::new();
    let good = events.tool_use("get_order", &json!({"order_id": "ORD-12345"}));
    let output = dev().arg("invoke").arg(good).arg("no/such/file.json").output().expect("it runs");
    assert_eq!(output.status.code(), Some(2));
    assert!(output.stdout.is_empty());
    assert!(text(&output.stderr).contains("no/such/file.json"));
}
