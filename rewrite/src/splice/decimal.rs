//! Numbers in decimal, one after the other.

/// Digits of the largest number.
const DIGITS_MAX: usize = 20;
/// Bytes of the largest number and a comma, and a few so that they are copied in two steps.
const BLOCK_BYTES: usize = 24;

/// Numbers in decimal. Keys follow each other: mostly only the last two digits are others.
#[derive(Debug, Default)]
pub(crate) struct Decimal {
    number: u64,
    /// As they were formatted last, and a comma. They are not written to in between, or reading them would wait for that.
    digits: [u8; BLOCK_BYTES],
    length: usize,
    /// The number that the last two digits make.
    low: usize,
}

impl Decimal {
    /// Appends a number to `out`.
    #[inline]
    pub(crate) fn write(&mut self, number: u64, out: &mut Vec<u8>) {
        let end = self.write_block(number, out);
        out.truncate(end);
    }

    /// Appends a number and a comma to `out`.
    #[inline(always)]
    pub(crate) fn write_before_comma(&mut self, number: u64, out: &mut Vec<u8>) {
        let end = self.write_block(number, out);
        out.truncate(end + 1);
    }

    /// Appends a number, a comma and what else is in the block; where the number ends.
    #[inline(always)]
    fn write_block(&mut self, number: u64, out: &mut Vec<u8>) -> usize {
        let pair = self.last_two(number);
        let end = out.len() + self.length;
        // As many bytes each time, which is a few instructions.
        out.extend_from_slice(&self.digits);
        if let Some(pair) = pair
            && let Some(last) = out.get_mut(end - 2..end)
        {
            last.copy_from_slice(pair);
        }
        end
    }

    /// Makes it the number at hand: the last two digits, or `None` if all are formatted anew.
    #[inline(always)]
    fn last_two(&mut self, number: u64) -> Option<&'static [u8; 2]> {
        let step = number.checked_sub(self.number);
        let step = step.and_then(|step| usize::try_from(step).ok());
        let low = step.and_then(|step| step.checked_add(self.low));
        self.number = number;
        match low.and_then(|low| Some((low, PAIRS.get(low)?))) {
            Some((low, pair)) if self.length >= 2 => {
                self.low = low;
                Some(pair)
            }
            Some(_) | None => {
                self.format(number);
                None
            }
        }
    }

    #[cold]
    #[inline(never)]
    fn format(&mut self, number: u64) {
        let mut buffer = itoa::Buffer::new();
        let written = buffer.format(number).as_bytes();
        self.length = written.len();
        self.low = usize::try_from(number % 100).unwrap_or(usize::MAX);
        if let Some((digits, [comma, ..])) = self.digits.split_at_mut_checked(written.len()) {
            digits.copy_from_slice(written);
            *comma = b',';
        }
    }
}

/// Numbers in decimal with a comma behind each, as long as each other and ever smaller.
#[derive(Debug)]
pub(crate) struct Descending {
    number: u64,
    /// As it was formatted last, at the end of the block, and a comma. As in [`Decimal`], not written to in between.
    block: [u8; BLOCK_BYTES],
    /// The number that the last two digits make; none if there is one only.
    low: Option<u64>,
}

impl Descending {
    /// Numbers from this one down.
    pub(crate) fn new(number: u64) -> Self {
        let mut first = Self {
            number,
            block: [b','; BLOCK_BYTES],
            low: None,
        };
        first.format();
        first
    }

    /// Writes it at the end of `room`, and whatever before it: so many bytes that they are copied in two steps. `None` if there
    /// is less room.
    #[inline(always)]
    pub(crate) fn write_at_end(&self, room: &mut [u8]) -> Option<()> {
        let block: &mut [u8; BLOCK_BYTES] = room.last_chunk_mut()?;
        *block = self.block;
        if let (Some(low), [.., tens, ones, _]) = (self.low, block) {
            [*tens, *ones] = *PAIRS.get(usize::try_from(low).ok()?)?;
        }
        Some(())
    }

    /// To the number so much smaller, which is to be as long.
    #[inline(always)]
    pub(crate) fn go_down(&mut self, step: u64) {
        self.number = self.number.wrapping_sub(step);
        match self.low.and_then(|low| low.checked_sub(step)) {
            Some(low) => self.low = Some(low),
            None => self.format(),
        }
    }

    #[cold]
    #[inline(never)]
    fn format(&mut self) {
        let mut buffer = itoa::Buffer::new();
        let written = buffer.format(self.number).as_bytes();
        self.low = (written.len() >= 2).then_some(self.number % 100);
        let [digits @ .., _comma] = &mut self.block;
        if let Some(digits) = digits.last_chunk_mut::<DIGITS_MAX>()
            && let Some((_, digits)) = digits.split_at_mut_checked(DIGITS_MAX - written.len())
        {
            digits.copy_from_slice(written);
        }
    }
}

/// Numbers below 100, in two digits.
static PAIRS: [[u8; 2]; 100] = pairs();

#[expect(
    clippy::indexing_slicing,
    reason = "the index is from 1 to below the length"
)]
const fn pairs() -> [[u8; 2]; 100] {
    let mut pairs = [*b"00"; 100];
    let mut index = 1;
    while index < pairs.len() {
        let [tens, ones] = pairs[index - 1];
        pairs[index] = if ones == b'9' {
            [tens + 1, b'0']
        } else {
            [tens, ones + 1]
        };
        index += 1;
    }
    pairs
}

#[cfg(test)]
mod tests {
    use super::Decimal;

    #[test]
    fn numbers_are_written_as_they_are_whatever_came_before() {
        let small = [0, 1, 2, 5, 9, 10, 11, 89, 99, 100, 101, 155, 255];
        let large = [1 << 40, u64::MAX, u64::MAX - 8];
        for start in [0, 8, 99, 4_999_999_999, u64::MAX - 20, u64::MAX] {
            for step in small.into_iter().chain(large) {
                let mut decimal = Decimal::default();
                let mut number: u64 = start;
                for _ in 0..300 {
                    let mut written = b"before ".to_vec();
                    decimal.write(number, &mut written);
                    assert_eq!(written, format!("before {number}").as_bytes());
                    decimal.write_before_comma(number, &mut written);
                    assert_eq!(written, format!("before {number}{number},").as_bytes());
                    number = number.wrapping_add(step);
                }
            }
        }
    }
}
