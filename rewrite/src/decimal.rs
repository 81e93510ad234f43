//! Numbers in decimal, one after the other.

/// Digits of the largest number.
const DIGITS_MAX: usize = 20;

/// Numbers in decimal. Keys follow each other: mostly only the last two digits are others.
#[derive(Debug, Default)]
pub(crate) struct Decimal {
    number: u64,
    /// As they were formatted last. They are not written to in between, or reading them would wait for that.
    digits: [u8; DIGITS_MAX],
    length: usize,
    /// The number that the last two digits make.
    low: u8,
}

impl Decimal {
    /// Appends a number to `out`.
    #[inline]
    pub(crate) fn write(&mut self, number: u64, out: &mut Vec<u8>) {
        let low = number
            .checked_sub(self.number)
            .and_then(|step| step.checked_add(u64::from(self.low)))
            .and_then(|low| u8::try_from(low).ok());
        self.number = number;
        match low.filter(|low| *low < 100 && self.length >= 2) {
            Some(low) => self.low = low,
            None => self.format(number),
        }
        // As many bytes each time, which is a few instructions; then those that are no digits go.
        let end = out.len() + self.length;
        out.extend_from_slice(&self.digits);
        if self.length >= 2
            && let Some(last) = out.get_mut(end - 2..end)
        {
            last.copy_from_slice(&[b'0' + self.low / 10, b'0' + self.low % 10]);
        }
        out.truncate(end);
    }

    #[cold]
    fn format(&mut self, number: u64) {
        let mut buffer = itoa::Buffer::new();
        let written = buffer.format(number).as_bytes();
        self.length = written.len();
        self.low = u8::try_from(number % 100).unwrap_or(0);
        if let Some(digits) = self.digits.get_mut(..written.len()) {
            digits.copy_from_slice(written);
        }
    }
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
                    number = number.wrapping_add(step);
                }
            }
        }
    }
}
