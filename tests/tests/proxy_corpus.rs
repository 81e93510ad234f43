//! The corpus of statements: natively on one table and through the proxy on its twin.

use keywright_tests::corpus::{self, Report, Scenario, Side, TwinKeys};
use keywright_tests::{Flavour, Result, Upstream, workspace_root};

keywright_tests::on_both_flavours!(runner_sees_no_difference_where_there_is_none);

fn scenarios() -> Result<Vec<Scenario>> {
    corpus::load(&workspace_root().join("tests/corpus"))
}

fn native(server: &Upstream) -> Side<'_> {
    Side {
        direct_port: server.port(),
        port: server.port(),
        schema_prefix: "corpus_n",
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
        schema_prefix: "corpus_m",
        keys: TwinKeys::NativeElsewhere,
        ..native(&server)
    };
    let report = corpus::compare(&scenarios()?, flavour, &native(&server), &twin)?;
    show(flavour, &report);
    report.check()?;
    assert!(report.statements >= 300, "{} statements", report.statements);
    Ok(())
}
