//! How a client introduces itself: its answer to the greeting, and COM_CHANGE_USER.

use crate::bytes::Reader;
use crate::capability::{
    CONNECT_WITH_DB, PLUGIN_AUTH, PLUGIN_AUTH_LENENC, PROTOCOL_41, SECURE_CONNECTION, of_words,
};

/// A plugin that no account has: a server that reads it asks the client anew, for the one that the account has.
const NO_PLUGIN: &[u8] = b"keywright_none";

/// Who comes, to what, and with which proof.
#[derive(Debug, PartialEq, Eq)]
pub struct LoginRequest<'a> {
    /// All up to the proof's length.
    before: &'a [u8],
    /// From the proof's end to the plugin's name.
    between: &'a [u8],
    /// The account's name.
    pub user: &'a [u8],
    /// What shall prove it.
    pub proof: &'a [u8],
    /// Which plugin made the proof, if that is said at all.
    pub plugin: Option<&'a [u8]>,
    after: &'a [u8],
    /// The first schema.
    pub database: Option<&'a [u8]>,
    /// The number of the client's collation, if it is said.
    pub collation: Option<u16>,
}

/// Capabilities that a client asks for in its answer to the greeting; `None` if it is cut off.
pub fn asked(response: &[u8]) -> Option<u64> {
    let word = |from: usize| <[u8; 4]>::try_from(response.get(from..from.checked_add(4)?)?).ok();
    Some(of_words(word(0)?, word(28)?))
}

impl<'a> LoginRequest<'a> {
    /// The answer to the greeting, without its header; `None` if it cannot be read.
    pub fn of_response(response: &'a [u8]) -> Option<Self> {
        let asked = asked(response)?;
        if asked & PROTOCOL_41 == 0 {
            // The server would read another user at another place, and answer in packets of another form.
            return None;
        }
        let (user, rest) = until_zero(response.get(32..)?)?;
        let before = response.get(..response.len().checked_sub(rest.len())?)?;
        let (proof, rest) = if asked & PLUGIN_AUTH_LENENC != 0 {
            let mut reader = Reader(rest);
            let proof = reader.text()?;
            (proof, reader.0)
        } else if asked & SECURE_CONNECTION != 0 {
            counted(rest)?
        } else {
            until_zero(rest)?
        };
        let (database, behind) = if asked & CONNECT_WITH_DB != 0 {
            let (name, behind) = until_zero(rest)?;
            (Some(name).filter(|name| !name.is_empty()), behind)
        } else {
            (None, rest)
        };
        let (plugin, after) = plugin(behind, asked);
        Some(Self {
            before,
            between: rest.get(..rest.len().checked_sub(behind.len())?)?,
            user,
            proof,
            plugin,
            after,
            database,
            collation: Some(u16::from(*response.get(8)?)),
        })
    }

    /// COM_CHANGE_USER, without its header, of a client with these capabilities; `None` if it cannot be read.
    pub fn of_change(command: &'a [u8], capabilities: u64) -> Option<Self> {
        let (user, rest) = until_zero(command.get(1..)?)?;
        let before = command.get(..command.len().checked_sub(rest.len())?)?;
        let (proof, rest) = counted(rest)?;
        let (database, behind) = until_zero(rest)?;
        let (collation, behind) = match *behind {
            [low, high, ref behind @ ..] => (Some(u16::from_le_bytes([low, high])), behind),
            _ => (None, behind),
        };
        let (plugin, after) = plugin(behind, capabilities);
        Some(Self {
            before,
            between: rest.get(..rest.len().checked_sub(behind.len())?)?,
            user,
            proof,
            plugin,
            after,
            database: Some(database).filter(|name| !name.is_empty()),
            collation,
        })
    }

    /// Whether what stands behind the plugin's name can be attributes of the client.
    pub fn has_attributes(&self) -> bool {
        Reader(self.after).text().is_some()
    }

    /// The same without a proof, so that the server asks for one.
    pub fn without_proof(&self) -> Vec<u8> {
        let parts = [self.before, &[0], self.between, NO_PLUGIN, &[0], self.after];
        parts.concat()
    }
}

/// What has its length before it, in one byte, and what follows it.
fn counted(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (len, rest) = bytes.split_first()?;
    rest.split_at_checked(usize::from(*len))
}

