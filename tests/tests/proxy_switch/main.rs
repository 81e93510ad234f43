//! Tables go over from auto-increment to keys, to another tag and back while applications insert: no insert fails, and no id comes twice.

mod ahead;
mod brought;
mod failover;
mod fence;
mod full;
mod ignore;
mod killed;
mod later;
mod moved;
mod obstacles;
mod replaced;
mod silent;
mod stopping;
mod storm;
mod tags;
mod transactions;

use ahead::{
    a_restart_right_behind_a_switch_switches_back,
    a_server_taken_for_another_gets_no_keys_among_its_ids,
    ids_of_a_table_that_is_renamed_into_a_rule_are_given_to_no_table,
    keys_go_on_above_a_table_that_is_renamed_into_a_rule,
};
use brought::{
    a_dump_behind_a_fence_costs_what_was_reserved_once,
    a_restart_and_a_truncate_cost_nothing_that_was_reserved,
    keys_go_on_above_a_table_that_comes_out_of_another_rule,
};
use failover::{
    a_server_that_admin_does_not_lead_to_is_told, a_server_that_took_over_gets_keys_above_its_ids,
};
use fence::{
    a_fence_comes_where_keys_are_in_force, a_fence_of_another_rule_is_not_taken_for_ones_own,
    a_fence_that_cannot_be_lifted_keeps_no_other,
    a_reload_sets_the_fence_that_a_truncate_has_removed,
    a_rule_in_force_that_is_written_another_way_is_named,
    a_rule_that_wants_no_fence_any_more_leaves_none_behind,
    a_table_that_comes_later_is_fenced_below_its_tag,
    a_table_that_refuses_its_fence_keeps_no_other_from_its_own, tables_with_zero_dates_go_over,
    tables_without_a_fence_go_over_above_their_counters,
    the_fence_of_a_rule_that_has_left_the_switch_stays,
};
use ignore::{
    nobody_hears_of_success_whose_rows_were_left_out,
    what_a_program_sends_that_was_away_is_not_left_out,
};
use keywright_testkit::{
    AT_FENCE, Flavour, Login, Param, ProxyConfig, ProxyProcess, Reply, Result, Upstream, WAIT_MAX,
    Wire, assert_has, capability, command, make_store, wait_until,
};
use killed::{
    another_program_switches_where_the_one_that_leads_dies_behind_a_fence,
    another_program_switches_where_the_one_that_leads_dies_while_it_waits,
};
use later::a_program_dies_before_the_fence_of_a_late_table;
use moved::{
    a_native_table_comes_to_keys_in_force_by_no_reload,
    a_program_that_starts_with_swapped_rules_gives_a_table_no_keys_of_the_other_tag,
    a_reload_that_swaps_rules_in_force_is_refused,
    a_rule_in_force_comes_to_another_program_by_a_reload, rules_with_the_same_keys_may_be_swapped,
};
use obstacles::{
    a_backup_keeps_keys_in_force_until_it_ends, a_column_without_room_for_keys_stays_native,
    a_table_that_somebody_locks_is_named_and_nothing_changes, what_is_in_the_way_is_told_before,
    without_a_way_to_put_it_back_nothing_is_begun,
};
use replaced::{
    a_server_is_replaced_in_the_middle_of_an_attempt, a_server_takes_over_while_others_write,
    an_attempt_is_ended_by_a_program_without_its_rule,
};
use silent::{
    a_key_port_goes_by_what_its_program_knows_before_it_follows,
    a_program_is_heard_of_while_it_reads_its_file,
};
use stopping::{
    a_connection_whose_login_outlasts_a_switch_makes_no_ids,
    a_connection_without_rules_is_ended_before_a_switch,
    a_program_that_is_killed_while_it_leads_holds_nobody_up,
    a_program_that_stops_goes_along_until_its_connections_have_ended,
    a_program_that_stops_while_it_starts_leaves_nothing_behind,
    one_that_is_at_something_is_ended_behind_it,
};
use tags::each_tag_begins_above_its_own_tables;
use transactions::{
    a_transaction_goes_on_natively_and_holds_the_switch_up,
    a_transaction_that_an_error_has_ended_holds_nothing_up,
    a_transaction_that_holds_the_switch_up_is_named_until_it_ends,
    a_transaction_through_another_program_is_named_there,
    clients_that_leave_while_their_statements_wait_leave_the_server_too,
};

