//! What a PostgreSQL server refuses, and what hangs: clear errors, and nobody is held up.

use std::time::Duration;

use keywright_core::Cause;
use keywright_store::{OWN_TABLES, RawStoreSettings, Severity};
use keywright_testkit::{PgServer, Pki, Replication, Result, WAIT_MAX, wait_until};

use crate::common::{
    Engine, IssuedLog, Schema, in_postgres, open, raw_postgres, runtime, segment, tag, until,
};
use crate::postgres_server::{opened, own_server};
use crate::put_back::{postgres_up_s, until_known};

/// Whatever of the four an account lacks is said before anybody waits for keys.
#[test]
fn what_the_account_lacks_is_told() -> Result<()> {
    let schema = Schema::of(Engine::Postgres, "kw_pg_privileges")?;
    let runtime = runtime()?;
    runtime.block_on(opened(&schema.raw()))?;
    let all = OWN_TABLES.join(", ");
    schema.sql(&format!(
        "CREATE ROLE kw_may LOGIN; GRANT SELECT, INSERT, UPDATE, DELETE ON {all} TO kw_may;
         CREATE ROLE kw_reads LOGIN; GRANT SELECT, UPDATE, DELETE ON {all} TO kw_reads"
    ))?;
    let errors = |user: &str| {
        let url = schema.raw().url.replace("postgres@", &format!("{user}@"));
        let keys = open(&RawStoreSettings {
            url,
            ..schema.raw()
        })?;
        let told = runtime.block_on(keys.check(&[tag("orders")]));
        let errors = told
            .into_iter()
            .filter(|told| told.severity == Severity::Error);
        let source = keys.source(&segment("orders"))?;
        let took = runtime.block_on(source.take(1, true)).is_ok();
        Ok::<_, anyhow::Error>((errors.map(|told| told.message).collect::<Vec<_>>(), took))
    };
    assert_eq!(errors("kw_may")?, (Vec::new(), true));
    let (told, _) = errors("kw_reads")?;
    let expected = format!("the store's account lacks INSERT on {all}: GRANT");
    assert!(
        told.iter().any(|told| told.starts_with(&expected)),
        "{told:?}"
    );
    Ok(())
}

/// Each of these is a clear error, and nothing is issued.
#[test]
fn what_is_no_store_is_told() -> Result<()> {
    let primary = own_server()?;
    let settings = raw_postgres_briefly(&primary);
    let runtime = runtime()?;
    let refused = |settings: &RawStoreSettings| {
        let keys = open(settings)?;
        let source = keys.source(&segment("orders"))?;
        let refused = runtime.block_on(source.take(1, true)).unwrap_err();
        assert_eq!(refused.cause(), Cause::StoreUnavailable, "{refused}");
        let hint = refused.hint_text().unwrap_or_default();
        Ok::<_, anyhow::Error>(format!("{refused} ({hint})"))
    };
    let at = |from: &str, to: &str| RawStoreSettings {
        url: settings.url.replace(from, to),
        ..settings.clone()
    };
    let told = refused(&settings)?;
    assert!(
        told.contains("relation \"keywright_segment\" does not exist"),
        "{told}"
    );
    assert!(told.ends_with("(run keywright init)"), "{told}");
    let told = refused(&at("/keywright", "/none"))?;
    assert!(told.contains("database \"none\" does not exist"), "{told}");
    let told = refused(&at("postgres@", "nobody@"))?;
    assert!(told.contains("role \"nobody\" does not exist"), "{told}");
    runtime.block_on(opened(&settings))?;
    let standby = primary.standby("other", Replication::Asynchronous)?;
    until_known(|| postgres_up_s(&standby))?;
    let told = refused(&raw_postgres_briefly(&standby))?;
    assert!(told.contains("read-write mode during recovery"), "{told}");
    in_postgres(
        &primary,
        "keywright",
        "ALTER TABLE keywright_segment SET UNLOGGED; ALTER TABLE keywright_worker ALTER epoch TYPE int",
    )?;
    let told = runtime.block_on(open(&settings)?.check(&[]));
    let told: Vec<String> = told.into_iter().map(|told| told.message).collect();
    let expected = [
        "table keywright_segment is unlogged or temporary",
        "column \"epoch\" of table keywright_worker is of type integer, not bigint",
    ];
    for expected in expected {
        assert!(told.iter().any(|told| told.contains(expected)), "{told:?}");
    }
    Ok(())
}

