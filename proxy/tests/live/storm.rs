//! Programs that begin, end and finish each other's attempts, and are dropped at any moment, while the servers number rows
//! natively and keys are taken: no id comes twice, and in the end native inserts are refused if and only if keys are issued.

use std::collections::HashSet;
use std::time::Duration;

use keywright_proxy::switch::{ClientConnections as _, Limits};
use keywright_store::switch::{Phase, Standing};
use keywright_store::{Keys, Source};
use keywright_testkit::{Result, WAIT_MAX};
use tokio::time::{Instant, timeout};

use crate::barrier::{Fleet, Program, follows, is_wanted, runtime, space, until};

/// Things that happen; `KEYWRIGHT_ROUNDS` says how many others.
const ROUNDS: u32 = 400;
/// Attempts that make a storm; and how many times as many things may happen until there were so many.
const ATTEMPTS_MIN: u32 = 3;
const LONGER_MAX: u32 = 10;
/// Programs.
const PROGRAMS: usize = 3;
/// Attempts are late soon, and nobody waits for others: ids must not depend on it.
const HASTY: Limits = Limits {
    wait_ms_max: 100,
    peer_wait_ms: 0,
};

/// A program with ranges of its own.
struct Member {
    program: Program,
    keys: Keys,
    source: Source,
}

impl Member {
    fn new(fleet: &Fleet) -> Result<Member> {
        let keys = Keys::open(fleet.config.store.clone())?;
        let source = keys.source(&fleet.config.rules[0].spec)?;
        Ok(Member {
            program: fleet.program_with(&keys, HASTY),
            keys,
            source,
        })
    }

    /// What it has seen, if it waits for nothing.
    fn in_force(&self) -> Option<Standing> {
        let clients = self.program.connections();
        let followed = clients.followed.borrow().clone();
        followed.filter(|_| !clients.holds.get())
    }

    /// A key, where it issues keys and has one.
    fn take(&self) -> Option<u64> {
        let standing = self.in_force()?;
        let rule = standing.rules.first()?;
        let keys = rule.keys.as_ref()?;
        let mut generations = standing.generations.iter();
        let (_, generation) = generations.find(|(of, _)| of == keys)?;
        self.keys.follow(keys, *generation);
        self.source.try_take(1, true).ok()?.number(0)
    }
}

/// Every id that was given away.
#[derive(Default)]
struct Ids {
    keys: HashSet<u64>,
    native: [HashSet<u64>; 2],
}

impl Ids {
    fn key(&mut self, id: u64) {
        let is_native = self.native.iter().any(|native| native.contains(&id));
        assert!(!is_native, "key {id} is a native id");
        assert!(self.keys.insert(id), "key {id} comes twice");
    }

    fn native(&mut self, ids: [Option<u64>; 2]) -> [bool; 2] {
        for (of, id) in self.native.iter_mut().zip(ids) {
            let Some(id) = id else {
                continue;
            };
            assert!(!self.keys.contains(&id), "native id {id} is a key");
            assert!(of.insert(id), "native id {id} comes twice");
        }
        ids.map(|id| id.is_none())
    }
}

fn rounds() -> Result<u32> {
    match std::env::var("KEYWRIGHT_ROUNDS") {
        Ok(rounds) => Ok(rounds.parse()?),
        Err(_) => Ok(ROUNDS),
    }
}

#[test]
fn programs_that_end_at_any_moment_repeat_no_id() -> Result<()> {
    if !is_wanted() {
        return Ok(());
    }
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    runtime()?.block_on(async {
        let fleet = Fleet::new("sw_storm").await?;
        let mut members = Vec::new();
        for _ in 0..PROGRAMS {
            members.push(Member::new(&fleet)?);
        }
        let mut ids = Ids::default();
        let (mut dropped, mut begun) = (0, 0);
        let rounds = rounds()?;
        for round in 0..rounds * LONGER_MAX {
            if round >= rounds && begun >= ATTEMPTS_MIN {
                break;
            }
            let member = &mut members[random.usize(..PROGRAMS)];
            match random.u32(..14) {
                0 => {
                    if let Some(standing) = member.in_force() {
                        let now = standing.rules.first().and_then(|rule| rule.keys.clone());
                        let to = now.is_none().then(space);
                        let change = fleet.change(now, to);
                        begun += u32::from(member.program.begin(&change).await?);
                    }
                }
                1 => {
                    ids.native(fleet.insert()?);
                }
                2 => {
                    // The row goes, the id was given all the same.
                    ids.native(fleet.insert()?);
                    for server in &fleet.servers {
                        server.run(fleet.schema, "DELETE FROM t")?;
                    }
                }
                3..=7 => {
                    if let Some(id) = member.take() {
                        ids.key(id);
                    }
                }
                8 => {
                    let limit = Duration::from_millis(random.u64(..40));
                    if timeout(limit, member.program.step()).await.is_err() {
                        *member = Member::new(&fleet)?;
                        dropped += 1;
                    }
                }
                // A lock that did not come, an attempt that somebody else finished: the next step tries again.
                _ => drop(member.program.step().await),
            }
        }
        println!(
            "{begun} attempts, {dropped} programs ended, {} keys, {} and {} native ids",
            ids.keys.len(),
            ids.native[0].len(),
            ids.native[1].len()
        );
        settle(&fleet, &mut members[0].program).await?;
        let standing = fleet.standing().await?;
        let has_keys = standing
            .rules
            .first()
            .is_some_and(|rule| rule.keys.is_some());
        assert_eq!(ids.native(fleet.insert()?), [has_keys; 2]);
        assert!(begun >= ATTEMPTS_MIN, "nothing happened");
        Ok(())
    })
}

/// Whatever is under way comes to its end.
async fn settle(fleet: &Fleet, program: &mut Program) -> Result<()> {
    let end = Instant::now() + WAIT_MAX;
    while Instant::now() < end {
        let _ = program.step().await;
        if fleet.standing().await?.phase == Phase::None {
            until(program, follows).await?;
            assert!(program.connections().is_quiet());
            return Ok(());
        }
    }
    anyhow::bail!("the attempt never came to its end")
}
