//! From bytes to tokens, as the servers' lexers read them in the session's modes: blanks, comments, quotes, names, and ways past
//! text that is not looked at closely. Knows nothing of statements.

pub(crate) mod builtins;
pub(crate) mod byte_class;
pub(crate) mod call;
pub(crate) mod cursor;
pub(crate) mod keywords;
pub(crate) mod literal;
pub(crate) mod name;
pub(crate) mod non_ascii_blanks;
pub(crate) mod quote;
pub(crate) mod scan;
pub(crate) mod swe7;
pub(crate) mod token;
