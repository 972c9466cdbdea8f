use crate::Number;

/// Memory that has been used and will be again.
#[derive(Debug)]
pub struct Pool<T> {
    free: Vec<Vec<T>>,
}

impl<T> Default for Pool<T> {
    fn default() -> Self {
        Pool { free: Vec::new() }
    }
}

impl<T: Number> Pool<T> {
    /// `len` numbers, whatever they are: out of the smallest buffer that is large enough, of those the one used last.
    pub(super) fn take(&mut self, len: usize) -> Vec<T> {
        let fitting = self.free.iter().enumerate().rev().filter(|(_, buffer)| buffer.capacity() >= len);
        let mut buffer = match fitting.min_by_key(|(_, buffer)| buffer.capacity()) {
            Some((place, _)) => self.free.remove(place),
            // Rounded up, so that chunks of like size can use it.
            None => Vec::with_capacity(len.next_power_of_two()),
        };
        buffer.resize(len, T::ZERO);
        buffer
    }

    /// `len` zeros.
    pub(super) fn zeros(&mut self, len: usize) -> Vec<T> {
        let mut buffer = self.take(len);
        buffer.fill(T::ZERO);
        buffer
    }

    pub(super) fn give(&mut self, buffer: Vec<T>) {
        self.free.push(buffer);
    }

    /// How many buffers wait to be used again.
    pub fn buffers(&self) -> usize {
        self.free.len()
    }
}
