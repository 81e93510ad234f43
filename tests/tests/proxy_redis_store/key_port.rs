//! What a key port says no to, and what is seen of what is behind it.

use std::fs;

use keywright_testkit::redis::{RespClient, RespValue};
use keywright_testkit::{
    Pki, ProxyConfig, ProxyProcess, Result, WAIT_MAX, assert_has, scratch_dir, wait_until,
};

use super::{Far, Given, KEYS, checked, near, not_started, series};

#[test]
fn ranges_come_from_a_key_port() -> Result<()> {
    let far = Far::start(KEYS)?;
    let config = near(far.port()?, "");
    let (is_ready, told) = checked(&config)?;
    assert!(is_ready, "{told}");
    let mut its = ProxyProcess::start(config)?;
    let given = Given::default();
    given.take(its.key_port()?, 1_000)?;
    given.take(far.port()?, 10)?;
    given.assert_distinct();
    let figures = series(&its)?;
    assert!(figures.len() > 3, "{figures:?}");
    // The rest cannot be handed back, which is said.
    assert!(its.stop()?.success());
    assert_has(&its.log(), &["takes no rests of reservations back"]);
    Ok(())
}

/// Which tag it is goes through several programs.
#[test]
fn key_ports_may_stand_in_a_row() -> Result<()> {
    let far = Far::start(KEYS)?;
    let middle = ProxyProcess::start(near(far.port()?, ""))?;
    let last = ProxyProcess::start(near(middle.key_port()?, ""))?;
    let given = Given::default();
    for port in [far.port()?, middle.key_port()?, last.key_port()?] {
        given.take(port, 500)?;
    }
    given.assert_distinct();
    let about = |port| RespClient::connect(port)?.say("KEYWRIGHT ABOUT orders");
    let (one, other) = (about(far.port()?)?, about(last.key_port()?)?);
    let key_space = |told: &RespValue| match told {
        RespValue::Array(told) => told.get(7).cloned(),
        _ => None,
    };
    assert!(
        matches!(key_space(&one), Some(RespValue::Bulk(_))),
        "{one:?}"
    );
    assert_eq!(key_space(&one), key_space(&other));
    Ok(())
}

#[test]
fn a_store_that_was_made_anew_behind_the_port_is_seen() -> Result<()> {
    let mut far = Far::start(KEYS)?;
    let its = ProxyProcess::start(near(far.port()?, ""))?;
    let given = Given::default();
    given.take(its.key_port()?, 700)?;
    far.proxy.stop()?;
    for file in fs::read_dir(far.scratch.path())? {
        fs::remove_file(file?.path())?;
    }
    ProxyProcess::said(&far.config, &["init"])?;
    far.proxy.restart()?;
    let refusal = given.take_until_refused(its.key_port()?, 25)?;
    given.assert_distinct();
    assert_has(
        &refusal,
        &["BOUND_DAMAGED", "is another one now than before"],
    );
    // And it stays so.
    let mut client = RespClient::connect(its.key_port()?)?;
    assert_has(client.say("INCR orders")?.error()?, &["is another one"]);
    Ok(())
}

/// An older file in its place, with the same tag in it: the other program has seen more.
#[test]
fn a_store_that_went_back_behind_the_port_is_seen_until_it_is_advanced() -> Result<()> {
    let mut far = Far::start(KEYS)?;
    let (file, old) = (
        far.scratch.path().join("store.db"),
        far.scratch.path().join("old"),
    );
    far.proxy.stop()?;
    fs::copy(&file, &old)?;
    far.proxy.restart()?;
    let its = ProxyProcess::start(near(far.port()?, ""))?;
    let given = Given::default();
    given.take(its.key_port()?, 5_000)?;
    far.proxy.stop()?;
    // Into the same file: it looks like the original.
    fs::write(&file, fs::read(&old)?)?;
    far.proxy.restart()?;
    let refusal = given.take_until_refused(its.key_port()?, 25)?;
    assert_has(
        &refusal,
        &[
            "BOUND_DAMAGED",
            "has gone back",
            "keywright advance orders --above",
        ],
    );
    let highest = given.highest().to_string();
    far.proxy.stop()?;
    // Above what it names, which may be more than was given.
    let above = refusal
        .split("--above ")
        .nth(1)
        .and_then(|rest| rest.split(',').next());
    let above = above.unwrap_or(&highest);
    ProxyProcess::said(&far.config, &["advance", "orders", "--above", above])?;
    far.proxy.restart()?;
    given.wait_until_given(its.key_port()?)?;
    given.take(its.key_port()?, 500)?;
    given.assert_distinct();
    Ok(())
}

