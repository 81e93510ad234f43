//! While a refill waits, for other stores, for its turn or before the next attempt: what is kept is given, and who asks or stops is noticed.

use std::time::Duration;

use tokio::time::Instant;

use super::state::Refilling;
use super::turn::{NoTurn, TURN_MS_MAX, turn, turn_beside};
use crate::elsewhere::Elsewhere;
use crate::sources::demand::Outlook;
use crate::sources::segment::SegmentSupply;
use crate::store::Store;
use crate::store::turns::Turn;

/// Whether no other store has the tag open. False: one may have, which is asked again, or the source is closed.
///
/// Asked before the refill has its own turn: two stores may ask each other, and refills that have theirs would wait for each other.
pub(super) async fn is_here_only(
    supply: &SegmentSupply,
    elsewhere: &Elsewhere,
    state: &mut Refilling,
) -> bool {
    let looked = tokio::select! {
        biased;
        () = supply.demand.closed() => return false,
        looked = elsewhere.has_no_other(&supply.tag) => looked,
    };
    let Err(failure) = looked else {
        return true;
    };
    supply.demand.failed(failure, 0, Outlook::MayPass);
    supply.demand.pause(state.backoff.failed()).await;
    ask_again(supply, state).await;
    false
}

/// Waits for the refill's turn. Where something is kept it waits no longer than for a transaction: then the store counts as away, and what is kept is
/// published, in parts, as it is asked for.
pub(super) async fn its_turn<'s>(
    supply: &SegmentSupply,
    store: &'s Store,
    state: &mut Refilling,
) -> Result<Turn<'s>, NoTurn> {
    let demand = &supply.demand;
    if !supply.has_tail() {
        return turn(demand, store, &mut state.is_unasked, TURN_MS_MAX).await;
    }
    if !state.is_away {
        // So that what is kept comes in time for who waits.
        let ms_max = store.turns.ms_max.min(demand.wait_ms_max() / 2).max(1);
        return turn(demand, store, &mut false, ms_max).await;
    }
    let its_turn = turn_beside(store);
    tokio::pin!(its_turn);
    tokio::select! {
        biased;
        its_turn = &mut its_turn => return its_turn,
        () = give_kept(supply, None) => {}
    }
    // Nothing is kept any more, or the source is closed.
    tokio::select! {
        biased;
        () = demand.closed() => Err(NoTurn::Closed),
        its_turn = &mut its_turn => its_turn,
    }
}

/// Waits before the next attempt, which is asked for. While the store is away what is kept is published, in parts, as it is asked for.
pub(super) async fn pause(supply: &SegmentSupply, state: &mut Refilling) {
    let ms = state.backoff.failed();
    if state.is_away && supply.has_tail() {
        give_kept(supply, Some(Instant::now() + Duration::from_millis(ms))).await;
        // Whether somebody has asked is not known any more.
        state.is_unasked = false;
    } else {
        supply.demand.pause(ms).await;
    }
    ask_again(supply, state).await;
}

/// Asks for the next attempt. Whoever has asked in the pause before it does not stand behind others for that.
async fn ask_again(supply: &SegmentSupply, state: &mut Refilling) {
    if state.is_unasked && supply.demand.asked(Some(Instant::now())).await {
        state.is_unasked = false;
    }
    supply.demand.ask();
}

/// Publishes what is kept, in parts, as it is asked for. It returns when the time is up, nothing is kept any more or the source is closed.
async fn give_kept(supply: &SegmentSupply, until: Option<Instant>) {
    loop {
        let need = supply.demand.need();
        if !supply.is_full(need) {
            if !supply.publish_part(need) {
                return;
            }
            supply.demand.succeeded();
        }
        if !supply.demand.asked(until).await {
            return;
        }
    }
}
