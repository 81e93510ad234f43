//! Words of commands, and numbers.

/// Longest name of a command or a word behind it, bytes.
const WORD_BYTES_MAX: usize = 16;

/// A word in capitals, to be compared with those that are known. One that is longer than any of them becomes an empty one.
#[derive(Debug, Clone, Copy)]
pub(super) struct Word {
    bytes: [u8; WORD_BYTES_MAX],
    length: usize,
}

impl Word {
    pub(super) fn of(argument: &[u8]) -> Self {
        let mut bytes = [0; WORD_BYTES_MAX];
        let length = match bytes.get_mut(..argument.len()) {
            Some(room) => {
                room.copy_from_slice(argument);
                room.make_ascii_uppercase();
                argument.len()
            }
            None => 0,
        };
        Self { bytes, length }
    }

    pub(super) fn bytes(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or_default()
    }
}

/// A number as Redis reads one: no sign but `-`, no zeros before it.
pub(super) fn integer(argument: &[u8]) -> Option<i64> {
    let digits = argument.strip_prefix(b"-").unwrap_or(argument);
    let is_plain = match digits {
        [b'0'] => argument.len() == 1,
        [b'1'..=b'9', rest @ ..] => rest.iter().all(u8::is_ascii_digit),
        _ => false,
    };
    let text = std::str::from_utf8(argument).ok().filter(|_| is_plain);
    text.and_then(|text| text.parse().ok())
}
