//! What ids of a fed tag and fed snowflake ids cost, and how soon a range comes once it is asked for.

use anyhow::{Context as _, Result};
use keywright_testkit::{PgServer, WAIT_MAX, query_i64, wait_until};
use postgres::Client;

use super::calls::cpu_ns;
use super::pgbench::Run;
use super::report::{Limit, Section, Table, Target};
use super::rounds::{Rounds, interleave};
use super::server::{call, loop_sql};
use super::sizes::Sizes;
use crate::needs;
use crate::program::Program;

const NEXTVAL: &str = "nextval('c1')";
const FED: &str = "next_biz_id('fed')";
const SNOWFLAKE: &str = "snowflake_id()";
/// The database whose snowflake ids are fed.
const DATABASE: &str = "fed_snowflake";
/// Until then a store that was made a moment ago leases no worker id to one.
const COVER_S: u64 = 30;
/// Of a tag that is handed so many ids at once, which the store's own step is, too.
const SMALL: &str = "next_biz_id('fed_small')";
const RANGE_IDS: u32 = 1_000;
const ROLE: &str = "feeder";
/// How often the two are measured in turn within a round.
const SLICES: u32 = 10;

/// Why a hand-over may take longer than wanted.
const SLOWEST_STATEMENT: &str = "Each statement waits for a sync of the disk and for another process that shares the cores. \
    A run has some hundred statements, so its p99.9 is its slowest one.";

/// Of one round.
struct Figures {
    nextval_ns: f64,
    fed_ns: f64,
    snowflake_ns: f64,
    /// From the call of somebody who has no id to its answer, microseconds.
    waited_us: [f64; 3],
    hand_overs: f64,
    statements: f64,
}

const PERCENTILES: [f64; 3] = [0.50, 0.99, 0.999];

pub(super) fn measure(server: &PgServer, sizes: Sizes) -> Result<Section> {
    let mut client = server.client("postgres")?;
    client.batch_execute(&format!(
        "SELECT keywright.create_fed_tag('fed', step => 1000000); \
         SELECT keywright.create_fed_tag('fed_small', step => {RANGE_IDS}, step_min => {RANGE_IDS}, step_max => {RANGE_IDS}); \
         CREATE ROLE {ROLE} LOGIN; GRANT USAGE ON SCHEMA keywright TO {ROLE}; \
         GRANT EXECUTE ON FUNCTION keywright.await_demand, keywright.feed_tag, keywright.handed_over, \
         keywright.time_demand, keywright.feed_time, keywright.handed_time TO {ROLE}"
    ))?;
    client.batch_execute(&format!("CREATE DATABASE {DATABASE}"))?;
    let mut snowflake = server.client(DATABASE)?;
    snowflake.batch_execute(
        "CREATE EXTENSION keywright; SELECT keywright.set_snowflake_source('fed')",
    )?;
    let feeder = feeder(server)?;
    // Steps grow, and both ranges are there.
    wait_until("the first range", WAIT_MAX, || {
        Ok(call(&mut client, FED, 1).is_ok() && call(&mut client, SMALL, 1).is_ok())
    })
    .with_context(|| feeder.log())?;
    call(&mut client, FED, 2 * sizes.calls)?;
    wait_until("the first time", WAIT_MAX, || {
        Ok(call(&mut snowflake, SNOWFLAKE, 1).is_ok())
    })
    .with_context(|| feeder.log())?;
    let figures = interleave(&[()], sizes.rounds, |()| {
        one_round(server, (&mut client, &mut snowflake), sizes)
    })?;
    Ok(Section {
        title: "Fed tags and snowflake ids",
        text: text(sizes),
        table: table(&figures),
        targets: targets(&figures),
    })
}

/// A program whose store is a file, and which feeds the server.
fn feeder(server: &PgServer) -> Result<Program> {
    needs::install(&needs::to_build_program())?;
    Program::build()?;
    let mut program = Program::new(&[])?;
    let store = program.file("store.db");
    program.configure(&format!(
        "[store]\nurl = \"file:{}\"\nany_file_system = true\n\n[snowflake]\nfed_worker_ids = \"900-1023\"\nlead_ms_max = 1000\n\n\
         [[feed]]\nurl = \"postgres://{ROLE}@127.0.0.1:{}/postgres\"\n\
         tags = [\"fed\", \"fed_small\"]\nsnowflake = true\ncover_s = {COVER_S}\n",
        store.display(),
        server.port()
    ))?;
    crate::shell::output(&mut program.command("init"))?;
    program.start()?;
    Ok(program)
}

