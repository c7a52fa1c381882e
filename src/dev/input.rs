//! What a file given to `dev invoke` holds.
//!
//! | content | payload | client context |
//! | --- | --- | --- |
//! | a file whose name ends in `.raw` | the bytes | none |
//! | an object with exactly the keys `event` and `clientContext` | the text of `event`, untouched | that of `clientContext` |
//! | anything else, JSON or not | the bytes | none |

use std::{
    collections::BTreeMap,
    io::Read,
    path::{Path, PathBuf},
};

use bytes::Bytes;
use serde_json::value::RawValue;

use super::Trouble;

/// One invocation to come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Input {
    /// The file's name, as it was given.
    pub name: String,
    pub payload: Bytes,
    pub client_context: Option<Bytes>,
}

/// Reads all files, before anything runs.
pub fn read_all(files: &[PathBuf]) -> Result<Vec<Input>, Trouble> {
    files.iter().map(|file| read(file)).collect()
}

/// The bytes of a file, or of stdin.
pub fn bytes(file: &Path) -> Result<Vec<u8>, Trouble> {
    let mut bytes = Vec::new();
    let read = if file == Path::new("-") {
        std::io::stdin().read_to_end(&mut bytes)
    } else {
        std::fs::File::open(file).and_then(|mut file| file.read_to_end(&mut bytes))
    };
    read.map_err(|error| Trouble(format!("The file {} cannot be read: {error}.", file.display())))?;
    Ok(bytes)
}

fn read(file: &Path) -> Result<Input, Trouble> {
    let bytes = bytes(file)?;
    let raw = file.extension().is_some_and(|extension| extension == "raw");
    let (payload, client_context) = if raw { (bytes.into(), None) } else { parts(bytes) };
    Ok(Input { name: file.display().to_string(), payload, client_context })
}

/// Takes an invocation apart without reading numbers or nested values: what the caller wrote is what arrives.
fn parts(bytes: Vec<u8>) -> (Bytes, Option<Bytes>) {
    let text = |value: &RawValue| Bytes::copy_from_slice(value.get().as_bytes());
    let split = serde_json::from_slice::<BTreeMap<String, &RawValue>>(&bytes).ok().and_then(|object| {
        match (object.len(), object.get("event"), object.get("clientContext")) {
            (2, Some(event), Some(context)) => Some((text(event), (context.get() != "null").then(|| text(context)))),
            _ => None,
        }
    });
    split.unwrap_or_else(|| (bytes.into(), None))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(text: &str) -> (String, Option<String>) {
        let (payload, context) = parts(text.into());
        let text = |bytes: Bytes| String::from_utf8(bytes.to_vec()).expect("text");
        (text(payload), context.map(text))
    }

    #[test]
    fn an_invocation_is_taken_apart_to_the_letter() {
        let (event, context) = split(r#" {"event": {"a": 1e400, "a": 1.50}, "clientContext": {"b":  [2]}} "#);
        assert_eq!(event, r#"{"a": 1e400, "a": 1.50}"#);
        assert_eq!(context.as_deref(), Some(r#"{"b":  [2]}"#));
    }

    #[test]
    fn every_json_value_may_stand_in_both_places() {
        assert_eq!(split(r#"{"clientContext": "x", "event": []}"#), ("[]".into(), Some("\"x\"".into())));
        assert_eq!(split(r#"{"clientContext": null, "event": null}"#), ("null".into(), None));
    }

    #[test]
    fn everything_else_is_the_payload_as_it_is() {
        for text in [r#"{"event": 1}"#, r#"{"event": 1, "clientContext": 2, "x": 3}"#, "", "no JSON", "[1, 2"] {
            assert_eq!(split(text), (text.to_owned(), None));
        }
    }

    #[test]
    fn a_raw_file_is_never_taken_apart() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("invocation.raw");
        std::fs::write(&file, r#"{"event": 1, "clientContext": 2}"#).expect("a file");
        let input = read(&file).expect("an input");
        assert_eq!((&input.payload[..], input.client_context), (&br#"{"event": 1, "clientContext": 2}"#[..], None));
    }

    #[test]
    fn a_file_that_is_not_there_is_named() {
        let trouble = read(Path::new("no/such/file.json")).expect_err("trouble").to_string();
        assert!(trouble.contains("no/such/file.json"), "{trouble}");
    }
}
