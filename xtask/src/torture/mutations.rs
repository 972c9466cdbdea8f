//! Ways to damage a file: its bytes by chance, or the kind of file that it is.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use anyhow::Result;
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::execute;

/// What readers stumble over, with bars between.
const ODD: &[u8] =
    b"\"|,|\n|\r\n|\0|\xff\xfe|\xef\xbb\xbf|-1|0|-9223372036854775808|99999999999999999999|1e400|NaN|null\
                     |[|{|}|\\|\x1b[31m|\xc2\x9b31m|9999-99-99|\xf0\x9f\x92\x8a";

/// The chance of a case: the same for the same seed and number.
pub(crate) fn random(seed: u64, case: usize) -> Xoshiro256PlusPlus {
    Xoshiro256PlusPlus::seed_from_u64(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ case as u64)
}

/// Changes a few bytes.
pub(crate) fn damage(bytes: &mut Vec<u8>, random: &mut Xoshiro256PlusPlus) {
    for _ in 0..random.random_range(1..5) {
        if bytes.is_empty() {
            return;
        }
        let at = offset(bytes.len(), random);
        let end = (at + random.random_range(1..40)).min(bytes.len());
        let odd: Vec<&[u8]> = ODD.split(|byte| *byte == b'|').collect();
        let odd = odd[random.random_range(0..odd.len())].iter().copied();
        match random.random_range(0..9) {
            0 => bytes[at] = random.random(),
            1 | 2 => bytes[at] ^= 1 << random.random_range(0..8),
            3 => drop(bytes.drain(at..end)),
            4 => bytes.truncate(at),
            5 => {
                let again = bytes[at..end].repeat([1, 2, 300][random.random_range(0..3)]);
                bytes.splice(at..at, again);
            }
            6 => drop(bytes.splice(at..end, odd)),
            _ => drop(bytes.splice(at..at, odd)),
        }
    }
}

/// Anywhere; every other time near an end, where formats keep what they say of themselves.
fn offset(length: usize, random: &mut Xoshiro256PlusPlus) -> usize {
    let near = length.min(600);
    match random.random_range(0..4) {
        0 => random.random_range(0..near),
        1 => length - 1 - random.random_range(0..near),
        _ => random.random_range(0..length),
    }
}

/// What can stand where a file was.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Instead {
    Nothing,
    Empty,
    Folder,
    Fifo,
    Endless,
}

impl Instead {
    pub(crate) const ALL: [Self; 5] = [Self::Nothing, Self::Empty, Self::Folder, Self::Fifo, Self::Endless];

    /// Puts it where a file was.
    pub(crate) fn replace(self, path: &Path) -> Result<()> {
        fs::remove_file(path)?;
        match self {
            Instead::Nothing => {}
            Instead::Empty => fs::write(path, "")?,
            Instead::Folder => fs::create_dir(path)?,
            Instead::Fifo => execute(Command::new("mkfifo").arg(path))?,
            Instead::Endless => symlink("/dev/zero", path)?,
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn damage_depends_on_seed_and_case_alone() {
        let damaged = |seed, case| {
            let mut bytes: Vec<u8> = (0..=255).collect();
            damage(&mut bytes, &mut random(seed, case));
            bytes
        };
        assert_eq!(damaged(3, 5), damaged(3, 5));
        assert!(damaged(3, 5) != damaged(3, 6) && damaged(3, 5) != damaged(4, 5));
        (0..2000).for_each(|case| damage(&mut vec![7], &mut random(0, case)));
    }
}
