//! A store in a file: who makes it, and what of a file is not believed.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use keywright_core::Cause;
use keywright_store::{Failure, KeySpec, Keys, RawStoreSettings, Severity};
use keywright_testkit::Result;
use rusqlite::Connection;

use crate::common::{
    Engine, IssuedLog, Schema, open, raw_file, runtime, segment, small_steps, tag, until,
};

/// A store with tag `orders`, and keys that were taken of it.
async fn used(schema: &Schema, log: &IssuedLog) -> Result<Keys> {
    let keys = open(&schema.raw())?;
    keys.init().await?;
    keys.create_tag(&tag("orders"), &small_steps(100)).await?;
    for spec in [segment("orders"), KeySpec::Snowflake] {
        let source = keys.source(&spec)?;
        for _ in 0..50 {
            log.add_all("first", &source.take(7, true).await?);
        }
    }
    Ok(keys)
}

/// Settings of those who hear soon why there is nothing.
fn impatient(raw: &RawStoreSettings) -> RawStoreSettings {
    RawStoreSettings {
        wait_ms_max: 2_000,
        ..raw.clone()
    }
}

/// Why a program that starts now gets no keys of tag `orders`.
async fn refused(raw: &RawStoreSettings) -> Result<Failure> {
    let keys = open(&impatient(raw))?;
    Ok(keys
        .source(&segment("orders"))?
        .take(1, true)
        .await
        .unwrap_err())
}

#[test]
fn only_init_makes_a_file_and_only_out_of_nothing() -> Result<()> {
    let schema = Schema::of(Engine::File, "made")?;
    runtime()?.block_on(async {
        let failure = refused(&schema.raw()).await?;
        assert_eq!(failure.cause(), Cause::StoreUnavailable);
        let expected = format!(
            "the store at file:{} cannot be used: there is no such file (is its disk mounted? keywright init is for a store that never was, \
             or was lost: then keywright advance, too)",
            schema.file().display()
        );
        assert_eq!(failure.to_string(), expected);
        assert!(!schema.file().exists());

        fs::write(schema.file(), "")?;
        let failure = refused(&schema.raw()).await?;
        assert!(
            failure.message().contains("none of its tables"),
            "{failure}"
        );
        let keys = open(&schema.raw())?;
        let findings = keys.check(&[]).await;
        let is_error = |severity| severity == Severity::Error;
        assert!(
            findings.iter().any(|found| is_error(found.severity)),
            "{findings:?}"
        );
        assert!(!keys.init().await?.is_empty());
        assert_eq!(keys.init().await?, Vec::<String>::new());
        let findings = keys.check(&[]).await;
        assert!(
            !findings.iter().any(|found| is_error(found.severity)),
            "{findings:?}"
        );

        let new = Schema::of(Engine::File, "new")?;
        let created = open(&new.raw())?.init().await?;
        assert_eq!(created[0], format!("file:{}", new.file().display()));
        assert_eq!(
            fs::metadata(new.file())?.mode() & 0o007,
            0,
            "others can read it"
        );

        let other = Schema::of(Engine::File, "foreign")?;
        Connection::open(other.file())?.execute_batch("CREATE TABLE notes (text TEXT)")?;
        let failure = open(&other.raw())?.init().await.unwrap_err();
        assert!(
            failure.message().contains("not made by Keywright"),
            "{failure}"
        );
        fs::write(
            other.file(),
            "this is no database, and it is longer than its header",
        )?;
        let failure = open(&other.raw())?.init().await.unwrap_err();
        assert_eq!(failure.cause(), Cause::BoundDamaged, "{failure}");
        Ok(())
    })
}

/// It is `init` that says so, which is not told to run `init`.
#[test]
fn whoever_makes_a_file_is_told_of_a_directory_that_is_not_there() -> Result<()> {
    let schema = Schema::of(Engine::File, "nodirectory")?;
    let directory = schema.file().with_file_name("no_directory_here");
    let raw = RawStoreSettings {
        url: format!("file:{}", directory.join("store.db").display()),
        ..schema.raw()
    };
    runtime()?.block_on(async {
        let failure = open(&raw)?.init().await.unwrap_err().to_string();
        let wanted = format!("the directory {} is not there", directory.display());
        assert!(failure.contains(&wanted), "{failure}");
        assert!(!failure.contains("keywright init"), "{failure}");
        Ok(())
    })
}

