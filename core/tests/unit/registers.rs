//! The register's text, and floors between layouts.

use keywright_core::{AssignedRange, Floor, Held, Layout, Number, Preset, Register, Use, readable};

const NOW_MS: i64 = 1_800_000_000_000;

fn held(layout: Layout) -> Held {
    Held {
        life: u64::MAX,
        sequence: 16_400,
        from_ms: Some(NOW_MS),
        floor: Some(Floor::below_ms(Preset::Twitter.layout(), NOW_MS)),
        layout,
    }
}

#[test]
fn what_was_written_is_read_again() {
    let odd = Layout::parse("time=41,datacenter=5,worker=5,sequence=12,epoch=1288834949657")
        .expect("a layout");
    let mut register = Register::default();
    assert_eq!(Register::parse(""), Some(register.clone()));
    register.set(Number::Worker(5), 16_384, Use::Held(held(odd)));
    register.set(Number::Bucket(255), 16_384, Use::Lost);
    register.set(Number::Bucket(254), 5, Use::Held(held(readable::LAYOUT)));
    let floor = Some(Floor::below_ms(readable::LAYOUT, NOW_MS));
    register.set(Number::Bucket(0), 5, Use::Left { floor });
    register.set(Number::Worker(6), 5, Use::Left { floor: None });
    register.set(
        Number::Worker(7),
        5,
        Use::Left {
            floor: Some(Floor::below_ms(odd, NOW_MS)),
        },
    );
    let text = register.to_string();
    assert_eq!(Register::parse(&text), Some(register.clone()), "{text}");
    assert_eq!(register.held(Number::Worker(5), 16_384), Some(held(odd)));
    assert_eq!(register.held(Number::Worker(5), 5), None);
    assert_eq!(register.held_by(16_384).count(), 1);
    register.set(Number::Worker(5), 16_384, Use::Left { floor: None });
    assert_eq!(register.held_by(16_384).count(), 0);
    // It had some, and lost the others.
    assert!(register.has_had_any(16_384) && register.has_had_any(5));
    assert!(!register.has_had_any(16_385));
    for mut register in [register, Register::default()] {
        assert_eq!(register.assigned(), None);
        let range = AssignedRange {
            first: 512,
            last: 1023,
        };
        register.set_assigned(range);
        register.set_assigned(range);
        assert_eq!(register.assigned(), Some(range));
        let text = register.to_string();
        assert_eq!(Register::parse(&text), Some(register), "{text}");
        assert_eq!(text.matches("assigned:512-1023").count(), 1);
    }
}

#[test]
fn a_sequence_that_is_not_the_recorded_one_is_no_bound() {
    let recorded = held(Preset::Twitter.layout());
    assert!(recorded.may_be_bound_by(16_400));
    assert!(!recorded.may_be_bound_by(16_401));
    let dropped = Held {
        sequence: 0,
        ..recorded
    };
    assert!(dropped.may_be_bound_by(16_401));
}

#[test]
fn what_is_none_is_refused() {
    for text in [
        "5:1:lost",
        "w5",
        "w5:1",
        "w5:1:given",
        "w5:1:lost:1",
        "r256:1:lost",
        "w5:1:left:1",
        "w5:1:left:1/2/nonsense",
        "w5:1:held:1:2:-:-",
        "é:1:lost",
        "assigned",
        "assigned:1",
        "assigned:1-",
    ] {
        assert_eq!(Register::parse(text), None, "{text}");
    }
}

/// 25 seconds of epoch make one number two moments.
#[test]
fn between_layouts_ids_are_compared() {
    let (twitter, earlier) = (
        Preset::Twitter.layout(),
        Layout::parse("time=41,datacenter=5,worker=5,sequence=12,epoch=1288834949657")
            .expect("a layout"),
    );
    let floor = Floor::below_ms(earlier, NOW_MS);
    assert_eq!(
        floor.first_state(&earlier) >> 12,
        u64::try_from(NOW_MS - earlier.epoch_ms()).expect("later")
    );
    let first = floor.first_state(&twitter);
    let part = 0;
    assert!(twitter.compose(first, part) > floor.id);
    assert!(twitter.compose(first - 1, part) <= floor.id);
    let moment = twitter.unix_ms_of(first >> 12);
    assert_eq!(moment, NOW_MS + 25_000);
    let later = Floor::below_ms(twitter, NOW_MS + 25_001);
    assert!(later.covers(&floor) && !floor.covers(&later));
    assert_eq!(floor.higher(Some(later)), later);
    assert_eq!(later.higher(Some(floor)), later);
    assert_eq!(later.higher(None), later);
}

#[test]
fn a_tick_that_was_begun_counts_as_used() {
    let layout = Preset::Twitter.layout();
    for begun in [0, 1, 4095] {
        let floor = Floor::below_state(layout, (1000 << 12) + begun);
        let first = 1000 + u64::from(begun > 0);
        assert_eq!(floor.first_state(&layout), first << 12);
        assert_eq!(floor.id, layout.largest_id_below(first));
    }
}
