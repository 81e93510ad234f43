//! What the store's sessions are told first, and what becomes of those whose proxy is gone.

use std::sync::atomic::Ordering;

use keywright_core::Cause;
use keywright_store::{KeySpec, RawSnowflakeSettings, RawStoreSettings};
use keywright_testkit::{Flavour, Result, Upstream};

use crate::common::{
    IssuedLog, Schema, open, open_with, raw, runtime, segment, small_steps, tag, until,
};
use crate::forwarder::Forwarder;

keywright_testkit::on_both_flavours!(
    a_proxy_lost_inside_a_reservation_blocks_its_tag_for_seconds_only,
    a_session_that_the_server_closed_costs_no_reservation
);

fn a_proxy_lost_inside_a_reservation_blocks_its_tag_for_seconds_only(
    flavour: Flavour,
) -> Result<()> {
    let schema = Schema::on(flavour, "kw_session_lost")?;
    runtime()?.block_on(async {
        let log = IssuedLog::default();
        let direct = open(&RawStoreSettings {
            wait_ms_max: 20_000,
            ..schema.raw()
        })?;
        direct.init().await?;
        direct.create_tag(&tag("orders"), &small_steps(100)).await?;
        let line = Forwarder::start(schema.port()).await?;
        line.go_silent_at(Some("COMMIT"));
        let lost = open(&RawStoreSettings {
            store_ms_max: 500,
            ..raw(line.port, &schema.name)
        })?;
        let _loading = lost.source(&segment("orders"))?;
        until("the transaction to be open", || {
            line.silent.load(Ordering::Relaxed) > 0
        })
        .await;
        drop(lost);
        let source = direct.source(&segment("orders"))?;
        log.add_all("direct", &source.take(1, true).await?);
        Ok(())
    })
}

fn a_session_that_the_server_closed_costs_no_reservation(flavour: Flavour) -> Result<()> {
    let schema = Schema::on(flavour, "kw_session_closed")?;
    runtime()?.block_on(async {
        // Of a server that was started just now a lost session may be a restart, behind which nothing is reserved at first.
        until("the server to have run for seconds", || {
            let uptime = schema.sql("SHOW GLOBAL STATUS LIKE 'Uptime'");
            let seconds = |row: &Vec<String>| row.last()?.parse::<u64>().ok();
            uptime.is_ok_and(|rows| rows.first().and_then(seconds) >= Some(4))
        })
        .await;
        let log = IssuedLog::default();
        let keys = open(&RawStoreSettings {
            store_ms_max: 2_000,
            ..schema.raw()
        })?;
        keys.init().await?;
        keys.create_tag(&tag("orders"), &small_steps(100)).await?;
        let source = keys.source(&segment("orders"))?;
        log.add_all("before", &source.take(1, true).await?);
        let name = &schema.name;
        let sessions = format!(
            "SELECT ID FROM information_schema.PROCESSLIST WHERE DB = '{name}' AND ID <> CONNECTION_ID()"
        );
        let closed = schema.sql(&sessions)?;
        for session in &closed {
            schema.sql(&format!("KILL {}", session.join("")))?;
        }
        // The program has noticed, maybe, and has others.
        until("the sessions to be closed", || {
            let is_there = |rows: &[Vec<String>]| rows.iter().any(|row| closed.contains(row));
            schema.sql(&sessions).is_ok_and(|rows| !is_there(&rows))
        })
        .await;
        for _ in 0..100 {
            log.add_all("after", &source.take(3, true).await?);
        }
        let stats = keys.stats();
        assert_eq!(stats[0].refill_failures, 0, "{stats:?}");
        Ok(())
    })
}

/// Two layouts are kept apart by locks on rows that are not there yet, which a server whose sessions begin with READ
/// COMMITTED does not set.
#[test]
fn two_layouts_are_not_leased_at_once_whatever_the_server_s_isolation() -> Result<()> {
    let options = ["--transaction-isolation=READ-COMMITTED"];
    let server = Upstream::start_with(Flavour::MariaDb, &options)?;
    server.run("", "CREATE DATABASE keywright")?;
    runtime()?.block_on(async {
        let on = |worker_id, layout: &str| RawSnowflakeSettings {
            layout: layout.to_owned(),
            worker_id: Some(worker_id),
            ..RawSnowflakeSettings::default()
        };
        let line = Forwarder::start(server.port()).await?;
        let direct = raw(server.port(), "keywright");
        open(&direct)?.init().await?;
        // The first has looked at all leases, and not written its own.
        line.go_silent_at(Some("INSERT INTO keywright_worker"));
        let first = open_with(&raw(line.port, "keywright"), &on(1, "twitter"))?;
        let one = first.source(&KeySpec::Snowflake)?;
        until("the first to have looked", || {
            line.silent.load(Ordering::Relaxed) > 0
        })
        .await;
        let second = open_with(&direct, &on(2, "instagram"))?;
        let two = second.source(&KeySpec::Snowflake)?;
        until("the second to write, or to have to wait", || {
            // (INNODB_TRX says who waits, but nothing new to who reads it ten times a second.)
            let inserts = "SELECT 1 FROM information_schema.PROCESSLIST \
                           WHERE INFO LIKE 'INSERT INTO keywright_worker%'";
            let waiting = server.run("", inserts).is_ok_and(|rows| !rows.is_empty());
            waiting || second.worker_id().is_some()
        })
        .await;
        line.go_silent_at(None);
        let answers = [one.take(1, true).await, two.take(1, true).await];
        let refused: Vec<Cause> = answers
            .iter()
            .filter_map(|answer| answer.as_ref().err().map(|failure| failure.cause()))
            .collect();
        assert_eq!(refused, [Cause::LayoutOverlap], "{answers:?}");
        Ok(())
    })
}
