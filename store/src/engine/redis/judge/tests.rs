//! Programs that take ranges of a Redis which starts anew, loses, and is put back, by seed: no id comes twice; where a doubt is left out, one does.

use fastrand::Rng;

use super::*;

/// How much of the doubt there is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Doubts {
    All,
    /// Known to be wrong: another life is not doubted.
    NoLives,
    /// Known to be wrong: a missing record is taken for a new tag.
    NoRecords,
    /// Known to be wrong: nobody compares with what he has seen.
    NoMemory,
}

/// A Redis: its data, and what may come back.
#[derive(Clone)]
struct Server {
    counter: Option<i64>,
    record: Option<Record>,
    life: u64,
}

struct Program {
    /// The highest id that it has seen taken.
    seen: u64,
    key_space: Option<String>,
}

impl Server {
    fn life(&self) -> String {
        format!("{:040x}", self.life)
    }
}

/// Takes a range, as the service does; `None`: it was refused.
fn take(
    server: &mut Server,
    program: &mut Program,
    count: u64,
    doubts: Doubts,
) -> Option<(u64, u64)> {
    let mut record = server.record.clone();
    if record.is_none() && doubts == Doubts::NoRecords {
        record = Some(Record {
            life: server.life(),
            bound: 0,
            key_space: "new".to_owned(),
        });
    }
    let seen = if doubts == Doubts::NoMemory {
        0
    } else {
        program.seen
    };
    let life = match (&record, doubts) {
        (Some(record), Doubts::NoLives) => record.life.clone(),
        _ => server.life(),
    };
    let record = match standing(server.counter, record.as_ref(), &life, seen) {
        Standing::Good => record?,
        _ => return None,
    };
    let known = program
        .key_space
        .get_or_insert_with(|| record.key_space.clone());
    if *known != record.key_space && doubts != Doubts::NoRecords {
        return None;
    }
    let before = u64::try_from(server.counter.unwrap_or(0)).ok()?;
    let last = before + count;
    server.counter = i64::try_from(last).ok();
    server.record = Some(Record {
        bound: last,
        life: server.life(),
        ..record
    });
    let range = range(server.counter?, count, seen.max(before)).ok()?;
    program.seen = program.seen.max(last);
    Some(range)
}

/// Whether an id came twice.
fn repeats(seed: u64, doubts: Doubts) -> bool {
    let mut rng = Rng::with_seed(seed);
    let mut server = Server {
        counter: None,
        record: None,
        life: 1,
    };
    let new = || Program {
        seen: 0,
        key_space: None,
    };
    let mut programs = [new(), new(), new()];
    let mut given: Vec<(u64, u64)> = Vec::new();
    let mut replica = server.clone();
    for _ in 0..60 {
        match rng.u32(0..14) {
            0 => server.life += 1,
            // Another one takes its place, with what it had.
            1 => {
                server = Server {
                    life: server.life + 1,
                    ..replica.clone()
                };
            }
            2 => {
                server.counter = None;
                server.record = None;
                // Whoever does that stops the programs, but not always all of them.
                programs[rng.usize(0..3)] = new();
            }
            3 => server.counter = Some(rng.i64(-5..50)),
            4 => programs[rng.usize(0..3)] = new(),
            5 => replica = server.clone(),
            // Somebody vouches who knows how far ids were given.
            6 => {
                let highest = given.iter().map(|(_, end)| end - 1).max().unwrap_or(0);
                let bound = advanced(server.counter, server.record.as_ref(), 0, highest);
                let key_space = match &server.record {
                    Some(record) => record.key_space.clone(),
                    None => format!("{}", rng.u64(..)),
                };
                server.counter = i64::try_from(bound).ok();
                server.record = Some(Record {
                    life: server.life(),
                    bound,
                    key_space,
                });
            }
            _ => {
                let program = &mut programs[rng.usize(0..3)];
                let Some((start, end)) = take(&mut server, program, rng.u64(1..20), doubts) else {
                    continue;
                };
                if given.iter().any(|(from, to)| start < *to && *from < end) {
                    return true;
                }
                given.push((start, end));
            }
        }
    }
    false
}

#[test]
fn no_id_comes_twice() {
    for seed in 0..20_000 {
        assert!(!repeats(seed, Doubts::All), "seed {seed}");
    }
}

#[test]
fn whoever_doubts_less_gives_an_id_twice() {
    for doubts in [Doubts::NoLives, Doubts::NoRecords] {
        assert!((0..20_000).any(|seed| repeats(seed, doubts)), "{doubts:?}");
    }
}

/// A state of before in the same life: the record agrees with the counter, and only memory does not.
#[test]
fn an_older_state_of_both_is_seen_by_who_has_seen_more() {
    let record = |bound| Record {
        life: "a".to_owned(),
        bound,
        key_space: "k".to_owned(),
    };
    let older = record(100);
    assert_eq!(standing(Some(100), Some(&older), "a", 0), Standing::Good);
    let is = standing(Some(100), Some(&older), "a", 250);
    assert_eq!(is, Standing::Lower { was: 250, is: 100 });
    let mut server = Server {
        counter: Some(100),
        record: Some(Record {
            life: format!("{:040x}", 1),
            ..older
        }),
        life: 1,
    };
    let program = || Program {
        seen: 250,
        key_space: Some("k".to_owned()),
    };
    assert_eq!(take(&mut server, &mut program(), 10, Doubts::All), None);
    let forgetful = take(&mut server, &mut program(), 10, Doubts::NoMemory);
    assert_eq!(forgetful, Some((101, 111)));
}

#[test]
fn a_counter_is_taken_from_only_as_it_was_left() {
    let record = Record {
        life: "a".to_owned(),
        bound: 10,
        key_space: "k".to_owned(),
    };
    for (counter, record, life, expected) in [
        (Some(10), Some(&record), "a", Standing::Good),
        // Others have counted on.
        (Some(99), Some(&record), "a", Standing::Good),
        (
            Some(9),
            Some(&record),
            "a",
            Standing::Lower { was: 10, is: 9 },
        ),
        (None, Some(&record), "a", Standing::Lower { was: 10, is: 0 }),
        (Some(-1), Some(&record), "a", Standing::Negative),
        (Some(10), Some(&record), "b", Standing::AnotherLife),
        (Some(10), None, "a", Standing::Unknown),
        (None, None, "a", Standing::Unknown),
    ] {
        assert_eq!(
            standing(counter, record, life, 0),
            expected,
            "{counter:?} {life}"
        );
    }
    assert_eq!(advanced(Some(5), Some(&record), 0, 7), 10);
    assert_eq!(advanced(Some(50), Some(&record), 0, 7), 50);
    assert_eq!(advanced(None, None, 3, 7), 7);
}

#[test]
fn a_reply_names_a_range_only_above_what_is_taken() {
    assert_eq!(range(10, 10, 0), Ok((1, 11)));
    assert_eq!(range(30, 10, 20), Ok((21, 31)));
    assert_eq!(range(30, 10, 21), Err(Misfit::Lower { was: 21, is: 20 }));
    for (last, count) in [
        (9, 10),
        (0, 1),
        (-1, 1),
        (i64::MIN, 5),
        (5, 0),
        (5, u64::MAX),
    ] {
        assert_eq!(
            range(last, count, 0),
            Err(Misfit::NotPositive),
            "{last} {count}"
        );
    }
    assert_eq!(range(i64::MAX, 1, 0), Err(Misfit::TooLarge));
}
