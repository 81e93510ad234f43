//! `cargo xtask soak`: long runs against private servers, in which everything happens that may.

mod interleavings;
mod keyspace;
mod mutants;
mod mysql;
mod package;
mod pg;
mod regress;
mod switch;

use anyhow::Result;
use clap::{Args, Subcommand};

/// Let everything happen to a private server while ids are drawn, and check every one of them.
#[derive(Args)]
pub(crate) struct Soak {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    Interleavings(interleavings::Interleavings),
    Keyspace(keyspace::KeySpace),
    PgRegress(regress::PgRegress),
    Pg(pg::Pg),
    Mysql(mysql::Mysql),
    Mutants(mutants::Mutants),
    Package(package::Package),
    Switch(switch::Switch),
}

impl Soak {
    pub(crate) fn run(self) -> Result<()> {
        match self.what {
            What::Interleavings(interleavings) => interleavings.run(),
            What::Keyspace(keyspace) => keyspace.run(),
            What::PgRegress(regress) => regress.run(),
            What::Pg(pg) => pg.run(),
            What::Mysql(mysql) => mysql.run(),
            What::Mutants(mutants) => mutants.run(),
            What::Package(package) => package.run(),
            What::Switch(switch) => switch.run(),
        }
    }
}
