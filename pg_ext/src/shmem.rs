//! Shared memory: one slot per tag and one per snowflake (or readable) word, found by key.
//!
//! A slot belongs to one key at a time. When that key can never come again, or all it issued is recorded elsewhere, the slot
//! may be passed on to another ([`reuse`]): its generation tells. Everything in a slot is an atomic, or plain data
//! owned by whoever holds its gate or the directory's lock.

pub mod area;
pub mod directory;
pub mod fed_time;
pub mod gate;
pub mod kept;
pub mod key;
pub mod resets;
pub mod reuse;
pub mod slot;
pub mod startup;
pub mod tag_slot;
pub mod time_slot;
pub mod unused;
