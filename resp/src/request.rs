//! Requests in the bytes of a client: arrays of bulk strings, or lines of words.

use crate::fault::Fault;
use crate::inline;
use crate::limits::Limits;
use crate::span::Span;

/// Reads one request after another. What was read of one that is not there whole is not read again: a client that sends byte by byte
/// costs no more than one that does not.
#[derive(Debug)]
pub struct Reader {
    limits: Limits,
    /// Of the request under way, as all that follows.
    spans: Vec<Span>,
    /// Arguments of inline commands that are not as they were sent: quoted ones.
    unquoted: Vec<u8>,
    /// Bytes that were read.
    at: usize,
    phase: Phase,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Nothing was read.
    Start,
    /// So many arguments are to come.
    Arguments(u32),
    /// The line has no end up to `at`.
    Line,
}

/// What was read.
#[derive(Debug)]
pub enum Read<'a> {
    /// There is no whole request yet.
    Incomplete,
    /// One request.
    Request(Request<'a>),
}

/// The arguments of one request; the first is the command. Without any it is to be ignored.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    sent: &'a [u8],
    unquoted: &'a [u8],
    spans: &'a [Span],
}

impl<'a> Request<'a> {
    /// How many bytes it took: the next request begins behind them.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.sent.len()
    }

    /// How many arguments it has.
    #[must_use]
    pub fn count(&self) -> usize {
        self.spans.len()
    }

    /// An argument, by its place.
    #[must_use]
    pub fn argument(&self, index: usize) -> Option<&'a [u8]> {
        self.slice(self.spans.get(index)?)
    }

    /// The arguments from a place on.
    pub fn arguments(&self, from: usize) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let request = *self;
        let spans = self.spans.get(from..).unwrap_or_default().iter();
        spans.filter_map(move |span| request.slice(span))
    }

    fn slice(&self, span: &Span) -> Option<&'a [u8]> {
        match span {
            Span::Sent(range) => self.sent.get(range.clone()),
            Span::Unquoted(range) => self.unquoted.get(range.clone()),
        }
    }
}

/// A number before CR and LF.
enum Number {
    /// The line has no end yet.
    Incomplete,
    /// It and the place behind the line; `None`: it is none that could be a length.
    Read(Option<u32>, usize),
}

/// Most digits of a length.
const DIGITS_MAX: usize = 9;

