//! What published designs promise, asked of this server through SQL.

use anyhow::Result;
use keywright_testkit::PgServer;

use super::pgbench::{Logged, Run, WARM_UP_S};
use super::report::{Limit, Section, Table, Target};
use super::rounds::{Rounds, Spread, interleave};
use super::sizes::Sizes;

/// Calls of a statement that asks for many.
const BATCH: u32 = 1_000;

/// What pgbench takes to connect 200 clients, which it counts as part of a run's time, and starts them late.
const CONNECT_S: u32 = 6;

/// Why fewer ids than asked for may have come.
const AT_RANDOM: &str = "Requests come at random moments, and a run may have too few of them. The row of the constant shows whether the \
    machine keeps up without ids.";

/// Why the last per mille may be slower than wanted.
const FEW_CORES: &str = "The slowest per mille waits for a core among 200 connections, with ids and without. The row of the constant \
    shows for how long.";

/// What is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum What {
    Readable,
    Tag,
    /// A constant where an id would be: what machine, server and client take by themselves.
    Constant,
}

/// How it is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum How {
    /// One id per statement, each client as fast as it can.
    Singly,
    /// A statement's rows bring one each, each client as fast as it can.
    Batched,
    /// So many per statement, at a rate of ids per second of all clients together.
    Paced { ids: u32, per_s: u32 },
}

type Contender = (What, How, u16);

/// Published figures are on one and on 200 threads, or say a rate and its latency.
const CONTENDERS: [Contender; 13] = [
    (What::Readable, How::Singly, 1),
    (What::Readable, How::Singly, 200),
    (What::Readable, How::Batched, 1),
    (What::Readable, How::Batched, 200),
    (What::Tag, How::Singly, 1),
    (What::Tag, How::Singly, 200),
    (What::Tag, How::Batched, 1),
    (What::Tag, How::Batched, 200),
    (What::Tag, SINGLY_TEN_THOUSAND, 200),
    (What::Tag, HALF_A_MILLION, 200),
    (What::Constant, HALF_A_MILLION, 200),
    (What::Tag, A_MILLION, 200),
    (What::Constant, A_MILLION, 200),
];

/// Well below what 200 clients get one by one, so that it shows latencies and not queues.
const SINGLY_TEN_THOUSAND: How = How::Paced {
    ids: 1,
    per_s: 10_000,
};
/// Ten times 50 k/s.
const HALF_A_MILLION: How = How::Paced {
    ids: BATCH,
    per_s: 500_000,
};
/// Ten times 100 k/s.
const A_MILLION: How = How::Paced {
    ids: BATCH,
    per_s: 1_000_000,
};

impl What {
    fn call(self) -> &'static str {
        match self {
            What::Readable => "readable_id('ORD')",
            What::Tag => "next_biz_id('t')",
            What::Constant => "1234567890123456789",
        }
    }

    /// Ids per second that are published for what a row stands beside.
    fn published(self, how: How, clients: u16) -> f64 {
        match (self, clients) {
            (What::Readable, 1) => 7_000.0,
            (What::Readable, _) => 55_000.0,
            (What::Tag | What::Constant, _) if how == A_MILLION => 100_000.0,
            (What::Tag | What::Constant, _) => 50_000.0,
        }
    }
}

impl How {
    fn ids(self) -> u32 {
        match self {
            How::Singly => 1,
            How::Batched => BATCH,
            How::Paced { ids, .. } => ids,
        }
    }

    fn statement(self, what: What) -> String {
        match self.ids() {
            1 => format!("SELECT {}", what.call()),
            ids => format!("SELECT {} FROM generate_series(1, {ids})", what.call()),
        }
    }

    fn rate(self) -> Option<u32> {
        match self {
            How::Singly | How::Batched => None,
            How::Paced { ids, per_s } => Some(per_s / ids),
        }
    }

    fn name(self) -> String {
        let each = match self.ids() {
            1 => "one per statement".to_owned(),
            ids => format!("{ids} per statement"),
        };
        match self {
            How::Singly | How::Batched => each,
            How::Paced { per_s, .. } => format!("{each}, {} k/s asked for", per_s / 1_000),
        }
    }
}

/// Duration of a run.
fn seconds(sizes: Sizes, how: How, clients: u16) -> u32 {
    let connect_s = if clients == 1 { 0 } else { CONNECT_S };
    sizes.latency_s + connect_s + how.rate().map_or(0, |_| WARM_UP_S)
}

type Figures = Rounds<Contender, Logged>;

