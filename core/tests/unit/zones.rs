//! Time zones of readable ids: what they are called, and what is compared between them.

use keywright_core::readable::{self, SEQUENCE_BITS};
use keywright_core::{Biz, Floor, Layout, Zone, ZoneError};
use proptest::prelude::*;

fn zone(text: &str) -> Zone {
    Zone::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

#[test]
fn offsets_are_read_as_iso_8601_writes_them() {
    for (text, canonical) in [
        ("UTC", "UTC"),
        ("utc", "UTC"),
        ("Z", "UTC"),
        ("+00:00", "UTC"),
        ("-00", "UTC"),
        ("+8", "+08:00"),
        ("+08", "+08:00"),
        ("+0800", "+08:00"),
        ("+8:00", "+08:00"),
        ("-03:30", "-03:30"),
        ("-0330", "-03:30"),
        ("+05:45", "+05:45"),
        ("+14:00", "+14:00"),
        ("-14", "-14:00"),
    ] {
        assert_eq!(zone(text).to_string(), canonical, "{text}");
        assert_eq!(zone(canonical), zone(text));
    }
    for text in ["+14:01", "-15", "+00:60", "+99:99", "+9999"] {
        let refused = Zone::parse(text);
        assert!(
            matches!(refused, Err(ZoneError::Range { .. })),
            "{text}: {refused:?}"
        );
    }
    for text in [
        "",
        "+",
        "8",
        "08:00",
        "Asia/Shanghai",
        "CET",
        "UTC+8",
        "+8:0",
        "+8:000",
        "+080",
        "+08:",
        "+:00",
        "+-8",
        "+08:00:00",
        "−08:00",
        " +08:00",
        "+٨",
    ] {
        let refused = Zone::parse(text);
        assert!(
            matches!(refused, Err(ZoneError::NoOffset { .. })),
            "{text}: {refused:?}"
        );
    }
    assert!(Zone::parse(&"é".repeat(100_000)).is_err());
}

#[test]
fn a_moment_is_written_as_the_zone_s_clock_shows_it() {
    let biz = Biz::parse("ORD").expect("a code");
    for (text, time) in [
        ("UTC", "210821040302297"),
        ("+08:00", "210821120302297"),
        ("-05:00", "210820230302297"),
        ("+05:45", "210821094802297"),
    ] {
        let zone = zone(text);
        let state = zone.layout().state_at(1_629_518_582_297) + 7;
        let (written_ms, sequence) = readable::parts_of_state(state);
        let id = readable::format(written_ms, &biz, 1, sequence).expect("in range");
        assert_eq!(id, format!("{time}ORD_00262151"));
    }
}

#[test]
fn zones_are_known_by_their_layouts() {
    for minutes in -Zone::MINUTES_MAX..=Zone::MINUTES_MAX {
        let sign = if minutes < 0 { '-' } else { '+' };
        let of_day = minutes.unsigned_abs();
        let zone = zone(&format!("{sign}{:02}:{:02}", of_day / 60, of_day % 60));
        let layout = zone.layout();
        // The register keeps it as text.
        assert_eq!(Layout::parse(&layout.to_string()), Ok(layout));
        assert_eq!(Zone::of_layout(&layout), Some(zone));
        assert_eq!(Zone::parse(&zone.to_string()), Ok(zone));
        assert!(layout.runs_out_at_ms() > 4_102_444_800_000);
    }
    let twitter = Layout::parse("twitter").expect("a preset");
    assert_eq!(Zone::of_layout(&twitter), None);
}

fn any_zone() -> impl Strategy<Value = Zone> {
    (
        -Zone::MINUTES_MAX..=Zone::MINUTES_MAX,
        prop_oneof![Just('+'), Just('-')],
    )
        .prop_map(|(minutes, sign)| {
            let of_day = minutes.unsigned_abs();
            zone(&format!("{sign}{:02}:{:02}", of_day / 60, of_day % 60))
        })
}

proptest! {
    #[test]
    fn ids_round_trip_in_every_zone(
        zone in any_zone(), unix_ms in 947_000_000_000i64..4_102_000_000_000, sequence in 0u32..1 << SEQUENCE_BITS,
    ) {
        let biz = Biz::parse("A").unwrap();
        let (written_ms, begin) = readable::parts_of_state(zone.layout().state_at(unix_ms));
        prop_assert_eq!((written_ms, begin), (zone.written_ms(unix_ms), 0));
        let id = readable::format(written_ms, &biz, 3, sequence).unwrap();
        let parts = readable::parse(&id, zone).unwrap();
        prop_assert_eq!((parts.unix_ms, parts.sequence), (unix_ms, sequence));
    }

    /// Whoever starts at the first state that a floor of another zone leaves writes nothing that was written below it.
    #[test]
    fn between_zones_what_is_written_is_compared(
        old in any_zone(), new in any_zone(), used in 0i64..4_000_000_000_000, sequence in 0u64..1 << SEQUENCE_BITS,
    ) {
        let last = old.layout().state_at(used) + sequence;
        let first = Floor::below_state(old.layout(), last + 1).first_state(&new.layout());
        let (last_ms, _) = readable::parts_of_state(last);
        let (first_ms, begin) = readable::parts_of_state(first);
        prop_assert_eq!((first_ms, begin), (last_ms + 1, 0));
    }
}
