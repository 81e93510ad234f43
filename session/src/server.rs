//! What is known of the server: its state ([`context`]), what its tables are like ([`question`]), that they have changed
//! ([`schema`]), and which temporary tables hide them ([`temporary`]).

pub(crate) mod context;
pub(crate) mod question;
pub(crate) mod schema;
pub(crate) mod temporary;
