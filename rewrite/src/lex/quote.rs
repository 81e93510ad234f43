//! Names and texts as statements have them, between quotes.

/// Appends a name between backquotes.
pub fn quote_name(name: &[u8], out: &mut Vec<u8>) {
    quote(name, b'`', false, out);
}

/// Appends a string between quotation marks. `has_escapes`: the server reads it without NO_BACKSLASH_ESCAPES.
pub fn quote_string(text: &[u8], has_escapes: bool, out: &mut Vec<u8>) {
    quote(text, b'\'', has_escapes, out);
}

/// Appends a text between two marks, with what has a meaning there doubled.
fn quote(text: &[u8], mark: u8, has_escapes: bool, out: &mut Vec<u8>) {
    out.push(mark);
    for byte in text {
        if *byte == mark || (has_escapes && *byte == b'\\') {
            out.push(*byte);
        }
        out.push(*byte);
    }
    out.push(mark);
}

#[cfg(test)]
mod tests {
    use super::{quote_name, quote_string};

    #[test]
    fn marks_and_escapes_are_doubled() {
        let mut out = Vec::new();
        quote_name(b"a`b\\'c", &mut out);
        quote_string(b"a`b\\'c", true, &mut out);
        quote_string(b"a`b\\'c", false, &mut out);
        assert_eq!(out, br"`a``b\'c`'a`b\\''c''a`b\''c'");
    }
}
