//! What is known of the server: its state ([`context`]), what its tables are like ([`question`], [`ask_table`]), that they have changed ([`schema`]), and which
//! temporary tables hide them ([`temporary`]). What it can be asked ([`probe`]), and how it is ([`ask`]).

pub(crate) mod ask;
pub(crate) mod ask_table;
pub(crate) mod context;
pub(crate) mod probe;
pub(crate) mod question;
pub(crate) mod schema;
pub(crate) mod temporary;
