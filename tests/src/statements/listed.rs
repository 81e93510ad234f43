//! Differences that are known and documented.

use super::grammar::Case;
use super::sides::Difference;
use crate::Flavour;

const SYNTAX_ERROR: u16 = 1064;

/// The name of the difference, if it is one of those.
pub(super) fn name(
    _flavour: Flavour,
    _prelude: &[String],
    _case: &Case,
    difference: &Difference,
) -> Option<&'static str> {
    let Difference { native, proxied } = difference;
    let errnos = [native.errno, proxied.errno];
    let same_table = native.table == proxied.table;
    // The server quotes what it was sent.
    (errnos == [Some(SYNTAX_ERROR); 2] && same_table).then_some("text of a syntax error")
}
