//! Reading files that others wrote: regular files alone, and decoders whose panics mean damage.

use std::cell::Cell;
use std::fs::{self, File, FileType};
use std::io::{self, Read};
use std::panic::{self, AssertUnwindSafe};
use std::path::Path;
use std::sync::Once;

use crate::error::{Error, Result};

/// Opens a regular file.
///
/// # Errors
/// If the system refuses, or something else has this name: opening a pipe would wait until somebody writes to
/// it, and a device may never end.
pub fn open(path: &Path) -> io::Result<File> {
    check_regular(path)?;
    File::open(path)
}

/// Refuses what is neither a file nor a folder, without opening it.
///
/// # Errors
/// As [`open`].
pub fn check_regular(path: &Path) -> io::Result<()> {
    let Some(found) = special(fs::metadata(path)?.file_type()) else { return Ok(()) };
    let problem = format!("found {found}, expected a regular file");
    Err(io::Error::new(io::ErrorKind::InvalidInput, problem))
}

/// The contents of a regular file.
///
/// # Errors
/// As [`open`].
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open(path)?.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The contents of a regular file of text.
///
/// # Errors
/// As [`open`]; if they are not UTF-8.
pub fn read_text(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    open(path)?.read_to_string(&mut text)?;
    Ok(text)
}

/// What something is that is neither a file nor a folder.
#[cfg(unix)]
fn special(found: FileType) -> Option<&'static str> {
    use std::os::unix::fs::FileTypeExt;
    let kinds = [
        (found.is_fifo(), "a pipe"),
        (found.is_socket(), "a socket"),
        (found.is_char_device() || found.is_block_device(), "a device"),
    ];
    kinds.into_iter().find_map(|(is, kind)| is.then_some(kind))
}

#[cfg(not(unix))]
fn special(_: FileType) -> Option<&'static str> {
    None
}

thread_local! {
    /// Whether this thread is inside of [`decode`].
    static DECODING: Cell<bool> = const { Cell::new(false) };
}

/// Runs a decoder of another library. If it panics, the file is damaged. What the panic says is not shown: it
/// can hold values of the file.
///
/// # Errors
/// Those of the decoder.
pub fn decode<T>(path: &Path, decoder: impl FnOnce() -> Result<T>) -> Result<T> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let loud = panic::take_hook();
        panic::set_hook(Box::new(move |panic| {
            if !DECODING.get() {
                loud(panic);
            }
        }));
    });
    let outer = DECODING.replace(true);
    let decoded = panic::catch_unwind(AssertUnwindSafe(decoder));
    DECODING.set(outer);
    decoded.unwrap_or_else(|_| {
        Err(Error::Damaged { path: path.to_owned(), problem: "its contents make no sense".into() })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_of_a_decoder_is_damage_and_the_next_file_is_read() {
        let panicked = decode(Path::new("x"), || -> Result<()> { panic!("a value of a patient") });
        assert_eq!(panicked.unwrap_err().to_string(), "x is damaged: its contents make no sense");
        assert!(!DECODING.get());
        assert_eq!(decode(Path::new("y"), || Ok(1)).unwrap(), 1);
    }

    #[cfg(unix)]
    #[test]
    fn a_pipe_and_a_device_are_refused_without_waiting() {
        let home = tempfile::tempdir().unwrap();
        let pipe = home.path().join("pipe");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        for (path, found) in [(pipe.as_path(), "a pipe"), (Path::new("/dev/zero"), "a device")] {
            let error = read_text(path).unwrap_err();
            assert_eq!(error.to_string(), format!("found {found}, expected a regular file"));
        }
        let file = home.path().join("file");
        fs::write(&file, "text").unwrap();
        assert_eq!((read_text(&file).unwrap(), read(&file).unwrap()), ("text".into(), b"text".to_vec()));
    }
}
