//! Everything that reads text reads any text.
#![no_main]

mod modes;

use keywright_rewrite::{
    kind, load_target, prepare_source, last_insert_id_use, split, tables_touched, use_target,
};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Some((first, text)) = data.split_first() else {
        return;
    };
    let modes = modes::of(*first);
    let _ = (
        kind(text, &modes),
        last_insert_id_use(text, &modes),
        use_target(text, &modes),
        load_target(text, &modes),
    );
    let _ = (prepare_source(text, &modes), tables_touched(text, &modes));
    let whole: usize = split(text, &modes)
        .iter()
        .map(|piece| piece.range.len())
        .sum();
    assert_eq!(whole, text.len());
});
