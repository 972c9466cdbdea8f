use std::ops::{Deref, DerefMut};

use crate::Number;

/// Memory that has been used and will be again.
#[derive(Debug)]
pub struct Pool<T> {
    free: Vec<Buffer<T>>,
}

impl<T> Default for Pool<T> {
    fn default() -> Self {
        Pool { free: Vec::new() }
    }
}

/// Bytes of a line of the cache: a register's worth of numbers should not lie on two.
const LINE: usize = 64;

/// The first numbers of some memory: those after them are left alone, so that to make it longer or shorter
/// costs nothing.
#[derive(Debug)]
pub(super) struct Buffer<T> {
    memory: Vec<T>,
    /// The first number that begins a line.
    start: usize,
    len: usize,
}

impl<T> Default for Buffer<T> {
    fn default() -> Self {
        Buffer { memory: Vec::new(), start: 0, len: 0 }
    }
}

impl<T: Number> Buffer<T> {
    fn new(len: usize) -> Self {
        let spare = LINE / size_of::<T>();
        // Rounded up, so that chunks of like size can use it.
        let memory = vec![T::ZERO; len.next_power_of_two() + spare];
        let start = memory.as_ptr().align_offset(LINE).min(spare);
        Buffer { memory, start, len }
    }

    fn room(&self) -> usize {
        self.memory.len() - self.start
    }
}

impl<T> Deref for Buffer<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.memory[self.start..][..self.len]
    }
}

impl<T> DerefMut for Buffer<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.memory[self.start..][..self.len]
    }
}

impl<T: Number> Pool<T> {
    /// `len` numbers, whatever they are: out of the smallest buffer that is large enough, of those the one
    /// used last.
    pub(super) fn take(&mut self, len: usize) -> Buffer<T> {
        let fitting = self.free.iter().enumerate().rev().filter(|(_, buffer)| buffer.room() >= len);
        match fitting.min_by_key(|(_, buffer)| buffer.memory.len()) {
            Some((index, _)) => Buffer { len, ..self.free.remove(index) },
            None => Buffer::new(len),
        }
    }

    /// `len` zeros.
    pub(super) fn zeros(&mut self, len: usize) -> Buffer<T> {
        let mut buffer = self.take(len);
        buffer.fill(T::ZERO);
        buffer
    }

    pub(super) fn give(&mut self, buffer: Buffer<T>) {
        self.free.push(buffer);
    }

    /// How many buffers wait to be used again.
    pub fn buffers(&self) -> usize {
        self.free.len()
    }

    /// How many numbers these have room for.
    pub fn numbers(&self) -> usize {
        self.free.iter().map(|buffer| buffer.memory.len()).sum()
    }
}
