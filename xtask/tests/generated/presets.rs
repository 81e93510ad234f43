//! What repeats the table of presets: SQL that is installed where no Rust runs, and what people read.

use keywright_core::Preset;
use keywright_testkit::Result;
use keywright_testkit::docs::{generated_part, table};

/// A field's name, bits, and how many there are to the right of it; 0 bits and 0: no such field.
type Field = (&'static str, u32, u32);

/// Fields, epoch in unix milliseconds and milliseconds per tick, as ids of single bits are read.
fn facts(preset: Preset) -> ([Field; 4], i64, i64) {
    let layout = preset.layout();
    let epoch_ms = layout.decode(0).unwrap().issued_at_ms;
    let mut masks = [0_i64; 4];
    let mut tick_ms = i64::MAX;
    for bit in 0..63 {
        let id = 1_i64 << bit;
        let Ok(read) = layout.decode(id) else {
            continue;
        };
        let elapsed_ms = read.issued_at_ms - epoch_ms;
        if elapsed_ms > 0 {
            tick_ms = tick_ms.min(elapsed_ms);
        }
        let is_datacenter = read.datacenter_id.is_some_and(|of| of > 0);
        let is_in = [
            elapsed_ms > 0,
            is_datacenter,
            read.worker_id > 0,
            read.sequence > 0,
        ];
        assert_eq!(
            is_in.iter().filter(|is_in| **is_in).count(),
            1,
            "{preset:?}"
        );
        for (mask, is_in) in masks.iter_mut().zip(is_in) {
            *mask |= if is_in { id } else { 0 };
        }
    }
    let [time, datacenter, worker, sequence] = masks.map(|mask| match mask {
        0 => (0, 0),
        mask => (mask.count_ones(), mask.trailing_zeros()),
    });
    let named = |name, (bits, shift)| (name, bits, shift);
    let fields = [
        named("time", time),
        named("datacenter", datacenter),
        named("worker", worker),
        named("sequence", sequence),
    ];
    (fields, epoch_ms, tick_ms)
}

#[test]
fn mysql_reads_ids_by_the_same_presets() -> Result<()> {
    let mut text = String::new();
    for preset in Preset::ALL {
        let (fields, epoch_ms, tick_ms) = facts(preset);
        let fields = fields.map(|(_, bits, shift)| format!("{bits}, {shift}"));
        text += &format!(
            "        WHEN '{}' THEN SET number = ELT(place, {}, {epoch_ms}, {tick_ms});\n",
            preset.name(),
            fields.join(", ")
        );
    }
    let [first @ .., last] = Preset::ALL.map(Preset::name);
    text += &format!(
        "        ELSE\n            SIGNAL SQLSTATE '22023' SET MESSAGE_TEXT = 'unknown layout: use {} or {last}';\n",
        first.join(", ")
    );
    generated_part("sql/mysql/keywright_decode.sql", "presets", &text)
}

#[test]
fn the_documentation_shows_the_same_presets() -> Result<()> {
    let rows = Preset::ALL.map(|preset| {
        let (mut fields, epoch_ms, tick_ms) = facts(preset);
        fields.sort_by_key(|(_, _, shift)| std::cmp::Reverse(*shift));
        let fields = fields.iter().filter(|(_, bits, _)| *bits > 0);
        let fields: Vec<_> = fields
            .map(|(name, bits, _)| format!("{bits} {name}"))
            .collect();
        let tick = match tick_ms % 1000 {
            0 => format!("{} s", tick_ms / 1000),
            _ => format!("{tick_ms} ms"),
        };
        let name = format!("`{}`", preset.name());
        [name, fields.join(", "), tick, epoch_ms.to_string()]
    });
    let head = ["preset", "bits, high to low", "tick", "epoch, unix ms"];
    generated_part("docs/postgres/layouts.md", "presets", &table(head, rows))
}
