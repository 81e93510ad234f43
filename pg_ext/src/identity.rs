//! Who this database is: its numbers, what the server's register knows of them, how far they were used, and which writer of
//! it writes now.

pub mod bounds;
pub mod claims;
pub mod drops;
pub mod label;
pub mod numbers;
pub mod overlap;
pub mod promotion;
pub mod register;
pub mod tag_places;
pub mod uncommitted;
pub mod writer;
