use keywright_core::{
    DecodeError, FloorError, Layout, LayoutProblem, LayoutTimeError, Preset, TimeLeft, WorkerId,
};
use proptest::prelude::*;

fn parse(text: &str) -> Layout {
    Layout::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn problems(text: &str) -> Vec<LayoutProblem> {
    Layout::parse(text).expect_err(text).problems
}

/// (preset, id, unix ms, datacenter, worker, sequence)
type Vector = (Preset, i64, i64, Option<u32>, u32, u64);

const VECTORS: [Vector; 7] = [
    // The id Wikipedia takes apart: a tweet of 2022-06-28T16:07:40.105Z, machine 378 = 11 << 5 | 26.
    (
        Preset::Twitter,
        1_541_815_603_606_036_480,
        1_656_432_460_105,
        Some(11),
        26,
        0,
    ),
    (
        Preset::Leaf,
        1_541_815_603_606_036_480,
        1_656_432_460_105,
        None,
        378,
        0,
    ),
    // seconds 100, worker 7, sequence 9 after 1463673600
    (
        Preset::Baidu,
        (100 << 35) | (7 << 13) | 9,
        1_463_673_700_000,
        None,
        7,
        9,
    ),
    (
        Preset::ShardingSphere,
        (1 << 22) | (1023 << 12) | 4095,
        1_477_958_400_001,
        None,
        1023,
        4095,
    ),
    // 39 bits of 10 ms, then sequence, then machine
    (
        Preset::Sonyflake,
        (3 << 24) | (255 << 16) | 65_535,
        1_409_529_600_030,
        None,
        65_535,
        255,
    ),
    // Instagram's own example: 1387263000 ms after the epoch, shard 1341, 5001 % 1024.
    (
        Preset::Instagram,
        (1_387_263_000 << 23) | (1341 << 10) | 905,
        1_315_607_284_721,
        None,
        1341,
        905,
    ),
    (
        Preset::Js53,
        (1 << 53) - 1,
        1_735_689_600_000 + (1 << 41) - 1,
        None,
        31,
        127,
    ),
];

#[test]
fn presets_decode_known_ids() {
    for (preset, id, unix_ms, datacenter, worker, sequence) in VECTORS {
        let layout = preset.layout();
        let decoded = layout
            .decode(id)
            .unwrap_or_else(|error| panic!("{}: {error}", preset.name()));
        assert_eq!(decoded.issued_at_ms, unix_ms, "{}", preset.name());
        assert_eq!(decoded.datacenter_id, datacenter, "{}", preset.name());
        assert_eq!(decoded.worker_id, worker, "{}", preset.name());
        assert_eq!(decoded.sequence, sequence, "{}", preset.name());
        assert!(!decoded.spare);
        let combined = datacenter.unwrap_or(0) << layout.worker_bits() | worker;
        let worker_id = WorkerId::new(i64::from(combined), &layout).expect("fits");
        let state = layout.ticks_at(unix_ms).expect("in time") << layout.sequence_bits() | sequence;
        assert_eq!(
            layout.compose(state, layout.worker_part(worker_id, false)),
            id,
            "{}",
            preset.name()
        );
    }
}

#[test]
fn presets_are_named_and_valid() {
    for preset in Preset::ALL {
        assert_eq!(parse(preset.name()), preset.layout());
        assert_eq!(preset.layout().to_string(), preset.name());
    }
    let twitter = "time=41,datacenter=5,worker=5,sequence=12,epoch=1288834974657,tick=1ms";
    assert_eq!(parse(twitter), Preset::Twitter.layout());
    assert_eq!(
        parse("time=41,worker=5,sequence=7,epoch=2025-01-01"),
        Preset::Js53.layout()
    );
}

#[test]
fn epochs_and_ticks_have_three_spellings() {
    for epoch in [
        "1735689600000",
        "2025-01-01",
        "2025-01-01T00:00:00Z",
        "2025-01-01T00:00:00.000Z",
    ] {
        assert_eq!(
            parse(&format!("twitter,epoch={epoch}")).epoch_ms(),
            1_735_689_600_000,
            "{epoch}"
        );
    }
    assert_eq!(
        parse("twitter,epoch=2024-02-29T12:34:56.789Z").epoch_ms(),
        1_709_210_096_789
    );
    for (tick, ms) in [("1ms", 1), ("10ms", 10), ("1s", 1000), ("3600s", 3_600_000)] {
        assert_eq!(parse(&format!("twitter,tick={tick}")).tick_ms(), ms);
    }
    for epoch in [
        "",
        "-1",
        "+1",
        "2025-02-29",
        "2025-1-1",
        "2025-01-01T24:00:00Z",
        "2025-01-01T00:00:00+01:00",
        "1e3",
        "99999999999999999999",
    ] {
        let value = epoch.to_owned();
        assert_eq!(
            problems(&format!("twitter,epoch={epoch}")),
            [LayoutProblem::Epoch { value }]
        );
    }
    for tick in [
        "",
        "1",
        "ms",
        "0ms",
        "3601s",
        "-1s",
        "1m",
        "99999999999999999999ms",
    ] {
        let value = tick.to_owned();
        assert_eq!(
            problems(&format!("twitter,tick={tick}")),
            [LayoutProblem::Tick { value }]
        );
    }
}

#[test]
fn spare_goes_above_the_worker_of_a_preset() {
    let layout = parse("leaf,worker=9,spare=1");
    assert_eq!(
        layout.to_string(),
        "time=41,spare=1,worker=9,sequence=12,epoch=1288834974657,tick=1ms"
    );
    let worker_id = WorkerId::new(3, &layout).expect("fits");
    let id = layout.compose(0, layout.worker_part(worker_id, true));
    assert_eq!(
        Preset::Leaf
            .layout()
            .decode(id)
            .expect("same bits")
            .worker_id,
        3 + 512
    );
}

#[test]
fn all_problems_are_told_at_once() {
    let found = problems("time=0,worker=23,sequence=64,spare=2,epoch=x,tick=y,nonsense,worker=1");
    assert_eq!(found.len(), 8, "{found:?}");
    assert!(problems("").contains(&LayoutProblem::Unknown {
        text: String::new()
    }));
    assert_eq!(
        problems("twitter,spare=1"),
        [LayoutProblem::TooManyBits { bits: 64 }]
    );
    assert_eq!(
        problems("time=41,worker=5,sequence=7"),
        [LayoutProblem::EpochMissing]
    );
    assert_eq!(problems("js53,unused=1"), [LayoutProblem::UnusedInPreset]);
    assert_eq!(
        problems(&"x".repeat(10_000)),
        [LayoutProblem::TooLong { bytes: 10_000 }]
    );
    let text = Layout::parse("time=0,worker=0,sequence=0,epoch=0")
        .expect_err("three fields")
        .to_string();
    assert_eq!(
        text,
        "time needs at least 1 bit; worker needs at least 1 bit; sequence needs at least 1 bit"
    );
}

#[test]
fn foreign_ids_are_refused() {
    let layout = Preset::Js53.layout();
    assert_eq!(layout.decode(-1), Err(DecodeError::Negative { id: -1 }));
    assert_eq!(
        layout.decode(1 << 53),
        Err(DecodeError::UnusedBits { id: 1 << 53 })
    );
    let gap = parse("time=40,unused=3,worker=5,sequence=7,unused=2,epoch=0");
    assert_eq!(gap.decode(1), Err(DecodeError::UnusedBits { id: 1 }));
    assert_eq!(
        gap.decode(1 << 15),
        Err(DecodeError::UnusedBits { id: 1 << 15 })
    );
    assert!(gap.decode(1 << 17).is_ok());
}

#[test]
fn time_runs_out() {
    let baidu = Preset::Baidu.layout();
    assert_eq!(baidu.runs_out_at_ms(), 1_732_109_056_000); // 2024-11-20T13:24:16Z
    let refused = LayoutTimeError::RanOut {
        unix_ms: 1_795_219_200_000,
        runs_out_at_ms: 1_732_109_056_000,
    };
    assert_eq!(baidu.check_time_left(1_795_219_200_000), Err(refused));
    assert_eq!(
        baidu.check_time_left(1_732_109_055_999),
        Ok(TimeLeft::WithinAYear {
            runs_out_at_ms: 1_732_109_056_000
        })
    );
    assert_eq!(
        baidu.check_time_left(1_600_000_000_000),
        Ok(TimeLeft::Ample)
    );
    assert!(matches!(
        baidu.check_time_left(0),
        Err(LayoutTimeError::BeforeEpoch { .. })
    ));
}

#[test]
fn floor_needs_time_on_top() {
    let twitter = Preset::Twitter.layout();
    assert_eq!(twitter.floor(1_288_834_974_658), Ok(1 << 22));
    let reversed = parse("worker=5,time=41,sequence=7,epoch=0");
    assert_eq!(reversed.floor(1), Err(FloorError::TimeNotHighest));
    assert!(reversed.ids_grow());
    assert!(!parse("sequence=7,time=41,worker=5,epoch=0").ids_grow());
    assert!(matches!(
        twitter.floor(0),
        Err(FloorError::Time(LayoutTimeError::BeforeEpoch { .. }))
    ));
}

/// A layout's text, its fields in any order with unused bits between.
fn any_layout_text() -> impl Strategy<Value = String> {
    let bits = (
        1u32..=41,
        0u32..=5,
        1u32..=8,
        1u32..=9,
        0u32..=1,
        0u32..=2,
        0u32..=2,
    );
    (bits, 0i64..=2_000_000_000_000, 1u32..=10_000)
        .prop_flat_map(
            |((time, datacenter, worker, sequence, spare, low, between), epoch, tick)| {
                let mut fields = vec![
                    format!("time={time}"),
                    format!("worker={worker}"),
                    format!("sequence={sequence}"),
                ];
                for (name, bits) in [
                    ("datacenter", datacenter),
                    ("spare", spare),
                    ("unused", low),
                    ("unused", between),
                ] {
                    if bits > 0 && (name != "unused" || time < 36) {
                        fields.push(format!("{name}={bits}"));
                    }
                }
                (Just(fields).prop_shuffle(), Just(epoch), Just(tick))
            },
        )
        .prop_map(|(fields, epoch, tick)| {
            format!("{},epoch={epoch},tick={tick}ms", fields.join(","))
        })
        .prop_filter("at most 63 bits", |text| Layout::parse(text).is_ok())
}

proptest! {
    #[test]
    fn text_round_trips(text in any_layout_text()) {
        let layout = parse(&text);
        prop_assert_eq!(parse(&layout.to_string()), layout);
    }

    #[test]
    fn ids_round_trip_and_never_meet(text in any_layout_text(), seeds in any::<[u64; 4]>(), spare: bool) {
        let layout = parse(&text);
        let [ticks, sequence, worker, other] = seeds;
        let ticks = ticks & layout.ticks_max();
        let sequence = sequence & ((1 << layout.sequence_bits()) - 1);
        let spare = spare && layout.has_spare();
        let worker = worker % (u64::from(layout.worker_id_max()) + 1);
        let worker_id = WorkerId::new(i64::try_from(worker).unwrap(), &layout).unwrap();
        let part = layout.worker_part(worker_id, spare);
        let id = layout.compose(ticks << layout.sequence_bits() | sequence, part);
        let decoded = layout.decode(id).unwrap();
        prop_assert_eq!(decoded.issued_at_ms, layout.unix_ms_of(ticks));
        prop_assert_eq!(decoded.sequence, sequence);
        prop_assert_eq!(decoded.spare, spare);
        let datacenter = decoded.datacenter_id.unwrap_or(0);
        prop_assert_eq!(datacenter << layout.worker_bits() | decoded.worker_id, worker_id.get());

        let other = other % (u64::from(layout.worker_id_max()) + 1);
        let other_part = layout.worker_part(WorkerId::new(i64::try_from(other).unwrap(), &layout).unwrap(), spare);
        prop_assert_eq!(other_part == part, other == worker);
    }

    #[test]
    fn ids_lie_between_smallest_and_largest(text in any_layout_text(), ticks: u64, state: u64, worker: u64) {
        let layout = parse(&text);
        let ticks = ticks % (layout.ticks_max() + 1);
        let state = state % ((layout.ticks_max() + 1) << layout.sequence_bits());
        let worker = i64::try_from(worker % (u64::from(layout.worker_id_max()) + 1)).unwrap();
        let id = layout.compose(state, layout.worker_part(WorkerId::new(worker, &layout).unwrap(), false));
        if state >> layout.sequence_bits() >= ticks {
            prop_assert!(id >= layout.smallest_id_from(ticks));
        } else {
            prop_assert!(id <= layout.largest_id_below(ticks));
        }
    }

    #[test]
    fn ticks_and_moments_agree(text in any_layout_text(), ticks: u64, within: u32) {
        let layout = parse(&text);
        let ticks = ticks & layout.ticks_max();
        let unix_ms = layout.unix_ms_of(ticks) + i64::from(within % layout.tick_ms());
        prop_assert_eq!(layout.ticks_at(unix_ms), Ok(ticks));
        prop_assert_eq!(layout.state_at(unix_ms), ticks << layout.sequence_bits());
    }

    #[test]
    fn any_text_is_a_layout_or_an_error(text in ".{0,300}") {
        let _ = Layout::parse(&text);
    }

    #[test]
    fn any_list_is_a_layout_or_an_error(parts in prop::collection::vec(("(time|worker|sequence|spare|unused|epoch|tick|leaf)", "[0-9a-zTZ:=.-]{0,8}"), 0..8)) {
        let text: Vec<String> = parts.into_iter().map(|(name, value)| format!("{name}={value}")).collect();
        if let Err(error) = Layout::parse(&text.join(",")) {
            prop_assert!(!error.problems.is_empty());
        }
    }
}

#[test]
fn worker_ids_fit_their_layout() {
    let layout = Preset::Twitter.layout();
    assert_eq!(WorkerId::new(1023, &layout).map(WorkerId::get), Ok(1023));
    for refused in [-1, 1024, i64::MAX, i64::MIN] {
        let error = WorkerId::new(refused, &layout).expect_err("out of range");
        assert_eq!((error.worker_id, error.worker_id_max), (refused, 1023));
    }
}