keywright_testkit::on_both_flavours!(
    open_connections_go_over_and_back,
    a_transaction_goes_on_natively_and_holds_the_switch_up,
    a_table_that_somebody_locks_is_named_and_nothing_changes,
    a_backup_keeps_keys_in_force_until_it_ends,
    a_restart_switches_too_and_an_old_file_takes_nothing_back,
    what_another_program_switches_off_is_native_for_all,
    a_connection_without_rules_is_ended_before_a_switch,
    a_connection_whose_login_outlasts_a_switch_makes_no_ids,
    one_that_is_at_something_is_ended_behind_it,
    what_is_in_the_way_is_told_before,
    a_fence_of_another_rule_is_not_taken_for_ones_own,
    a_rule_in_force_that_is_written_another_way_is_named,
    a_fence_comes_where_keys_are_in_force,
    a_reload_sets_the_fence_that_a_truncate_has_removed,
    a_table_that_refuses_its_fence_keeps_no_other_from_its_own,
    a_fence_that_cannot_be_lifted_keeps_no_other,
    the_fence_of_a_rule_that_has_left_the_switch_stays,
    a_rule_that_wants_no_fence_any_more_leaves_none_behind,
    without_a_way_to_put_it_back_nothing_is_begun,
    a_table_that_comes_later_is_fenced_below_its_tag,
    snowflake_ids_come_and_go,
    tables_without_a_fence_go_over_above_their_counters,
    tables_with_zero_dates_go_over,
    a_server_that_took_over_gets_keys_above_its_ids,
    a_server_that_admin_does_not_lead_to_is_told,
    what_a_program_sends_that_was_away_is_not_left_out,
    nobody_hears_of_success_whose_rows_were_left_out,
    a_program_that_stops_goes_along_until_its_connections_have_ended,
    a_program_that_stops_while_it_starts_leaves_nothing_behind,
    a_program_that_is_killed_while_it_leads_holds_nobody_up,
    another_program_switches_where_the_one_that_leads_dies_while_it_waits,
    another_program_switches_where_the_one_that_leads_dies_behind_a_fence,
    a_transaction_that_an_error_has_ended_holds_nothing_up,
    a_transaction_that_holds_the_switch_up_is_named_until_it_ends,
    a_transaction_through_another_program_is_named_there,
    clients_that_leave_while_their_statements_wait_leave_the_server_too,
    a_column_without_room_for_keys_stays_native,
    a_restart_right_behind_a_switch_switches_back,
    a_server_taken_for_another_gets_no_keys_among_its_ids,
    keys_go_on_above_a_table_that_is_renamed_into_a_rule,
    ids_of_a_table_that_is_renamed_into_a_rule_are_given_to_no_table,
    each_tag_begins_above_its_own_tables,
    a_server_takes_over_while_others_write,
    a_server_is_replaced_in_the_middle_of_an_attempt,
    an_attempt_is_ended_by_a_program_without_its_rule,
    a_program_dies_before_the_fence_of_a_late_table,
    a_key_port_goes_by_what_its_program_knows_before_it_follows,
    a_program_is_heard_of_while_it_reads_its_file,
    a_reload_that_swaps_rules_in_force_is_refused,
    a_program_that_starts_with_swapped_rules_gives_a_table_no_keys_of_the_other_tag,
    keys_go_on_above_a_table_that_comes_out_of_another_rule,
    a_dump_behind_a_fence_costs_what_was_reserved_once,
    a_restart_and_a_truncate_cost_nothing_that_was_reserved,
    rules_with_the_same_keys_may_be_swapped,
    a_native_table_comes_to_keys_in_force_by_no_reload,
    a_rule_in_force_comes_to_another_program_by_a_reload,
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

/// A program whose own file still says that its rule gives keys.
fn what_another_program_switches_off_is_native_for_all(flavour: Flavour) -> Result<()> {
    let shop = Shop::new(flavour)?;
    let first = ProxyProcess::start(shop.with("one", "rewrite"))?;
    let insert = |proxy: &ProxyProcess| -> Result<u64> {
        let mut wire = proxy.wire("shop")?;
        Ok(wire
            .run("INSERT INTO orders (a) VALUES (1)")?
            .last_insert_id)
    };
    let key = insert(&first)?;
    let mut other = ProxyProcess::start(shop.with("one", "rewrite"))?;
    other.reload(shop.with("one", "observe"))?;
    shop.wait_for(None)?;
    let native = insert(&first)?;
    assert!(native > key, "{native} {key}");
    assert!(insert(&other)? > native);
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
        // Who has no tables with snowflake ids holds no worker id, and is ready without.
        let held = if expected == "snowflake" { "1" } else { "0" };
        let holders = "SELECT COUNT(*) FROM keywright.keywright_worker WHERE owner IS NOT NULL";
        wait_until("who holds worker ids", WAIT_MAX, || {
            Ok(shop.server.wire("shop")?.rows(holders)? == [[held.to_owned()]])
        })?;
        wait_until("a program that is ready", WAIT_MAX, || {
            Ok(proxy.http_get("/readyz")?.0 == 200)
        })?;
    }
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
