//! Tables go over from auto-increment to keys, to another tag and back while applications insert: no insert fails, and no id comes twice.

mod ahead;

mod ignore;
mod later;
mod replaced;
mod storm;
mod tags;

use std::time::Instant;

use ahead::{
    a_restart_right_behind_a_switch_switches_back,
    a_server_taken_for_another_gets_no_keys_among_its_ids,
    ids_of_a_table_that_is_renamed_into_a_rule_are_given_to_no_table,
    keys_go_on_above_a_table_that_is_renamed_into_a_rule,
};
use ignore::{
    nobody_hears_of_success_whose_rows_were_left_out,
    what_a_program_sends_that_was_away_is_not_left_out,
};
use keywright_testkit::{
    AT_FENCE, Flavour, Login, Param, ProxyConfig, ProxyProcess, Reply, Result, Upstream, WAIT_MAX,
    Wire, assert_has, capability, command, make_store, wait_until,
};
use later::a_program_dies_before_the_fence_of_a_late_table;
use replaced::{
    a_server_is_replaced_in_the_middle_of_an_attempt, a_server_takes_over_while_others_write,
};
use tags::each_tag_begins_above_its_own_tables;

keywright_testkit::on_both_flavours!(
    open_connections_go_over_and_back,
    a_transaction_goes_on_natively_and_holds_the_switch_up,
    a_table_that_somebody_locks_is_named_and_nothing_changes,
    a_restart_switches_too_and_an_old_file_takes_nothing_back,
    a_connection_without_rules_is_ended_before_a_switch,
    one_that_is_at_something_is_ended_behind_it,
    what_is_in_the_way_is_told_before,
    a_fence_of_another_rule_is_not_taken_for_ones_own,
    a_fence_comes_where_keys_are_in_force,
    without_a_way_to_put_it_back_nothing_is_begun,
    a_table_that_comes_later_is_fenced_below_its_tag,
    snowflake_ids_come_and_go,
    tables_without_a_fence_go_over_above_their_counters,
    a_server_that_took_over_gets_keys_above_its_ids,
    what_a_program_sends_that_was_away_is_not_left_out,
    nobody_hears_of_success_whose_rows_were_left_out,
    a_program_that_stops_goes_along_until_its_connections_have_ended,
    a_transaction_that_an_error_has_ended_holds_nothing_up,
    a_column_without_room_for_keys_stays_native,
    a_restart_right_behind_a_switch_switches_back,
    a_server_taken_for_another_gets_no_keys_among_its_ids,
    keys_go_on_above_a_table_that_is_renamed_into_a_rule,
    ids_of_a_table_that_is_renamed_into_a_rule_are_given_to_no_table,
    each_tag_begins_above_its_own_tables,
    a_server_takes_over_while_others_write,
    a_server_is_replaced_in_the_middle_of_an_attempt,
    a_program_dies_before_the_fence_of_a_late_table,
);

/// A server of the test's own with a table, and a store with two tags that begin low.
struct Shop {
    server: Upstream,
    config: ProxyConfig,
}

/// A rule that takes part in the switch.
pub fn rule(key: &str, mode: &str) -> String {
    format!(
        "table = \"shop.orders\"\ncolumn = \"id\"\nkey = \"segment:{key}\"\nmode = \"{mode}\"\nfence = true\n"
    )
}

impl Shop {
    fn new(flavour: Flavour) -> Result<Shop> {
        let server = Upstream::start_with(flavour, &[])?;
        server.run(
            "mysql",
            "CREATE DATABASE shop; USE shop;
             CREATE TABLE orders (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT) AUTO_INCREMENT = 500;
             CREATE TABLE line (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT)",
        )?;
        let store = make_store(
            &server,
            "keywright",
            &[("one", 1), ("two", 1), ("three", 1)],
        )?;
        let config = ProxyConfig::before(&server, &store);
        Ok(Shop { server, config })
    }

    fn with(&self, key: &str, mode: &str) -> ProxyConfig {
        let mut config = self.config.clone();
        config.rules.push(rule(key, mode));
        config
    }

    /// Where keys come from, as the store says it.
    fn in_force(&self) -> Result<Option<String>> {
        let sql = "SELECT COALESCE(SUBSTRING(key_space, 9), '') FROM keywright.keywright_rule";
        let rows = self.server.wire("shop")?.rows(sql)?;
        let tag = rows.into_iter().flatten().next();
        Ok(tag.filter(|tag| !tag.is_empty()))
    }

