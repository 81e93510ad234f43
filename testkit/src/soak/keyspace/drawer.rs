//! Those who draw: each goes from issuer to issuer, a short session at each.

use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anyhow::Result;

use super::issuer::{Issuer, verdict};
use crate::soak::findings::Findings;

/// Pause before connecting or asking again after an error.
const PAUSE: Duration = Duration::from_millis(20);

/// Shared by the conductor and all who draw.
#[derive(Debug, Default)]
pub(super) struct World {
    pub(super) findings: Findings,
    issuers: Mutex<Vec<Arc<Issuer>>>,
}

impl World {
    /// Those that there are.
    pub(super) fn issuers(&self) -> Vec<Arc<Issuer>> {
        self.lock().clone()
    }

    pub(super) fn add(&self, issuer: &Arc<Issuer>) {
        self.lock().push(Arc::clone(issuer));
    }

    pub(super) fn remove(&self, issuer: &Arc<Issuer>) {
        self.lock().retain(|other| !Arc::ptr_eq(other, issuer));
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Arc<Issuer>>> {
        self.issuers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Starts one, with choices of its own.
pub(super) fn start(world: &Arc<World>, seed: u64) -> JoinHandle<()> {
    let world = Arc::clone(world);
    thread::spawn(move || {
        let mut random = fastrand::Rng::with_seed(seed);
        while !world.findings.stopped() {
            let Some(issuer) = random.choice(world.issuers()) else {
                thread::sleep(PAUSE);
                continue;
            };
            if let Err(error) = visit(&world, &issuer, &mut random) {
                issuer.note_refusal(&error);
                let what = format!("a session at {}", issuer.name);
                world.findings.meets(&what, verdict(&error));
                thread::sleep(PAUSE);
            }
        }
    })
}

/// One session, up to its first error.
fn visit(world: &World, issuer: &Issuer, random: &mut fastrand::Rng) -> Result<()> {
    let mut connected = issuer.connect()?;
    let session = world.findings.next_session();
    for _ in 0..random.u32(1..25) {
        if world.findings.stopped() {
            break;
        }
        let began = world.findings.ledger.begin();
        let (what, ids) = connected.draw(random.u32(1..=100))?;
        let what = format!("{what} at {}", issuer.name);
        let ledger = &world.findings.ledger;
        ledger.record(connected.space(), session, &what, began, &ids);
        issuer.note_ids();
    }
    Ok(())
}
