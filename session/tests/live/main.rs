//! The corpus of statements through the state machine: no difference to native auto-increment but the documented ones.

mod pump;

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use keywright_rewrite::{Flavour as Reads, KeyForm, Server};
use keywright_session::{Pattern, Rule, Rules};
use keywright_testkit::corpus::{self, KEY_FIRST, KEY_SPACE_SIZE, KEY_SPACES, Side, TwinKeys};
use keywright_testkit::{Flavour, Result, Upstream, workspace_root};

keywright_testkit::on_both_flavours!(corpus_is_what_native_auto_increment_shows);

fn rule(schema_ends: &str, table: &str) -> Result<Rule> {
    Ok(Rule {
        repeatable: true,
        is_steady: true,
        is_signed: !table.starts_with("t_u"),
        is_auto_increment: true,
        ..Rule::new(
            Pattern::parse(&format!("corpus_p*{schema_ends}.{table}"))?,
            "id",
            KeyForm::Integer,
        )
    })
}

fn corpus_is_what_native_auto_increment_shows(flavour: Flavour) -> Result<()> {
    let upstream = Upstream::shared(flavour)?;
    let server = match flavour {
        Flavour::MariaDb => Server {
            flavour: Reads::MariaDb,
            version: 101_100,
        },
        Flavour::MySql => Server {
            flavour: Reads::MySql,
            version: 90_704,
        },
    };
    // The first rule that matches is in force, and a schema that ends in a particular way matches the general pattern too.
    let mut order: Vec<usize> = (0..KEY_SPACES.len()).collect();
    order.sort_by_key(|space| KEY_SPACES[*space].0.is_empty());
    let mut rules = Vec::new();
    let mut keys = HashMap::new();
    for (index, space) in order.into_iter().enumerate() {
        let (schema_ends, table) = KEY_SPACES[space];
        rules.push(rule(schema_ends, table)?);
        keys.insert(index, KEY_FIRST + u64::try_from(space)? * KEY_SPACE_SIZE);
    }
    let rules = Rules::new(rules, false);
    let port = pump::start(upstream.port(), server, rules, Arc::new(Mutex::new(keys)))?;
    let native = Side {
        direct_port: upstream.port(),
        port: upstream.port(),
        schema_prefix: "corpus_n",
        keys: TwinKeys::Native,
    };
    let twin = Side {
        port,
        schema_prefix: "corpus_p",
        keys: TwinKeys::Fenced,
        ..native
    };
    let mut scenarios = corpus::load(&workspace_root().join("tests/corpus"))?;
    // Nobody looks at tables here.
    scenarios.retain(|scenario| !scenario.needs_columns);
    let report = corpus::compare(&scenarios, flavour, &native, &twin)?;
    println!(
        "{}: {} statements, {} refused, {} deviations",
        flavour.name(),
        report.statements,
        report.refused,
        report.deviations.len()
    );
    report.check()
}
