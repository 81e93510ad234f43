//! What a login follows, and what is known of it afterwards.

use std::sync::Arc;
use std::time::Duration;

use keywright_core::Cause;
use keywright_session::{Limits, SessionFacts};

use super::leg::Refusal;
use crate::config::listener::Protection;
use crate::connection::span::ConnectionSpan;
use crate::handshake::password::OwnKey;

/// What a login follows.
pub struct LoginSettings<'a> {
    /// TLS on both legs.
    pub protection: &'a Protection,
    /// The proxy's own key, if the listener has none.
    pub own_key: &'a Arc<OwnKey>,
    /// Whether the listener has rules.
    pub has_rules: bool,
    /// Sizes that the session keeps to.
    pub limits: Limits,
    /// How long the client may take for each of its packets: less than the server waits for it.
    pub patience: Duration,
    /// What log lines about it carry.
    pub span: &'a ConnectionSpan,
}

/// What a connection needs to know of its login, and another login on it.
#[derive(Debug, Clone)]
pub struct Login {
    /// What the session starts with.
    pub facts: SessionFacts,
    /// Whether the session must not miss another login: this one depended on what protects the legs, or on the account.
    pub must_see_change_user: bool,
    /// The connection's number on the server, as in its process list; 0: it is not known.
    pub connection: u32,
    pub(super) challenge: Vec<u8>,
    pub(super) own_key: Arc<OwnKey>,
}

impl From<SessionFacts> for Login {
    /// A login that nothing is known of but its outcome.
    fn from(facts: SessionFacts) -> Self {
        Self {
            facts,
            must_see_change_user: false,
            connection: 0,
            challenge: Vec::new(),
            own_key: Arc::default(),
        }
    }
}

pub(super) fn too_slow() -> Refusal {
    Refusal::new(
        Cause::LoginTimeout,
        "keywright: the client took longer than answer_ms_max for a packet of its login",
    )
}

pub(super) fn cannot_be_read() -> Refusal {
    Refusal::new(
        Cause::PacketMalformed,
        "keywright: the client's greeting cannot be read",
    )
}

pub(super) fn no_proof() -> Refusal {
    Refusal::new(
        Cause::PacketMalformed,
        "keywright: the client's proof of its password has a length that none of its plugin has",
    )
}
