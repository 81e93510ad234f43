//! One side of the exchange: whole packets, numbered on their own. Where only one leg has TLS, or a packet is answered by the
//! proxy itself, the numbers of the two sides differ.

use std::io;

use keywright_core::Cause;
use keywright_wire::packets::error_payload;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// Packets of one exchange at most.
pub(super) const AUTH_PACKETS_MAX: usize = 64;
/// Longest packet of the exchange, bytes.
const AUTH_BYTES_MAX: usize = 64 << 10;
/// So much is read at once, where more may be read than a packet, bytes: whole packets of nearly every login.
const AHEAD_BYTES: usize = 1 << 10;

/// A connection on which packets follow each other by number.
pub(super) struct Leg<S> {
    pub(super) stream: S,
    /// The next packet's number, whoever sends it.
    sequence: u8,
    /// Whether what went last went out.
    awaits_answer: bool,
    /// What has come and was not taken yet.
    read: Vec<u8>,
    /// Whether that may be more than one packet.
    reads_ahead: bool,
}

impl<S> Leg<S> {
    /// The next packet has this number. Nothing beyond a packet is read.
    pub(super) fn new(stream: S, sequence: u8) -> Self {
        Self {
            stream,
            sequence,
            awaits_answer: false,
            read: Vec::new(),
            reads_ahead: false,
        }
    }

    /// From now on what has come is read at once, for whoever takes [`Leg::into_parts`] over. Not where TLS may begin behind a packet.
    pub(super) fn reading_ahead(mut self) -> Self {
        self.reads_ahead = true;
        self
    }

    /// The connection, and what was read of it beyond the last packet.
    pub(super) fn into_parts(self) -> (S, Vec<u8>) {
        (self.stream, self.read)
    }

    /// Whether it is the other side's turn.
    pub(super) fn awaits_answer(&self) -> bool {
        self.awaits_answer
    }

    /// The next packet begins an exchange of its own.
    pub(super) fn restart(&mut self) {
        self.sequence = 0;
    }

