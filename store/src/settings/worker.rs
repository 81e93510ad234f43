//! Which worker id a program insists on, if it does; which are leased, and which assigned.

use keywright_core::{Layout, WorkerId};

use super::EngineSettings;
use super::problems::Problems;
use super::raw::RawSnowflakeSettings;
use crate::host::host;
use crate::lease::space::Space;
use crate::worker_ids::{IdRange, NumberTable, WorkerIds};

/// The ranges. One that is none is told among the problems, as are those that meet, or that the layout does not have.
pub(super) fn worker_ids(
    raw: &RawSnowflakeSettings,
    layout: &Layout,
    problems: &mut Problems,
) -> WorkerIds {
    let mut range = |option: &str, text: &Option<String>| {
        let setting = format!("snowflake.{option}");
        let range = IdRange::parse(text.as_deref()?);
        let range = range.map_err(|error| problems.add(&setting, error.to_string()));
        let range = range.ok()?;
        let largest = layout.worker_id_max();
        if range.last > largest {
            let problem = format!("ends above {largest}, the layout's largest worker id");
            problems.add(&setting, problem);
        }
        Some(range)
    };
    let ids = WorkerIds {
        leased: range("leased_worker_ids", &raw.leased_worker_ids),
        fed: range("fed_worker_ids", &raw.fed_worker_ids),
        assigned: range("assigned_worker_ids", &raw.assigned_worker_ids),
        table: table(raw, problems),
    };
    let named = [
        ("leased_worker_ids", ids.leased),
        ("fed_worker_ids", ids.fed),
        ("assigned_worker_ids", ids.assigned),
    ];
    for (place, (option, range)) in named.into_iter().enumerate() {
        for (other, its) in named.into_iter().take(place) {
            if let (Some(range), Some(its)) = (range, its)
                && range.meets(&its)
            {
                problems.add(
                    &format!("snowflake.{option}"),
                    format!("{range} and {other}, {its}, have numbers in common"),
                );
            }
        }
    }
    ids
}

/// Numbers of a table may be any, so nothing else may give some.
fn table(raw: &RawSnowflakeSettings, problems: &mut Problems) -> Option<NumberTable> {
    const SETTING: &str = "snowflake.worker_id_table";
    let text = raw.worker_id_table.as_deref()?;
    for (option, is_there) in [
        ("worker_id", raw.worker_id.is_some()),
        ("worker_id_env", raw.worker_id_env.is_some()),
        ("worker_id_from_host", raw.worker_id_from_host),
        ("leased_worker_ids", raw.leased_worker_ids.is_some()),
        ("fed_worker_ids", raw.fed_worker_ids.is_some()),
        ("assigned_worker_ids", raw.assigned_worker_ids.is_some()),
    ] {
        if is_there {
            problems.add(
                SETTING,
                format!("excludes {option}: its numbers may be any"),
            );
        }
    }
    let table = NumberTable::parse(text);
    table
        .map_err(|error| problems.add(SETTING, error.to_string()))
        .ok()
}

/// UidGenerator's table is in MySQL.
pub(super) fn check_table(engine: &EngineSettings, ids: &WorkerIds, problems: &mut Problems) {
    if ids.table.is_none() {
        return;
    }
    match engine {
        EngineSettings::MySql(_) => {}
        EngineSettings::Postgres(_)
        | EngineSettings::Etcd(_)
        | EngineSettings::File(_)
        | EngineSettings::Redis(_) => {
            problems.add("snowflake.worker_id_table", "is for a store in MySQL");
        }
    }
}

/// A program that insists on a number may lease it.
pub(super) fn check_leased(worker_id: Option<WorkerId>, ids: &WorkerIds, problems: &mut Problems) {
    let Some(worker_id) = worker_id.map(WorkerId::get) else {
        return;
    };
    if !ids.leasable(Space::Snowflake).has(worker_id) {
        problems.add(
            "snowflake.worker_id",
            format!("{worker_id} is not among leased_worker_ids ({ids})"),
        );
    }
}