    fn wait_for(&self, tag: Option<&str>) -> Result<()> {
        wait_until(&format!("{tag:?} to be in force"), WAIT_MAX, || {
            Ok(self.in_force()?.as_deref() == tag)
        })
    }
}

fn id(replies: Vec<Reply>) -> Result<u64> {
    let mut replies = replies.into_iter();
    match replies.next() {
        Some(Reply::Done(done)) => Ok(done.last_insert_id),
        other => anyhow::bail!("{other:?}"),
    }
}

fn open_connections_go_over_and_back(flavour: Flavour) -> Result<()> {
    let shop = Shop::new(flavour)?;
    // Beside a rule that is not switched, and goes on as it was.
    let config = |key, mode| {
        let mut config = shop.with(key, mode).rule("shop.line", "stride:three");
        if let Some(rule) = config.rules.last_mut() {
            rule.push_str("offset = 1\nincrement = 2\n");
        }
        config
    };
    let mut proxy = ProxyProcess::start(config("one", "observe"))?;
    let mut wire = proxy.wire("shop")?;
    let prepared = wire.prepare("INSERT INTO orders (a) VALUES (?)")??;
    let mut ids = Vec::new();
    let mut insert = |wire: &mut Wire| -> Result<[u64; 2]> {
        let text = id(wire.query("INSERT INTO orders (a) VALUES (1)")?)?;
        let bound = id(wire.execute(&prepared, &[Param::Signed(2)])?)?;
        ids.extend([text, bound]);
        let shown = wire.rows("SELECT LAST_INSERT_ID()")?;
        assert_eq!(shown, [[bound.to_string()]]);
        Ok([text, bound])
    };
    assert_eq!(insert(&mut wire)?, [500, 501]);
    // Ids that no row has any more.
    wire.run("BEGIN")?;
    wire.run("INSERT INTO orders (a) VALUES (1), (2), (3)")?;
    wire.run("ROLLBACK")?;

    proxy.reload(config("one", "rewrite"))?;
    shop.wait_for(Some("one"))?;
    wire.run("INSERT INTO line (a) VALUES (1)")?;
    let first = insert(&mut wire)?;
    assert!(first[0] >= 505, "{first:?}");
    let direct = shop
        .server
        .wire("shop")?
        .query("INSERT INTO orders (a) VALUES (1)")?;
    assert!(
        matches!(direct.as_slice(), [Reply::Failed(fault)] if AT_FENCE.contains(&fault.errno)),
        "{direct:?}"
    );

    proxy.reload(config("two", "rewrite"))?;
    shop.wait_for(Some("two"))?;
    let second = insert(&mut wire)?;
    assert!(
        second[0] > first[1] + 900,
        "above the bound of the other tag: {first:?} {second:?}"
    );

    proxy.reload(config("two", "observe"))?;
    shop.wait_for(None)?;
    let native = insert(&mut wire)?;
    assert!(native[0] > second[1], "{second:?} {native:?}");
    let direct = id(shop
        .server
        .wire("shop")?
        .query("INSERT INTO orders (a) VALUES (1)")?)?;
    assert_eq!(direct, native[1] + 1);

    // Once more, with what was prepared before keys and after.
    proxy.reload(config("two", "rewrite"))?;
    shop.wait_for(Some("two"))?;
    insert(&mut wire)?;
    ids.sort_unstable();
    let count = ids.len();
    ids.dedup();
    assert_eq!(ids.len(), count, "{ids:?}");
    Ok(())
}

