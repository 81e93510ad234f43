//! What `check` tells of a switch before it begins, and what keeps the proxy from starting.

mod left_over;
mod places;
mod unseen_ids;

use keywright_testkit::{
    Flavour, ProxyConfig, ProxyProcess, Result, Upstream, WAIT_MAX, assert_has, make_store,
    wait_until,
};
use left_over::{
    a_fence_that_is_left_is_told, a_rule_that_a_file_lacks_is_told, ids_above_the_tag_are_told,
    what_run_leaves_as_it_is_is_told,
};
use places::a_place_where_no_socket_can_be_is_told;
use unseen_ids::{programs_are_no_strangers_to_each_other, writers_past_the_program_are_named};

keywright_testkit::on_both_flavours!(
    a_table_that_keeps_no_fence_is_refused,
    a_partitioned_table_keeps_its_fence_or_is_refused,
    what_the_admin_account_may_not_do_is_told,
    triggers_that_the_admin_account_may_not_see_are_told,
    a_store_without_tables_is_told_once,
    a_tag_that_only_the_file_names_is_told,
    replicas_of_each_other_are_told,
    writers_past_the_program_are_named,
    programs_are_no_strangers_to_each_other,
    a_fence_that_is_left_is_told,
    a_rule_that_a_file_lacks_is_told,
    what_run_leaves_as_it_is_is_told,
    ids_above_the_tag_are_told,
    a_place_where_no_socket_can_be_is_told,
);

/// A server of the test's own with a table, and a store with a tag.
fn shop(flavour: Flavour, options: &[&str]) -> Result<(Upstream, ProxyConfig)> {
    let server = Upstream::start_with(flavour, options)?;
    server.run(
        "mysql",
        "CREATE DATABASE shop; USE shop;
         CREATE TABLE orders (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT)",
    )?;
    let store = make_store(&server, "keywright", &[("orders", 1000)])?;
    let config = ProxyConfig::before(&server, &store);
    Ok((server, config))
}

fn rule(table: &str, mode: &str, fence: bool) -> String {
    format!(
        "table = \"{table}\"\ncolumn = \"id\"\nkey = \"segment:orders\"\nmode = \"{mode}\"\nfence = {fence}\n"
    )
}

fn with(config: &ProxyConfig, rule: String) -> ProxyConfig {
    let mut config = config.clone();
    config.rules.push(rule);
    config
}

fn a_table_that_keeps_no_fence_is_refused(flavour: Flavour) -> Result<()> {
    let (server, config) = shop(flavour, &[])?;
    let mut engines = vec!["MyISAM", "MEMORY"];
    if flavour == Flavour::MariaDb {
        engines.push("Aria");
    }
    for engine in &engines {
        server.run(
            "shop",
            &format!("CREATE TABLE {engine} (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT) ENGINE = {engine}"),
        )?;
    }
    let wanted = with(&config, rule("shop.*", "rewrite", true));
    let checked = ProxyProcess::command(&wanted, &["check"])?;
    assert!(!checked.status.success());
    let said = String::from_utf8(checked.stdout)?;
    let refused = format!("{:#}", ProxyProcess::start(wanted).map(drop).unwrap_err());
    for engine in &engines {
        let output = format!(
            "`shop`.`{engine}` is {engine}, and the fence needs InnoDB: ALTER TABLE `shop`.`{engine}` ENGINE = InnoDB, or write fence = false"
        );
        assert_has(&said, &[&format!("error: {output}")]);
        assert_has(&refused, &[&output]);
    }
    assert!(!said.contains("`shop`.`orders` is"), "{said}");
    while_a_rule_observes_it_needs_no_fence(&config)?;
    // A reload is refused whole.
    let mut proxy = ProxyProcess::start(with(&config, rule("shop.orders", "rewrite", true)))?;
    let key = |proxy: &ProxyProcess| -> Result<u64> {
        let insert = "INSERT INTO orders (a) VALUES (1)";
        Ok(proxy.wire("shop")?.run(insert)?.last_insert_id)
    };
    assert!(key(&proxy)? >= 1000);
    let kept = with(&config, rule("shop.orders", "rewrite", true));
    proxy.reload(with(&kept, rule("shop.My*", "rewrite", true)))?;
    wait_until("the refusal", WAIT_MAX, || {
        Ok(proxy
            .log()
            .contains("reload failed, keeping the previous configuration"))
    })?;
    assert_has(&proxy.log(), &["`shop`.`MyISAM` is MyISAM"]);
    assert!(key(&proxy)? >= 1000);
    let mut wire = proxy.wire("shop")?;
    let native = wire.run("INSERT INTO MyISAM (a) VALUES (1)")?;
    assert_eq!(native.last_insert_id, 1);
    // Without the fence they get keys.
    let without = ProxyProcess::start(with(&config, rule("shop.My*", "rewrite", false)))?;
    let mut wire = without.wire("shop")?;
    let native = wire.run("INSERT INTO MyISAM (a) VALUES (1)")?;
    assert!(native.last_insert_id >= 1000);
    Ok(())
}

