//! A store's file into which an older state is written while programs use it (`cp backup store.db`): it stays the same file.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use keywright_core::Cause;
use keywright_store::{Above, Failure, KeySpec, Keys, RawStoreSettings, Severity, Source};
use keywright_testkit::{Result, WAIT_MAX};

use crate::common::{Engine, IssuedLog, Schema, open, runtime, segment, small_steps, tag, until};

/// Far more than a program can have reserved.
const TAKES_MAX: usize = 1_000;

const TOLD: &str = "an older state was written into it while a program used it";

/// Settings of those who hear soon why there is nothing.
fn impatient(schema: &Schema) -> RawStoreSettings {
    RawStoreSettings {
        wait_ms_max: 2_000,
        ..schema.raw()
    }
}

fn wal(schema: &Schema) -> PathBuf {
    schema.file().with_extension("db-wal")
}

/// As people do it: the file that programs have open gets another content.
fn overwrite(file: &Path, with: &Path) -> Result<()> {
    let status = Command::new("cp").arg(with).arg(file).status()?;
    anyhow::ensure!(status.success(), "cp has failed");
    Ok(())
}

/// A store of which ids were taken, and whose rest was handed back; its file, as it was then.
async fn backed_up(schema: &Schema, log: &IssuedLog) -> Result<PathBuf> {
    let keys = open(&schema.raw())?;
    keys.init().await?;
    keys.create_tag(&tag("orders"), &small_steps(100)).await?;
    log.add_all(
        "first",
        &keys.source(&segment("orders"))?.take(7, true).await?,
    );
    stopped(keys, schema).await;
    let backup = schema.file().with_file_name("backup.db");
    std::fs::copy(schema.file(), &backup)?;
    Ok(backup)
}

async fn stopped(keys: Keys, schema: &Schema) {
    keys.hand_back().await;
    drop(keys);
    until("the file is closed", || !wal(schema).exists()).await;
}

async fn take(source: &Source, log: &IssuedLog, by: &str, takes: usize) -> Result<()> {
    for _ in 0..takes {
        log.add_all(by, &source.take(3, true).await?);
    }
    Ok(())
}

/// Uses up what a program has reserved; why it gets no more.
async fn refusal(source: &Source, log: &IssuedLog, by: &str) -> Failure {
    for _ in 0..TAKES_MAX {
        match source.take(7, true).await {
            Ok(keys) => log.add_all(by, &keys),
            Err(failure) => return failure,
        }
    }
    panic!("{by} goes on with an older state");
}

fn assert_told(failure: &Failure) {
    assert_eq!(failure.cause(), Cause::BoundDamaged, "{failure}");
    for part in [TOLD, "keywright init --accept-moved-file"] {
        assert!(failure.to_string().contains(part), "{failure}");
    }
}

/// Whoever starts now gets nothing, and `check` says why.
async fn assert_nobody_starts(schema: &Schema, log: &IssuedLog) -> Result<()> {
    let keys = open(&impatient(schema))?;
    assert_told(&refusal(&keys.source(&segment("orders"))?, log, "later").await);
    let found = open(&schema.raw())?.check(&[tag("orders")]).await;
    let mut found = found.iter();
    assert!(
        found.any(|found| found.severity == Severity::Error && found.message.contains(TOLD)),
        "{found:?}"
    );
    assert_told(&open(&schema.raw())?.init().await.unwrap_err());
    Ok(())
}

/// Goes on as the error says.
async fn assert_goes_on(schema: &Schema, log: &IssuedLog) -> Result<()> {
    let keys = open(&schema.raw())?;
    assert!(keys.accept_moved().await?);
    let id = log.max();
    let tag = tag("orders");
    keys.advance(&Above::Tag { tag, id }).await?;
    take(&keys.source(&segment("orders"))?, log, "after", 200).await?;
    stopped(keys, schema).await;
    let keys = open(&schema.raw())?;
    take(&keys.source(&segment("orders"))?, log, "the next", 200).await
}

/// Also where the bound is the backup's, because a program has only used the rest that was handed back.
#[test]
fn nothing_of_an_older_state_is_issued_again() -> Result<()> {
    for takes in [1, 300] {
        let schema = Schema::of(Engine::File, "overwritten")?;
        runtime()?.block_on(async {
            let log = IssuedLog::default();
            let backup = backed_up(&schema, &log).await?;
            let keys = [open(&impatient(&schema))?, open(&impatient(&schema))?];
            let [more, less] = [
                keys[0].source(&segment("orders"))?,
                keys[1].source(&segment("orders"))?,
            ];
            take(&less, &log, "less", 1).await?;
            take(&more, &log, "more", takes).await?;
            overwrite(&schema.file(), &backup)?;
            assert_told(&refusal(&more, &log, "more").await);
            assert_told(&refusal(&less, &log, "less").await);
            drop((more, less, keys));
            assert_nobody_starts(&schema, &log).await?;
            assert_goes_on(&schema, &log).await
        })?;
    }
    Ok(())
}