fn a_transaction_goes_on_natively_and_holds_the_switch_up(flavour: Flavour) -> Result<()> {
    let shop = Shop::new(flavour)?;
    let mut proxy = ProxyProcess::start(shop.with("one", "observe"))?;
    let (mut open, mut other) = (proxy.wire("shop")?, proxy.wire("shop")?);
    open.run("BEGIN")?;
    assert_eq!(open.rows("SELECT COUNT(*) FROM orders")?, [["0"]]);
    proxy.reload(shop.with("one", "rewrite"))?;
    wait_until("the hold", WAIT_MAX, || {
        let held = "SELECT COUNT(*) FROM keywright.keywright_switch WHERE phase = 'holding'";
        Ok(shop.server.wire("shop")?.rows(held)? == [["1"]])
    })?;
    // Held sooner or later.
    other.send_query("INSERT INTO orders (a) VALUES (1)")?;
    let first = open
        .run("INSERT INTO orders (a) VALUES (2)")?
        .last_insert_id;
    let second = open
        .run("INSERT INTO orders (a) VALUES (3)")?
        .last_insert_id;
    assert!((500..=502).contains(&first) && second > first && second <= 502);
    assert_eq!(shop.in_force()?, None);
    open.run("COMMIT")?;
    shop.wait_for(Some("one"))?;
    id(other.read_query()?)?;
    let key = open
        .run("INSERT INTO orders (a) VALUES (2)")?
        .last_insert_id;
    assert!(key > second, "{key}");
    Ok(())
}

fn a_table_that_somebody_locks_is_named_and_nothing_changes(flavour: Flavour) -> Result<()> {
    let shop = Shop::new(flavour)?;
    let config = |mode| {
        let mut config = shop.with("one", mode);
        config.more = "[limits]\nswitch_wait_ms_max = 2000\n".to_owned();
        config
    };
    let mut proxy = ProxyProcess::start(config("observe"))?;
    let mut wire = proxy.wire("shop")?;
    // Past the proxy, and named where the server says it.
    let mut locks = shop.server.wire("shop")?;
    locks.run("BEGIN")?;
    locks.rows("SELECT * FROM orders")?;
    proxy.reload(config("rewrite"))?;
    wait_until("the blocker to be named", WAIT_MAX, || {
        Ok(proxy.log().contains("`shop`.`orders` is locked"))
    })?;
    let began = Instant::now();
    assert_eq!(
        wire.run("INSERT INTO orders (a) VALUES (1)")?
            .last_insert_id,
        500
    );
    assert!(began.elapsed() < WAIT_MAX);
    assert_eq!(shop.in_force()?, None);
    let names = format!("connection {} of root", locks.thread_id());
    if flavour == Flavour::MariaDb {
        assert_has(&proxy.log(), &[&names]);
    }
    locks.run("COMMIT")?;
    shop.wait_for(Some("one"))?;
    let key = wire
        .run("INSERT INTO orders (a) VALUES (1)")?
        .last_insert_id;
    assert!(key > 500, "{key} {}", proxy.log());
    Ok(())
}

fn a_restart_switches_too_and_an_old_file_takes_nothing_back(flavour: Flavour) -> Result<()> {
    let shop = Shop::new(flavour)?;
    // From the first statement on.
    let mut first = ProxyProcess::start(shop.with("one", "rewrite"))?;
    let key = first
        .wire("shop")?
        .run("INSERT INTO orders (a) VALUES (1)")?
        .last_insert_id;
    assert!(key >= 500, "{key}");
    assert_eq!(shop.in_force()?.as_deref(), Some("one"));
    // One that is new does not take the tables back, nor does one that starts again with the file it had.
    let mut other = ProxyProcess::start(shop.with("one", "observe"))?;
    let next = other
        .wire("shop")?
        .run("INSERT INTO orders (a) VALUES (1)")?
        .last_insert_id;
    assert!(next > key);
    assert_has(&other.log(), &["the keys come from \"segment:one\" now"]);
    other.reload(shop.with("one", "rewrite"))?;
    wait_until("what is wanted", WAIT_MAX, || {
        let wanted =
            "SELECT COUNT(*) FROM keywright.keywright_wanted WHERE key_space = 'segment:one'";
        Ok(shop.server.wire("shop")?.rows(wanted)? == [["2"]])
    })?;
    other.reload(shop.with("two", "rewrite"))?;
    shop.wait_for(Some("two"))?;
    first.kill9()?;
    first.restart()?;
    let key = first
        .wire("shop")?
        .run("INSERT INTO orders (a) VALUES (1)")?
        .last_insert_id;
    assert!(key > next);
    assert_eq!(shop.in_force()?.as_deref(), Some("two"));
    // A rule in force cannot just go.
    other.reload(shop.config.clone())?;
    wait_until("the refusal", WAIT_MAX, || {
        Ok(other.log().contains("set mode = \"observe\" first"))
    })?;
    other
        .wire("shop")?
        .run("INSERT INTO orders (a) VALUES (1)")?;
    Ok(())
}

