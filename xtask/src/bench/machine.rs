//! What a run ran on: figures without it mean nothing.

use std::fs;
use std::process::Command;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};
use keywright_testkit::redis::RedisTools;
use keywright_testkit::{MariaServer, PgServer, query_text, workspace_root};

use crate::shell::output;

/// Processes that wanted to run, as an average over the last minute.
pub(super) fn load() -> Result<String> {
    let text = fs::read_to_string("/proc/loadavg").context("reading /proc/loadavg")?;
    Ok(text.split(' ').next().unwrap_or_default().to_owned())
}

/// Name and value, for the reader.
pub(super) fn facts(
    server: &PgServer,
    rounds: u16,
    load_before: String,
    took: Duration,
) -> Result<Vec<(&'static str, String)>> {
    let mut client = server.client("postgres")?;
    let mut ask = |expression: &str| -> Result<String> {
        Ok(query_text(&mut client, &format!("SELECT {expression}"))?)
    };
    let date = ask("to_char(now() AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI') || ' UTC'")?;
    let mut facts = of_this_machine(date, rounds, load_before, took)?;
    facts.extend([
        ("PostgreSQL", ask("split_part(version(), ',', 1)")?),
        (
            "keywright",
            ask("extversion FROM pg_extension WHERE extname = 'keywright'")?,
        ),
        (
            "durability",
            ask(
                "format('fsync %s, synchronous_commit %s, wal_sync_method %s', current_setting('fsync'), \
                 current_setting('synchronous_commit'), current_setting('wal_sync_method'))",
            )?,
        ),
        ("file system", file_system(server)?),
        (
            "other settings",
            ask(
                "string_agg(name || ' ' || current_setting(name), ', ' ORDER BY name) FROM pg_settings \
                 WHERE name IN ('autovacuum', 'checkpoint_timeout', 'jit', 'keywright.lead_ms_max', \
                 'max_connections', 'max_parallel_workers_per_gather', 'shared_buffers')",
            )?,
        ),
    ]);
    Ok(facts)
}

/// The same for a run of proxies.
pub(super) fn facts_of_proxies(
    server: &MariaServer,
    rounds: u16,
    load_before: String,
    took: Duration,
) -> Result<Vec<(&'static str, String)>> {
    let ask = |expression: &str| -> Result<String> {
        let rows = server.run("mysql", &format!("SELECT {expression}"))?;
        let cell = rows.into_iter().flatten().next();
        cell.with_context(|| format!("{expression} has no value"))
    };
    let date = ask("date_format(utc_timestamp(), '%Y-%m-%d %H:%i UTC')")?;
    let mut facts = of_this_machine(date, rounds, load_before, took)?;
    let first_line = |program: &str, argument: &str| -> Result<String> {
        let said = output(Command::new(program).arg(argument))?;
        Ok(said.lines().next().unwrap_or_default().to_owned())
    };
    facts.extend([
        ("server", ask("concat(@@version_comment, ' ', version())")?),
        ("HAProxy", first_line("/usr/sbin/haproxy", "-v")?),
        ("client", first_line("sysbench", "--version")?),
        (
            "durability",
            ask("concat('innodb_flush_log_at_trx_commit ', @@innodb_flush_log_at_trx_commit)")?,
        ),
    ]);
    Ok(facts)
}

/// The same for a run of key ports.
pub(super) fn facts_of_ports(
    tools: &RedisTools,
    rounds: u16,
    load_before: String,
    took: Duration,
) -> Result<Vec<(&'static str, String)>> {
    let date = output(Command::new("date").args(["-u", "+%F %R UTC"]))?;
    let mut facts = of_this_machine(date.trim().to_owned(), rounds, load_before, took)?;
    let redis = output(tools.command("redis-server")?.arg("--version"))?;
    facts.push(("redis-server", redis.trim().to_owned()));
    Ok(facts)
}

/// The same of stores.
pub(super) fn facts_of_stores(
    rounds: u16,
    load_before: String,
    took: Duration,
) -> Result<Vec<(&'static str, String)>> {
    let date = output(Command::new("date").args(["-u", "+%F %R UTC"]))?;
    of_this_machine(date.trim().to_owned(), rounds, load_before, took)
}

/// CPU time that a process has used, nanoseconds.
pub(super) fn cpu_ns(pid: u32) -> Result<u64> {
    let tasks = format!("/proc/{pid}/task");
    let mut all = 0;
    for task in fs::read_dir(&tasks).with_context(|| format!("reading {tasks}"))? {
        let text = fs::read_to_string(task?.path().join("schedstat"))?;
        let ns: u64 = text.split(' ').next().unwrap_or_default().parse()?;
        all += ns;
    }
    Ok(all)
}

/// Memory of a process that nobody shares, kilobytes.
pub(super) fn dirty_kb(pid: u32) -> Result<f64> {
    let path = format!("/proc/{pid}/smaps_rollup");
    let text = fs::read_to_string(&path).with_context(|| format!("reading {path}"))?;
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("Private_Dirty:"));
    let kb = line.and_then(|line| line.trim().strip_suffix(" kB"));
    Ok(kb.context("no Private_Dirty")?.trim().parse()?)
}

fn of_this_machine(
    date: String,
    rounds: u16,
    load_before: String,
    took: Duration,
) -> Result<Vec<(&'static str, String)>> {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let kernel =
        fs::read_to_string("/proc/sys/kernel/osrelease").context("asking for the kernel")?;
    Ok(vec![
        ("date", date),
        ("commit", commit()?),
        ("rounds", format!("{rounds}, in {} s", took.as_secs())),
        (
            "load before",
            format!("{load_before} on average over a minute; near 0 when nothing else runs"),
        ),
        ("processor", format!("{cores} × {}", processor()?)),
        ("kernel", format!("Linux {}", kernel.trim())),
    ])
}

fn commit() -> Result<String> {
    let root = workspace_root();
    let git = |arguments: &[&str]| {
        let mut command = Command::new("git");
        output(command.arg("-C").arg(&root).args(arguments))
    };
    // A tarball has no history, and the benchmark works there too.
    let Ok(commit) = git(&["rev-parse", "--short", "HEAD"]) else {
        return Ok("not a git checkout".to_owned());
    };
    let changed = git(&[
        "status",
        "--porcelain",
        "--",
        "core",
        "pg_ext",
        "rewrite",
        "session",
        "store",
        "proxy",
        "wire",
        "Cargo.lock",
    ])?;
    Ok(if changed.is_empty() {
        commit
    } else {
        format!("{commit} with uncommitted changes")
    })
}

fn processor() -> Result<String> {
    let text = fs::read_to_string("/proc/cpuinfo").context("reading /proc/cpuinfo")?;
    let model = text
        .lines()
        .find_map(|line| line.strip_prefix("model name"))
        .map(|rest| rest.trim_start_matches([' ', '\t', ':']));
    // Not every architecture names it.
    Ok(model.unwrap_or(std::env::consts::ARCH).to_owned())
}

fn file_system(server: &PgServer) -> Result<String> {
    let mut command = Command::new("df");
    command.arg("--output=fstype").arg(server.data_dir());
    let said = output(&mut command)?;
    Ok(said.lines().last().unwrap_or_default().trim().to_owned())
}
