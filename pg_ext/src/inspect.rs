//! SQL that looks, and reads ids.

pub mod decode;
pub mod figures;
pub mod health;