fn what_is_in_the_way_is_told_before(flavour: Flavour) -> Result<()> {
    let shop = Shop::new(flavour)?;
    let wanted = shop.with("one", "rewrite");
    let said = ProxyProcess::said(&wanted, &["check"])?;
    assert_has(&said, &["shop.orders.id has native auto-increment now"]);
    assert!(!said.contains("no table can be switched"), "{said}");
    let mut other = shop.server.wire("shop")?;
    for sql in [
        "XA START 'x'",
        "INSERT INTO orders (a) VALUES (1)",
        "XA END 'x'",
        "XA PREPARE 'x'",
    ] {
        other.run(sql)?;
    }
    let said = ProxyProcess::said(&wanted, &["check"])?;
    assert_has(&said, &["no table can be switched", "1 XA transaction(s)"]);
    let mut proxy = ProxyProcess::start(shop.with("one", "observe"))?;
    proxy.reload(wanted)?;
    wait_until("the XA transaction to be told", WAIT_MAX, || {
        Ok(proxy.log().contains("1 XA transaction(s)"))
    })?;
    assert_eq!(shop.in_force()?, None);
    assert_eq!(
        proxy
            .wire("shop")?
            .run("INSERT INTO orders (a) VALUES (1)")?
            .last_insert_id,
        501
    );
    other.run("XA COMMIT 'x'")?;
    shop.wait_for(Some("one"))?;
    Ok(())
}

fn a_connection_without_rules_is_ended_before_a_switch(flavour: Flavour) -> Result<()> {
    let shop = Shop::new(flavour)?;
    let mut proxy = ProxyProcess::start(shop.config.clone())?;
    let mut old = proxy.wire("shop")?;
    assert_eq!(
        old.run("INSERT INTO orders (a) VALUES (1)")?.last_insert_id,
        500
    );
    proxy.reload(shop.with("one", "rewrite"))?;
    shop.wait_for(Some("one"))?;
    let (output, _) = old.read_to_end();
    assert!(!output.is_empty(), "it is told why");
    assert!(
        proxy
            .wire("shop")?
            .run("INSERT INTO orders (a) VALUES (1)")?
            .last_insert_id
            > 500
    );
    Ok(())
}

fn a_fence_of_another_rule_is_not_taken_for_ones_own(flavour: Flavour) -> Result<()> {
    let shop = Shop::new(flavour)?;
    shop.server.run(
        "shop",
        "CREATE TABLE extra (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT)",
    )?;
    let wide = rule("one", "rewrite").replace("shop.orders", "shop.*");
    let mut config = shop.config.clone();
    config.rules.push(wide);
    let mut proxy = ProxyProcess::start(config.clone())?;
    let mut wire = proxy.wire("shop")?;
    wire.run("INSERT INTO orders (a) VALUES (1)")?;
    config.rules.insert(0, rule("two", "rewrite"));
    proxy.reload(config)?;
    wait_until("the refusal", WAIT_MAX, || {
        Ok(proxy.log().contains("has a fence already"))
    })?;
    let rows = shop
        .server
        .wire("shop")?
        .rows("SELECT COUNT(*) FROM keywright.keywright_rule WHERE key_space = 'segment:two'")?;
    assert_eq!(rows, [["0"]]);
    Ok(())
}

fn a_fence_comes_where_keys_are_in_force(flavour: Flavour) -> Result<()> {
    let shop = Shop::new(flavour)?;
    let without = |text: &str| text.replace("fence = true", "fence = false");
    let mut open = shop.with("one", "rewrite");
    open.rules = open.rules.iter().map(|rule| without(rule)).collect();
    let mut proxy = ProxyProcess::start(open)?;
    let mut wire = proxy.wire("shop")?;
    assert_eq!(
        wire.run("INSERT INTO orders (a) VALUES (1)")?
            .last_insert_id,
        500
    );
    proxy.reload(shop.with("one", "rewrite"))?;
    wait_until("the fence", WAIT_MAX, || {
        Ok(proxy.log().contains("fence applied"))
    })?;
    let direct = shop
        .server
        .wire("shop")?
        .query("INSERT INTO orders (a) VALUES (1)")?;
    assert!(
        matches!(direct.as_slice(), [Reply::Failed(fault)] if AT_FENCE.contains(&fault.errno)),
        "{direct:?}"
    );
    // Without a fence the server may have made ids among those that were reserved.
    let key = id(wire.query("INSERT INTO orders (a) VALUES (1)")?)?;
    assert!(key > 501, "{key}");
    Ok(())
}

