//! What the store's sessions are told first, and what becomes of those whose proxy is gone.

use std::sync::atomic::Ordering;

use keywright_store::RawStoreSettings;
use keywright_tests::{Flavour, Result};

use crate::common::{IssuedLog, Schema, open, raw, runtime, segment, small_steps, tag, until};
use crate::forwarder::Forwarder;

keywright_tests::on_both_flavours!(
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
        let log = IssuedLog::default();
        let keys = open(&RawStoreSettings {
            // What a session that is idle may cost follows from it.
            store_ms_max: 500,
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
        match flavour {
            // Only sessions inside a transaction are closed there.
            Flavour::MariaDb => {
                for row in schema.sql(&sessions)? {
                    schema.sql(&format!("KILL {}", row.join("")))?;
                }
            }
            Flavour::MySql => {}
        }
        until("the sessions to be closed", || {
            schema.sql(&sessions).is_ok_and(|rows| rows.is_empty())
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
