//! What a program does on servers when tables go over to keys or back; what the store decides about it is
//! `keywright_store::switch`.

mod fence;

pub use fence::{Blocker, Outcome, SwitchError, fence, kill, lift};
