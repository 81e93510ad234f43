//! Lets things happen, one after the other, while others draw.

use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use postgres::Client;

use super::counts::{Counts, Report};
use super::drawer;
use super::event::Event;
use super::session::{DRAWER, Session, Way};
use super::world::{Kind, Place, Role, World};
use crate::{PgServer, Replication, Stop, WAIT_MAX, query_i64, wait_until};

/// How many draw at the same time.
const DRAWERS: u64 = 6;
/// What comes between two events at least.
const IDS_BETWEEN: u64 = 50_000;
/// How often the server or a backend is killed at least, however short a soak is.
const CRASHES_MIN: u32 = 4;
/// The longest that a database may issue nothing.
const DRY_MAX: Duration = Duration::from_secs(150);
/// Worker ids that databases give each other.
pub(super) const POOL: u32 = 30;

/// The server, those who draw, and what happens.
pub(super) struct Conductor {
    pub(super) server: PgServer,
    pub(super) world: Arc<World>,
    pub(super) random: fastrand::Rng,
    pub(super) counts: Counts,
    /// The clock is that many seconds off.
    pub(super) offset_s: i64,
    /// The next worker id that nobody ever had.
    fresh: u32,
    /// Databases made so far.
    pub(super) made: u32,
    seed: u64,
    began: Instant,
    drawers: Vec<JoinHandle<()>>,
}

impl Conductor {
    /// A server with databases of each role, and those who draw from them.
    ///
    /// # Errors
    /// The server does not start, or refuses.
    pub(super) fn begin(seed: u64) -> Result<Conductor> {
        let server = PgServer::builder()
            .fake_clock()
            .setting("keywright.bound_window_ms", "200")
            .setting("keywright.lead_ms_max", "500")
            .setting("max_prepared_transactions", "10")
            .setting("max_connections", "60")
            // Refusals are counted here; in the log they would only fill the disk.
            .setting("log_min_messages", "log")
            .setting("autovacuum", "off")
            .start()?;
        let world = Arc::new(World::new(server.config("postgres", "postgres")));
        let mut conductor = Conductor {
            server,
            world,
            random: fastrand::Rng::with_seed(seed),
            counts: Counts::default(),
            offset_s: 0,
            fresh: 2 * POOL,
            made: 0,
            seed,
            began: Instant::now(),
            drawers: Vec::new(),
        };
        for role in [
            Role::Lasting,
            Role::Lasting,
            Role::Reborn,
            Role::Reborn,
            Role::Bent,
        ] {
            conductor.make_place(role)?;
        }
        conductor.drawers = (0..DRAWERS)
            .map(|number| drawer::start(&conductor.world, seed.wrapping_add(number)))
            .collect();
        Ok(conductor)
    }

    /// Lets things happen for so long, and until there were crashes enough; then sums up.
    ///
    /// # Errors
    /// An id was seen twice, something failed that must not, or ids stopped coming.
    pub(super) fn conduct(mut self, length: Duration) -> Result<Report> {
        // Making the server and its databases is not part of it.
        self.began = Instant::now();
        let mut done = Ok(());
        let mut number = 0_u32;
        while done.is_ok() && self.began.elapsed() < length {
            number += 1;
            let event = Event::draw(&mut self.random);
            done = self.next(number, event);
        }
        // How many events fit, and which they are, is chance: a slow machine and a mild seed have few crashes.
        while done.is_ok() && self.counts.crashes < CRASHES_MIN {
            number += 1;
            done = self.next(number, Event::KillServer(None));
        }
        self.world.findings.stop();
        for drawer in self.drawers.drain(..) {
            if drawer.join().is_err() {
                done = done.and(Err(anyhow::anyhow!("a drawing thread panicked")));
            }
        }
        let seed = self.seed;
        if let Some(repeated) = self.world.findings.ledger.repeated() {
            bail!("seed {seed}: {repeated}");
        }
        if let Some(fault) = self.world.findings.first_fault() {
            bail!("seed {seed}, event {number}: {fault}");
        }
        done.with_context(|| format!("seed {seed}, event {number}"))?;
        if self.server.log_contains("PANIC")? {
            bail!("seed {seed}: the server's log has a PANIC");
        }
        Ok(Report {
            seed,
            took: self.began.elapsed(),
            ids: self.world.findings.ledger.ids(),
            runs: self.world.findings.ledger.runs(),
            counts: self.counts.clone(),
            refusals: self.world.findings.refusals().into_iter().collect(),
        })
    }

    fn next(&mut self, number: u32, event: Event) -> Result<()> {
        let at = self.began.elapsed().as_secs_f64();
        self.says(format!("{number} at {at:.1} s: {event:?}"));
        self.happens(event)?;
        let pause = Duration::from_millis(self.random.u64(100..700));
        thread::sleep(pause);
        self.wait_for_ids(IDS_BETWEEN)
    }

    /// Notes it, for whoever looks, and for the report of a duplicate.
    pub(super) fn says(&self, what: String) {
        eprintln!("    {what}");
        self.world.findings.ledger.event(what);
    }