fn one_round(
    server: &PgServer,
    (client, snowflake): (&mut Client, &mut Client),
    sizes: Sizes,
) -> Result<Figures> {
    let calls = sizes.calls / SLICES;
    let cost_ns = |client: &mut Client, expression: &str| -> Result<f64> {
        let pid = query_i64(client, "SELECT pg_backend_pid()::bigint")?;
        let before = cpu_ns(pid)?;
        client.query_one(&loop_sql(expression, calls), &[])?;
        Ok((cpu_ns(pid)? - before) / f64::from(calls))
    };
    let (mut nextval_ns, mut fed_ns, mut snowflake_ns) = (0.0, 0.0, 0.0);
    for _ in 0..SLICES {
        let nothing = cost_ns(client, "'x'::text")?;
        nextval_ns += (cost_ns(client, NEXTVAL)? - nothing) / f64::from(SLICES);
        fed_ns += (cost_ns(client, FED)? - nothing) / f64::from(SLICES);
        snowflake_ns += (cost_ns(snowflake, SNOWFLAKE)? - nothing) / f64::from(SLICES);
    }
    let before = refills(client)?;
    let run = Run {
        statement: &loop_sql(SMALL, RANGE_IDS),
        clients: 1,
        seconds: sizes.latency_s,
    };
    let seen = run.logged(server, None)?;
    Ok(Figures {
        nextval_ns,
        fed_ns,
        snowflake_ns,
        waited_us: PERCENTILES.map(|part| seen.percentile(part)),
        hand_overs: refills(client)? - before,
        statements: seen.latencies_us.len() as f64,
    })
}

fn refills(client: &mut Client) -> Result<f64> {
    let query = "SELECT refills::float8 FROM keywright.stats WHERE tag = 'fed_small'";
    Ok(client.query_one(query, &[])?.try_get(0)?)
}

fn text(sizes: Sizes) -> Vec<String> {
    vec![
        format!(
            "CPU as above, of `{FED}` and `{SNOWFLAKE}` beside `{NEXTVAL}`: in a round each {SLICES} times in turn, {} calls each; refills during the loops are part of the \
             figure. A program feeds the server out of a store in a file, on the same machine.",
            sizes.calls / SLICES
        ),
        format!(
            "How long a hand-over takes: `pgbench --client=1 --time={} --log` with `{}`, whose tag is handed {RANGE_IDS} ids at once: each statement \
             takes a range, asks for the next, is through with it in some microseconds, and waits for the next to be reserved, synced to the disk \
             and handed over.",
            sizes.latency_s,
            loop_sql(SMALL, RANGE_IDS)
        ),
    ]
}

fn table(figures: &Rounds<(), Figures>) -> Table {
    let mut table = Table::new(&["figure", "seen"]);
    let mut row = |name: &str, of: &dyn Fn(&Figures) -> f64| {
        let spread = figures.spread(|round| of(&round[&()]));
        table.row(vec![name.to_owned(), format!("{spread:.1}")]);
    };
    row("nextval, CACHE 1, ns per call", &|seen| seen.nextval_ns);
    row("next_biz_id of a fed tag, ns per call", &|seen| seen.fed_ns);
    row("snowflake_id of a fed database, ns per call", &|seen| {
        seen.snowflake_ns
    });
    row("statements of a run", &|seen| seen.statements);
    row("hand-overs for them", &|seen| seen.hand_overs);
    row("from demand to fed, p50 µs", &|seen| seen.waited_us[0]);
    row("from demand to fed, p99 µs", &|seen| seen.waited_us[1]);
    row("from demand to fed, p99.9 µs", &|seen| seen.waited_us[2]);
    table
}

fn targets(figures: &Rounds<(), Figures>) -> Vec<Target> {
    vec![
        Target {
            what: "next_biz_id of a fed tag, CPU per call × nextval, CACHE 1".to_owned(),
            seen: figures.spread(|round| round[&()].fed_ns / round[&()].nextval_ns),
            limit: Limit::AtMost(0.10),
            why: None,
        },
        Target {
            what: "snowflake_id of a fed database, CPU per call × nextval, CACHE 1".to_owned(),
            seen: figures.spread(|round| round[&()].snowflake_ns / round[&()].nextval_ns),
            limit: Limit::AtMost(0.20),
            why: None,
        },
        Target {
            what: "from demand to fed, p99.9 ms".to_owned(),
            seen: figures.spread(|round| round[&()].waited_us[2] / 1_000.0),
            limit: Limit::AtMost(10.0),
            why: Some(SLOWEST_STATEMENT),
        },
    ]
}
