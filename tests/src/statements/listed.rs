//! Differences that are known and documented.

use super::grammar::Case;
use super::sides::{Difference, Seen};
use crate::Flavour;

/// Values that move the counter of the server's own keys, and may use it up.
const BEYOND_ALL_KEYS: [&str; 3] = ["1e30", "99999999999", "9223372036854775808"];

/// MySQL warns of text right behind a version, and the key in its place is not behind one.
const VERSION_BEFORE_TEXT: &str = "/*!50000NULL*/";

/// How a difference is recognised.
struct Listed {
    name: &'static str,
    is_it: fn(Flavour, &Case, &Difference) -> bool,
}

const LISTED: [Listed; 6] = [
    Listed {
        // The server quotes what it was sent.
        name: "text of a syntax error",
        is_it: |_, _, both| {
            const SYNTAX_ERROR: u16 = 1064;
            [both.native.errno, both.proxied.errno] == [Some(SYNTAX_ERROR); 2] && same_rows(both)
        },
    },
    Listed {
        name: "key of the application's beyond those of the tag",
        is_it: |_, case, _| {
            BEYOND_ALL_KEYS
                .iter()
                .any(|number| case.text.contains(number))
        },
    },
    Listed {
        name: "warning 4164 of a version comment",
        is_it: |flavour, case, both| {
            flavour == Flavour::MySql
                && case.text.contains(VERSION_BEFORE_TEXT)
                && both.native.errno == both.proxied.errno
                && same_rows(both)
        },
    },
    Listed {
        name: "status bit of a query without index",
        is_it: |_, _, both| {
            let without = |seen: &Seen| seen.reply.replace(" status 0x22 ", " status 0x2 ");
            without(&both.native) == without(&both.proxied)
                && both.native.afterwards == both.proxied.afterwards
                && same_rows(both)
        },
    },
    Listed {
        name: "error 1869",
        is_it: |flavour, _, both| {
            const CONFLICTS_IN_UPDATE: u16 = 1869;
            flavour == Flavour::MySql && both.native.errno == Some(CONFLICTS_IN_UPDATE)
        },
    },
    Listed {
        name: "LAST_INSERT_ID() of a statement that fails behind its first row",
        is_it: |_, _, both| {
            both.native.errno.is_some()
                && both.native.reply == both.proxied.reply
                && same_rows(both)
        },
    },
];

fn same_rows(both: &Difference) -> bool {
    both.native.table == both.proxied.table
}

/// The name of the difference, if it is one of those.
pub(super) fn name(flavour: Flavour, case: &Case, difference: &Difference) -> Option<&'static str> {
    let mut listed = LISTED.iter();
    let found = listed.find(|listed| (listed.is_it)(flavour, case, difference));
    found.map(|listed| listed.name)
}
