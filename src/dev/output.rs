//! What the program writes for others: on stdout, and into the files that its options name.

use std::{
    fmt::Display,
    fs::{self, File, OpenOptions},
    io::{self, ErrorKind, Write},
    path::{Path, PathBuf},
};

use super::Trouble;

/// Prints the text, so that it is there at once. A reader that has had enough, as `| head -1` has, is no trouble: the rest
/// of what was asked for is done, in silence.
pub fn print(text: impl Display) -> Result<(), Trouble> {
    let mut stdout = io::stdout().lock();
    match write!(stdout, "{text}").and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(Trouble(format!("Nothing can be printed on stdout: {error}.")))
        }
        _ => Ok(()),
    }
}

/// Looks whether these files can be written, before anything is done of which they would tell. A file that is there keeps
/// what it holds, and none is left where none was: a process that is killed says nothing.
pub fn check<'a>(paths: impl IntoIterator<Item = &'a Path>) -> Result<(), Trouble> {
    paths.into_iter().try_for_each(|path| look(path).map_err(|error| unwritable(path, &error)))
}

/// Refuses options of which two name one file: what one is to keep, or to read, the other would overwrite.
pub fn apart<'a>(written: &[Option<&'a Path>], others: impl IntoIterator<Item = &'a Path>) -> Result<(), Trouble> {
    let mut taken: Vec<_> = others.into_iter().map(place).collect();
    for path in written.iter().copied().flatten().filter(|path| !path.exists() || path.is_file()) {
        let place = place(path);
        if taken.contains(&place) {
            let path = path.display();
            return Err(Trouble(format!(
                "The file {path} is named twice, and would be overwritten. Name another one."
            )));
        }
        taken.push(place);
    }
    Ok(())
}

/// Where the file is, or will be.
fn place(path: &Path) -> PathBuf {
    let folder = path.parent().and_then(|folder| fs::canonicalize(folder.join(".")).ok());
    let new = folder.zip(path.file_name()).map_or_else(|| path.to_owned(), |(folder, name)| folder.join(name));
    fs::canonicalize(path).unwrap_or(new)
}

fn look(path: &Path) -> io::Result<()> {
    match fs::metadata(path) {
        Ok(found) if found.is_file() || found.is_dir() => OpenOptions::new().append(true).open(path).map(drop),
        Ok(_) => Ok(()), // to open a pipe is to be waited for
        Err(error) if error.kind() == ErrorKind::NotFound => match fs::read_link(path) {
            Ok(target) => look(&path.parent().unwrap_or(Path::new("")).join(target)),
            Err(_) => File::create_new(path).and_then(|_| fs::remove_file(path)),
        },
        Err(error) => Err(error),
    }
}

/// Makes the file, or empties it.
pub fn create(path: &Path) -> Result<File, Trouble> {
    File::create(path).map_err(|error| unwritable(path, &error))
}

pub fn unwritable(path: &Path, error: &io::Error) -> Trouble {
    Trouble(format!("The file {} cannot be written: {error}.", path.display()))
}
