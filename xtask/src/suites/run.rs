//! Runs suites and counts.

use std::cmp::Reverse;
use std::io::{BufRead, BufReader, Write};
use std::process::{ChildStdout, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use keywright_testkit::{ProxyProcess, SERVER_DATA_VARIABLE, server_data_in_memory};

use super::build::Built;
use super::{Form, Starts};
use crate::shell::step;

/// How many suites run at once that start servers: the last tests of one often only wait.
const LANES: usize = 2;
/// How many tests of each run at once then.
const THREADS_IN_LANE: &str = "2";
/// How many tests of a suite that runs alone run at once that start servers of their own: one more than the smallest machine has cores, for they often wait.
const THREADS: &str = "3";

/// How often it is looked whether a silent suite has ended.
const LOOK: Duration = Duration::from_millis(200);

/// In which way a suite runs.
struct Way<'a> {
    environment: &'a [(&'a str, String)],
    /// Stands before each of its lines: whose it is would not be clear otherwise.
    before: String,
    /// How many tests run at once that start servers.
    threads: &'static str,
}

impl<'a> Way<'a> {
    /// Nothing else runs beside it.
    fn alone(environment: &'a [(&'a str, String)]) -> Self {
        Self {
            environment,
            before: String::new(),
            threads: THREADS,
        }
    }
}

/// How tests ended.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) passed: usize,
    pub(crate) failed: usize,
    /// What failed, by path.
    pub(crate) faults: Vec<String>,
}

impl Tally {
    /// Runs the wanted tests of suites, with this in their environment: suites that start servers two at a time, those with the most tests first, so
    /// that none is left running alone at the end; others one after the other. A failure stops nothing.
    ///
    /// # Errors
    /// A suite cannot be started.
    pub(crate) fn run<'a>(
        &mut self,
        suites: impl IntoIterator<Item = &'a Built>,
        environment: &[(&str, String)],
    ) -> Result<()> {
        let wanted = suites.into_iter().filter(|built| !built.tests.is_empty());
        let (alone, mut together): (Vec<&Built>, Vec<&Built>) =
            wanted.partition(|built| built.suite.starts == Starts::Nothing);
        for built in alone {
            self.add(Tally::of(built, &Way::alone(environment))?);
        }
        together.sort_by_key(|built| Reverse(built.tests.len()));
        self.run_together(&together, environment)
    }

    fn run_together(&mut self, suites: &[&Built], environment: &[(&str, String)]) -> Result<()> {
        let next = AtomicUsize::new(0);
        let lane = || -> Result<Tally> {
            let mut tally = Tally::default();
            while let Some(built) = suites.get(next.fetch_add(1, Ordering::Relaxed)) {
                let way = match suites.len() {
                    1 => Way::alone(environment),
                    _ => Way {
                        environment,
                        before: format!("{}: ", built.suite.name),
                        threads: THREADS_IN_LANE,
                    },
                };
                tally.add(Tally::of(built, &way)?);
            }
            Ok(tally)
        };
        let lanes: Vec<Result<Tally>> = thread::scope(|scope| {
            let lanes: Vec<_> = (0..LANES).map(|_| scope.spawn(lane)).collect();
            let ended = lanes.into_iter().map(|lane| match lane.join() {
                Ok(tally) => tally,
                Err(panic) => std::panic::resume_unwind(panic),
            });
            ended.collect()
        });
        for tally in lanes {
            self.add(tally?);
        }
        Ok(())
    }

    /// Of one suite.
    fn of(built: &Built, way: &Way) -> Result<Tally> {
        // The program is the same for all suites.
        let shown = way.environment.iter();
        let shown = shown.filter(|(name, _)| *name != ProxyProcess::VARIABLE);
        let set: String = shown
            .map(|(name, value)| format!(", {name}={value}"))
            .collect();
        step(&format!("{}{set}", built.suite.title()));
        let mut tally = Tally::default();
        let ended_well = tally.run_one(built, way)?;
        tally.settle(&built.suite.place(), built.tests.len(), ended_well);
        Ok(tally)
    }

    /// Returns whether the program ended as one does whose tests have all passed.
    fn run_one(&mut self, built: &Built, way: &Way) -> Result<bool> {
        let mut command = built.run_command();
        match built.suite.starts {
            Starts::Nothing => {}
            Starts::MySql | Starts::Postgres | Starts::Both => {
                command.args(["--test-threads", way.threads]);
                if let Some(directory) = server_data_in_memory()? {
                    command.env(SERVER_DATA_VARIABLE, directory);
                }
            }
        }
        // What a simulation did is told in numbers.
        if built.suite.form == Form::Integration && built.suite.name == "simulation" {
            command.arg("--nocapture");
        }
        let environment = way.environment.iter();
        command.envs(environment.map(|(name, value)| (name, value)));
        let mut running = command
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("starting {}", built.suite.title()))?;
        let said = running.stdout.take().context("a suite says nothing")?;
        let lines = lines_of(said);
        let mut shown = std::io::stdout();
        let mut has_ended = false;
        loop {
            match lines.recv_timeout(LOOK) {
                Ok(line) => {
                    shown.write_all(&[way.before.as_bytes(), &line, b"\n"].concat())?;
                    self.read(&String::from_utf8_lossy(&line), |test| built.path_of(test));
                }
                // A server that a test left behind may hold the other end open.
                Err(RecvTimeoutError::Timeout) if has_ended => break,
                Err(RecvTimeoutError::Timeout) => has_ended = running.try_wait()?.is_some(),
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        Ok(running.wait()?.success())
    }

    /// Reads a line of libtest.
    fn read(&mut self, line: &str, path_of: impl Fn(&str) -> String) {
        let failed = line
            .strip_prefix("test ")
            .and_then(|rest| rest.strip_suffix(" ... FAILED"));
        if let Some(test) = failed {
            self.faults.push(path_of(test));
        }
        let Some(result) = line.strip_prefix("test result: ") else {
            return;
        };
        // `ok. 7 passed; 0 failed; 0 ignored; …`
        let number_of = |what: &str| {
            let before = result.split(&format!(" {what};")).next()?;
            before.rsplit(' ').next()?.parse::<usize>().ok()
        };
        self.passed += number_of("passed").unwrap_or(0);
        self.failed += number_of("failed").unwrap_or(0);
    }

    /// Counts as failed what was to run and did not end, and a program that failed although its tests passed.
    fn settle(&mut self, place: &str, expected: usize, ended_well: bool) {
        let ended = self.passed + self.failed;
        if ended != expected {
            self.failed += expected.abs_diff(ended);
            let fault = format!("{place}: {ended} of {expected} tests came to an end");
            self.faults.push(fault);
        } else if !ended_well && self.failed == 0 {
            self.failed += 1;
            self.faults
                .push(format!("{place}: it failed after its last test"));
        }
    }

    /// Adds the outcome of a step that is no suite.
    pub(crate) fn note(&mut self, what: &str, outcome: Result<()>) {
        if let Err(error) = outcome {
            println!("{what} failed: {error:#}");
            self.failed += 1;
            self.faults.push(what.to_owned());
        }
    }

    fn add(&mut self, other: Tally) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.faults.extend(other.faults);
    }

    /// Says what failed, if anything, and ends with the totals.
    ///
    /// # Errors
    /// Something failed, or nothing ran.
    pub(crate) fn close(&self, took_s: u64) -> Result<()> {
        if self.failed > 0 {
            step(&format!("failed, after {took_s} s:"));
            for fault in &self.faults {
                println!("    {fault}");
            }
        } else if self.passed > 0 {
            step(&format!("all passed in {took_s} s"));
        }
        println!("{} passed, {} failed", self.passed, self.failed);
        if self.failed > 0 {
            bail!("not everything passed");
        }
        if self.passed == 0 {
            bail!("no test ran");
        }
        Ok(())
    }
}

