//! Several stores: one is away, and stops its own tags only; tags that move between them under load; what is refused.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use keywright_core::{Zone, readable};
use keywright_testkit::redis::{RespClient, RespValue};
use keywright_testkit::{
    Flavour, ProxyConfig, ProxyProcess, Result, Upstream, WAIT_MAX, assert_has, scratch_dir,
    wait_until,
};
use tempfile::TempDir;

const KEYS: &str = "keys = { orders = \"segment:orders\", bills = \"segment:bills\" }\n";
/// What has them try again soon.
const IMPATIENT: &str =
    "any_file_system = true\nstore_ms_max = 3000\nwait_ms_max = 3000\nbackoff_ms_max = 100\n";

/// Two stores in files, and programs with key ports on them.
struct Files {
    scratch: TempDir,
}

impl Files {
    fn new() -> Result<Files> {
        Ok(Files {
            scratch: scratch_dir()?,
        })
    }

    fn url(&self, name: &str) -> String {
        format!("file:{}", self.scratch.path().join(name).display())
    }

    /// A configuration in which the second store has the tags of this pattern.
    fn config(&self, pattern: &str) -> ProxyConfig {
        ProxyConfig {
            store_url: self.url("main.db"),
            store: IMPATIENT.to_owned(),
            further_stores: vec![far(&self.url("far.db"), pattern)],
            key_ports: vec![KEYS.to_owned()],
            ..ProxyConfig::default()
        }
    }
}

fn far(url: &str, pattern: &str) -> String {
    format!("name = \"far\"\nurl = \"{url}\"\ntags = [\"{pattern}\"]\n{IMPATIENT}")
}

/// What a command that fails says.
fn refused(config: &ProxyConfig, arguments: &[&str]) -> Result<String> {
    let output = ProxyProcess::command(config, arguments)?;
    let told = String::from_utf8([output.stdout, output.stderr].concat())?;
    assert!(!output.status.success(), "{told}");
    Ok(told)
}

fn incr(proxy: &ProxyProcess, name: &str) -> Result<RespValue> {
    RespClient::connect(proxy.key_port()?)?.say(&format!("INCR {name}"))
}

/// Numbers that clients were told.
#[derive(Default)]
struct Given(Mutex<Vec<i64>>);

impl Given {
    fn note(&self, number: i64) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.push(number);
    }

    fn count(&self) -> usize {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    fn assert_distinct(&self) {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let distinct: BTreeSet<&i64> = all.iter().collect();
        assert_eq!(distinct.len(), all.len(), "a number was given twice");
    }

    /// Takes one after another, whatever comes between; how many errors of which code.
    fn take(&self, port: u16, over: &AtomicBool) -> Result<Vec<String>> {
        let mut refusals = Vec::new();
        let mut client = RespClient::connect(port)?;
        while !over.load(Ordering::Relaxed) {
            match client.say("INCR orders")? {
                RespValue::Integer(number) => self.note(number),
                RespValue::Error(text) => {
                    refusals.push(text);
                    thread::yield_now();
                }
                other => anyhow::bail!("{other:?}"),
            }
        }
        Ok(refusals)
    }
}

