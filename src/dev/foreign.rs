//! Whether a file of `--db` is another program's database. SQLite would open it, and the demo's tables would be made in it.

use std::{
    fs::File,
    io::{self, Read},
    path::Path,
};

use super::beside::beside;

/// How every database in a file begins (<https://www.sqlite.org/fileformat.html>).
const MAGIC: &[u8] = b"SQLite format 3\0";
/// The first table that the embedded database makes, as SQLite writes it down.
const OWN: &[u8] = b"CREATE TABLE _config";
/// A table of anybody's.
const ANY: &[u8] = b"CREATE TABLE";

/// Whether there is a database at this path that has tables, of which none is ours. One that is still being made by another
/// process has no table yet.
///
/// What cannot be read is left to SQLite to complain about.
pub fn is_foreign(path: &Path) -> bool {
    let log = beside(path, "-wal"); // holds what is not in the file yet
    // Another process may be making it. In this order a table that moves from the log into the file is not missed, nor is
    // one of ours that came second taken for somebody's.
    let has = |words| holds(&log, words) || holds(path, words);
    begins_a_database(path).unwrap_or(false) && has(ANY) && !has(OWN)
}

fn begins_a_database(path: &Path) -> io::Result<bool> {
    let mut begin = [0; MAGIC.len()];
    File::open(path)?.read_exact(&mut begin)?;
    Ok(begin == MAGIC)
}

/// Whether these bytes are anywhere in the file. Ours stand near its beginning.
fn holds(path: &Path, wanted: &[u8]) -> bool {
    let Ok(mut file) = File::open(path) else { return false };
    let mut window = Vec::new();
    loop {
        let read = file.by_ref().take(1 << 20).read_to_end(&mut window);
        if window.windows(wanted.len()).any(|bytes| bytes == wanted) {
            return true;
        }
        if read.is_ok_and(|count| count == 0) || window.len() < wanted.len() {
            return false;
        }
        window.drain(..=window.len() - wanted.len()); // the rest may be a beginning
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_are_found_wherever_they_stand() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("file");
        for at in [0, 1, (1 << 20) - 3, 1 << 20, 3_000_000] {
            let mut bytes = vec![b'C'; at];
            bytes.extend(OWN);
            std::fs::write(&path, &bytes).expect("a file");
            assert!(holds(&path, OWN), "{at}");
            bytes.pop();
            std::fs::write(&path, &bytes).expect("a file");
            assert!(!holds(&path, OWN), "{at}");
        }
        assert!(!holds(&folder.path().join("none"), OWN));
    }
}