/// The plugin's name and what follows it. Some clients leave the last zero out.
fn plugin(behind: &[u8], asked: u64) -> (Option<&[u8]>, &[u8]) {
    if asked & PLUGIN_AUTH == 0 || behind.is_empty() {
        return (None, behind);
    }
    let (name, after) = until_zero(behind).unwrap_or((behind, &[]));
    (Some(name), after)
}

/// What stands before the first zero byte, and what stands behind it; `None` if there is none.
pub fn until_zero(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = bytes.iter().position(|byte| *byte == 0)?;
    Some((bytes.get(..end)?, bytes.get(end + 1..)?))
}

#[cfg(test)]
mod tests {
    use super::{LoginRequest, NO_PLUGIN};
    use crate::capability::{
        CONNECT_WITH_DB, PLUGIN_AUTH, PLUGIN_AUTH_LENENC, PROTOCOL_41, SECURE_CONNECTION, words,
    };

    fn response(capabilities: u64, rest: &[u8]) -> Vec<u8> {
        let mut bytes = words(PROTOCOL_41 | capabilities).0.to_vec();
        bytes.extend([0, 0, 0, 1, 45]);
        bytes.extend([0; 23]);
        bytes.extend(b"root\0");
        bytes.extend(rest);
        bytes
    }

    #[test]
    fn proofs_of_every_length_are_stepped_over() {
        let all = CONNECT_WITH_DB | PLUGIN_AUTH | SECURE_CONNECTION;
        let behind = b"shop\0dialog\0attributes".as_slice();
        let long = [b"\xFC\x2C\x01".as_slice(), &[7; 300], behind].concat();
        let short = [b"\x02pw".as_slice(), behind].concat();
        for (capabilities, rest) in [
            (all | PLUGIN_AUTH_LENENC, &long),
            (all | PLUGIN_AUTH_LENENC, &short),
            (all, &short),
            (all & !SECURE_CONNECTION, &[b"pw\0", behind].concat()),
        ] {
            let bytes = response(capabilities, rest);
            let found = LoginRequest::of_response(&bytes);
            let Some(found) = found else {
                panic!("{rest:?} is not read");
            };
            assert_eq!(found.user, b"root");
            let proof: &[u8] = if rest.len() < 300 { b"pw" } else { &[7; 300] };
            assert_eq!(found.proof, proof);
            assert!(!found.has_attributes(), "they have no length");
            assert_eq!(found.database, Some(b"shop".as_slice()));
            assert_eq!(found.plugin, Some(b"dialog".as_slice()));
            assert_eq!(found.collation, Some(45));
            let behind = [b"\0shop\0", NO_PLUGIN, b"\0attributes"].concat();
            assert_eq!(found.without_proof(), response(capabilities, &behind));
        }
        let cut = response(all | PLUGIN_AUTH_LENENC, b"\xFC\x2C\x01short");
        assert_eq!(LoginRequest::of_response(&cut), None);
        for len in 0..cut.len() {
            // Whatever is cut off, nothing panics.
            let _ = LoginRequest::of_response(&cut[..len]);
        }
    }

    #[test]
    fn a_client_of_an_older_protocol_is_not_read_as_one_of_this() {
        let mut bytes = response(SECURE_CONNECTION, b"\0");
        assert!(LoginRequest::of_response(&bytes).is_some());
        bytes[1] &= !2;
        assert_eq!(LoginRequest::of_response(&bytes), None);
    }

    #[test]
    fn the_database_of_a_changed_user_is_read_with_and_without_collation() {
        let packet = |rest: &[u8]| [b"\x11root\0\x02pw".as_slice(), rest].concat();
        let read = |rest: &[u8]| {
            let packet = packet(rest);
            let found = LoginRequest::of_change(&packet, PLUGIN_AUTH)?;
            let name = |name: &[u8]| String::from_utf8_lossy(name).into_owned();
            Some((
                found.database.map(name),
                found.collation,
                found.plugin.map(name),
            ))
        };
        let shop = Some("shop".to_owned());
        let dialog = Some("dialog".to_owned());
        assert_eq!(read(b"shop\0\x2d\0"), Some((shop.clone(), Some(45), None)));
        assert_eq!(read(b"shop\0"), Some((shop.clone(), None, None)));
        assert_eq!(read(b"\0\x2d\0"), Some((None, Some(45), None)));
        assert_eq!(
            read(b"shop\0\x2d\0dialog\0x"),
            Some((shop, Some(45), dialog))
        );
        assert_eq!(read(b"shop"), None);
    }
}