/// What is said, line by line, read by a thread of its own.
fn lines_of(said: ChildStdout) -> Receiver<Vec<u8>> {
    let (send, lines) = channel();
    thread::spawn(move || {
        for line in BufReader::new(said).split(b'\n').map_while(Result::ok) {
            if send.send(line).is_err() {
                return;
            }
        }
    });
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    const PASSED: &str = "test result: ok. 7 passed; 0 failed; 0 ignored; 0 measured; 2 filtered out; finished in 0.00s";

    fn read(lines: &[&str]) -> Tally {
        let mut tally = Tally::default();
        for line in lines {
            tally.read(line, |test| format!("core::src::{test}"));
        }
        tally
    }

    #[test]
    fn results_are_summed() {
        let failed =
            "test result: FAILED. 11 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out";
        let lines = ["test a::b ... ok", "test a::c ... FAILED", PASSED, failed];
        let expected = Tally {
            passed: 18,
            failed: 2,
            faults: vec!["core::src::a::c".to_owned()],
        };
        assert_eq!(read(&lines), expected);
    }

    #[test]
    fn tests_that_came_to_no_end_have_failed() {
        let mut died = read(&["test a::b ... ok"]);
        died.settle("core::src", 3, false);
        assert_eq!((died.passed, died.failed), (0, 3));
        assert_eq!(died.faults, ["core::src: 0 of 3 tests came to an end"]);
        let mut fewer = read(&[PASSED]);
        fewer.settle("core::src", 8, true);
        assert_eq!((fewer.passed, fewer.failed), (7, 1));
    }

    #[test]
    fn a_program_that_fails_after_its_tests_has_failed() {
        let mut tally = read(&[PASSED]);
        tally.settle("core::src", 7, false);
        assert_eq!(tally.failed, 1);
        assert!(tally.close(0).is_err());
    }

    #[test]
    fn no_test_is_no_success() {
        assert!(Tally::default().close(0).is_err());
        assert!(read(&[PASSED]).close(0).is_ok());
    }
}