fn snowflake_ids_come_and_go(flavour: Flavour) -> Result<()> {
    let shop = Shop::new(flavour)?;
    let config = |key: &str, mode: &str| {
        let mut config = shop.config.clone();
        config.rules = vec![rule("", mode).replace("segment:", key)];
        config
    };
    let mut proxy = ProxyProcess::start(config("snowflake", "observe"))?;
    let mut wire = proxy.wire("shop")?;
    let prepared = wire.prepare("INSERT INTO orders (a) VALUES (?)")??;
    let mut last = 0;
    for (key, mode) in [
        ("snowflake", "observe"),
        ("snowflake", "rewrite"),
        ("segment:one", "rewrite"),
        ("snowflake", "rewrite"),
        ("snowflake", "observe"),
        ("snowflake", "rewrite"),
    ] {
        let expected = if mode == "rewrite" { key } else { "" };
        proxy.reload(config(key, mode))?;
        let sql = "SELECT COALESCE(MAX(key_space), '') FROM keywright.keywright_rule";
        wait_until(&format!("{key} {mode}"), WAIT_MAX, || {
            Ok(shop.server.wire("shop")?.rows(sql)? == [[expected.to_owned()]])
        })?;
        for _ in 0..3 {
            let text = id(wire.query("INSERT INTO orders (a) VALUES (1)")?)?;
            let bound = id(wire.execute(&prepared, &[Param::Signed(2)])?)?;
            assert!(
                last < text && text < bound,
                "{key} {mode}: {last} {text} {bound}"
            );
            last = bound;
        }
        let is_key = last > 1 << 40;
        assert!(is_key || (key, mode) == ("snowflake", "observe"), "{last}");
        let direct = shop
            .server
            .wire("shop")?
            .query("INSERT INTO orders (a) VALUES (1)")?;
        let is_refused =
            matches!(direct.as_slice(), [Reply::Failed(fault)] if AT_FENCE.contains(&fault.errno));
        assert_eq!(is_refused, mode == "rewrite", "{direct:?}");
        last = if is_refused { last } else { id(direct)? };
    }
    Ok(())
}

/// The store is elsewhere; what the promoted server never heard of is the fence, and its ids went on.
fn a_server_that_took_over_gets_keys_above_its_ids(flavour: Flavour) -> Result<()> {
    let stores = Upstream::start_with(flavour, &[])?;
    let (mut shop, mut promoted) = (Shop::new(flavour)?, Shop::new(flavour)?.server);
    shop.config.store_url = make_store(&stores, "keywright", &[("one", 1)])?;
    let mut proxy = ProxyProcess::start(shop.with("one", "rewrite"))?;
    let port = shop.server.port();
    let insert = |proxy: &ProxyProcess| {
        id(proxy
            .wire("shop")?
            .query("INSERT INTO orders (a) VALUES (1)")?)
    };
    assert_eq!(insert(&proxy)?, 500);
    promoted.run("shop", "INSERT INTO orders (id, a) VALUES (90000, 1)")?;
    // In order: these servers are not as durable as real ones.
    shop.server.stop()?;
    promoted.move_to(port)?;
    let key = insert(&proxy)?;
    assert!(key > 90_000, "{key}");
    let direct = promoted
        .wire("shop")?
        .query("INSERT INTO orders (a) VALUES (1)")?;
    assert!(
        matches!(direct.as_slice(), [Reply::Failed(fault)] if AT_FENCE.contains(&fault.errno)),
        "{direct:?}"
    );

    // Native again, and then the first one comes back, which never heard of that.
    proxy.reload(shop.with("one", "observe"))?;
    wait_until("native ids", WAIT_MAX, || {
        let sql = "SELECT COUNT(*) FROM keywright.keywright_rule WHERE key_space IS NULL";
        Ok(stores.wire("keywright")?.rows(sql)? == [["1"]])
    })?;
    let native = insert(&proxy)?;
    assert!(native > key, "{native} {key}");
    promoted.stop()?;
    shop.server.restart()?;
    let last = insert(&proxy)?;
    assert!(last > key, "{last} {key}");
    Ok(())
}

