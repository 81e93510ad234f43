//! Statements out of a grammar: natively on one table and through the proxy on its twin.

use std::env;
use std::time::Duration;

use keywright_testkit::statements::{Extent, compare};
use keywright_testkit::{Flavour, Result};

keywright_testkit::on_both_flavours!(statements_out_of_a_grammar_are_not_told_apart);

fn number(name: &str) -> Option<u64> {
    env::var(name).ok()?.parse().ok()
}

/// `KEYWRIGHT_SEED` begins with that round; `KEYWRIGHT_STATEMENTS` asks for more of them.
fn statements_out_of_a_grammar_are_not_told_apart(flavour: Flavour) -> Result<()> {
    let extent = Extent {
        statements_max: usize::try_from(number("KEYWRIGHT_STATEMENTS").unwrap_or(3_000))?,
        time_max: Duration::from_secs(900),
    };
    let found = compare(flavour, number("KEYWRIGHT_SEED").unwrap_or(1), extent)?;
    println!("{}: {found}", flavour.name());
    found.check()
}
