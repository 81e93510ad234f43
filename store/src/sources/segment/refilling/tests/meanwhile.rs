//! What others notice of a refill that waits.

use std::time::Duration;

use tempfile::TempDir;
use tokio::runtime::Handle;
use tokio::task::yield_now;
use tokio::time::{sleep, timeout};

use super::kept::Program;
use super::*;
use crate::settings::{RawSnowflakeSettings, RawStoreSettings, StoreSettings};
use crate::store::home_rows::TagIn;

/// A store that nobody asks, with one turn.
fn store(store_ms_max: u64) -> Arc<Store> {
    let raw = RawStoreSettings {
        url: "mysql://k@127.0.0.1/k".to_owned(),
        connections_max: 2,
        store_ms_max,
        ..RawStoreSettings::default()
    };
    let settings = StoreSettings::new(&raw, &RawSnowflakeSettings::default()).unwrap();
    Arc::new(Store::new(&settings))
}

#[tokio::test(start_paused = true)]
async fn what_is_kept_is_given_while_the_refill_waits_for_its_turn() {
    let scratch = TempDir::new().unwrap();
    let mut program = Program::start(&scratch.path().join("ranges"), true);
    program.accept(1, 101);
    program.state.is_away = true;
    let store = store(60_000);
    let _other = store.turns.asking.acquire().await.unwrap();
    let Program { supply, state, .. } = &mut program;
    let supply = &*supply;
    let given = async {
        for _ in 0..100 {
            supply.take(1, true).await.unwrap();
        }
    };
    tokio::select! {
        its_turn = its_turn(supply, &store, state) => panic!("{its_turn:?}"),
        () = given => {}
    }
    assert_eq!(supply.remaining(), 0);
    // Now that nothing is kept any more, it still notices the end.
    let closing = async {
        yield_now().await;
        supply.demand.close();
    };
    let began = Instant::now();
    let (its_turn, ()) = tokio::join!(its_turn(supply, &store, state), closing);
    assert!(matches!(its_turn, Err(NoTurn::Closed)), "{its_turn:?}");
    assert!(began.elapsed() < Duration::from_secs(1));
}

#[tokio::test(start_paused = true)]
async fn where_something_is_kept_a_refill_notices_the_end_while_it_waits_for_its_turn() {
    let scratch = TempDir::new().unwrap();
    let mut program = Program::start(&scratch.path().join("ranges"), true);
    program.accept(1, 101);
    program.state.is_away = true;
    let store = store(60_000);
    let _other = store.turns.asking.acquire().await.unwrap();
    let Program { supply, state, .. } = &mut program;
    let supply = &*supply;
    let closing = async {
        yield_now().await;
        supply.demand.close();
    };
    let began = Instant::now();
    let (its_turn, ()) = tokio::join!(its_turn(supply, &store, state), closing);
    assert!(matches!(its_turn, Err(NoTurn::Closed)), "{its_turn:?}");
    assert!(began.elapsed() < Duration::from_secs(1));
}

/// Its keys are given from then on, and whoever waits for some does not wait for a minute.
#[tokio::test(start_paused = true)]
async fn where_something_is_kept_a_refill_waits_for_its_turn_no_longer_than_for_a_transaction() {
    let scratch = TempDir::new().unwrap();
    let mut program = Program::start(&scratch.path().join("ranges"), true);
    program.accept(1, 101);
    let store = store(100);
    for _ in 0..50 {
        let store = Arc::clone(&store);
        tokio::spawn(async move {
            let asking = store.turns.asking.acquire().await.unwrap();
            let _turn = store.turns.begin(asking, None);
            sleep(Duration::from_millis(50)).await;
        });
    }
    yield_now().await;
    let began = Instant::now();
    let Program { supply, state, .. } = &mut program;
    let error = match its_turn(supply, &store, state).await {
        Err(NoTurn::Crowded(error)) => error,
        other => panic!("{other:?}"),
    };
    assert!(began.elapsed() < Duration::from_secs(1));
    had_no_turn(supply, &store, state, &error);
    assert!(state.is_away);
    let supply = &*supply;
    let given = async {
        for _ in 0..100 {
            supply.take(1, true).await.unwrap();
        }
    };
    // Nobody has to wait for what the store says.
    let (waited, ()) = tokio::join!(
        timeout(Duration::from_secs(10), pause(supply, state)),
        async {
            tokio::select! {
                () = given => {}
                () = sleep(Duration::from_secs(1)) => {}
            }
        }
    );
    assert!(waited.is_ok());
    assert!(supply.remaining() < 50, "nothing was published");
}

#[tokio::test(start_paused = true)]
async fn whoever_asks_in_the_pause_before_the_next_attempt_counts() {
    let tag = Tag::parse("orders").unwrap();
    let name = "segment:orders".to_owned();
    let supply = SegmentSupply::new(name, (tag, Residue::ALL), &LIMITS, seat());
    let mut state = Refilling::new(&LIMITS);
    for is_asked in [false, true] {
        let asking = async {
            yield_now().await;
            if is_asked {
                supply.demand.ask();
            }
        };
        tokio::join!(pause(&supply, &mut state), asking);
        assert_eq!(state.is_unasked, !is_asked);
        // Either way it goes on.
        let at_once = Some(Instant::now());
        assert!(supply.demand.asked(at_once).await);
    }
}

/// Nothing is reserved in it, so that whoever stops need not wait for it, nor say that something is lost.
#[tokio::test(start_paused = true)]
async fn who_stops_does_not_wait_for_what_another_store_says() {
    let tag = Tag::parse("orders").unwrap();
    let other = store(60_000);
    let _its_turn = other.turns.asking.acquire().await.unwrap();
    let of = TagIn {
        store: Arc::clone(&other),
        name: "other".to_owned(),
        tag: tag.clone(),
    };
    let elsewhere = Elsewhere::new(vec![(of, Handle::current(), false)], String::new());
    let name = "segment:orders".to_owned();
    let supply = SegmentSupply::new(name, (tag, Residue::ALL), &LIMITS, seat());
    let supply = Arc::new(supply);
    let refilling = run(
        Arc::clone(&supply),
        store(60_000),
        Some(Arc::new(elsewhere)),
        LIMITS,
    );
    let refilling = tokio::spawn(refilling);
    // It has come to the other store by then.
    sleep(Duration::from_millis(10)).await;
    let began = Instant::now();
    supply.demand.close();
    refilling.await.unwrap();
    assert!(began.elapsed() < Duration::from_secs(1));
}
