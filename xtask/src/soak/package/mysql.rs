//! The quick starts on MySQL and MariaDB.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use keywright_testkit::Flavour;

use super::figure::Figure;
use super::in_place;
use super::machine::Machine;
use super::page::{Block, Page};
use super::says::{Numbers, compare};
use super::servers::sql;
use super::walk::{Walk, bring};

pub(super) const PAGE: &str = "docs/mysql/quick-start.md";
const CONFIG: &str = "keywright.toml";
/// The mark of what is done on both shards.
pub(super) const ON_EACH_SHARD: &str = "sql shard-1 shard-2";
/// What `check` says of MariaDB alone.
const ON_MARIADB: &str = "with warning 167";
/// Where a program that was started by hand writes to.
pub(super) const LOG: &str = "run.log";

/// Steps 1 and 2 of the page: tables and accounts. On the second shard names end in 2.
pub(super) fn tables_and_accounts(
    machine: &Machine,
    flavour: Flavour,
    page: &mut Page,
) -> Result<()> {
    page.says("on shard 2 the same with `shop_2` and `orders_2`")?;
    let tables = page.next(ON_EACH_SHARD)?.text();
    let accounts = in_place::statements(&page.next(ON_EACH_SHARD)?, flavour)?;
    for statements in [tables, accounts] {
        sql(machine, 1, &statements)?;
        sql(machine, 2, &statements.replace("_1", "_2"))?;
    }
    let store = page.next("sql shard-1")?;
    sql(machine, 1, &store.text())?;
    if flavour == Flavour::MySql {
        page.says("Before MySQL, add `--skip-ssl` to MariaDB's client")?;
        machine.write(".my.cnf", "[client-mariadb]\nskip-ssl\n")?;
    }
    Ok(())
}

/// The configuration of the page.
pub(super) fn configuration(page: &mut Page) -> Result<Block> {
    page.next(&format!("file {CONFIG}"))
}

/// The page, from the package to the first key through the program, and on to its end.
pub(super) fn of_its_page(machine: &Machine, flavour: Flavour, deb: &Path) -> Result<Figure> {
    bring(machine, &[deb])?;
    let mut page = Page::read(PAGE)?;
    let walk = Walk::begin(machine);
    walk.shell(&page.next("shell")?)?;
    tables_and_accounts(machine, flavour, &mut page)?;
    machine.write(CONFIG, &configuration(&mut page)?.text())?;
    let commands = page.next("shell")?;
    let [init, check, run] = commands.lines.as_slice() else {
        anyhow::bail!("{}: no longer init, check and run", commands.place);
    };
    let made = walk.line(&commands, init)?;
    page.says("`init` prints `created keywright_segment` and twenty-four more tables, then `created tag \"orders\"`")?;
    ensure!(
        made.starts_with("created keywright_segment\n")
            && made.matches("created keywright_").count() == 25
            && made.ends_with("created tag \"orders\"\n"),
        "init said\n{made}"
    );
    let checked = walk.line(&commands, check)?;
    let mut says = page.next("said by check")?;
    if flavour == Flavour::MySql {
        page.says("(the first two lines on MariaDB only)")?;
        says.lines.retain(|line| !line.contains(ON_MARIADB));
    }
    compare(&says.place, &says.lines, &checked, Numbers::Same)?;
    let id = start(machine, run, 2)?;
    let says = page.next("said by run")?;
    compare(&says.place, &says.lines, &machine.read(LOG)?, Numbers::Same)?;
    let inserts = page.next("console")?;
    walk.console(&inserts, Numbers::Same, None)?;
    let took = walk.took();

    page.says("Kill the program hard (`kill -9`), start it again and insert once more: shard 1 gives 101, shard 2 gives 102.")?;
    machine.must(&format!("kill -9 {id}"))?;
    let id = start(machine, run, 2)?;
    for (n, wanted) in [(1, "101"), (2, "102")] {
        let said = insert(machine, n)?;
        ensure!(
            said.trim() == wanted,
            "shard {n} gave {said:?}, not {wanted}"
        );
    }
    let mut past = page.next("console")?;
    if flavour == Flavour::MySql {
        page.says("(MySQL: error 1467.)")?;
        for line in past.lines.iter_mut().filter(|line| !line.starts_with('$')) {
            *line = "ERROR 1467".to_owned();
        }
    }
    walk.console(&past, Numbers::Same, None)?;
    machine.must(&format!("kill {id}"))?;
    page.end()?;
    Ok(Figure::new(
        format!(
            "{PAGE} on {}: the first INSERTs through the program",
            flavour.name()
        ),
        took,
    ))
}

/// An INSERT through the program, and the key that it got.
pub(super) fn insert(machine: &Machine, n: u8) -> Result<String> {
    machine.must(&format!(
        "mariadb -h127.0.0.1 -P603{n} -uapp -papp --batch --skip-column-names shop_{n} \
         -e \"INSERT INTO orders_{n} (customer) VALUES ('dan'); SELECT LAST_INSERT_ID()\""
    ))
}

/// Starts the program by hand, and waits until it listens there. Returns its process.
pub(super) fn start(machine: &Machine, run: &str, listeners: usize) -> Result<u32> {
    let id = machine.start(run, LOG)?;
    let waited = keywright_testkit::wait_until("listening", keywright_testkit::WAIT_MAX, || {
        Ok(machine.read(LOG)?.matches(": listening ").count() == listeners)
    });
    waited.with_context(|| format!("it said\n{}", machine.read(LOG).unwrap_or_default()))?;
    Ok(id)
}

/// The quick start of README.md, on MariaDB: the program as a unit, with the configuration of the other page.
pub(super) fn of_readme(machine: &Machine, deb: &Path) -> Result<Figure> {
    let mut page = Page::read(PAGE)?;
    page.next("shell")?;
    tables_and_accounts(machine, Flavour::MariaDb, &mut page)?;
    let config = configuration(&mut page)?.text();
    bring(machine, &[deb])?;
    let mut page = Page::read("README.md")?;
    page.next("shell")?;
    let block = page.next("shell")?;
    let walk = Walk::begin(machine);
    for line in &block.lines {
        walk.line(&block, line)?;
        if line.contains("then edit /etc/keywright/keywright.toml") {
            machine.write("/etc/keywright/keywright.toml", &config)?;
        }
    }
    for (n, wanted) in [(1, "1"), (2, "2")] {
        let said = insert(machine, n)?;
        ensure!(
            said.trim() == wanted,
            "shard {n} gave {said:?}, not {wanted}"
        );
    }
    Ok(Figure::new(
        "README.md, MariaDB: the first INSERTs through the program",
        walk.took(),
    ))
}
