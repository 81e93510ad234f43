//! Keys that do not tell how many there are: a keyed permutation of the numbers of a tag.
//!
//! The numbers of a tag are issued as ever, 1, 2, 3, …; each goes out as what a permutation of `1..=2^bits - 1` makes of it. A
//! permutation is a bijection, so as long as no number is issued twice and the permutation stays the same, no key is. Another
//! key or another width is another permutation, whose keys may be those of the first: so whoever keeps a tag keeps the
//! [`Fingerprint`] of its permutation beside it, and issues nothing with another.
//!
//! # Construction
//!
//! An alternating Feistel network of ten rounds over SipHash-1-3: the shape and the number of rounds of FF1 (NIST SP 800-38G). The number's
//! high half has `bits / 2` bits, rounded up, the low half the others; even rounds change the high half, odd ones the low half:
//!
//! ```text
//! F(round, half) = SipHash-1-3 under the key, of the 8 bytes
//!                  [1, bits, round, 0, the half as 32 bits, big-endian]
//! round 0, 2, …:  high ^= F(round, low)   cut to the width of high
//! round 1, 3, …:  low  ^= F(round, high)  cut to the width of low
//! ```
//!
//! Each round is its own inverse, whatever `F` is, so the whole is a bijection of the halves. No result is ever out of range, so
//! there is no cycle-walking but in one place: 0 is not a key (MySQL takes it as a request for one), so the number that would become
//! 0 becomes what 0 becomes. That is a bijection of what is left, and takes one more step for one number of the range.
//!
//! It differs from FF1 where FF1 is general: halves are added bit by bit and not as numbers; there is no tweak, for a tag has a key of its
//! own; and `F` is SipHash in place of AES. SipHash (Aumasson and Bernstein, INDOCRYPT 2012) was made as a pseudorandom function of short
//! messages under a secret key of 128 bits. 1-3 is its faster variant, which hash tables of Rust, Ruby and Python are keyed with against
//! whoever chooses what goes in; no attack on it is known, but it has less in reserve than 2-4. Here nobody sees what it yields, only what
//! ten calls make of halves. In the server they take 100 ns, on any processor, and look up no tables. Ten of SipHash-2-4 took 145 ns; of
//! AES-128 200 ns where there are instructions for it, and microseconds where there are none; FF1 itself takes 14 µs. To hide volume must
//! cost less than `nextval`, which took 157 ns there.
//!
//! # Why ten rounds
//!
//! With a random `F`, four rounds already cannot be told from a random permutation by whoever sees few enough pairs (Luby and Rackoff
//! 1988; for halves of unlike width: Hoang and Rogaway, *On Generalized Feistel Networks*, CRYPTO 2010). The generic attacks that are
//! known need, with five rounds, much of the table, and with six several whole tables, of which there is one here (Patarin, *Generic
//! Attacks on Feistel Schemes*, ASIACRYPT 2001, who asks for more rounds where the numbers have few bits). FF1 takes ten. The attacks on it
//! and on FF3 (Bellare, Hoang, Tessaro, CCS 2016; Durak, Vaudenay, CRYPTO 2017; Hoang, Tessaro, Trieu, EUROCRYPT 2018) use many tweaks on a
//! small domain, or the way FF3 takes a tweak in; here there is none. NIST wants a domain of at least a million for FF1; the smallest here
//! has two thousand million. Eight rounds would be a fifth faster, but the cost is bounded with ten, and these are what others have looked at.
//!
//! What an observer has is some hundreds or millions of keys, about in the order they were issued. What he must not be able to do
//! is to tell how many there are between two of them, or in all. That is less than what is asked of a cipher.
//!
//! What is not hidden: that a key has been issued, from whoever sees it; and a number, from whoever may read the bound of the tag.

use std::fmt;

use siphasher::sip::SipHasher13;
use thiserror::Error;

/// How wide the keys of a hidden tag are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HideBits(u8);

/// Why a number or some bytes are not what hides a tag.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum HideError {
    /// There are three widths.
    #[error("hidden keys have 63, 53 or 31 bits, not {0}")]
    Bits(i64),
    /// A key of 128 bits.
    #[error("a hide key has {} bytes, not {found}", HideKey::BYTES)]
    KeyBytes {
        /// Length of what was given.
        found: usize,
    },
    /// A key as text.
    #[error("a hide key is {} hexadecimal digits, with \\x before them or without", 2 * HideKey::BYTES)]
    KeyText,
}