fn raw_postgres_briefly(server: &PgServer) -> RawStoreSettings {
    RawStoreSettings {
        wait_ms_max: 1_000,
        ..raw_postgres(server, "keywright")
    }
}

/// Certificate and host name are checked.
#[test]
fn tls_is_checked_or_nothing_is_said() -> Result<()> {
    let pki = Pki::new()?;
    let start = |who: &str| {
        let file = |name: &str| pki.file(name).display().to_string();
        let server = PgServer::builder()
            .preload(false)
            .setting("ssl", "on")
            .setting("ssl_cert_file", &file(&format!("{who}.pem")))
            .setting(
                "ssl_key_file",
                &pki.postgres_key(who)?.display().to_string(),
            )
            .start()?;
        in_postgres(&server, "postgres", "CREATE DATABASE keywright")?;
        Ok::<_, anyhow::Error>(server)
    };
    let runtime = runtime()?;
    let tls = |server: &PgServer, ca_file: Option<&str>| RawStoreSettings {
        tls: "required".to_owned(),
        tls_ca_file: ca_file.map(|name| pki.file(name)),
        ..raw_postgres(server, "keywright")
    };
    let server = start("server")?;
    let keys = runtime.block_on(opened(&tls(&server, Some("ca.pem"))))?;
    let source = keys.source(&segment("orders"))?;
    assert_eq!(runtime.block_on(source.take(1, true))?.number(0), Some(1));
    let used = "SELECT count(*) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) \
                WHERE ssl AND application_name = 'keywright'";
    assert_ne!(in_postgres(&server, "postgres", used)?, [["0"]]);
    let other = start("other")?;
    for (server, ca_file) in [(&server, None), (&other, Some("ca.pem"))] {
        let settings = RawStoreSettings {
            wait_ms_max: 500,
            ..tls(server, ca_file)
        };
        let refused = runtime.block_on(open(&settings)?.init()).unwrap_err();
        assert!(refused.to_string().contains("certificate"), "{refused}");
    }
    let plain = PgServer::builder().preload(false).start()?;
    let refused = runtime.block_on(open(&tls(&plain, Some("ca.pem")))?.init());
    let refused = refused.unwrap_err().to_string();
    assert!(refused.contains("TLS"), "{refused}");
    Ok(())
}

/// A server that is stopped, and one that waits for a lock, hold nobody up for longer than a transaction may last.
#[test]
fn a_lock_and_a_stopped_server_hang_nobody() -> Result<()> {
    let server = own_server()?;
    let settings = RawStoreSettings {
        wait_ms_max: 3_000,
        store_ms_max: 300,
        ..raw_postgres(&server, "keywright")
    };
    let (runtime, log) = (runtime()?, IssuedLog::default());
    let keys = runtime.block_on(opened(&RawStoreSettings {
        store_ms_max: 10_000,
        ..settings.clone()
    }))?;
    drop(keys);
    let mut holder = server.client("keywright")?;
    let mut locked = holder.transaction()?;
    locked.batch_execute("SELECT * FROM keywright_segment FOR UPDATE")?;
    // A source reserves as soon as it is there.
    let keys = open(&settings)?;
    let source = keys.source(&segment("orders"))?;
    let refused = runtime.block_on(source.take(1, true)).unwrap_err();
    assert_eq!(refused.cause(), Cause::StoreUnavailable, "{refused}");
    locked.rollback()?;
    // Nothing of ours is left that stands in the way of others.
    wait_until("locks to be gone", WAIT_MAX, || {
        let waiting = "SELECT count(*) FROM pg_locks WHERE NOT granted";
        Ok(in_postgres(&server, "postgres", waiting)? == [["0"]])
    })?;
    let source = keys.source(&segment("orders"))?;
    runtime.block_on(until("keys again", || {
        source.try_take(1, true).is_ok_and(|taken| {
            log.add_all("again", &taken);
            true
        })
    }));
    server.pause()?;
    let refused = loop {
        if let Err(refused) = runtime.block_on(source.take(10_000, true)) {
            break refused;
        }
    };
    server.resume()?;
    assert_eq!(refused.cause(), Cause::StoreUnavailable, "{refused}");
    runtime.block_on(async {
        tokio::time::timeout(Duration::from_secs(60), async {
            while source.take(1, true).await.is_err() {}
        })
        .await
    })?;
    Ok(())
}
