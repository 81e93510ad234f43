//! How long single calls take under load, while segments are refilled.

use anyhow::Result;
use keywright_testkit::PgServer;
use postgres::Client;

use super::pgbench::Run;
use super::report::{Limit, Section, Table, Target};
use super::rounds::{Rounds, interleave};
use super::sizes::Sizes;

const CLIENTS: u16 = 8;
/// Rounds of this part for one of the others.
const ROUNDS_FACTOR: u16 = 8;

/// Why the last per mille may be slower than wanted.
const WAITS: &str = "The slowest per mille are the calls that wait: for the disk, where a refill falls into them (with the step held at \
    1000 into about one call of a thousand, as with CACHE 1000), and for a core, since clients and backends share them.";

/// Where the ids come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Source {
    /// Each of the clients reserves a thousand at a time for itself.
    NextvalThousand,
    /// A tag as it is after `create_tag`: its step starts at 1000 and doubles while refills are frequent.
    Growing,
    /// A tag that never reserves more than a thousand, so that refills are as frequent as with CACHE 1000.
    Held,
}

impl Source {
    const ALL: [Source; 3] = [Source::NextvalThousand, Source::Growing, Source::Held];

    fn name(self) -> &'static str {
        match self {
            Source::NextvalThousand => "nextval, CACHE 1000",
            Source::Growing => "next_biz_id, new tag whose step grows",
            Source::Held => "next_biz_id, step held at 1000",
        }
    }

    /// How its tag is made; a sequence has none.
    fn tag_options(self) -> Option<&'static str> {
        match self {
            Source::NextvalThousand => None,
            Source::Growing => Some(""),
            Source::Held => Some(", step => 1000, step_max => 1000"),
        }
    }
}

/// What one run of pgbench showed.
struct Latency {
    p50_us: f64,
    p99_us: f64,
    p999_us: f64,
    calls: f64,
    refills: f64,
}

type Figures = Rounds<Source, Latency>;

pub(super) fn measure(server: &PgServer, sizes: Sizes) -> Result<Section> {
    let mut client = server.client("postgres")?;
    let mut tags = 0_u32;
    let figures = interleave(&Source::ALL, sizes.rounds * ROUNDS_FACTOR, |source| {
        tags += 1;
        one_run(server, &mut client, source, tags, sizes.latency_s)
    })?;
    Ok(Section {
        title: "Latency under load",
        text: vec![
            format!(
                "`pgbench --no-vacuum --protocol=prepared --client={CLIENTS} --jobs={CLIENTS} --time={} --log --file=…`\n\
                 with `SELECT next_biz_id('…')` or `SELECT nextval('c1000')`; percentiles of all transactions of a run, \
                 from pgbench's log.\n{ROUNDS_FACTOR} times as many rounds as elsewhere: the last per mille varies most.",
                sizes.latency_s
            ),
            "Each run has a new tag, so that refills fall into it (`keywright.stats`; the sequence's are computed). A \
             refill waits\nfor the disk, in both. The first per mille is where they are seen, if at all; on few cores it \
             is also where the scheduler is."
                .to_owned(),
        ],
        table: table(&figures),
        targets: targets(&figures),
    })
}

fn one_run(
    server: &PgServer,
    client: &mut Client,
    source: Source,
    number: u32,
    seconds: u32,
) -> Result<Latency> {
    let tag = format!("latency_{number}");
    let statement = match source.tag_options() {
        None => "SELECT nextval('c1000')".to_owned(),
        Some(options) => {
            client.batch_execute(&format!("SELECT keywright.create_tag('{tag}'{options})"))?;
            format!("SELECT next_biz_id('{tag}')")
        }
    };
    let run = Run {
        statement: &statement,
        clients: CLIENTS,
        seconds,
    };
    let seen = run.logged(server, None)?;
    let calls = seen.latencies_us.len() as f64;
    let refills = match source.tag_options() {
        None => calls / 1_000.0,
        Some(_) => {
            let query = "SELECT refills::float8 FROM keywright.stats WHERE tag = $1";
            client.query_one(query, &[&tag])?.try_get(0)?
        }
    };
    Ok(Latency {
        p50_us: seen.percentile(0.50),
        p99_us: seen.percentile(0.99),
        p999_us: seen.percentile(0.999),
        calls,
        refills,
    })
}

fn table(figures: &Figures) -> Table {
    let mut table = Table::new(&[
        "µs",
        "p50",
        "p99",
        "p99.9",
        "p99.9 × CACHE 1000",
        "calls per run",
        "refills per run",
    ]);
    for source in Source::ALL {
        let spread = |figure: fn(&Latency) -> f64| figures.spread(|round| figure(&round[&source]));
        table.row(vec![
            source.name().to_owned(),
            spread(|seen| seen.p50_us).short(0),
            format!("{:.0}", spread(|seen| seen.p99_us)),
            format!("{:.0}", spread(|seen| seen.p999_us)),
            ratio(figures, source).to_string(),
            spread(|seen| seen.calls).short(0),
            spread(|seen| seen.refills).short(0),
        ]);
    }
    table
}

fn ratio(figures: &Figures, source: Source) -> super::rounds::Spread {
    figures.spread(|round| round[&source].p999_us / round[&Source::NextvalThousand].p999_us)
}

fn targets(figures: &Figures) -> Vec<Target> {
    [Source::Growing, Source::Held]
        .into_iter()
        .map(|source| Target {
            what: format!("{}, p99.9 × nextval, CACHE 1000", source.name()),
            seen: ratio(figures, source),
            limit: Limit::AtMost(1.1),
            why: Some(WAITS),
        })
        .collect()
}
