//! A store in a file of the machine: a proxy that needs no other server.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use keywright_testkit::{
    Flavour, ProxyConfig, ProxyProcess, Result, Upstream, WAIT_MAX, assert_has, scratch_dir,
    wait_until,
};

/// A server with an empty table, and a proxy's settings with a store in this file.
fn before(database: &str, file: &Path) -> Result<(Upstream, ProxyConfig)> {
    let server = Upstream::start(Flavour::MariaDb)?;
    server.run(
        "mysql",
        &format!(
            "CREATE DATABASE {database};
             CREATE TABLE {database}.t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT)"
        ),
    )?;
    let mut config = ProxyConfig::before(&server, &format!("file:{}", file.display()))
        .rule(&format!("{database}.t"), "segment:orders");
    // Where tests run, it may be on an overlay.
    config.store = "any_file_system = true\n".to_owned();
    Ok((server, config))
}

/// Inserts rows; their ids.
fn insert(proxy: &ProxyProcess, database: &str, rows: usize) -> Result<Vec<u64>> {
    let mut wire = proxy.wire(database)?;
    let ids = (0..rows).map(|_| Ok(wire.run("INSERT INTO t (a) VALUES (1)")?.last_insert_id));
    ids.collect()
}

#[test]
fn only_init_makes_the_file() -> Result<()> {
    let scratch = scratch_dir()?;
    let file = scratch.path().join("store.db");
    let (_server, config) = before("made", &file)?;
    let output = ProxyProcess::command(&config, &["check"])?;
    assert!(!output.status.success());
    assert_has(
        &String::from_utf8(output.stdout)?,
        &["there is no such file", "keywright init"],
    );
    assert!(!file.exists());
    let output = ProxyProcess::said(&config, &["init"])?;
    assert_has(&output, &["created file:", "created tag \"orders\""]);
    assert!(file.exists());
    assert_has(&ProxyProcess::said(&config, &["init"])?, &["nothing to do"]);
    Ok(())
}

#[test]
fn no_key_comes_twice_however_programs_end() -> Result<()> {
    let scratch = scratch_dir()?;
    let (_server, config) = before("killed", &scratch.path().join("store.db"))?;
    ProxyProcess::said(&config, &["init"])?;
    let mut ids = BTreeSet::new();
    let mut all = 0;
    // Two programs of one machine share it.
    let other = ProxyProcess::start(config.clone())?;
    for round in 0..4 {
        let mut proxy = ProxyProcess::start(config.clone())?;
        for program in [&proxy, &other] {
            let given = insert(program, "killed", 50)?;
            all += given.len();
            ids.extend(given);
        }
        match round % 2 {
            0 => proxy.kill9()?,
            _ => proxy.stop()?,
        };
    }
    assert_eq!(ids.len(), all);
    Ok(())
}

/// What was given stands in the file itself, not only in the log of commits beside it.
#[test]
fn a_file_that_is_renamed_after_a_crash_gives_no_key_again() -> Result<()> {
    let scratch = scratch_dir()?;
    let file = scratch.path().join("store.db");
    let (_server, config) = before("renamed", &file)?;
    ProxyProcess::said(&config, &["init"])?;
    let mut proxy = ProxyProcess::start(config.clone())?;
    insert(&proxy, "renamed", 1)?;
    proxy.stop()?;
    let mut proxy = ProxyProcess::start(config.clone())?;
    let given = insert(&proxy, "renamed", 300)?;
    proxy.kill9()?;
    let renamed = scratch.path().join("renamed.db");
    fs::rename(&file, &renamed)?;
    let config = ProxyConfig {
        store_url: format!("file:{}", renamed.display()),
        ..config
    };
    let proxy = ProxyProcess::start(config)?;
    let after = insert(&proxy, "renamed", 20)?;
    assert!(after.iter().min() > given.iter().max(), "{after:?}");
    Ok(())
}

/// Whoever has the old log of commits does not see what is written to the new one.
#[test]
fn a_log_of_commits_that_was_deleted_gives_no_key_twice() -> Result<()> {
    let scratch = scratch_dir()?;
    let file = scratch.path().join("store.db");
    let (_server, config) = before("unlogged", &file)?;
    ProxyProcess::said(&config, &["init"])?;
    let first = ProxyProcess::start(config.clone())?;
    let mut ids = insert(&first, "unlogged", 10)?;
    for name in ["store.db-wal", "store.db-shm"] {
        fs::remove_file(scratch.path().join(name))?;
    }
    let second = ProxyProcess::start(config)?;
    let mut wire = first.wire("unlogged")?;
    let error = loop {
        ids.extend(insert(&second, "unlogged", 10)?);
        match wire.run("INSERT INTO t (a) VALUES (1)") {
            Ok(done) => ids.push(done.last_insert_id),
            Err(error) => break error,
        }
    };
    assert_has(&format!("{error:#}"), &["cannot be used"]);
    assert_has(&first.log(), &["another file is in its place now"]);
    let all = ids.len();
    let distinct: BTreeSet<u64> = ids.into_iter().collect();
    assert_eq!(distinct.len(), all);
    Ok(())
}

#[test]
fn a_copy_is_taken_by_the_word_of_whoever_made_it() -> Result<()> {
    let scratch = scratch_dir()?;
    let file = scratch.path().join("store.db");
    let (_server, config) = before("copied", &file)?;
    ProxyProcess::said(&config, &["init"])?;
    let mut proxy = ProxyProcess::start(config.clone())?;
    let before = insert(&proxy, "copied", 20)?;
    proxy.stop()?;
    let copy = scratch.path().join("copy.db");
    wait_until("the file is closed", WAIT_MAX, || {
        Ok(!scratch.path().join("store.db-wal").exists())
    })?;
    fs::copy(&file, &copy)?;
    let config = ProxyConfig {
        store_url: format!("file:{}", copy.display()),
        ..config
    };
    let output = ProxyProcess::command(&config, &["init"])?;
    assert!(!output.status.success());
    assert_has(
        &String::from_utf8(output.stderr)?,
        &[
            "it was copied or moved",
            "keywright init --accept-moved-file",
        ],
    );
    let output = ProxyProcess::said(&config, &["init", "--accept-moved-file"])?;
    assert_has(&output, &["accepted file:"]);
    let proxy = ProxyProcess::start(config)?;
    let after = insert(&proxy, "copied", 20)?;
    assert!(
        after.iter().min() > before.iter().max(),
        "{before:?} {after:?}"
    );
    Ok(())
}
