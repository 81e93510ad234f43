//! Crashes, clock steps, pauses and changes of identity in an order drawn from a seed, under load: what single tests
//! do one at a time. `KEYWRIGHT_SEED` replays a storm, as far as timing lets it.

use std::sync::Arc;
use std::time::Duration;

use keywright_testkit::{
    IdLog, Load, PgServer, Result, Stop, copy_ids, expect_sql_error, query_i64,
};
use postgres::Client;

const STEPS: usize = 40;
/// Times and sequences of readable ids as numbers; their other parts do not make them unique.
const QUERIES: [&str; 3] = [
    "SELECT snowflake_id() FROM generate_series(1, 200)",
    "SELECT next_biz_id('orders') FROM generate_series(1, 200)",
    "SELECT ((extract(epoch FROM d.issued_at) * 1000)::bigint << 18) + d.sequence \
     FROM generate_series(1, 200) n, readable_decode(readable_id('B' || n)) d",
];

/// What happens next.
#[derive(Debug, Clone, Copy)]
enum Event {
    Kill,
    KillBackend,
    Restart(Stop),
    Clock(i64),
    Pause(i64),
    Layout(&'static str),
    WorkerId(u32),
    Tag,
    RolledBack,
}

impl Event {
    fn draw(random: &mut fastrand::Rng) -> Event {
        // Within a day, so that the clock comes back to moments it has seen.
        let offset_s = [-86_400, -3_600, -60, -2, -1, 0, 0, 1, 2, 60, 3_600, 86_400];
        let offset_s = random.choice(offset_s).unwrap_or(0);
        // One epoch and as many bits below the time, so that each may follow the other.
        let layouts = [
            "twitter",
            "leaf",
            "time=41,sequence=12,worker=10,epoch=1288834974657",
        ];
        match random.u32(0..12) {
            0 | 1 => Event::Kill,
            2 => Event::KillBackend,
            3 => Event::Restart(
                random
                    .choice([Stop::Fast, Stop::Immediate])
                    .unwrap_or(Stop::Fast),
            ),
            4..=6 => Event::Clock(offset_s),
            7 => Event::Pause(offset_s),
            8 => Event::Layout(random.choice(layouts).unwrap_or("twitter")),
            9 => Event::WorkerId(random.u32(1..4)),
            10 => Event::Tag,
            _ => Event::RolledBack,
        }
    }
}

struct Storm {
    server: PgServer,
    logs: [Arc<IdLog>; 3],
    loads: Vec<Load>,
}

impl Storm {
    fn begin() -> Result<Storm> {
        let server = PgServer::builder()
            .fake_clock()
            .setting("keywright.bound_window_ms", "100")
            .setting("keywright.lead_ms_max", "300")
            .start()?;
        server.client("postgres")?.batch_execute(
            "CREATE EXTENSION keywright; \
             SELECT keywright.set_worker_id(1); \
             SELECT keywright.create_tag('orders', step => 30, step_max => 300)",
        )?;
        let mut storm = Storm {
            server,
            logs: Default::default(),
            loads: Vec::new(),
        };
        storm.load();
        Ok(storm)
    }

    fn load(&mut self) {
        let config = self.server.config("postgres", "postgres");
        let kinds = QUERIES.iter().zip(&self.logs);
        self.loads = kinds
            .map(|(query, log)| Load::start(&config, 2, query, log))
            .collect();
    }

    /// Ends the load, which must have been refused nothing but a tag that was away for a moment.
    fn calm(&mut self) -> Result<()> {
        for load in self.loads.drain(..) {
            let refusals = load.stop()?;
            assert!(
                refusals.keys().all(|state| state == "42704"),
                "{refusals:?}"
            );
        }
        Ok(())
    }

    fn happens(&mut self, event: Event, random: &mut fastrand::Rng) -> Result<()> {
        match event {
            Event::Kill => {
                self.server.kill9()?;
                self.goes_on(random)?;
            }
            Event::Restart(how) => {
                self.server.stop(how)?;
                self.goes_on(random)?;
            }
            Event::KillBackend => {
                let sql =
                    "SELECT pid::bigint FROM pg_stat_activity WHERE query LIKE 'COPY%' LIMIT 1";
                let pid = query_i64(&mut self.client()?, sql)?;
                self.server.kill9_backend(i32::try_from(pid)?)?;
            }
            Event::Clock(offset_s) => self.server.clock()?.step_to(offset_s)?,
            Event::Pause(offset_s) => {
                self.server.pause()?;
                self.server.clock()?.step_to(offset_s)?;
                // Longer than the durable window.
                std::thread::sleep(Duration::from_millis(200));
                self.server.resume()?;
            }
            Event::Layout(layout) => {
                self.run(&format!("SELECT keywright.set_layout('{layout}')"))?
            }
            Event::WorkerId(id) => self.run(&format!("SELECT keywright.set_worker_id({id})"))?,
            Event::Tag => {
                self.run("SELECT keywright.drop_tag('orders')")?;
                self.run("SELECT keywright.create_tag('orders', step => 60, step_max => 600)")?;
            }
            Event::RolledBack => {
                let mut client = self.client()?;
                client.batch_execute("BEGIN")?;
                self.draw(&mut client)?;
                client.batch_execute("SELECT keywright.set_worker_id(9)")?;
                let taken = query_i64(&mut client, "SELECT snowflake_id()");
                expect_sql_error(taken, "55000", "has not committed");
                client.batch_execute("ROLLBACK")?;
                self.draw(&mut client)?;
            }
        }
        self.loads.iter().try_for_each(|load| load.wait_for(400))
    }

    /// The next life, half of the time with another clock.
    fn goes_on(&mut self, random: &mut fastrand::Rng) -> Result<()> {
        self.calm()?;
        if random.bool() {
            let offset_s = random.i64(-5..=5);
            self.server.clock()?.step_to(offset_s)?;
        }
        self.server.start()?;
        self.load();
        Ok(())
    }

    fn client(&self) -> Result<Client> {
        self.server.client("postgres")
    }

    fn run(&self, sql: &str) -> Result<()> {
        Ok(self.client()?.batch_execute(sql)?)
    }

    /// One session draws once of each kind.
    fn draw(&self, client: &mut Client) -> Result<()> {
        for (query, log) in QUERIES.iter().zip(&self.logs) {
            let mut run = Vec::new();
            copy_ids(client, query, &mut run)?;
            log.record(run);
        }
        Ok(())
    }
}

#[test]
fn no_id_twice_in_a_storm() -> Result<()> {
    let seed = match std::env::var("KEYWRIGHT_SEED") {
        Ok(seed) => seed.parse()?,
        Err(_) => fastrand::u64(..),
    };
    println!("KEYWRIGHT_SEED={seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    let mut storm = Storm::begin()?;
    for step in 0..STEPS {
        let event = Event::draw(&mut random);
        println!("{step}: {event:?}");
        storm.happens(event, &mut random)?;
        for log in &storm.logs {
            log.check()?;
        }
    }
    storm.calm()?;
    for (log, kind) in storm.logs.iter().zip(["snowflake", "tag", "readable"]) {
        println!("{} {kind} ids, all distinct", log.check()?.count);
    }
    assert!(!storm.server.log_contains("PANIC")?);
    Ok(())
}
