//! Applications from Debian's packages, used by scripts: WordPress, and the tools of percona-toolkit.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use anyhow::{Context, Result, bail};
use keywright_testkit::{Login, Reply, Upstream, Wire, unpack_packages};

use super::outcome::Outcome;
use crate::shell::output;

/// Tables of WordPress, and of what a plugin makes.
pub(super) const WORDPRESS_RULES: &[(&str, &str)] = &[
    ("wp.wp_posts", "ID"),
    ("wp.wp_users", "ID"),
    ("wp.wp_comments", "comment_ID"),
    ("wp.wp_usermeta", "umeta_id"),
    ("wp.wp_*meta", "meta_id"),
    ("wp.wp_terms", "term_id"),
    ("wp.wp_term_taxonomy", "term_taxonomy_id"),
    ("wp.wp_options", "option_id"),
    ("wp.wp_links", "link_id"),
    ("wp.wp_shop_*", "order_id"),
];

/// What is done with it.
const WORDPRESS: &str = include_str!("wordpress.php");

/// The server's error for a transaction that was given up. The tool's triggers bring it about without a proxy, too.
const DEADLOCK: u16 = 1213;

/// The unpacked package; what is looked for lies in `place`.
pub(super) fn unpack(cache: &Path, package: &str, place: &str) -> Result<PathBuf> {
    let wanted = cache.join(package);
    if !wanted.exists() {
        let scratch = cache.join("unpacking-package");
        if scratch.exists() {
            fs::remove_dir_all(&scratch)?;
        }
        fs::create_dir_all(&scratch)?;
        unpack_packages(&[package], &scratch)?;
        fs::rename(&scratch, &wanted)?;
    }
    Ok(wanted.join(place))
}

fn wordpress(source: &Path, port: u16, what: &str) -> Result<Outcome> {
    let script = source.join("keywright.php");
    fs::write(&script, WORDPRESS)?;
    let mut command = Command::new("php");
    command.arg(&script).arg(source);
    let said = output(command.args([&port.to_string(), what]))?;
    let failed = said.lines().filter(|line| line.starts_with("FAILED"));
    failed.for_each(|line| println!("    {line}"));
    Ok(Outcome::of_pytest(&said))
}

/// As a site is before the proxy comes.
pub(super) fn install_wordpress(source: &Path, port: u16) -> Result<()> {
    match wordpress(source, port, "install")?.passed() {
        1 => Ok(()),
        _ => bail!("WordPress was not installed"),
    }
}

pub(super) fn use_wordpress(source: &Path, port: u16) -> Result<Outcome> {
    wordpress(source, port, "use")
}

/// Some thousands of orders.
pub(super) fn fill_shop(server: &Upstream) -> Result<()> {
    server.run(
        "shop",
        "CREATE TABLE orders (id BIGINT AUTO_INCREMENT PRIMARY KEY, customer INT NOT NULL, note VARCHAR(100), KEY (customer));
         CREATE TABLE old_orders LIKE orders;
         CREATE TABLE copied_orders LIKE orders;
         INSERT INTO orders (customer, note)
             WITH RECURSIVE n (a) AS (SELECT 1 UNION ALL SELECT a + 1 FROM n WHERE a < 900) SELECT a, 'before' FROM n;
         INSERT INTO orders (customer, note) SELECT customer + 1000, note FROM orders;
         INSERT INTO orders (customer, note) SELECT customer + 2000, note FROM orders",
    )?;
    Ok(())
}

/// Each tool, and what the tables are behind it.
pub(super) fn use_percona_toolkit(source: &Path, port: u16) -> Result<Outcome> {
    let mut wire = Wire::connect_tcp(port, &Login::root("shop"))?;
    let mut toolkit = PerconaToolkit {
        source,
        port,
        at: format!("h=127.0.0.1,P={port},u=root,D=shop"),
        lines: String::new(),
    };
    let count = toolkit.change_schema(&mut wire)?;
    toolkit.archive(&mut wire, &count)?;
    toolkit.sync(&mut wire)?;
    Ok(Outcome::of_pytest(&toolkit.lines))
}

/// The tools under test, and how they went so far.
struct PerconaToolkit<'a> {
    source: &'a Path,
    port: u16,
    /// Where the tables are, as the tools are told.
    at: String,
    /// A line for each thing that was looked at.
    lines: String,
}

