//! What a reload takes of listeners, and what only a start does.

use std::mem::discriminant;

use super::{Config, Listener, Port};

impl Config {
    /// In what the listeners of a newer file differ that only a start takes; `None`: in nothing.
    #[must_use]
    pub fn listens_otherwise(&self, newer: &Config) -> Option<String> {
        let gone = |of: &Config, other: &Config, how: &str| -> Vec<String> {
            let binds = of
                .binds()
                .filter(|bind| other.binds().all(|its| its != *bind));
            binds.map(|bind| format!("{bind} is {how}")).collect()
        };
        let listeners = self.listeners.iter().filter_map(|old| {
            let new = newer.listeners.iter().find(|new| new.bind == old.bind)?;
            Some((&old.bind, old.differs_in(new)?))
        });
        let ports = self.ports.iter().filter_map(|old| {
            let new = newer.ports.iter().find(|new| new.bind == old.bind)?;
            Some((&old.bind, old.differs_in(new)?))
        });
        let changed = listeners
            .chain(ports)
            .map(|(bind, option)| format!("{bind} differs in {option}"));
        let mut told: Vec<String> = changed.collect();
        told.extend(gone(self, newer, "gone"));
        told.extend(gone(newer, self, "new"));
        if told.is_empty() && !self.is_listed_as(newer) {
            told.push("they stand in another order, or have another protocol".to_owned());
        }
        (!told.is_empty()).then(|| told.join(", "))
    }

    /// Clients are told apart by the places of what they have come to.
    fn is_listed_as(&self, newer: &Config) -> bool {
        let listeners = |of: &Config| -> Vec<String> {
            of.listeners.iter().map(|its| its.bind.clone()).collect()
        };
        let ports =
            |of: &Config| -> Vec<String> { of.ports.iter().map(|its| its.bind.clone()).collect() };
        listeners(self) == listeners(newer) && ports(self) == ports(newer)
    }
}

impl Listener {
    /// The first option that differs, of those that may not change while the program runs.
    fn differs_in(&self, newer: &Listener) -> Option<&'static str> {
        let same_admin = match (&self.admin, &newer.admin) {
            (Some(one), Some(other)) => one.is_same_place(other),
            (None, None) => true,
            (Some(_), None) | (None, Some(_)) => false,
        };
        first_that_differs(&[
            ("upstream", self.upstream == newer.upstream),
            ("the server of admin", same_admin),
            ("check", self.unchecked == newer.unchecked),
            (
                "proxy_protocol",
                self.proxy_protocol == newer.proxy_protocol,
            ),
            (
                "upstream_proxy_protocol",
                self.upstream_proxy_protocol == newer.upstream_proxy_protocol,
            ),
        ])
    }
}

impl Port {
    /// The same. Names, hosts, password and certificates may change.
    fn differs_in(&self, newer: &Port) -> Option<&'static str> {
        first_that_differs(&[
            (
                "protocol",
                discriminant(&self.protocol) == discriminant(&newer.protocol),
            ),
            ("tls", self.tls.is_some() == newer.tls.is_some()),
            ("users", self.has_users == newer.has_users),
            ("cluster_address or order_ttl_ms", self.order == newer.order),
            (
                "a limit",
                self.limits == newer.limits && self.protocol == newer.protocol,
            ),
        ])
    }
}

fn first_that_differs(options: &[(&'static str, bool)]) -> Option<&'static str> {
    let differing = options.iter().find(|(_, is_same)| !is_same);
    differing.map(|(option, _)| *option)
}

#[cfg(test)]
mod tests {
    use crate::config::Config;

    const STORE: &str = "[store]\nurl = \"mysql://keywright@127.0.0.1:3306/keywright\"\n";
    const SERVER: &str = "[[listener]]\nbind = \"127.0.0.1:6033\"\nupstream = \"127.0.0.1:3306\"\n";
    const PORT: &str = "[[listener]]\nprotocol = \"redis\"\nbind = \"127.0.0.1:6399\"\nkeys = { a = \"segment:a\" }\n";

    fn told(before: &[&str], now: &[&str]) -> Option<String> {
        let parsed = |sections: &[&str]| {
            let text = format!("{STORE}{}", sections.concat());
            Config::parse(&text).unwrap()
        };
        parsed(before).listens_otherwise(&parsed(now))
    }

    #[test]
    fn listener_and_option_are_named() {
        let both = [SERVER, PORT];
        assert_eq!(told(&both, &both), None);
        let names = PORT.replace("a = ", "b = ");
        assert_eq!(told(&both, &[SERVER, &names]), None);
        let upstream = SERVER.replace("3306", "3307");
        let limit = format!("{PORT}idle_s_max = 7\n");
        assert_eq!(
            told(&both, &[&upstream, &limit]).as_deref(),
            Some("127.0.0.1:6033 differs in upstream, 127.0.0.1:6399 differs in a limit")
        );
        let users = format!("{PORT}users = true\n");
        assert_eq!(
            told(&both, &[SERVER, &users]).as_deref(),
            Some("127.0.0.1:6399 differs in users")
        );
        let moved = PORT.replace("6399", "6400");
        assert_eq!(
            told(&both, &[SERVER, &moved]).as_deref(),
            Some("127.0.0.1:6399 is gone, 127.0.0.1:6400 is new")
        );
        let second = SERVER.replace("6033", "6034");
        assert_eq!(
            told(&[SERVER, &second], &[&second, SERVER]).as_deref(),
            Some("they stand in another order, or have another protocol")
        );
    }
}
