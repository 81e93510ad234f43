//! Where the server calls this library without the binding in between.

pub mod object_access;
pub mod per_row;
pub mod process_utility;
