//! A program that starts while its store is away goes on with what is kept in a local file, or not at all.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use keywright_testkit::redis::{RespClient, RespValue};
use keywright_testkit::{
    Flavour, ProxyConfig, ProxyProcess, Result, Upstream, WAIT_MAX, assert_has, make_store,
    scratch_dir, wait_until,
};
use tempfile::TempDir;

/// A server with a table, another one with the store, and a program before both that keeps ranges in a file.
struct Place {
    server: Upstream,
    store: Upstream,
    scratch: TempDir,
    config: ProxyConfig,
}

impl Place {
    fn new(limits: &str) -> Result<Place> {
        let server = Upstream::start(Flavour::MariaDb)?;
        server.run(
            "mysql",
            "CREATE DATABASE shop; CREATE TABLE shop.orders (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT)",
        )?;
        let store =
            Upstream::start_with(Flavour::MariaDb, &["--innodb-flush-log-at-trx-commit=1"])?;
        let url = make_store(&store, "keywright", &[("orders", 1)])?;
        let scratch = scratch_dir()?;
        let mut config = ProxyConfig::before(&server, &url).rule("shop.*", "segment:orders");
        config.store = format!(
            "kept_ranges_file = \"{}\"\nany_file_system = true\nwait_ms_max = 2000\nstore_ms_max = 1500\n",
            scratch.path().join("ranges").display()
        );
        config.key_ports = vec!["keys = { orders = \"segment:orders\" }\n".to_owned()];
        config.more = format!("[limits]\nswitch_wait_ms_max = 1000\n{limits}");
        Ok(Place {
            server,
            store,
            scratch,
            config,
        })
    }

    fn file(&self) -> PathBuf {
        self.scratch.path().join("ranges")
    }

    /// A program that has keys, and keeps some.
    fn begin(&self, ids: &mut Ids) -> Result<ProxyProcess> {
        let proxy = ProxyProcess::start(self.config.clone())?;
        wait_until("keys", WAIT_MAX, || Ok(ids.insert(&proxy, 1).is_ok()))?;
        ids.insert(&proxy, 70)?;
        // The second range is a full one.
        wait_until("a full range is kept", WAIT_MAX, || {
            ids.take(&proxy, 1)?;
            Ok(may_be_used(&self.file()))
        })?;
        Ok(proxy)
    }
}

/// What is done to a file while nobody has it.
#[derive(Debug, Clone, Copy)]
enum Damage {
    CopiedBack,
    Edited,
    Truncated,
    Linked,
    OtherConfiguration,
}

/// All ids that were given.
#[derive(Default)]
struct Ids(BTreeSet<u64>);

impl Ids {
    fn add(&mut self, id: u64) {
        assert!(self.0.insert(id), "id {id} came twice");
    }

    /// Through the MySQL listener.
    fn insert(&mut self, proxy: &ProxyProcess, rows: usize) -> Result<()> {
        let mut wire = proxy.wire("shop")?;
        for _ in 0..rows {
            self.add(
                wire.run("INSERT INTO orders (a) VALUES (1)")?
                    .last_insert_id,
            );
        }
        Ok(())
    }

    /// Through the key port.
    fn take(&mut self, proxy: &ProxyProcess, count: usize) -> Result<()> {
        let mut client = RespClient::connect(proxy.key_port()?)?;
        for _ in 0..count {
            self.add(u64::try_from(client.say("INCR orders")?.integer()?)?);
        }
        Ok(())
    }
}

/// The first number of this name in a file.
fn number(bytes: &[u8], name: &str) -> Option<u64> {
    let text = String::from_utf8_lossy(bytes).into_owned();
    let name = format!("\"{name}\": ");
    let mut lines = text
        .lines()
        .filter_map(|line| line.trim().strip_prefix(&name));
    lines.find_map(|rest| rest.trim_end_matches(',').parse().ok())
}

fn written_ms(bytes: &[u8]) -> u64 {
    number(bytes, "written_ms").unwrap_or(0)
}

