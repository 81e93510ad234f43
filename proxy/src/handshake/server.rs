//! Which server it is, in the words of those who read statements as it does.

use keywright_rewrite::{Flavour, Server};
use keywright_wire::handshake::greeting::ServerVersion;

/// The server of a version text; `None` if there is no number in it.
pub(crate) fn server_of(version: &[u8]) -> Option<Server> {
    ServerVersion::read(version).map(server)
}

/// The same of one that was read.
pub(super) fn server(version: ServerVersion) -> Server {
    Server {
        flavour: if version.is_mariadb {
            Flavour::MariaDb
        } else {
            Flavour::MySql
        },
        version: version.number,
    }
}
