//! What is done to tables of private servers when they go over to keys and back.

#![allow(unreachable_pub, reason = "modules of one test binary")]

mod barrier;
mod clock;
mod fence;
mod lifted;
mod not_switched;
mod stalled;
mod storm;