fn now_ms() -> Result<u64> {
    let since = SystemTime::now().duration_since(UNIX_EPOCH)?;
    Ok(u64::try_from(since.as_millis())?)
}

/// How many ids a file keeps.
fn kept(file: &Path) -> u64 {
    let bytes = fs::read(file).unwrap_or_default();
    match (number(&bytes, "mark"), number(&bytes, "end")) {
        (Some(mark), Some(end)) => end - mark,
        _ => 0,
    }
}

/// Whether a good part of a full range is kept, with what is in force and until when: that follows within a second or so.
fn may_be_used(file: &Path) -> bool {
    let bytes = fs::read(file).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    kept(file) >= 300
        && text.contains("\"standing\": {")
        && number(&bytes, "until_boot_ms").is_some_and(|until| until > 0)
}

fn is_on_kept_ranges(proxy: &ProxyProcess) -> Result<bool> {
    let (_, metrics) = proxy.http_get("/metrics")?;
    Ok(metrics
        .lines()
        .any(|line| line == "keywright_on_kept_ranges 1"))
}

/// A program that was started while the store is away gives nothing, and says why.
fn assert_refused(proxy: &ProxyProcess, why: &str) -> Result<()> {
    assert_has(&proxy.log(), &["no kept ranges are used", why]);
    let mut client = RespClient::connect(proxy.key_port()?)?;
    assert_has(client.say("INCR orders")?.error()?, &["STORE_UNAVAILABLE"]);
    let mut wire = proxy.wire("shop")?;
    let refused = wire.run("INSERT INTO orders (a) VALUES (1)");
    let told = format!("{:#}", refused.unwrap_err());
    assert_has(&told, &["1467", "the store at 127.0.0.1:"]);
    assert!(!told.contains("are being switched"), "{told}");
    assert!(!is_on_kept_ranges(proxy)?);
    Ok(())
}

#[test]
fn keys_go_on_over_ten_kills_while_the_store_is_away() -> Result<()> {
    let mut place = Place::new("switch_peer_wait_s = 900\n")?;
    let mut ids = Ids::default();
    let mut proxy = place.begin(&mut ids)?;
    place.store.kill9()?;
    for round in 0..10 {
        proxy.kill9()?;
        proxy.restart()?;
        ids.insert(&proxy, 5)?;
        ids.take(&proxy, 5)?;
        assert!(is_on_kept_ranges(&proxy)?, "round {round}");
    }
    assert_has(&proxy.log(), &["going on with ranges that were kept"]);
    place.store.restart()?;
    wait_until("the store is heard of", WAIT_MAX, || {
        Ok(!is_on_kept_ranges(&proxy)?)
    })?;
    ids.insert(&proxy, 600)?;
    ids.take(&proxy, 600)?;
    // What it keeps now is of a range of its own; and the next start, with the store, gives nothing of it.
    proxy.kill9()?;
    proxy.restart()?;
    wait_until("keys", WAIT_MAX, || Ok(ids.insert(&proxy, 1).is_ok()))?;
    ids.take(&proxy, 100)?;
    Ok(())
}

#[test]
fn what_was_handed_back_is_not_kept() -> Result<()> {
    let mut place = Place::new("")?;
    let mut ids = Ids::default();
    let mut proxy = place.begin(&mut ids)?;
    proxy.stop()?;
    assert_eq!(kept(&place.file()), 0);
    // All of it: what was in memory and what was kept are one range.
    let returned = place.store.run(
        "keywright",
        "SELECT COUNT(*) FROM keywright_returned WHERE end_id - start_id > 300",
    )?;
    assert_eq!(returned, [["1"]]);
    place.store.kill9()?;
    proxy.restart()?;
    assert_refused(&proxy, "nothing is kept in it")?;
    place.store.restart()?;
    wait_until("keys", WAIT_MAX, || Ok(ids.insert(&proxy, 1).is_ok()))?;
    ids.take(&proxy, 100)?;
    // Who raises a tag is told of what one that was killed may have.
    let told = ProxyProcess::said(&place.config, &["advance", "orders", "--above", "70000"])?;
    assert_has(&told, &["goes on at 70001", "kept_ranges_file"]);
    Ok(())
}

