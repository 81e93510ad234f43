//! The extension's package, replaced by a later version and taken away, while sessions draw ids.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use keywright_testkit::{IdLog, WAIT_MAX, wait_until};

use super::machine::Machine;
use super::walk::{bring, psql};

const DATABASES: [&str; 2] = ["postgres", "second"];
/// What the old session says, and what ends it.
const OLD_SESSION: &str = "session.log";
const STOP: &str = "stop";
const SERVER_FAILS: &str = "a server that preloads a library which is gone started";

/// Every id that was seen, of both kinds and both databases.
struct Seen {
    snowflakes: IdLog,
    tags: [IdLog; 2],
}

impl Seen {
    /// Some of each in every database.
    fn draw(&self, machine: &Machine) -> Result<()> {
        for (database, tags) in DATABASES.iter().zip(&self.tags) {
            self.draw_in(machine, database, tags)?;
        }
        Ok(())
    }

    fn draw_in(&self, machine: &Machine, database: &str, tags: &IdLog) -> Result<()> {
        let of = |source: &str| {
            let sql = format!("SELECT {source} FROM generate_series(1, 300)");
            numbers(&psql(machine, database, &sql)?)
        };
        self.snowflakes.record(of("snowflake_id()")?);
        tags.record(of("next_biz_id('orders')")?);
        Ok(())
    }
}

/// Puts the later version's package over the one that is there; its database `postgres` has the extension and the tag `orders`.
/// Library and SQL change at different times: in one database the SQL first, in the other the library. Returns how many ids were seen.
pub(super) fn upgrade(machine: &Machine, deb: &Path, version: &str) -> Result<usize> {
    psql(machine, "postgres", "CREATE DATABASE second")?;
    let second = "CREATE EXTENSION keywright; SELECT keywright.set_worker_id(2), keywright.create_tag('orders')";
    psql(machine, "second", second)?;
    let seen = Seen {
        snowflakes: IdLog::new(),
        tags: [IdLog::new(), IdLog::new()],
    };
    seen.draw(machine)?;
    let tags =
        "SELECT id, tag, step, step_min, step_max, start, max, created_at FROM keywright.tag";
    let tags_before = psql(machine, "postgres", tags)?;
    let old_session = start_session(machine)?;

    bring(machine, &[deb])?;
    machine.must("apt install ./target/package/postgresql-15-keywright_*.deb")?;
    // The server runs the library that it preloaded, and the SQL is the one that this serves.
    seen.draw(machine)?;
    psql(machine, "postgres", "ALTER EXTENSION keywright UPDATE")?;
    let refused = machine.run("cd /; sudo -u postgres psql -c 'SELECT snowflake_id()'")?;
    for part in [
        format!("version \"{version}\", which the loaded library does not serve"),
        "restart the server".to_owned(),
    ] {
        ensure!(
            !refused.is_well && refused.text.contains(&part),
            "the older library with the later SQL said\n{}",
            refused.text
        );
    }
    // So is the session that has issued before.
    wait_until("the old session is refused", WAIT_MAX, || {
        let said = machine.read(OLD_SESSION)?;
        Ok(said
            .trim_end()
            .lines()
            .last()
            .is_some_and(|line| line.contains("restart the server")))
    })?;
    let [_, of_second] = &seen.tags;
    seen.draw_in(machine, "second", of_second)?;
    machine.must("systemctl restart postgresql")?;
    // The later library: with its own SQL, and with the one before.
    seen.draw(machine)?;
    psql(machine, "second", "ALTER EXTENSION keywright UPDATE")?;
    seen.draw(machine)?;

    for database in DATABASES {
        let later = "SELECT is_later, extversion FROM keywright.later, pg_extension WHERE extname = 'keywright'";
        let said = psql(machine, database, later)?;
        ensure!(
            said.trim() == format!("t|{version}"),
            "{database} says {said:?}"
        );
    }
    let tags_after = psql(machine, "postgres", tags)?;
    ensure!(
        tags_before == tags_after,
        "tags were {tags_before}, and are {tags_after}"
    );
    let [of_first, of_second] = &seen.tags;
    of_first.record(end_session(machine, old_session)?);
    let mut count = 0;
    for log in [&seen.snowflakes, of_first, of_second] {
        count += log.check()?.count;
    }
    Ok(count)
}

/// A session that was there before the upgrade, and draws until the server ends it.
fn start_session(machine: &Machine) -> Result<u32> {
    machine.must(&format!("rm --force {STOP}"))?;
    let ask = "SELECT next_biz_id('orders');";
    let psql = "sudo -u postgres psql --no-psqlrc --quiet --no-align --tuples-only";
    let line = format!("while ! test -e {STOP}; do echo \"{ask}\"; sleep 0.02; done | {psql}");
    machine.write("session.sh", &line)?;
    let id = machine.start("bash session.sh", OLD_SESSION)?;
    wait_until("the session draws", WAIT_MAX, || {
        Ok(machine.read(OLD_SESSION)?.lines().count() > 5)
    })?;
    Ok(id)
}

/// Ends it. Returns the ids that it was given; after the change of the SQL it may have been refused some.
fn end_session(machine: &Machine, id: u32) -> Result<Vec<i64>> {
    machine.write(STOP, "")?;
    wait_until("the session ends", WAIT_MAX, || {
        Ok(!machine.run(&format!("test -d /proc/{id}"))?.is_well)
    })?;
    let said = machine.read(OLD_SESSION)?;
    Ok(said.lines().filter_map(|line| line.parse().ok()).collect())
}

/// Taking the package away while it is preloaded is warned of, and the warning is right. With the package back, ids go on.
pub(super) fn removal(machine: &Machine, deb: &Path, preloads: &str) -> Result<()> {
    let ids = IdLog::new();
    let draw = || -> Result<()> {
        ids.record(numbers(&psql(
            machine,
            "postgres",
            "SELECT snowflake_id()",
        )?)?);
        Ok(())
    };
    draw()?;
    let said = machine.must("apt remove postgresql-15-keywright")?;
    let warning = format!("warning: {preloads} preloads keywright");
    ensure!(said.contains(&warning), "no {warning:?} in\n{said}");
    // The server looks for the file of a function also where its library is loaded.
    ensure!(draw().is_err(), "ids were issued without a library");
    machine.run("systemctl restart postgresql@15-main")?;
    let is_up = machine.run("pg_lsclusters --no-header | grep --quiet online")?;
    ensure!(!is_up.is_well, SERVER_FAILS);
    bring(machine, &[deb])?;
    machine.must("apt install ./target/package/postgresql-15-keywright_*.deb")?;
    machine.must("systemctl reset-failed; systemctl restart postgresql@15-main")?;
    draw()?;
    ids.check()?;
    Ok(())
}

fn numbers(said: &str) -> Result<Vec<i64>> {
    let numbers = said.lines().map(|line| line.trim().parse::<i64>());
    numbers
        .collect::<Result<_, _>>()
        .with_context(|| format!("ids that are no numbers: {said}"))
}
