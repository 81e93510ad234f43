//! The atomic numbers of words: in one place, so that a test can put others there, which show what weak memory may do
//! (`tests/interleavings`).

pub(crate) use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering};
