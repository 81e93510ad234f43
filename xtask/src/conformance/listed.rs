//! Tests that end otherwise through the proxy for a reason that is known.

use keywright_testkit::Flavour;

use super::outcome::{Difference, End};
use super::suite::Suite;

/// A test of a suite on a server, how it may end direct and through the proxy, and why.
struct Listed {
    suite: Suite,
    flavour: Flavour,
    test: &'static str,
    ends: (End, End),
    reason: &'static str,
}

const LISTED: [Listed; 1] = [Listed {
    suite: Suite::Peewee,
    flavour: Flavour::MySql,
    test: "tests/schema.py::TestNamedConstraintsIntegration::test_named_constraints_integration",
    ends: (End::Failed, End::Passed),
    reason: "it expects that a row is refused which refers to the key 0 of its own table: \
            MySQL takes it, as the row's own key is still 0 then, and refuses it where it has a key",
}];

/// Why a difference is no error, if it is one of those.
pub(super) fn reason(
    suite: Suite,
    flavour: Flavour,
    difference: &Difference,
) -> Option<&'static str> {
    let is_it = |listed: &&Listed| {
        listed.suite == suite
            && listed.flavour == flavour
            && listed.test == difference.name
            && difference.ours.zip(difference.theirs) == Some(listed.ends)
    };
    LISTED.iter().find(is_it).map(|listed| listed.reason)
}
