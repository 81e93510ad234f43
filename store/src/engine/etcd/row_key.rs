//! The key of a row: its table, and the values of its primary key, between slashes.

use rusqlite::types::Value as Cell;

/// `None`: a primary key has no such values.
pub(super) fn row_key(table: &str, primary: &[Cell]) -> Option<String> {
    let mut key = table.to_owned();
    for cell in primary {
        key.push('/');
        match cell {
            Cell::Integer(number) => key.push_str(&number.to_string()),
            Cell::Text(text) => escape_into(&mut key, text),
            Cell::Null | Cell::Real(_) | Cell::Blob(_) => return None,
        }
    }
    Some(key)
}

/// What could be taken for something else in a key, or by a shell, as `%` and two hexadecimal digits for each byte.
fn escape_into(key: &mut String, text: &str) {
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b':' | b'@' => {
                key.push(char::from(byte));
            }
            _ => key.push_str(&format!("%{byte:02X}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_with_other_primary_keys_have_other_keys() {
        let text = |text: &str| Cell::Text(text.to_owned());
        let of = |primary: &[Cell]| row_key("t", primary).unwrap();
        assert_eq!(of(&[text("shop.%"), Cell::Integer(-7)]), "t/shop.%25/-7");
        assert_eq!(of(&[text("a/b"), text("c")]), "t/a%2Fb/c");
        assert_ne!(of(&[text("a/b"), text("c")]), of(&[text("a"), text("b/c")]));
        assert_eq!(of(&[text("ü")]), "t/%C3%BC");
        assert_eq!(row_key("t", &[Cell::Null]), None);
    }
}
