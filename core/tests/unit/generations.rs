//! A word passes to another owner while takers of both are under way: every interleaving, for every order of the steps.
//!
//! The old owner's word was drained; one of its takers read it before. The new owner's ids begin where the old owner's
//! cursor stood, so that an equal value proves nothing.

use std::collections::BTreeSet;

use keywright_core::generation::Word;
use keywright_core::{Generation, SegmentWord};

/// What passing on writes, apart from the publication that follows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Write {
    /// The bound to zero.
    Forbid,
    /// The key.
    Key,
    /// The generation.
    Generation,
    /// The cursor to zero.
    Empty,
}

const WRITES: [Write; 4] = [Write::Forbid, Write::Key, Write::Generation, Write::Empty];

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Owner {
    Old,
    New,
}

const OLD_END: u64 = 4;
const NEW: std::ops::Range<u64> = 2..4;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Shared {
    cursor: u64,
    hi: u64,
    generation: u64,
    key: Owner,
    is_drained: bool,
}

/// A taker: reads generation and key, cursor, bound, swaps, reads the generation again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Taker {
    Begin,
    HasGeneration(u64),
    Attached(u64, Owner),
    HasCursor(u64, Owner, u64),
    HasBound(u64, Owner, u64, u64),
    /// The id, and whether it was taken before the drain.
    Swapped(u64, Owner, u64, bool),
    Done,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct State {
    shared: Shared,
    takers: [Taker; 2],
    /// Steps of the passing on that were done: drain, four writes, cursor, bound.
    done: usize,
}

fn pass_on(shared: &mut Shared, done: usize, order: &[Write]) {
    match done {
        0 => {
            shared.cursor = shared.cursor.max(shared.hi);
            shared.is_drained = true;
        }
        1..=4 => match order[done - 1] {
            Write::Forbid => shared.hi = 0,
            Write::Key => shared.key = Owner::New,
            Write::Generation => shared.generation += 1,
            Write::Empty => shared.cursor = 0,
        },
        5 => shared.cursor = shared.cursor.max(NEW.start),
        _ => shared.hi = shared.hi.max(NEW.end),
    }
}

/// One step of a taker; an id that is kept is judged.
fn take(shared: &mut Shared, taker: Taker) -> Result<Taker, String> {
    Ok(match taker {
        Taker::Begin => Taker::HasGeneration(shared.generation),
        Taker::HasGeneration(generation) => Taker::Attached(generation, shared.key),
        Taker::Attached(generation, owner) => Taker::HasCursor(generation, owner, shared.cursor),
        Taker::HasCursor(generation, owner, cursor) => {
            Taker::HasBound(generation, owner, cursor, shared.hi)
        }
        Taker::HasBound(_, _, cursor, hi) if cursor >= hi => Taker::Done,
        Taker::HasBound(_, _, cursor, _) if cursor != shared.cursor => Taker::Done,
        Taker::HasBound(generation, owner, cursor, _) => {
            shared.cursor += 1;
            Taker::Swapped(generation, owner, cursor, !shared.is_drained)
        }
        Taker::Swapped(generation, _, _, _) if generation != shared.generation => Taker::Done,
        Taker::Swapped(_, owner, id, was_open) => {
            let is_right = match owner {
                Owner::Old => was_open && id < OLD_END,
                Owner::New => !was_open && NEW.contains(&id),
            };
            if !is_right {
                return Err(format!("{owner:?} was given {id}"));
            }
            Taker::Done
        }
        Taker::Done => Taker::Done,
    })
}

/// Walks through all interleavings; the first wrong id ends it.
fn judge(order: &[Write], old_cursor: u64) -> Result<usize, String> {
    let first = State {
        shared: Shared {
            cursor: old_cursor,
            hi: OLD_END,
            generation: 1,
            key: Owner::Old,
            is_drained: false,
        },
        takers: [Taker::Begin; 2],
        done: 0,
    };
    let (mut seen, mut open) = (BTreeSet::from([first]), vec![first]);
    while let Some(state) = open.pop() {
        let mut next = Vec::new();
        if state.done < 7 {
            let mut passed = state;
            pass_on(&mut passed.shared, state.done, order);
            passed.done += 1;
            next.push(passed);
        }
        for at in 0..state.takers.len() {
            let mut taken = state;
            taken.takers[at] = take(&mut taken.shared, state.takers[at])?;
            next.push(taken);
        }
        open.extend(next.into_iter().filter(|state| seen.insert(*state)));
    }
    Ok(seen.len())
}

fn orders() -> Vec<Vec<Write>> {
    let mut orders = Vec::new();
    for a in WRITES {
        for b in WRITES {
            for c in WRITES {
                for d in WRITES {
                    let order = vec![a, b, c, d];
                    if BTreeSet::from_iter(&order).len() == 4 {
                        orders.push(order);
                    }
                }
            }
        }
    }
    orders
}

/// The key before the generation, the cursor last: wherever the bound goes to zero before that. All other orders hand an id
/// to the wrong owner.
#[test]
fn orders_of_passing_on_are_judged() {
    let is_right = |order: &Vec<Write>| (0..=OLD_END).all(|cursor| judge(order, cursor).is_ok());
    let (right, wrong): (BTreeSet<_>, BTreeSet<_>) = orders().into_iter().partition(is_right);
    let expected = |order: &Vec<Write>| {
        let place = |write| order.iter().position(|of| *of == write);
        place(Write::Key) < place(Write::Generation) && place(Write::Empty) == Some(3)
    };
    assert!(right.contains(WRITES.as_slice()));
    assert!(right.iter().all(expected), "{right:?}");
    assert_eq!((right.len(), wrong.len()), (3, 21));
}

#[test]
fn a_taker_that_does_not_look_again_is_found() {
    // Without the second look at the generation the first swap decides.
    let mut shared = Shared {
        cursor: 2,
        hi: OLD_END,
        generation: 1,
        key: Owner::Old,
        is_drained: false,
    };
    let stale = Taker::HasBound(1, Owner::Old, 2, OLD_END);
    for done in 0..7 {
        pass_on(&mut shared, done, &WRITES);
    }
    let Ok(Taker::Swapped(generation, _, id, _)) = take(&mut shared, stale) else {
        panic!("the stale swap meets an equal cursor");
    };
    assert!(NEW.contains(&id), "the new owner's id");
    assert_ne!(
        generation, shared.generation,
        "the second look throws it away"
    );
}

#[test]
fn a_word_that_was_passed_on_is_empty() {
    let (generation, word) = (Generation::default(), SegmentWord::new());
    word.publish(5, 10);
    assert_eq!(word.take(2), Ok(5));
    word.drain();
    let mut written = false;
    let words: [&dyn Word; 1] = [&word];
    assert_eq!(generation.pass_on(&words, || written = true), 1);
    assert!(written && generation.is(1) && !generation.is(0));
    assert!(word.take(1).is_err());
    assert_eq!((word.cursor(), word.hi()), (0, 0));
    word.publish(3, 4);
    assert_eq!(word.take(1), Ok(3));
}