fn tables_without_a_fence_go_over_above_their_counters(flavour: Flavour) -> Result<()> {
    for engine in ["InnoDB", "MyISAM"] {
        let shop = Shop::new(flavour)?;
        shop.server
            .run("shop", &format!("ALTER TABLE orders ENGINE = {engine}"))?;
        let config = |mode: &str| {
            let mut config = shop.config.clone();
            config.rules = vec![rule("one", mode).replace("fence = true", "fence = false")];
            config
        };
        let mut proxy = ProxyProcess::start(config("observe"))?;
        let mut wire = proxy.wire("shop")?;
        let mut insert = || id(wire.query("INSERT INTO orders (a) VALUES (1)")?);
        assert_eq!(insert()?, 500);
        shop.server.run(
            "shop",
            "INSERT INTO orders (a) VALUES (1), (1); DELETE FROM orders",
        )?;
        proxy.reload(config("rewrite"))?;
        shop.wait_for(Some("one"))?;
        let key = insert()?;
        assert!(key >= 503, "{key}");
        // Nobody is kept from it.
        let direct = shop
            .server
            .wire("shop")?
            .query("INSERT INTO orders (a) VALUES (1)")?;
        assert_eq!(id(direct)?, key + 1);
        proxy.reload(config("observe"))?;
        shop.wait_for(None)?;
        let native = insert()?;
        assert!(native > key + 900, "above the bound: {native}");
    }
    Ok(())
}

fn without_a_way_to_put_it_back_nothing_is_begun(flavour: Flavour) -> Result<()> {
    let shop = Shop::new(flavour)?;
    let port = shop.server.port();
    let config = |mode: &str| {
        let mut config = shop.with("one", mode);
        config.more = format!(
            "[[listener]]\nbind = \"127.0.0.1:0\"\nupstream = \"127.0.0.1:{port}\"\ncheck = \"warn\"\n"
        );
        config
    };
    let mut proxy = ProxyProcess::start(config("observe"))?;
    proxy.reload(config("rewrite"))?;
    wait_until("the refusal", WAIT_MAX, || {
        Ok(proxy.log().contains("this proxy switches no tables"))
    })?;
    assert_eq!(
        proxy
            .wire("shop")?
            .run("INSERT INTO orders (a) VALUES (1)")?
            .last_insert_id,
        500
    );
    Ok(())
}

fn a_table_that_comes_later_is_fenced_below_its_tag(flavour: Flavour) -> Result<()> {
    let shop = Shop::new(flavour)?;
    let mut config = shop.with("one", "rewrite");
    config.rules = vec![rule("one", "rewrite").replace("shop.orders", "shop.*")];
    config.more = "[limits]\nschema_refresh_s = 1\n".to_owned();
    let proxy = ProxyProcess::start(config)?;
    let mut direct = shop.server.wire("shop")?;
    direct.run("CREATE TABLE later (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT)")?;
    wait_until("the fence", WAIT_MAX, || {
        let replies = direct.query("INSERT INTO later (a) VALUES (1)")?;
        Ok(matches!(replies.as_slice(), [Reply::Failed(_)]))
    })?;
    direct.run("CREATE TABLE beyond (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT) AUTO_INCREMENT = 100000000")?;
    wait_until("its fence", WAIT_MAX, || {
        let replies = direct.query("INSERT INTO beyond (a) VALUES (1)")?;
        Ok(matches!(replies.as_slice(), [Reply::Failed(_)]))
    })?;
    let key = id(proxy
        .wire("shop")?
        .query("INSERT INTO beyond (a) VALUES (1)")?)?;
    let highest = direct.rows("SELECT MAX(id) FROM beyond WHERE a = 1")?;
    assert!(key > 100_000_000, "{key} {highest:?}");
    Ok(())
}

