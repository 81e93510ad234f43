//! The task that refills the ranges of a tag.

mod meanwhile;
mod state;
mod turn;

use std::sync::Arc;
use std::sync::atomic::Ordering;

use keywright_core::residue::Residue;
use keywright_core::{Cause, TagExhausted};
use tokio::time::Instant;
use tracing::{info, warn};

use super::{ANOTHER_TAG, Held, Origin, SegmentSupply};
use crate::elsewhere::Elsewhere;
use crate::failure::Failure;
use crate::settings::Limits;
use crate::sources::demand::Outlook;
use crate::sources::left::cannot_follow;
use crate::store::gone_back::GoneBack;
use crate::store::tag_request::{Denied, Granted, OrderRight, ReservationRequest};
use crate::store::{Store, StoreError};
use crate::tag_order::TagOrder;
use meanwhile::{is_here_only, its_turn, pause};
use state::Refilling;
use turn::NoTurn;

/// Why ranges are dropped that would have been given.
const HIDDEN_OTHERWISE: &str = "the tag has another permutation in the store";
/// Why they are dropped where the store is a Redis that others may have taken the place of.
const MAY_BE_LOST: &str = "the store may lack what was reserved last";

/// Refills until the source is closed, as long as somebody uses it.
///
/// `elsewhere`: other stores that are asked before any range is taken, where the store cannot say itself that the tag is closed in them.
pub(crate) async fn run(
    supply: Arc<SegmentSupply>,
    store: Arc<Store>,
    elsewhere: Option<Arc<Elsewhere>>,
    limits: Limits,
) {
    let mut state = Refilling::new(&limits);
    // Of a program that has started while the store is away: it may take long to say that it still is.
    state.is_away = supply.publish_part(0);
    supply.demand.ask();
    while supply.demand.asked(None).await {
        if supply.demand.rests() {
            continue;
        }
        if lacking(&supply, &state).is_none() {
            supply.demand.succeeded();
            continue;
        }
        if fails_left(&supply) {
            continue;
        }
        if let Some(elsewhere) = &elsewhere
            && !is_here_only(&supply, elsewhere, &mut state).await
        {
            continue;
        }
        let its_turn = match its_turn(&supply, &store, &mut state).await {
            Ok(its_turn) => its_turn,
            Err(NoTurn::Closed) => continue,
            Err(NoTurn::Crowded(error)) => {
                had_no_turn(&supply, &store, &mut state, &error);
                pause(&supply, &mut state).await;
                continue;
            }
        };
        // That may have been long ago.
        if supply.demand.rests() || fails_left(&supply) {
            continue;
        }
        // More may be waited for by now, or nothing.
        let Some(need) = lacking(&supply, &state) else {
            supply.demand.succeeded();
            continue;
        };
        let is_done = refill(&supply, &store, &mut state, need).await;
        drop(its_turn);
        if !is_done {
            pause(&supply, &mut state).await;
        }
    }
}

/// For how many keys somebody waits, if there is something to reserve.
fn lacking(supply: &SegmentSupply, state: &Refilling) -> Option<u64> {
    let need = supply.demand.need();
    (!supply.is_full(need) || state.is_away).then_some(need)
}

/// The store was not asked.
fn had_no_turn(supply: &SegmentSupply, store: &Store, state: &mut Refilling, error: &StoreError) {
    let was_away = std::mem::replace(&mut state.is_away, true);
    unanswered(supply, store.failure(error), was_away);
}

/// Whether tables have left the keys: nothing is asked for before a generation is followed.
fn fails_left(supply: &SegmentSupply) -> bool {
    // Held until that is said: whoever follows one clears it.
    let held = supply.held();
    if held.is_left {
        let failure = cannot_follow(&format!("keys of tag \"{}\"", supply.tag));
        supply.demand.failed(failure, 0, Outlook::Stays);
    }
    held.is_left
}