#[test]
fn names_that_give_no_ranges_are_refused() -> Result<()> {
    let far = Far::start(
        "keys = { orders = \"segment:orders\", flakes = \"snowflake\", tokens = \"uuid_v7\" }\n",
    )?;
    for (name, words) in [
        ("flakes", ["KEY_KIND", "gives snowflake"]),
        ("tokens", ["KEY_KIND", "gives uuid_v7:text36"]),
        ("others", ["no keys are given under", "KEYWRIGHT LIST"]),
    ] {
        let config = ProxyConfig {
            key_ports: vec![format!("keys = {{ it = \"segment:{name}\" }}\n")],
            ..near(far.port()?, "")
        };
        let (is_ready, told) = checked(&config)?;
        assert!(!is_ready, "{told}");
        assert_has(&told, &words[1..]);
        if name == "others" {
            assert_has(&not_started(config)?, &["the store has no tag \"others\""]);
        }
    }
    Ok(())
}

#[test]
fn ordered_tags_are_refused() -> Result<()> {
    let scratch = scratch_dir()?;
    let lines = "keys = { orders = \"segment:orders\" }\ncluster_address = \"127.0.0.1:$PORT\"\n";
    let config = ProxyConfig::key_port(&scratch.path().join("store.db"), lines);
    ProxyProcess::said(&config, &["init", "--monotonic", "orders"])?;
    let far = ProxyProcess::start(config)?;
    let mut client = RespClient::connect(far.key_port()?)?;
    wait_until("the active program", WAIT_MAX, || {
        Ok(client.say("INCR orders")?.integer().is_ok())
    })?;
    let its = ProxyProcess::start(near(far.key_port()?, ""))?;
    let mut client = RespClient::connect(its.key_port()?)?;
    assert_has(
        client.say("INCR orders")?.error()?,
        &["TAG_ORDERED", "would break its order"],
    );
    Ok(())
}

#[test]
fn logins_and_tls_are_as_on_other_stores() -> Result<()> {
    let pki = Pki::new()?;
    let password = pki.file("password");
    fs::write(&password, "open sesame\n")?;
    let far = Far::start(&format!(
        "{KEYS}password_file = \"{}\"\n{}",
        password.display(),
        pki.towards_clients("required")
    ))?;
    let port = far.port()?;
    let ca = format!("tls_ca_file = \"{}\"\n", pki.file("ca.pem").display());
    let file = format!("password_file = \"{}\"\n", password.display());
    let at = |url: String, store: &str| ProxyConfig {
        store_url: url,
        ..near(port, store)
    };
    let plain = format!("redis://127.0.0.1:{port}");
    let over_tls = format!("rediss://127.0.0.1:{port}");
    let wrong = format!("rediss://:wrong@127.0.0.1:{port}");
    for (url, store, words) in [
        (
            &plain,
            file.clone(),
            ["TLS on both sides or on neither"].as_slice(),
        ),
        (&over_tls, file.clone(), &["TLS: ", "certificate"]),
        (
            &over_tls,
            ca.clone(),
            &["it asks for a password", "the rights of its user"],
        ),
        (&wrong, ca.clone(), &["password", "the rights of its user"]),
    ] {
        let (is_ready, told) = checked(&at(url.clone(), &store))?;
        assert!(!is_ready, "{url} {store}: {told}");
        assert_has(&told, words);
    }
    for (url, store) in [
        (&over_tls, format!("{file}{ca}")),
        (&plain, format!("{file}{ca}tls = \"required\"\n")),
    ] {
        let its = ProxyProcess::start(at(url.clone(), &store))?;
        Given::default().take(its.key_port()?, 300)?;
    }
    Ok(())
}

/// Several programs with one store; the one that answers is asked.
#[test]
fn one_of_several_hosts_is_enough() -> Result<()> {
    let mut one = Far::start(KEYS)?;
    let other = ProxyProcess::start(one.config.clone())?;
    let url = format!(
        "redis://127.0.0.1:{},127.0.0.1:{}",
        one.port()?,
        other.key_port()?
    );
    let its = ProxyProcess::start(ProxyConfig {
        store_url: url,
        ..near(one.port()?, "")
    })?;
    let given = Given::default();
    given.take(its.key_port()?, 500)?;
    one.proxy.kill9()?;
    given.take(its.key_port()?, 2_000)?;
    one.proxy.restart()?;
    given.take(its.key_port()?, 2_000)?;
    given.assert_distinct();
    Ok(())
}

