//! The corpus of statements: natively on one table and through the proxy on its twin.

use keywright_tests::corpus::{
    self, KEY_FIRST, KEY_SPACE_SIZE, KEY_SPACES, Report, Scenario, Side, TwinKeys,
};
use keywright_tests::{
    Flavour, ProxyConfig, ProxyProcess, Result, Upstream, make_store, workspace_root,
};

keywright_tests::on_both_flavours!(
    runner_sees_no_difference_where_there_is_none,
    proxied_keys_are_seen_like_native_ones,
    keys_go_through_views_that_are_known,
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
    let mut config = ProxyConfig::before(server, &store);
    // The longest ending first: the first rule that matches is taken.
    for ((ending, table), name) in KEY_SPACES.iter().zip(&names).rev() {
        config = config.rule(
            &format!("{schema_prefix}_*{ending}.{table}"),
            &format!("segment:{name}"),
        );
    }
    // All scenarios share the rules: what one of them makes, such as a trigger, must not be seen and change how others go.
    config.more = "[limits]\nlook_s = 86400".to_owned();
    ProxyProcess::start(config)
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
