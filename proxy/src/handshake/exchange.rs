//! What becomes of each packet between the login request and the server's verdict; no sockets. Where both legs protect what they
//! carry, or neither does, all of them pass. Where only one does, a password in clear must not reach the other, and the two
//! plugins that know both ways are translated.

use keywright_core::Cause;
use keywright_wire::handshake::greeting::CHALLENGE_BYTES;
use keywright_wire::handshake::response::{LoginRequest, until_zero};

use super::leg::Refusal;
use super::login::no_proof;
use super::proof::{self, CACHING_SHA2, ED25519, NATIVE, OLD, is};
use crate::log::on_one_line;

const SHA256: &[u8] = b"sha256_password";

/// Plugins whose packets give nothing away to an eavesdropper, on any leg.
const BLIND_TO_THE_CHANNEL: [&[u8]; 8] = [
    NATIVE,
    OLD,
    ED25519,
    b"parsec",
    b"auth_gssapi_client",
    b"authentication_kerberos_client",
    b"authentication_ldap_sasl_client",
    b"authentication_webauthn_client",
];

/// What of the way is protected: by TLS, or because it does not leave the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ways {
    /// Both legs, or neither.
    Alike,
    /// Only the client's leg.
    ToUs,
    /// Only the server's leg.
    FromUs,
}

/// What is done about a packet.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Turn {
    /// It is passed on as it is.
    Pass,
    /// This goes on in its place.
    Instead(Vec<u8>),
    /// The proxy's own public key goes back to the client.
    OfferOwnKey,
    /// The server gets what this says once it is decrypted with the proxy's own key.
    Decrypt(Vec<u8>),
    /// The server gets the password, encrypted for this key of its own.
    Encrypt {
        /// With its closing zero.
        password: Vec<u8>,
        /// In PEM.
        key: Vec<u8>,
    },
    /// The server has decided: let in, or not.
    Decided(bool),
    /// The proxy ends it.
    Refuse(Refusal),
}

/// What is known of the client's next packet.
#[derive(Debug, PartialEq, Eq)]
enum Awaits {
    /// It passes.
    Anything,
    /// The answer to a challenge, which passes if it may be a proof.
    Proof,
    /// The password, in the way that the client's leg asks for; or the question for a key, which is this byte.
    Password(u8),
    /// The password, encrypted for the proxy's own key.
    Encrypted,
    /// Nothing: the server was asked for its key, to encrypt this password for it.
    Nothing(Vec<u8>),
}

/// An authentication under way.
#[derive(Debug)]
pub(super) struct Exchange {
    ways: Ways,
    challenge: Vec<u8>,
    plugin: Vec<u8>,
    awaits: Awaits,
}

impl Exchange {
    /// Begins one, with the challenge that was sent last, and says what the server gets to hear of the login request if not all.
    pub(super) fn begin(
        ways: Ways,
        challenge: Vec<u8>,
        login_request: &LoginRequest<'_>,
    ) -> (Self, Option<Vec<u8>>) {
        let plugin = login_request.plugin.unwrap_or(NATIVE);
        // What comes with the login request may be a password already.
        let may_pass = ways == Ways::Alike || passes_unread(plugin) || is(plugin, CACHING_SHA2);
        let exchange = Self {
            ways,
            challenge,
            plugin: plugin.to_vec(),
            awaits: Awaits::Anything,
        };
        let instead = (!may_pass).then(|| login_request.without_proof());
        (exchange, instead)
    }

    /// One of nobody, who proves nothing.
    pub(super) fn of_nobody() -> Self {
        Self {
            ways: Ways::Alike,
            challenge: Vec::new(),
            plugin: NATIVE.to_vec(),
            awaits: Awaits::Anything,
        }
    }