/// It is told all the same, and keys are refused to the table.
fn while_a_rule_observes_it_needs_no_fence(config: &ProxyConfig) -> Result<()> {
    let observes = with(config, rule("shop.My*", "observe", true));
    let output = "`shop`.`MyISAM` is MyISAM, and the fence needs InnoDB. While its rule observes, that does no harm";
    let said = ProxyProcess::said(&observes, &["check"])?;
    assert_has(&said, &[&format!("warning: {output}")]);
    let mut proxy = ProxyProcess::start(observes)?;
    assert_has(&proxy.log(), &[output]);
    proxy.reload(with(config, rule("shop.My*", "rewrite", true)))?;
    wait_until("the refusal", WAIT_MAX, || {
        Ok(proxy
            .log()
            .contains("reload failed, keeping the previous configuration"))
    })?;
    let refused = "`shop`.`MyISAM` is MyISAM, and the fence needs InnoDB: ALTER TABLE";
    assert_has(&proxy.log(), &[refused]);
    // Others wait for one that was killed.
    proxy.stop()?;
    Ok(())
}

/// What the servers do is shown first: where MariaDB learns to keep the fence, this fails.
fn a_partitioned_table_keeps_its_fence_or_is_refused(flavour: Flavour) -> Result<()> {
    let (server, config) = shop(flavour, &[])?;
    server.run(
        "shop",
        "CREATE TABLE parted (id BIGINT UNSIGNED AUTO_INCREMENT PRIMARY KEY, a INT) PARTITION BY HASH (id) PARTITIONS 4;
         ALTER TABLE parted AUTO_INCREMENT = 18446744073709551615",
    )?;
    let mut wire = server.wire("shop")?;
    let mut is_native = || wire.run("INSERT INTO parted (a) VALUES (1)").is_ok();
    let goes_in = [is_native(), is_native(), is_native()];
    let wanted = with(&config, rule("shop.parted", "rewrite", true));
    let checked = ProxyProcess::command(&wanted, &["check"])?;
    let said = String::from_utf8(checked.stdout)?;
    match flavour {
        Flavour::MariaDb => {
            assert_eq!(goes_in, [false, false, true]);
            assert!(!checked.status.success(), "{said}");
            let words = "error: `shop`.`parted` is partitioned, and MariaDB loses the fence";
            assert_has(&said, &[words]);
            let refused = format!("{:#}", ProxyProcess::start(wanted).map(drop).unwrap_err());
            assert_has(&refused, &["is partitioned"]);
        }
        Flavour::MySql => {
            assert_eq!(goes_in, [false; 3]);
            assert!(checked.status.success(), "{said}");
        }
    }
    Ok(())
}

/// The account `role` has what role `keeper` has.
fn role_is_keeper(flavour: Flavour) -> &'static str {
    match flavour {
        Flavour::MariaDb => "SET DEFAULT ROLE keeper FOR role@'127.0.0.1'",
        Flavour::MySql => "SET DEFAULT ROLE keeper TO role@'127.0.0.1'",
    }
}

fn what_the_admin_account_may_not_do_is_told(flavour: Flavour) -> Result<()> {
    let (server, config) = shop(flavour, &[])?;
    server.run(
        "mysql",
        "CREATE USER reader@'127.0.0.1', alters@'127.0.0.1', single@'127.0.0.1', role@'127.0.0.1';
         GRANT SELECT ON *.* TO reader@'127.0.0.1';
         GRANT SELECT, ALTER ON shop.* TO alters@'127.0.0.1';
         GRANT SELECT, ALTER ON shop.orders TO single@'127.0.0.1'; GRANT LOCK TABLES ON shop.* TO single@'127.0.0.1';
         CREATE ROLE keeper; GRANT SELECT, ALTER, LOCK TABLES ON shop.* TO keeper; GRANT keeper TO role@'127.0.0.1'",
    )?;
    server.run("mysql", role_is_keeper(flavour))?;
    // Nobody waits for the looks, and they wait for nobody.
    let mut open = server.wire("shop")?;
    open.run("BEGIN")?;
    open.run("INSERT INTO orders (a) VALUES (1)")?;
    let port = server.port();
    for (admin, lacks) in [
        ("root", &[][..]),
        ("reader", &["ALTER", "LOCK TABLES"]),
        ("alters", &["LOCK TABLES"]),
        ("single", &[]),
        ("role", &[]),
    ] {
        let mut config = with(&config, rule("shop.orders", "observe", true));
        config.upstream_ports.clear();
        config.more = format!(
            "[[listener]]\nbind = \"127.0.0.1:1\"\nupstream = \"127.0.0.1:{port}\"\nadmin = \"mysql://{admin}@127.0.0.1:{port}\""
        );
        let said = ProxyProcess::said(&config, &["check"])?;
        for privilege in ["SELECT", "ALTER", "LOCK TABLES"] {
            let output = format!(
                "warning: no table can be switched over to keys, or back: the listener's admin account lacks {privilege} on `shop`.`orders` (GRANT {privilege} ON `shop`.* TO it): "
            );
            let is_told = lacks.contains(&privilege);
            assert_eq!(
                said.contains(&output),
                is_told,
                "{admin} {privilege}: {said}"
            );
        }
        let unseen =
            "note: the listener's admin account may not see whether rows come from another server";
        let output = format!("127.0.0.1:1: {unseen}");
        assert_eq!(said.contains(&output), admin != "root", "{admin}: {said}");
    }
    open.run("COMMIT")?;
    Ok(())
}