/// Nothing is taken of a copy until somebody says that the original is used no more; and then a gap is left.
#[test]
fn a_copy_is_another_store() -> Result<()> {
    let (schema, copy) = (
        Schema::of(Engine::File, "original")?,
        Schema::of(Engine::File, "copy")?,
    );
    runtime()?.block_on(async {
        let log = IssuedLog::default();
        let keys = used(&schema, &log).await?;
        Connection::open(schema.file())?.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)")?;
        fs::copy(schema.file(), copy.file())?;
        let failure = refused(&copy.raw()).await?;
        for part in [
            "it was copied or moved",
            "--accept-moved-file",
            "keywright advance",
        ] {
            assert!(failure.to_string().contains(part), "{failure}");
        }
        let copied = open(&copy.raw())?;
        let failure = copied.init().await.unwrap_err();
        assert!(failure.message().contains("copied or moved"), "{failure}");
        // The original does not notice.
        log.add_all(
            "first",
            &keys.source(&segment("orders"))?.take(7, true).await?,
        );
        let hi = schema.number("SELECT hi FROM keywright_segment")?;
        keys.hand_back().await;

        assert!(copied.accept_moved().await?);
        assert!(!copied.accept_moved().await?, "it is accepted already");
        let taken = copied.source(&segment("orders"))?.take(7, true).await?;
        assert!(taken.number(0).unwrap() > hi, "no gap was left out");
        log.add_all("copy", &taken);
        let taken = copied.source(&KeySpec::Snowflake)?.take(7, true).await?;
        log.add_all("copy", &taken);
        // Moved within its file system it is the same file.
        let moved = copy.file().with_file_name("moved.db");
        copied.hand_back().await;
        drop(copied);
        until("the file is closed", || !wal(&copy.file()).exists()).await;
        fs::rename(copy.file(), &moved)?;
        let keys = open(&raw_file(&moved))?;
        log.add_all(
            "moved",
            &keys.source(&segment("orders"))?.take(7, true).await?,
        );
        Ok(())
    })
}

fn wal(file: &Path) -> std::path::PathBuf {
    file.with_extension("db-wal")
}

/// Who has a file open goes on with no other one, nor with one that has no name any more.
#[test]
fn a_file_that_was_replaced_is_not_written_to() -> Result<()> {
    let schema = Schema::of(Engine::File, "replaced")?;
    runtime()?.block_on(async {
        let log = IssuedLog::default();
        drop(used(&schema, &log).await?);
        let keys = open(&impatient(&schema.raw()))?;
        let source = keys.source(&segment("orders"))?;
        log.add_all("second", &source.take(7, true).await?);
        let old = schema.file().with_file_name("old.db");
        fs::copy(schema.file(), &old)?;
        fs::rename(&old, schema.file())?;
        let failure = loop {
            match source.take(7, true).await {
                Ok(taken) => log.add_all("first", &taken),
                Err(failure) => break failure,
            }
        };
        assert_eq!(failure.cause(), Cause::StoreUnavailable, "{failure}");
        fs::remove_file(schema.file())?;
        let gone = "another file is in its place now";
        until("it is told", || {
            keys.stats()
                .iter()
                .any(|its| format!("{its:?}").contains(gone))
        })
        .await;
        assert!(!schema.file().exists());
        Ok(())
    })
}

/// Its log lies beside the file, not beside the link.
#[test]
fn a_link_to_a_file_is_followed() -> Result<()> {
    let schema = Schema::of(Engine::File, "symlinked")?;
    runtime()?.block_on(async {
        let log = IssuedLog::default();
        drop(used(&schema, &log).await?);
        let elsewhere = tempfile::tempdir()?;
        let link = elsewhere.path().join("link.db");
        std::os::unix::fs::symlink(schema.file(), &link)?;
        let keys = open(&raw_file(&link))?;
        log.add_all(
            "second",
            &keys.source(&segment("orders"))?.take(7, true).await?,
        );
        Ok(())
    })
}