    /// What the server takes for a wrong password now; `None`: it is to hear nothing.
    pub(super) fn wrong_proof(&self) -> Option<&'static [u8]> {
        proof::wrong(&self.plugin, self.awaits == Awaits::Proof)
    }

    /// The challenge that was sent last.
    pub(super) fn challenge(&self) -> &[u8] {
        &self.challenge
    }

    /// A packet of the server's.
    pub(super) fn on_upstream(&mut self, packet: &[u8]) -> Turn {
        match packet.split_first() {
            Some((0x00, _)) => Turn::Decided(true),
            Some((0xFF, _)) => Turn::Decided(false),
            Some((0xFE | 0x02, asked)) => self.switch(asked),
            Some((0x01, data)) => self.data(data),
            Some(_) | None => Turn::Pass,
        }
    }

    /// The server wants another plugin, or a further one.
    fn switch(&mut self, asked: &[u8]) -> Turn {
        let (plugin, challenge) = match until_zero(asked) {
            Some(both) => both,
            // Of servers before 4.1.
            None if asked.is_empty() => (OLD, asked),
            None => (asked, [].as_slice()),
        };
        if !challenge.is_empty() {
            let challenge = challenge.get(..CHALLENGE_BYTES).unwrap_or(challenge);
            self.challenge = challenge.to_vec();
        }
        self.plugin = plugin.to_vec();
        self.awaits = Awaits::Proof;
        if self.ways == Ways::Alike || passes_unread(plugin) || is(plugin, CACHING_SHA2) {
            return Turn::Pass;
        }
        if is(plugin, SHA256) {
            self.awaits = Awaits::Password(1);
            return Turn::Pass;
        }
        let name = on_one_line(&String::from_utf8_lossy(plugin));
        let which = if self.ways == Ways::ToUs {
            "keywright's connection to the server"
        } else {
            "the connection to keywright"
        };
        Turn::Refuse(Refusal::new(
            Cause::AuthUnsupported,
            format!(
                "keywright: plugin '{name}' may send the password in clear, and {which} has no TLS"
            ),
        ))
    }

    fn data(&mut self, data: &[u8]) -> Turn {
        if let Awaits::Nothing(password) = &mut self.awaits {
            let password = std::mem::take(password);
            self.awaits = Awaits::Anything;
            return Turn::Encrypt {
                password,
                key: data.to_vec(),
            };
        }
        // "Not in the cache: the password itself."
        if is(&self.plugin, CACHING_SHA2) && data == [4] {
            self.awaits = Awaits::Password(2);
        }
        Turn::Pass
    }

    /// A packet of the client's.
    pub(super) fn on_client(&mut self, packet: &[u8]) -> Turn {
        match &self.awaits {
            Awaits::Anything => Turn::Pass,
            // It goes on being awaited: the server has not got it.
            Awaits::Proof if !proof::may_be(&self.plugin, packet) => Turn::Refuse(no_proof()),
            Awaits::Proof => {
                self.awaits = Awaits::Anything;
                Turn::Pass
            }
            Awaits::Password(question) => {
                let question = *question;
                self.awaits = Awaits::Anything;
                self.password(packet, question)
            }
            Awaits::Encrypted => {
                self.awaits = Awaits::Anything;
                Turn::Decrypt(packet.to_vec())
            }
            Awaits::Nothing(_) => Turn::Refuse(Refusal::new(
                Cause::PacketMalformed,
                "keywright: a packet came where none was expected",
            )),
        }
    }

    fn password(&mut self, packet: &[u8], question: u8) -> Turn {
        let is_empty = matches!(packet, [] | [0]);
        let asks = packet == [question];
        match self.ways {
            // The server is asked for its key by the client itself.
            Ways::ToUs if asks => Turn::Pass,
            // Not even its closing zero: to servers that would be no packet of a login.
            Ways::Alike | Ways::ToUs | Ways::FromUs if packet.is_empty() => Turn::Instead(vec![0]),
            Ways::Alike | Ways::ToUs | Ways::FromUs if is_empty => Turn::Pass,
            Ways::Alike => Turn::Pass,
            Ways::FromUs if asks => {
                self.awaits = Awaits::Encrypted;
                Turn::OfferOwnKey
            }
            // Of a client that was given the proxy's key beforehand.
            Ways::FromUs => Turn::Decrypt(packet.to_vec()),
            Ways::ToUs if packet.ends_with(&[0]) => {
                self.awaits = Awaits::Nothing(packet.to_vec());
                Turn::Instead(vec![question])
            }
            Ways::ToUs => Turn::Refuse(Refusal::new(
                Cause::PacketMalformed,
                "keywright: the password has no end",
            )),
        }
    }
}

