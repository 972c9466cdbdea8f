//! Matrices for NumPy: `numpy.load` reads them, or maps them into memory.
//!
//! The `.npy` format, version 1.0: a magic string, the version, the length of the header, the header (a
//! Python dictionary, padded so that the numbers begin at a multiple of 64 bytes), and the numbers by row.

use std::io::{self, Write};

/// Where the numbers begin. Two numbers of 20 digits, the longest shape, still leave room.
const HEADER: usize = 128;

/// Magic string, version 1.0; the length of what is left of the header follows in two bytes.
const START: &[u8; 8] = b"\x93NUMPY\x01\x00";

/// Writes a matrix of little-endian `f32` row by row, so that it need not fit into memory.
#[derive(Debug)]
pub(super) struct Writer<W> {
    out: W,
    width: usize,
    rows_left: usize,
    bytes: Vec<u8>,
}

impl<W: Write> Writer<W> {
    /// Begins a matrix of so many rows and columns. Every row is one write, so `out` is best buffered.
    ///
    /// # Errors
    /// If it cannot be written.
    pub(super) fn new(mut out: W, rows: usize, width: usize) -> io::Result<Self> {
        out.write_all(&header(rows, width))?;
        Ok(Writer { out, width, rows_left: rows, bytes: Vec::new() })
    }

    /// Adds the next row.
    ///
    /// # Errors
    /// If it cannot be written.
    ///
    /// # Panics
    /// If the row has another width, or the matrix is complete.
    pub(super) fn row(&mut self, values: &[f32]) -> io::Result<()> {
        assert_eq!(values.len(), self.width, "a row must have the width of the matrix");
        self.rows_left = self.rows_left.checked_sub(1).expect("the matrix is complete");
        self.bytes.clear();
        self.bytes.extend(values.iter().flat_map(|value| value.to_le_bytes()));
        self.out.write_all(&self.bytes)
    }

    /// Flushes, and gives back what was written to.
    ///
    /// # Errors
    /// If it cannot be written.
    ///
    /// # Panics
    /// If rows are missing: NumPy would refuse the file.
    pub(super) fn finish(mut self) -> io::Result<W> {
        assert_eq!(self.rows_left, 0, "rows are missing");
        self.out.flush()?;
        Ok(self.out)
    }
}

fn header(rows: usize, width: usize) -> Vec<u8> {
    let dictionary = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': ({rows}, {width}), }}");
    let length = HEADER - START.len() - 2;
    let padded = format!("{dictionary:<before$}\n", before = length - 1);
    [&START[..], &(length as u16).to_le_bytes(), padded.as_bytes()].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn by_hand() {
        let mut writer = Writer::new(Vec::new(), 2, 3).unwrap();
        writer.row(&[1.0, -2.0, 0.5]).unwrap();
        writer.row(&[0.0, f32::INFINITY, 1.0]).unwrap();
        let bytes = writer.finish().unwrap();
        let mut expected = b"\x93NUMPY\x01\x00\x76\x00".to_vec();
        expected.extend(b"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }");
        expected.extend([b' '; 58]);
        expected.push(b'\n');
        assert_eq!(expected.len(), 128);
        expected.extend([0, 0, 0x80, 0x3f, 0, 0, 0, 0xc0, 0, 0, 0, 0x3f]);
        expected.extend([0, 0, 0, 0, 0, 0, 0x80, 0x7f, 0, 0, 0x80, 0x3f]);
        assert_eq!(bytes, expected);
    }

    #[test]
    fn the_longest_shape_has_room() {
        for (rows, width) in [(0, 0), (usize::MAX, usize::MAX)] {
            let header = header(rows, width);
            assert_eq!(header.len(), 128);
            assert_eq!(header.last(), Some(&b'\n'));
        }
    }

    #[test]
    #[should_panic(expected = "a row must have the width of the matrix")]
    fn a_row_of_another_width_is_refused() {
        Writer::new(Vec::new(), 1, 2).unwrap().row(&[1.0]).unwrap();
    }

    #[test]
    #[should_panic(expected = "the matrix is complete")]
    fn a_row_too_many_is_refused() {
        Writer::new(Vec::new(), 0, 1).unwrap().row(&[1.0]).unwrap();
    }

    #[test]
    #[should_panic(expected = "rows are missing")]
    fn missing_rows_are_refused() {
        Writer::new(Vec::new(), 1, 2).unwrap().finish().unwrap();
    }
}
