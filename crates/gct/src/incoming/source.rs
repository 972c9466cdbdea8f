//! What a file of encounters is, by its first bytes.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use flate2::read::MultiGzDecoder;
use tempfile::NamedTempFile;

use super::refusal;
use crate::error::{OnPath, Result};
use crate::files;

/// Something to read from.
pub(super) type Reader = BufReader<Box<dyn Read + Send>>;

const GZIP: &[u8] = &[0x1f, 0x8b];
const PARQUET: &[u8] = b"PAR1";
const UTF_8: &[u8] = &[0xef, 0xbb, 0xbf];
const UTF_16: [&[u8]; 2] = [&[0xff, 0xfe], &[0xfe, 0xff]];

/// Encounters in one of the formats.
pub(super) enum Source {
    Lines(Reader),
    Csv(Reader),
    Parquet(ParquetFile),
}

/// A Parquet file, which is read from its end: what cannot be, is copied first.
pub(super) enum ParquetFile {
    Given(std::path::PathBuf),
    Copied(NamedTempFile),
}

impl ParquetFile {
    pub(super) fn path(&self) -> &Path {
        match self {
            ParquetFile::Given(path) => path,
            ParquetFile::Copied(file) => file.path(),
        }
    }
}

impl Source {
    pub(super) fn open(path: &Path) -> Result<Self> {
        let mut file = files::open(path).on("read", path)?;
        let mut first = [0; PARQUET.len()];
        let is_parquet = read_first(&mut file, &mut first).on("read", path)? && first == *PARQUET;
        match is_parquet {
            true => Ok(Source::Parquet(ParquetFile::Given(path.to_owned()))),
            false => Source::of(path, Box::new(files::open(path).on("read", path)?)),
        }
    }

    pub(super) fn of(path: &Path, reader: Box<dyn Read + Send>) -> Result<Self> {
        let mut reader = BufReader::new(reader);
        if begins_with(&mut reader, GZIP).on("read", path)? {
            reader = BufReader::new(Box::new(MultiGzDecoder::new(reader)));
        }
        if begins_with(&mut reader, PARQUET).on("read", path)? {
            let mut copy = NamedTempFile::new().on("write", &std::env::temp_dir())?;
            io::copy(&mut reader, &mut copy).on("write", copy.path())?;
            return Ok(Source::Parquet(ParquetFile::Copied(copy)));
        }
        for mark in UTF_16 {
            if begins_with(&mut reader, mark).on("read", path)? {
                return Err(refusal(path, "expected UTF-8 text, found UTF-16"));
            }
        }
        if begins_with(&mut reader, UTF_8).on("read", path)? {
            reader.consume(UTF_8.len());
        }
        match first_letter(&mut reader).on("read", path)? {
            None => Err(refusal(path, "it is empty")),
            Some(b'{' | b'[') => Ok(Source::Lines(reader)),
            Some(_) => Ok(Source::Csv(reader)),
        }
    }
}

/// Fills the buffer; whether there was enough to fill it.
fn read_first(file: &mut File, first: &mut [u8]) -> io::Result<bool> {
    match file.read_exact(first) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        read => read.map(|()| true),
    }
}

/// Whether the next bytes are these. One read from a pipe can give fewer than there are.
fn begins_with(reader: &mut Reader, bytes: &[u8]) -> io::Result<bool> {
    let found = reader.fill_buf()?;
    if found.len() >= bytes.len() || found.is_empty() {
        return Ok(found.starts_with(bytes));
    }
    let mut first = vec![0; bytes.len()];
    let mut length = 0;
    while length < first.len() {
        match reader.read(&mut first[length..])? {
            0 => break,
            read => length += read,
        }
    }
    first.truncate(length);
    let is_so = first == bytes;
    put_back(reader, first);
    Ok(is_so)
}

/// Puts bytes before those that are left.
fn put_back(reader: &mut Reader, first: Vec<u8>) {
    let rest = std::mem::replace(reader, BufReader::new(Box::new(io::empty())));
    *reader = BufReader::new(Box::new(io::Cursor::new(first).chain(rest)));
}

/// The first byte that is no white space, which is skipped.
fn first_letter(reader: &mut Reader) -> io::Result<Option<u8>> {
    loop {
        let found = reader.fill_buf()?;
        if found.is_empty() {
            return Ok(None);
        }
        let spaces = found.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
        if let Some(letter) = found.get(spaces) {
            return Ok(Some(*letter));
        }
        reader.consume(spaces);
    }
}