#[test]
fn one_store_that_is_away_stops_its_own_tags_only() -> Result<()> {
    let files = Files::new()?;
    let mut server = Upstream::start(Flavour::MariaDb)?;
    server.run("mysql", "CREATE DATABASE far")?;
    let url = format!("mysql://root@127.0.0.1:{}/far", server.port());
    let config = ProxyConfig {
        further_stores: vec![far(&url, "bills").replace("any_file_system = true\n", "")],
        ..files.config("bills")
    };
    let made = ProxyProcess::said(&config, &["init"])?;
    assert_has(
        &made,
        &[
            "in store \"far\"",
            "created tag \"orders\"",
            "created tag \"bills\"",
        ],
    );
    assert_has(&ProxyProcess::said(&config, &["init"])?, &["nothing to do"]);
    assert_has(&ProxyProcess::said(&config, &["check"])?, &["ready to run"]);
    let mut proxy = ProxyProcess::start(config)?;
    incr(&proxy, "orders")?.integer()?;
    incr(&proxy, "bills")?.integer()?;
    server.kill9()?;
    // Whoever starts meanwhile has no key of it in memory.
    for _ in 0..2 {
        wait_until("the lack of bills", WAIT_MAX, || {
            Ok(matches!(incr(&proxy, "bills")?, RespValue::Error(_)))
        })?;
        assert_has(
            incr(&proxy, "bills")?.error()?,
            &["STORE_UNAVAILABLE", &format!("127.0.0.1:{}", server.port())],
        );
        for _ in 0..200 {
            incr(&proxy, "orders")?.integer()?;
        }
        let (status, ready) = proxy.http_get("/readyz")?;
        // The other store's keys are given: nobody is to take the program out.
        assert_eq!(status, 200);
        assert_has(&ready, &["ready\n", "segment:bills in store far"]);
        let (_, figures) = proxy.http_get("/metrics")?;
        assert_has(
            &figures,
            &[
                "keywright_store_up{store=\"far\"} 0",
                "keywright_store_up{store=\"main\"} 1",
                "keywright_source_trouble{source=\"segment:bills\",store=\"far\"} 1",
                "keywright_source_trouble{source=\"segment:orders\",store=\"main\"} 0",
            ],
        );
        let (_, status) = proxy.http_get("/status.json")?;
        assert_has(&status, &["\"name\":\"far\"", "\"store\":\"main\""]);
        proxy.kill9()?;
        proxy.restart()?;
    }
    server.restart()?;
    wait_until("bills", WAIT_MAX, || {
        Ok(matches!(incr(&proxy, "bills")?, RespValue::Integer(_)))
    })?;
    Ok(())
}

#[test]
fn a_tag_moves_under_load_beside_a_program_that_does_not_know() -> Result<()> {
    let files = Files::new()?;
    let (old, new) = (files.config("nothing"), files.config("orders"));
    ProxyProcess::said(&old, &["init"])?;
    // By the other patterns it is not there: it is not made a second time.
    assert_has(
        &refused(&new, &["init"])?,
        &[
            "is open in store \"main\"",
            "keywright tag move orders --to-store far",
        ],
    );
    assert_has(
        &refused(&new, &["check"])?,
        &["keywright tag move orders --to-store far"],
    );
    let stays = ProxyProcess::start(old.clone())?;
    let given = Given::default();
    let (over, moved) = (AtomicBool::new(false), AtomicBool::new(false));
    thread::scope(|scope| {
        let load = scope.spawn(|| given.take(stays.key_port()?, &over));
        let work = || -> Result<ProxyProcess> {
            wait_until("numbers", WAIT_MAX, || Ok(given.count() > 500))?;
            let said = ProxyProcess::said(&new, &["tag", "move", "orders", "--to-store", "far"])?;
            assert_has(
                &said,
                &[
                    "is to go from store \"main\" to \"far\"",
                    "has a row of it, of which nobody reserves yet",
                    "store \"main\" has closed it for everybody",
                    "store \"far\" has opened it",
                    "is in store \"far\"",
                ],
            );
            moved.store(true, Ordering::Relaxed);
            let comes = ProxyProcess::start(new.clone())?;
            for _ in 0..500 {
                given.note(incr(&comes, "orders")?.integer()?);
            }
            wait_until("the end of what the old one holds", WAIT_MAX, || {
                Ok(matches!(incr(&stays, "orders")?, RespValue::Error(_)))
            })?;
            assert_has(
                incr(&stays, "orders")?.error()?,
                &["TAG_MOVED", "closed here"],
            );
            // Its other tags are as they were.
            incr(&stays, "bills")?.integer()?;
            Ok(comes)
        };
        let worked = work();
        over.store(true, Ordering::Relaxed);
        let refusals = load.join().expect("the load panicked")?;
        let comes = worked?;
        assert!(
            refusals.iter().all(|text| text.starts_with("TAG_MOVED")),
            "{refusals:?}"
        );
        given.assert_distinct();
        // Nobody starts with the old configuration, and again it is as it is.
        assert_has(&refused(&old, &["check"])?, &["is open in store \"far\""]);
        assert_has(&refused(&old, &["init"])?, &["--to-store main"]);
        let again = ProxyProcess::said(&new, &["tag", "move", "orders", "--to-store", "far"])?;
        assert_has(&again, &["is in store \"far\""]);
        assert_has(&ProxyProcess::said(&new, &["init"])?, &["nothing to do"]);
        drop(comes);
        Ok(())
    })
}

