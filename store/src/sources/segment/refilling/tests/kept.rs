//! A part of what is reserved is kept in a file: the supply, the file and who writes it as they are, under programs that are killed, stopped and
//! started at random, with the store and without.

use std::collections::{BTreeSet, VecDeque};
use std::path::Path;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use tempfile::TempDir;

use super::*;
use crate::clock::Clock;
use crate::kept::keeper::{Keeper, KeptSettings};
use crate::switch::space::KeySpace;
use crate::switch::state::{Phase, Standing};

fn orders() -> Tag {
    Tag::parse("orders").unwrap()
}

fn standing() -> Standing {
    Standing {
        attempt: 0,
        phase: Phase::None,
        leader: None,
        age_ms: 0,
        rules: Vec::new(),
        generations: vec![(KeySpace::Tag(orders()), 0)],
        key_space_ids: vec![(orders(), "k".to_owned())],
        peers: Vec::new(),
    }
}

/// A program: with the store, or started on what is kept.
pub(super) struct Program {
    keeper: Arc<Keeper>,
    pub(super) supply: SegmentSupply,
    pub(super) state: Refilling,
}

impl Program {
    pub(super) fn start(path: &Path, with_store: bool) -> Program {
        let settings = KeptSettings {
            path: path.to_owned(),
            // Wherever tests run.
            any_file_system: true,
        };
        let keeper = Arc::new(Keeper::new(settings, Arc::new(SystemClock)));
        keeper.begin("c", 600_000);
        if with_store {
            keeper.anew();
            assert!(keeper.stand(Some(&standing())));
            keeper.heard(SystemClock.boot_ms().unwrap());
        } else {
            // Where nothing is kept it has nothing.
            let _ = keeper.start();
        }
        let name = "segment:orders".to_owned();
        let supply = SegmentSupply::new(name, (orders(), Residue::ALL), &LIMITS, seat());
        let supply = supply.keeping(Some(Arc::clone(&keeper)));
        supply.publish_part(0);
        Program {
            keeper,
            supply,
            state: Refilling::new(&LIMITS),
        }
    }

    pub(super) fn accept(&mut self, start: u64, end: u64) {
        let granted = granted(Residue::ALL, start, end);
        assert!(accept(&self.supply, &mut self.state, &granted, 0));
    }

    fn take(&self) -> Option<u64> {
        self.supply.try_take(1, true)?.number(0)
    }

    /// What is handed back.
    fn stop(self) -> Vec<(u64, u64)> {
        let was_erased = self.keeper.end();
        let rests = self.supply.take_rest(was_erased);
        rests.iter().map(|rest| (rest.start, rest.end)).collect()
    }
}

#[test]
fn the_second_half_is_kept_and_comes_with_the_next_range_or_in_parts() {
    let scratch = TempDir::new().unwrap();
    let path = scratch.path().join("ranges");
    let mut program = Program::start(&path, true);
    program.accept(1, 101);
    // All of it is there while the store is away.
    assert_eq!(
        (
            program.supply.buffer.remaining(),
            program.supply.remaining()
        ),
        (50, 100)
    );
    program.accept(101, 201);
    assert_eq!(
        (
            program.supply.buffer.remaining(),
            program.supply.remaining()
        ),
        (150, 200)
    );
    assert!(program.supply.publish_part(0));
    assert_eq!(program.supply.buffer.remaining(), 152);
    assert!(program.supply.publish_part(30));
    assert_eq!(program.supply.buffer.remaining(), 182);
    drop(program);
    let program = Program::start(&path, false);
    assert_eq!(program.take(), Some(183));
    // The store says that there is no more.
    assert!(program.supply.publish_tail());
    assert_eq!(program.supply.remaining(), 17);
    drop(program);
    assert_eq!(Program::start(&path, false).take(), None);
}

/// Threads that serve clients ask for them, and the disk may stall.
#[test]
fn figures_are_told_while_the_file_is_written() {
    let scratch = TempDir::new().unwrap();
    let mut program = Program::start(&scratch.path().join("ranges"), true);
    program.accept(1, 101);
    let supply = &program.supply;
    let writing = supply.held();
    let (tell, told) = mpsc::channel();
    thread::scope(|scope| {
        scope.spawn(move || tell.send((supply.remaining(), supply.facts().key_space)));
        let figures = told.recv_timeout(Duration::from_secs(30));
        drop(writing);
        assert_eq!(figures, Ok((100, Some("k".into()))));
    });
}

#[test]
fn what_is_waited_for_is_not_kept() {
    let scratch = TempDir::new().unwrap();
    let mut program = Program::start(&scratch.path().join("ranges"), true);
    let granted = granted(Residue::ALL, 1, 101);
    assert!(accept(&program.supply, &mut program.state, &granted, 80));
    assert_eq!(program.supply.buffer.longest(), 80);
}

