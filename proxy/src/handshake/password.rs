//! Passwords on their way from a leg of one kind to a leg of the other: inside TLS or a socket they go as they are, elsewhere
//! encrypted for a public key. Both `caching_sha2_password` and `sha256_password` do it so.

use std::fmt;
use std::io;

use getrandom::SysRng;
use rsa::pkcs1::DecodeRsaPrivateKey;
use rsa::pkcs8::{DecodePrivateKey, DecodePublicKey, EncodePublicKey, LineEnding};
use rsa::rand_core::UnwrapErr;
use rsa::{Oaep, RsaPrivateKey, RsaPublicKey};
use sha1::Sha1;
use tokio::sync::OnceCell;

/// As the servers' own.
const KEY_BITS: usize = 2048;

/// The key that a client encrypts its password for when only the proxy's way to the server is protected.
#[derive(Default)]
pub struct OwnKey(OnceCell<Pair>);

struct Pair {
    private: RsaPrivateKey,
    public_pem: String,
}

impl fmt::Debug for OwnKey {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("OwnKey").finish_non_exhaustive()
    }
}

impl OwnKey {
    /// A key that is made when it is first needed, and lives as long as the process.
    #[must_use]
    pub fn made_when_needed() -> OwnKey {
        OwnKey::default()
    }

    /// A private key in PEM, PKCS #8 or PKCS #1.
    pub(crate) fn from_file(file: &str) -> Result<OwnKey, String> {
        let output = |error: &dyn fmt::Display| format!("rsa_key {file}: {error}");
        let text = std::fs::read_to_string(file).map_err(|error| output(&error))?;
        let private = RsaPrivateKey::from_pkcs8_pem(&text)
            .or_else(|error| RsaPrivateKey::from_pkcs1_pem(&text).map_err(|_| error))
            .map_err(|error| output(&error))?;
        let pair = Pair::of(private).map_err(|error| output(&error))?;
        Ok(OwnKey(OnceCell::new_with(Some(pair))))
    }

    /// The public half in PEM, as servers send theirs.
    ///
    /// # Errors
    /// No key can be made.
    pub(crate) async fn public_pem(&self) -> io::Result<&str> {
        let pair = self.0.get_or_try_init(|| async {
            // It takes a good part of a second, which other connections of the thread shall not wait for.
            tokio::task::spawn_blocking(Pair::make).await?
        });
        Ok(&pair.await?.public_pem)
    }

    /// The password with its closing zero, as the client encrypted it. `None`: it was not encrypted for this key.
    pub(crate) fn decrypt(&self, encrypted: &[u8], challenge: &[u8]) -> Option<Vec<u8>> {
        let pair = self.0.get()?;
        let mixed = pair
            .private
            .decrypt_blinded(&mut UnwrapErr(SysRng), Oaep::<Sha1>::new(), encrypted)
            .ok()?;
        let password = mix(&mixed, challenge);
        password.ends_with(&[0]).then_some(password)
    }
}

impl Pair {
    fn make() -> io::Result<Pair> {
        RsaPrivateKey::new(&mut UnwrapErr(SysRng), KEY_BITS)
            .map_err(io::Error::other)
            .and_then(|private| Pair::of(private).map_err(io::Error::other))
    }

    fn of(private: RsaPrivateKey) -> rsa::pkcs8::spki::Result<Pair> {
        let public_pem = private.to_public_key().to_public_key_pem(LineEnding::LF)?;
        Ok(Pair {
            private,
            public_pem,
        })
    }
}

/// Encrypts a password with its closing zero for a server's key. `None`: the key cannot be read, or is too short for it.
pub(crate) fn encrypt(password: &[u8], challenge: &[u8], public_pem: &[u8]) -> Option<Vec<u8>> {
    let pem = std::str::from_utf8(public_pem).ok()?;
    let key = RsaPublicKey::from_public_key_pem(pem.trim_end_matches('\0')).ok()?;
    let mixed = mix(password, challenge);
    key.encrypt(&mut UnwrapErr(SysRng), Oaep::<Sha1>::new(), &mixed)
        .ok()
}

/// A password is mixed with the server's challenge before it is encrypted, so that it cannot be sent again later.
fn mix(password: &[u8], challenge: &[u8]) -> Vec<u8> {
    password
        .iter()
        .zip(challenge.iter().cycle())
        .map(|(one, other)| one ^ other)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::{OwnKey, encrypt};

    #[tokio::test]
    async fn a_password_comes_out_as_it_went_in() -> std::io::Result<()> {
        let key = OwnKey::made_when_needed();
        assert_eq!(key.decrypt(b"before there is a key", b"challenge"), None);
        let pem = key.public_pem().await?.to_owned();
        for password in [b"\0".as_slice(), b"secret\0", &[0x78; 213]] {
            let sent =
                encrypt(password, b"01234567890123456789", pem.as_bytes()).unwrap_or_default();
            let got = key.decrypt(&sent, b"01234567890123456789");
            let whole = password.ends_with(&[0]).then(|| password.to_vec());
            assert_eq!(got, whole);
            assert_ne!(
                key.decrypt(&sent, b"another challenge"),
                Some(password.to_vec())
            );
        }
        assert_eq!(encrypt(&[0; 215], b"c", pem.as_bytes()), None);
        assert_eq!(encrypt(b"x\0", b"c", b"no key"), None);
        assert_eq!(key.decrypt(b"short", b"c"), None);
        Ok(())
    }
}
