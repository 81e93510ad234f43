//! The page on switching on, while two shards are written to.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use keywright_testkit::Flavour;

use super::figure::Figure;
use super::machine::Machine;
use super::mysql::{LOG, configuration, insert, start, tables_and_accounts};
use super::page::Page;
use super::says::Numbers;
use super::servers::sql;
use super::walk::{Walk, bring};
use super::writers::Writers;

const CONFIG: &str = "keywright.toml";
/// How far the page says that the first shard had come by itself.
const NATIVE: usize = 1023;
const IN_FORCE: &str = "the rule is in force";

/// Walks it. The tables are written to from the start, on the servers at first and then through the program.
pub(super) fn walk(machine: &Machine, flavour: Flavour, deb: &Path) -> Result<Figure> {
    bring(machine, &[deb])?;
    machine.must("apt install ./target/package/keywright_*.deb")?;
    let mut quick_start = Page::read(super::mysql::PAGE)?;
    quick_start.next("shell")?;
    tables_and_accounts(machine, flavour, &mut quick_start)?;
    let native = vec!["('native')"; NATIVE - 1].join(",");
    sql(
        machine,
        1,
        &format!("INSERT INTO shop_1.orders_1 (customer) VALUES {native}"),
    )?;
    general_log(machine)?;

    let mut page = Page::read("docs/mysql/switching-on.md")?;
    let walk = Walk::begin(machine);
    let rule = page.next("rule")?.text();
    let config = configuration(&mut quick_start)?.text();
    machine.write(CONFIG, &with_rule(&config, &rule)?)?;
    walk.console(&page.next("console")?, Numbers::Same, None)?;
    walk.console(&page.next("console")?, Numbers::Same, None)?;

    let run = format!("keywright run --config {CONFIG}");
    let id = start(machine, &run, 2)?;
    machine.set("PID", &id.to_string());
    let writers = Writers::start(machine)?;
    writers.wait_for_more()?;
    walk.console(&page.next("log")?, Numbers::Differ, Some(LOG))?;
    let on = writers.so_far()?;
    writers.wait_for_more()?;
    let ready = machine.must(&format!("keywright check --config {CONFIG}"))?;
    ensure!(
        ready.trim_end().ends_with("ready to run") && !ready.contains("native auto-increment"),
        "behind the switch check said\n{ready}"
    );

    page.says("Another key is another `key`, of a new tag")?;
    edit(machine, "\"segment:orders\"", "\"segment:orders_v2\"")?;
    walk.console(&page.next("log")?, Numbers::Differ, Some(LOG))?;
    writers.wait_for_more()?;
    // Natively the shards repeat each other's numbers, which is what keys are for.
    writers.see_distinct(&on, &writers.so_far()?)?;

    page.says("Off is `mode = \"observe\"` and SIGHUP")?;
    edit(machine, "mode = \"rewrite\"", "mode = \"observe\"")?;
    let before = machine.read(LOG)?.matches(IN_FORCE).count();
    machine.must(&format!("kill -HUP {id}"))?;
    keywright_testkit::wait_until("keys are off", super::figure::LOG_WAIT_MAX, || {
        Ok(machine.read(LOG)?.matches(IN_FORCE).count() > before)
    })
    .with_context(|| machine.read(LOG).unwrap_or_default())?;
    writers.wait_for_more()?;
    let took = walk.took();
    let written = writers.stop()?;
    for n in [1, 2] {
        insert(machine, n)?;
    }
    machine.must(&format!("kill {id}"))?;
    page.end()?;
    Ok(Figure::new(
        format!(
            "docs/mysql/switching-on.md on {}: on, to another tag and off, {written} INSERTs meanwhile, none failed",
            flavour.name()
        ),
        took,
    ))
}

/// The configuration with this rule in place of its own.
fn with_rule(config: &str, rule: &str) -> Result<String> {
    let (before, rest) = config
        .split_once("[[rule]]")
        .context("the configuration of the quick start has no rule")?;
    let (_, after) = rest
        .split_once("\n\n")
        .context("nothing stands behind the rule")?;
    Ok(format!("{before}{rule}\n{after}"))
}

fn edit(machine: &Machine, from: &str, to: &str) -> Result<()> {
    let config = machine.read(CONFIG)?;
    ensure!(config.contains(from), "{CONFIG} has no {from}:\n{config}");
    machine.write(CONFIG, &config.replace(from, to))
}

/// A general query log as a server writes it, of one more row.
fn general_log(machine: &Machine) -> Result<()> {
    let file = "/var/lib/shard-1/general.log";
    sql(
        machine,
        1,
        &format!(
            "SET GLOBAL general_log_file = '{file}'; SET GLOBAL general_log = 1; \
             INSERT INTO shop_1.orders_1 (customer) VALUES ('logged'); \
             SET GLOBAL general_log = 0"
        ),
    )?;
    machine.must(&format!("cp {file} general.log"))?;
    Ok(())
}