pub(super) fn measure(server: &PgServer, sizes: Sizes) -> Result<Section> {
    let figures = interleave(&CONTENDERS, sizes.rounds, |(what, how, clients)| {
        let run = Run {
            statement: &how.statement(what),
            clients,
            seconds: seconds(sizes, how, clients),
        };
        run.logged(server, how.rate())
    })?;
    Ok(Section {
        title: "Beside published figures",
        text: vec![
            format!(
                "`pgbench --no-vacuum --protocol=prepared --client=C --jobs=C --time={}|{}|{} --log [--rate=R] --file=…`: every id goes to \
                 its client.\nOne per statement is `SELECT f()`, {BATCH} per statement `SELECT f() FROM generate_series(1, {BATCH})`; \
                 latencies are of statements.\nClients that are as fast as they can wait for each other, so 200 of them show the \
                 server's throughput, and a latency of 200 queues.\nWhere a rate is asked for, statements are due at random moments \
                 and their time counts from then on;\nlatencies leave out the first {WARM_UP_S} s, in which connections fill their caches. \
                 A constant in an id's place shows what machine, server and client take by themselves.",
                seconds(sizes, How::Singly, 1),
                seconds(sizes, How::Singly, 200),
                seconds(sizes, A_MILLION, 200)
            ),
            "Published: readable ids 7 k/s on 1 thread and 55 k/s on 200; segments 50 k/s with p99.9 1 ms, and 100 k/s with p99.9 5 ms."
                .to_owned(),
        ],
        table: table(&figures),
        targets: targets(&figures),
    })
}

fn ids_per_s(figures: &Figures, contender: Contender) -> Spread {
    let (_, how, _) = contender;
    figures.spread(|round| round[&contender].tps * f64::from(how.ids()))
}

fn latency_us(figures: &Figures, contender: Contender, part: f64) -> Spread {
    figures.spread(|round| round[&contender].percentile(part))
}

fn table(figures: &Figures) -> Table {
    let mut table = Table::new(&[
        "ids, and how",
        "connections",
        "thousand ids/s",
        "× published",
        "p50 µs",
        "p99 µs",
        "p99.9 µs",
    ]);
    for contender in CONTENDERS {
        let (what, how, clients) = contender;
        let rate = figures.spread(|round| round[&contender].tps * f64::from(how.ids()) / 1_000.0);
        let published = what.published(how, clients);
        table.row(vec![
            format!("{}, {}", what.call(), how.name()),
            clients.to_string(),
            format!("{rate:.1}"),
            format!("{:.1}", ids_per_s(figures, contender).median / published),
            latency_us(figures, contender, 0.50).short(0),
            format!("{:.0}", latency_us(figures, contender, 0.99)),
            format!("{:.0}", latency_us(figures, contender, 0.999)),
        ]);
    }
    table
}

/// Ten times what is published, from statements that ask for many.
fn targets(figures: &Figures) -> Vec<Target> {
    let throughput = |contender: Contender, wanted: f64| {
        let (what, how, clients) = contender;
        Target {
            what: format!(
                "{}, {}, connections: {clients}, thousand ids/s",
                what.call(),
                how.name()
            ),
            seen: figures.spread(|round| round[&contender].tps * f64::from(how.ids()) / 1_000.0),
            limit: Limit::AtLeast(wanted),
            why: how.rate().map(|_| AT_RANDOM),
        }
    };
    // What a statement waits for on a machine with few cores is the scheduler, with or without ids.
    let latency = |how: How| Target {
        what: format!("{}, {}, p99.9 × a constant's", What::Tag.call(), how.name()),
        seen: figures.spread(|round| {
            let of = |what| round[&(what, how, 200)].percentile(0.999);
            of(What::Tag) / of(What::Constant)
        }),
        limit: Limit::AtMost(1.5),
        why: Some(FEW_CORES),
    };
    let (fifty, hundred) = (
        (What::Tag, HALF_A_MILLION, 200),
        (What::Tag, A_MILLION, 200),
    );
    vec![
        throughput((What::Readable, How::Batched, 1), 70.0),
        throughput((What::Readable, How::Batched, 200), 550.0),
        throughput((What::Tag, How::Batched, 1), 500.0),
        throughput((What::Tag, How::Batched, 200), 1_000.0),
        // Requests come at random: a run has a few too many or too few.
        throughput(fifty, 490.0),
        throughput(hundred, 980.0),
        latency(HALF_A_MILLION),
        latency(A_MILLION),
    ]
}
