//! Tables that bring a fence to their rule: renamed out of another rule's pattern, or restored from a dump.

use keywright_testkit::{Flavour, ProxyConfig, ProxyProcess, Result, WAIT_MAX, Wire, wait_until};

use super::ahead::is_fenced;
use super::moved::{wait_for_log, wait_for_rules};
use super::{Shop, id, rule};

/// Above all that was reserved of a tag.
const BEYOND: u64 = 10_000_000;
/// So many keys a program has left below.
const LEFT: u64 = 500;

/// Tables `or*` have keys of the one tag, and `li*` those of the other.
fn two_rules(shop: &Shop) -> ProxyConfig {
    let mut config = shop.config.clone();
    config.rules = [("shop.or*", "one"), ("shop.li*", "two")]
        .map(|(tables, tag)| rule(tag, "rewrite").replace("shop.orders", tables))
        .into();
    config.more = "[limits]\nschema_refresh_s = 1\nswitch_wait_ms_max = 20000\n".to_owned();
    config
}

fn insert(wire: &mut Wire, table: &str) -> Result<u64> {
    id(wire.query(format!("INSERT INTO {table} (a) VALUES (1)"))?)
}

fn create(table: &str) -> String {
    format!("CREATE TABLE {table} (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT)")
}

/// By which rule the store says that a table has its fence.
fn rule_of(direct: &mut Wire, table: &str) -> Result<Vec<Vec<String>>> {
    direct.rows(format!(
        "SELECT table_pattern FROM keywright.keywright_fenced WHERE table_name = '{table}'"
    ))
}

/// How often what was reserved of the second tag was dropped, or it was switched.
fn generation(direct: &mut Wire) -> Result<u64> {
    let sql = "SELECT generation FROM keywright.keywright_segment WHERE tag = 'two'";
    Ok(direct.rows(sql)?.concat().concat().parse()?)
}

pub(super) fn keys_go_on_above_a_table_that_comes_out_of_another_rule(
    flavour: Flavour,
) -> Result<()> {
    let shop = Shop::new(flavour)?;
    let mut direct = shop.server.wire("shop")?;
    direct.run(create("or_two"))?;
    let proxy = ProxyProcess::start(two_rules(&shop))?;
    wait_for_rules(&shop, 2)?;
    let mut wire = proxy.wire("shop")?;
    insert(&mut wire, "line")?;
    direct.run(format!("INSERT INTO or_two VALUES ({BEYOND}, 0)"))?;
    assert_eq!(rule_of(&mut direct, "or_two")?, [["shop.or*"]]);

    direct.run("RENAME TABLE or_two TO line_two")?;
    wait_for_log(
        &proxy,
        "the table came with a fence, and has ids that are still to be given: the switch is repeated",
    )?;
    for table in ["line_two", "line"] {
        let key = insert(&mut wire, table)?;
        assert!(key > BEYOND, "{table}: {key}: {}", proxy.log());
    }
    assert!(is_fenced(&mut direct, "line_two")?);
    assert_eq!(rule_of(&mut direct, "line_two")?, [["shop.li*"]]);
    // Whatever comes in its place brings its fence, if it has one.
    wait_until("the table to be forgotten that is gone", WAIT_MAX, || {
        Ok(rule_of(&mut direct, "or_two")?.is_empty())
    })?;
    Ok(())
}

/// Its ids are among those that two programs have reserved. The first of them that looks at it has both drop what they have left. The other one, and each
/// that starts, finds that this was done.
pub(super) fn a_dump_behind_a_fence_costs_what_was_reserved_once(flavour: Flavour) -> Result<()> {
    let shop = Shop::new(flavour)?;
    let config = two_rules(&shop);
    let mut programs = [
        ProxyProcess::start(config.clone())?,
        ProxyProcess::start(config)?,
    ];
    wait_for_rules(&shop, 2)?;
    let mut direct = shop.server.wire("shop")?;
    let mut next = 0;
    for program in &programs {
        next = next.max(insert(&mut program.wire("shop")?, "line")? + LEFT);
    }
    let before = generation(&mut direct)?;
    let fence = match flavour {
        Flavour::MariaDb => 1_u64 << 63,
        Flavour::MySql => u64::MAX,
    };
    direct.run(create("dumped"))?;
    direct.run(format!("INSERT INTO dumped VALUES ({}, 0)", next - 1))?;
    direct.run(format!("ALTER TABLE dumped AUTO_INCREMENT = {fence}"))?;
    direct.run("RENAME TABLE dumped TO line_two")?;
    wait_until("the table to be its rule's", WAIT_MAX, || {
        Ok(rule_of(&mut direct, "line_two")? == [["shop.li*"]])
    })?;
    assert_eq!(generation(&mut direct)?, before + 1);
    for program in &programs {
        let mut wire = program.wire("shop")?;
        let mut given = 0;
        wait_until("keys above", WAIT_MAX, || {
            given += 1;
            Ok(insert(&mut wire, "line")? >= next)
        })?;
        assert!(given < LEFT, "what was left was given");
        assert!(insert(&mut wire, "line_two")? >= next);
    }

    // Each of them looks at all tables while the other one is not there: the second of these gets its fence behind such a look.
    for at in [0, 1] {
        programs[1 - at].stop()?;
        for name in ["line_a", "line_b"] {
            let table = format!("{name}_{at}");
            direct.run(create(&table))?;
            let applied = format!("fence applied table=\"`shop`.`{table}`\"");
            wait_for_log(&programs[at], &applied)?;
        }
        programs[1 - at].restart()?;
        // It looks before its clients get keys.
        assert!(insert(&mut programs[1 - at].wire("shop")?, "line_two")? >= next);
    }
    assert_eq!(generation(&mut direct)?, before + 1);
    Ok(())
}

/// What was seen to once is known when a program starts anew, and when a table loses its fence.
pub(super) fn a_restart_and_a_truncate_cost_nothing_that_was_reserved(
    flavour: Flavour,
) -> Result<()> {
    let shop = Shop::new(flavour)?;
    let mut proxy = ProxyProcess::start(two_rules(&shop))?;
    wait_for_rules(&shop, 2)?;
    let key = insert(&mut proxy.wire("shop")?, "line")?;
    let mut direct = shop.server.wire("shop")?;
    let before = generation(&mut direct)?;
    proxy.stop()?;
    proxy.restart()?;
    let mut wire = proxy.wire("shop")?;
    let next = insert(&mut wire, "line")?;
    assert!(next > key, "{next} {key}");
    wire.run("TRUNCATE line")?;
    wait_for_log(&proxy, "fence applied table=\"`shop`.`line`\"")?;
    assert!(is_fenced(&mut direct, "line")?);
    assert!(insert(&mut wire, "line")? > next);
    assert_eq!(generation(&mut direct)?, before);
    assert_eq!(rule_of(&mut direct, "line")?, [["shop.li*"]]);
    Ok(())
}