/// With a binary log servers refuse to make any trigger to those without SUPER, whether they may see triggers or not.
fn triggers_that_the_admin_account_may_not_see_are_told(flavour: Flavour) -> Result<()> {
    let (server, config) = shop(flavour, &["--log-bin=bin", "--server-id=7"])?;
    let users = ["global", "pattern", "single", "other", "role", "blind"];
    for user in users {
        server.run(
            "mysql",
            &format!("CREATE USER {user}@'127.0.0.1'; GRANT SELECT ON *.* TO {user}@'127.0.0.1'"),
        )?;
    }
    server.run(
        "mysql",
        "GRANT TRIGGER ON *.* TO global@'127.0.0.1'; GRANT TRIGGER ON `sh_p`.* TO pattern@'127.0.0.1';
         GRANT TRIGGER ON shop.orders TO single@'127.0.0.1'; GRANT TRIGGER ON `s\\_op`.* TO other@'127.0.0.1';
         CREATE ROLE keeper; GRANT TRIGGER ON shop.* TO keeper; GRANT keeper TO role@'127.0.0.1'",
    )?;
    server.run("mysql", role_is_keeper(flavour))?;
    let port = server.port();
    for user in users.iter().chain(&["root"]) {
        let mut config = with(&config, rule("shop.orders", "observe", true));
        config.upstream_ports.clear();
        config.more = format!(
            "[[listener]]\nbind = \"127.0.0.1:1\"\nupstream = \"127.0.0.1:{port}\"\nadmin = \"mysql://{user}@127.0.0.1:{port}\""
        );
        let said = ProxyProcess::said(&config, &["check"])?;
        let unseen = "note: the listener's admin account may not see all triggers of `shop`, which takes TRIGGER";
        let is_told = ["other", "blind"].contains(user);
        assert_eq!(said.contains(unseen), is_told, "{user}: {said}");
    }
    Ok(())
}

fn a_store_without_tables_is_told_once(flavour: Flavour) -> Result<()> {
    let server = Upstream::shared(flavour)?;
    server.run(
        "mysql",
        "CREATE DATABASE bare; CREATE DATABASE store_bare;
         CREATE TABLE bare.orders (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT)",
    )?;
    let store = format!("mysql://root@127.0.0.1:{}/store_bare", server.port());
    let config = with(
        &ProxyConfig::before(&server, &store),
        rule("bare.orders", "observe", true),
    );
    let of_store = || -> Result<Vec<String>> {
        let checked = ProxyProcess::command(&config, &["check"])?;
        let said = String::from_utf8(checked.stdout)?;
        // The test's servers do not keep every commit.
        let is_meant = |line: &&str| line.starts_with("store: ") && !line.contains("power failure");
        let lines = said.lines().filter(is_meant);
        Ok(lines.map(str::to_owned).collect())
    };
    assert_eq!(
        of_store()?,
        ["store: error: it has none of its tables yet: run keywright init"]
    );
    let json = ProxyProcess::command(&config, &["check", "--format", "json"])?;
    assert!(!json.status.success());
    let told = r#"{"place":"store","severity":"error","message":"it has none of its tables yet: run keywright init"}"#;
    let json = String::from_utf8(json.stdout)?;
    assert_has(&json, &["{\"ready\":false,", told]);
    // The counter is above all rows: its last id may be one that was given.
    server.run("bare", "ALTER TABLE orders AUTO_INCREMENT = 100")?;
    server.run("bare", "INSERT INTO orders (id) VALUES (7)")?;
    let said = ProxyProcess::said(&config, &["init"])?;
    assert_has(
        &said,
        &[
            "created tag \"orders\", above 99, the last id before the AUTO_INCREMENT of `bare`.`orders`\n",
        ],
    );
    assert_eq!(of_store()?, [""; 0]);
    // These servers do not keep every commit, which is a warning.
    assert!(ProxyProcess::command(&config, &["check"])?.status.success());
    let strict = ProxyProcess::command(&config, &["check", "--strict"])?;
    assert!(!strict.status.success());
    let mut misspelt = config.clone();
    for rule in &mut misspelt.rules {
        *rule = rule.replace("segment:orders", "segment:ordres");
    }
    let refused = ProxyProcess::command(&misspelt, &["run"])?;
    let said = String::from_utf8(refused.stderr)?;
    assert_has(&said, &["Did you mean \"orders\"?"]);
    server.run("store_bare", "DROP TABLE keywright_worker, keywright_rule")?;
    assert_eq!(
        of_store()?,
        [
            "store: error: it lacks the tables keywright_worker, keywright_rule: run keywright init, or let this account use them"
        ]
    );
    Ok(())
}

