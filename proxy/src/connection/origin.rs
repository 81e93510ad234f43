//! Where a client comes from, in the words of the PROXY protocol, version 2: what a load balancer before the proxy says, and what
//! the proxy says to the server. <https://www.haproxy.org/download/3.0/doc/proxy-protocol.txt>

use std::io;
use std::net::SocketAddr;

use ppp::v2::{Addresses, Builder, Command, Header, Protocol, Version};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::connection::stream::Stream;

/// The part of a header that every one has: a signature, what it is, and how long the rest is.
const FIXED_BYTES: usize = 16;
/// Longest header, bytes: addresses, and what balancers add about TLS and themselves.
const HEADER_BYTES_MAX: usize = 4096;

/// The two ends of the connection that a client has made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Origin {
    client: SocketAddr,
    reached: SocketAddr,
}

impl Origin {
    /// As the socket says; `None` for a UNIX socket.
    pub(crate) fn of(stream: &Stream) -> Option<Self> {
        match stream {
            Stream::Tcp(stream) => Some(Self {
                client: stream.peer_addr().ok()?,
                reached: stream.local_addr().ok()?,
            }),
            Stream::Unix(_) => None,
            Stream::Tls(stream) => Self::of(stream.get_ref().0),
        }
    }

    /// The address that the client has connected from.
    pub(crate) fn client(&self) -> SocketAddr {
        self.client
    }

    /// Reads the header that a connection begins with, and no byte more. `None`: the one who sent it speaks for itself, or for
    /// somebody who has no address.
    ///
    /// # Errors
    /// The connection broke, or does not begin with a header.
    pub(crate) async fn read(stream: &mut Stream) -> io::Result<Option<Self>> {
        let mut bytes = vec![0; FIXED_BYTES];
        stream.read_exact(&mut bytes).await?;
        let rest = match bytes.last_chunk::<2>() {
            Some(length) if bytes.starts_with(ppp::v2::PROTOCOL_PREFIX) => {
                usize::from(u16::from_be_bytes(*length))
            }
            Some(_) | None => return Err(malformed()),
        };
        if FIXED_BYTES + rest > HEADER_BYTES_MAX {
            return Err(malformed());
        }
        bytes.resize(FIXED_BYTES + rest, 0);
        let more = bytes.get_mut(FIXED_BYTES..).unwrap_or_default();
        stream.read_exact(more).await?;
        let header = Header::try_from(bytes.as_slice()).map_err(|_| malformed())?;
        Ok(match (header.command, header.addresses) {
            (Command::Proxy, Addresses::IPv4(ends)) => Some(Self {
                client: (ends.source_address, ends.source_port).into(),
                reached: (ends.destination_address, ends.destination_port).into(),
            }),
            (Command::Proxy, Addresses::IPv6(ends)) => Some(Self {
                client: (ends.source_address, ends.source_port).into(),
                reached: (ends.destination_address, ends.destination_port).into(),
            }),
            (Command::Proxy, Addresses::Unspecified | Addresses::Unix(_)) | (Command::Local, _) => {
                None
            }
        })
    }

    /// Says to a server whom a new connection is for. With nothing known it is the proxy's own.
    ///
    /// # Errors
    /// The connection broke.
    pub(crate) async fn write(origin: Option<Self>, stream: &mut Stream) -> io::Result<()> {
        let addresses = origin.map_or(Addresses::Unspecified, |origin| {
            (origin.client, origin.reached).into()
        });
        let header = match addresses {
            Addresses::IPv4(_) | Addresses::IPv6(_) | Addresses::Unix(_) => {
                Builder::with_addresses(Version::Two | Command::Proxy, Protocol::Stream, addresses)
            }
            Addresses::Unspecified => Builder::with_addresses(
                Version::Two | Command::Local,
                Protocol::Unspecified,
                addresses,
            ),
        };
        stream.write_all(&header.build()?).await
    }
}

fn malformed() -> io::Error {
    io::ErrorKind::InvalidData.into()
}