fn a_program_that_stops_goes_along_until_its_connections_have_ended(
    flavour: Flavour,
) -> Result<()> {
    let shop = Shop::new(flavour)?;
    let mut begins = ProxyProcess::start(shop.with("one", "observe"))?;
    let mut stops = ProxyProcess::start(shop.with("one", "observe"))?;
    let mut open = begins.wire("shop")?;
    let (mut held, mut last) = (stops.wire("shop")?, stops.wire("shop")?);
    open.run("BEGIN")?;
    open.run("INSERT INTO orders (a) VALUES (1)")?;
    last.run("BEGIN")?;
    begins.reload(shop.with("one", "rewrite"))?;
    wait_until("the hold of the other", WAIT_MAX, || {
        let held = "SELECT COUNT(*) FROM keywright.keywright_program WHERE held IS NOT NULL";
        Ok(shop.server.wire("shop")?.rows(held)? == [["1"]])
    })?;
    held.send_query("INSERT INTO orders (a) VALUES (2)")?;
    stops.begin_stop()?;
    wait_until("the end of new connections", WAIT_MAX, || {
        Ok(stops.wire("shop").is_err())
    })?;
    // What waits there goes on when the attempt is over, however that ends.
    open.run("COMMIT")?;
    id(held.read_query()?)?;
    shop.wait_for(Some("one"))?;
    // The next one is not held up either.
    begins.reload(shop.with("two", "rewrite"))?;
    shop.wait_for(Some("two"))?;
    assert!(stops.is_running()?, "{}", begins.log());
    last.run("COMMIT")?;
    Ok(())
}

fn a_transaction_that_an_error_has_ended_holds_nothing_up(flavour: Flavour) -> Result<()> {
    let shop = Shop::new(flavour)?;
    let mut proxy = ProxyProcess::start(shop.with("one", "observe"))?;
    let begun = |proxy: &ProxyProcess, sql: &str| -> Result<Wire> {
        let mut wire = proxy.wire("shop")?;
        for sql in ["BEGIN", "INSERT INTO orders (a) VALUES (1)", sql] {
            wire.run(sql)?;
        }
        Ok(wire)
    };
    let failed = |replies: Vec<Reply>, errno: u16| {
        assert!(
            matches!(replies.as_slice(), [Reply::Failed(fault)] if fault.errno == errno),
            "{replies:?}"
        );
    };
    // A deadlock, of which one is the victim, and definitions that commit what was before them.
    let mut first = begun(&proxy, "UPDATE orders SET a = 2 WHERE id = 500")?;
    let mut second = begun(&proxy, "UPDATE orders SET a = 2 WHERE id = 501")?;
    first.send_query("UPDATE orders SET a = 3 WHERE id = 501")?;
    let replies = second.query("UPDATE orders SET a = 3 WHERE id = 500")?;
    let mut survivor = match replies.as_slice() {
        [Reply::Failed(_)] => {
            failed(replies, 1213);
            first.read_query()?;
            first
        }
        _ => {
            failed(first.read_query()?, 1213);
            second
        }
    };
    survivor.run("COMMIT")?;
    let (mut counts, mut warns) = (begun(&proxy, "DO 0")?, begun(&proxy, "DO 0")?);
    for wire in [&mut counts, &mut warns] {
        failed(wire.query("CREATE TABLE line (a INT)")?, 1050);
    }
    // Its transaction is still there.
    let mut open = begun(&proxy, "DO 0")?;
    failed(open.query("INSERT INTO line (id) VALUES (1), (1)")?, 1062);
    proxy.reload(shop.with("one", "rewrite"))?;
    wait_until("the hold", WAIT_MAX, || {
        let phase = "SELECT COUNT(*) FROM keywright.keywright_switch WHERE phase = 'holding'";
        Ok(shop.server.wire("shop")?.rows(phase)? == [["1"]])
    })?;
    assert_eq!(shop.in_force()?, None);
    open.run("COMMIT")?;
    shop.wait_for(Some("one"))?;
    // Nobody sees that the server was asked.
    assert_eq!(counts.rows("SELECT ROW_COUNT()")?, [["-1"]]);
    let warnings = warns.rows("SHOW WARNINGS")?;
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert_eq!(warnings[0][1], "1050");
    Ok(())
}

