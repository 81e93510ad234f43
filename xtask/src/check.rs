//! `cargo xtask check`.

use std::time::Instant;

use anyhow::Result;
use clap::Args;
use keywright_testkit::{PgVersion, workspace_root};

use crate::install::PG_CONFIG;
use crate::shell::{cargo, run_loudly};
use crate::suites::run::Tally;
use crate::suites::{self, Starts, build};
use crate::{links, needs, oracle};

/// Check formatting, lints, documentation, and all tests that start no server.
///
/// Where a test lies says whether it starts one; see ARCHITECTURE.md.
#[derive(Args)]
pub(crate) struct Check {}

impl Check {
    pub(crate) fn run(self) -> Result<()> {
        let started = Instant::now();
        // The lints see the extension too, and pgrx reads the server's headers to build it.
        let mut needs = needs::to_build();
        needs.extend(needs::to_build_program());
        needs.extend(needs::to_check_links());
        needs::install(&needs)?;
        lints()?;
        let mut suites = suites::all()?;
        suites.retain(|suite| suite.starts == Starts::Nothing);
        let mut tally = Tally::default();
        tally.run(&build::build(&suites)?.suites, &[])?;
        tally.close(started.elapsed().as_secs())
    }
}

/// What others would read the documentation of.
const LIBRARIES: [&str; 5] = [
    "keywright-core",
    "keywright-wire",
    "keywright-rewrite",
    "keywright-session",
    "keywright-store",
];

/// What people start.
const PROGRAM: &str = "keywright-proxy";

/// What the server loads.
const EXTENSION: &str = "keywright";
const DENY: [&str; 3] = ["--", "--deny", "warnings"];

/// What needs no test to run: every target of the workspace is formatted and compiles without a warning, as does the pair of sessions that
/// `cargo xtask oracle` compares; every link of the documentation leads somewhere.
pub(crate) fn lints() -> Result<()> {
    run_loudly(&mut cargo(["fmt", "--all", "--check"]))?;
    let clippy = ["clippy", "--workspace", "--all-targets", "--exclude"];
    run_loudly(cargo(clippy).arg(EXTENSION).args(DENY))?;
    // In the way and the place in which it is built, so that what it depends on is not compiled for the lints alone.
    let version = PgVersion::V15;
    let features = format!("pg{version}");
    let target = workspace_root().join("target").join(&features);
    let mut clippy = cargo(["clippy", "--release", "--package", EXTENSION]);
    clippy
        .args(["--no-default-features", "--features", &features])
        .arg("--target-dir")
        .arg(target)
        .args(DENY)
        .env("PGRX_PG_CONFIG_PATH", PG_CONFIG);
    run_loudly(&mut clippy)?;
    oracle::compiles()?;
    documentation()?;
    // By itself, as people build it: beside the tests its dependencies have features that only these ask for.
    run_loudly(&mut cargo(["check", "--quiet", "--package", PROGRAM]))?;
    links::check()
}

/// Comments that become documentation have no broken links.
fn documentation() -> Result<()> {
    let mut pages = cargo(["doc", "--no-deps", "--quiet"]);
    // With the program, so that what they depend on has the features that it has with the program by itself, and is compiled once for both.
    for package in LIBRARIES.into_iter().chain([PROGRAM]) {
        pages.args(["--package", package]);
    }
    run_loudly(pages.env("RUSTDOCFLAGS", "--deny warnings"))
}
