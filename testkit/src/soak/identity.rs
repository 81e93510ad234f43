//! Transactions that change who a database is, and how they end.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};

use super::conductor::{Conductor, POOL};
use super::event::{Change, Ending};
use super::session::Session;
use super::world::{Place, Role, TWITTER_EPOCH_MS};

/// What a change says, and what is so when it is committed.
struct Planned {
    /// One statement each.
    sql: Vec<String>,
    tag: String,
    worker: u32,
    epoch_ms: i64,
    zone: i16,
}

/// The zones furthest from UTC, in minutes.
const ZONE_MAX: i16 = 14 * 60;
/// The name of prepared transactions.
const GID: &str = "soak";

impl Conductor {
    /// One transaction changes something of one database, draws, and ends as told.
    ///
    /// # Errors
    /// What is no refusal.
    pub(super) fn changes_identity(&mut self, change: Change, ending: Ending) -> Result<()> {
        let any = [Role::Lasting, Role::Reborn, Role::Bent];
        let roles: Vec<Role> = any
            .into_iter()
            .filter(|role| !ending.commits() || change.may_commit(*role))
            .collect();
        let Some(place) = self.a_place(&roles) else {
            return Ok(());
        };
        self.world.focus_on(Some(&place));
        let planned = self.plan(&place, change)?;
        let what = planned.sql.join("; ");
        self.says(format!("  in {}: {what}; {ending:?}", place.name));
        let mut session = self.session(&place)?;
        let begun = self.begins(&mut session, &planned, ending);
        if let Err(error) = begun {
            session.refused(error)?;
            self.counts.refused += 1;
            return Ok(());
        }
        if self.ends(&place, session, ending)? {
            self.counts.commits += 1;
            place.set_tag(&planned.tag);
            place.set_worker(planned.worker);
            place.set_epoch_ms(planned.epoch_ms);
            place.set_zone(planned.zone);
            self.counts.zones += u32::from(matches!(change, Change::Zone { .. }));
        } else {
            self.counts.rollbacks += 1;
        }
        let while_ = Duration::from_millis(self.random.u64(200..1_500));
        self.focus_for(&place, while_);
        Ok(())
    }

    fn plan(&mut self, place: &Arc<Place>, change: Change) -> Result<Planned> {
        let mut planned = Planned {
            sql: Vec::new(),
            tag: place.tag(),
            worker: place.worker(),
            epoch_ms: place.epoch_ms(),
            zone: place.zone(),
        };
        match change {
            Change::Layout { earlier_ms } => {
                planned.epoch_ms -= earlier_ms;
                planned.sql.push(set_layout(planned.epoch_ms));
            }
            Change::Worker => {
                planned.worker = self.another_worker(place.role)?;
                planned.sql.push(set_worker(planned.worker));
            }
            Change::Rebirth => {
                planned.tag = place.next_tag();
                // Half of the time the same again.
                if self.random.bool() {
                    planned.worker = self.another_worker(place.role)?;
                }
                // In a restored dump the sequences of tags lie in the extension's schema and are no members of it.
                planned
                    .sql
                    .push("DROP EXTENSION keywright CASCADE".to_owned());
                planned.sql.push("CREATE EXTENSION keywright".to_owned());
                if place.role == Role::Bent {
                    planned.sql.push(set_layout(planned.epoch_ms));
                }
                // Half of the time the zone is forgotten.
                if self.random.bool() {
                    planned.sql.push(set_zone(planned.zone));
                } else {
                    planned.zone = 0;
                }
                planned.sql.push(set_worker(planned.worker));
                planned.sql.push(create_tag(&planned.tag));
            }
            Change::Tag => {
                planned
                    .sql
                    .push(format!("SELECT keywright.drop_tag('{}')", planned.tag));
                planned.sql.push(create_tag(&planned.tag));
            }
            Change::Zone { east } => {
                planned.zone = (planned.zone + east).clamp(-ZONE_MAX, ZONE_MAX);
                planned.sql.push(set_zone(planned.zone));
            }
        }
        Ok(planned)
    }

