//! Passwords that were looked at, as they are remembered: right ones until their users have others, wrong ones for some seconds.
//!
//! What is remembered is no password: HMAC-SHA256 under a key that the process made at random, of the user, the hash that the store keeps, and the
//! password. So it is of no use to whoever reads the store, and a user who has another password, or was made anew, is looked at again.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hmac::{Hmac, KeyInit, Mac};
use keywright_core::Cause;
use keywright_store::Failure;
use keywright_store::users::{User, UserTable};
use sha2::Sha256;
use tokio::sync::watch;
use tokio::time::Instant;

/// How long a wrong password is remembered, milliseconds: a program that goes on with one costs nothing.
const WRONG_MS: u64 = 10_000;
/// So many at most.
const WRONG_MAX: usize = 1_000;

/// What somebody said, and whose it may be.
pub(super) struct Tried {
    pub(super) name: Vec<u8>,
    pub(super) user: Option<Arc<User>>,
    pub(super) password: Vec<u8>,
}

/// Passwords that were right, and those that were wrong a moment ago.
pub(super) struct Remembered {
    /// Nothing where the system has no random numbers: then nothing is remembered.
    mac: Option<Hmac<Sha256>>,
    /// By user.
    right: Mutex<HashMap<String, [u8; 32]>>,
    /// Until when.
    wrong: Mutex<HashMap<[u8; 32], Instant>>,
    /// Tells those who wait that a password was right: it may be theirs.
    learned: watch::Sender<()>,
}

/// What is said of a wrong password, whether or not there is such a user.
pub(super) fn wrong() -> Failure {
    Failure::new(
        Cause::PasswordWrong,
        "invalid username-password pair or user is disabled.",
    )
}

impl Remembered {
    /// Of nobody's yet.
    pub(super) fn new() -> Self {
        let mut key = [0; 32];
        let random = getrandom::fill(&mut key).ok();
        Self {
            mac: random.and_then(|()| Hmac::new_from_slice(&key).ok()),
            right: Mutex::default(),
            wrong: Mutex::default(),
            learned: watch::Sender::new(()),
        }
    }

    /// Tells from now on that a password was right.
    pub(super) fn learned(&self) -> watch::Receiver<()> {
        self.learned.subscribe()
    }

    /// What is known of it without looking.
    pub(super) fn known(&self, tried: &Tried) -> Option<Result<Arc<User>, Failure>> {
        let mac = self.mac_of(tried)?;
        if let Some(user) = &tried.user {
            let right = locked(&self.right).get(user.name.as_str()).copied();
            // Compared in constant time.
            if right.is_some_and(|right| mac.clone().verify_slice(&right).is_ok()) {
                return Some(Ok(Arc::clone(user)));
            }
        }
        let mac: [u8; 32] = mac.finalize().into_bytes().into();
        let until = locked(&self.wrong).get(&mac).copied();
        (until? > Instant::now()).then(|| Err(wrong()))
    }

    /// That was this user's password.
    pub(super) fn note_right(&self, tried: &Tried, user: &User) {
        if let Some(mac) = self.mac_of(tried) {
            let name = user.name.as_str().to_owned();
            locked(&self.right).insert(name, mac.finalize().into_bytes().into());
            self.learned.send_replace(());
        }
    }

    /// That was nobody's password.
    pub(super) fn note_wrong(&self, tried: &Tried) {
        let Some(mac) = self.mac_of(tried) else {
            return;
        };
        let now = Instant::now();
        let mut wrong = locked(&self.wrong);
        if wrong.len() >= WRONG_MAX {
            wrong.retain(|_, until| *until > now);
        }
        if wrong.len() < WRONG_MAX {
            let until = now + Duration::from_millis(WRONG_MS);
            wrong.insert(mac.finalize().into_bytes().into(), until);
        }
    }

    /// No two of name, hash and password have the same: each has its length before it. Without a user there is no hash.
    fn mac_of(&self, tried: &Tried) -> Option<Hmac<Sha256>> {
        let mut mac = self.mac.clone()?;
        let hash = tried
            .user
            .as_ref()
            .map_or("", |user| user.password.as_str());
        for part in [&tried.name, hash.as_bytes(), &tried.password] {
            mac.update(&part.len().to_le_bytes());
            mac.update(part);
        }
        Some(mac)
    }

    /// Of users that are no more nothing is remembered, once those are more than there are.
    pub(super) fn forget_others(&self, users: &UserTable) {
        let mut right = locked(&self.right);
        if right.len() > users.len() {
            right.retain(|name, _| users.get(name).is_some());
        }
    }

    /// Of how many users a right password is remembered.
    #[cfg(test)]
    pub(super) fn users(&self) -> usize {
        locked(&self.right).len()
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
