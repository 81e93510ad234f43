//! What repeats the table of presets: SQL that is installed where no Rust runs, and what people read.

use std::fs;

use keywright_core::Preset;

fn file(name: &str) -> String {
    let path = format!("{}/../{name}", env!("CARGO_MANIFEST_DIR"));
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

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
fn mysql_reads_ids_by_the_same_presets() {
    let sql = file("sql/mysql/keywright_decode.sql");
    for preset in Preset::ALL {
        let (fields, epoch_ms, tick_ms) = facts(preset);
        let fields = fields.map(|(_, bits, shift)| format!("{bits}, {shift}"));
        let line = format!(
            "WHEN '{}' THEN SET number = ELT(place, {}, {epoch_ms}, {tick_ms});",
            preset.name(),
            fields.join(", ")
        );
        assert!(sql.contains(&line), "keywright_decode.sql lacks {line}");
    }
    assert_eq!(
        sql.matches(" THEN SET number = ELT(").count(),
        Preset::ALL.len()
    );
    let names = Preset::ALL.map(Preset::name);
    let comment = format!("Layouts are the presets {};", names.join(", "));
    assert!(
        sql.contains(&comment),
        "keywright_decode.sql lacks {comment}"
    );
    let [first @ .., last] = names;
    let hint = format!("unknown layout: use {} or {last}'", first.join(", "));
    assert!(sql.contains(&hint), "keywright_decode.sql lacks {hint}");
}

#[test]
fn the_documentation_shows_the_same_presets() {
    let page = file("docs/postgres/layouts.md");
    let (_, table) = page.split_once("| preset | bits, high to low |").unwrap();
    let (table, _) = table.split_once("\n\n").unwrap();
    for preset in Preset::ALL {
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
        let begin = format!("| `{}` | {}", preset.name(), fields.join(", "));
        let end = format!(" | {tick} | {epoch_ms}");
        let is_shown = |line: &str| {
            let behind = line.strip_prefix(&begin);
            behind.is_some_and(|behind| behind.contains(&end) && !behind.starts_with(','))
        };
        assert!(
            table.lines().any(is_shown),
            "layouts.md lacks {begin}…{end}"
        );
    }
    let rows = table.lines().filter(|line| line.starts_with("| `"));
    assert_eq!(rows.count(), Preset::ALL.len());
}