impl HideBits {
    /// All that a bigint holds, what a JavaScript number holds exactly, what an integer holds.
    pub const ALL: [Self; 3] = [Self(63), Self(53), Self(31)];

    /// A width out of what somebody wrote.
    ///
    /// # Errors
    /// There is no such width.
    pub fn new(bits: i64) -> Result<Self, HideError> {
        Self::ALL
            .into_iter()
            .find(|known| i64::from(known.0) == bits)
            .ok_or(HideError::Bits(bits))
    }

    /// The width in bits.
    pub const fn get(self) -> u8 {
        self.0
    }

    /// The largest number and the largest key; the smallest is 1.
    pub const fn largest(self) -> u64 {
        (1 << self.0) - 1
    }
}

/// The secret that chooses a permutation. It is shown to nobody who prints it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct HideKey([u8; Self::BYTES]);

impl HideKey {
    /// Length, bytes.
    pub const BYTES: usize = 16;

    /// A key out of bytes that were kept or given.
    ///
    /// # Errors
    /// There are more or fewer than [`HideKey::BYTES`].
    pub fn of(bytes: &[u8]) -> Result<Self, HideError> {
        <[u8; Self::BYTES]>::try_from(bytes)
            .map(Self)
            .map_err(|_| HideError::KeyBytes { found: bytes.len() })
    }

    /// A key out of a text: hexadecimal digits, as PostgreSQL shows a `bytea` or without what it has before them.
    ///
    /// # Errors
    /// It is no such text. What it is instead is not told.
    pub fn parse(text: &str) -> Result<Self, HideError> {
        let digits = text.strip_prefix("\\x").unwrap_or(text);
        let is_key = digits.len() == 2 * Self::BYTES
            && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
        match u128::from_str_radix(digits, 16) {
            Ok(number) if is_key => Ok(Self(number.to_be_bytes())),
            Ok(_) | Err(_) => Err(HideError::KeyText),
        }
    }

    /// The key of these bytes, all of them random.
    pub const fn new(bytes: [u8; Self::BYTES]) -> Self {
        Self(bytes)
    }

    /// The bytes, to be kept.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for HideKey {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("HideKey")
    }
}

/// What tells permutations apart without telling the key: 64 bits, of key, width and construction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fingerprint([u8; 8]);

impl Fingerprint {
    /// The bytes, for comparisons.
    pub const fn bytes(self) -> [u8; 8] {
        self.0
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(out, "{byte:02x}"))
    }
}

/// The permutation of one tag.
pub struct Hiding {
    bits: HideBits,
    network: Network,
}

/// Without the key.
impl fmt::Debug for Hiding {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            out,
            "Hiding({} bits, {})",
            self.bits.get(),
            self.fingerprint()
        )
    }
}

impl Hiding {
    /// The permutation of `1..=2^bits - 1` that the key chooses.
    pub fn new(key: &HideKey, bits: HideBits) -> Self {
        Self {
            bits,
            network: Network::new(key, bits.get()),
        }
    }

    /// How wide its keys are.
    pub const fn bits(&self) -> HideBits {
        self.bits
    }

    /// What tells it from others.
    pub fn fingerprint(&self) -> Fingerprint {
        Fingerprint(self.network.mixed(FINGERPRINT, 0).to_be_bytes())
    }

    /// The key of a number; `None` if the number is 0 or wider than the keys.
    ///
    /// ```
    /// use keywright_core::hiding::{HideBits, HideKey, Hiding};
    ///
    /// let hiding = Hiding::new(&HideKey::of(&[7; 16]).unwrap(), HideBits::new(53).unwrap());
    /// let keys: Vec<_> = (1..=3).filter_map(|number| hiding.hide(number)).collect();
    /// assert_eq!(keys, [7245895803420959, 8440009484584976, 1957015568967557]);
    /// assert_eq!(hiding.reveal(8440009484584976), Some(2));
    /// ```
    #[inline]
    pub fn hide(&self, number: u64) -> Option<u64> {
        if number == 0 || number > self.bits.largest() {
            return None;
        }
        Some(self.network.hide(number))
    }

    /// The number of a key; `None` if it can be no key of this width.
    pub fn reveal(&self, key: u64) -> Option<u64> {
        if key == 0 || key > self.bits.largest() {
            return None;
        }
        Some(self.network.reveal(key))
    }
}

