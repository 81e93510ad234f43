//! Servers, programs and the store, and what each issues.

use std::fs;
use std::sync::Arc;

use anyhow::{Context, Result};
use tempfile::TempDir;

use super::drawer::World;
use super::issuer::{Address, Issuer};
use super::store::{Store, StoreKind};
use crate::{FakeClock, Flavour, PgServer, ProxyConfig, ProxyProcess, Upstream, assert_has};

/// Databases of each server that issue; one more feeds.
const DATABASES: [&str; 2] = ["shop_0", "shop_1"];
/// PostgreSQL servers at the beginning.
const SERVERS: usize = 4;
/// And at most.
pub(super) const SERVERS_MAX: usize = 6;
/// Servers of MySQL tables.
const SHARDS: usize = 2;
const PROGRAMS: usize = 2;
/// Both are at each shard; keys of the second are snowflake ids.
pub(super) const TABLES: [&str; 2] = ["orders", "events"];

/// A PostgreSQL server that is fed.
pub(super) struct Served {
    pub(super) name: String,
    pub(super) server: PgServer,
    /// One of its data directory as it was a while ago, not started.
    pub(super) backup: Option<PgServer>,
    issuers: Vec<Arc<Issuer>>,
}

/// All that there is.
pub(super) struct Fleet {
    pub(super) world: Arc<World>,
    pub(super) servers: Vec<Served>,
    pub(super) shards: Vec<Upstream>,
    pub(super) programs: Vec<ProxyProcess>,
    /// Those of programs.
    clocks: Vec<FakeClock>,
    _scratch: TempDir,
    pub(super) store: Store,
    made: u32,
}

impl Fleet {
    /// Starts everything.
    ///
    /// # Errors
    /// Something does not start, or does not become ready.
    pub(super) fn start(kind: StoreKind) -> Result<Fleet> {
        let scratch = TempDir::new().context("a directory for clocks")?;
        let clocks = (0..PROGRAMS).map(|number| {
            let dir = scratch.path().join(number.to_string());
            fs::create_dir(&dir)?;
            FakeClock::of_program(&dir)
        });
        let clocks = clocks.collect::<Result<_>>()?;
        let mut fleet = Fleet {
            world: Arc::default(),
            servers: Vec::new(),
            shards: Vec::new(),
            programs: Vec::new(),
            clocks,
            _scratch: scratch,
            store: Store::start(kind)?,
            made: 0,
        };
        for number in 0..SERVERS {
            // Asking such a clock is slow.
            let server = new_server(number == 0)?;
            fleet.join(server);
        }
        for _ in 0..SHARDS {
            fleet.shards.push(new_shard()?);
        }
        let config = fleet.config();
        let said = ProxyProcess::said(&config, &["init"])?;
        assert_has(&said, &["created tag \"orders\""]);
        assert_has(&ProxyProcess::said(&config, &["check"])?, &["ready to run"]);
        for number in 0..PROGRAMS {
            let program = ProxyProcess::start(fleet.config_of(number)?)?;
            for issuer in issuers_of(number, &program)? {
                fleet.world.add(&Arc::new(issuer));
            }
            fleet.programs.push(program);
        }
        Ok(fleet)
    }

    /// What the program of a number is told now.
    pub(super) fn config_of(&self, number: usize) -> Result<ProxyConfig> {
        let clock = self.clocks.get(number).context("a program's clock")?;
        Ok(ProxyConfig {
            environment: clock.environment()?,
            ..self.config()
        })
    }

    /// Whether there is such a clock; then it is that far from the right time now.
    pub(super) fn step_clock(&self, which: usize, offset_s: i64) -> Result<bool> {
        let of_servers = self.servers.iter().map(|served| served.server.clock().ok());
        let mut all: Vec<&FakeClock> = of_servers.flatten().collect();
        all.extend(&self.clocks);
        match all.get(which % all.len().max(1)) {
            Some(clock) => clock.step_to(offset_s).map(|()| true),
            None => Ok(false),
        }
    }

