use keywright_core::{Note, Writer};
use proptest::prelude::*;

const NOW_MS: i64 = 1_700_000_000_000;

fn writer() -> Writer {
    Writer {
        system_identifier: 7_301_234_567_890_123_456,
        timeline: 1,
        database_oid: 16_384,
        resets: 0,
    }
}

/// Another one would have every bound that stands on a disk count as of another database.
#[test]
fn marks_are_what_they_were() {
    for ((timeline, database_oid, resets), mark) in [((1, 5, 0), 82_689), ((3, 16_384, 2), 300_291)]
    {
        let writer = Writer {
            system_identifier: 7_400_000_000_000_000_000,
            timeline,
            database_oid,
            resets,
        };
        assert_eq!(writer.mark(), mark, "{writer:?}");
    }
}

#[test]
fn marks_tell_lives_apart() {
    let mark = writer().mark();
    for timeline in 2..=128 {
        assert_ne!(
            Writer {
                timeline,
                ..writer()
            }
            .mark(),
            mark,
            "promotion to {timeline}"
        );
    }
    let copies = (16_385..26_385).filter(|oid| {
        Writer {
            database_oid: *oid,
            ..writer()
        }
        .mark()
            == mark
    });
    assert!(copies.count() < 20, "about one in 4096 looks the same");
}

/// Notes from before a reset, on whatever timeline, are told from later ones. Those of others may be from before it, too.
#[test]
fn notes_from_before_a_reset_are_told() {
    let after = |resets| Writer { resets, ..writer() };
    let noted = |writer| Note::new(writer, NOW_MS, 1000, 100);
    let others = [
        Writer {
            system_identifier: 1,
            ..writer()
        },
        Writer {
            database_oid: 16_385,
            ..writer()
        },
    ];
    for resets in [1, 2, 100, Writer::RESETS_MAX] {
        let now = after(resets);
        let promoted = Writer { timeline: 9, ..now };
        for earlier in [0, 1, resets / 2, resets - 1] {
            let earlier = earlier.min(resets - 1);
            let note = noted(after(earlier));
            assert!(!note.is_of(&now), "{earlier} of {resets}");
            assert!(now.may_have_lost(Some(&note)), "{earlier} of {resets}");
            assert!(promoted.may_have_lost(Some(&note)), "{earlier} of {resets}");
            assert!(now.was_reset_since(&note), "{earlier} of {resets}");
            assert!(!promoted.was_reset_since(&note), "{earlier} of {resets}");
        }
        let note = noted(now);
        assert!(note.is_of(&now) && !now.may_have_lost(Some(&note)));
        assert!(!note.is_of(&promoted) && !promoted.may_have_lost(Some(&note)));
        assert!(!now.was_reset_since(&note) && !promoted.was_reset_since(&note));
        assert!(now.may_have_lost(None));
        for other in others {
            assert!(now.may_have_lost(Some(&noted(other))), "{resets}");
        }
    }
    for note in [
        None,
        Some(noted(others[0])),
        Some(noted(others[1])),
        Some(noted(after(3))),
    ] {
        assert!(!writer().may_have_lost(note.as_ref()), "no reset");
        assert!(!note.is_some_and(|note| writer().was_reset_since(&note)));
    }
}

/// The SQL that looks for such notes compares these bits.
#[test]
fn a_packed_note_says_whose_life_it_is_of() {
    let life = |writer| Note::new(writer, NOW_MS, u64::MAX, u64::MAX).pack() >> Note::LIFE_BIT;
    let now = Writer {
        resets: 1,
        ..writer()
    };
    assert_eq!(life(now), life(Writer { timeline: 9, ..now }));
    assert_ne!(life(now), life(writer()));
    let first = Note::new(now, NOW_MS, 1, 0).before_the_first();
    assert_eq!(first.pack() >> Note::LIFE_BIT, life(now));
}

#[test]
fn gaps_cover_a_reservation_and_twice_the_rate() {
    let note = Note::new(writer(), NOW_MS, 1000, 100);
    assert_eq!(note.at_ms(), NOW_MS);
    assert_eq!(note.tag_gap(NOW_MS), 1024);
    assert_eq!(note.tag_gap(NOW_MS + 10_000), 1024 + 2 * 128 * 10);
    assert_eq!(
        note.tag_gap(NOW_MS - 1_000_000),
        1024,
        "the clock reads earlier"
    );
    assert_eq!(
        Note::new(writer(), NOW_MS, u64::MAX, u64::MAX).tag_gap(i64::MAX),
        u64::MAX
    );
    assert_eq!(Note::new(writer(), 0, 0, 0).at_s, 0);
    let last = Note::new(writer(), i64::MAX, u64::MAX, u64::MAX);
    assert_eq!(last.at_s, u32::MAX >> 1);
    assert_eq!(Note::unpack(last.pack()), Some(last));
}

#[test]
fn the_first_note_is_told_from_those_beside_a_bound() {
    let later = Note::new(writer(), NOW_MS, 1000, 1000);
    let first = later.before_the_first();
    assert_eq!(Note::unpack(first.pack()), Some(first));
    assert_eq!(first.pack(), later.pack() | 1 << Note::FIRST_BIT);
    assert_eq!(first.tag_gap(NOW_MS + 500), later.tag_gap(NOW_MS + 500));
    assert!(first.is_of(&writer()) && first.at_ms() == later.at_ms());
    assert!(!later.at_peak_since(Some(&first)).is_first);
}

#[test]
fn nothing_recorded_is_no_note() {
    for packed in [0, -1, i64::MIN] {
        assert_eq!(Note::unpack(packed), None);
    }
}

proptest! {
    #[test]
    fn notes_round_trip(system_identifier: u64, timeline: u32, database_oid: u32, resets: u32, size: u64, rate: u64, now_ms in NOW_MS..NOW_MS * 2) {
        let writer = Writer { system_identifier, timeline, database_oid, resets };
        let note = Note::new(writer, now_ms, size, rate);
        prop_assert!(note.pack() > 0);
        prop_assert_eq!(Note::unpack(note.pack()), Some(note));
        prop_assert!(note.is_of(&writer));
        prop_assert!(note.at_ms() <= now_ms && note.at_ms() > now_ms - 1000);
    }

    #[test]
    fn any_number_unpacks_to_itself(packed in 1i64..) {
        prop_assert_eq!(Note::unpack(packed).map(|note| note.pack()), Some(packed));
    }

    #[test]
    fn gaps_are_never_too_small(size in 0u64..1 << 40, rate in 0u64..1 << 40, elapsed_ms in 0i64..1_000_000_000_000) {
        let gap = Note::new(writer(), NOW_MS, size, rate).tag_gap(NOW_MS + elapsed_ms);
        let least = u128::from(size) + (2 * u128::from(rate) * elapsed_ms as u128).div_ceil(1000);
        prop_assert!(u128::from(gap) >= least.min(u128::from(u64::MAX)));
    }
}
