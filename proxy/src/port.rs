//! The key port: keys for any program, over the Redis protocol or HTTP.
//!
//! [`access`]: who clients are, and what they may. [`keys`]: which names there are, and what they give now. [`issue`]: keys are taken. [`alarm`]: clients have taken too long. [`redis`], [`http`]: how clients ask and are told.

mod access;
mod alarm;
pub(crate) mod http;
mod issue;
pub(crate) mod keys;
mod password;
pub(crate) mod redis;