    /// What all programs are told now.
    pub(super) fn config(&self) -> ProxyConfig {
        let (store_url, store) = self.store.section();
        let feeds = self.servers.iter().map(|served| {
            format!(
                "\n[[feed]]\nurl = \"postgres://feeder@127.0.0.1:{}/postgres\"\ntags = [\"orders\"]\n",
                served.server.port()
            )
        });
        ProxyConfig {
            store_url,
            store: store.to_owned(),
            upstream_ports: self.shards.iter().map(Upstream::port).collect(),
            // A shard may be away when a program starts.
            listener: "check = \"warn\"".to_owned(),
            key_ports: vec!["keys = { orders = \"segment:orders\" }".to_owned()],
            more: format!(
                "[snowflake]\nlease_ms = 1000\n{}",
                feeds.collect::<String>()
            ),
            ..ProxyConfig::default()
        }
        .rule("shop.orders", "segment:orders")
        .rule("shop.events", "snowflake")
    }

    /// One more server issues.
    pub(super) fn join(&mut self, server: PgServer) {
        self.made += 1;
        let name = format!("server {}", self.made);
        let issuers = DATABASES.map(|database| {
            let address = database_of(&server, database);
            Arc::new(Issuer::new(format!("{database} of {name}"), address))
        });
        for issuer in &issuers {
            self.world.add(issuer);
        }
        self.servers.push(Served {
            name,
            server,
            backup: None,
            issuers: issuers.to_vec(),
        });
    }

    /// A server leaves for good.
    pub(super) fn leave(&mut self, at: usize) {
        let served = self.servers.remove(at);
        for issuer in &served.issuers {
            self.world.remove(issuer);
        }
    }
}

impl Served {
    /// It may be elsewhere after a start.
    pub(super) fn moved(&self) {
        for (issuer, database) in self.issuers.iter().zip(DATABASES) {
            issuer.moved_to(database_of(&self.server, database));
        }
    }

    /// Another server takes its place.
    pub(super) fn replace(&mut self, server: PgServer) {
        self.server = server;
        self.moved();
    }
}

fn database_of(server: &PgServer, database: &str) -> Address {
    Address::Database(Box::new(server.config(database, "postgres")))
}

/// A server whose databases have a fed tag, and a role that feeds.
fn new_server(clock_is_fake: bool) -> Result<PgServer> {
    let builder = PgServer::builder();
    let builder = if clock_is_fake {
        builder.fake_clock()
    } else {
        builder
    };
    let server = builder
        .setting("max_wal_senders", "4")
        .setting("log_min_messages", "log")
        .setting("autovacuum", "off")
        .start()?;
    let mut keeper = server.client("postgres")?;
    keeper.batch_execute(
        "CREATE EXTENSION keywright; CREATE ROLE feeder LOGIN; GRANT USAGE ON SCHEMA keywright TO feeder; \
         GRANT EXECUTE ON FUNCTION keywright.await_demand, keywright.feed_tag, keywright.handed_over TO feeder",
    )?;
    for database in DATABASES {
        keeper.batch_execute(&format!("CREATE DATABASE {database}"))?;
        // Small ranges, so that many are handed over.
        server.client(database)?.batch_execute(
            "CREATE EXTENSION keywright; \
             SELECT keywright.create_fed_tag('orders', step => 10000, step_min => 5000, step_max => 40000)",
        )?;
    }
    Ok(server)
}

fn new_shard() -> Result<Upstream> {
    let shard = Upstream::start(Flavour::MariaDb)?;
    shard.run("mysql", "CREATE DATABASE shop")?;
    for table in TABLES {
        shard.run(
            "shop",
            &format!("CREATE TABLE {table} (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT)"),
        )?;
    }
    Ok(shard)
}

fn issuers_of(number: usize, program: &ProxyProcess) -> Result<Vec<Issuer>> {
    let name = format!("program {number}");
    let key_port = program.key_port()?;
    let listeners = program.ports().get(..SHARDS).context("listeners")?;
    let mut issuers = vec![Issuer::new(
        format!("key port of {name}"),
        Address::KeyPort(key_port),
    )];
    for (shard, &port) in listeners.iter().enumerate() {
        for table in TABLES {
            issuers.push(Issuer::new(
                format!("{table} of shard {shard} by {name}"),
                Address::Table(table, port),
            ));
        }
    }
    Ok(issuers)
}
