//! How a bound becomes durable: enter the slot's gate ([`turn`]), lock the sequence if it is free ([`locks`]), set it, flush, wait
//! for the standbys that the configuration demands ([`flush`]). Whatever interrupts it leaves a gap, never a repeat.

pub mod flush;
pub mod locks;
pub mod turn;
pub mod wait;
