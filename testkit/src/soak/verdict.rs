//! Which errors a client may meet while everything happens, and which are faults.

use anyhow::Error;

use crate::pg::client::from_server;

/// What a failed statement means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// The session is over: the server went away, or threw it out.
    ThrownOut,
    /// The server refused, as it may: this SQLSTATE.
    Refused(String),
    /// It should not have: SQLSTATE and message, or the error as a whole.
    Fault(String),
}

/// What a server may refuse with, and what for.
const LEGITIMATE: &[(&str, &str)] = &[
    ("3D000", "the database was dropped, or is not there yet"),
    ("3F000", "the extension was dropped"),
    ("40001", "a tag was changed meanwhile"),
    ("40P01", "deadlock of two changes"),
    ("42704", "the tag or the extension was dropped"),
    ("42883", "the extension was dropped"),
    ("42P01", "the extension was dropped"),
    ("53300", "too many connections while old ones still leave"),
    ("53400", "too far ahead of the clock"),
    (
        "55000",
        "no worker id yet, an identity that is not committed, a layout that overlaps, a database that takes no connections",
    ),
    ("55006", "a worker id or a database is in use"),
    ("55P03", "a lock, a refill or a standby took too long"),
    ("57014", "cancelled"),
    ("25006", "a standby that is not yet promoted"),
    ("0A000", "a transaction that cannot be prepared"),
];

/// Messages of the server itself under SQLSTATE XX000 when an object goes while a statement looks it up.
const OBJECT_GONE: &[&str] = &[
    "cache lookup failed",
    "could not open relation with OID",
    "tuple concurrently",
];

/// Judges an error.
pub fn judge(error: &Error) -> Verdict {
    let Some(said) = from_server(error) else {
        let of_connection = error
            .chain()
            .any(|cause| cause.is::<postgres::Error>() || cause.is::<std::io::Error>());
        return if of_connection {
            Verdict::ThrownOut
        } else {
            Verdict::Fault(format!("{error:#}"))
        };
    };
    let (state, message) = (said.code().code(), said.message());
    // Class 57P: the server is being shut down, has crashed, or is starting, or the database is gone.
    if state.starts_with("57P") {
        return Verdict::ThrownOut;
    }
    let listed = LEGITIMATE
        .iter()
        .any(|(legitimate, _)| *legitimate == state);
    let gone = state == "XX000" && OBJECT_GONE.iter().any(|part| message.contains(part));
    // The same SQLSTATE says that shared memory has no room, which must not be.
    let full = state == "53400" && !message.contains("ahead of the clock");
    if (listed || gone) && !full {
        Verdict::Refused(state.to_owned())
    } else {
        Verdict::Fault(format!("SQLSTATE {state}: {message}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_error_of_a_server_or_connection_is_a_fault() {
        let fault = judge(&anyhow::anyhow!("no id"));
        assert_eq!(fault, Verdict::Fault("no id".to_owned()));
        let broken = std::io::Error::from(std::io::ErrorKind::ConnectionReset);
        assert_eq!(judge(&broken.into()), Verdict::ThrownOut);
    }

    #[test]
    fn damage_is_not_on_the_list() {
        let states: Vec<_> = LEGITIMATE.iter().map(|(state, _)| *state).collect();
        for fault in ["XX001", "XX000", "2200H", "22003", "23505"] {
            assert!(!states.contains(&fault), "{fault}");
        }
    }
}
