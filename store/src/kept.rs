//! Ranges that a program keeps in a local file, so that it can start while its store is away.
//!
//! A range that was reserved, and whose commit is known, is split: its first half is published, its second half (the *tail*) the file keeps.
//! The tail is published when the next range comes, or, while the store is away, in parts. Whoever starts while the store is away goes on
//! with the tail that the file keeps, above its *mark*: its first id.
//!
//! **Why no id comes twice.** For each tag, at each moment, ids are *published* (a buffer of some program, living or dead, had them below its bound)
//! or *kept* (what the file says on the disk, or in the kernel's memory, is that they may be given), and never both:
//! 1. A range comes to be kept by one write that also says nothing any more of the tail before it, and only behind its commit. Nobody has
//!    ids of it then but this program.
//! 2. Ids of a tail are published only after a write is on the disk by which they are kept no more ([`keeper::Keeper::keep`],
//!    [`keeper::Keeper::forget`]). After a write that failed, neither what it was to say nor what the file said before is published, and
//!    the file is erased.
//! 3. Only one program has the file, by a lock that the kernel holds while the program lives (`flock`). One that starts and finds it locked,
//!    as the new program of a take-over does, keeps nothing until the lock is free. Then it overwrites what it finds, but for how far
//!    tags had come.
//! 4. Nobody believes an older state of the file. It is written in place, as a whole, with a checksum, and names its device, inode, time of birth,
//!    machine and run of the machine (boot id): a copy is another file, and after a restart of the machine nothing is believed. An older state that is
//!    written into the file itself (`cp backup ranges`), or comes back by another name of the inode, shows by the time of change that the kernel keeps,
//!    which nobody can set but with the clock: it is that of the content's own write, or the file is not used.
//! 5. What is handed back to the store, or dropped for whatever reason (another generation, another key space, an ordered tag), is erased first. What could not
//!    be erased is not handed back.
//!
//! So a program that starts on the file has what its predecessor would have had left, if that had lived on and lost what it had in memory; whatever
//! the store says when it is back (another key space, another generation, a bound below what was seen, a closed tag) is judged by the same code.
//! It knows the rules in force as its predecessor did: the file names the generation of each tag, and which tables had keys. While tables are
//! switched it does not, written before the program tells the others that it holds. And others go on without a program that was silent
//! for `switch_peer_wait_s`: until that much after the store last heard of the predecessor (`CLOCK_BOOTTIME`, which a change of the clock does not move), the
//! file may be used, and what was taken from it be given; then all of that is dropped.
//!
//! Beside the ranges the file says how far the bounds of tags had come ([`seen`]), also of ranges of which nothing is kept, and before anybody has an id of
//! them; and it goes on saying so when nothing is kept any more, whoever takes the file. A store that says less of a tag of the same key space has gone back:
//! whoever starts then takes nothing from it, as whoever ran meanwhile.
//!
//! What no check can see is a copy of the living memory of the whole machine, a file system that is put back to an older state in the same run of the machine,
//! and a clock of the store's server that is put forward: others go by that when they wait for a program that is silent.
//!
//! Ordered tags are not kept: who gives them is the store's to say. Nor are worker ids: what a program may give without its store is time up to
//! a bound that lies `bound_window_ms` ahead, five seconds, which are over when it has started.

pub(crate) mod content;
mod disk;
mod judge;
pub(crate) mod keeper;
pub(crate) mod seen;
pub(crate) mod tail;

#[cfg(test)]
mod tests;