    /// One of the pool; for a database whose layout changes, one that nobody else gets.
    pub(super) fn another_worker(&mut self, role: Role) -> Result<u32> {
        match role {
            Role::Lasting | Role::Reborn => Ok(self.random.u32(1..=POOL)),
            Role::Bent => self.fresh_worker(),
        }
    }

    /// Up to where it ends, ids included.
    fn begins(&self, session: &mut Session, planned: &Planned, ending: Ending) -> Result<()> {
        session.client.batch_execute("BEGIN")?;
        if ending == Ending::Savepoint {
            session.client.batch_execute("SAVEPOINT change")?;
        }
        for sql in &planned.sql {
            session.client.batch_execute(sql)?;
        }
        self.draw_some(session, &planned.tag)?;
        match ending {
            Ending::Prepared { .. } => {
                session
                    .client
                    .batch_execute(&format!("PREPARE TRANSACTION '{GID}'"))?;
            }
            Ending::Savepoint => {
                session.client.batch_execute("ROLLBACK TO change")?;
            }
            Ending::Commit | Ending::Rollback | Ending::Crash | Ending::Terminated => {}
        }
        Ok(())
    }

    /// Whether what was changed stays.
    fn ends(&mut self, place: &Arc<Place>, mut session: Session, ending: Ending) -> Result<bool> {
        // Others issue beside what is not committed.
        thread::sleep(Duration::from_millis(self.random.u64(0..800)));
        match ending {
            Ending::Commit => session.client.batch_execute("COMMIT")?,
            Ending::Rollback => session.client.batch_execute("ROLLBACK")?,
            Ending::Savepoint => {
                self.draw_some(&mut session, &place.tag())?;
                session.client.batch_execute("COMMIT")?;
            }
            Ending::Prepared { commit, crash } => {
                drop(session);
                if crash {
                    self.server.kill9()?;
                    self.crashed(None)?;
                    thread::sleep(Duration::from_millis(self.random.u64(0..500)));
                }
                let end = if commit { "COMMIT" } else { "ROLLBACK" };
                let mut client = self.server.client(&place.name)?;
                client
                    .batch_execute(&format!("{end} PREPARED '{GID}'"))
                    .context("ending a prepared transaction")?;
            }
            Ending::Crash => {
                self.server.kill9()?;
                self.crashed(None)?;
            }
            Ending::Terminated => {
                let pid: i32 = session
                    .client
                    .query_one("SELECT pg_backend_pid()", &[])?
                    .try_get(0)?;
                self.admin()?
                    .execute("SELECT pg_terminate_backend($1, 10000)", &[&pid])?;
            }
        }
        Ok(ending.commits())
    }
}

/// Bits as in `twitter`, so that worker ids tell databases apart whatever the epoch.
fn set_layout(epoch_ms: i64) -> String {
    if epoch_ms == TWITTER_EPOCH_MS {
        return "SELECT keywright.set_layout('twitter')".to_owned();
    }
    format!(
        "SELECT keywright.set_layout('time=41,datacenter=5,worker=5,sequence=12,epoch={epoch_ms}')"
    )
}

/// Minutes east of UTC as an offset.
fn set_zone(minutes: i16) -> String {
    let sign = if minutes < 0 { '-' } else { '+' };
    let (hours, minutes) = (minutes.abs() / 60, minutes.abs() % 60);
    format!("SELECT keywright.set_readable_zone('{sign}{hours:02}:{minutes:02}')")
}

pub(super) fn set_worker(worker: u32) -> String {
    format!("SELECT keywright.set_worker_id({worker})")
}

pub(super) fn create_tag(tag: &str) -> String {
    format!("SELECT keywright.create_tag('{tag}', step => 1000)")
}
