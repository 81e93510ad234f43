//! Carrying out what pages say, on a machine.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use super::machine::Machine;
use super::page::Block;
use super::says::{Numbers, compare};
use crate::install::PG_CONFIG;

/// A walk: what was done since it began.
pub(super) struct Walk<'a> {
    pub(super) machine: &'a Machine,
    began: Instant,
}

impl<'a> Walk<'a> {
    pub(super) fn begin(machine: &'a Machine) -> Walk<'a> {
        Walk {
            machine,
            began: Instant::now(),
        }
    }

    pub(super) fn took(&self) -> Duration {
        self.began.elapsed()
    }

    /// Each line of a block as a command. Returns what the last one said.
    pub(super) fn shell(&self, block: &Block) -> Result<String> {
        let mut said = String::new();
        for line in &block.lines {
            said = self.line(block, line)?;
        }
        Ok(said)
    }

    /// One line of a block. That the packages are made was done before the walk, where Rust is.
    pub(super) fn line(&self, block: &Block, line: &str) -> Result<String> {
        let command = without_comment(line);
        if command.is_empty() || made_before().iter().any(|line| line == command) {
            return Ok(String::new());
        }
        let said = self.machine.run(line)?;
        println!("    {:6.1} s  {command}", said.took.as_secs_f64());
        if !said.is_well {
            bail!(
                "{}: `{command}` failed, and said\n{}",
                block.place,
                said.text
            );
        }
        Ok(said.text)
    }

    /// The statements of a block, in PostgreSQL. A comment that is a number says how long the one is that the statement returns.
    pub(super) fn psql(&self, block: &Block) -> Result<()> {
        let mut statement = String::new();
        for line in &block.lines {
            statement.push_str(line);
            statement.push('\n');
            let code = line.split(" --").next().unwrap_or_default();
            if !code.trim_end().ends_with(';') {
                continue;
            }
            let said = psql(self.machine, "postgres", &statement)
                .with_context(|| format!("{}: {line}", block.place))?;
            let comment = line.rsplit_once("-- ").map(|(_, comment)| comment.trim());
            if let Some(wanted) = comment.filter(|comment| is_number(comment)) {
                let said = said.trim();
                if !is_number(said) || said.len() != wanted.len() {
                    bail!("{}: {line:?} returned {said:?}", block.place);
                }
            }
            statement.clear();
        }
        Ok(())
    }

    /// The commands of a block, each compared with what is shown behind it. What a command does not say itself is waited for in the log.
    pub(super) fn console(&self, block: &Block, numbers: Numbers, log: Option<&str>) -> Result<()> {
        for (command, shown) in block.exchanges()? {
            let before = log.map(|log| self.machine.read(log)).transpose()?;
            let said = self.machine.run(&command)?;
            if shown.is_empty() && !said.is_well {
                bail!(
                    "{}: `{command}` failed, and said\n{}",
                    block.place,
                    said.text
                );
            }
            println!(
                "    {:6.1} s  {}",
                said.took.as_secs_f64(),
                without_comment(&command)
            );
            if compare(&block.place, &shown, &said.text, numbers).is_ok() {
                continue;
            }
            let (Some(log), Some(before)) = (log, before) else {
                return compare(&block.place, &shown, &said.text, numbers);
            };
            let mut outcome = Ok(());
            let waited = keywright_testkit::wait_until(
                "what the page shows",
                super::figure::LOG_WAIT_MAX,
                || {
                    let log = self.machine.read(log)?;
                    let new = log.get(before.len()..).unwrap_or_default();
                    outcome = compare(&block.place, &shown, new, numbers);
                    Ok(outcome.is_ok())
                },
            );
            if waited.is_err() {
                return outcome;
            }
        }
        Ok(())
    }
}

/// The lines that make packages.
fn made_before() -> [String; 3] {
    [
        "cargo xtask package --only postgres".to_owned(),
        format!("cargo xtask package --only postgres --pg-config {PG_CONFIG}"),
        "cargo xtask package --only mysql".to_owned(),
    ]
}

/// SQL in a database of the machine's PostgreSQL, as its superuser.
pub(super) fn psql(machine: &Machine, database: &str, sql: &str) -> Result<String> {
    let psql =
        "sudo -u postgres psql --no-psqlrc --quiet --no-align --tuples-only --set ON_ERROR_STOP=1";
    machine.must(&format!(
        "cd /; {psql} {database} <<'END_OF_SQL'\n{sql}\nEND_OF_SQL"
    ))
}

/// Puts the packages where the pages have them.
pub(super) fn bring(machine: &Machine, debs: &[&Path]) -> Result<()> {
    machine.must("mkdir --parents target/package; rm --force target/package/*")?;
    for deb in debs {
        let name = deb.file_name().context("a package without a name")?;
        let to = machine.path("target/package").join(name);
        std::fs::copy(deb, &to).with_context(|| format!("copying to {}", to.display()))?;
    }
    Ok(())
}

fn without_comment(line: &str) -> &str {
    line.split(" #").next().unwrap_or_default().trim()
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::made_before;
    use crate::Arguments;

    /// Nobody types them on a walk.
    #[test]
    fn lines_that_make_packages_are_commands() {
        for line in made_before() {
            let words = line.split(' ').skip(1);
            assert!(Arguments::try_parse_from(words).is_ok(), "{line}");
        }
    }
}
