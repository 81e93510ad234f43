//! The SQL functions that make UUIDs. They need neither shared memory nor an identity: those of a moment carry random bits.

use keywright_core::uuids;
use pgrx::datum::Uuid;
use pgrx::pg_extern;

use crate::server::backend::BackendCell;
use crate::server::{clock, random};

/// The moment of this backend's last UUID of a version, in its ticks: the next one is of a later one, also when the clock is set back.
struct Moments(BackendCell<u64>);

static V1: Moments = Moments(BackendCell::new(0));
static V7: Moments = Moments(BackendCell::new(0));

impl Moments {
    fn next(&self, now: u64) -> u64 {
        let next = now.max(self.0.get().saturating_add(1));
        self.0.set(next);
        next
    }
}

/// Clock sequence and node of this backend's UUIDs of version 1: random, for backends share their moments.
static V1_SOURCE: BackendCell<Option<[u8; 8]>> = BackendCell::new(None);

#[pg_extern(sql = false)]
fn keywright_uuid_v1() -> Uuid {
    let source = V1_SOURCE.get().unwrap_or_else(random::bytes);
    V1_SOURCE.set(Some(source));
    let [a, b, node @ ..] = source;
    let ticks = V1.next(uuids::v1_ticks(clock::wall_ns()));
    Uuid::from_bytes(uuids::v1(ticks, u16::from_be_bytes([a, b]), node))
}

#[pg_extern(sql = false)]
fn keywright_uuid_v7() -> Uuid {
    let ticks = V7.next(uuids::v7_ticks(clock::wall_ns()));
    Uuid::from_bytes(uuids::v7(ticks, u64::from_be_bytes(random::bytes())))
}

#[pg_extern(sql = false)]
fn keywright_uuid_v3_of_bytes(name: &[u8]) -> Uuid {
    Uuid::from_bytes(uuids::v3(&[], name))
}

#[pg_extern(sql = false)]
fn keywright_uuid_v3(namespace: Uuid, name: &[u8]) -> Uuid {
    Uuid::from_bytes(uuids::v3(namespace.as_bytes(), name))
}

#[pg_extern(sql = false)]
fn keywright_uuid_v5(namespace: Uuid, name: &[u8]) -> Uuid {
    Uuid::from_bytes(uuids::v5(namespace.as_bytes(), name))
}
