//! How a failure reaches the client: one of core's causes, a message, the numbers, and what to type.

use keywright_core::cause::Cause;
use pgrx::pg_sys::panic::ErrorReport;
use pgrx::{PgLogLevel, PgSqlErrorCode};

/// A failure on its way to the client. One pointer, so that results on the hot path stay small.
#[derive(Debug)]
pub struct Failure(Box<Parts>);

#[derive(Debug)]
struct Parts {
    cause: Cause,
    message: String,
    detail: Option<String>,
    hint: Option<String>,
}

impl Failure {
    /// A failure of `cause`; `message` in lower case with its subject quoted.
    pub fn new(cause: Cause, message: impl Into<String>) -> Self {
        Self(Box::new(Parts {
            cause,
            message: message.into(),
            detail: None,
            hint: None,
        }))
    }

    /// The numbers behind the message.
    pub fn detail(mut self, detail: impl Into<String>) -> Self {
        self.0.detail = Some(detail.into());
        self
    }

    /// What the reader can type to mend it.
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.0.hint = Some(hint.into());
        self
    }

    /// What kind of failure this is.
    pub fn cause(&self) -> Cause {
        self.0.cause
    }

    /// The message alone.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// The hint alone.
    pub fn advice(&self) -> &str {
        self.0.hint.as_deref().unwrap_or_default()
    }

    /// Raises the failure as an error of the calling statement.
    pub fn raise(self) -> ! {
        self.report(PgLogLevel::ERROR);
        unreachable!("an error report does not return")
    }

    /// Reports at `level` without ending the statement, unless the level itself does.
    pub fn report(self, level: PgLogLevel) {
        let Parts {
            cause,
            message,
            detail,
            hint,
        } = *self.0;
        let mut report = ErrorReport::new(sqlstate(cause), message, cause.name());
        if let Some(detail) = detail {
            report = report.set_detail(detail);
        }
        if let Some(hint) = hint {
            report = report.set_hint(hint);
        }
        report.report(level);
    }
}

/// Keeps Rust's backtraces out of what clients see.
///
/// With RUST_BACKTRACE in the server's environment pgrx's panic hook adds one to the DETAIL of every error that the server
/// raises below this library, such as a cancelled statement. Such errors travel as panics but are none; a real panic is
/// told to the server's log, as Rust does by itself.
pub fn keep_backtraces_in_the_log() {
    drop(std::panic::take_hook());
    let log = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if panic.payload_as_str().is_some() {
            log(panic);
        }
    }));
}

/// Unwraps a result or raises its failure.
pub trait OrRaise<T> {
    /// The value, or the failure as an error of the calling statement.
    fn or_raise(self) -> T;
}

impl<T> OrRaise<T> for Result<T, Failure> {
    #[inline]
    fn or_raise(self) -> T {
        match self {
            Ok(value) => value,
            Err(failure) => failure.raise(),
        }
    }
}

/// The server keeps an SQLSTATE as five characters of six bits each, the first lowest.
fn sqlstate(cause: Cause) -> PgSqlErrorCode {
    let packed = cause.sqlstate().bytes().rev().fold(0i32, |code, byte| {
        (code << 6) + ((i32::from(byte) - i32::from(b'0')) & 0x3F)
    });
    PgSqlErrorCode::from(packed)
}
