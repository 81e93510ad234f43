//! What is known of the server: its state ([`context`]), by what it reads text ([`text_modes`]), what its tables are like ([`question`], [`ask_table`]),
//! that they have changed ([`schema`]), which of them a schema refresh has shown since ([`listed`]), or the program itself may not see ([`met`], [`met_table`],
//! [`unshown`]), and which temporary tables hide them ([`temporary`]). What it can be asked ([`probe`]), how it is ([`ask`], [`ask_state`]), what
//! becomes of the answer ([`answer_probe`], [`fail_own`]), and of names in it ([`column_names`]).

pub(crate) mod answer_probe;
pub(crate) mod ask;
pub(crate) mod ask_state;
pub(crate) mod ask_table;
pub(crate) mod column_names;
pub(crate) mod context;
pub(crate) mod fail_own;
pub(crate) mod listed;
pub(crate) mod met;
pub(crate) mod met_table;
pub(crate) mod probe;
pub(crate) mod question;
pub(crate) mod results_charset;
pub(crate) mod schema;
pub(crate) mod temporary;
pub(crate) mod text_modes;
pub(crate) mod unshown;
