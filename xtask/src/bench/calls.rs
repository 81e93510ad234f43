//! What a call costs its backend in CPU time, without the query around it.

use std::fs;

use anyhow::{Context, Result};
use keywright_testkit::{PgServer, query_i64};
use postgres::Client;

use super::report::{Limit, Section, Table, Target};
use super::rounds::{Round, Rounds, Spread, interleave, median};
use super::server::{Issuer, call};
use super::sizes::Sizes;

/// How often a row calls: the loop around the calls is what varies most, and shared by so many it matters little.
const PER_ROW: u32 = 10;
/// A round is that many slices, in each of which all take their turn: a machine that runs faster for a second does so for all.
const SLICES: u32 = 25;

/// What is counted in the loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Counted {
    /// Constants: the executor does for one what it does for a function, except the call. `count(f())` is three steps
    /// of its compiled expression per row (call f, check for null, count), `count('1'::text)` is the same three with
    /// "load a constant" for "call f"; arguments that are constants are in place before the loop starts. `count(*)`
    /// would lack two of them. Each is another, because equal aggregates are computed once unless they are volatile.
    Nothing,
    Floor,
    Issuer(Issuer),
    /// A tag whose ids do not tell how many there are.
    Hidden,
    Uuid,
    Plpgsql,
}

use Counted::{Floor, Hidden, Nothing, Plpgsql, Uuid};

const COUNTED: [Counted; 9] = [
    Nothing,
    Floor,
    Counted::Issuer(Issuer::Snowflake),
    Counted::Issuer(Issuer::Tag),
    Hidden,
    Counted::Issuer(Issuer::NextvalThousand),
    Counted::Issuer(Issuer::NextvalOne),
    Uuid,
    Plpgsql,
];

impl Counted {
    fn sql(self) -> &'static str {
        match self {
            Nothing => "'x'::text",
            Floor => "trivial()",
            Counted::Issuer(issuer) => issuer.sql(),
            Hidden => "next_biz_id('hidden')",
            Uuid => "gen_random_uuid()",
            Plpgsql => "plpgsql_snowflake()",
        }
    }

    fn name(self) -> &'static str {
        match self {
            Nothing => "the loop itself, per row",
            Floor => "pg_backend_pid(), a trivial C function",
            Counted::Issuer(issuer) => issuer.name(),
            Hidden => "next_biz_id of a tag with hide_bits => 63",
            Uuid => "gen_random_uuid()",
            Plpgsql => "the usual PL/pgSQL snowflake",
        }
    }

    /// Rows of a slice.
    fn rows(self, sizes: Sizes) -> u32 {
        let calls = match self {
            Nothing | Floor | Counted::Issuer(_) | Hidden => sizes.calls,
            Uuid => sizes.calls / 5,
            Plpgsql => sizes.calls_slow,
        };
        calls / SLICES / PER_ROW
    }

    /// The query that calls it from that many rows.
    fn query(self, rows: u32) -> String {
        let counted = (0..PER_ROW).map(|number| match self {
            Nothing => format!("count('{number}'::text)"),
            Floor | Counted::Issuer(_) | Hidden | Uuid | Plpgsql => {
                format!("count({})", self.sql())
            }
        });
        let counted: Vec<_> = counted.collect();
        format!(
            "SELECT {} FROM (SELECT generate_series(1, {rows})) AS series",
            counted.join(", ")
        )
    }
}

/// Nanoseconds per call, of each slice of a round.
type Slices = Vec<f64>;
type Figures = Rounds<(), Round<Counted, Slices>>;

pub(super) fn measure(server: &PgServer, sizes: Sizes) -> Result<Section> {
    let mut client = server.client("postgres")?;
    let pid = query_i64(&mut client, "SELECT pg_backend_pid()::bigint")?;
    client.batch_execute(
        "CREATE FUNCTION trivial() RETURNS integer LANGUAGE internal VOLATILE AS 'pg_backend_pid'",
    )?;
    for counted in COUNTED {
        // Catalogues read, libraries loaded.
        client.query_one(&counted.query(counted.rows(sizes)), &[])?;
    }
    for warm in [Issuer::Tag.sql(), Hidden.sql()] {
        call(&mut client, warm, 2 * sizes.calls)?;
    }
    let figures = interleave(&[()], sizes.rounds, |()| {
        let mut round: Round<Counted, Slices> = COUNTED.map(|counted| (counted, Vec::new())).into();
        for slice in 0..SLICES as usize {
            let order = COUNTED.iter().cycle().skip(slice % COUNTED.len());
            for &counted in order.take(COUNTED.len()) {
                let rows = counted.rows(sizes);
                let before = cpu_ns(pid)?;
                client.query_one(&counted.query(rows), &[])?;
                let ns = (cpu_ns(pid)? - before) / f64::from(rows * PER_ROW);
                round.entry(counted).or_default().push(ns);
            }
        }
        Ok(round)
    })?;
    let step = tag_step(&mut client)?;
    Ok(Section {
        title: "CPU per call",
        text: text(sizes, &step),
        table: table(&figures),
        targets: targets(&figures),
    })
}

