//! Why an execution with many rows of parameters is not carried out.

use keywright_rewrite::{BulkConstruct, Unsupported};
use keywright_wire::values::BadValue;

/// Why it gets no keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    Malformed,
    Unsupported(Unsupported),
}

impl From<BadValue> for Fault {
    fn from(strange: BadValue) -> Self {
        match strange {
            BadValue::Malformed => Self::Malformed,
            BadValue::Type => Self::Unsupported(Unsupported::Bulk(BulkConstruct::UnknownType)),
        }
    }
}

impl From<Unsupported> for Fault {
    fn from(what: Unsupported) -> Self {
        Self::Unsupported(what)
    }
}
