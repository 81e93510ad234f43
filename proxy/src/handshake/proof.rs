//! Proofs of passwords. One that has not the length of its plugin's is to a server no wrong password but a broken handshake, which it
//! counts (`pending`). So the proxy refuses those, and ends logins that nobody goes on with by what the plugin takes for a wrong password.

pub(super) const CACHING_SHA2: &[u8] = b"caching_sha2_password";
pub(super) const NATIVE: &[u8] = b"mysql_native_password";
pub(super) const OLD: &[u8] = b"mysql_old_password";
pub(super) const ED25519: &[u8] = b"client_ed25519";
const PARSEC: &[u8] = b"parsec";

/// A signature that nobody made.
const NO_SIGNATURE: &[u8] = &[0; 64];
/// An empty password in full: its closing zero.
const NO_PASSWORD: &[u8] = &[0];
const NOTHING: &[u8] = &[];

/// Whether plugins have the same name.
pub(super) fn is(plugin: &[u8], name: &[u8]) -> bool {
    plugin.eq_ignore_ascii_case(name)
}

/// Whether this may be a proof, right or wrong, that answers the plugin's challenge. Where proofs have no fixed length, everything may.
pub(super) fn may_be(plugin: &[u8], proof: &[u8]) -> bool {
    if is(plugin, NATIVE) {
        matches!(proof.len(), 0 | 20)
    } else if is(plugin, CACHING_SHA2) {
        matches!(proof, [] | [0]) || proof.len() == 32
    } else if is(plugin, ED25519) {
        proof.len() == NO_SIGNATURE.len()
    } else if is(plugin, OLD) {
        // In nine bytes servers look for the zero behind it.
        let text = proof.iter().take_while(|byte| **byte != 0);
        match proof.len() {
            9 => matches!(text.count(), 0 | 8),
            len => matches!(len, 0 | 8),
        }
    } else {
        true
    }
}

/// What a server takes for a wrong password, in answer to the plugin's challenge or to what it has said behind it. `None`: it is to hear
/// nothing, since it counts wrong passwords of that plugin, and does not count that somebody leaves.
pub(super) fn wrong(plugin: &[u8], is_challenged: bool) -> Option<&'static [u8]> {
    if is(plugin, PARSEC) {
        None
    } else if is(plugin, ED25519) {
        Some(NO_SIGNATURE)
    } else if is(plugin, CACHING_SHA2) && !is_challenged {
        // Nothing at all would be no password.
        Some(NO_PASSWORD)
    } else {
        Some(NOTHING)
    }
}

#[cfg(test)]
mod tests {
    use super::{CACHING_SHA2, ED25519, NATIVE, OLD, PARSEC, may_be, wrong};

    #[test]
    fn proofs_have_the_length_of_their_plugins() {
        let lengths = |plugin: &[u8]| -> Vec<usize> {
            let all = 0..300;
            all.filter(|len| may_be(plugin, &vec![1; *len])).collect()
        };
        assert_eq!(lengths(NATIVE), [0, 20]);
        assert_eq!(lengths(b"MYSQL_native_password"), [0, 20]);
        assert_eq!(lengths(CACHING_SHA2), [0, 32]);
        assert_eq!(lengths(ED25519), [64]);
        assert_eq!(lengths(OLD), [0, 8]);
        for plugin in [PARSEC, b"dialog", b"sha256_password", b""] {
            assert_eq!(lengths(plugin).len(), 300);
        }
        assert!(may_be(CACHING_SHA2, &[0]));
        assert!(may_be(OLD, b"12345678\0"));
        assert!(may_be(OLD, &[0; 9]));
        assert!(!may_be(OLD, b"1234\x00678\0"));
    }

    #[test]
    fn what_is_wrong_has_the_length_of_a_proof() {
        for plugin in [NATIVE, CACHING_SHA2, ED25519, OLD, b"dialog"] {
            let wrong = wrong(plugin, true);
            assert!(wrong.is_some_and(|wrong| may_be(plugin, wrong)));
        }
        assert_eq!(wrong(CACHING_SHA2, false), Some([0].as_slice()));
        assert_eq!(wrong(PARSEC, true), None);
    }
}
