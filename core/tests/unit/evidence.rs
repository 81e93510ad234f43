use keywright_core::{
    LastMessage, Loss, Note, Promotion, RateWindow, Received, Word, Writer, lost_ms,
};
use proptest::prelude::*;

const NOW_MS: i64 = 1_790_000_000_000;
const DAY_MS: i64 = 86_400_000;
/// An end within a page of the log.
const END: u64 = 0x0300_1238;

fn on_timeline(timeline: u32) -> Writer {
    Writer {
        system_identifier: 7_301_234_567_890_123_456,
        timeline,
        database_oid: 16_384,
        resets: 0,
    }
}

fn heard() -> LastMessage {
    LastMessage {
        sent_ms: NOW_MS - 1000,
        received_ms: NOW_MS - 900,
        named_end: END,
        named_ms: NOW_MS - 5000,
        replayed: END,
        is_silent: false,
    }
}

#[test]
fn a_message_is_evidence_of_the_moment_when_data_named_what_was_flushed() {
    assert_eq!(heard().evidence_ms(), Some(NOW_MS - 5000));
    let not = |message: LastMessage| assert_eq!(message.evidence_ms(), None, "{message:?}");
    not(LastMessage {
        replayed: END - 1,
        ..heard()
    });
    // Cut at a page: something was left for later.
    not(LastMessage {
        named_end: 0x0300_2000,
        replayed: 0x0300_2000,
        ..heard()
    });
    not(LastMessage {
        is_silent: true,
        ..heard()
    });
    not(LastMessage {
        named_end: 0,
        ..heard()
    });
}

#[test]
fn the_newest_evidence_counts_and_a_clock_that_reads_earlier_tells_nothing() {
    let received = Received {
        commit_ms: Some(NOW_MS - 3000),
        note_ms: Some(NOW_MS - 20 * DAY_MS),
        message: Some(heard()),
    };
    assert_eq!(received.lost_ms(NOW_MS, 0), Some(3000));
    let by_message = Received {
        commit_ms: None,
        ..received
    };
    assert_eq!(by_message.lost_ms(NOW_MS, 0), Some(5000));
    assert_eq!(Received::default().lost_ms(NOW_MS, 7), None);
    // A note of a time when the primary's clock was ahead does not hide the commit.
    let ahead = Received {
        note_ms: Some(NOW_MS + DAY_MS),
        ..received
    };
    assert_eq!(ahead.lost_ms(NOW_MS, 0), Some(3000));
    let notes_ms = [NOW_MS + DAY_MS, NOW_MS - DAY_MS, NOW_MS - 2 * DAY_MS];
    assert_eq!(
        Received::newest_note(&notes_ms, NOW_MS),
        Some(NOW_MS - DAY_MS)
    );
    assert_eq!(
        Received::newest_note(&notes_ms[..1], NOW_MS),
        Some(NOW_MS + DAY_MS)
    );
    assert_eq!(Received::newest_note(&[], NOW_MS), None);
    // An hour early: the largest lag measured, here or before.
    let early_ms = NOW_MS - 3_600_000;
    assert_eq!(received.lost_ms(early_ms, 0), Some(100));
    assert_eq!(received.lost_ms(early_ms, 60_000), Some(60_000));
}

#[test]
fn what_was_received_speaks_for_the_parent_timeline_only() {
    let promotion = Promotion::new(&on_timeline(3), Some(2), NOW_MS, Word::Estimate);
    let loss = Loss::new(promotion.mark, 3000, 0);
    let idle = |timeline| Note::new(on_timeline(timeline), NOW_MS - DAY_MS, 1000, 1000);
    assert_eq!(lost_ms(&idle(2), &promotion, &loss), 3000);
    assert_eq!(lost_ms(&idle(1), &promotion, &loss), 86_400_000);
    let fresh = Note::new(on_timeline(2), NOW_MS - 1000, 1000, 1000);
    assert_eq!(lost_ms(&fresh, &promotion, &loss), 1000);
    let said = Promotion {
        word: Word::Owner,
        ..promotion
    };
    for timeline in [1, 2] {
        assert_eq!(lost_ms(&idle(timeline), &said, &loss), 3000);
    }
    for (ms, counts) in [(0, 0), (1, 1000), (1001, 1001)] {
        let loss = Loss::new(said.mark, ms, 0);
        assert_eq!(lost_ms(&idle(2), &said, &loss), counts);
    }
    let unknown = Promotion {
        parent: None,
        ..promotion
    };
    assert_eq!(lost_ms(&idle(2), &unknown, &loss), 86_400_000);
    let early = Promotion::new(
        &on_timeline(3),
        Some(2),
        NOW_MS - 2 * DAY_MS,
        Word::Estimate,
    );
    let lagged = Loss::new(early.mark, 3000, 60_000);
    assert_eq!(lost_ms(&idle(1), &early, &lagged), 65_536);
}

#[test]
fn the_peak_outlives_idleness() {
    let burst = Note::new(on_timeline(1), NOW_MS, 1000, 600_000);
    let idle = Note::new(on_timeline(1), NOW_MS + 20 * DAY_MS, 1000, 1).at_peak_since(Some(&burst));
    assert_eq!(idle.rate_log2, burst.rate_log2);
    assert_eq!(idle.at_ms(), NOW_MS + 20 * DAY_MS);
    assert_eq!(burst.at_peak_since(None), burst);
}

#[test]
fn rates_are_of_a_second_at_least() {
    let mut window = RateWindow::default();
    let mut add = |ids, boot_ms| {
        let (next, rate_per_s) = window.add(ids, boot_ms);
        window = next;
        rate_per_s
    };
    assert_eq!(add(0, 5000), 0);
    assert_eq!(add(10_000, 5001), 10_000, "not ten million");
    assert_eq!(add(10_000, 5500), 20_000);
    assert_eq!(add(20_000, 7000), 20_000);
    // The next window: idle, then a burst.
    assert_eq!(add(1000, 107_000), 10);
    assert_eq!(add(5000, 107_001), 5000);
}

proptest! {
    #[test]
    fn promotions_and_losses_survive_packing(
        timeline in 0u32..,
        parent in proptest::option::of(0u32..),
        now_ms in 0i64..4_000_000_000_000,
        (owner, acknowledged, reset) in proptest::arbitrary::any::<(bool, bool, bool)>(),
        (ms, lag_ms) in proptest::arbitrary::any::<(u64, u64)>(),
    ) {
        let word = if owner { Word::Owner } else { Word::Estimate };
        let promotion = Promotion {
            is_acknowledged: acknowledged,
            is_reset: reset,
            ..Promotion::new(&on_timeline(timeline), parent, now_ms, word)
        };
        prop_assert!(promotion.pack() > 0);
        prop_assert_eq!(Promotion::unpack(promotion.pack()), Some(promotion));
        prop_assert!(promotion.noticed_ms() >= now_ms);
        let loss = Loss::new(promotion.mark, ms, lag_ms);
        prop_assert_eq!(Loss::unpack(loss.pack()), Some(loss));
        prop_assert_eq!(loss.ms, ms.min(Loss::MS_MAX));
        prop_assert!(loss.lag_ms_max() >= lag_ms.min(1 << 63) || lag_ms == 1);
    }
}
