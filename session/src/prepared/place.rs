//! Where keys go among the parameters of an execution.

use std::borrow::Cow;
use std::collections::BTreeSet;

use keywright_rewrite::Prepared;
use keywright_wire::params::{Execution, Param};

use crate::prepared::param_keys::KeyValues;
use crate::prepared::statements::Statement;

/// The upstream's parameters: the client's, with keys in place of those that ask and where some were put in.
pub(crate) fn place<'a>(
    statement: &Statement,
    prepared: &Prepared,
    execution: &Execution<'a>,
    asking: &[u32],
    values: &'a KeyValues,
) -> Option<Vec<Param<'a>>> {
    // Most have one row, whose key was put in.
    if let ([only], []) = (prepared.injected.as_slice(), asking) {
        let own = execution.params.as_slice();
        let (before, behind) = own.split_at_checked(usize::from(only.at))?;
        return Some([before, &[values.param(0)?], behind].concat());
    }
    let mut rows: Vec<u32> = prepared.injected.iter().map(|one| one.row).collect();
    rows.extend_from_slice(asking);
    rows.sort_unstable();
    // The first key may be a parameter twice.
    rows.dedup();
    let key_of = |row: u32| values.param(rows.binary_search(&row).ok()?);
    let mut own = Cow::Borrowed(execution.params.as_slice());
    let asking: BTreeSet<u32> = asking.iter().copied().collect();
    for key in statement.plan.key_parameters() {
        if asking.contains(&key.row) {
            let own = own.to_mut().get_mut(usize::from(key.parameter))?;
            let name = own.name;
            *own = Param {
                name,
                ..key_of(key.row)?
            };
        }
    }
    let mut params = Vec::with_capacity(own.len() + prepared.injected.len());
    let mut own = own.iter().copied();
    // In ascending order, each where it stands at the end.
    for injected in &prepared.injected {
        let before = usize::from(injected.at).checked_sub(params.len())?;
        params.extend(own.by_ref().take(before));
        if params.len() != usize::from(injected.at) {
            return None;
        }
        params.push(key_of(injected.row)?);
    }
    params.extend(own);
    Some(params)
}
