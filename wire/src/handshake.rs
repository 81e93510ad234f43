//! How server and client introduce themselves before the first command.

pub mod greeting;
pub mod response;
