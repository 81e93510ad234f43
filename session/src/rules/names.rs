//! Names of schemas and tables in the form in which rules are compared with them.

use std::borrow::Cow;

/// What stands before the name of a file of before 5.1, which MariaDB still takes for a table's or a schema's name: `` `#mysql50#t` `` is
/// `t`. In MySQL it is a name like others, which nobody gives.
pub(super) const OF_FILE: &[u8] = b"#mysql50#";

/// A name in lower case, as servers have it (`utf8mb3_general_ci`; seen with MariaDB 10.11 and MySQL 9.7): character by character, whatever
/// stands beside it. Characters that Unicode has had cases of for less than 20 years they leave as they are; those names are
/// taken for one here.
pub fn in_lower_case(name: &str) -> String {
    let mut lower = String::with_capacity(name.len());
    for letter in name.chars() {
        match letter {
            'İ' => lower.push('i'),
            _ => lower.extend(letter.to_lowercase()),
        }
    }
    lower
}

/// A name as it is compared; none if it cannot match any. `lower_case`: names are compared without case.
pub(super) fn folded(name: &[u8], lower_case: bool) -> Option<Cow<'_, [u8]>> {
    if !lower_case {
        return Some(Cow::Borrowed(name));
    }
    let name = std::str::from_utf8(name).ok()?;
    Some(Cow::Owned(in_lower_case(name).into_bytes()))
}

/// The table or schema of a name that is a file's.
pub(super) fn behind(name: Cow<'_, [u8]>) -> Cow<'_, [u8]> {
    match name.strip_prefix(OF_FILE) {
        Some(file) => Cow::Owned(of_file(file)),
        None => name,
    }
}

/// The name that a file's stands for: `@002d` in it is `-`. Letters beyond ASCII, which have shorter forms too, are left as they are.
fn of_file(file: &[u8]) -> Vec<u8> {
    let mut name = Vec::with_capacity(file.len());
    let mut rest = file;
    while let [byte, behind @ ..] = rest {
        let read = (*byte == b'@').then(|| character(behind)).flatten();
        rest = match read {
            Some((character, left)) => {
                name.extend(character.encode_utf8(&mut [0; 4]).bytes());
                left
            }
            None => {
                name.push(*byte);
                behind
            }
        };
    }
    name
}

/// The character of four digits, and what follows them.
fn character(text: &[u8]) -> Option<(char, &[u8])> {
    let (digits, left) = text.split_at_checked(4)?;
    let mut code = 0;
    for digit in digits {
        code = code * 16 + char::from(*digit).to_digit(16)?;
    }
    Some((char::from_u32(code)?, left))
}