/// `Err`: it is told among the problems.
pub(super) fn worker_id(
    raw: &RawSnowflakeSettings,
    layout: &Layout,
    problems: &mut Problems,
) -> Result<Option<WorkerId>, ()> {
    let said = [
        raw.worker_id.is_some(),
        raw.worker_id_env.is_some(),
        raw.worker_id_from_host,
    ];
    if said.into_iter().filter(|is_said| *is_said).count() > 1 {
        let problem = "worker_id, worker_id_env and worker_id_from_host exclude each other";
        problems.add("snowflake.worker_id", problem);
        return Err(());
    }
    let (option, number) = match (&raw.worker_id_env, raw.worker_id_from_host) {
        (Some(name), _) => ("worker_id_env", in_variable(name).map(Some)),
        (None, true) => ("worker_id_from_host", ordinal(&host()).map(Some)),
        (None, false) => ("worker_id", Ok(raw.worker_id)),
    };
    let worker_id = number.and_then(|number| {
        let checked = number.map(|number| WorkerId::new(number, layout));
        checked.transpose().map_err(|error| error.to_string())
    });
    worker_id.map_err(|problem| problems.add(&format!("snowflake.{option}"), problem))
}

fn in_variable(name: &str) -> Result<i64, String> {
    if name.is_empty() || name.contains(['=', '\0']) {
        return Err("names no environment variable".to_owned());
    }
    let value = std::env::var(name)
        .map_err(|_| format!("the environment has no variable \"{name}\" that is text"))?;
    // What is in it is not shown: it may be the wrong variable, and a password.
    let number = value.trim().parse();
    number.map_err(|_| format!("the variable \"{name}\" is no number"))
}

/// The number that a host's name ends with, behind a dash, as pods of a StatefulSet are named; without the domain.
fn ordinal(host: &str) -> Result<i64, String> {
    let name = host.split('.').next().unwrap_or(host);
    let number = name
        .rsplit_once('-')
        .map(|(_, number)| number)
        .filter(|number| number.bytes().all(|byte| byte.is_ascii_digit()))
        .and_then(|number| number.parse().ok());
    number.ok_or_else(|| {
        format!("the host's name, \"{host}\", does not end with a number behind a dash")
    })
}

#[cfg(test)]
mod tests {
    use keywright_core::Preset;

    use super::*;

    #[test]
    fn hosts_are_numbered_behind_the_last_dash() {
        assert_eq!(ordinal("shop-3"), Ok(3));
        assert_eq!(ordinal("key-wright-12.keys.default.svc"), Ok(12));
        for host in [
            "shop", "shop3", "shop-", "shop-3a", "shop-+3", "3", "a-b.c-4",
        ] {
            assert!(ordinal(host).is_err(), "{host}");
        }
    }

    #[test]
    fn what_is_no_worker_id_is_told_with_the_option() {
        let layout = Preset::Twitter.layout();
        let told = |raw: RawSnowflakeSettings| {
            let mut problems = Problems::default();
            let found = worker_id(&raw, &layout, &mut problems);
            let told: Vec<String> = problems.0.iter().map(ToString::to_string).collect();
            (found.map(|found| found.map(WorkerId::get)), told.join("; "))
        };
        let default = RawSnowflakeSettings::default;
        assert_eq!(told(default()), (Ok(None), String::new()));
        let of_variable = |name: &str| RawSnowflakeSettings {
            worker_id_env: Some(name.to_owned()),
            ..default()
        };
        let (found, problem) = told(of_variable("NO_SUCH_VARIABLE"));
        assert_eq!(found, Err(()));
        assert!(problem.starts_with("snowflake.worker_id_env: the environment has no variable"));
        // Set wherever tests run, and no number.
        let (_, problem) = told(of_variable("PATH"));
        assert!(problem.ends_with("\"PATH\" is no number"), "{problem}");
        let (found, problem) = told(RawSnowflakeSettings {
            worker_id: Some(1_024),
            ..default()
        });
        assert_eq!(found, Err(()));
        assert!(problem.starts_with("snowflake.worker_id: "), "{problem}");
        let (_, problem) = told(RawSnowflakeSettings {
            worker_id: Some(1),
            ..of_variable("PATH")
        });
        assert!(problem.contains("exclude each other"), "{problem}");
    }
}