fn passes_unread(plugin: &[u8]) -> bool {
    BLIND_TO_THE_CHANNEL.iter().any(|name| is(plugin, name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn login_request(plugin: &str) -> Vec<u8> {
        let mut bytes = (1_u32 << 9 | 1 << 15 | 1 << 19).to_le_bytes().to_vec();
        bytes.extend([0; 28]);
        bytes.extend(b"u\0\x03pw\0");
        bytes.extend(plugin.as_bytes());
        bytes.push(0);
        bytes
    }

    fn begin(ways: Ways, plugin: &str) -> (Exchange, bool) {
        let bytes = login_request(plugin);
        let Some(read) = LoginRequest::of_response(&bytes) else {
            panic!("cannot be read");
        };
        let (exchange, instead) = Exchange::begin(ways, vec![1; 20], &read);
        if let Some(instead) = &instead {
            assert!(!instead.windows(2).any(|pair| pair == b"pw"));
        }
        (exchange, instead.is_some())
    }

    const FULL: &[u8] = &[1, 4];

    #[test]
    fn a_password_inside_tls_is_encrypted_for_the_server() {
        let (mut exchange, instead) = begin(Ways::ToUs, "caching_sha2_password");
        assert!(!instead);
        assert_eq!(exchange.on_upstream(FULL), Turn::Pass);
        assert_eq!(exchange.on_client(b"pw\0"), Turn::Instead(vec![2]));
        let early = exchange.on_client(b"pw\0");
        assert!(matches!(early, Turn::Refuse(_)), "{early:?}");
        let encrypt = Turn::Encrypt {
            password: b"pw\0".to_vec(),
            key: b"PEM".to_vec(),
        };
        assert_eq!(exchange.on_upstream(b"\x01PEM"), encrypt);
        assert_eq!(exchange.on_upstream(&[0, 0, 0, 2, 0]), Turn::Decided(true));
        // A client that encrypts inside TLS too is let do so.
        let (mut exchange, _) = begin(Ways::ToUs, "caching_sha2_password");
        exchange.on_upstream(FULL);
        assert_eq!(exchange.on_client(&[2]), Turn::Pass);
        assert_eq!(exchange.on_upstream(b"\x01PEM"), Turn::Pass);
        assert_eq!(exchange.on_client(b"encrypted"), Turn::Pass);
    }

    #[test]
    fn a_client_without_tls_encrypts_for_the_proxy() {
        for (plugin, question) in [("caching_sha2_password", 2), ("sha256_password", 1)] {
            let (mut exchange, instead) = begin(Ways::FromUs, plugin);
            assert_eq!(instead, plugin == "sha256_password");
            let switch = [b"\xFE", plugin.as_bytes(), b"\0", &[7; 20], b"\0"].concat();
            assert_eq!(exchange.on_upstream(&switch), Turn::Pass);
            assert_eq!(exchange.challenge(), [7; 20]);
            if question == 2 {
                assert_eq!(exchange.on_client(&[9; 32]), Turn::Pass);
                assert_eq!(exchange.on_upstream(FULL), Turn::Pass);
            }
            assert_eq!(exchange.on_client(&[question]), Turn::OfferOwnKey);
            let decrypt = Turn::Decrypt(b"encrypted".to_vec());
            assert_eq!(exchange.on_client(b"encrypted"), decrypt);
        }
    }

    #[test]
    fn what_is_in_the_cache_needs_no_password() {
        for ways in [Ways::ToUs, Ways::FromUs, Ways::Alike] {
            let (mut exchange, _) = begin(ways, "caching_sha2_password");
            assert_eq!(exchange.on_upstream(&[1, 3]), Turn::Pass);
            assert_eq!(exchange.on_client(b"anything"), Turn::Pass);
        }
    }

    #[test]
    fn what_no_proof_can_be_does_not_pass() {
        for (plugin, wrong) in [
            ("mysql_native_password", [].as_slice()),
            ("client_ed25519", [0_u8; 64].as_slice()),
            ("caching_sha2_password", [].as_slice()),
            ("mysql_old_password", [].as_slice()),
        ] {
            for ways in [Ways::Alike, Ways::ToUs, Ways::FromUs] {
                let (mut exchange, _) = begin(ways, "dialog");
                let switch = [b"\xFE", plugin.as_bytes(), b"\0", &[7; 20], b"\0"].concat();
                assert_eq!(exchange.on_upstream(&switch), Turn::Pass);
                let turn = exchange.on_client(b"longer");
                assert_eq!(turn, Turn::Refuse(no_proof()), "{plugin}");
                assert_eq!(exchange.wrong_proof(), Some(wrong), "{plugin}");
                assert_eq!(exchange.on_client(wrong), Turn::Pass, "{plugin}");
            }
        }
    }

    /// Without a byte it would be counted, by the client as by the proxy.
    #[test]
    fn a_password_in_full_is_never_empty() {
        for ways in [Ways::Alike, Ways::ToUs, Ways::FromUs] {
            let (mut exchange, _) = begin(ways, "caching_sha2_password");
            assert_eq!(exchange.on_upstream(FULL), Turn::Pass);
            assert_eq!(exchange.wrong_proof(), Some([0].as_slice()));
            assert_eq!(exchange.on_client(b""), Turn::Instead(vec![0]));
        }
    }

    #[test]
    fn passwords_in_clear_stay_where_both_legs_are_alike() {
        for plugin in ["mysql_clear_password", "dialog", "of_tomorrow"] {
            for ways in [Ways::ToUs, Ways::FromUs] {
                let (mut exchange, instead) = begin(ways, plugin);
                assert!(instead, "the login request may hold the password");
                let switch = [b"\xFE", plugin.as_bytes(), b"\0"].concat();
                let turn = exchange.on_upstream(&switch);
                let Turn::Refuse(refusal) = turn else {
                    panic!("{turn:?}");
                };
                assert_eq!(refusal.cause, Cause::AuthUnsupported);
                assert!(refusal.message.contains(plugin), "{}", refusal.message);
            }
            let (mut exchange, instead) = begin(Ways::Alike, plugin);
            assert!(!instead);
            let switch = [b"\xFE", plugin.as_bytes(), b"\0"].concat();
            assert_eq!(exchange.on_upstream(&switch), Turn::Pass);
            assert_eq!(exchange.on_client(b"pw\0"), Turn::Pass);
        }
    }
}
