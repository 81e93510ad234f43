//! `worker`: worker ids of PostgreSQL databases, given for good.

use std::time::{Duration, SystemTime};

use anyhow::{Result, anyhow};
use clap::{ArgGroup, Args, Subcommand};
use keywright_store::assignment::{AssignedRow, AssignmentState};
use keywright_store::{
    AssignError, Assigning, Failure, ReleasedNumber, WorkerRow, release_worker_id,
};
use serde_json::json;

use super::target::Target;
use super::{File, Format, with_store};

/// The first moment of the year 10000, which has no form in RFC 3339, seconds since 1970.
const YEAR_10000_S: u64 = 253_402_300_800;

#[derive(Args)]
pub(crate) struct Worker {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Assign a PostgreSQL database a worker id that no other has, or check that it still has it. Run it as often as you like.
    ///
    /// The first time, the database gets the next number of assigned_worker_ids, and issues snowflake ids with it at once. Later it keeps the number.
    /// Each time, the database and the store agree on a new mark. Of two databases with one mark, a copy and its original, the second that asks is
    /// suspended, and this command fails.
    Assign(Assign),
    /// List the worker ids that databases were assigned, and those that programs lease.
    List(List),
    /// Take a worker id back.
    ///
    /// With --database, the database gives the number up and reports how far it used it. Another database may get it later, above that. With --gone, for
    /// a database that no longer exists, nobody gets it again.
    Release(Release),
    /// Tell a store that was restored from a backup how far worker ids were assigned.
    Advance(Advance),
}

#[derive(Args)]
#[command(group = ArgGroup::new("whose").required(true).args(["database"]))]
struct Assign {
    #[command(flatten)]
    file: File,
    #[command(flatten)]
    target: Target,
    /// Assign a new number: for a copy, whose original goes on with the old one, or in place of a number that was set by hand.
    #[arg(long)]
    new: bool,
}

#[derive(Args)]
struct List {
    #[command(flatten)]
    file: File,
    /// How it is printed.
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

#[derive(Args)]
#[command(group = ArgGroup::new("how").required(true).args(["database", "gone"]))]
struct Release {
    /// The worker id.
    number: u32,
    #[command(flatten)]
    file: File,
    #[command(flatten)]
    target: Target,
    /// The database no longer exists, nor does any copy of it. You vouch for that.
    #[arg(long)]
    gone: bool,
}

#[derive(Args)]
struct Advance {
    #[command(flatten)]
    file: File,
    /// The largest worker id that any database was assigned. The databases themselves show it.
    #[arg(long, value_name = "NUMBER")]
    above: u32,
}

impl Worker {
    pub(crate) fn run(&self) -> Result<()> {
        match &self.command {
            Command::Assign(assign) => assign.run(),
            Command::List(list) => list.run(),
            Command::Release(release) => release.run(),
            Command::Advance(advance) => advance.run(),
        }
    }
}

fn told(error: &AssignError) -> anyhow::Error {
    match error.hint() {
        Some(hint) => anyhow!("{error} ({hint})"),
        None => anyhow!("{error}"),
    }
}

fn failed(failure: Failure) -> anyhow::Error {
    anyhow!("{failure}")
}

impl Assign {
    fn run(&self) -> Result<()> {
        with_store(&self.file, async |keys| {
            let database = self.target.connect().await?;
            let place = database.place().to_owned();
            let assigned = Assigning::new(keys, database, self.new).run().await;
            let assigned = assigned.map_err(|error| told(&error))?;
            let worker_id = assigned.worker_id;
            match (assigned.is_new, assigned.before) {
                (true, None) => println!("database {place} has worker id {worker_id} from now on"),
                (true, Some(before)) => println!(
                    "database {place} has worker id {worker_id} from now on, in place of {before}; a bucket of readable ids that was chosen \
                     must be chosen anew"
                ),
                (false, _) => println!("database {place} has worker id {worker_id}"),
            }
            Ok(())
        })
    }
}

impl Release {
    fn run(&self) -> Result<()> {
        let number = self.number;
        with_store(&self.file, async |keys| {
            if self.gone {
                keys.retire_worker_id(number).await.map_err(failed)?;
                println!("worker id {number} is never given again");
                return Ok(());
            }
            let database = self.target.connect().await?;
            let released = release_worker_id(&keys, &database, number).await;
            match released.map_err(|error| told(&error))? {
                ReleasedNumber::Released => println!(
                    "database {} has no worker id any more; {number} is given to another when all others are used up, above its ids",
                    database.place()
                ),
                ReleasedNumber::Retired | ReleasedNumber::NotAssigned => println!(
                    "database {} has no worker id any more; {number} is never given again, because its ids are of another layout",
                    database.place()
                ),
            }
            Ok(())
        })
    }
}

impl Advance {
    fn run(&self) -> Result<()> {
        with_store(&self.file, async |keys| {
            let next = keys.advance_worker_ids(self.above).await.map_err(failed)?;
            println!("the next worker id that is assigned is {next}");
            Ok(())
        })
    }
}

impl List {
    fn run(&self) -> Result<()> {
        with_store(&self.file, async |keys| {
            let assigned = keys.assigned().await.map_err(failed)?;
            let leased = keys.workers().await.map_err(failed)?;
            match self.format {
                Format::Text => {
                    for row in &assigned {
                        println!("{}", line(row));
                    }
                    for row in leased.iter().filter(|row| is_worker_id(row)) {
                        println!("{}", line_of_leased(row));
                    }
                }
                Format::Json => {
                    let assigned: Vec<_> = assigned.iter().map(document).collect();
                    let leased = leased.iter().filter(|row| is_worker_id(row));
                    let leased: Vec<_> = leased.map(document_of_leased).collect();
                    println!("{}", json!({ "assigned": assigned, "leased": leased }));
                }
            }
            Ok(())
        })
    }
}

/// To the second; as the store has it where that is no moment that can be written so.
fn moment(unix_ms: i64) -> String {
    let seconds = u64::try_from(unix_ms).map(|ms| ms / 1_000).ok();
    let seconds = seconds.filter(|seconds| *seconds < YEAR_10000_S);
    let at = seconds
        .and_then(|seconds| SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(seconds)));
    match at {
        Some(at) => humantime::format_rfc3339_seconds(at).to_string(),
        None => format!("{unix_ms} ms"),
    }
}