impl Reader {
    /// Of a connection that begins.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            spans: Vec::new(),
            unquoted: Vec::new(),
            at: 0,
            phase: Phase::Start,
        }
    }

    /// Keeps to other limits, from the next request on.
    pub fn limit(&mut self, limits: Limits) {
        self.limits = limits;
    }

    /// The request that `sent` begins with. After [`Read::Incomplete`] it must begin with the same bytes, and have more; after a
    /// request it begins behind that.
    ///
    /// # Errors
    /// It begins with no request: nothing can be read any more.
    pub fn read<'a>(&'a mut self, sent: &'a [u8]) -> Result<Read<'a>, Fault> {
        let is_whole = match self.phase {
            Phase::Start => match sent.first() {
                None => return Ok(Read::Incomplete),
                Some(b'*') => self.begin(sent)?,
                Some(_) => self.line(sent)?,
            },
            Phase::Arguments(left) => self.bulks(sent, left)?,
            Phase::Line => self.line(sent)?,
        };
        if !is_whole {
            if sent.len() > self.request_bytes_max() {
                return Err(Fault::TooLong);
            }
            return Ok(Read::Incomplete);
        }
        if self.at > self.request_bytes_max() {
            return Err(Fault::TooLong);
        }
        self.phase = Phase::Start;
        Ok(Read::Request(Request {
            sent: sent.get(..self.at).unwrap_or_default(),
            unquoted: &self.unquoted,
            spans: &self.spans,
        }))
    }

    fn request_bytes_max(&self) -> usize {
        usize::try_from(self.limits.request_bytes_max).unwrap_or(usize::MAX)
    }

    /// Reads how many arguments there are, then those that are there. True: all are.
    fn begin(&mut self, sent: &[u8]) -> Result<bool, Fault> {
        self.spans.clear();
        if sent.get(1) == Some(&b'-') {
            return self.nothing(sent);
        }
        match number(sent, 1)? {
            Number::Incomplete => Ok(false),
            Number::Read(Some(count), at) if count <= self.limits.arguments_max => {
                self.at = at;
                self.bulks(sent, count)
            }
            Number::Read(_, _) => Err(Fault::ArgumentCount),
        }
    }

    /// An array that is null: as an empty one.
    fn nothing(&mut self, sent: &[u8]) -> Result<bool, Fault> {
        match number(sent, 2)? {
            Number::Incomplete => Ok(false),
            Number::Read(Some(1), at) => {
                self.at = at;
                Ok(true)
            }
            Number::Read(_, _) => Err(Fault::ArgumentCount),
        }
    }

    fn bulks(&mut self, sent: &[u8], mut left: u32) -> Result<bool, Fault> {
        while left > 0 {
            self.phase = Phase::Arguments(left);
            match sent.get(self.at) {
                None => return Ok(false),
                Some(b'$') => {}
                Some(other) => return Err(Fault::NoBulk(*other)),
            }
            let (length, begin) = match number(sent, self.at.saturating_add(1))? {
                Number::Incomplete => return Ok(false),
                Number::Read(Some(length), begin) if length <= self.limits.argument_bytes_max => {
                    (length, begin)
                }
                Number::Read(_, _) => return Err(Fault::ArgumentLength),
            };
            let end = begin.saturating_add(usize::try_from(length).unwrap_or(usize::MAX));
            match (sent.get(end), sent.get(end.saturating_add(1))) {
                (Some(b'\r'), Some(b'\n')) => {}
                (None | Some(b'\r'), None) => return Ok(false),
                (Some(_), _) | (None, Some(_)) => return Err(Fault::NoLineEnd),
            }
            self.spans.push(Span::Sent(begin..end));
            self.at = end.saturating_add(2);
            left -= 1;
        }
        Ok(true)
    }

    /// A line of words.
    fn line(&mut self, sent: &[u8]) -> Result<bool, Fault> {
        if self.phase == Phase::Start {
            self.at = 0;
            self.phase = Phase::Line;
        }
        let unread = sent.get(self.at..).unwrap_or_default();
        let Some(end) = unread.iter().position(|byte| *byte == b'\n') else {
            self.at = sent.len();
            return Ok(false);
        };
        let end = self.at.saturating_add(end);
        self.at = end.saturating_add(1);
        if self.at > self.request_bytes_max() {
            return Err(Fault::TooLong);
        }
        let line = sent.get(..end).unwrap_or_default();
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let arguments_max = usize::try_from(self.limits.arguments_max).unwrap_or(usize::MAX);
        self.spans.clear();
        self.unquoted.clear();
        inline::split(line, arguments_max, &mut self.spans, &mut self.unquoted)?;
        Ok(true)
    }
}

/// The digits from a place to CR and LF.
fn number(sent: &[u8], from: usize) -> Result<Number, Fault> {
    let digits = sent.get(from..).unwrap_or_default();
    let mut value = 0_u32;
    for (count, byte) in digits.iter().enumerate() {
        match byte {
            b'0'..=b'9' if count < DIGITS_MAX => {
                value = value
                    .saturating_mul(10)
                    .saturating_add(u32::from(byte.wrapping_sub(b'0')));
            }
            b'\r' => {
                let end = from.saturating_add(count);
                return match sent.get(end.saturating_add(1)) {
                    None => Ok(Number::Incomplete),
                    Some(b'\n') => Ok(Number::Read(
                        (count > 0).then_some(value),
                        end.saturating_add(2),
                    )),
                    Some(_) => Err(Fault::NoLineEnd),
                };
            }
            _ => return Ok(Number::Read(None, from)),
        }
    }
    Ok(Number::Incomplete)
}
