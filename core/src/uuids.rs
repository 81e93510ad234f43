//! UUIDs (RFC 9562) out of what they are made of: a name, or a time and randomness.

use md5::Md5;
use sha1::{Digest, Sha1};

/// The bytes of a UUID, in the order in which it is written.
pub type Bytes = [u8; 16];

/// Version 3 of bytes alone, as Java's `UUID.nameUUIDFromBytes` makes it: a name with its namespace in front, or without one.
///
/// ```
/// let uuid = keywright_core::uuids::v3(&[], &[10, 20, 30]);
/// assert_eq!(u128::from_be_bytes(uuid), 0x7f49_b84d_0bbc_38e9_a493_7180_13ba_ace6);
/// ```
pub fn v3(namespace: &[u8], name: &[u8]) -> Bytes {
    let hash = Md5::new().chain_update(namespace).chain_update(name);
    of(3, u128::from_be_bytes(hash.finalize().into()))
}

/// Version 5: as version 3, by SHA-1.
pub fn v5(namespace: &[u8], name: &[u8]) -> Bytes {
    let hash = Sha1::new().chain_update(namespace).chain_update(name);
    let hash: [u8; 20] = hash.finalize().into();
    let first = hash.iter().take(16);
    of(
        5,
        first.fold(0, |bits, byte| (bits << 8) | u128::from(*byte)),
    )
}

/// Unix time in milliseconds at which version 1 begins to count: 1582-10-15.
const V1_EPOCH_S: u64 = 12_219_292_800;

/// The ticks of version 1, 100 ns each, at a time in nanoseconds since 1970.
pub fn v1_ticks(unix_ns: u64) -> u64 {
    unix_ns / 100 + V1_EPOCH_S * 10_000_000
}

/// Version 1: of a moment, a clock sequence and a node. What the random node is apart from every real one by is set here.
pub fn v1(ticks: u64, clock_sequence: u16, random_node: [u8; 6]) -> Bytes {
    const MULTICAST: u128 = 1 << 40;
    let (low, middle, high) = (
        ticks & 0xffff_ffff,
        (ticks >> 32) & 0xffff,
        (ticks >> 48) & 0xfff,
    );
    let time = u128::from((low << 32) | (middle << 16) | high);
    let node = random_node
        .iter()
        .fold(0, |bits, byte| (bits << 8) | u128::from(*byte));
    of(
        1,
        time << 64 | u128::from(clock_sequence) << 48 | node | MULTICAST,
    )
}

/// The ticks of version 7, 4096 to the millisecond, at a time in nanoseconds since 1970.
pub fn v7_ticks(unix_ns: u64) -> u64 {
    ((unix_ns / 1_000_000) << 12) | (((unix_ns % 1_000_000) << 12) / 1_000_000)
}

/// Version 7: of a moment and 62 bits of randomness. Those of later ticks are greater.
pub fn v7(ticks: u64, random: u64) -> Bytes {
    let time = ((ticks >> 12) << 16) | (ticks & 0xfff);
    of(7, (u128::from(time) << 64) | u128::from(random))
}

/// With version and variant in their places.
fn of(version: u8, bits: u128) -> Bytes {
    const PLACES: u128 = (0xf << 76) | (0b11 << 62);
    ((bits & !PLACES) | (u128::from(version) << 76) | (0b10 << 62)).to_be_bytes()
}
