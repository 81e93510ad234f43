//! A session between a client and an upstream that send anything: the first byte chooses rules and capabilities, then come
//! records of two bytes and a body, the highest bit of the first saying whose bytes they are. What it begins with, in `seeds`,
//! are conversations of `tests/hostile`.
#![no_main]

#[allow(dead_code, reason = "what only the tests use")]
#[path = "../../tests/drive/mod.rs"]
mod drive;

use drive::{Recorded, drive};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Some((choice, mut rest)) = data.split_first() else {
        return;
    };
    let (mut client, mut upstream) = (Vec::new(), Vec::new());
    while let [high, low, body @ ..] = rest {
        let len = usize::from(high & 0x7F) << 8 | usize::from(*low);
        let (bytes, after) = body.split_at(len.min(body.len()));
        if high & 0x80 == 0 {
            client.extend_from_slice(bytes);
        } else {
            upstream.extend_from_slice(bytes);
        }
        rest = after;
    }
    let whole = drive(*choice, &client, &upstream, &mut Recorded, || usize::MAX);
    let mut size = 0;
    let chunks = drive(*choice, &client, &upstream, &mut Recorded, || {
        size = size % 7 + 1;
        size
    });
    assert!(whole == chunks, "whole {whole}\nin chunks {chunks}");
});
