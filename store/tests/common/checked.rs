//! Looks at all that a model can come to.
#![allow(dead_code, reason = "a model uses what it needs")]

use std::fmt::Debug;
use std::hash::Hash;
use std::time::Instant;

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

/// Finds out whether the property that is to hold always does not (`fails`) where this is left out.
pub fn try_without<M>(
    model: M,
    (always, sometimes): (&'static str, &'static str),
    flaws: &dyn Debug,
    fails: bool,
) where
    M: Model + Send + Sync + 'static,
    M::State: Hash + Send + Sync + Clone + PartialEq + 'static,
    M::Action: Clone + Debug + PartialEq,
{
    let begun = Instant::now();
    let (states, _, path) = look(model, always, sometimes);
    let steps = path.as_ref().map(Vec::len);
    println!(
        "{flaws:?}: {steps:?} steps, {states} states, {:?}",
        begun.elapsed()
    );
    assert_eq!(path.is_some(), fails, "{flaws:?}: {path:#?}");
}
