//! Files beside one that `dev` was told to keep. Their names end as the file's name begins, and whatever else bears such a
//! name is somebody's: nothing is overwritten or removed that was not made here.

use std::{
    ffi::OsStr,
    fs::{File, remove_file, rename},
    io,
    path::{Path, PathBuf},
};

/// The file beside this one whose name has this end: `shop.db-wal` for `shop.db`.
pub fn beside(file: &Path, end: impl AsRef<OsStr>) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(end);
    name.into()
}

/// A file that is made whole before it is put in its place, so that a process that dies leaves no half of it there. Dropped
/// before that it is removed.
#[derive(Debug)]
pub struct Unplaced(PathBuf);

impl Unplaced {
    /// Makes it, empty, under a name that no file has.
    pub fn make(file: &Path) -> io::Result<Self> {
        let path = unused(file, ".new");
        File::create_new(&path)?;
        Ok(Self(path))
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Puts it in the place of this file.
    pub fn put(self, file: &Path) -> io::Result<()> {
        rename(&self.0, file)
    }
}

impl Drop for Unplaced {
    fn drop(&mut self) {
        for end in ["", "-wal", "-shm"] {
            let _ = remove_file(beside(&self.0, end)); // what SQLite makes beside it is ours too
        }
    }
}

/// Takes a file out of the way, under a name that no file has. `None` if it is not there.
pub fn set_aside(path: &Path) -> io::Result<Option<PathBuf>> {
    let aside = unused(path, ".old");
    match rename(path, &aside) {
        Ok(()) => Ok(Some(aside)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

fn unused(file: &Path, end: &str) -> PathBuf {
    beside(file, format!("{end}-{:016x}", rand::random::<u64>()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_put_in_its_place_is_gone_and_all_else_stays() {
        let folder = tempfile::tempdir().expect("a folder");
        let [file, new] = ["shop.db", "shop.db.new"].map(|name| folder.path().join(name));
        std::fs::write(&new, "mine").expect("it is written");
        let first = Unplaced::make(&file).expect("a file");
        std::fs::write(beside(first.path(), "-wal"), "a log").expect("it is written");
        drop(first);
        Unplaced::make(&file).expect("another").put(&file).expect("it is put there");
        assert_eq!(std::fs::read_to_string(&new).expect("it is there"), "mine");
        assert!(file.exists());
        assert_eq!(std::fs::read_dir(folder.path()).expect("a folder").count(), 2);
    }

    #[test]
    fn what_is_set_aside_is_kept() {
        let folder = tempfile::tempdir().expect("a folder");
        let log = folder.path().join("shop.db-wal");
        assert_eq!(set_aside(&log).expect("nothing is there"), None);
        std::fs::write(&log, "mine").expect("it is written");
        let aside = set_aside(&log).expect("it is set aside").expect("it was there");
        assert_eq!((std::fs::read_to_string(aside).expect("it is there").as_str(), log.exists()), ("mine", false));
    }
}
