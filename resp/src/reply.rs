//! Replies, as bytes.

/// Which protocol a connection speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Protocol {
    /// What every client understands.
    #[default]
    Resp2,
    /// After `HELLO 3`: with maps and null of their own.
    Resp3,
}

impl Protocol {
    /// As `HELLO` names it.
    #[must_use]
    pub fn number(self) -> u8 {
        match self {
            Self::Resp2 => 2,
            Self::Resp3 => 3,
        }
    }
}

/// Appends replies to a buffer. An array or a map is begun with its length, and its elements follow.
#[derive(Debug)]
pub struct Writer<'a> {
    out: &'a mut Vec<u8>,
    protocol: Protocol,
}

/// Most digits of a number of 64 bits, and its sign.
const DIGITS_MAX: usize = 20;

impl<'a> Writer<'a> {
    /// Into this buffer.
    pub fn new(out: &'a mut Vec<u8>, protocol: Protocol) -> Self {
        Self { out, protocol }
    }

    /// The protocol that is written.
    #[must_use]
    pub fn protocol(&self) -> Protocol {
        self.protocol
    }

    /// Writes another protocol from now on.
    pub fn speak(&mut self, protocol: Protocol) {
        self.protocol = protocol;
    }

    /// `+OK`.
    pub fn ok(&mut self) {
        self.simple("OK");
    }

    /// A line. Line ends in it become blanks.
    pub fn simple(&mut self, text: &str) {
        self.line(b'+', text);
    }

    /// An error: a code in capitals, and words. Line ends become blanks.
    pub fn error(&mut self, code: &str, message: &str) {
        self.out.push(b'-');
        self.out.extend_from_slice(code.as_bytes());
        self.line(b' ', message);
    }

    /// A number.
    pub fn integer(&mut self, value: i64) {
        self.out.push(b':');
        if value < 0 {
            self.out.push(b'-');
        }
        self.digits(value.unsigned_abs());
        self.end();
    }

    /// Bytes.
    pub fn bulk(&mut self, bytes: &[u8]) {
        self.length(b'$', bytes.len());
        self.out.extend_from_slice(bytes);
        self.end();
    }

    /// A number as bytes.
    pub fn bulk_number(&mut self, value: u64) {
        let digits = usize::try_from(
            value
                .checked_ilog10()
                .map_or(1, |log| log.saturating_add(1)),
        );
        self.length(b'$', digits.unwrap_or(1));
        self.digits(value);
        self.end();
    }

    /// Nothing.
    pub fn null(&mut self) {
        self.out.extend_from_slice(match self.protocol {
            Protocol::Resp2 => b"$-1\r\n",
            Protocol::Resp3 => b"_\r\n",
        });
    }

    /// An array of so many replies that follow.
    pub fn array(&mut self, count: usize) {
        self.length(b'*', count);
    }

    /// A map of so many keys, each followed by its value: an array of both in RESP2.
    pub fn map(&mut self, pairs: usize) {
        match self.protocol {
            Protocol::Resp2 => self.array(pairs.saturating_mul(2)),
            Protocol::Resp3 => self.length(b'%', pairs),
        }
    }

    /// Text of several lines.
    pub fn text(&mut self, text: &str) {
        match self.protocol {
            Protocol::Resp2 => self.bulk(text.as_bytes()),
            Protocol::Resp3 => {
                // Three letters and a colon say what it is.
                self.length(b'=', text.len().saturating_add(4));
                self.out.extend_from_slice(b"txt:");
                self.out.extend_from_slice(text.as_bytes());
                self.end();
            }
        }
    }

    fn line(&mut self, kind: u8, text: &str) {
        self.out.push(kind);
        let bytes = text.bytes();
        self.out.extend(bytes.map(|byte| match byte {
            b'\r' | b'\n' => b' ',
            other => other,
        }));
        self.end();
    }

    fn length(&mut self, kind: u8, length: usize) {
        self.out.push(kind);
        self.digits(u64::try_from(length).unwrap_or(u64::MAX));
        self.end();
    }

    fn digits(&mut self, mut value: u64) {
        let mut digits = [b'0'; DIGITS_MAX];
        let mut first = DIGITS_MAX;
        for (at, digit) in digits.iter_mut().enumerate().rev() {
            // Below 10, so it is a digit.
            *digit = b'0'.wrapping_add(u8::try_from(value % 10).unwrap_or(0));
            value /= 10;
            first = at;
            if value == 0 {
                break;
            }
        }
        self.out
            .extend_from_slice(digits.get(first..).unwrap_or_default());
    }

    fn end(&mut self) {
        self.out.extend_from_slice(b"\r\n");
    }
}