/// One refill; near the tag's end also the rest, when somebody waits for more than that. False: pause before the next.
async fn refill(supply: &SegmentSupply, store: &Store, state: &mut Refilling, need: u64) -> bool {
    for need in [need, 0] {
        let answer = reserve(supply, store, state, need).await;
        let was_away = std::mem::replace(&mut state.is_away, answer.is_err());
        let exhausted = match answer {
            Ok(Ok(granted)) => return accept(supply, state, &granted, need),
            Ok(Err(Denied::Ordered(order, failure))) => {
                became_ordered(supply, order, failure);
                return true;
            }
            Ok(Err(Denied::NotActive(_))) => {
                supply.ordered.lose(state.epoch);
                supply.demand.succeeded();
                return true;
            }
            Ok(Err(Denied::Exhausted(exhausted))) => {
                // What others hand back is all there can be from now on.
                state.look_for_returned = true;
                exhausted
            }
            Ok(Err(Denied::Settling(failure))) => {
                // What is kept goes on meanwhile, and it is soon over, however long the store was away.
                state.is_away = was_away;
                state.backoff.succeeded();
                supply.demand.failed(failure, 0, Outlook::MayPass);
                return false;
            }
            Ok(Err(Denied::Superseded(failure))) => {
                supply.demand.failed(failure, 0, Outlook::MayPass);
                return false;
            }
            Ok(Err(Denied::TooLarge(failure))) => {
                supply.demand.failed(failure, need, Outlook::Stays);
                continue;
            }
            Ok(Err(Denied::Suspended(failure))) => {
                drop_all(supply, MAY_BE_LOST, failure);
                return false;
            }
            Ok(Err(Denied::HiddenOtherwise(failure))) => {
                drop_all(supply, HIDDEN_OTHERWISE, failure);
                return false;
            }
            Ok(Err(Denied::AnotherKeySpace(failure))) => {
                drop_all(supply, ANOTHER_TAG, failure);
                return false;
            }
            Ok(Err(Denied::GoneBack(GoneBack { failure, .. }) | Denied::Other(failure))) => {
                supply.publish_tail();
                supply.demand.failed(failure, 0, Outlook::Stays);
                return false;
            }
            Err(failure) => {
                unanswered(supply, failure, was_away);
                return false;
            }
        };
        if supply.publish_tail() {
            supply.demand.succeeded();
            return true;
        }
        tell_exhausted(supply, exhausted, need);
        if need == 0 {
            break;
        }
    }
    false
}

/// The tag turns out to be ordered: who gives its ids is the store's to say.
fn became_ordered(supply: &SegmentSupply, order: TagOrder, failure: Failure) {
    supply.ordered.learn(order);
    supply.held().tail = None;
    supply.forget();
    match supply.ordered.stands() {
        true => supply.demand.succeeded(),
        false => supply.demand.failed(failure, 0, Outlook::Stays),
    }
}

/// Nothing is given of what was reserved either.
fn drop_all(supply: &SegmentSupply, why: &str, failure: Failure) {
    supply.drop_rest(&mut supply.held(), why);
    supply.demand.failed(failure, 0, Outlook::Stays);
}

/// The store did not answer; what is kept goes on meanwhile, if there is any.
fn unanswered(supply: &SegmentSupply, failure: Failure, was_away: bool) {
    match supply.has_tail() {
        true if was_away => {}
        true => {
            warn!(tag = %supply.tag, %failure, "no range can be reserved: going on with what is kept");
        }
        // What was asked for may have been reserved: it counts as used.
        false => supply.demand.failed(failure, 0, Outlook::MayPass),
    }
}

/// Whoever waits for so many gets none; whoever waits for fewer may.
fn tell_exhausted(supply: &SegmentSupply, exhausted: TagExhausted, need: u64) {
    let message = format!("tag \"{}\" is {exhausted}", supply.tag);
    let failure = Failure::new(Cause::TagExhausted, message);
    if need == 0 {
        supply.demand.figures.set_tag_left(0);
    }
    supply.demand.failed(failure, need, Outlook::Stays);
}

async fn reserve(
    supply: &SegmentSupply,
    store: &Store,
    state: &mut Refilling,
    need: u64,
) -> Result<Result<Granted, Denied>, Failure> {
    let right = supply.ordered.right();
    state.epoch = right.as_ref().map(|(_, epoch)| *epoch);
    let right = right.as_ref().map(|(owner, epoch)| OrderRight {
        group: supply.ordered.group(),
        owner,
        epoch: *epoch,
    });
    let (generation, key_space, hi, first) = {
        let held = supply.held();
        let key_space = held.key_space.clone();
        (held.generation, key_space, supply.hi(&held), held.first)
    };
    let floor = supply
        .residue
        .get()
        .map_or(0, |residue| floor_of(*residue, hi));
    let floor = floor.max(supply.ordered.hi()).max(first);
    let request = ReservationRequest {
        store,
        tag: &supply.tag,
        residue: supply.wanted,
        need,
        floor,
        seen: 0,
        steps: state.steps,
        uptime_ms: u64::try_from(state.began.elapsed().as_millis()).unwrap_or(u64::MAX),
        // A rest that was handed back lies below ids that were issued since.
        returned: state.look_for_returned && right.is_none(),
        generation,
        key_space,
        right,
        hiding: supply.hiding.as_deref(),
        receiver: None,
    };
    let result = store.run(request).await;
    result.map_err(|error| store.failure(&error))
}

/// First id above every id below an index.
fn floor_of(residue: Residue, hi: u64) -> u64 {
    match hi.checked_sub(1) {
        Some(last) => residue.id_of(last).saturating_add(1),
        None => 0,
    }
}