impl PerconaToolkit<'_> {
    fn run(&self, name: &str, arguments: &[&str]) -> Result<bool> {
        let mut command = Command::new("perl");
        output(command.arg(self.source.join(name)).args(arguments)).map(|_| true)
    }

    fn tell(&mut self, name: &str, went: Result<bool>) {
        let end = match went {
            Ok(true) => "PASSED",
            Ok(false) => "FAILED",
            Err(error) => {
                println!("    {name}: {error:#}");
                "FAILED"
            }
        };
        self.lines
            .push_str(&format!("{end} percona_toolkit::{name}\n"));
    }

    /// Adds a column while a client inserts: how many rows there are then.
    fn change_schema(&mut self, wire: &mut Wire) -> Result<String> {
        let orders = format!("{},t=orders", self.at);
        let altered = while_inserting(self.port, || {
            self.run(
                "pt-online-schema-change",
                &[
                    "--execute",
                    "--no-version-check",
                    "--recursion-method=none",
                    "--alter=ADD COLUMN extra INT",
                    &orders,
                ],
            )
        });
        let (altered, inserted) = altered?;
        self.tell("pt-online-schema-change", altered);
        let rows = wire.rows("SELECT COUNT(*), COUNT(DISTINCT id), COUNT(extra) FROM orders")?;
        let count = (3600 + inserted).to_string();
        self.tell(
            "no row is lost",
            Ok(rows == [[count.as_str(), &count, "0"]]),
        );
        wire.run("ALTER TABLE orders DROP COLUMN extra")?;
        Ok(count)
    }

    /// Moves every seventh of so many orders to another table.
    fn archive(&mut self, wire: &mut Wire, count: &str) -> Result<()> {
        let archived = self.run(
            "pt-archiver",
            &[
                "--no-version-check",
                &format!("--source={},t=orders", self.at),
                &format!("--dest={},t=old_orders", self.at),
                "--where=id % 7 = 0",
                "--limit=100",
                "--commit-each",
                "--no-check-charset",
            ],
        );
        self.tell("pt-archiver", archived);
        let rows = wire.rows("SELECT (SELECT COUNT(*) FROM orders) + COUNT(*), COUNT(*) > 400, SUM(id % 7) FROM old_orders")?;
        self.tell(
            "archived rows keep their keys",
            Ok(rows == [[count, "1", "0"]]),
        );
        Ok(())
    }

    /// Copies the archived orders to a third table.
    fn sync(&mut self, wire: &mut Wire) -> Result<()> {
        // It ends with 2 where it has found differences.
        let synced = self.run(
            "pt-table-sync",
            &[
                "--execute",
                "--no-check-slave",
                &format!("{},t=old_orders", self.at),
                "t=copied_orders",
            ],
        );
        self.tell(
            "pt-table-sync",
            Ok(synced.is_ok() || !wire.rows("SELECT 1 FROM copied_orders LIMIT 1")?.is_empty()),
        );
        let rows =
            wire.rows("SELECT COUNT(*) FROM old_orders JOIN copied_orders USING (id, customer)")?;
        let all = wire.rows("SELECT COUNT(*) FROM old_orders")?;
        self.tell("synced rows keep their keys", Ok(rows == all));
        Ok(())
    }
}

/// Does something while a client inserts: what came of it, and how many rows went in.
fn while_inserting<T>(port: u16, what: impl FnOnce() -> T) -> Result<(T, u64)> {
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let inserts = scope.spawn(|| insert_until(port, &is_over));
        let done = what();
        is_over.store(true, Ordering::Release);
        let inserted = inserts.join();
        let inserted = inserted
            .ok()
            .context("the client that inserts panicked")??;
        Ok((done, inserted))
    })
}

fn insert_until(port: u16, is_over: &AtomicBool) -> Result<u64> {
    let mut wire = Wire::connect_tcp(port, &Login::root("shop"))?;
    let mut inserted = 0;
    while !is_over.load(Ordering::Acquire) {
        let replies = wire.query("INSERT INTO orders (customer, note) VALUES (7, 'meanwhile')")?;
        match replies.as_slice() {
            [Reply::Failed(fault)] if fault.errno == DEADLOCK => {}
            [Reply::Failed(fault)] => bail!("an INSERT failed meanwhile: {fault}"),
            _ => inserted += 1,
        }
    }
    Ok(inserted)
}
