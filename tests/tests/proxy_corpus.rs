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
);

fn scenarios() -> Result<Vec<Scenario>> {
    corpus::load(&workspace_root().join("tests/corpus"))
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
    const PREFIX: &str = "corpus_p";
    let server = Upstream::shared(flavour)?;
    let names: Vec<String> = (0..KEY_SPACES.len())
        .map(|i| format!("space_{i}"))
        .collect();
    let tags: Vec<(&str, u64)> = names
        .iter()
        .map(String::as_str)
        .zip((KEY_FIRST..).step_by(KEY_SPACE_SIZE as usize))
        .collect();
    let store = make_store(&server, "corpus_store", &tags)?;
    let mut config = ProxyConfig::before(&server, &store);
    // The longest ending first: the first rule that matches is taken.
    for ((ending, table), name) in KEY_SPACES.iter().zip(&names).rev() {
        config = config.rule(
            &format!("{PREFIX}_*{ending}.{table}"),
            &format!("segment:{name}"),
        );
    }
    // All scenarios share the rules: what one of them makes, such as a trigger, must not be seen and change how others go.
    config.more = "[limits]\nlook_s = 86400".to_owned();
    let proxy = ProxyProcess::start(config)?;
    let twin = Side {
        direct_port: server.port(),
        port: proxy.port(),
        schema_prefix: PREFIX,
        keys: TwinKeys::Fenced,
    };
    let report = corpus::compare(&scenarios()?, flavour, &native(&server, "corpus_n"), &twin)?;
    show(flavour, &report);
    report.check()
}
