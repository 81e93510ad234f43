//! Single-row inserts whose key is a DEFAULT, against `bigserial`.

use anyhow::Result;
use keywright_testkit::PgServer;

use super::pgbench::Run;
use super::report::{Limit, Section, Table, Target};
use super::rounds::{Rounds, interleave};
use super::sizes::Sizes;

const CLIENTS: [u16; 3] = [1, 8, 32];
/// Rounds of this part for one of the others.
const ROUNDS_FACTOR: u16 = 6;

/// Why inserts may be slower than wanted.
const DISK: &str = "An insert waits for the disk at its commit, and that wait varies by more than the two hundredths that are asked for. \
    The call that makes the key takes less CPU than `nextval`, which `bigserial` calls.";

/// Where the key comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Key {
    Bigserial,
    Snowflake,
    Tag,
}

impl Key {
    const ALL: [Key; 3] = [Key::Bigserial, Key::Snowflake, Key::Tag];

    fn table(self) -> &'static str {
        match self {
            Key::Bigserial => "t_bigserial",
            Key::Snowflake => "t_snowflake",
            Key::Tag => "t_tag",
        }
    }

    fn column(self) -> &'static str {
        match self {
            Key::Bigserial => "bigserial",
            Key::Snowflake => "bigint DEFAULT snowflake_id()",
            Key::Tag => "bigint DEFAULT next_biz_id('t')",
        }
    }
}

type Contender = (u16, Key);

pub(super) fn measure(server: &PgServer, sizes: Sizes) -> Result<Section> {
    let mut client = server.client("postgres")?;
    for key in Key::ALL {
        client.batch_execute(&format!(
            "CREATE TABLE {} (id {} PRIMARY KEY, body text)",
            key.table(),
            key.column()
        ))?;
    }
    let contenders: Vec<Contender> = CLIENTS
        .into_iter()
        .flat_map(|clients| Key::ALL.map(|key| (clients, key)))
        .collect();
    let figures = interleave(
        &contenders,
        ROUNDS_FACTOR * sizes.rounds,
        |(clients, key)| {
            // Everybody begins with an empty index and a log that is written out.
            client.batch_execute(&format!("TRUNCATE {}", key.table()))?;
            client.batch_execute("CHECKPOINT")?;
            let run = Run {
                statement: &format!("INSERT INTO {} (body) VALUES ('x')", key.table()),
                clients,
                seconds: sizes.insert_s,
            };
            run.tps(server)
        },
    )?;
    Ok(Section {
        title: "Inserts of single rows",
        text: vec![
            format!(
                "`pgbench --no-vacuum --protocol=prepared --client=C --jobs=J --time={} --file=…`, J the smaller of C and the \
             cores, with\n`INSERT INTO t (body) VALUES ('x')` into `t (id … PRIMARY KEY, body text)`, emptied before each \
             run. Every insert is a\ntransaction that waits for the disk: fsync and synchronous_commit are on.\n\
             {ROUNDS_FACTOR} times as many rounds as elsewhere: what is compared is a hundredth, and the disk varies by more.",
                sizes.insert_s
            ),
            "![Inserts per second beside those with bigserial](plots/inserts.svg)".to_owned(),
        ],
        table: table(&figures),
        targets: targets(&figures),
    })
}

fn table(figures: &Rounds<Contender, f64>) -> Table {
    let mut table = Table::new(&["clients, key", "inserts/s", "× bigserial"]);
    for clients in CLIENTS {
        for key in Key::ALL {
            let rate = figures.spread(|round| round[&(clients, key)]);
            let ratio = figures.spread(|r| r[&(clients, key)] / r[&(clients, Key::Bigserial)]);
            table.row(vec![
                format!("{clients:>2}, {}", key.column()),
                format!("{rate:.0}"),
                ratio.to_string(),
            ]);
        }
    }
    table
}

fn targets(figures: &Rounds<Contender, f64>) -> Vec<Target> {
    let mut targets = Vec::new();
    for key in [Key::Snowflake, Key::Tag] {
        for clients in CLIENTS {
            targets.push(Target {
                what: format!("{}, inserts × bigserial, clients: {clients}", key.column()),
                seen: figures.spread(|r| r[&(clients, key)] / r[&(clients, Key::Bigserial)]),
                limit: Limit::AtLeast(0.98),
                why: Some(DISK),
            });
        }
    }
    targets
}
