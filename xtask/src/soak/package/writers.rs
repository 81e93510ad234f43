//! Applications that write on both shards all the time, through the program.

use anyhow::{Context, Result, ensure};
use keywright_testkit::{IdLog, WAIT_MAX, wait_until};

use super::machine::Machine;
use super::servers::sql;

/// How many more INSERTs show that they go on.
const MORE: usize = 20;

/// Per shard, one on a connection that stays and one with a new connection for each INSERT.
pub(super) struct Writers<'a> {
    machine: &'a Machine,
    ids: Vec<u32>,
}

impl<'a> Writers<'a> {
    pub(super) fn start(machine: &'a Machine) -> Result<Writers<'a>> {
        let mut ids = Vec::new();
        for n in [1, 2] {
            let client = format!(
                "mariadb -h127.0.0.1 -P603{n} -uapp -papp --batch --skip-column-names --unbuffered shop_{n}"
            );
            let insert = format!(
                "INSERT INTO orders_{n} (customer) VALUES ('dan'); SELECT LAST_INSERT_ID();"
            );
            for (name, line) in [
                (
                    "new",
                    format!(
                        "while ! test -e stop; do echo \"{insert}\" | {client} || echo FAILED; sleep 0.05; done"
                    ),
                ),
                (
                    "old",
                    format!(
                        "(while ! test -e stop; do echo \"{insert}\"; sleep 0.05; done) | {client} || echo FAILED"
                    ),
                ),
            ] {
                machine.write(&format!("{name}-{n}.sh"), &line)?;
                ids.push(
                    machine.start(&format!("bash {name}-{n}.sh"), &format!("{name}-{n}.log"))?,
                );
            }
        }
        Ok(Writers { machine, ids })
    }

    /// Waits until each has written more.
    pub(super) fn wait_for_more(&self) -> Result<()> {
        let before = self.so_far()?;
        wait_until("all writers go on", WAIT_MAX, || {
            let now = self.so_far()?;
            Ok(now
                .iter()
                .zip(&before)
                .all(|(now, before)| *now >= before + MORE))
        })
    }

    /// How many lines each has written.
    pub(super) fn so_far(&self) -> Result<Vec<usize>> {
        Ok(self
            .said()?
            .iter()
            .map(|said| said.lines().count())
            .collect())
    }

    /// That what was written between these was distinct over the shards.
    pub(super) fn see_distinct(&self, from: &[usize], to: &[usize]) -> Result<()> {
        let log = IdLog::new();
        for ((said, from), to) in self.said()?.iter().zip(from).zip(to) {
            let lines: Vec<&str> = said.lines().skip(*from).take(to - from).collect();
            log.record_unordered(parse(&lines.join("\n"))?);
        }
        ensure!(log.check()?.count > 0, "nothing was written");
        Ok(())
    }

    fn said(&self) -> Result<Vec<String>> {
        let files = ["new-1.log", "old-1.log", "new-2.log", "old-2.log"];
        files.iter().map(|file| self.machine.read(file)).collect()
    }

    /// Ends them. Nothing failed, and what they were told is what is there. Returns how many rows there are.
    pub(super) fn stop(self) -> Result<usize> {
        self.machine.write("stop", "")?;
        for id in &self.ids {
            wait_until("a writer ends", WAIT_MAX, || {
                let alive = self.machine.run(&format!("test -d /proc/{id}"))?;
                Ok(!alive.is_well)
            })?;
        }
        let told = self.said()?;
        for said in &told {
            let strange = said.lines().find(|line| line.parse::<i64>().is_err());
            ensure!(strange.is_none(), "an INSERT failed: {strange:?}");
        }
        let mut rows = 0;
        for n in [1, 2] {
            let stored = sql(
                self.machine,
                n,
                &format!("SELECT id FROM shop_{n}.orders_{n} WHERE customer = 'dan'"),
            )?;
            let stored: Vec<i64> = parse(&stored)?;
            rows += stored.len();
            let log = IdLog::new();
            for said in told.iter().skip(2 * (usize::from(n) - 1)).take(2) {
                log.record_unordered(parse(said)?);
            }
            let count = log.check()?.count;
            ensure!(
                count == stored.len(),
                "shard {n} has {} rows, and {count} INSERTs were told their keys",
                stored.len()
            );
        }
        Ok(rows)
    }
}

fn parse(said: &str) -> Result<Vec<i64>> {
    let ids = said.lines().map(|line| line.trim().parse::<i64>());
    ids.collect::<Result<_, _>>()
        .context("ids that are no numbers")
}