#[test]
fn what_cannot_be_is_told_at_once() -> Result<()> {
    let files = Files::new()?;
    let config = files.config("bills");
    let with = |lines: &[String]| ProxyConfig {
        further_stores: lines.to_vec(),
        ..config.clone()
    };
    let one = far(&files.url("far.db"), "shop.*");
    let twice = with(&[
        one.clone(),
        far(&files.url("main.db"), "shop.a\", \"or ders*"),
        one.replace("name = \"far\"", "name = \"Far!\"")
            .replace("tags = [\"shop.*\"]\n", ""),
    ]);
    assert_has(
        &refused(&twice, &["check"])?,
        &[
            "\"far\" is there twice",
            "\"Far!\" is none",
            "only one store may have none",
            "\"shop.a\" is never asked: \"shop.*\" of store \"far\" comes before",
            "\"or ders*\" is for no tag: a tag must not contain ' '",
            "is the same place as store",
        ],
    );
    ProxyProcess::said(&config, &["init"])?;
    for (arguments, expected) in [
        (
            &["tag", "move", "orders", "--to-store", "fat"][..],
            "there is no store \"fat\"",
        ),
        (
            &["tag", "move", "nobody", "--to-store", "far"],
            "is open in no store",
        ),
        (
            &["tag", "move", "orders", "--to-store", "far"],
            "is in store \"main\" by this configuration",
        ),
        (
            &["store", "restored", "--lost", "1h"],
            "which store was restored?",
        ),
        (
            &["advance", "snowflake", "--store", "far", "--above", "5"],
            "--store is for a tag",
        ),
        (&["tag", "drop", "orders", "--store", "far"], "closed here"),
    ] {
        assert_has(&refused(&config, arguments)?, &[expected]);
    }
    let said = ProxyProcess::said(
        &config,
        &["store", "restored", "--lost", "1h", "--store", "far"],
    )?;
    assert_has(&said, &["tag \"bills\"", "keywright check names them"]);
    let said = ProxyProcess::said(&config, &["advance", "bills", "--above", "900"])?;
    assert_has(&said, &["goes on at"]);
    Ok(())
}

#[test]
fn readable_ids_go_on_while_a_store_is_away() -> Result<()> {
    let files = Files::new()?;
    let mut server = Upstream::start(Flavour::MariaDb)?;
    server.run("mysql", "CREATE DATABASE far")?;
    let url = format!("mysql://root@127.0.0.1:{}/far", server.port());
    let far = far(&url, "bills").replace("any_file_system = true\n", "");
    let with = |main: &str, other: &str| ProxyConfig {
        store: format!("{IMPATIENT}readable_buckets = \"{main}\"\n"),
        further_stores: vec![format!("{far}readable_buckets = \"{other}\"\n")],
        key_ports: vec!["keys = { tickets = \"readable:ORD\" }\n".to_owned()],
        ..files.config("bills")
    };
    for (main, other, problem) in [
        ("0-127", "100-255", "have buckets in common"),
        ("0-127", "200-256", "ends above 255"),
        ("0-127", "some", "is no range of buckets"),
    ] {
        assert_has(&refused(&with(main, other), &["check"])?, &[problem]);
    }
    let config = with("0-9", "100-109");
    let made = ProxyProcess::said(&config, &["init"])?;
    assert_has(
        &made,
        &[
            "store \"main\" leases the buckets 0-9 of readable ids",
            "store \"far\" leases the buckets 100-109 of readable ids",
        ],
    );
    assert_has(&ProxyProcess::said(&config, &["init"])?, &["nothing to do"]);
    assert_has(
        &refused(&with("10-19", "100-109"), &["check"])?,
        &["leases other buckets of readable ids than its readable_buckets"],
    );
    let mut proxy = ProxyProcess::start(config)?;
    let mut all = BTreeSet::new();
    let mut take = |proxy: &ProxyProcess| -> Result<u8> {
        let mut client = RespClient::connect(proxy.key_port()?)?;
        let id = match client.say("KEYWRIGHT NEXT tickets")? {
            RespValue::Bulk(id) => id,
            other => anyhow::bail!("{other:?}"),
        };
        let bucket = readable::parse(&id, Zone::UTC)?.bucket;
        assert!(all.insert(id.clone()), "{id} came twice");
        Ok(bucket)
    };
    let mut found = BTreeSet::new();
    wait_until("keys of both", WAIT_MAX, || {
        found.insert(take(&proxy)?);
        Ok(found == BTreeSet::from([0, 100]))
    })?;
    server.kill9()?;
    // What is leased there lasts for a while; whoever starts meanwhile has nothing of it. A lease that was not handed back goes to nobody yet.
    for bucket in [1, 2] {
        proxy.kill9()?;
        proxy.restart()?;
        for _ in 0..50 {
            assert_eq!(take(&proxy)?, bucket);
        }
        let (status, ready) = proxy.http_get("/readyz")?;
        assert_eq!(status, 200, "{ready}");
    }
    server.restart()?;
    wait_until("keys of the other store again", WAIT_MAX, || {
        Ok(take(&proxy)? >= 100)
    })
}