/// `run` would not start: it asks for the tags of the file, whatever is in force.
fn a_tag_that_only_the_file_names_is_told(flavour: Flavour) -> Result<()> {
    let (_server, config) = shop(flavour, &[])?;
    let config = with(&config, rule("shop.orders", "rewrite", true));
    let proxy = ProxyProcess::start(config.clone())?;
    let insert = "INSERT INTO orders (a) VALUES (1)";
    assert!(proxy.wire("shop")?.run(insert)?.last_insert_id >= 1000);
    let mut misspelt = config;
    for rule in &mut misspelt.rules {
        *rule = rule.replace("segment:orders", "segment:ordres");
    }
    let checked = ProxyProcess::command(&misspelt, &["check"])?;
    assert!(!checked.status.success());
    let said = String::from_utf8(checked.stdout)?;
    assert_has(&said, &["store: error: tag \"ordres\" is not in "]);
    Ok(())
}

fn replicate(replica: &Upstream, of: &Upstream) -> Result<()> {
    let port = of.port();
    let sql = match replica.flavour() {
        Flavour::MariaDb => format!(
            "CHANGE MASTER TO MASTER_HOST='127.0.0.1', MASTER_PORT={port}, MASTER_USER='root'; START SLAVE"
        ),
        Flavour::MySql => format!(
            "CHANGE REPLICATION SOURCE TO SOURCE_HOST='127.0.0.1', SOURCE_PORT={port}, SOURCE_USER='root', GET_SOURCE_PUBLIC_KEY=1; START REPLICA"
        ),
    };
    replica.run("mysql", &sql)?;
    Ok(())
}

fn replicas_of_each_other_are_told(flavour: Flavour) -> Result<()> {
    // What was there before is not to be carried out on the other.
    let options = |id| [format!("--server-id={id}"), "--log-bin=bin".to_owned()];
    let start = |id: u8| {
        let options = options(id);
        Upstream::start_with(
            flavour,
            &[&options[0], &options[1], "--replicate-ignore-db=mysql"],
        )
    };
    let (one, other) = (start(1)?, start(2)?);
    one.run(
        "mysql",
        "CREATE DATABASE shop; CREATE TABLE shop.orders (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT)",
    )?;
    let store = make_store(&one, "keywright", &[("orders", 1000)])?;
    let observe = with(
        &ProxyConfig::before(&one, &store),
        rule("shop.orders", "observe", true),
    );
    let check = || ProxyProcess::said(&observe, &["check"]);
    assert!(!check()?.contains("no table can be switched"));
    replicate(&one, &other)?;
    let at = format!("127.0.0.1:{}", other.port());
    let output =
        |what: &str| format!("no table can be switched over to keys, or back: the server {what}");
    let is_replica = output(&format!("is a replica of {at}, and not read_only"));
    assert_has(&check()?, &[&is_replica]);
    replicate(&other, &one)?;
    let are_both = output(&format!("and {at} are replicas of each other"));
    wait_until("the circle", WAIT_MAX, || Ok(check()?.contains(&are_both)))?;
    // Nor is it begun.
    let mut proxy = ProxyProcess::start(observe.clone())?;
    proxy.reload(with(
        &ProxyConfig::before(&one, &store),
        rule("shop.orders", "rewrite", true),
    ))?;
    wait_until("the switch to be given up", WAIT_MAX, || {
        Ok(proxy
            .log()
            .contains("the switch is given up: the server and"))
    })?;
    let stop = match flavour {
        Flavour::MariaDb => "STOP SLAVE",
        Flavour::MySql => "STOP REPLICA",
    };
    one.run("mysql", stop)?;
    assert!(!check()?.contains("no table can be switched"));
    wait_until("the switch", WAIT_MAX, || {
        let insert = "INSERT INTO orders (a) VALUES (1)";
        Ok(proxy.wire("shop")?.run(insert)?.last_insert_id >= 1000)
    })?;
    Ok(())
}
