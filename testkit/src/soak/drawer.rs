//! Those who draw: each goes from database to database, a short session in each.

use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anyhow::Result;

use super::session::{DRAWER, Session, Way};
use super::verdict::judge;
use super::world::{Kind, Place, Role, World};

/// Pause before connecting or asking again after an error.
const PAUSE: Duration = Duration::from_millis(20);

/// Starts one, with choices of its own.
pub(super) fn start(world: &Arc<World>, seed: u64) -> JoinHandle<()> {
    let world = Arc::clone(world);
    thread::spawn(move || {
        let mut random = fastrand::Rng::with_seed(seed);
        while !world.findings.stopped() {
            let Some(place) = choose(&world, &mut random) else {
                thread::sleep(PAUSE);
                continue;
            };
            if let Err(error) = visit(&world, &place, &mut random) {
                world
                    .findings
                    .meets(&format!("a session in {}", place.name), judge(&error));
                thread::sleep(PAUSE);
            }
        }
    })
}

fn choose(world: &World, random: &mut fastrand::Rng) -> Option<Arc<Place>> {
    let focus = world.focus().filter(|_| random.u8(..) < 160);
    let open: Vec<_> = world
        .places()
        .into_iter()
        .filter(|place| place.is_open())
        .collect();
    focus
        .filter(|place| place.is_open())
        .or_else(|| random.choice(open))
}

/// One session.
fn visit(world: &Arc<World>, place: &Arc<Place>, random: &mut fastrand::Rng) -> Result<()> {
    let mut session = Session::connect(world, place, DRAWER)?;
    // Closed while we connected: what is drawn now a copy that was just made could not know.
    if !place.is_open() {
        return Ok(());
    }
    for _ in 0..random.u32(1..25) {
        // One whose database is about to be dropped stays for as long as it may.
        while !place.is_open() && !place.is_left() && !world.findings.stopped() {
            step(&mut session, place, random)?;
        }
        if world.findings.stopped() || place.is_left() {
            break;
        }
        step(&mut session, place, random)?;
    }
    Ok(())
}

/// One statement or a few; a refusal is a reason to pause and no more.
fn step(session: &mut Session, place: &Place, random: &mut fastrand::Rng) -> Result<()> {
    let done = match random.u8(0..100) {
        0..=44 => session.draw(Kind::Tag, Way::Batches(random.u32(1..=20), 10_000)),
        45..=74 => session.draw(Kind::Snowflake, snowflakes(place, random)),
        75..=82 => session.draw(Kind::Tag, Way::Singles(random.u32(1..200))),
        83..=88 => session.draw(Kind::Snowflake, Way::Singles(random.u32(1..50))),
        89..=94 => session.draw(Kind::Readable, Way::Singles(random.u32(1..50))),
        _ => undone(session, place, random),
    };
    if let Err(error) = done {
        session.refused(error)?;
        // Ends a transaction that the error left open.
        session.client.batch_execute("ROLLBACK")?;
        thread::sleep(PAUSE);
    }
    Ok(())
}

/// A batch within a tick is consecutive; elsewhere than in a bent layout two of them are too.
fn snowflakes(place: &Place, random: &mut fastrand::Rng) -> Way {
    match place.role {
        Role::Lasting | Role::Reborn => Way::Batches(random.u32(1..=12), 8_192),
        Role::Bent => Way::Batches(random.u32(1..=4), 500),
    }
}

/// Ids of a transaction that is rolled back, or parts of which are.
fn undone(session: &mut Session, place: &Place, random: &mut fastrand::Rng) -> Result<()> {
    let (kind, way) = if random.bool() {
        (Kind::Tag, Way::Batches(2, 1_000))
    } else {
        (Kind::Snowflake, snowflakes(place, random))
    };
    session.client.batch_execute("BEGIN")?;
    session.draw(kind, way)?;
    session.client.batch_execute("SAVEPOINT part")?;
    session.draw(kind, way)?;
    session.client.batch_execute("ROLLBACK TO part")?;
    session.draw(kind, way)?;
    let end = if random.bool() { "ROLLBACK" } else { "COMMIT" };
    session.client.batch_execute(end)?;
    Ok(())
}
