//! What the program prints on stdout, for whoever still reads it.

use std::{
    fmt::Display,
    io::{ErrorKind, Write},
};

use super::Trouble;

/// Prints the text, so that it is there at once. A reader that has had enough, as `| head -1` has, is no trouble: the rest
/// of what was asked for is done, in silence.
pub fn print(text: impl Display) -> Result<(), Trouble> {
    let mut stdout = std::io::stdout().lock();
    match write!(stdout, "{text}").and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(Trouble(format!("Nothing can be printed on stdout: {error}.")))
        }
        _ => Ok(()),
    }
}
