//! What `keywright release` prints makes no id a second time, also none of a row that is gone.

use anyhow::Context as _;
use keywright_testkit::{
    Flavour, ProxyConfig, ProxyProcess, Result, Upstream, assert_has, free_port, make_store,
};

keywright_testkit::on_both_flavours!(
    ids_of_rows_that_are_gone_do_not_come_again,
    ids_that_a_rule_gave_by_another_file_do_not_come_again,
    what_is_not_known_without_the_store_is_said,
    a_store_that_has_gone_back_is_raised_first,
);

const TABLES: [&str; 3] = ["tagged", "odd", "flaked"];

/// A schema with three tables, and a rule of another kind for each.
fn shop(server: &Upstream, schema: &str) -> Result<ProxyConfig> {
    server.run("mysql", &format!("CREATE DATABASE {schema}"))?;
    for table in TABLES {
        let create = format!("CREATE TABLE {table} (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT)");
        server.run(schema, &create)?;
    }
    let tags = [("one", 1), ("two", 1), ("three", 1)];
    let store = make_store(server, &format!("store_{schema}"), &tags)?;
    let mut config = ProxyConfig::before(server, &store)
        .rule(&format!("{schema}.tagged"), "segment:one")
        .rule(&format!("{schema}.odd"), "stride:two")
        .rule(&format!("{schema}.flaked"), "snowflake");
    config.rules[1].push_str("offset = 1\nincrement = 2\n");
    for rule in &mut config.rules {
        rule.push_str("fence = true\n");
    }
    Ok(config)
}

/// The highest id of each table, none of which a row has any more: a program has given them, and has ended.
fn issued(config: &ProxyConfig, schema: &str) -> Result<Vec<u64>> {
    let mut proxy = ProxyProcess::start(config.clone())?;
    let mut highest = Vec::new();
    for table in TABLES {
        let mut wire = proxy.wire(schema)?;
        wire.run(format!("INSERT INTO {table} (a) VALUES (1), (2), (3)"))?;
        let rows = wire.rows(format!("SELECT MAX(id) FROM {table}"))?;
        let id = rows.concat().concat().parse::<u64>();
        highest.push(id.with_context(|| table.to_owned())?);
        wire.run(format!("DELETE FROM {table}"))?;
    }
    proxy.stop()?;
    Ok(highest)
}

fn native(server: &Upstream, schema: &str, table: &str) -> Result<u64> {
    let mut direct = server.wire(schema)?;
    let insert = format!("INSERT INTO {table} (a) VALUES (9)");
    Ok(direct.run(insert)?.last_insert_id)
}

fn ids_of_rows_that_are_gone_do_not_come_again(flavour: Flavour) -> Result<()> {
    let server = Upstream::shared(flavour)?;
    let config = shop(&server, "gone")?;
    let issued = issued(&config, "gone")?;
    let printed = ProxyProcess::said(&config, &["release"])?;
    assert_has(&printed, &["by what the store says of the rule"]);
    assert!(!printed.contains("A SECOND TIME"), "{printed}");
    server.run("mysql", &printed)?;
    for (table, highest) in TABLES.into_iter().zip(issued) {
        let id = native(&server, "gone", table)?;
        assert!(id > highest, "{table}: {id} after {highest}");
    }
    Ok(())
}

/// The file at hand names another tag, and the store says which the rule has.
fn ids_that_a_rule_gave_by_another_file_do_not_come_again(flavour: Flavour) -> Result<()> {
    let server = Upstream::shared(flavour)?;
    let config = shop(&server, "other")?;
    let issued = issued(&config, "other")?;
    let mut old = config;
    old.rules.truncate(1);
    for rule in &mut old.rules {
        *rule = rule.replace("segment:one", "segment:three");
        rule.push_str("mode = \"observe\"\n");
    }
    let printed = ProxyProcess::said(&old, &["release"])?;
    assert_has(&printed, &["print it with the configuration"]);
    server.run("mysql", &printed)?;
    let id = native(&server, "other", "tagged")?;
    assert!(issued.first() < Some(&id), "{id} after {issued:?}");
    Ok(())
}

fn what_is_not_known_without_the_store_is_said(flavour: Flavour) -> Result<()> {
    let server = Upstream::shared(flavour)?;
    let config = shop(&server, "alone")?;
    let issued = issued(&config, "alone")?;
    let away = ProxyConfig {
        store_url: format!("mysql://root@127.0.0.1:{}/away", free_port()?),
        ..config
    };
    let printed = ProxyProcess::said(&away, &["release"])?;
    for keys in ["segment:one", "stride:two"] {
        let told = format!("no store says how far {keys} has come");
        assert_has(&printed, &["IDS MAY COME A SECOND TIME", &told]);
    }
    assert!(!printed.contains("how far snowflake"), "{printed}");
    // Of stride it never knows.
    let of_rule = "the store does not say whether the rule was in force with other keys";
    assert_eq!(printed.matches(of_rule).count(), 2, "{printed}");
    assert!(
        !printed.contains("by what the store says of the rule"),
        "{printed}"
    );
    server.run("mysql", &printed)?;
    let id = native(&server, "alone", "flaked")?;
    assert!(issued.last() < Some(&id), "{id} after {issued:?}");
    Ok(())
}

/// An old backup was put back, and a program that had seen more has said so in the tag's row.
fn a_store_that_has_gone_back_is_raised_first(flavour: Flavour) -> Result<()> {
    let server = Upstream::shared(flavour)?;
    let config = shop(&server, "back")?;
    issued(&config, "back")?;
    let told = "UPDATE keywright_segment SET server = 'gone back behind 900001' WHERE tag = 'one'";
    server.run("store_back", told)?;
    let printed = ProxyProcess::said(&config, &["release"])?;
    let parts = [
        "IDS MAY COME A SECOND TIME: the store has gone back, and knows less of segment:one",
        "Ids up to 900000 may have been issued",
    ];
    assert_has(&printed, &parts);
    assert!(!printed.contains("less of stride:two"), "{printed}");
    server.run("mysql", &printed)?;
    assert!(native(&server, "back", "tagged")? > 900_000);
    let told = "UPDATE keywright_segment SET server = 'restored 01' WHERE tag = 'one'";
    server.run("store_back", told)?;
    let printed = ProxyProcess::said(&config, &["release"])?;
    let part = "IDS MAY COME A SECOND TIME: the store was restored, or is on another server, since ids of segment:one";
    assert_has(&printed, &[part]);
    Ok(())
}
