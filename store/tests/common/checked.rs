//! Looks at all that a model can come to.
#![allow(dead_code, reason = "a model uses what it needs")]

use std::hash::Hash;

use stateright::{Checker, HasDiscoveries, Model};

/// As many as there are cores.
pub fn threads() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Whether there is to be more of everything.
pub fn is_large() -> bool {
    std::env::var("KEYWRIGHT_MODEL").is_ok_and(|size| size == "large")
}

/// Looks at all states, until one property, which is to hold always, does not: how many states there are, whether the other, which is to
/// hold sometimes, did, and how the first comes not to hold in as few steps as possible.
pub fn look<M>(
    model: M,
    always: &'static str,
    sometimes: &'static str,
) -> (usize, bool, Option<Vec<M::Action>>)
where
    M: Model + Send + Sync + 'static,
    M::State: Hash + Send + Sync + Clone + PartialEq + 'static,
    M::Action: Clone + PartialEq,
{
    let wanted = HasDiscoveries::AnyOf([always].into());
    let checker = model.checker().threads(threads());
    let checker = checker.finish_when(wanted).spawn_bfs().join();
    let mut found = checker.discoveries();
    let path = found.remove(always).map(|path| path.into_actions());
    (
        checker.unique_state_count(),
        found.contains_key(sometimes),
        path,
    )
}