#[test]
fn rows_of_parameters_go_over_and_back_with_the_types_they_had() -> Result<()> {
    if !Flavour::MariaDb.is_wanted() {
        return Ok(());
    }
    let shop = Shop::new(Flavour::MariaDb)?;
    let mut proxy = ProxyProcess::start(shop.with("one", "rewrite"))?;
    let mut login = Login::root("shop");
    login.capabilities |= capability::MARIADB_BULK;
    let mut wire = Wire::connect_tcp(proxy.port(), &login)?;
    let statement = wire.prepare("INSERT INTO orders (a) VALUES (?)")??;
    let mut insert = |rest: &[u8]| -> Result<u64> {
        let payload = [statement.id.to_le_bytes().as_slice(), rest].concat();
        id(wire.binary_command(command::STMT_BULK_EXECUTE, &payload)?)
    };
    // LONG, and no types; one row.
    let (typed, untyped) = (b"\x80\0\x03\0\0\x05\0\0\0", b"\0\0\0\x06\0\0\0");
    let first = insert(typed)?;
    proxy.reload(shop.with("one", "observe"))?;
    shop.wait_for(None)?;
    let second = insert(untyped)?;
    assert!(second > first, "{first} {second}");
    proxy.reload(shop.with("one", "rewrite"))?;
    shop.wait_for(Some("one"))?;
    assert!(insert(untyped)? > second);
    let rows = shop
        .server
        .wire("shop")?
        .rows("SELECT a FROM orders ORDER BY id")?;
    assert_eq!(rows, [["5"], ["6"], ["6"]]);
    Ok(())
}

fn a_column_without_room_for_keys_stays_native(flavour: Flavour) -> Result<()> {
    let shop = Shop::new(flavour)?;
    shop.server.run(
        "shop",
        "CREATE TABLE orders_small (id INT AUTO_INCREMENT PRIMARY KEY, a INT)",
    )?;
    let config = |mode| {
        let mut config = shop.config.clone();
        let rule = rule("one", mode).replace("shop.orders", "shop.orders*");
        config.rules.push(rule);
        config
    };
    let mut proxy = ProxyProcess::start(config("observe"))?;
    proxy.reload(config("rewrite"))?;
    wait_until("the refusal", WAIT_MAX, || {
        let output = [
            "the switch is given up: ",
            "`shop`.`orders_small`.`id` is int",
        ];
        Ok(output.iter().all(|output| proxy.log().contains(output)))
    })?;
    assert_eq!(shop.in_force()?, None);
    // Nothing was done to the others either.
    let mut wire = proxy.wire("shop")?;
    for (table, id) in [("orders", 500), ("orders_small", 1)] {
        let insert = format!("INSERT INTO {table} (a) VALUES (1)");
        assert_eq!(wire.run(insert)?.last_insert_id, id, "{table}");
    }
    shop.server.run(
        "shop",
        "ALTER TABLE orders_small MODIFY id BIGINT AUTO_INCREMENT",
    )?;
    shop.wait_for(Some("one"))?;
    let insert = "INSERT INTO orders_small (a) VALUES (1)";
    assert!(wire.run(insert)?.last_insert_id > 500);
    Ok(())
}

fn one_that_is_at_something_is_ended_behind_it(flavour: Flavour) -> Result<()> {
    let shop = Shop::new(flavour)?;
    let mut proxy = ProxyProcess::start(shop.config.clone())?;
    let (mut idle, mut waits) = (proxy.wire("shop")?, proxy.wire("shop")?);
    let mut open = proxy.wire("shop")?;
    let mut locks = shop.server.wire("shop")?;
    assert!(locks.rows("SELECT GET_LOCK('slow', 0)")? == [["1"]]);
    waits.send_query("SELECT GET_LOCK('slow', 60)")?;
    open.run("BEGIN")?;
    open.run("INSERT INTO orders (a) VALUES (1)")?;
    proxy.reload(shop.with("one", "observe"))?;
    let (output, _) = idle.read_to_end();
    assert!(!output.is_empty(), "it is told why");
    // Each of them got the same orders at the same time.
    assert_eq!(open.rows("SELECT COUNT(*) FROM orders")?, [["1"]]);
    locks.run("DO RELEASE_LOCK('slow')")?;
    match waits.read_query()?.as_slice() {
        [Reply::Rows(rows)] => assert_eq!(rows.as_text(), [["1"]]),
        other => panic!("{other:?}"),
    }
    open.run("COMMIT")?;
    for wire in [&mut open, &mut waits] {
        let (output, _) = wire.read_to_end();
        assert!(!output.is_empty(), "it is told why");
    }
    Ok(())
}