/// Nobody wants anything of the program that has seen more.
#[test]
fn an_older_state_is_noticed_by_a_program_that_has_enough() -> Result<()> {
    let schema = Schema::of(Engine::File, "idle")?;
    runtime()?.block_on(async {
        let log = IssuedLog::default();
        let backup = backed_up(&schema, &log).await?;
        let keys = open(&schema.raw())?;
        take(&keys.source(&segment("orders"))?, &log, "more", 1).await?;
        overwrite(&schema.file(), &backup)?;
        until_told(&schema).await;
        assert_nobody_starts(&schema, &log).await?;
        drop(keys);
        Ok(())
    })
}

/// The last two commits do not fit: a program has spoiled them, or what was in the log was copied into the older state.
async fn until_told(schema: &Schema) {
    let fitting = "SELECT COUNT(*) FROM keywright_commit_even AS e, keywright_commit_odd AS o \
                   WHERE e.serial = o.serial + 1 AND e.previous = o.token \
                   OR o.serial = e.serial + 1 AND o.previous = e.token";
    let began = Instant::now();
    while !schema.number(fitting).is_ok_and(|found| found == 0) {
        if began.elapsed() > WAIT_MAX {
            let rows =
                "SELECT * FROM keywright_commit_odd UNION ALL SELECT * FROM keywright_commit_even";
            let log = std::fs::metadata(wal(schema)).map(|log| log.len());
            panic!(
                "the file does not tell: {:?}, log {log:?}",
                schema.sql(rows)
            );
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// The program has met the file while it was being copied, and could not read it: it has no pages, or none with anything on them.
#[test]
fn a_file_that_could_not_be_read_for_a_moment_tells_it_too() -> Result<()> {
    for bytes in [8_192, 0] {
        let schema = Schema::of(Engine::File, "unreadable")?;
        runtime()?.block_on(async {
            let log = IssuedLog::default();
            let backup = backed_up(&schema, &log).await?;
            let keys = open(&impatient(&schema))?;
            let source = keys.source(&segment("orders"))?;
            take(&source, &log, "more", 300).await?;
            let nothing = schema.file().with_file_name("nothing");
            std::fs::write(&nothing, vec![0; bytes])?;
            overwrite(&schema.file(), &nothing)?;
            refusal(&source, &log, "more").await;
            overwrite(&schema.file(), &backup)?;
            until_told(&schema).await;
            drop((source, keys));
            assert_nobody_starts(&schema, &log).await
        })?;
    }
    Ok(())
}

/// The last commit began before the file was overwritten, and was copied into it afterwards. Nobody runs any more who has seen it.
#[test]
fn a_mixture_of_two_states_is_not_used() -> Result<()> {
    let schema = Schema::of(Engine::File, "mixed")?;
    runtime()?.block_on(async {
        let log = IssuedLog::default();
        let backup = backed_up(&schema, &log).await?;
        let keys = open(&schema.raw())?;
        take(&keys.source(&segment("orders"))?, &log, "second", 300).await?;
        stopped(keys, &schema).await;
        let newer = schema.sql("SELECT serial, token, previous FROM keywright_commit_even")?;
        let [row] = newer.as_slice() else {
            panic!("{newer:?}");
        };
        let [serial, token, previous] = row.as_slice() else {
            panic!("{row:?}");
        };
        overwrite(&schema.file(), &backup)?;
        schema.sql(&format!(
            "UPDATE keywright_commit_even SET serial = {serial}, token = '{token}', previous = '{previous}'"
        ))?;
        assert_nobody_starts(&schema, &log).await?;
        assert_goes_on(&schema, &log).await
    })
}

/// A backup that is put back as the manual says, with all programs stopped, is used by who starts: nothing of it tells.
#[test]
fn who_starts_on_a_file_that_was_put_back_goes_on() -> Result<()> {
    let schema = Schema::of(Engine::File, "putback")?;
    runtime()?.block_on(async {
        let log = IssuedLog::default();
        let backup = backed_up(&schema, &log).await?;
        let keys = open(&schema.raw())?;
        take(&keys.source(&segment("orders"))?, &log, "second", 300).await?;
        stopped(keys, &schema).await;
        overwrite(&schema.file(), &backup)?;
        let keys = open(&schema.raw())?;
        let lost = std::time::Duration::from_secs(60);
        keys.restored(lost, std::collections::BTreeMap::new())
            .await?;
        let id = log.max();
        let tag = tag("orders");
        keys.advance(&Above::Tag { tag, id }).await?;
        let keys = open(&schema.raw())?;
        take(&keys.source(&segment("orders"))?, &log, "third", 300).await
    })
}

/// It was made by a version that did not record them.
#[test]
fn a_file_without_records_of_its_commits_gets_them() -> Result<()> {
    let schema = Schema::of(Engine::File, "unrecorded")?;
    runtime()?.block_on(async {
        let log = IssuedLog::default();
        backed_up(&schema, &log).await?;
        schema.sql("DROP TABLE keywright_commit_even")?;
        schema.sql("DROP TABLE keywright_commit_odd")?;
        let keys = open(&schema.raw())?;
        take(&keys.source(&segment("orders"))?, &log, "next", 300).await?;
        let both = "SELECT COUNT(*) FROM keywright_commit_even, keywright_commit_odd";
        assert_eq!(schema.number(both)?, 1);
        let taken = keys.source(&KeySpec::Snowflake)?.take(1, true).await?;
        log.add_all("next", &taken);
        Ok(())
    })
}