/// Nothing can be handed back then: the next start goes on with it, as after a kill.
#[test]
fn what_is_kept_stays_at_a_stop_while_the_store_is_away() -> Result<()> {
    let mut place = Place::new("switch_peer_wait_s = 900\n")?;
    let mut ids = Ids::default();
    let mut proxy = place.begin(&mut ids)?;
    place.store.kill9()?;
    for _ in 0..2 {
        proxy.stop()?;
        assert_has(&proxy.log(), &["what is kept stays in the file"]);
        proxy.restart()?;
        assert!(is_on_kept_ranges(&proxy)?);
        ids.insert(&proxy, 5)?;
        ids.take(&proxy, 5)?;
    }
    place.store.restart()?;
    wait_until("the store is heard of", WAIT_MAX, || {
        Ok(!is_on_kept_ranges(&proxy)?)
    })?;
    ids.insert(&proxy, 600)?;
    ids.take(&proxy, 600)
}

#[test]
fn a_file_that_may_be_older_or_anothers_is_not_used() -> Result<()> {
    let mut place = Place::new("switch_peer_wait_s = 900\n")?;
    let mut ids = Ids::default();
    let mut proxy = place.begin(&mut ids)?;
    let (file, copy) = (place.file(), place.scratch.path().join("copy"));
    fs::copy(&file, &copy)?;
    // Another program, while the first lives: it serves, and keeps nothing.
    let second = ProxyProcess::start(place.config.clone())?;
    wait_until("keys", WAIT_MAX, || Ok(ids.insert(&second, 1).is_ok()))?;
    wait_until("it says so", WAIT_MAX, || {
        Ok(second
            .log()
            .contains("no ranges are kept: another program has it"))
    })?;
    drop(second);
    place.store.kill9()?;
    proxy.kill9()?;
    // Another file of the same content.
    fs::rename(&copy, &file)?;
    proxy.restart()?;
    assert_refused(&proxy, "it was copied or moved")?;
    proxy.kill9()?;
    place.store.restart()?;
    for (damage, why) in [
        (Damage::CopiedBack, "it may be an older copy"),
        (Damage::Edited, "its checksum is another"),
        (Damage::Truncated, "its checksum is another"),
        (Damage::Linked, "has several names"),
        (Damage::OtherConfiguration, "it is of another configuration"),
    ] {
        proxy = place.begin(&mut ids)?;
        place.store.kill9()?;
        let before = fs::read(&file)?;
        proxy.kill9()?;
        match damage {
            Damage::CopiedBack => {
                wait_until("the last write is over", WAIT_MAX, || {
                    Ok(now_ms()? > written_ms(&before) + 500)
                })?;
                fs::write(&file, &before)?;
            }
            Damage::Edited => {
                let text = String::from_utf8(before)?;
                fs::write(&file, text.replacen("\"mark\": ", "\"mark\":  ", 1))?;
            }
            Damage::Truncated => fs::write(&file, before.get(..1_000).unwrap_or_default())?,
            Damage::Linked => fs::hard_link(&file, place.scratch.path().join("link"))?,
            Damage::OtherConfiguration => {
                let mut config = place.config.clone();
                config.more.push_str("# changed\n");
                proxy.reconfigure(config);
            }
        }
        proxy.restart()?;
        assert_refused(&proxy, why)?;
        proxy.kill9()?;
        let _ = fs::remove_file(place.scratch.path().join("link"));
        place.store.restart()?;
    }
    Ok(())
}

