//! How fast statements are read and rewritten: `cargo run --release -p keywright-rewrite --example speed`.
//!
//! Prints the best of many short rounds, for one thread: gigabytes of statement text per second, and nanoseconds per statement.

use std::hint::black_box;
use std::time::Instant;

use keywright_core::KeyBatch;
use keywright_rewrite::{
    Flavour, Insert, InsertHead, KeyColumn, KeyForm, Modes, Server, kind, last_insert_id_use,
};

const MODES: Modes = Modes {
    no_auto_value_on_zero: Some(false),
    strict: Some(true),
    ..Modes::plain(Server {
        flavour: Flavour::MariaDb,
        version: 101_119,
    })
};

fn plan_only(text: &[u8]) {
    let key = KeyColumn {
        name: b"id",
        form: KeyForm::Integer,
        live: &[],
        watched: false,
        is_signed: false,
        is_strict: false,
    };
    let _ = black_box(
        InsertHead::read(text, &MODES)
            .and_then(|head| Insert::read(head, text, &MODES))
            .and_then(|insert| insert.plan(text, &MODES, &key)),
    );
}

fn rewrite(text: &[u8], out: &mut Vec<u8>) {
    let key = KeyColumn {
        name: b"id",
        form: KeyForm::Integer,
        live: &[],
        watched: false,
        is_signed: false,
        is_strict: false,
    };
    let plan = InsertHead::read(text, &MODES)
        .and_then(|head| Insert::read(head, text, &MODES))
        .and_then(|insert| insert.plan(text, &MODES, &key));
    let Ok(plan) = plan else { return };
    let keys = KeyBatch::Numbers {
        first: 7_200_000_000_000_000_000,
        spacing: 1,
        count: plan.keys(),
    };
    out.clear();
    // A count that fits, so there is no error to see.
    let _ = plan.splice(text, &keys, out);
}

fn measure(name: &str, text: &[u8], mut work: impl FnMut(&[u8])) {
    let rounds = (1_000_000 / text.len().max(1)).clamp(1, 2_000);
    let best = (0..300)
        .map(|_| {
            let start = Instant::now();
            for _ in 0..rounds {
                work(black_box(text));
            }
            start.elapsed().as_secs_f64() / rounds as f64
        })
        .fold(f64::INFINITY, f64::min);
    println!(
        "{name:<44} {:>9} bytes {:>10.0} ns {:>8.2} GB/s",
        text.len(),
        best * 1e9,
        text.len() as f64 / best / 1e9
    );
}

fn rows(head: &str, count: usize, row: impl Fn(usize) -> String) -> Vec<u8> {
    let rows: Vec<String> = (0..count).map(row).collect();
    format!("{head} {}", rows.join(",")).into_bytes()
}

fn main() {
    let one = b"INSERT INTO `orders` (`customer_id`, `status`, `note`, `amount`, `currency`, `created_at`, `updated_at`) VALUES \
        (4711, 'open', 'please ring twice and leave it with the neighbour', 129.95, 'EUR', '2026-11-21 05:54:02', NOW())";
    let string = "x".repeat(120);
    let strings = rows("INSERT INTO t (a) VALUES", 1000, |_| {
        format!("('{string}')")
    });
    let mixed = rows("INSERT INTO t (a, b, c) VALUES", 1000, |row| {
        format!("({row}, 'name {row}', '2026-11-21 00:00:00')")
    });
    let numbers = rows("INSERT INTO t (a, b, c, d) VALUES", 1000, |row| {
        format!("({row},{},{}.5,{})", row * 7919, row * 31, row + 1_000_000)
    });
    let named = rows("INSERT INTO t (id, a) VALUES", 1000, |row| {
        format!("(NULL, {row})")
    });
    let dump = rows("INSERT INTO t (id, a, b) VALUES", 100_000, |row| {
        format!("({},'row {row}',{row})", row + 1)
    });
    let mut out = Vec::new();
    measure("first look", one, |text| {
        black_box(kind(text, &MODES));
    });
    measure("head only", one, |text| {
        let _ = black_box(InsertHead::read(text, &MODES));
    });
    measure("head and columns", one, |text| {
        let _ = black_box(
            InsertHead::read(text, &MODES).and_then(|head| Insert::read(head, text, &MODES)),
        );
    });
    measure("one row, key absent", one, |text| rewrite(text, &mut out));
    measure("1000 rows of a 120-byte string", &strings, |text| {
        rewrite(text, &mut out)
    });
    measure("… planned only", &strings, plan_only);
    measure("1000 rows of short strings", &mixed, |text| {
        rewrite(text, &mut out)
    });
    measure("1000 rows of numbers", &numbers, |text| {
        rewrite(text, &mut out)
    });
    measure("… planned only", &numbers, plan_only);
    measure("1000 rows, key NULL", &named, |text| {
        rewrite(text, &mut out)
    });
    measure("100,000 rows with keys", &dump, |text| {
        rewrite(text, &mut out)
    });
    measure("may it see LAST_INSERT_ID()", &strings, |text| {
        black_box(last_insert_id_use(text, &MODES));
    });
}
