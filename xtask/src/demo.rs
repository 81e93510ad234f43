//! `cargo xtask demo`.

mod fill;
mod interrupt;
mod key_space;
mod shards;
mod show;

use std::time::Instant;

use anyhow::{Result, bail};
use clap::Args;
use keywright_testkit::{Extension, PgServer, PgVersion};
use postgres::{Client, SimpleQueryMessage};

use crate::demo::fill::{Fill, TABLES};
use crate::demo::interrupt::Interrupt;
use crate::demo::key_space::{KeySpace, Servers};
use crate::demo::shards::Shards;
use crate::demo::show::Show;
use crate::install::PG_CONFIG;
use crate::needs;

/// Rows before the server is killed, over all tables.
const ROWS_BEFORE: u64 = 1_050_000;

/// Rows after which the server is killed, in the middle of inserting more.
const ROWS_UNTIL_KILL: u64 = 60_000;

/// Rows after that.
const ROWS_AFTER: u64 = 210_000;

const SETUP: &str = "\
CREATE EXTENSION keywright;
SELECT keywright.set_worker_id(1);
SELECT keywright.create_tag('orders');
CREATE TABLE event   (id bigint PRIMARY KEY DEFAULT snowflake_id(),        body text);
CREATE TABLE orders  (id bigint PRIMARY KEY DEFAULT next_biz_id('orders'), body text);
CREATE TABLE receipt (id text   PRIMARY KEY DEFAULT readable_id('RCPT'),   body text);";

const DECODE: [&str; 3] = [
    "SELECT e.id, d.* FROM (SELECT id FROM event ORDER BY id DESC LIMIT 3) e, snowflake_decode(e.id) d",
    "SELECT r.id, d.* FROM (SELECT id FROM receipt ORDER BY id DESC LIMIT 3) r, readable_decode(r.id) d",
    "SELECT min(id), max(id) FROM orders",
];

/// Show it at work: a private PostgreSQL, two MariaDB shards behind the proxy, one tag over both and a key port, hard kills, and no id twice.
#[derive(Args)]
pub(crate) struct Demo {
    /// End by itself instead of staying up until Ctrl-C.
    #[arg(long)]
    once: bool,
    /// Keep what is shown in docs/demo.txt, which README is shortened from.
    #[arg(long, requires = "once")]
    record: bool,
}

impl Demo {
    pub(crate) fn run(self) -> Result<()> {
        let mut needs = needs::to_build();
        needs.extend(needs::to_build_program());
        needs.extend(needs::to_serve());
        needs.extend(needs::to_serve_mysql());
        needs::install(&needs)?;
        let interrupt = Interrupt::watch()?;
        let screen = Show::begin();
        screen.stage("building the extension (minutes the first time, seconds later)");
        Extension::build(PgVersion::V15, PG_CONFIG.as_ref(), true)?;
        match show(&screen, &interrupt, self.once) {
            // Ctrl-C reaches the server as well, so whatever was under way failed.
            Err(error) if !interrupt.seen() => Err(error),
            Ok(()) | Err(_) => {
                println!("\nstopped; the servers and their directories are gone");
                if self.record && !interrupt.seen() {
                    screen.record()?;
                }
                Ok(())
            }
        }
    }
}

fn show(screen: &Show, interrupt: &Interrupt, once: bool) -> Result<()> {
    screen.stage("starting a private server in a temporary directory, as an unprivileged user");
    let mut server = PgServer::builder()
        .version(PgVersion::V15)
        .fsync(true)
        .start()?;
    screen.say(&format!(
        "    data in {}, port {}",
        server.data_dir().display(),
        server.port()
    ));
    screen.stage("a table with each kind of DEFAULT");
    screen.say(SETUP);
    server.client("postgres")?.batch_execute(SETUP)?;

    screen.stage(&format!(
        "inserting {ROWS_BEFORE} rows from {} connections",
        fill::CONNECTIONS
    ));
    Fill::new(&server, ROWS_BEFORE).run(screen)?;
    show_distinct(screen, &server)?;
    screen.stage("reading ids back");
    let mut client = server.client("postgres")?;
    for query in DECODE {
        show_query(screen, &mut client, query)?;
    }
    drop(client);

    screen.stage("kill -9 of the whole server, in the middle of inserting");
    let inserted =
        Fill::new(&server, u64::MAX).run_until_killed(screen, &mut server, ROWS_UNTIL_KILL)?;
    screen.say(&format!(
        "    {inserted} more rows were committed when it died"
    ));
    let killed = Instant::now();
    server.start()?;
    screen.say(&format!(
        "    recovered in {:.1} s",
        killed.elapsed().as_secs_f64()
    ));
    screen.stage(&format!("going on: {ROWS_AFTER} more rows"));
    Fill::new(&server, ROWS_AFTER).run(screen)?;
    show_distinct(screen, &server)?;
    let mut shards = Shards::start(screen)?;
    shards.show(screen)?;
    let servers = Servers {
        postgres: &server,
        mysql: shards.first(),
    };
    let mut key_space = KeySpace::start(screen, servers)?;
    key_space.show(screen, servers)?;
    screen.end();
    stay(&mut server, &shards, &key_space, interrupt, once)
}

/// Counts, and stops the demo if an id were there twice.
fn show_distinct(screen: &Show, server: &PgServer) -> Result<()> {
    screen.stage("are they all distinct?");
    let mut client = server.client("postgres")?;
    for table in TABLES {
        let row = client.query_one(
            &format!("SELECT count(*), count(DISTINCT id) FROM {table}"),
            &[],
        )?;
        let (rows, distinct): (i64, i64) = (row.get(0), row.get(1));
        if rows != distinct {
            bail!("{table}: {rows} rows with only {distinct} distinct ids");
        }
        screen.say(&format!(
            "    {table:8} {rows:>8} rows, {distinct:>8} distinct ids"
        ));
    }
    Ok(())
}

fn show_query(screen: &Show, client: &mut Client, query: &str) -> Result<()> {
    screen.say(&format!("{query};"));
    for message in client.simple_query(query)? {
        match message {
            SimpleQueryMessage::RowDescription(columns) => {
                let names: Vec<&str> = columns.iter().map(|column| column.name()).collect();
                screen.say(&format!("    {}", names.join(" | ")));
            }
            SimpleQueryMessage::Row(row) => {
                let values: Vec<&str> = (0..row.len())
                    .map(|i| row.get(i).unwrap_or("NULL"))
                    .collect();
                screen.say(&format!("    {}", values.join(" | ")));
            }
            // CommandComplete; the enum may grow.
            _ => {}
        }
    }
    Ok(())
}

fn stay(
    server: &mut PgServer,
    shards: &Shards,
    key_space: &KeySpace,
    interrupt: &Interrupt,
    once: bool,
) -> Result<()> {
    println!(
        "\nno id twice. The servers are up; try them:\n    psql {}",
        server.url("postgres")
    );
    println!("    INSERT INTO orders (body) VALUES ('mine') RETURNING id;");
    println!("    SELECT * FROM keywright.stats;");
    shards.show_how_to_connect();
    key_space.show_how_to_connect();
    if !once {
        println!("Ctrl-C stops it and removes everything.");
        interrupt.wait(|| server.is_running())?;
    }
    Ok(())
}
