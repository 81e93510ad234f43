//! The quick starts on MariaDB, and the page on switching on.

use std::path::Path;

use anyhow::{Context, Result, ensure};

use super::figure::Figure;
use super::machine::Machine;
use super::page::{Block, Page};
use super::root::Root;
use super::says::{Numbers, compare};
use super::walk::{Walk, bring};

/// What the servers of the pages are made of.
pub(super) const PACKAGES: &[&str] = &["mariadb-server"];
pub(super) const PAGE: &str = "docs/mysql/quick-start.md";
const SHARDS: [u8; 2] = [1, 2];
const CONFIG: &str = "keywright.toml";
/// Where a program that was started by hand writes to.
pub(super) const LOG: &str = "run.log";

/// A root with the two servers of the pages, which start with a machine.
pub(super) fn with_servers(root: &Root) -> Result<Root> {
    let machine = Machine::boot(root, "servers")?;
    machine.must("apt install mariadb-server && systemctl disable --now mariadb")?;
    for n in SHARDS {
        let data = format!("/var/lib/shard-{n}");
        machine.must(&format!(
            "mariadb-install-db --no-defaults --user=mysql --datadir={data} --skip-test-db"
        ))?;
        let unit = format!(
            "[Service]\nType=notify\nExecStart=/usr/sbin/mariadbd --no-defaults --user=mysql --datadir={data} \
             --socket={data}/socket --bind-address=127.0.0.1 --port=3306{n} --server-id={n}\n\
             [Install]\nWantedBy=multi-user.target\n"
        );
        machine.write(&format!("/etc/systemd/system/shard-{n}.service"), &unit)?;
        machine.must(&format!(
            "systemctl daemon-reload && systemctl enable --now shard-{n}"
        ))?;
    }
    machine.must("systemctl stop shard-1 shard-2")?;
    machine.into_root()
}

/// SQL on one of them, as its administrator.
pub(super) fn sql(machine: &Machine, shard: u8, sql: &str) -> Result<String> {
    machine.must(&format!(
        "mariadb --socket=/var/lib/shard-{shard}/socket --batch --skip-column-names <<'END_OF_SQL'\n{sql}\nEND_OF_SQL"
    ))
}

/// Steps 1 and 2 of the page: tables and accounts. On the second shard names end in 2.
pub(super) fn tables_and_accounts(machine: &Machine, page: &mut Page) -> Result<()> {
    page.says("on shard 2 the same with `shop_2` and `orders_2`")?;
    for _ in ["tables", "the program's accounts"] {
        let block = page.next("sql shard-1 shard-2")?;
        sql(machine, 1, &block.text())?;
        sql(machine, 2, &block.text().replace("_1", "_2"))?;
    }
    let store = page.next("sql shard-1")?;
    sql(machine, 1, &store.text())?;
    Ok(())
}

/// The configuration of the page.
pub(super) fn configuration(page: &mut Page) -> Result<Block> {
    page.next(&format!("file {CONFIG}"))
}

/// The page, from the package to the first key through the program, and on to its end.
pub(super) fn of_its_page(machine: &Machine, deb: &Path) -> Result<Figure> {
    bring(machine, &[deb])?;
    let mut page = Page::read(PAGE)?;
    let walk = Walk::begin(machine);
    walk.shell(&page.next("shell")?)?;
    tables_and_accounts(machine, &mut page)?;
    machine.write(CONFIG, &configuration(&mut page)?.text())?;
    let commands = page.next("shell")?;
    let [init, check, run] = commands.lines.as_slice() else {
        anyhow::bail!("{}: no longer init, check and run", commands.place);
    };
    walk.line(&commands, init)?;
    let checked = walk.line(&commands, check)?;
    let says = page.next("said by check")?;
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
    walk.console(&page.next("console")?, Numbers::Same, None)?;
    machine.must(&format!("kill {id}"))?;
    page.end()?;
    Ok(Figure::new(
        "docs/mysql/quick-start.md: the first INSERTs through the program",
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

/// The quick start of README.md: the program as a unit, with the configuration of the other page.
pub(super) fn of_readme(machine: &Machine, deb: &Path) -> Result<Figure> {
    let mut page = Page::read(PAGE)?;
    page.next("shell")?;
    tables_and_accounts(machine, &mut page)?;
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
