//! What runs when ids are taken: below the bound, without a lock; refilled when they run low.

pub mod ids;
pub mod snowflake;
pub mod tag;
pub mod uuids;
