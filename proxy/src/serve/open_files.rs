//! How many files may be open: a client is one, and the server behind it another. What systems start with is often far below what `connections_max`
//! promises, while the hard limit, up to which a program may raise it, is not.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::config::Config;

/// A client and the server behind it.
const FILES_PER_CLIENT: u64 = 2;
/// What is open beside clients at most: sockets that are listened on, those of metrics, of the stores and of each thread, and a program that takes over.
const OTHER_FILES: u64 = 1_000;

/// What there is to do.
#[derive(Debug, PartialEq, Eq)]
enum Room {
    /// Nothing.
    Enough,
    /// The soft limit is to be the hard one, which is enough.
    IfRaised,
    /// The same, and that is so many only.
    TooLittle(u64),
}

/// Sees to it that all clients can be there whom the configuration lets in, as far as the system allows it.
pub fn make_room(config: &Config) {
    let (limit, needed) = (getrlimit(Resource::Nofile), files_max(config));
    let before = limit.current.unwrap_or(u64::MAX);
    let raise = || {
        let current = limit.maximum;
        setrlimit(Resource::Nofile, Rlimit { current, ..limit })
    };
    let most = match room(&limit, needed) {
        Room::Enough => return,
        Room::IfRaised => match raise() {
            Ok(()) => {
                tracing::info!(
                    before,
                    needed,
                    "raised the limit of open files to the hard one"
                );
                return;
            }
            Err(_) => before,
        },
        Room::TooLittle(most) => raise().map_or(before, |()| most),
    };
    tracing::warn!(
        limit = most,
        needed,
        "fewer files may be open than connections_max of [limits] and of key ports need: raise the hard limit (LimitNOFILE=, ulimit -Hn), or lower these"
    );
}

fn room(limit: &Rlimit, needed: u64) -> Room {
    let is_enough = |limit: Option<u64>| limit.is_none_or(|limit| limit >= needed);
    match limit.maximum {
        _ if is_enough(limit.current) => Room::Enough,
        Some(most) if most < needed => Room::TooLittle(most),
        Some(_) | None => Room::IfRaised,
    }
}

/// Files that are open when all clients are there who may be.
fn files_max(config: &Config) -> u64 {
    let clients = match config.listeners.is_empty() {
        true => 0,
        false => config.connections_max,
    };
    let ports = config.ports.iter().map(|port| port.limits.connections_max);
    let of_ports = ports.fold(0, u64::saturating_add);
    clients
        .saturating_mul(FILES_PER_CLIENT)
        .saturating_add(of_ports)
        .saturating_add(OTHER_FILES)
}

#[cfg(test)]
mod tests {
    use rustix::process::Rlimit;

    use super::{OTHER_FILES, Room, files_max, room};
    use crate::config::Config;

    #[test]
    fn the_limit_is_compared_with_all_clients_who_may_come() -> anyhow::Result<()> {
        const STORE: &str = "[store]\nurl = \"mysql://keywright@127.0.0.1:3306/keywright\"\n";
        const SERVER: &str =
            "[[listener]]\nbind = \"127.0.0.1:6033\"\nupstream = \"127.0.0.1:3306\"\n";
        let port = |number: u16, most: &str| {
            format!(
                "[[listener]]\nprotocol = \"redis\"\nbind = \"127.0.0.1:{number}\"\nkeys = {{ a = \"segment:a\" }}\n{most}\n"
            )
        };
        let (one, other) = (port(6399, ""), port(6398, "connections_max = 5"));
        for (text, expected) in [
            (format!("{STORE}{SERVER}"), 20_000),
            (
                format!("{STORE}{SERVER}[limits]\nconnections_max = 7\n"),
                14,
            ),
            (format!("{STORE}{one}"), 10_000),
            (format!("{STORE}{SERVER}{one}{other}"), 30_005),
        ] {
            let needed = files_max(&Config::parse(&text)?);
            assert_eq!(needed, expected + OTHER_FILES, "{text}");
        }
        Ok(())
    }

    #[test]
    fn the_hard_limit_is_all_that_there_can_be() {
        let of = |current, maximum| room(&Rlimit { current, maximum }, 21_000);
        assert_eq!(of(Some(65_536), Some(65_536)), Room::Enough);
        assert_eq!(of(Some(21_000), None), Room::Enough);
        assert_eq!(of(None, None), Room::Enough);
        assert_eq!(of(Some(1_024), Some(524_288)), Room::IfRaised);
        assert_eq!(of(Some(1_024), Some(21_000)), Room::IfRaised);
        assert_eq!(of(Some(1_024), None), Room::IfRaised);
        assert_eq!(of(Some(1_024), Some(4_096)), Room::TooLittle(4_096));
        assert_eq!(of(Some(4_096), Some(4_096)), Room::TooLittle(4_096));
    }
}
