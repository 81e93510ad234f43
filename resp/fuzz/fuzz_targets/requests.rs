//! Requests of a client that sends anything: they must be the same whole and in pieces, and what another reader takes for them.
#![no_main]

#[path = "../../tests/oracle/mod.rs"]
mod oracle;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| oracle::agrees(data));