    /// The same exchange on what is made of the connection, which is read ahead.
    ///
    /// # Errors
    /// It cannot be made, or more was read than the last packet: that would be taken for something said inside.
    pub(super) async fn into_stream<T, F>(self, make: impl FnOnce(S) -> F) -> io::Result<Leg<T>>
    where
        F: Future<Output = io::Result<T>>,
    {
        if !self.read.is_empty() {
            return Err(invalid(
                "something came behind the packet that TLS begins with",
            ));
        }
        let made = Leg::new(make(self.stream).await?, self.sequence);
        Ok(made.reading_ahead())
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Leg<S> {
    /// The next packet's payload. May be dropped while it waits: what has come is kept.
    ///
    /// # Errors
    /// Those of the socket; `InvalidData` when it is too long or has the wrong number.
    pub(super) async fn packet(&mut self) -> io::Result<Vec<u8>> {
        loop {
            let wanted = match self.read.get(..4) {
                Some(&[a, b, c, sequence]) => {
                    let len =
                        usize::try_from(u32::from_le_bytes([a, b, c, 0])).unwrap_or(usize::MAX);
                    if len > AUTH_BYTES_MAX {
                        return Err(invalid("a packet of the handshake is too long"));
                    }
                    if sequence != self.sequence {
                        return Err(invalid("packets of the handshake are out of order"));
                    }
                    4 + len
                }
                Some(_) | None => 4,
            };
            let missing = wanted.saturating_sub(self.read.len());
            if missing == 0 && self.read.len() >= 4 {
                self.sequence = self.sequence.wrapping_add(1);
                self.awaits_answer = false;
                let payload = self.read.get(4..wanted).unwrap_or_default().to_vec();
                self.read.drain(..wanted);
                return Ok(payload);
            }
            // That so much is to come is a promise of the peer's.
            let room = match self.reads_ahead {
                true => AHEAD_BYTES,
                false => missing.min(AHEAD_BYTES),
            };
            self.read.reserve(room);
            let limit = u64::try_from(room).unwrap_or(u64::MAX);
            let mut rest = (&mut self.stream).take(limit);
            if rest.read_buf(&mut self.read).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }

    /// Sends a packet.
    ///
    /// # Errors
    /// Those of the socket; `InvalidData` when it is too long.
    pub(super) async fn send(&mut self, payload: &[u8]) -> io::Result<()> {
        if payload.len() > AUTH_BYTES_MAX {
            return Err(invalid("a packet of the handshake is too long"));
        }
        let [a, b, c, ..] = payload.len().to_le_bytes();
        let mut whole = Vec::with_capacity(payload.len() + 4);
        whole.extend([a, b, c, self.sequence]);
        whole.extend_from_slice(payload);
        self.sequence = self.sequence.wrapping_add(1);
        self.awaits_answer = true;
        self.stream.write_all(&whole).await?;
        self.stream.flush().await
    }
}

fn invalid(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

/// Why the proxy itself ends an exchange. The client gets it as an error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Refusal {
    pub(super) cause: Cause,
    pub(super) message: String,
}

impl Refusal {
    pub(super) fn new(cause: Cause, message: impl Into<String>) -> Self {
        Self {
            cause,
            message: message.into(),
        }
    }

    /// The error packet's payload.
    pub(super) fn payload(&self) -> Vec<u8> {
        error_payload(
            self.cause.mysql_errno(),
            self.cause.sqlstate(),
            &self.message,
        )
    }
}

/// How an exchange goes wrong.
#[derive(Debug)]
pub(super) enum Failed {
    /// A connection broke, or the server broke the protocol.
    Io(io::Error),
    /// The client gets the error.
    Refused(Refusal),
}

impl From<io::Error> for Failed {
    fn from(error: io::Error) -> Self {
        Failed::Io(error)
    }
}

impl From<Refusal> for Failed {
    fn from(refusal: Refusal) -> Self {
        Failed::Refused(refusal)
    }
}

/// A client that sent something malformed gets an error.
pub(super) fn of_client(error: io::Error) -> Failed {
    if error.kind() == io::ErrorKind::InvalidData {
        Refusal::new(Cause::PacketMalformed, error.to_string()).into()
    } else {
        Failed::Io(error)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};
    use tokio::time::timeout;

    use super::Leg;

    #[tokio::test]
    async fn a_wait_that_is_given_up_loses_nothing_and_reads_no_further() -> std::io::Result<()> {
        let (mut far, near) = duplex(64);
        let mut leg = Leg::new(near, 3);
        for part in [b"\x05\0".as_slice(), b"\0\x03he"] {
            far.write_all(part).await?;
            let nothing = timeout(Duration::from_millis(1), leg.packet()).await;
            assert!(nothing.is_err());
        }
        far.write_all(b"llo\0\0\0\x04next").await?;
        assert_eq!(leg.packet().await?, b"hello");
        assert_eq!(leg.packet().await?, b"");
        leg.send(b"ours").await?;
        let mut heard = [0; 8];
        far.read_exact(&mut heard).await?;
        assert_eq!(&heard, b"\x04\0\0\x05ours");
        let mut rest = [0; 4];
        leg.stream.read_exact(&mut rest).await?;
        assert_eq!(&rest, b"next");
        Ok(())
    }

    #[tokio::test]
    async fn what_was_read_ahead_is_there_for_the_next_packet_and_for_others() -> std::io::Result<()>
    {
        let (mut far, near) = duplex(64);
        far.write_all(b"\x02\0\0\0on\0\0\0\x01\x01\0\0\x02xrest")
            .await?;
        let mut leg = Leg::new(near, 0).reading_ahead();
        for packet in [b"on".as_slice(), b"", b"x"] {
            assert_eq!(leg.packet().await?, packet);
        }
        assert_eq!(leg.into_parts().1, b"rest");
        Ok(())
    }

    /// Taken for what TLS protects, it would be somebody else's words in the peer's mouth.
    #[tokio::test]
    async fn nothing_that_came_before_tls_is_taken_into_it() -> std::io::Result<()> {
        let (mut far, near) = duplex(64);
        far.write_all(b"\x01\0\0\0xmore").await?;
        let mut leg = Leg::new(near, 0).reading_ahead();
        leg.packet().await?;
        let inside = leg.into_stream(|stream| std::future::ready(Ok(stream)));
        let error = inside.await.map(drop).map_err(|error| error.kind());
        assert_eq!(error, Err(std::io::ErrorKind::InvalidData));
        Ok(())
    }

    #[tokio::test]
    async fn a_wrong_number_and_a_giant_are_errors() -> std::io::Result<()> {
        for bytes in [b"\x01\0\0\x01x", b"\0\0\x02\0x"] {
            let (mut far, near) = duplex(64);
            far.write_all(bytes).await?;
            assert!(Leg::new(near, 0).packet().await.is_err());
        }
        Ok(())
    }
}
