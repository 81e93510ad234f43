//! Databases that come, are copied, and go.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use super::conductor::Conductor;
use super::event::Drop;
use super::identity::{create_tag, set_worker};
use super::session::Session;
use super::world::{Kind, Place, Role};
use crate::pg::client::from_server;

/// Most databases at the same time; a copy beyond takes the place of one.
const PLACES_MAX: usize = 8;

impl Conductor {
    /// A new database, in one transaction as migrations make it; half of the time a first attempt is rolled back.
    ///
    /// # Errors
    /// What is no refusal.
    pub(super) fn make_place(&mut self, role: Role) -> Result<()> {
        let name = self.next_name(role);
        self.admin()?
            .batch_execute(&format!("CREATE DATABASE {name}"))?;
        let mut worker = self.another_worker(role)?;
        let mut rolled_back = self.random.bool();
        for attempt in 0.. {
            let tag = format!("tag_of_attempt_{attempt}");
            let place = Arc::new(Place::new(&name, role, &tag, worker));
            let mut session = self.session(&place)?;
            match self.first_identity(&mut session, &tag, worker) {
                // What was issued is remembered for as long as the server runs: the same worker id again, and at once.
                Ok(()) if rolled_back => {
                    session.client.batch_execute("ROLLBACK")?;
                    rolled_back = false;
                }
                Ok(()) => {
                    session.client.batch_execute("COMMIT")?;
                    self.world.add(place);
                    return Ok(());
                }
                Err(error)
                    if from_server(&error).is_some_and(|said| said.code().code() == "55006") =>
                {
                    worker = self.fresh_worker()?
                }
                Err(error) => return Err(error).context("giving a database its first identity"),
            }
        }
        Ok(())
    }

    fn first_identity(&self, session: &mut Session, tag: &str, worker: u32) -> Result<()> {
        session
            .client
            .batch_execute("BEGIN; CREATE EXTENSION keywright")?;
        session.client.batch_execute(&set_worker(worker))?;
        session.client.batch_execute(&create_tag(tag))?;
        self.draw_some(session, tag)
    }

    fn next_name(&mut self, role: Role) -> String {
        self.made += 1;
        let kind = match role {
            Role::Lasting => "lasting",
            Role::Reborn => "reborn",
            Role::Bent => "bent",
        };
        format!("{kind}_{}", self.made)
    }

    /// Sessions issue while it is dropped; then its worker id goes to another database, and a new one takes its place.
    ///
    /// # Errors
    /// What is no refusal.
    pub(super) fn drops_database(&mut self, how: Drop) -> Result<()> {
        let Some(place) = self.a_place(&[Role::Reborn]) else {
            return Ok(());
        };
        self.says(format!(
            "  of {} with worker id {}",
            place.name,
            place.worker()
        ));
        self.focus_for(&place, Duration::from_millis(500));
        self.drop_place(&place, how)?;
        if how.crash {
            self.server.kill9()?;
        }
        if let Some(back_s) = how.back_s {
            self.step_clock(self.offset_s - back_s)?;
        }
        if how.crash {
            self.crashed(None)?;
        }
        if let Some(heir) = self.a_place(&[Role::Lasting, Role::Reborn]) {
            self.give_worker(&heir, place.worker())?;
            self.focus_for(&heir, Duration::from_secs(2));
        }
        self.make_place(Role::Reborn)
    }

    fn drop_place(&mut self, place: &Arc<Place>, how: Drop) -> Result<()> {
        place.leave_in(how.leave);
        let mut sql = format!("DROP DATABASE {}", place.name);
        if how.force {
            sql += " WITH (FORCE)";
        }
        let mut admin = self.admin()?;
        for _ in 0..20 {
            match admin.batch_execute(&sql) {
                Ok(()) => {
                    self.counts.drops += 1;
                    self.world.remove(place);
                    return Ok(());
                }
                // It waited in vain for others to leave.
                Err(error) if error.code().is_some_and(|state| state.code() == "55006") => {}
                Err(error) => return Err(error).context("dropping a database"),
            }
        }
        bail!("{} cannot be dropped: its sessions stay", place.name)
    }