#[test]
fn a_file_with_two_names_is_refused() -> Result<()> {
    let schema = Schema::of(Engine::File, "linked")?;
    runtime()?.block_on(async {
        drop(used(&schema, &IssuedLog::default()).await?);
        let other = schema.file().with_file_name("other.db");
        fs::hard_link(schema.file(), &other)?;
        for file in [schema.file(), other] {
            let failure = refused(&raw_file(&file)).await?;
            assert!(failure.message().contains("several names"), "{failure}");
        }
        Ok(())
    })
}

/// A program that was stopped in the middle holds the others up, and they say so.
#[test]
fn a_lock_that_somebody_keeps_is_told_and_waited_for() -> Result<()> {
    let schema = Schema::of(Engine::File, "locked")?;
    runtime()?.block_on(async {
        let log = IssuedLog::default();
        drop(used(&schema, &log).await?);
        let holder = Connection::open(schema.file())?;
        holder.execute_batch("BEGIN IMMEDIATE")?;
        let raw = RawStoreSettings {
            store_ms_max: 2_000,
            wait_ms_max: 5_000,
            ..schema.raw()
        };
        let keys = open(&raw)?;
        let source = keys.source(&segment("orders"))?;
        let failure = source.take(1, true).await.unwrap_err();
        let expected = "another program has held its lock for more than 1500 ms";
        assert!(failure.message().contains(expected), "{failure}");
        holder.execute_batch("ROLLBACK")?;
        let taken = loop {
            if let Ok(taken) = source.take(1, true).await {
                break taken;
            }
        };
        log.add_all("second", &taken);
        Ok(())
    })
}

/// What a disk has once said wrong is not asked again, also when it seems well: what the kernel could not write it may have forgotten.
#[test]
fn after_an_error_of_the_disk_nothing_is_taken_until_the_program_starts_again() -> Result<()> {
    let schema = Schema::of(Engine::File, "damaged")?;
    runtime()?.block_on(async {
        let log = IssuedLog::default();
        let first = used(&schema, &log).await?;
        first.hand_back().await;
        drop(first);
        until("the file is closed", || !wal(&schema.file()).exists()).await;
        let sound = fs::read(schema.file())?;
        fs::write(schema.file(), vec![0x5a; sound.len()])?;
        let keys = open(&schema.raw())?;
        let failure = keys.tags().await.unwrap_err();
        assert_eq!(failure.cause(), Cause::BoundDamaged, "{failure}");
        fs::write(schema.file(), &sound)?;
        let failure = keys.tags().await.unwrap_err();
        for part in ["is not used any more", "start the program again"] {
            assert!(failure.to_string().contains(part), "{failure}");
        }
        let next = open(&schema.raw())?;
        log.add_all(
            "next",
            &next.source(&segment("orders"))?.take(1, true).await?,
        );
        Ok(())
    })
}

/// The largest id that can be kept is one less than elsewhere: the number behind it must fit too.
#[test]
fn a_tag_ends_where_numbers_end() -> Result<()> {
    let schema = Schema::of(Engine::File, "end")?;
    runtime()?.block_on(async {
        let keys = open(&schema.raw())?;
        keys.init().await?;
        let options = keywright_store::TagOptions {
            start: i64::MAX.cast_unsigned() - 10,
            ..small_steps(100)
        };
        keys.create_tag(&tag("orders"), &options).await?;
        let source = keys.source(&segment("orders"))?;
        let log = IssuedLog::default();
        let failure = loop {
            match source.take(1, true).await {
                Ok(taken) => log.add_all("last", &taken),
                Err(failure) => break failure,
            }
        };
        assert_eq!(failure.cause(), Cause::TagExhausted, "{failure}");
        assert_eq!(log.max(), i64::MAX.cast_unsigned() - 1);
        Ok(())
    })
}