/// Rounds of the network.
const ROUNDS: u8 = 10;
/// In place of a round, where the block yields the fingerprint.
const FINGERPRINT: u8 = 255;
/// Which construction this is: another would be another permutation.
const CONSTRUCTION: u8 = 1;

/// The network over numbers of `bits` bits, 2 to 63.
struct Network {
    function: SipHasher13,
    bits: u8,
}

impl Network {
    fn new(key: &HideKey, bits: u8) -> Self {
        Self {
            function: SipHasher13::new_with_key(&key.0),
            bits,
        }
    }

    /// What the number becomes among those that are not 0.
    #[inline]
    fn hide(&self, number: u64) -> u64 {
        match self.permuted(number, false) {
            0 => self.permuted(0, false),
            key => key,
        }
    }

    fn reveal(&self, key: u64) -> u64 {
        match self.permuted(key, true) {
            0 => self.permuted(0, true),
            number => number,
        }
    }

    #[inline]
    fn permuted(&self, value: u64, backwards: bool) -> u64 {
        let low_bits = self.bits / 2;
        let high_mask = (1 << (self.bits - low_bits)) - 1;
        let low_mask = (1 << low_bits) - 1;
        let (mut high, mut low) = ((value >> low_bits) & high_mask, value & low_mask);
        for step in 0..ROUNDS {
            let round = if backwards { ROUNDS - 1 - step } else { step };
            if round % 2 == 0 {
                high ^= self.mixed(round, low) & high_mask;
            } else {
                low ^= self.mixed(round, high) & low_mask;
            }
        }
        (high << low_bits) | low
    }

    /// The round function; a half has at most 32 bits.
    #[inline]
    fn mixed(&self, round: u8, half: u64) -> u64 {
        let head = u64::from_be_bytes([CONSTRUCTION, self.bits, round, 0, 0, 0, 0, 0]);
        self.function.hash(&(head | half).to_be_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::{HideBits, HideError, HideKey, Hiding, Network};

    fn key(byte: u8) -> HideKey {
        HideKey::of(&[byte; HideKey::BYTES]).unwrap()
    }

    /// Every width up to 24 bits, every number: no key comes twice, none is 0, each leads back.
    #[test]
    fn every_number_has_a_key_of_its_own() {
        for bits in 2..=24 {
            let network = Network::new(&key(bits), bits);
            let numbers = 1..1_u64 << bits;
            let mut seen = vec![0_u64; (1 << bits) / 64 + 1];
            for number in numbers {
                let key = network.hide(number);
                assert!(key != 0 && key < 1 << bits, "{bits}: {number} to {key}");
                let (word, bit) = (usize::try_from(key / 64).unwrap(), 1 << (key % 64));
                assert_eq!(seen[word] & bit, 0, "{bits} bits: {key} came twice");
                seen[word] |= bit;
                // The way back takes as long as the way there.
                if bits <= 20 || number % 16 == 0 {
                    assert_eq!(network.reveal(key), number, "{bits} bits");
                }
            }
        }
    }

    #[test]
    fn keys_are_read_as_postgresql_shows_them() {
        let same = "0707070707070707070707070707070a";
        let parsed = HideKey::parse(same).unwrap();
        assert!(parsed.bytes().ends_with(&[7, 10]));
        assert_eq!(
            HideKey::parse(&format!("\\x{}", same.to_uppercase())),
            Ok(parsed)
        );
        for none in [
            "",
            "\\x",
            &same[1..],
            &format!("0{same}"),
            "+707070707070707070707070707070a",
            "x",
        ] {
            assert_eq!(HideKey::parse(none), Err(HideError::KeyText), "{none}");
        }
        let shown = format!("{:?}", Hiding::new(&parsed, HideBits::ALL[0]));
        assert!(!shown.contains("0707"), "{shown}");
    }

    /// The one number that takes a second step.
    #[test]
    fn nothing_becomes_0() {
        for bits in HideBits::ALL {
            let hiding = Hiding::new(&key(3), bits);
            let number = hiding.network.permuted(0, true);
            let around = hiding.hide(number).unwrap();
            assert_eq!(around, hiding.network.permuted(0, false));
            assert_eq!(hiding.reveal(around), Some(number));
            assert_eq!(hiding.hide(0), None);
            assert_eq!(hiding.reveal(0), None);
            assert_eq!(hiding.hide(bits.largest() + 1), None);
            assert_eq!(hiding.reveal(bits.largest() + 1), None);
            assert!(hiding.hide(bits.largest()).is_some());
        }
    }
}
