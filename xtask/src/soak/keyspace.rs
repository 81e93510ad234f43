//! `cargo xtask soak keyspace`.

use std::time::Duration;

use anyhow::Result;
use clap::{Args, ValueEnum};
use keywright_testkit::soak::{KeySpaceSoak, StoreKind};

use crate::needs;
use crate::shell::step;

/// One key space over databases that are fed, tables behind listeners and key ports, while all of them and the store are killed, paused,
/// copied, promoted and restored.
///
/// Eight databases on four PostgreSQL servers, two programs before two servers of MySQL tables. Every id that a client saw is checked, and
/// every row at the end. It fails at the first id that is seen twice, and says who saw it and what happened in between; and when whoever
/// issues stops to.
#[derive(Args)]
pub(crate) struct KeySpace {
    /// How long.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    minutes: u64,
    /// And until so many ids were seen.
    #[arg(long, default_value_t = 10_000_000)]
    ids: u64,
    /// Where the key space's bounds are: in an etcd cluster of three, a PostgreSQL server, or a file.
    #[arg(long, value_enum, default_value_t = Store::Etcd)]
    store: Store,
    /// Let the same happen again, as far as timing lets it; without it one is drawn.
    #[arg(long)]
    seed: Option<u64>,
}

#[derive(Clone, Copy, ValueEnum)]
enum Store {
    Etcd,
    Postgres,
    File,
}

impl KeySpace {
    pub(crate) fn run(self) -> Result<()> {
        let mut needs = needs::to_build();
        needs.extend(needs::to_serve());
        needs.extend(needs::to_serve_mysql());
        needs.extend(needs::to_build_program());
        needs::install(&needs)?;
        let store = match self.store {
            Store::Etcd => StoreKind::Etcd,
            Store::Postgres => StoreKind::Postgres,
            Store::File => StoreKind::File,
        };
        let length = Duration::from_secs(60 * self.minutes);
        let soak = KeySpaceSoak::new(self.seed, length, self.ids, store);
        step(&format!(
            "soaking for {} min, seed {}",
            self.minutes,
            soak.seed()
        ));
        let report = soak.run()?;
        println!("{report}");
        Ok(())
    }
}