    /// That database gets a worker id that another had; it may be refused.
    fn give_worker(&mut self, heir: &Arc<Place>, worker: u32) -> Result<()> {
        self.says(format!("  worker id {worker} for {}", heir.name));
        let mut session = self.session(heir)?;
        match session.client.batch_execute(&set_worker(worker)) {
            Ok(()) => {
                heir.set_worker(worker);
                self.counts.commits += 1;
                Ok(())
            }
            Err(error) => {
                self.counts.refused += 1;
                session.refused(error.into())
            }
        }
    }

    /// A copy knows all that its original had issued, and may repeat none of it; what comes later is each one's own.
    ///
    /// # Errors
    /// What is no refusal.
    pub(super) fn copies_by_template(&mut self) -> Result<()> {
        let Some(original) = self.a_place(&[Role::Lasting]) else {
            return Ok(());
        };
        self.make_room()?;
        let name = self.next_name(Role::Reborn);
        self.says(format!("  of {} to {name}", original.name));
        original.set_open(false);
        let copied = self.create_from(&original, &name);
        let copy = Arc::new(Place::new(&name, Role::Reborn, &original.tag(), 0));
        let tag = original.tag();
        copy.set_zone(original.zone());
        let spaces = [&original, &copy].map(|place| place.space(Kind::Tag, &tag));
        self.world.findings.ledger.fork(&spaces[0], &spaces[1]);
        original.set_open(true);
        copied?;
        self.opens(copy)
    }

    /// CREATE DATABASE … TEMPLATE, which needs the original to itself.
    fn create_from(&self, original: &Place, name: &str) -> Result<()> {
        let mut admin = self.admin()?;
        let out = format!(
            "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE datname = '{}'",
            original.name
        );
        for _ in 0..50 {
            admin.batch_execute(&out)?;
            let create = format!("CREATE DATABASE {name} TEMPLATE {}", original.name);
            match admin.batch_execute(&create) {
                Ok(()) => return Ok(()),
                Err(error) if error.code().is_some_and(|state| state.code() == "55006") => {
                    thread::sleep(Duration::from_millis(100));
                }
                Err(error) => return Err(error).context("copying a database"),
            }
        }
        bail!("{} is never without sessions", original.name)
    }

    /// Dumped while others draw; what they draw meanwhile the copy cannot know.
    ///
    /// # Errors
    /// What is no refusal.
    pub(super) fn copies_by_dump(&mut self) -> Result<()> {
        let Some(original) = self.a_place(&[Role::Lasting]) else {
            return Ok(());
        };
        self.make_room()?;
        let name = self.next_name(Role::Reborn);
        self.says(format!("  of {} to {name}", original.name));
        let script = self.server.dump(&original.name, &[])?;
        self.admin()?
            .batch_execute(&format!("CREATE DATABASE {name}"))?;
        self.server.restore(&name, &script)?;
        let copy = Place::new(&name, Role::Reborn, &original.tag(), 0);
        copy.set_zone(original.zone());
        self.opens(Arc::new(copy))
    }

    /// A copy gets a worker id of its own, and others may draw from it.
    fn opens(&mut self, copy: Arc<Place>) -> Result<()> {
        self.counts.copies += 1;
        let worker = self.fresh_worker()?;
        let mut session = self.session(&copy)?;
        session.client.batch_execute(&set_worker(worker))?;
        copy.set_worker(worker);
        self.world.focus_on(Some(&copy));
        self.world.add(copy);
        Ok(())
    }

    fn make_room(&mut self) -> Result<()> {
        if self.world.places().len() < PLACES_MAX {
            return Ok(());
        }
        let Some(place) = self.a_place(&[Role::Reborn]) else {
            return Ok(());
        };
        let how = Drop {
            force: true,
            leave: Duration::ZERO,
            crash: false,
            back_s: None,
        };
        self.drop_place(&place, how)
    }
}
