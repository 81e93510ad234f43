//! The corpus of statements: natively on one table and through the proxy on its twin.

use keywright_testkit::corpus::{
    self, KEY_FIRST, KEY_SPACE_SIZE, KEY_SPACES, Report, Scenario, Side, TwinKeys,
};
use keywright_testkit::{
    AT_FENCE, Flavour, ProxyConfig, ProxyProcess, Reply, Result, Upstream, make_store,
    workspace_root,
};

keywright_testkit::on_both_flavours!(
    runner_sees_no_difference_where_there_is_none,
    proxied_keys_are_seen_like_native_ones,
    keys_go_through_views_that_are_known,
    names_in_another_case_are_the_same_where_the_server_says_so,
);

fn scenarios() -> Result<Vec<Scenario>> {
    corpus::load(&workspace_root().join("tests/corpus"))
}

/// Those whose views a proxy must have seen when it started.
fn scenarios_with_views() -> Result<Vec<Scenario>> {
    corpus::load(&workspace_root().join("tests/corpus_of_views"))
}

/// Each test has schemas of its own: files that a scenario makes stay with the server.
fn native<'a>(server: &'a Upstream, schema_prefix: &'a str) -> Side<'a> {
    Side {
        direct_port: server.port(),
        port: server.port(),
        schema_prefix,
        keys: TwinKeys::Native,
    }
}

fn show(flavour: Flavour, report: &Report) {
    println!(
        "{}: {} statements, {} of them refused by the proxy, {} deviations",
        flavour.name(),
        report.statements,
        report.refused,
        report.deviations.len()
    );
    for deviation in &report.deviations {
        println!("    {deviation}");
    }
}

/// The runner itself: two native tables whose keys begin elsewhere.
fn runner_sees_no_difference_where_there_is_none(flavour: Flavour) -> Result<()> {
    let server = Upstream::shared(flavour)?;
    let twin = Side {
        keys: TwinKeys::NativeElsewhere,
        ..native(&server, "corpus_m")
    };
    let report = corpus::compare(&scenarios()?, flavour, &native(&server, "corpus_o"), &twin)?;
    show(flavour, &report);
    report.check()?;
    assert!(report.statements >= 300, "{} statements", report.statements);
    Ok(())
}

/// The same statements on a table of its own and, through the proxy, on one that cannot issue keys.
fn proxied_keys_are_seen_like_native_ones(flavour: Flavour) -> Result<()> {
    let server = Upstream::shared(flavour)?;
    let scenarios = scenarios()?;
    let proxy = proxy(&server, "corpus_p", "corpus_store")?;
    compare(
        flavour,
        &server,
        &scenarios,
        ["corpus_n", "corpus_p"],
        &proxy,
    )
}

/// The same where rows go through views.
fn keys_go_through_views_that_are_known(flavour: Flavour) -> Result<()> {
    const PREFIX: &str = "corpus_w";
    let server = Upstream::shared(flavour)?;
    let scenarios = scenarios_with_views()?;
    corpus::set_up(&scenarios, flavour, &native(&server, PREFIX))?;
    let proxy = proxy(&server, PREFIX, "corpus_store_w")?;
    compare(flavour, &server, &scenarios, ["corpus_v", PREFIX], &proxy)
}

/// The same on a server that does not tell names of tables in another case apart, with rules in another case than the tables.
fn names_in_another_case_are_the_same_where_the_server_says_so(flavour: Flavour) -> Result<()> {
    const PREFIX: &str = "corpus_l";
    let server = Upstream::start_with(flavour, &["--lower-case-table-names=1"])?;
    let scenarios = corpus::load(&workspace_root().join("tests/corpus_of_names"))?;
    corpus::set_up(&scenarios, flavour, &native(&server, PREFIX))?;
    let proxy = proxy(&server, &PREFIX.to_uppercase(), "corpus_store")?;
    compare(flavour, &server, &scenarios, ["corpus_k", PREFIX], &proxy)?;
    fence_in_another_case(&server)
}

/// A rule in another case than its table finds it, and the fence holds for its views.
fn fence_in_another_case(server: &Upstream) -> Result<()> {
    server.run(
        "mysql",
        "CREATE DATABASE Fenced; CREATE TABLE fenced.Orders (Id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT);
         CREATE VIEW FENCED.Shown AS SELECT ID AS nr, a FROM Fenced.ORDERS",
    )?;
    let store = make_store(server, "fenced_store", &[("orders", 1000)])?;
    let mut config = ProxyConfig::before(server, &store).rule("FENCED.oRDERS", "segment:orders");
    for rule in &mut config.rules {
        rule.push_str("fence = true\n");
    }
    let proxy = ProxyProcess::start(config)?;
    let insert = "INSERT INTO SHOWN (a) VALUES (1)";
    assert_eq!(proxy.wire("FENCED")?.run(insert)?.last_insert_id, 1000);
    let replies = server.wire("FENCED")?.query(insert)?;
    assert!(
        matches!(replies.as_slice(), [Reply::Failed(fault)] if AT_FENCE.contains(&fault.errno)),
        "{replies:?}"
    );
    Ok(())
}

/// A proxy with a rule for each of the tables whose keys may differ.
fn proxy(server: &Upstream, schema_prefix: &str, store: &str) -> Result<ProxyProcess> {
    let names: Vec<String> = (0..KEY_SPACES.len())
        .map(|i| format!("space_{i}"))
        .collect();
    let tags: Vec<(&str, u64)> = names
        .iter()
        .map(String::as_str)
        .zip((KEY_FIRST..).step_by(KEY_SPACE_SIZE as usize))
        .collect();
    let store = make_store(server, store, &tags)?;
    make_one_table_each(server, schema_prefix)?;
    let mut config = ProxyConfig::before(server, &store);
    // The longest ending first: the first rule that matches is taken.
    for ((ending, table), name) in KEY_SPACES.iter().zip(&names).rev() {
        config = config.rule(
            &format!("{schema_prefix}_*{ending}.{table}"),
            &format!("segment:{name}"),
        );
    }
    // All scenarios share the rules: what one of them makes, such as a trigger, must not be seen and change how others go.
    config.more = "[limits]\nschema_refresh_s = 86400".to_owned();
    ProxyProcess::start(config)
}

/// A proxy does not start with a rule that no table matches; scenarios make theirs later.
fn make_one_table_each(server: &Upstream, schema_prefix: &str) -> Result<()> {
    for (ending, table) in KEY_SPACES {
        let schema = format!("{schema_prefix}_first{ending}");
        let table = format!("`{schema}`.`{}`", table.replace('`', "``"));
        let sql = format!(
            "CREATE DATABASE IF NOT EXISTS `{schema}`;
             CREATE TABLE IF NOT EXISTS {table} (id BIGINT UNSIGNED AUTO_INCREMENT PRIMARY KEY)"
        );
        server.run("mysql", &sql)?;
    }
    Ok(())
}

fn compare(
    flavour: Flavour,
    server: &Upstream,
    scenarios: &[Scenario],
    [own, proxied]: [&str; 2],
    proxy: &ProxyProcess,
) -> Result<()> {
    let twin = Side {
        direct_port: server.port(),
        port: proxy.port(),
        schema_prefix: proxied,
        keys: TwinKeys::Fenced,
    };
    let report = corpus::compare(scenarios, flavour, &native(server, own), &twin)?;
    show(flavour, &report);
    report.check()
}
