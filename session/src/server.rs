//! What is known of the server: its state ([`context`]), what its tables are like ([`question`]), how it is asked ([`probe`]), that they have changed
//! ([`schema`]), and which temporary tables hide them ([`temporary`]).

pub(crate) mod context;
pub(crate) mod probe;
pub(crate) mod question;
pub(crate) mod schema;
pub(crate) mod temporary;
