//! The program as the service manager runs it: passwords as credentials, reloads, another version.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use keywright_testkit::{IdLog, WAIT_MAX, wait_until};

use super::machine::Machine;
use super::mysql::insert;
use super::page::Page;
use super::walk::{Walk, bring};

pub(super) const CONFIG: &str = "/etc/keywright/keywright.toml";
/// The page that says where passwords are put.
pub(super) const SECURITY: &str = "docs/mysql/security.md";
/// And the one that says how a new program takes over.
pub(super) const ROLLING: &str = "docs/mysql/rolling-upgrade.md";
pub(super) const SERVICE: &str = "keywright.service";
/// Credentials: file, password, and the option that names it.
const SECRETS: [(&str, &str, &str); 2] = [
    ("store", "store", "password_file"),
    ("admin", "admin", "admin_password_file"),
];

/// The unit has no line that its service manager does not know.
pub(super) fn verify(machine: &Machine) -> Result<()> {
    let said = machine.run(&format!("systemd-analyze verify --man=no {SERVICE}"))?;
    // It prints unknown keys, and calls that success. A bare root has no manual to look in.
    ensure!(
        said.is_well && said.text.is_empty(),
        "systemd-analyze verify said\n{}",
        said.text
    );
    Ok(())
}

/// Passwords leave the configuration for the directory that only root reads, as the page says.
pub(super) fn credentials(machine: &Machine, ids: &IdLog) -> Result<()> {
    let mut config = machine.read(CONFIG)?;
    for (file, password, option) in SECRETS {
        machine.must(&format!(
            "umask 077 && echo {password} >/etc/keywright/secrets/{file}"
        ))?;
        let path = format!("/run/credentials/{SERVICE}/secrets_{file}");
        let lines = config.lines().map(|line| {
            let with = format!(":{password}@");
            if line.contains(&with) {
                format!("{}\n{option} = \"{path}\"", line.replace(&with, "@"))
            } else {
                line.to_owned()
            }
        });
        config = lines.collect::<Vec<_>>().join("\n") + "\n";
        ensure!(
            config.contains(&path),
            "no password was taken out of\n{config}"
        );
    }
    machine.write(CONFIG, &config)?;
    machine.must(&format!("systemctl stop {SERVICE}"))?;
    let mut page = Page::read(SECURITY)?;
    Walk::begin(machine).shell(&page.next("shell")?)?;
    page.end()?;
    machine.must(&format!("systemctl start {SERVICE}"))?;
    // While it runs, root reads what it reads.
    machine.must(&format!("keywright check --config {CONFIG}"))?;
    draw(machine, ids)?;
    let id = main_process(machine)?;
    let runs_as = machine.must(&format!("stat --format=%u /proc/{id}"))?;
    ensure!(runs_as.trim() != "0", "the program runs as root");
    Ok(())
}

/// A reload with a configuration that is refused fails, and the program goes on; with a good one it is taken.
pub(super) fn reload(machine: &Machine, ids: &IdLog) -> Result<()> {
    let good = machine.read(CONFIG)?;
    let before = main_process(machine)?;
    machine.write(CONFIG, &good.replace("[[rule]]", "[[rules]]"))?;
    let said = machine.run(&format!("systemctl reload {SERVICE}"))?;
    ensure!(
        !said.is_well,
        "a reload with a section that does not exist succeeded"
    );
    draw(machine, ids)?;
    machine.write(CONFIG, &good)?;
    machine.must(&format!("systemctl reload {SERVICE}"))?;
    wait_until("the reload", WAIT_MAX, || {
        let log = machine.must(&format!("journalctl --unit {SERVICE} --no-pager"))?;
        Ok(log.contains("connections follow the rules as they are now"))
    })?;
    draw(machine, ids)?;
    ensure!(
        main_process(machine)? == before,
        "a reload started another process"
    );
    Ok(())
}

/// The package of a later version keeps the configuration, and the program that runs. What it then says has the new one take over.
pub(super) fn upgrade(machine: &Machine, deb: &Path, version: &str, ids: &IdLog) -> Result<()> {
    let config = machine.read(CONFIG)?;
    let before = main_process(machine)?;
    bring(machine, &[deb])?;
    let install = "apt install -o Dpkg::Options::=--force-confold ./target/package/keywright_*.deb";
    let said = machine.must(install)?;
    let mut lines = said.lines().map(str::trim);
    let take_over = lines
        .find(|line| line.starts_with("systemctl kill "))
        .with_context(|| format!("nothing was said of the program that runs:\n{said}"))?;
    Page::read(ROLLING)?.says(take_over)?;
    ensure!(
        machine.read(CONFIG)? == config,
        "the configuration was replaced"
    );
    ensure!(
        main_process(machine)? == before,
        "the package ended the program"
    );
    draw(machine, ids)?;
    machine.must(take_over)?;
    wait_until("the new program", WAIT_MAX, || {
        Ok(main_process(machine)? != before)
    })?;
    draw(machine, ids)?;
    let runs = machine.must(&format!("/proc/{}/exe --version", main_process(machine)?))?;
    ensure!(runs.contains(version), "version {runs:?} took over");
    wait_until("the end of the program before", WAIT_MAX, || {
        Ok(!machine.run(&format!("test -d /proc/{before}"))?.is_well)
    })?;
    machine.must(&format!("systemctl reload {SERVICE}"))?;
    machine.must(&format!("systemctl restart {SERVICE}"))?;
    draw(machine, ids)
}

/// Taken away, the program ends and its configuration stays; purged, that goes, too, and passwords stay.
pub(super) fn removal(machine: &Machine) -> Result<()> {
    machine.must("apt remove keywright")?;
    let is_active = machine.run(&format!("systemctl is-active {SERVICE}"))?;
    ensure!(!is_active.is_well, "the program runs without its package");
    ensure!(
        machine.path(CONFIG).exists(),
        "the configuration went with the program"
    );
    machine.must("apt purge keywright")?;
    ensure!(
        !machine.path(CONFIG).exists(),
        "a purge left the configuration"
    );
    ensure!(
        machine.path("/etc/keywright/secrets/store").exists(),
        "a purge took a password that the package did not bring"
    );
    Ok(())
}

/// A key from each shard.
pub(super) fn draw(machine: &Machine, ids: &IdLog) -> Result<()> {
    for n in [1, 2] {
        ids.record(vec![insert(machine, n)?.trim().parse()?]);
    }
    Ok(())
}

fn main_process(machine: &Machine) -> Result<u32> {
    let said = machine.must(&format!(
        "systemctl show --property MainPID --value {SERVICE}"
    ))?;
    let id: u32 = said.trim().parse()?;
    ensure!(id != 0, "the program does not run");
    Ok(id)
}
