//! Passwords, and the hashes that are kept of them.

use std::fmt;

use argon2::password_hash::phc::{Output, ParamsString, PasswordHash as Phc, Salt};
use argon2::password_hash::{self, try_generate_salt};
use argon2::{Algorithm, Argon2, Block, Params, Version};
use keywright_core::Cause;
use keywright_store::Failure;
use keywright_store::users::PasswordHash;

/// Shortest password, bytes.
const PASSWORD_BYTES_MIN: usize = 8;
/// Longest password, bytes.
pub(crate) const PASSWORD_BYTES_MAX: usize = 512;
/// The memory that a hash of this program takes, blocks of 1 KiB.
const BLOCKS: usize = Params::DEFAULT.block_count();

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
/// As [`HashMemory::hash`].
pub fn hash(password: &[u8]) -> Result<PasswordHash, Failure> {
    HashMemory::default().hash(password)
}

/// The 19 MiB that passwords are hashed in, taken at the first and kept for the next. Taken anew each time they would be left behind in heap after heap of
/// the allocator's, one for each thread that hashes, and the program would keep hundreds of megabytes for good.
#[derive(Default)]
pub struct HashMemory {
    blocks: Vec<Block>,
}

/// Without what is left of passwords in it.
impl fmt::Debug for HashMemory {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("HashMemory").finish_non_exhaustive()
    }
}

impl HashMemory {
    /// Hashes a new password. It takes some hundredths of a second.
    ///
    /// # Errors
    /// [`Cause::UserInvalid`]: it is too short or too long; the system has no random numbers or memory.
    pub fn hash(&mut self, password: &[u8]) -> Result<PasswordHash, Failure> {
        check_length(password)?;
        match self.hashed(password) {
            Ok(hashed) => Ok(PasswordHash::new(hashed.to_string())),
            Err(error) => Err(Failure::new(
                Cause::UserInvalid,
                format!("the password cannot be hashed: {error}"),
            )),
        }
    }

    fn hashed(&mut self, password: &[u8]) -> Result<Phc, password_hash::Error> {
        let argon2 = Argon2::default();
        let salt = try_generate_salt()?;
        let mut output = [0; Params::DEFAULT_OUTPUT_LEN];
        self.compute(&argon2, password, &salt, &mut output)?;
        Ok(Phc {
            algorithm: Algorithm::default().ident(),
            version: Some(Version::default().into()),
            params: ParamsString::try_from(argon2.params())?,
            salt: Some(Salt::new(&salt)?),
            hash: Some(Output::new(&output)?),
        })
    }

    /// Whether that is the password. It takes as long as [`HashMemory::hash`].
    pub(crate) fn is_right(&mut self, password: &[u8], hash: &PasswordHash) -> bool {
        match Phc::new(hash.as_str()) {
            Ok(phc) => self.matches(password, &phc).unwrap_or(false),
            // Not the program's: nobody gets in by it.
            Err(_) => false,
        }
    }

    /// `None`: it is no hash of a password, or there is no memory.
    fn matches(&mut self, password: &[u8], phc: &Phc) -> Option<bool> {
        let (salt, kept) = (phc.salt.as_ref()?, phc.hash.as_ref()?);
        let algorithm = Algorithm::new(phc.algorithm.as_str()).ok()?;
        let version = match phc.version {
            Some(number) => Version::try_from(number).ok()?,
            None => Version::default(),
        };
        let argon2 = Argon2::new(algorithm, version, Params::try_from(phc).ok()?);
        let mut buffer = [0; Output::MAX_LENGTH];
        let output = buffer.get_mut(..kept.len())?;
        self.compute(&argon2, password, salt, output).ok()?;
        // These compare in constant time.
        Some(Output::new(output).ok()? == *kept)
    }

    /// Computes a hash here, or elsewhere if it wants more than those of this program.
    fn compute(
        &mut self,
        argon2: &Argon2<'_>,
        password: &[u8],
        salt: &[u8],
        output: &mut [u8],
    ) -> argon2::Result<()> {
        if argon2.params().block_count() > BLOCKS {
            return argon2.hash_password_into(password, salt, output);
        }
        if self.blocks.is_empty() {
            let room = self.blocks.try_reserve_exact(BLOCKS);
            room.map_err(|_| argon2::Error::OutOfMemory)?;
            self.blocks.resize(BLOCKS, Block::new());
        }
        let blocks = self.blocks.as_mut_slice();
        argon2.hash_password_into_with_memory(password, salt, output, blocks)
    }
}

#[cfg(test)]
mod tests {
    use keywright_store::users::PasswordHash;

    use super::{BLOCKS, HashMemory, PASSWORD_BYTES_MAX, hash};

    /// Of `password`, as the reference implementation of argon2 makes it, in 64 MiB, and in 256 KiB with two lanes.
    const OF_OTHERS: [&str; 2] = [
        "$argon2id$v=19$m=65536,t=2,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc",
        "$argon2id$v=19$m=256,t=2,p=2$c29tZXNhbHQ$bQk8UB/VmZZF4Oo79iDXuL5/0ttZwg2f/5U52iv1cDc",
    ];

    #[test]
    fn a_password_is_kept_as_a_hash_of_argon2() {
        let mut memory = HashMemory::default();
        let kept = memory.hash(b"open sesame").unwrap();
        assert!(
            kept.as_str().starts_with("$argon2id$v=19$"),
            "{}",
            kept.as_str()
        );
        assert!(memory.is_right(b"open sesame", &kept));
        assert!(!memory.is_right(b"open sesame ", &kept));
        assert!(!memory.is_right(b"", &kept));
        // Of the same password another time: with salt of its own.
        assert_ne!(kept, memory.hash(b"open sesame").unwrap());
        for damaged in ["", "open sesame", "$argon2id$", "$argon2id$v=19$m=1"] {
            assert!(!memory.is_right(b"open sesame", &PasswordHash::new(damaged)));
        }
    }

    /// They left hundreds of megabytes behind.
    #[test]
    fn one_password_after_the_other_is_hashed_in_the_same_memory() {
        let mut memory = HashMemory::default();
        let kept = memory.hash(b"open sesame").unwrap();
        let first = memory.blocks.as_ptr();
        for other in OF_OTHERS {
            let other = PasswordHash::new(other);
            assert!(memory.is_right(b"password", &other), "{}", other.as_str());
            assert!(!memory.is_right(b"passwords", &other));
        }
        // What lies there of others changes nothing.
        assert!(memory.is_right(b"open sesame", &kept));
        assert!(HashMemory::default().is_right(b"open sesame", &kept));
        assert_eq!(memory.blocks.as_ptr(), first);
        assert_eq!(memory.blocks.len(), BLOCKS);
    }

    #[test]
    fn what_is_too_short_or_too_long_is_refused() {
        assert!(hash(b"1234567").is_err());
        assert!(hash(&vec![b'a'; PASSWORD_BYTES_MAX + 1]).is_err());
        assert!(hash(&[0xff; 8]).is_ok());
    }
}
