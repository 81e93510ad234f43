//! What a call costs its backend in CPU time, without the query around it.

use std::fs;

use anyhow::{Context, Result};
use keywright_tests::{PgServer, query_i64};
use postgres::Client;

use super::Sizes;
use super::report::{Limit, Section, Table, Target};
use super::rounds::{Round, Rounds, interleave};
use super::server::{Issuer, call, loop_sql};

/// What is counted in the loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Counted {
    /// A constant: the executor does for it what it does for a function, except the call. `count(f())` is three steps
    /// of its compiled expression per row (call f, check for null, count), `count('x'::text)` is the same three with
    /// "load a constant" for "call f"; arguments that are constants are in place before the loop starts. `count(*)`
    /// would lack two of them.
    Nothing,
    Floor,
    Issuer(Issuer),
    Uuid,
    Plpgsql,
}

use Counted::{Floor, Nothing, Plpgsql, Uuid};

const COUNTED: [Counted; 8] = [
    Nothing,
    Floor,
    Counted::Issuer(Issuer::Snowflake),
    Counted::Issuer(Issuer::Tag),
    Counted::Issuer(Issuer::NextvalThousand),
    Counted::Issuer(Issuer::NextvalOne),
    Uuid,
    Plpgsql,
];

impl Counted {
    fn sql(self) -> &'static str {
        match self {
            Nothing => "'x'::text",
            Floor => "pg_backend_pid()",
            Counted::Issuer(issuer) => issuer.sql(),
            Uuid => "gen_random_uuid()",
            Plpgsql => "plpgsql_snowflake()",
        }
    }

    fn name(self) -> &'static str {
        match self {
            Nothing => "the loop itself, per row",
            Floor => "pg_backend_pid(), a trivial C function",
            Counted::Issuer(issuer) => issuer.name(),
            Uuid => "gen_random_uuid()",
            Plpgsql => "the usual PL/pgSQL snowflake",
        }
    }

    fn times(self, sizes: Sizes) -> u32 {
        match self {
            Nothing | Floor | Counted::Issuer(_) | Uuid => sizes.calls,
            Plpgsql => sizes.calls_slow,
        }
    }
}

type Figures = Rounds<Counted, f64>;

pub(super) fn measure(server: &PgServer, sizes: Sizes) -> Result<Section> {
    let mut client = server.client("postgres")?;
    let pid = query_i64(&mut client, "SELECT pg_backend_pid()::bigint")?;
    for counted in COUNTED {
        // Catalogues read, libraries loaded.
        call(&mut client, counted.sql(), counted.times(sizes) / 10)?;
    }
    let figures = interleave(&COUNTED, sizes.rounds, |counted| {
        let times = counted.times(sizes);
        let before = cpu_ns(pid)?;
        call(&mut client, counted.sql(), times)?;
        Ok((cpu_ns(pid)? - before) / f64::from(times))
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
fn cpu_ns(pid: i64) -> Result<f64> {
    let file = format!("/proc/{pid}/schedstat");
    let text = fs::read_to_string(&file).with_context(|| format!("reading {file}"))?;
    let first = text.split_whitespace().next().unwrap_or_default();
    first
        .parse()
        .with_context(|| format!("{file} begins with {first:?}, not with a number"))
}

/// Nanoseconds per call in one round, without the loop.
fn cost(round: &Round<Counted, f64>, counted: Counted) -> f64 {
    match counted {
        Nothing => round[&Nothing],
        Floor | Counted::Issuer(_) | Uuid | Plpgsql => round[&counted] - round[&Nothing],
    }
}

/// The same as a multiple of what nextval costs.
fn ratio(round: &Round<Counted, f64>, counted: Counted) -> f64 {
    cost(round, counted) / cost(round, Counted::Issuer(Issuer::NextvalOne))
}

fn table(figures: &Figures) -> Table {
    let mut table = Table::new(&["function", "ns per call", "× nextval, CACHE 1"]);
    for counted in COUNTED {
        let ns = figures.spread(|round| cost(round, counted));
        let times = match counted {
            Nothing => String::new(),
            Floor | Counted::Issuer(_) | Uuid | Plpgsql => {
                figures.spread(|round| ratio(round, counted)).to_string()
            }
        };
        table.row(vec![counted.name().to_owned(), format!("{ns:.1}"), times]);
    }
    table
}

fn targets(figures: &Figures) -> Vec<Target> {
    [(Issuer::Snowflake, 0.20), (Issuer::Tag, 0.25)]
        .into_iter()
        .map(|(issuer, limit)| Target {
            what: format!("{}, CPU per call × nextval, CACHE 1", issuer.name()),
            seen: figures.spread(|round| ratio(round, Counted::Issuer(issuer))),
            limit: Limit::AtMost(limit),
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
            "CPU time of the backend (`/proc/<pid>/schedstat`) before and after\n`{}`,\nless that of the same query with \
             `'x'::text` for `f()`, which the executor treats alike but for the call.\nPL/pgSQL: {} calls.",
            loop_sql("f()", sizes.calls),
            sizes.calls_slow
        ),
        format!(
            "Tag and connection are warm: the tag's step has grown to {step}; refills during the loops are part of the \
             figure.\nSnowflake ids of such a loop come faster than the layout's 4096 per millisecond and so run ahead of \
             the clock;\n`keywright.lead_ms_max` is an hour here, so that nothing waits."
        ),
    ]
}