/// A program that lived on would see the same when the store is back.
#[test]
fn what_is_kept_of_another_key_space_is_dropped_when_the_store_says_so() -> Result<()> {
    let mut place = Place::new("switch_peer_wait_s = 900\n")?;
    let mut ids = Ids::default();
    let mut proxy = place.begin(&mut ids)?;
    proxy.kill9()?;
    place.store.run(
        "keywright",
        "UPDATE keywright_segment SET key_space_id = 'another', hi = 1 WHERE tag = 'orders'",
    )?;
    place.store.kill9()?;
    proxy.restart()?;
    ids.take(&proxy, 1)?;
    place.store.restart()?;
    let mut client = RespClient::connect(proxy.key_port()?)?;
    wait_until("nothing is given any more", WAIT_MAX, || {
        match client.say("INCR orders")? {
            RespValue::Integer(number) => {
                ids.add(u64::try_from(number)?);
                Ok(false)
            }
            refused => Ok(refused.error()?.contains("BOUND_DAMAGED")),
        }
    })?;
    assert_eq!(kept(&place.file()), 0);
    Ok(())
}

#[test]
fn what_is_kept_is_used_only_as_long_as_others_wait_for_the_program() -> Result<()> {
    let mut place = Place::new("switch_peer_wait_s = 15\n")?;
    let mut ids = Ids::default();
    let mut proxy = place.begin(&mut ids)?;
    place.store.kill9()?;
    proxy.kill9()?;
    proxy.restart()?;
    ids.take(&proxy, 1)?;
    let mut client = RespClient::connect(proxy.key_port()?)?;
    wait_until("its time is over", WAIT_MAX, || {
        match client.say("INCR orders")? {
            RespValue::Integer(number) => {
                ids.add(u64::try_from(number)?);
                Ok(false)
            }
            refused => Ok(refused.error()?.contains("STORE_UNAVAILABLE")),
        }
    })?;
    assert_has(&proxy.log(), &["what was kept is not given any more"]);
    proxy.kill9()?;
    proxy.restart()?;
    assert_refused(&proxy, "no kept ranges are used")?;
    place.store.restart()?;
    wait_until("keys", WAIT_MAX, || Ok(ids.insert(&proxy, 1).is_ok()))
}

/// Whether its ids are among those that are kept only the store can say.
#[test]
fn a_table_that_came_without_its_fence_gets_no_keys_before_the_store_was_asked() -> Result<()> {
    let mut place = Place::new("switch_peer_wait_s = 900\n")?;
    let mut ids = Ids::default();
    let mut proxy = place.begin(&mut ids)?;
    place.store.kill9()?;
    proxy.kill9()?;
    place.server.run(
        "shop",
        "CREATE TABLE late (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT); INSERT INTO late (a) VALUES (1), (2)",
    )?;
    proxy.restart()?;
    ids.insert(&proxy, 3)?;
    let mut wire = proxy.wire("shop")?;
    let refused = wire.run("INSERT INTO late (a) VALUES (3)").unwrap_err();
    assert_has(&format!("{refused:#}"), &["1467"]);
    place.store.restart()?;
    wait_until("it has its fence", WAIT_MAX, || {
        let mut wire = proxy.wire("shop")?;
        let Ok(done) = wire.run("INSERT INTO late (a) VALUES (3)") else {
            return Ok(false);
        };
        ids.add(done.last_insert_id);
        Ok(true)
    })
}

/// The file is the old program's until that has ended.
#[test]
fn the_new_program_of_a_take_over_keeps_when_the_old_one_has_ended() -> Result<()> {
    let mut place = Place::new("switch_peer_wait_s = 900\n")?;
    // Small ranges: what the new program has before it may keep is over soon, on a slow machine, too.
    place.store.run(
        "keywright",
        "UPDATE keywright_segment SET step_min = 1000, step = 1000, step_max = 1000",
    )?;
    let mut ids = Ids::default();
    let mut proxy = place.begin(&mut ids)?;
    let mut old = proxy.take_over()?;
    old.wait()?;
    wait_until("a range is kept", WAIT_MAX, || {
        ids.take(&proxy, 20)?;
        Ok(may_be_used(&place.file()))
    })?;
    place.store.kill9()?;
    proxy.kill9()?;
    proxy.restart()?;
    assert_has(&proxy.log(), &["going on with ranges that were kept"]);
    ids.insert(&proxy, 5)?;
    ids.take(&proxy, 5)?;
    assert!(is_on_kept_ranges(&proxy)?);
    Ok(())
}
