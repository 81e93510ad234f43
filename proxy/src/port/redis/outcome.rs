//! What may become of a request.

use std::pin::Pin;

use keywright_resp::command::Hello;
use keywright_resp::reply::{Protocol, Writer};
use keywright_store::Failure;

use crate::port::keys::PortKeys;
use crate::port::redis::answer;
use crate::port::redis::client::Client;
use crate::port::redis::held::HeldReply;
use crate::port::redis::told::{AskedKeys, Away, Moved};
use crate::users::login::ComingUser;

/// What becomes of a request.
pub(super) enum Outcome {
    /// It was answered.
    Answered,
    /// Its reply says its keys, or why there are none.
    Issued(AskedKeys),
    /// Its reply waits for the store, and so do those behind it.
    Unconfirmed(HeldReply),
    /// It needs keys.
    Keys(AskedKeys),
    /// It is carried out when what was written has gone out: there is no room for its reply now.
    PutOff,
    /// A password is being looked at; what is answered if it is right.
    Login(ComingUser, Greeting),
    /// Something is being done in the store.
    Doing(Doing),
    /// Keys of its slot are given by another program, which it was told.
    Moved(Moved),
    /// They are by another program at this address: the connection ends.
    Gone,
    /// The client goes.
    Quit,
    /// It speaks another protocol.
    Stray,
    /// It said too many wrong passwords.
    Guesses,
    /// It asked too often without having said who it is.
    Stranger,
}

impl From<Away> for Outcome {
    fn from(away: Away) -> Self {
        match away {
            Away::Moved(moved) => Self::Moved(moved),
            Away::Gone => Self::Gone,
        }
    }
}

/// What is answered once a client is let in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Greeting {
    /// `AUTH`.
    Ok,
    /// `HELLO`, with what it asked for.
    Hello {
        /// Another protocol.
        protocol: Option<Protocol>,
        /// A name of the connection.
        name: Option<Vec<u8>>,
    },
}

impl Greeting {
    pub(super) fn of(hello: &Hello<'_>) -> Self {
        Self::Hello {
            protocol: hello.protocol,
            name: hello.name.map(<[u8]>::to_vec),
        }
    }

    /// Writes it, for a client that is let in.
    pub(super) fn write(self, client: &mut Client, keys: &PortKeys, to: &mut Writer<'_>) {
        match self {
            Self::Ok => to.ok(),
            Self::Hello { protocol, name } => {
                if let Some(protocol) = protocol {
                    client.speak(protocol);
                    to.speak(protocol);
                }
                if let Some(name) = name {
                    client.set_name(&name);
                }
                answer::hello(client, keys, to);
            }
        }
    }
}

/// What is told of something that was done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Done {
    /// That it was.
    Ok,
    /// A number.
    Number(u64),
}

/// Something that is being done.
pub(super) type Doing = Pin<Box<dyn Future<Output = Result<Done, Failure>> + Send>>;

impl Done {
    pub(super) fn write(self, to: &mut Writer<'_>) {
        match self {
            Self::Ok => to.ok(),
            Self::Number(number) => to.integer(i64::try_from(number).unwrap_or(i64::MAX)),
        }
    }
}
