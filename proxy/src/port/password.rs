//! The password of a key port.

/// The only user where there are no others.
pub(super) const USER: &[u8] = b"default";

/// Takes as long for one that is nearly right as for any other of its length.
pub(super) fn is_same(given: &[u8], password: &[u8]) -> bool {
    let differs = |(one, other): (&u8, &u8)| std::hint::black_box(one ^ other);
    let unlike = given.iter().zip(password).map(differs);
    let unlike = unlike.fold(0, |all, byte| std::hint::black_box(all | byte));
    given.len() == password.len() && unlike == 0
}
