//! What follows from a snapshot of a server's schema. No server is asked: the snapshots are made here.

mod build;
mod diagnose;
mod highest;
mod moves;
mod rules;
mod surroundings;
mod told;
mod unmatched;
