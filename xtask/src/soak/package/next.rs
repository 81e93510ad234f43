//! A later version of this tree: a copy in which the steps of a release are carried out, but for what it would bring.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::shell::{output, run};
use crate::tree::Tree;

/// What the SQL of the later version has that the one before lacks.
const NEWS: &str = "CREATE VIEW keywright.later AS SELECT true AS is_later;\n\
    COMMENT ON VIEW keywright.later IS 'that the upgrade script ran';\n";
/// What an upgrade script begins with: sessions that issue look at what is installed again when these tables change, and not before.
const ANNOUNCED: &str = "ALTER TABLE keywright.tag ALTER tag SET STATISTICS -1;\n\
    ALTER TABLE keywright.node ALTER layout SET STATISTICS -1;\n";
/// Where the library says which SQL it serves.
const SERVED: &str = "pg_ext/src/catalog/extension.rs";

/// Copies the tree into `target/later`, where it is built, too, so that the next time only what changed is.
pub(super) fn version(ours: &Tree) -> Result<Tree> {
    let dir = ours.root.join("target/later");
    let later = Tree {
        root: dir.join("tree"),
        target: dir.join("target"),
        version: after(&ours.version)?,
    };
    copy(&ours.root, &later.root)?;
    seed(&ours.target, &later.target)?;
    release(&later, &ours.version)?;
    Ok(later)
}

/// What others' crates were compiled to is the same in both.
fn seed(from: &Path, to: &Path) -> Result<()> {
    if to.exists() {
        return Ok(());
    }
    fs::create_dir_all(to)?;
    for built in ["pg15", "release"] {
        let mut copy = Command::new("cp");
        copy.args(["--archive", "--reflink=auto"]);
        run(copy.arg(from.join(built)).arg(to))?;
    }
    Ok(())
}

/// The next minor version.
fn after(version: &str) -> Result<String> {
    let mut parts = version.split('.');
    let (major, minor) = (parts.next(), parts.next());
    let minor: u32 = minor.context("a version without a minor part")?.parse()?;
    Ok(format!("{}.{}.0", major.unwrap_or_default(), minor + 1))
}

/// All files that git knows or would take, with their times, so that cargo sees what has not changed.
fn copy(from: &Path, to: &Path) -> Result<()> {
    if to.exists() {
        fs::remove_dir_all(to).with_context(|| format!("removing {}", to.display()))?;
    }
    let mut git = Command::new("git");
    git.current_dir(from)
        .args(["ls-files", "--cached", "--others", "--exclude-standard"]);
    for file in output(&mut git)?.lines() {
        let (from, to) = (from.join(file), to.join(file));
        // Known to git, and deleted since.
        if !from.exists() {
            continue;
        }
        fs::create_dir_all(to.parent().context("a file without a directory")?)?;
        fs::copy(&from, &to).with_context(|| format!("copying {}", from.display()))?;
        keep_time(&from, &to)?;
    }
    Ok(())
}

fn keep_time(from: &Path, to: &Path) -> Result<()> {
    let time = fs::metadata(from)?.modified()?;
    fs::File::options()
        .append(true)
        .open(to)?
        .set_modified(time)?;
    Ok(())
}

/// What docs/contributing/releasing.md and extension-upgrade-scripts.md ask of a new version.
fn release(later: &Tree, before: &str) -> Result<()> {
    let version = &later.version;
    let quoted = |version: &str| format!("version = \"{version}\"");
    for file in ["Cargo.toml", "pg_ext/Cargo.toml"] {
        edit(later, file, &quoted(before), &quoted(version))?;
    }
    let default = |version: &str| format!("default_version = '{version}'");
    edit(
        later,
        "sql/postgres/keywright.control",
        &default(before),
        &default(version),
    )?;
    edit(
        later,
        SERVED,
        &format!("\"{before}\"];"),
        &format!("\"{before}\", \"{version}\"];"),
    )?;
    edit(
        later,
        "proxy/keywright.toml",
        "\n[store]\n",
        "\n# A later version's sample.\n[store]\n",
    )?;
    let sql = |name: String| later.root.join("sql/postgres").join(name);
    let install: PathBuf = sql(format!("keywright--{before}.sql"));
    let script = fs::read_to_string(&install)?;
    let scripts = [
        (sql(format!("keywright--{version}.sql")), script + NEWS),
        (
            sql(format!("keywright--{before}--{version}.sql")),
            format!("{ANNOUNCED}{NEWS}"),
        ),
    ];
    for (to, text) in scripts {
        fs::write(&to, text)?;
        keep_time(&install, &to)?;
    }
    Ok(())
}

fn edit(tree: &Tree, file: &str, from: &str, to: &str) -> Result<()> {
    let path = tree.root.join(file);
    let time = fs::metadata(&path)?.modified()?;
    let text = fs::read_to_string(&path)?;
    ensure!(
        text.matches(from).count() == 1,
        "{file} has not one {from:?}"
    );
    fs::write(&path, text.replace(from, to))?;
    fs::File::options()
        .append(true)
        .open(&path)?
        .set_modified(time)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn next_version_is_higher() {
        assert_eq!(after("0.1.0").unwrap(), "0.2.0");
        assert_eq!(after("2.19.3").unwrap(), "2.20.0");
    }
}
