//! A file that one process at a time may work on: the lock is a file beside it, `talk.json.lock` for `talk.json`.
//!
//! The operating system holds the lock, so that a process that dies leaves none. It is not on the file itself: that is put in
//! place anew at each save, or is SQLite's, whose own locks end when anybody in the process closes the file.
//!
//! A file of this name that was not made here serves as well, and is neither changed nor removed.

use std::{
    fs::{File, OpenOptions, TryLockError},
    io::{self, ErrorKind, Read, Seek, Write},
    path::{Path, PathBuf},
};

use super::beside::beside;

/// What a lock that was made here holds, by whichever process.
const OWN: &[u8] = b"Made by `dev`, to keep other processes from the file beside it.\n";

/// The lock. It ends when this is dropped.
#[derive(Debug)]
pub struct Lock {
    path: PathBuf,
    file: File,
}

/// Another process has it.
#[derive(Debug)]
pub struct Held;

impl Lock {
    /// Waits for the lock. `None` where there can be none: no folder, or one that cannot be written, which whoever writes the
    /// file itself will say.
    pub fn wait(file: &Path) -> Option<Self> {
        let lock = |file: &File| file.lock().map(|()| true);
        Self::on(file, lock).ok().flatten()
    }

    /// Takes the lock, or says that another process has it. `None` as in [`Lock::wait`].
    pub fn take(file: &Path) -> Result<Option<Self>, Held> {
        let lock = |file: &File| match file.try_lock() {
            Ok(()) => Ok(true),
            Err(TryLockError::WouldBlock) => Ok(false),
            Err(TryLockError::Error(error)) => Err(error),
        };
        Self::on(file, lock).map_or(Ok(None), |lock| lock.map(Some).ok_or(Held))
    }

    /// `None` if another has it.
    fn on(file: &Path, lock: impl Fn(&File) -> io::Result<bool>) -> io::Result<Option<Self>> {
        let path = beside(file, ".lock");
        loop {
            let file = open(&path)?;
            if !lock(&file)? {
                return Ok(None);
            }
            // Whoever had it before has taken the file away, and a third may have made another.
            if is_at(&file, &path) {
                return Ok(Some(Self { path, file }));
            }
        }
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        if cfg!(unix) && is_own(&mut self.file) {
            let _ = std::fs::remove_file(&self.path); // it would only lie about
        }
    }
}

/// Opens the file, or makes it.
fn open(path: &Path) -> io::Result<File> {
    let options = || OpenOptions::new().read(true).write(true).clone();
    loop {
        match options().create_new(true).open(path) {
            Ok(mut file) => return file.write_all(OWN).map(|()| file),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
        match options().open(path) {
            // It was taken away meanwhile.
            Err(error) if error.kind() == ErrorKind::NotFound && !path.is_symlink() => {}
            opened => return opened,
        }
    }
}

/// Whether it was made here.
fn is_own(file: &mut File) -> bool {
    let mut holds = Vec::new();
    let read = file.rewind().and_then(|()| file.take(1 + OWN.len() as u64).read_to_end(&mut holds));
    read.is_ok() && holds == OWN
}

/// Whether the file at this path is this one.
#[cfg(unix)]
fn is_at(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let id = |metadata: io::Result<std::fs::Metadata>| metadata.ok().map(|metadata| (metadata.dev(), metadata.ino()));
    let (this, there) = (id(file.metadata()), id(std::fs::metadata(path)));
    this.is_some() && this == there
}

/// Elsewhere nobody takes it away.
#[cfg(not(unix))]
const fn is_at(_: &File, _: &Path) -> bool {
    true
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    #[test]
    fn while_one_has_it_nobody_else_takes_it_and_afterwards_anybody() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("talk.json");
        let first = Lock::take(&file).expect("nobody has it").expect("a folder that can be written");
        assert!(Lock::take(&file).is_err());
        drop(first);
        assert!(matches!(Lock::take(&file), Ok(Some(_))));
    }

    #[test]
    fn of_many_that_wait_one_at_a_time_has_it_and_none_is_left_behind() {
        let folder = tempfile::tempdir().expect("a folder");
        let (file, taken) = (folder.path().join("shop.db"), AtomicBool::new(false));
        let work = || {
            for _ in 0..50 {
                let _lock = Lock::wait(&file).expect("a folder that can be written");
                assert!(!taken.swap(true, Ordering::SeqCst), "two have it");
                taken.store(false, Ordering::SeqCst);
            }
        };
        std::thread::scope(|scope| (0..4).for_each(|_| drop(scope.spawn(work))));
        assert_eq!(std::fs::read_dir(folder.path()).expect("a folder").count(), 0);
    }

    #[test]
    fn a_file_of_that_name_that_was_there_before_serves_and_stays() {
        let folder = tempfile::tempdir().expect("a folder");
        let [file, lock] = ["talk.json", "talk.json.lock"].map(|name| folder.path().join(name));
        for content in ["mine", ""] {
            std::fs::write(&lock, content).expect("it is written");
            let first = Lock::take(&file).expect("nobody has it").expect("a folder that can be written");
            assert!(Lock::take(&file).is_err());
            drop(first);
            assert_eq!(std::fs::read_to_string(&lock).ok().as_deref(), Some(content));
        }
    }

    #[test]
    fn a_lock_that_a_dead_process_has_left_is_taken_and_removed() {
        let folder = tempfile::tempdir().expect("a folder");
        let [file, lock] = ["talk.json", "talk.json.lock"].map(|name| folder.path().join(name));
        std::fs::write(&lock, OWN).expect("it is written");
        drop(Lock::wait(&file).expect("a folder that can be written"));
        assert!(!cfg!(unix) || !lock.exists());
    }

    #[test]
    fn where_there_can_be_no_lock_nobody_is_kept_out() {
        let file = Path::new("no/such/folder/talk.json");
        assert!(Lock::wait(file).is_none());
        assert!(matches!(Lock::take(file), Ok(None)));
    }
}
