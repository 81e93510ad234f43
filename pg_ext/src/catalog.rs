//! What the extension keeps in tables and sequences: read as its owner, in the newest committed state and this transaction's own.

pub mod cached;
pub mod damage;
pub mod extension;
pub mod node;
pub mod secrets;
pub mod sequences;
pub mod stamped;
pub mod statements;
pub mod suggest;
pub mod tables;
pub mod tag_rows;
pub mod triggers;