/// A run that is larger than the key port gives at once.
#[test]
fn a_larger_run_than_the_port_gives_is_refused_and_smaller_ones_are_not() -> Result<()> {
    let scratch = scratch_dir()?;
    let mut config = ProxyConfig::key_port(&scratch.path().join("store.db"), KEYS);
    config.store.push_str("range_ids_max = 50\n");
    ProxyProcess::said(&config, &["init"])?;
    let far = ProxyProcess::start(config)?;
    let its = ProxyProcess::start(near(far.key_port()?, ""))?;
    let given = Given::default();
    given.take(its.key_port()?, 300)?;
    let mut client = RespClient::connect(its.key_port()?)?;
    let refusal = client.say("INCRBY orders 500")?;
    assert_has(
        refusal.error()?,
        &["ARGUMENT_OUT_OF_RANGE", "at most 50 ids there"],
    );
    given.take(its.key_port()?, 300)?;
    given.assert_distinct();
    Ok(())
}

#[test]
fn what_needs_more_than_ranges_is_refused() -> Result<()> {
    let far = Far::start(KEYS)?;
    let config = ProxyConfig {
        key_ports: vec![
            "keys = { a = \"snowflake\", b = \"readable:ORD\", c = \"uuid_v4\" }\nusers = true\ncluster_address = \"127.0.0.1:$PORT\"\n"
                .to_owned(),
        ],
        more: "[snowflake]\nleased_worker_ids = \"0-9\"\n".to_owned(),
        ..near(far.port()?, "dialect = \"leaf\"\nsegment_table = \"t\"\n")
    };
    let (_, told) = checked(&config)?;
    assert_has(&told, &["store.dialect", "store.segment_table"]);
    let config = ProxyConfig {
        store: String::new(),
        ..config
    };
    let (_, told) = checked(&config)?;
    assert_has(
        &told,
        &[
            "a = \"snowflake\" needs a store that keeps more than ranges",
            "b = \"readable:ORD\" needs",
            "users = true needs",
            "cluster_address needs",
            "leased_worker_ids in [snowflake] needs",
        ],
    );
    let config = near(far.port()?, "");
    for command in [
        ["init"].as_slice(),
        &["advance", "orders", "--above", "5"],
        &["tag", "alter", "orders", "--step", "7"],
        &["user", "list"],
    ] {
        let output = ProxyProcess::command(&config, command)?;
        let told = String::from_utf8(output.stderr)?;
        assert!(!output.status.success(), "{command:?}");
        assert!(
            told.contains("it gives ranges of tags and keeps nothing else")
                || told.contains("but in the store behind it")
                || told.contains("are made, altered and dropped by their own system"),
            "{command:?}: {told}"
        );
    }
    Ok(())
}

/// The lists of names say it, and so does `check` of a program that would take its ranges there.
#[test]
fn a_port_that_has_no_keys_says_so_before_it_is_asked_for_some() -> Result<()> {
    let mut far = Far::start(KEYS)?;
    let middle = ProxyProcess::start(near(far.port()?, ""))?;
    let last = near(middle.key_port()?, "");
    let given = Given::default();
    given.take(middle.key_port()?, 10)?;
    let mut client = RespClient::connect(middle.key_port()?)?;
    let mut says = |state: &str| -> Result<()> {
        for request in ["KEYWRIGHT ABOUT orders", "KEYWRIGHT STATS"] {
            assert_has(&format!("{:?}", client.say(request)?), &[state]);
        }
        Ok(())
    };
    says("\"gives keys\"")?;
    far.proxy.kill9()?;
    given.take_until_refused(middle.key_port()?, 1)?;
    says("\"has no keys, and cannot reserve\"")?;
    assert_eq!(middle.http_get("/readyz")?.0, 503);
    // It may start: there may be keys by the time it needs some.
    let (is_ready, told) = checked(&last)?;
    assert!(is_ready, "{told}");
    let warning = "store: warning: the key port at 127.0.0.1:PORT says that \"orders\" has no keys, and cannot reserve: ";
    let warning = warning.replace("PORT", &middle.key_port()?.to_string());
    assert_has(&told, &[&warning]);
    far.proxy.restart()?;
    given.wait_until_given(middle.key_port()?)?;
    says("\"gives keys\"")?;
    let (is_ready, told) = checked(&last)?;
    assert!(is_ready && !told.contains("says that"), "{told}");
    given.assert_distinct();
    Ok(())
}