/// A number, who has it and since when.
fn line(row: &AssignedRow) -> String {
    let AssignedRow {
        worker_id,
        state,
        database,
        ..
    } = row;
    let place = &database.place;
    let mut line = match state {
        AssignmentState::Assigned => format!(
            "{worker_id} assigned to {place} since {}, asked {}",
            moment(row.assigned_at_ms),
            moment(row.asked_at_ms)
        ),
        AssignmentState::Released | AssignmentState::Retired => format!(
            "{worker_id} {} by {place} at {}",
            state.name(),
            row.released_at_ms.map_or("?".to_owned(), moment)
        ),
    };
    let is_unconfirmed = *state == AssignmentState::Assigned && !row.is_used;
    for (is_so, what) in [
        (is_unconfirmed, "not used yet: its ask broke off"),
        (row.is_restored, "from before the store was restored"),
    ] {
        if is_so {
            line = format!("{line}; {what}");
        }
    }
    match &row.report {
        Some(report) => format!("{line}; {report}"),
        None => line,
    }
}

/// Of a program, or of a database that is fed; the others are buckets.
fn is_worker_id(row: &WorkerRow) -> bool {
    ["snowflake", "fed"].contains(&row.space.as_str())
}

fn line_of_leased(row: &WorkerRow) -> String {
    let holder = row.told_holder().unwrap_or("nobody");
    match row.is_leased {
        true => format!("{} leased by {holder}", row.worker_id),
        false => format!("{} free, last leased by {holder}", row.worker_id),
    }
}

fn document(row: &AssignedRow) -> serde_json::Value {
    json!({
        "worker_id": row.worker_id,
        "state": row.state.name(),
        "database": row.database.place,
        "system": row.database.system,
        "oid": row.database.oid,
        "used": row.is_used,
        "assigned_at": moment(row.assigned_at_ms),
        "asked_at": moment(row.asked_at_ms),
        "released_at": row.released_at_ms.map(moment),
        "bound_ms": row.bound_ms,
        "restored": row.is_restored,
        "report": row.report,
    })
}

fn document_of_leased(row: &WorkerRow) -> serde_json::Value {
    json!({
        "worker_id": row.worker_id,
        "is_leased": row.is_leased,
        "holder": row.told_holder(),
    })
}

#[cfg(test)]
mod tests {
    use keywright_core::Mark;
    use keywright_store::assignment::DatabaseName;

    use super::*;

    #[test]
    fn what_is_no_moment_is_shown_as_it_stands_in_the_store() {
        for (unix_ms, shown) in [
            (0, "1970-01-01T00:00:00Z"),
            (253_402_300_799_999, "9999-12-31T23:59:59Z"),
            (253_402_300_800_000, "253402300800000 ms"),
            (i64::MAX, "9223372036854775807 ms"),
            (-1, "-1 ms"),
            (i64::MIN, "-9223372036854775808 ms"),
        ] {
            assert_eq!(moment(unix_ms), shown);
        }
    }

    #[test]
    fn a_store_that_has_gone_back_is_told_until_that_is_made_up_for() {
        let row = |hi_ms| WorkerRow {
            space: "snowflake".to_owned(),
            worker_id: 3,
            is_leased: false,
            holder: Some("db1 pid 7, gone back behind 500".to_owned()),
            epoch: 1,
            hi_ms,
            layout: "twitter".to_owned(),
        };
        let free = "3 free, last leased by db1 pid 7";
        assert_eq!(line_of_leased(&row(500)), free);
        assert_eq!(
            line_of_leased(&row(499)),
            format!("{free}, gone back behind 500")
        );
        assert_eq!(document_of_leased(&row(500))["holder"], "db1 pid 7");
    }

    #[test]
    fn a_number_is_shown_with_who_has_it_and_what_became_of_it() {
        let assigned = AssignedRow {
            worker_id: 512,
            state: AssignmentState::Assigned,
            mark: Mark { asks: 1, random: 1 },
            next: None,
            asks: 1,
            is_used: true,
            bound_ms: None,
            database: DatabaseName {
                system: "7".to_owned(),
                oid: 5,
                place: "db1:5432/shop".to_owned(),
            },
            assigned_at_ms: 1_795_219_200_123,
            asked_at_ms: 1_795_219_260_000,
            released_at_ms: None,
            is_restored: false,
            report: None,
        };
        assert_eq!(
            line(&assigned),
            "512 assigned to db1:5432/shop since 2026-11-21T00:00:00Z, asked 2026-11-21T00:01:00Z"
        );
        let copied = AssignedRow {
            is_used: false,
            report: Some("a copy".to_owned()),
            ..assigned.clone()
        };
        assert!(line(&copied).ends_with("; not used yet: its ask broke off; a copy"));
        let released = AssignedRow {
            state: AssignmentState::Released,
            released_at_ms: Some(1_795_219_260_000),
            ..assigned
        };
        assert_eq!(
            line(&released),
            "512 released by db1:5432/shop at 2026-11-21T00:01:00Z"
        );
    }
}
