//! UUIDs: the examples of RFC 9562, Java's, and order.

use keywright_core::uuids::{Bytes, v1, v1_ticks, v3, v5, v7, v7_ticks};

/// The namespace of names of the Internet.
const DNS: u128 = 0x6ba7_b810_9dad_11d1_80b4_00c0_4fd4_30c8;

fn number(uuid: Bytes) -> u128 {
    u128::from_be_bytes(uuid)
}

#[test]
fn names_have_the_uuids_that_others_give_them() {
    assert_eq!(
        number(v3(&[], &[10, 20, 30])),
        0x7f49_b84d_0bbc_38e9_a493_7180_13ba_ace6
    );
    let (dns, name) = (DNS.to_be_bytes(), b"www.example.com");
    assert_eq!(
        number(v3(&dns, name)),
        0x5df4_1881_3aed_3515_88a7_2f4a_814c_f09e
    );
    assert_eq!(
        number(v5(&dns, name)),
        0x2ed6_657d_e927_568b_95e1_2665_a8ae_a6a2
    );
}

/// The moment of the RFC's examples, 2022-02-22T19:22:22Z.
const MOMENT_NS: u64 = 1_645_557_742_000_000_000;

#[test]
fn moments_are_where_the_rfc_has_them() {
    // A random node has the multicast bit, which the example's has, too.
    let example = v1(
        v1_ticks(MOMENT_NS),
        0x33c8,
        [0x9f, 0x6b, 0xde, 0xce, 0xd8, 0x46],
    );
    assert_eq!(number(example), 0xc232_ab00_9414_11ec_b3c8_9f6b_dece_d846);
    let example = v7(v7_ticks(MOMENT_NS) | 0xcc3, 0x18c4_dc0c_0c07_398f);
    assert_eq!(number(example), 0x017f_22e2_79b0_7cc3_98c4_dc0c_0c07_398f);
    assert_eq!(v1(0, 0, [0; 6])[10], 1);
}

#[test]
fn later_ticks_of_version_7_are_greater() {
    let ticks = [0, 243, 245, 999_999, 1_000_000, 2_000_000, 1 << 50]
        .map(|after| v7_ticks(MOMENT_NS + after));
    assert_eq!(ticks[0], ticks[1]);
    assert_eq!(ticks[0] + 1, ticks[2]);
    for [earlier, later] in ticks[1..].array_windows() {
        assert!(earlier < later);
        assert!(v7(*earlier, u64::MAX) < v7(*later, 0));
    }
}