/// One whose tables went over to it by the switch, and one that is in the second store from the start.
#[test]
fn tables_get_keys_of_tags_in_either_store() -> Result<()> {
    let files = Files::new()?;
    let server = Upstream::start(Flavour::MariaDb)?;
    server.run(
        "mysql",
        "CREATE DATABASE shop;
         CREATE TABLE shop.orders (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT);
         CREATE TABLE shop.bills (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT);
         INSERT INTO shop.orders (a) VALUES (1), (2), (3);
         INSERT INTO shop.bills VALUES (500, 1)",
    )?;
    let config = |pattern: &str| {
        ProxyConfig {
            upstream_ports: vec![server.port()],
            key_ports: Vec::new(),
            ..files.config(pattern)
        }
        .rule("shop.orders", "segment:orders")
        .rule("shop.bills", "segment:bills")
    };
    let (old, new) = (config("bill?"), config("*s"));
    let made = ProxyProcess::said(&old, &["init"])?;
    assert_has(&made, &["created tag \"bills\", above 500"]);
    let insert = |proxy: &ProxyProcess, table: &str| -> Result<u64> {
        let mut wire = proxy.wire("shop")?;
        let sql = format!("INSERT INTO {table} (a) VALUES (1), (2), (3)");
        Ok(wire.run(&sql)?.last_insert_id)
    };
    let stays = ProxyProcess::start(old.clone())?;
    assert!(insert(&stays, "orders")? > 3);
    assert!(insert(&stays, "bills")? > 500);
    ProxyProcess::said(&new, &["tag", "move", "orders", "--to-store", "far"])?;
    let comes = ProxyProcess::start(new.clone())?;
    let first = insert(&comes, "orders")?;
    // The old one uses up what it holds, which lies below.
    let mut refusal = None;
    wait_until("the end of what the old one holds", WAIT_MAX, || {
        match insert(&stays, "orders") {
            Ok(id) => assert!(id < first, "{id} after {first}"),
            Err(error) => refusal = Some(format!("{error:#}")),
        }
        insert(&comes, "orders")?;
        Ok(refusal.is_some())
    })?;
    assert_has(&refusal.unwrap_or_default(), &["1467", "closed here"]);
    insert(&stays, "bills")?;
    for table in ["orders", "bills"] {
        let native = server.run("shop", &format!("INSERT INTO {table} (a) VALUES (9)"));
        assert!(native.is_err(), "{table} has no fence");
    }
    // No switch rolls them back there, so this names what else a switch would see to.
    let said = ProxyProcess::said(&new, &["release", "--rule", "shop.orders"])?;
    assert_has(
        &said,
        &[
            "-- 4. On the store without tags",
            "-- UPDATE keywright_rule SET key_space = NULL WHERE table_pattern = 'shop.orders'",
            "Take tag \"orders\" out of every key port",
        ],
    );
    Ok(())
}