/// CPU time that a process has used, nanoseconds, as the kernel's scheduler accounts it.
pub(super) fn cpu_ns(pid: i64) -> Result<f64> {
    let file = format!("/proc/{pid}/schedstat");
    let text = fs::read_to_string(&file).with_context(|| format!("reading {file}"))?;
    let first = text.split_whitespace().next().unwrap_or_default();
    first
        .parse()
        .with_context(|| format!("{file} begins with {first:?}, not with a number"))
}

/// Nanoseconds per call in each slice of a round, without the loop.
fn costs(round: &Round<Counted, Slices>, counted: Counted) -> Slices {
    let (seen, nothing) = (&round[&counted], &round[&Nothing]);
    match counted {
        Nothing => seen.clone(),
        Floor | Counted::Issuer(_) | Hidden | Uuid | Plpgsql => seen
            .iter()
            .zip(nothing)
            .map(|(ns, loop_ns)| ns - loop_ns)
            .collect(),
    }
}

/// The same as a multiple of what nextval costs in the same slice.
fn ratios(round: &Round<Counted, Slices>, counted: Counted) -> Slices {
    let nextval = costs(round, Counted::Issuer(Issuer::NextvalOne));
    let costs = costs(round, counted).into_iter();
    costs
        .zip(nextval)
        .map(|(ns, of_nextval)| ns / of_nextval)
        .collect()
}

fn ratio(figures: &Figures, counted: Counted) -> Spread {
    figures.spread(|round| median(ratios(&round[&()], counted)))
}

fn table(figures: &Figures) -> Table {
    let mut table = Table::new(&[
        "function",
        "ns per call",
        "× nextval, CACHE 1",
        "rounds within",
    ]);
    for counted in COUNTED {
        let ns = figures.spread(|round| median(costs(&round[&()], counted)));
        let (times, within) = match counted {
            Nothing => (String::new(), String::new()),
            Floor | Counted::Issuer(_) | Hidden | Uuid | Plpgsql => {
                let ratio = ratio(figures, counted);
                (ratio.to_string(), format!("± {:.0} %", 100.0 * ratio.off()))
            }
        };
        table.row(vec![
            counted.name().to_owned(),
            format!("{ns:.1}"),
            times,
            within,
        ]);
    }
    table
}

fn targets(figures: &Figures) -> Vec<Target> {
    [
        (Counted::Issuer(Issuer::Snowflake), 0.20),
        (Counted::Issuer(Issuer::Tag), 0.10),
        (Hidden, 0.75),
    ]
    .into_iter()
    .map(|(counted, limit)| Target {
        what: format!("{}, CPU per call × nextval, CACHE 1", counted.name()),
        seen: ratio(figures, counted),
        limit: Limit::AtMost(limit),
        why: None,
    })
    .collect()
}

/// The step the tag has grown to.
fn tag_step(client: &mut Client) -> Result<String> {
    let row = client.query_one(
        "SELECT format('%s after %s refills', step, refills) FROM keywright.stats WHERE tag = 't'",
        &[],
    )?;
    Ok(row.try_get(0)?)
}

fn text(sizes: Sizes, step: &str) -> Vec<String> {
    vec![
        format!(
            "CPU time of the backend (`/proc/<pid>/schedstat`) before and after\n`{}`\n(count(f()) {PER_ROW} times), less that \
             of the same query with {PER_ROW} constants for `f()`, which the executor treats alike but for the call.\nA round is \
             {SLICES} slices; in each all take their turn, and what is compared is compared within a slice. A round's figure is the \
             median of its slices.\nPer round {} calls; gen_random_uuid: {}, PL/pgSQL: {}.",
            "SELECT count(f()), …, count(f()) FROM (SELECT generate_series(1, N)) AS series",
            sizes.calls,
            sizes.calls / 5,
            sizes.calls_slow
        ),
        format!(
            "Tag and connection are warm: the tag's step has grown to {step}; refills during the loops are part of the \
             figure.\nSnowflake ids of such a loop come faster than the layout's 4096 per millisecond and so run ahead of \
             the clock;\n`keywright.lead_ms_max` is an hour here, so that nothing waits."
        ),
        "![CPU per id of each function, with the range of all rounds](plots/calls.svg)".to_owned(),
    ]
}
