//! `cargo xtask soak mysql`.

use std::time::Duration;

use anyhow::{Result, ensure};
use clap::Args;
use keywright_testkit::Flavour;
use keywright_testkit::statements::{Extent, any_seed, compare};

use crate::needs;
use crate::shell::{cargo, run, step};

/// INSERTs out of a grammar, natively on one table and through the proxy on its twin, on MariaDB and MySQL.
///
/// Literals, comments, character sets, modes, queries and expressions around the key are mixed by a seed. So is what becomes of the
/// table: columns that move, a key that gets another name, temporary tables out of sight. Rows are copied with their keys, and keys
/// are asked for before the statement, which must not come again. It fails when an application could tell
/// the sides apart in a way that is not documented, and shows both with the seed of the round.
#[derive(Args)]
pub(crate) struct Mysql {
    /// Statements on each of the servers.
    #[arg(long, default_value_t = 200_000, value_parser = clap::value_parser!(u32).range(1..))]
    statements: u32,
    /// Begin with that round; without it one is drawn.
    #[arg(long)]
    seed: Option<u32>,
}

impl Mysql {
    pub(crate) fn run(self) -> Result<()> {
        let mut needs = needs::to_serve_mysql();
        needs.extend(needs::to_build_program());
        needs::install(&needs)?;
        run(&mut cargo([
            "build",
            "--quiet",
            "--package",
            "keywright-proxy",
        ]))?;
        let seed = self.seed.unwrap_or_else(any_seed);
        let extent = Extent {
            statements_max: usize::try_from(self.statements)?,
            time_max: Duration::MAX,
        };
        let wanted = [Flavour::MariaDb, Flavour::MySql];
        let mut all = Vec::new();
        for flavour in wanted.into_iter().filter(|flavour| flavour.is_wanted()) {
            step(&format!("{}, beginning with seed {seed}", flavour.name()));
            let found = compare(flavour, u64::from(seed), extent)?;
            println!("{found}");
            all.push(found);
        }
        let faults: Vec<String> = all
            .iter()
            .filter_map(|found| found.check().err())
            .map(|error| error.to_string())
            .collect();
        ensure!(faults.is_empty(), "{}", faults.join("\n\n"));
        Ok(())
    }
}
