//! Ids per second that several connections make together when they do nothing else.

use std::sync::Barrier;
use std::thread;
use std::time::Instant;

use anyhow::{Context, Result, anyhow};
use keywright_testkit::PgServer;
use postgres::Client;

use super::report::{Limit, Section, Table, Target};
use super::rounds::{Rounds, interleave};
use super::server::{Issuer, call, loop_sql};
use super::sizes::Sizes;

/// How many connections; the last figure has a target.
const CONNECTIONS: [usize; 3] = [1, 2, 8];

type Contender = (usize, Issuer);

pub(super) fn measure(server: &PgServer, sizes: Sizes) -> Result<Section> {
    let most = CONNECTIONS.into_iter().max().unwrap_or(1);
    let mut clients = Vec::new();
    for _ in 0..most {
        let mut client = server.client("postgres")?;
        for issuer in Issuer::ALL {
            call(&mut client, issuer.sql(), 1_000)?;
        }
        clients.push(client);
    }
    let contenders: Vec<Contender> = CONNECTIONS
        .into_iter()
        .flat_map(|connections| Issuer::ALL.map(|issuer| (connections, issuer)))
        .collect();
    let figures = interleave(&contenders, sizes.rounds, |(connections, issuer)| {
        let clients = clients
            .get_mut(..connections)
            .context("fewer connections than asked for")?;
        ids_per_s(clients, issuer, sizes.ids_together)
    })?;
    Ok(Section {
        title: "Ids per second, generation alone",
        text: text(sizes),
        table: table(&figures),
        targets: targets(&figures),
    })
}

/// Lets all of them start at once and divides by the time until the last one is done.
fn ids_per_s(clients: &mut [Client], issuer: Issuer, ids: u32) -> Result<f64> {
    let share = ids / u32::try_from(clients.len())?;
    let start = Barrier::new(clients.len() + 1);
    thread::scope(|scope| {
        let threads: Vec<_> = clients
            .iter_mut()
            .map(|client| {
                let start = &start;
                scope.spawn(move || {
                    start.wait();
                    call(client, issuer.sql(), share)
                })
            })
            .collect();
        start.wait();
        let started = Instant::now();
        let count = u32::try_from(threads.len())?;
        for thread in threads {
            let done = thread.join();
            done.map_err(|_| anyhow!("a client's thread panicked"))??;
        }
        Ok(f64::from(share * count) / started.elapsed().as_secs_f64())
    })
}

fn table(figures: &Rounds<Contender, f64>) -> Table {
    let mut table = Table::new(&[
        "million ids/s",
        "1 connection",
        "2 connections",
        "8 connections",
        "8: × nextval, CACHE 1",
        "8: × nextval, CACHE 1000",
    ]);
    for issuer in Issuer::ALL {
        let mut cells = vec![issuer.name().to_owned()];
        for connections in CONNECTIONS {
            let rate = figures.spread(|round| round[&(connections, issuer)] / 1e6);
            cells.push(format!("{rate:.2}"));
        }
        for against in [Issuer::NextvalOne, Issuer::NextvalThousand] {
            cells.push(
                figures
                    .spread(|r| r[&(8, issuer)] / r[&(8, against)])
                    .short(2),
            );
        }
        table.row(cells);
    }
    table
}

fn targets(figures: &Rounds<Contender, f64>) -> Vec<Target> {
    [Issuer::Snowflake, Issuer::Tag]
        .into_iter()
        .map(|issuer| Target {
            what: format!(
                "{}, 8 connections together × nextval, CACHE 1",
                issuer.name()
            ),
            seen: figures.spread(|round| round[&(8, issuer)] / round[&(8, Issuer::NextvalOne)]),
            limit: Limit::AtLeast(2.0),
            why: None,
        })
        .collect()
}

fn text(sizes: Sizes) -> Vec<String> {
    vec![
        format!(
            "Every connection runs\n`{}`,\nN = {} divided by the number of connections; wall time from the common start to \
             the last end. The loop around\nthe calls is part of it.",
            loop_sql("f()", 0).replace("(1, 0)", "(1, N)"),
            sizes.ids_together
        ),
        "These are bursts. A worker with layout `twitter` has 4.096 million snowflake ids per second; what is faster runs \
         ahead of\nthe clock, by at most `keywright.lead_ms_max` (an hour here, so that nothing waits; 10 s by default)."
            .to_owned(),
        "![Ids per second over 8 connections](plots/generation.svg)".to_owned(),
    ]
}
