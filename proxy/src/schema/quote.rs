//! Names and strings in statements.

use keywright_rewrite::{quote_name, quote_string};

/// A name between backquotes.
pub fn quoted(name: &str) -> String {
    let mut out = Vec::new();
    quote_name(name.as_bytes(), &mut out);
    // Quoting adds ASCII, so nothing is lost.
    String::from_utf8_lossy(&out).into_owned()
}

/// A string between quotation marks, for sessions whose `sql_mode` is the default.
pub fn quoted_string(text: &str) -> String {
    let mut out = Vec::new();
    quote_string(text.as_bytes(), true, &mut out);
    // As above.
    String::from_utf8_lossy(&out).into_owned()
}