#[test]
fn what_is_dropped_is_not_kept() {
    let scratch = TempDir::new().unwrap();
    let path = scratch.path().join("ranges");
    for drop_it in [
        (|supply: &SegmentSupply| supply.follow(7)) as fn(&SegmentSupply),
        |supply| supply.meet("another"),
        |supply| supply.expire(),
    ] {
        let mut program = Program::start(&path, true);
        program.accept(1, 101);
        drop_it(&program.supply);
        assert_eq!(program.supply.remaining(), 0);
        drop(program);
        assert_eq!(Program::start(&path, false).take(), None);
    }
}

#[test]
fn all_that_is_left_is_handed_back_as_one_range_or_without_what_may_be_in_the_file() {
    let scratch = TempDir::new().unwrap();
    let path = scratch.path().join("ranges");
    let mut program = Program::start(&path, true);
    program.accept(1, 101);
    assert_eq!(program.take(), Some(1));
    assert_eq!(program.stop(), [(2, 101)]);
    let mut program = Program::start(&path, true);
    program.accept(101, 201);
    let rests = program.supply.take_rest(false);
    assert_eq!((rests[0].start, rests[0].end, rests.len()), (101, 151, 1));
}

/// The bounds that a program finds that starts next.
fn seen(path: &Path) -> Vec<u64> {
    let seen = Program::start(path, true).keeper.seen();
    seen.iter().map(|seen| seen.bound).collect()
}

#[test]
fn the_file_says_how_far_a_tag_has_come_of_which_nothing_is_kept() {
    for (end, need) in [(201, 100), (102, 0)] {
        for was_kept in [false, true] {
            let scratch = TempDir::new().unwrap();
            let path = scratch.path().join("ranges");
            let mut program = Program::start(&path, true);
            if was_kept {
                program.accept(1, 101);
            }
            let granted = granted(Residue::ALL, 101, end);
            assert!(accept(&program.supply, &mut program.state, &granted, need));
            assert!(!program.supply.has_tail());
            // It is killed.
            drop(program);
            assert_eq!(seen(&path), [end], "{end} {need} {was_kept}");
        }
    }
}

#[test]
fn the_file_says_how_far_a_tag_had_come_before_it_was_had() {
    let scratch = TempDir::new().unwrap();
    let path = scratch.path().join("ranges");
    let first = Program::start(&path, true);
    let mut second = Program::start(&path, true);
    second.accept(1, 101);
    assert!(first.stop().is_empty());
    assert!(second.keeper.look_again());
    drop(second);
    assert_eq!(seen(&path), [101]);
}

/// What a store has given, and was handed back.
struct Given {
    next: u64,
    returned: VecDeque<(u64, u64)>,
}

impl Given {
    fn reserve(&mut self, program: &Program) -> (u64, u64) {
        let hi = program.supply.hi(&program.supply.held());
        if let Some(range) = self.returned.pop_front().filter(|(start, _)| *start >= hi) {
            return range;
        }
        let start = self.next;
        self.next += 64;
        (start, self.next)
    }
}

fn run(seed: u64) -> usize {
    let mut random = fastrand::Rng::with_seed(seed);
    let scratch = TempDir::new().unwrap();
    let path = scratch.path().join("ranges");
    let mut store = Given {
        next: 1,
        returned: VecDeque::new(),
    };
    let mut ids = BTreeSet::new();
    let mut without_store = 0;
    let mut has_store = true;
    let mut program = Program::start(&path, true);
    for _ in 0..60 {
        match random.u32(0..10) {
            0..4 => {
                for _ in 0..random.u32(1..40) {
                    let Some(id) = program.take() else { break };
                    assert!(ids.insert(id), "seed {seed}: id {id} came twice");
                    without_store += usize::from(!has_store);
                }
            }
            4 | 5 if has_store => {
                let (start, end) = store.reserve(&program);
                program.accept(start, end);
            }
            4 => {
                has_store = true;
                program.keeper.stand(Some(&standing()));
                program.keeper.heard(SystemClock.boot_ms().unwrap());
            }
            5 | 6 => drop(program.supply.publish_part(random.u64(0..8))),
            7..9 => {
                drop(program);
                has_store = random.bool();
                program = Program::start(&path, has_store);
            }
            _ => {
                let rests = program.stop();
                if has_store {
                    store.returned.extend(rests);
                }
                has_store = random.bool();
                program = Program::start(&path, has_store);
            }
        }
    }
    without_store
}

#[test]
fn no_id_comes_twice_however_programs_end() {
    let seed = std::env::var("KEYWRIGHT_SEED")
        .ok()
        .and_then(|seed| seed.parse().ok());
    let seeds = std::env::var("KEYWRIGHT_SEEDS")
        .ok()
        .and_then(|seeds| seeds.parse().ok());
    let without_store: usize = match seed {
        Some(seed) => run(seed),
        None => (0..seeds.unwrap_or(60)).map(run).sum(),
    };
    assert!(
        without_store > 0 || seed.is_some(),
        "nobody goes on without the store"
    );
}
