//! A server whose data are put back to an older state under programs that run, and how long a server has run.

use std::sync::atomic::Ordering;

use anyhow::Context;
use keywright_core::Cause;
use keywright_store::RawStoreSettings;
use keywright_testkit::{Flavour, NEW_UP_S_MAX, PgServer, Result, Upstream, WAIT_MAX, wait_until};

use crate::common::{
    Engine, IssuedLog, in_postgres, open, raw, raw_postgres, runtime, segment, small_steps, tag,
    until,
};
use crate::forwarder::Forwarder;
use crate::postgres_server;
use crate::rewound::{take, take_until_refused};

/// Waits until no program that begins takes the server for one that was started just now: such a program reserves nothing at first.
pub fn until_known(up_s: impl Fn() -> Result<u64>) -> Result<()> {
    wait_until("a server that is not new", WAIT_MAX, || {
        Ok(up_s()? > NEW_UP_S_MAX)
    })
}

/// How long a server has run, seconds.
pub fn postgres_up_s(server: &PgServer) -> Result<u64> {
    let up_s = "SELECT CAST(FLOOR(EXTRACT(EPOCH FROM clock_timestamp() - pg_postmaster_start_time())) AS bigint)";
    let rows = in_postgres(server, "postgres", up_s)?;
    let up_s = rows.first().and_then(|row| row.first());
    Ok(up_s.context("no uptime")?.parse()?)
}

/// A store's server of a test's own, with an empty `keywright`. It keeps what it has committed.
pub enum OwnServer {
    MySql(Upstream),
    Postgres(PgServer),
}

impl OwnServer {
    /// The engines that have one.
    pub const ENGINES: [Engine; 3] = [Engine::MariaDb, Engine::MySql, Engine::Postgres];

    pub fn start(engine: Engine) -> Result<OwnServer> {
        let of = |flavour| -> Result<OwnServer> {
            let keeps = ["--innodb-flush-log-at-trx-commit=1", "--sync-binlog=1"];
            let server = Upstream::start_with(flavour, &keeps)?;
            server.run("", "CREATE DATABASE keywright")?;
            Ok(OwnServer::MySql(server))
        };
        match engine {
            Engine::MariaDb => of(Flavour::MariaDb),
            Engine::MySql => of(Flavour::MySql),
            Engine::Postgres => Ok(OwnServer::Postgres(postgres_server::own_server()?)),
            Engine::Etcd | Engine::File => anyhow::bail!("it has no server that is restarted"),
        }
    }

    pub fn port(&self) -> u16 {
        match self {
            OwnServer::MySql(server) => server.port(),
            OwnServer::Postgres(server) => server.port(),
        }
    }

    pub fn raw(&self) -> RawStoreSettings {
        match self {
            OwnServer::MySql(server) => raw(server.port(), "keywright"),
            OwnServer::Postgres(server) => raw_postgres(server, "keywright"),
        }
    }

    /// The same store by another port.
    pub fn through(&self, port: u16) -> RawStoreSettings {
        let (raw, there) = (self.raw(), self.port().to_string());
        let url = raw.url.replace(&there, &port.to_string());
        RawStoreSettings { url, ..raw }
    }

    /// The rows of what statements select.
    pub fn sql(&self, sql: &str) -> Result<Vec<Vec<String>>> {
        match self {
            OwnServer::MySql(server) => server.run("keywright", sql),
            OwnServer::Postgres(server) => in_postgres(server, "keywright", sql),
        }
    }

    /// A moment, as it stands in the tables.
    pub fn long_ago(&self) -> &'static str {
        match self {
            OwnServer::MySql(_) => "'2000-01-01'",
            OwnServer::Postgres(_) => "0",
        }
    }

    /// The same, later than any test.
    pub fn far_ahead(&self) -> &'static str {
        match self {
            OwnServer::MySql(_) => "'2200-01-01'",
            OwnServer::Postgres(_) => "7258118400000",
        }
    }

    /// Ends it at once, and starts it again.
    pub fn restart(&mut self) -> Result<()> {
        match self {
            OwnServer::MySql(server) => {
                server.kill9()?;
                server.restart()
            }
            OwnServer::Postgres(server) => {
                server.kill9()?;
                server.start()
            }
        }
    }
}

/// One that was started while the server was away meets it together with those that ran before.
#[test]
fn a_program_that_begins_behind_a_restart_reserves_when_all_have_looked() -> Result<()> {
    for engine in OwnServer::ENGINES {
        let mut server = OwnServer::start(engine)?;
        runtime()?.block_on(async {
            let line = Forwarder::start(server.port()).await?;
            let more = open(&server.through(line.port))?;
            more.init().await?;
            more.create_tag(&tag("orders"), &small_steps(100)).await?;
            let log = IssuedLog::default();
            let source = more.source(&segment("orders"))?;
            take(&source, &log, "more", 1_000).await?;
            let gate = Forwarder::start(server.port()).await?;
            for line in [&line, &gate] {
                line.stalled.store(true, Ordering::Relaxed);
            }
            server.restart()?;
            server.sql("UPDATE keywright_segment SET hi = 400")?;
            let fresh = open(&RawStoreSettings {
                store_ms_max: 2_000,
                ..server.through(gate.port)
            })?;
            let begins = fresh.source(&segment("orders"))?;
            until("a program that gets no answer", || {
                fresh.stats()[0].refill_failures > 0
            })
            .await;
            gate.stalled.store(false, Ordering::Relaxed);
            until("a program that waits for others", || {
                let trouble = fresh.stats()[0].trouble.clone();
                trouble.is_some_and(|trouble| trouble.contains("was started a moment ago"))
            })
            .await;
            line.stalled.store(false, Ordering::Relaxed);
            let refused = take_until_refused(&begins, &log, "fresh").await;
            assert_eq!(refused.cause(), Cause::BoundDamaged, "{refused}");
            Ok::<(), anyhow::Error>(())
        })?;
    }
    Ok(())
}
