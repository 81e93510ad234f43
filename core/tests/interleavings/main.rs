//! The words, the buffer and the gate, through the interleavings of those who take, publish, drain, hand back and pass on, with what the
//! memory model of C11 lets each of them see: x86 hides what other processors show.
//!
//! The sources are those of the library, compiled here with other atomic numbers (`sync`): loom's, which runs them in every order. So neither a
//! flag of the compiler nor a feature of the library is needed, and what is built for use is what it was. Each order that the sources
//! ask for is relaxed once: either that is found, or `NOT_FOUND` says why not.
//!
//! `KEYWRIGHT_PREEMPTIONS` says how often threads may be interrupted; `cargo xtask soak interleavings` runs all there are.

#![allow(
    dead_code,
    unreachable_pub,
    reason = "of the library's sources only what is tested is used"
)]

#[path = "../../src/buffer.rs"]
mod buffer;
#[path = "../../src/gate.rs"]
mod gate;
#[path = "../../src/generation.rs"]
mod generation;
#[path = "../../src/residue.rs"]
mod residue;
mod scenes;
#[path = "../../src/segment.rs"]
mod segment;
#[path = "../../src/snowflake.rs"]
mod snowflake;
mod sync;

use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Instant;

use scenes::{SCENES, Scene};
use sync::Site;

/// Why nothing goes wrong where an order is relaxed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Why {
    /// The scenes cannot show it: loom has each thread do things in the order of its program, so a swap that comes after a read always
    /// meets the newest value. The language allows a swap to meet an older one unless the read before it acquired. No processor does
    /// that: it swaps only once it knows that the bound allows it.
    SwapMeetsNewest,
    /// It is more than is needed: whoever publishes, drains or passes on is alone, behind a gate or as the only task, and sees what was
    /// done there before. A bound that is read too low leaves ids out.
    Alone,
    /// It is more than is needed: key and generation are read under the directory's lock, and a swap that took from the next owner's word
    /// has acquired what emptied it, which comes after the generation.
    CursorComesLast,
}

/// The orders whose absence is not found, by file, function and what it does.
const NOT_FOUND: [(&str, &str, &str, Why); 8] = [
    ("generation", "get", "load", Why::CursorComesLast),
    ("generation", "pass_on", "store", Why::CursorComesLast),
    ("segment", "hi", "load", Why::Alone),
    ("segment", "publish", "load", Why::Alone),
    ("segment", "take_next", "load", Why::SwapMeetsNewest),
    ("snowflake", "drain", "load", Why::Alone),
    ("snowflake", "hi", "load", Why::Alone),
    ("snowflake", "take_from", "load", Why::SwapMeetsNewest),
];

/// How often threads may be interrupted; `all`: without a limit.
const PREEMPTIONS: &str = "KEYWRIGHT_PREEMPTIONS";
/// By default.
const PREEMPTIONS_USUAL: usize = 3;
/// Where something is to be found, which takes fewer.
const PREEMPTIONS_TO_FIND: usize = 2;

fn preemptions() -> Option<usize> {
    match std::env::var(PREEMPTIONS).as_deref() {
        Ok("all") => None,
        Ok(count) => Some(count.parse().expect("a number of preemptions, or all")),
        Err(_) => Some(PREEMPTIONS_USUAL),
    }
}

fn model(preemptions: Option<usize>, run: fn()) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = preemptions;
    builder.check(run);
}

/// The first of the scenes that goes wrong when this is relaxed.
fn finder(site: Site, scenes: &[Scene]) -> Option<&'static str> {
    sync::weaken(Some(site));
    let goes_wrong = |(_, run): &&Scene| {
        let model = || model(Some(PREEMPTIONS_TO_FIND), *run);
        catch_unwind(AssertUnwindSafe(model)).is_err()
    };
    let found = scenes.iter().find(goes_wrong).map(|(name, _)| *name);
    sync::weaken(None);
    found
}

/// The orders that are asked for, each with the scenes in which it is.
fn ordered() -> BTreeMap<Site, Vec<Scene>> {
    let mut ordered: BTreeMap<Site, Vec<Scene>> = BTreeMap::new();
    for scene in SCENES {
        model(Some(1), scene.1);
        for site in sync::take_ordered() {
            ordered.entry(site).or_default().push(scene);
        }
    }
    ordered
}

#[test]
fn nothing_comes_twice() {
    for (name, run) in SCENES {
        let begun = Instant::now();
        model(preemptions(), run);
        println!("{name}: {:?}", begun.elapsed());
    }
}

#[test]
fn every_order_is_found_missing_or_it_is_known_why_not() {
    let why_not: BTreeMap<Site, Why> = NOT_FOUND
        .map(|(file, function, operation, why)| {
            let site = Site {
                file,
                function,
                operation,
            };
            (site, why)
        })
        .into();
    let ordered = ordered();
    for (site, scenes) in &ordered {
        let begun = Instant::now();
        let finder = finder(*site, scenes);
        println!("{site:?}: found by {finder:?}, {:?}", begun.elapsed());
        match (finder, why_not.get(site)) {
            (Some(_), None) | (None, Some(_)) => {}
            (None, None) => panic!("{site:?}: relaxed, and nothing goes wrong"),
            (Some(_), Some(why)) => panic!("{site:?}: found, though {why:?}"),
        }
    }
    let reached: BTreeSet<Site> = ordered.into_keys().collect();
    assert!(why_not.keys().all(|site| reached.contains(site)));
    assert_eq!(
        reached.len(),
        sync::orders_in_sources(),
        "no scene reaches some order"
    );
}