/// The same of an ordered tag, in the epoch in which it was reserved.
fn accept_ordered(
    supply: &SegmentSupply,
    state: &mut Refilling,
    granted: &Granted,
    epoch: u64,
) -> bool {
    {
        let mut held = supply.held();
        held.generation = Some(granted.generation);
        held.key_space = Some(Arc::clone(&granted.key_space));
    }
    let range = (granted.start, granted.end);
    supply
        .ordered
        .publish(epoch, range, granted.row.refill_percent);
    let keys = granted.end.saturating_sub(granted.start);
    note(supply, state, granted, keys);
    supply.demand.succeeded();
    true
}

/// Publishes a range whose commit is known. False: it could not be used, and is lost.
fn accept(supply: &SegmentSupply, state: &mut Refilling, granted: &Granted, need: u64) -> bool {
    if let Some(epoch) = state.epoch {
        return accept_ordered(supply, state, granted, epoch);
    }
    supply.ordered.learn(TagOrder::Distinct);
    let residue = *supply.residue.get_or_init(|| granted.residue);
    if residue != granted.residue {
        let failure = Failure::new(
            Cause::BoundDamaged,
            format!("delta or remainder of tag \"{}\" was changed", supply.tag),
        );
        let failure = failure.hint("restart the program, and every other issuer of the tag");
        supply.demand.failed(failure, 0, Outlook::Stays);
        return false;
    }
    // Held until the range is published: what comes late for an older generation is not.
    let mut held = supply.held();
    if let Some(which) = outdated(&held, granted) {
        drop(held);
        info!(tag = %supply.tag, "dropped a range {which}");
        supply.demand.ask();
        return true;
    }
    held.generation = Some(granted.generation);
    held.key_space = Some(Arc::clone(&granted.key_space));
    // Whoever has a key is told which key space it is of.
    held.show();
    held.origin = match &held.origin {
        Origin::Nowhere => Origin::Server(granted.server.clone()),
        Origin::Server(server) if *server == granted.server => held.origin.clone(),
        Origin::Server(_) | Origin::Several => Origin::Several,
    };
    let (mut start, end) = (
        residue.index_from(granted.start),
        residue.index_from(granted.end),
    );
    // Between ids of ours a whole range of somebody else's may lie, of which the indices show nothing. One index left out keeps
    // the two ranges apart: together they would be handed back as one, with that other range in it.
    let continues = state.end == Some(granted.start);
    if !continues && start > 0 && start == supply.hi(&held) {
        start = start.saturating_add(1);
    }
    let is_published = supply.publish_granted(&mut held, (start, end), need, granted);
    drop(held);
    // A range without an id of ours bridges nothing: what lies before it may still be somebody else's.
    state.end = (is_published || continues).then_some(granted.end);
    if !is_published {
        // A rest without an id of ours: whoever waits asks again.
        supply.demand.succeeded();
        return true;
    }
    note(supply, state, granted, end.saturating_sub(start));
    supply.demand.succeeded();
    true
}

/// Which range it is, where it was asked for before something that it must not be given after.
fn outdated(held: &Held, granted: &Granted) -> Option<&'static str> {
    let is_of_another = held
        .generation
        .is_some_and(|followed| followed != granted.generation);
    if held.is_left || is_of_another {
        return Some("of an older generation");
    }
    (granted.start < held.first).then_some("that begins below ids of tables")
}

fn note(supply: &SegmentSupply, state: &mut Refilling, granted: &Granted, keys: u64) {
    let figures = &supply.demand.figures;
    let now = Instant::now();
    let issued = figures.issued.load(Ordering::Relaxed);
    if let Some((at, before)) = state.last {
        let ms = u64::try_from(now.saturating_duration_since(at).as_millis()).ok();
        let rate = keywright_core::rate_per_s(issued.saturating_sub(before), ms);
        figures.rate_per_s.store(rate, Ordering::Relaxed);
    }
    state.last = Some((now, issued));
    state.is_unasked = false;
    state.backoff.succeeded();
    figures.refills.fetch_add(1, Ordering::Relaxed);
    figures.step.store(keys, Ordering::Relaxed);
    if let Some(left) = granted.tag_left() {
        figures.set_tag_left(left);
    }
    if granted.was_returned {
        info!(tag = %supply.tag, start = granted.start, end = granted.end, "using a range that was handed back");
        return;
    }
    state.look_for_returned = false;
    let uptime_ms = now.saturating_duration_since(state.began).as_millis();
    let uptime_ms = u64::try_from(uptime_ms).unwrap_or(u64::MAX);
    state.steps.reserved(&granted.row, uptime_ms);
    if granted.gap > 0 {
        warn!(tag = %supply.tag, gap = granted.gap, "another server wrote the tag's bound: a safety gap was left out");
    }
}

#[cfg(test)]
mod tests;
