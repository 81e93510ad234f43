//! Buffers that are read into, of all connections of a thread: each has one only while there are bytes in it.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Sizes that are kept, bytes, and how many of each.
const KEPT: [(usize, usize); 3] = [
    (BUFFER_BYTES_MIN, 64),
    (BUFFER_BYTES_MIN * 4, 16),
    (BUFFER_BYTES_BUSY, 8),
];

/// A buffer's size once bytes have come, bytes.
pub(crate) const BUFFER_BYTES_MIN: usize = 16 << 10;
/// Its size while much is passed through, bytes. Only a statement that is gathered makes it larger.
pub(crate) const BUFFER_BYTES_BUSY: usize = 256 << 10;

/// Buffers that nobody has at the moment. Their connections are served by one thread, so nobody waits for the lock.
#[derive(Debug, Default)]
pub struct Buffers {
    spare: Mutex<[Vec<Vec<u8>>; KEPT.len()]>,
}

impl Buffers {
    /// One of this size, which may have anything in it.
    pub(crate) fn take(&self, bytes: usize) -> Vec<u8> {
        let kept = KEPT.iter().position(|(kept, _)| *kept == bytes);
        let spare = kept.and_then(|at| self.spare().get_mut(at)?.pop());
        spare.unwrap_or_else(|| vec![0; bytes])
    }

    /// Takes it back. One of another size, or with much more memory than that, is dropped.
    pub(crate) fn give_back(&self, buffer: Vec<u8>) {
        let mut spare = self.spare();
        for ((bytes, count_max), spare) in KEPT.iter().zip(spare.iter_mut()) {
            let is_of_size = buffer.len() == *bytes && buffer.capacity() <= 2 * bytes;
            if is_of_size && spare.len() < *count_max {
                spare.push(buffer);
                return;
            }
        }
    }

    fn spare(&self) -> MutexGuard<'_, [Vec<Vec<u8>>; KEPT.len()]> {
        self.spare.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::{BUFFER_BYTES_BUSY, BUFFER_BYTES_MIN, Buffers, KEPT};

    #[test]
    fn a_buffer_is_used_again_and_few_are_kept() {
        let buffers = Buffers::default();
        let mut buffer = buffers.take(BUFFER_BYTES_MIN);
        buffer[0] = 7;
        buffers.give_back(buffer);
        assert_eq!(buffers.take(BUFFER_BYTES_BUSY)[0], 0);
        assert_eq!(buffers.take(BUFFER_BYTES_MIN)[0], 7);
        assert_eq!(buffers.take(BUFFER_BYTES_MIN)[0], 0);
        for (bytes, count_max) in KEPT {
            for _ in 0..=count_max {
                buffers.give_back(vec![1; bytes]);
            }
        }
        let kept = buffers.spare().each_ref().map(Vec::len);
        assert_eq!(kept, KEPT.map(|(_, count_max)| count_max));
        // What a statement has grown in.
        let mut grown = buffers.take(BUFFER_BYTES_MIN);
        grown.reserve(BUFFER_BYTES_BUSY);
        buffers.give_back(grown);
        buffers.give_back(vec![0; BUFFER_BYTES_MIN + 1]);
        assert_eq!(buffers.spare()[0].len(), KEPT[0].1 - 1);
    }
}