    fn happens(&mut self, event: Event) -> Result<()> {
        match event {
            Event::KillServer(clock) => {
                self.server.kill9()?;
                self.crashed(clock)
            }
            Event::StopImmediate(clock) => {
                self.server.stop(Stop::Immediate)?;
                self.crashed(clock)
            }
            Event::StopFast(clock) => {
                self.server.stop(Stop::Fast)?;
                self.starts(clock)
            }
            Event::KillBackend => self.kill_backend(),
            Event::Clock(offset_s) => self.step_clock(offset_s),
            Event::Pause(offset_s) => {
                self.server.pause()?;
                self.step_clock(offset_s)?;
                // Longer than the durable window.
                thread::sleep(Duration::from_millis(400));
                self.server.resume()
            }
            Event::Cancel => self.interrupt("pg_cancel_backend"),
            Event::Terminate => self.interrupt("pg_terminate_backend"),
            Event::Identity(change, ending) => self.changes_identity(change, ending),
            Event::DropDatabase(how) => self.drops_database(how),
            Event::CopyTemplate => self.copies_by_template(),
            Event::CopyDump => self.copies_by_dump(),
            Event::Promote(clock) => self.promotes(clock),
        }
    }

    pub(super) fn step_clock(&mut self, offset_s: i64) -> Result<()> {
        self.counts.clock_steps += 1;
        self.offset_s = offset_s;
        self.server.clock()?.step_to(offset_s)
    }

    /// The server is gone without having said so; it comes back.
    pub(super) fn crashed(&mut self, clock: Option<i64>) -> Result<()> {
        self.counts.crashes += 1;
        self.starts(clock)
    }

    fn starts(&mut self, clock: Option<i64>) -> Result<()> {
        if let Some(offset_s) = clock {
            self.step_clock(offset_s)?;
        }
        self.server.start()?;
        self.moved();
        Ok(())
    }

    /// The server may be elsewhere now.
    fn moved(&self) {
        self.world
            .set_config(self.server.config("postgres", "postgres"));
    }

    fn kill_backend(&mut self) -> Result<()> {
        let victim = format!(
            "SELECT pid::bigint FROM pg_stat_activity WHERE application_name = '{DRAWER}' AND state = 'active' LIMIT 1"
        );
        let found = self.admin()?.query_opt(victim.as_str(), &[])?;
        let Some(row) = found else { return Ok(()) };
        self.counts.crashes += 1;
        self.server
            .kill9_backend(i32::try_from(row.try_get::<_, i64>(0)?)?)
    }

    fn interrupt(&mut self, function: &str) -> Result<()> {
        let some = format!(
            "SELECT count({function}(pid)) FROM (SELECT pid FROM pg_stat_activity \
             WHERE application_name = '{DRAWER}' ORDER BY random() LIMIT 4) AS few"
        );
        let times = query_i64(&mut self.admin()?, &some)?;
        self.counts.interrupts += u32::try_from(times)?;
        Ok(())
    }

    fn promotes(&mut self, clock: Option<i64>) -> Result<()> {
        let name = format!("standby_{}", self.counts.promotions);
        let standby = self.server.standby(&name, Replication::Synchronous)?;
        let offset_s = clock.unwrap_or(self.offset_s);
        standby.clock()?.step_to(offset_s)?;
        self.wait_for_ids(IDS_BETWEEN)?;
        thread::sleep(Duration::from_millis(self.random.u64(0..1_000)));
        self.server.kill9()?;
        self.offset_s = offset_s;
        self.counts.crashes += 1;
        self.counts.promotions += 1;
        standby.promote()?;
        self.server = standby;
        self.moved();
        Ok(())
    }

    /// Waits until that many more ids have come.
    pub(super) fn wait_for_ids(&self, ids: u64) -> Result<()> {
        let goal = self.world.findings.ledger.ids() + ids;
        let enough = || {
            if self.world.findings.ledger.repeated().is_some() || self.world.findings.stopped() {
                bail!("the soak is over");
            }
            Ok(self.world.findings.ledger.ids() >= goal)
        };
        wait_until("ids", WAIT_MAX, enough)
            .with_context(|| format!("refused so far: {:?}", self.world.findings.refusals()))?;
        let dry = |place: &&Arc<Place>| place.is_open() && place.dry_for() > DRY_MAX;
        match self.world.places().iter().find(dry) {
            Some(place) => bail!("{} has issued nothing for {DRY_MAX:?}", place.name),
            None => Ok(()),
        }
    }

    /// Lets most of them draw in one database for a while.
    pub(super) fn focus_for(&self, place: &Arc<Place>, while_: Duration) {
        self.world.focus_on(Some(place));
        thread::sleep(while_);
    }

    /// A session for what is done to databases.
    pub(super) fn admin(&self) -> Result<Client> {
        self.server.client("postgres")
    }

    /// One of the databases with one of these roles.
    pub(super) fn a_place(&mut self, roles: &[Role]) -> Option<Arc<Place>> {
        let mut places = self.world.places();
        places.retain(|place| place.is_open() && roles.contains(&place.role));
        self.random.choice(places)
    }

    /// A worker id that nobody ever had.
    pub(super) fn fresh_worker(&mut self) -> Result<u32> {
        self.fresh += 1;
        // Twitter's layout has 1024.
        if self.fresh > 1_023 {
            bail!("all worker ids are used up");
        }
        Ok(self.fresh)
    }

    /// A session of our own in that database.
    pub(super) fn session(&self, place: &Arc<Place>) -> Result<Session> {
        Session::connect(&self.world, place, "conductor")
    }

    /// A few of each kind, where a refusal is fine.
    pub(super) fn draw_some(&self, session: &mut Session, tag: &str) -> Result<()> {
        session.try_draw(Kind::Snowflake, tag, Way::Batches(10, 4_096))?;
        session.try_draw(Kind::Tag, tag, Way::Batches(1, 2_000))?;
        session.try_draw(Kind::Snowflake, tag, Way::Singles(20))?;
        session.try_draw(Kind::Readable, tag, Way::Singles(20))
    }
}
