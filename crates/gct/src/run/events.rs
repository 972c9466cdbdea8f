//! Curves for TensorBoard: `tensorboard --logdir FOLDER` shows the scalars of all event files below a folder.
//!
//! An event file is a sequence of TFRecords, all numbers little-endian:
//!
//! ```text
//! length: u64 | masked CRC-32C of those 8 bytes: u32 | payload | masked CRC-32C of the payload: u32
//! ```
//!
//! A payload is a protocol buffer:
//!
//! ```text
//! Event   { 1: double wall_time, 2: int64 step, 3: string file_version or 5: Summary summary }
//! Summary { 1: repeated Value { 1: string tag, 2: float simple_value } }
//! ```
//!
//! The first event of a file names the version, each of the others holds the scalars of one step.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

const VERSION: &str = "brain.Event:2";

/// A file of scalars, open at its end. TensorBoard reads those with `tfevents` in their name.
#[derive(Debug)]
pub(crate) struct EventFile {
    file: File,
}

impl EventFile {
    /// Opens a file, or creates it. If it is empty, `wall_time` (seconds since 1970) is when it began.
    ///
    /// # Errors
    /// If the file cannot be opened or written.
    pub(crate) fn append(path: &Path, wall_time: f64) -> io::Result<Self> {
        let mut file = File::options().append(true).create(true).open(path)?;
        if file.metadata()?.len() == 0 {
            file.write_all(&record(&event(wall_time, 0, Field::Text(3, VERSION))))?;
        }
        Ok(EventFile { file })
    }

    /// Adds the values of a step, each under its tag. A slash in a tag makes a group: `loss/train`.
    ///
    /// The record reaches the operating system in one piece before this returns.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub(crate) fn scalars(&mut self, wall_time: f64, step: u64, values: &[(&str, f32)]) -> io::Result<()> {
        let mut summary = Vec::new();
        for (tag, value) in values {
            let value = message(&[Field::Text(1, tag), Field::Float(2, *value)]);
            Field::Bytes(1, &value).write(&mut summary);
        }
        self.file.write_all(&record(&event(wall_time, step, Field::Bytes(5, &summary))))
    }
}

fn event(wall_time: f64, step: u64, what: Field) -> Vec<u8> {
    message(&[Field::Double(1, wall_time), Field::Varint(2, step), what])
}

/// A field of a protocol buffer, with its number.
enum Field<'a> {
    Varint(u8, u64),
    Double(u8, f64),
    Float(u8, f32),
    Text(u8, &'a str),
    Bytes(u8, &'a [u8]),
}

impl Field<'_> {
    fn write(&self, out: &mut Vec<u8>) {
        // The low three bits of a key say how the value is stored.
        let key = |number: u8, storage: u8| number << 3 | storage;
        match *self {
            Field::Varint(number, value) => {
                out.push(key(number, 0));
                write_varint(value, out);
            }
            Field::Double(number, value) => {
                out.push(key(number, 1));
                out.extend(value.to_le_bytes());
            }
            Field::Float(number, value) => {
                out.push(key(number, 5));
                out.extend(value.to_le_bytes());
            }
            Field::Text(number, text) => Field::Bytes(number, text.as_bytes()).write(out),
            Field::Bytes(number, bytes) => {
                out.push(key(number, 2));
                write_varint(bytes.len() as u64, out);
                out.extend(bytes);
            }
        }
    }
}

fn message(fields: &[Field]) -> Vec<u8> {
    let mut out = Vec::new();
    fields.iter().for_each(|field| field.write(&mut out));
    out
}

/// Seven bits per byte, the lowest first; the eighth says that more follow.
fn write_varint(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn record(payload: &[u8]) -> Vec<u8> {
    let length = (payload.len() as u64).to_le_bytes();
    let [length_check, payload_check] = [&length, payload].map(|bytes| masked(crc32c(bytes)).to_le_bytes());
    [&length, &length_check[..], payload, &payload_check].concat()
}

/// TFRecord stores no bare checksum, lest a checksum be taken of a checksum.
fn masked(crc: u32) -> u32 {
    crc.rotate_right(15).wrapping_add(0xa282_ead8)
}

/// The checksum of Castagnoli's polynomial, bits reflected.
fn crc32c(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0, |crc, byte| crc >> 8 ^ CRC_OF_BYTE[usize::from(crc as u8 ^ byte)])
}

const CRC_OF_BYTE: [u32; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut crc = byte as u32;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 1 == 1 { crc >> 1 ^ 0x82f6_3b78 } else { crc >> 1 };
            bit += 1;
        }
        table[byte] = crc;
        byte += 1;
    }
    table
};

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn checksums_are_the_known_ones() {
        assert_eq!(crc32c(b""), 0);
        assert_eq!(crc32c(b"123456789"), 0xe306_9283);
        // RFC 3720, B.4: 32 bytes of zeros, of ones, and ascending.
        assert_eq!(crc32c(&[0; 32]), 0x8a91_36aa);
        assert_eq!(crc32c(&[0xff; 32]), 0x62a8_ab43);
        assert_eq!(crc32c(&(0..32).collect::<Vec<u8>>()), 0x46dd_794e);
    }

    #[test]
    fn varints_by_hand() {
        let varint = |value| message(&[Field::Varint(2, value)]);
        assert_eq!(varint(0), [0x10, 0]);
        assert_eq!(varint(127), [0x10, 127]);
        assert_eq!(varint(300), [0x10, 0xac, 0x02]);
        assert_eq!(varint(i64::MAX as u64).len(), 10);
    }

    #[test]
    fn an_event_by_hand() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("events.tfevents");
        EventFile::append(&path, 2.0).unwrap();
        let version = fs::read(&path).unwrap();
        // Reopened: the version is there already.
        EventFile::append(&path, 9.0).unwrap().scalars(1.5, 300, &[("a", 1.0), ("bc", -2.0)]).unwrap();
        let bytes = fs::read(&path).unwrap();

        let mut expected = vec![0x09, 0, 0, 0, 0, 0, 0, 0, 0x40, 0x10, 0, 0x1a, 13];
        expected.extend(b"brain.Event:2");
        assert_eq!(version[..8], 26u64.to_le_bytes());
        assert_eq!(version[12..38], expected);
        assert_eq!(version.len(), 42);
        assert_eq!(bytes[..42], version);

        let expected = [
            &[0x09, 0, 0, 0, 0, 0, 0, 0xf8, 0x3f][..], // wall_time 1.5
            &[0x10, 0xac, 0x02],                       // step 300
            &[0x2a, 21],                               // a summary of 21 bytes
            &[0x0a, 8, 0x0a, 1, b'a', 0x15, 0, 0, 0x80, 0x3f],
            &[0x0a, 9, 0x0a, 2, b'b', b'c', 0x15, 0, 0, 0, 0xc0],
        ]
        .concat();
        assert_eq!(bytes[42..], record(&expected));
    }

    #[test]
    fn a_record_by_hand() {
        // The checksums are those of `masked_crc32c` in the Python package tensorboard 2.21.
        let expected =
            [&[3, 0, 0, 0, 0, 0, 0, 0][..], &[0xb0, 0x99, 0x49, 0x0e], b"abc", &[0x6e, 0x57, 0xf1, 0x21]]
                .concat();
        assert_eq!(record(b"abc"), expected);
    }
}
