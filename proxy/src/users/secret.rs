//! Passwords, and the hashes that are kept of them.

use argon2::Argon2;
use argon2::password_hash::phc::PasswordHash as Phc;
use argon2::password_hash::{PasswordHasher, PasswordVerifier};
use keywright_core::Cause;
use keywright_store::Failure;
use keywright_store::users::PasswordHash;

/// Shortest password, bytes.
const PASSWORD_BYTES_MIN: usize = 8;
/// Longest password, bytes.
pub(crate) const PASSWORD_BYTES_MAX: usize = 512;

/// Whether it may be a password.
///
/// # Errors
/// [`Cause::UserInvalid`]: it is too short or too long.
pub(crate) fn check_length(password: &[u8]) -> Result<(), Failure> {
    match (PASSWORD_BYTES_MIN..=PASSWORD_BYTES_MAX).contains(&password.len()) {
        true => Ok(()),
        false => Err(Failure::new(
            Cause::UserInvalid,
            format!("a password has {PASSWORD_BYTES_MIN} to {PASSWORD_BYTES_MAX} bytes"),
        )),
    }
}

/// Hashes a new password. It takes some hundredths of a second, and 19 MiB.
///
/// # Errors
/// [`Cause::UserInvalid`]: it is too short or too long; the system has no random numbers or memory.
pub fn hash(password: &[u8]) -> Result<PasswordHash, Failure> {
    check_length(password)?;
    let hashed: Result<Phc, _> = Argon2::default().hash_password(password);
    match hashed {
        Ok(hashed) => Ok(PasswordHash::new(hashed.to_string())),
        Err(error) => Err(Failure::new(
            Cause::UserInvalid,
            format!("the password cannot be hashed: {error}"),
        )),
    }
}

/// Whether that is the password. It takes as long as [`hash`].
pub(crate) fn is_right(password: &[u8], hash: &PasswordHash) -> bool {
    match Phc::new(hash.as_str()) {
        Ok(phc) => Argon2::default().verify_password(password, &phc).is_ok(),
        // Not the program's: nobody gets in by it.
        Err(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use keywright_store::users::PasswordHash;

    use super::{PASSWORD_BYTES_MAX, hash, is_right};

    #[test]
    fn a_password_is_kept_as_a_hash_of_argon2() {
        let kept = hash(b"open sesame").unwrap();
        assert!(
            kept.as_str().starts_with("$argon2id$v=19$"),
            "{}",
            kept.as_str()
        );
        assert!(is_right(b"open sesame", &kept));
        assert!(!is_right(b"open sesame ", &kept));
        assert!(!is_right(b"", &kept));
        // Of the same password another time: with salt of its own.
        assert_ne!(kept, hash(b"open sesame").unwrap());
        for damaged in ["", "open sesame", "$argon2id$", "$argon2id$v=19$m=1"] {
            assert!(!is_right(b"open sesame", &PasswordHash::new(damaged)));
        }
    }

    #[test]
    fn what_is_too_short_or_too_long_is_refused() {
        assert!(hash(b"1234567").is_err());
        assert!(hash(&vec![b'a'; PASSWORD_BYTES_MAX + 1]).is_err());
        assert!(hash(&[0xff; 8]).is_ok());
    }
}
