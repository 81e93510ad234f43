//! Columns that go over to ids and back: under the table's lock, above all that any source may have issued, as a whole.

pub mod adopt;
pub mod column;
pub mod filler;
pub mod relatives;
pub mod release;
