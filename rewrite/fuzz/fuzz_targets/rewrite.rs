//! What was rewritten needs no key any more.
#![no_main]

mod modes;

use keywright_core::KeyBatch;
use keywright_rewrite::{Insert, InsertHead, KeyColumn, KeyForm, Modes, Plan, Unread};
use libfuzzer_sys::fuzz_target;

fn plan(text: &[u8], modes: &Modes) -> Result<Plan, Unread> {
    let live = [b"id".to_vec(), b"a".to_vec(), b"b".to_vec()];
    let key = KeyColumn {
        name: b"id",
        form: KeyForm::Integer,
        live: &live,
        watched: false,
        is_signed: false,
        is_strict: false,
    };
    let head = InsertHead::read(text, modes)?;
    Insert::read(head, text, modes)?.plan(text, modes, &key)
}

fuzz_target!(|data: &[u8]| {
    let Some((first, text)) = data.split_first() else {
        return;
    };
    let modes = modes::of(*first);
    let Ok(once) = plan(text, &modes) else { return };
    let keys = KeyBatch::Numbers {
        first: 1_000_001,
        spacing: 1,
        count: once.keys(),
    };
    let mut out = Vec::new();
    once.splice(text, &keys, &mut out)
        .expect("as many keys as asked for");
    if let Some(how) = once.in_place(text, &keys) {
        let mut room = text.to_vec();
        room.resize(how.new_bytes(), 0);
        once.write_in_place(&how, &mut room)
            .expect("it is the text that was planned");
        assert_eq!(room, out, "in place");
    }
    once.prepare(text, once.variant(None), 1).ok();
    match plan(&out, &modes) {
        Ok(again) => assert_eq!((again.keys(), again.rows()), (0, once.rows())),
        Err(Unread::Unsupported(_)) if once.zero_is_ambiguous() => {}
        Err(error) => panic!("{error} in {}", String::from_utf8_lossy(&out)),
    }
});
