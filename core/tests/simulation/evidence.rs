//! Noticing a promotion, and the gap of a tag after it; or what a faulty rule does instead.

use keywright_core::{Loss, Note, Promotion, Received, Word, Writer, lost_ms};

use crate::rules::Rules;
use crate::server::TAGS;
use crate::store::Register;
use crate::tag_call::source;
use crate::world::{Reservation, World};

/// What is kept of this writer's beginning, if anything is.
fn kept(world: &mut World, at: usize) -> Option<(Promotion, Loss)> {
    let database = world.backends[at].database;
    let mark = world.server(at).writer(database).mark();
    let promotion = world.read(at, Register::Promotion { database })?;
    let loss = world.read(at, Register::Loss { database })?;
    let (promotion, loss) = (Promotion::unpack(promotion)?, Loss::unpack(loss)?);
    (promotion.mark == mark && loss.mark == mark).then_some((promotion, loss))
}

/// Notes of the tags of the backend's database.
fn tag_notes(world: &mut World, at: usize) -> Vec<Note> {
    let database = world.backends[at].database;
    let tags = (0..TAGS).map(|tag| Register::TagNote { database, tag });
    let store = &world.server(at).store;
    let packed = tags.filter_map(|note| store.read(note));
    packed.filter_map(Note::unpack).collect()
}

/// As the server does it: the first who meets another's note works out what was lost and makes it durable.
fn notice(world: &mut World, at: usize, wall_ms: i64) -> (Promotion, Loss) {
    if let Some(kept) = kept(world, at) {
        return kept;
    }
    let database = world.backends[at].database;
    let writer = world.server(at).writer(database);
    let promotion = estimate_promotion(&writer, wall_ms);
    let moments: Vec<i64> = tag_notes(world, at)
        .iter()
        .filter(|note| promotion.parent == Some(note.mark))
        .map(Note::at_ms)
        .collect();
    let mut received = Received {
        commit_ms: None,
        note_ms: Received::newest_note(&moments, wall_ms),
        message: None,
    };
    if let Some(arrived) = world.server(at).memory.arrived {
        received.commit_ms = arrived.commit_ms;
        received.message = arrived.message;
    }
    if world.rules == Rules::KeepaliveIsEvidence {
        received.commit_ms = received
            .message
            .map(|message| message.sent_ms)
            .max(received.commit_ms);
    }
    let before = world.read(at, Register::Loss { database });
    let lag_ms_max = before
        .and_then(Loss::unpack)
        .map_or(0, |loss| loss.lag_ms_max());
    let ms = received
        .lost_ms(wall_ms, lag_ms_max)
        .unwrap_or(Loss::MS_MAX);
    let loss = Loss::new(promotion.mark, ms, lag_ms_max);
    world.trace(|| format!("database {database}: {ms} ms were lost by {received:?}"));
    let store = &mut world.server(at).store;
    store.write(Register::Loss { database }, loss.pack());
    store.write(Register::Promotion { database }, promotion.pack());
    store.flush(store.end());
    (promotion, loss)
}

fn estimate_promotion(writer: &Writer, wall_ms: i64) -> Promotion {
    // The history of a timeline names the one it branched off.
    let parent = (writer.timeline > 1).then(|| writer.timeline - 1);
    Promotion::new(writer, parent, wall_ms, Word::Estimate)
}

/// Ids that a tag leaves out because another writer wrote `note`.
pub fn tag_gap(world: &mut World, at: usize, tag: usize, note: Note, wall_ms: i64) -> u64 {
    let source = source(world, at, tag);
    let recorded = world.reservations.get(&(source, note.pack())).copied();
    let (promotion, loss) = notice(world, at, wall_ms);
    match world.rules {
        Rules::NoGapByOwnRecord if recorded.is_some_and(|recorded| recorded.is_confirmed) => 0,
        Rules::OwnRefillCapped => {
            let elapsed_ms = u64::try_from(wall_ms - note.at_ms()).unwrap_or(0);
            note.tag_gap_after(elapsed_ms.min(1000))
        }
        _ => note.tag_gap_after(lost_ms(&note, &promotion, &loss)),
    }
}

/// For how long the original certainly counts as having gone on alone: what the promise is judged by.
///
/// Truly it was from the flush of the first record that did not arrive until the promotion was noticed; clocks that differ
/// take from it what the old one may have been ahead of the new. For what an older writer wrote, or the original of a
/// copy, it is what the clock says has passed since its note.
pub fn alone_ms(world: &mut World, at: usize, note: &Note, recorded: &Reservation) -> i64 {
    let Some((promotion, _)) = kept(world, at) else {
        return 0;
    };
    let noticed_ms = promotion.noticed_ms() - 999;
    if promotion.parent != Some(note.mark) {
        return noticed_ms - recorded.wall_ms;
    }
    let offset_max_ms = world.wall_offset_max_ms;
    noticed_ms - offset_max_ms - world.server(at).lost_from_ms
}
