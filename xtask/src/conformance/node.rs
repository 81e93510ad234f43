//! Libraries from the npm registry, used by scripts, as their packages have no tests.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use keywright_testkit::{Upstream, recipes};

use super::outcome::Outcome;
use crate::shell::output;

/// Tables of the script, and their key columns.
pub(super) const SEQUELIZE_RULES: &[(&str, &str)] = &[
    ("orm.authors", "author_id"),
    ("orm.books", "book_id"),
    ("orm.labels", "label_id"),
    ("orm.reviews", "review_id"),
];

pub(super) const TYPEORM_RULES: &[(&str, &str)] = &[
    ("orm.authors", "author_id"),
    ("orm.profiles", "profile_id"),
    ("orm.books", "book_id"),
    ("orm.labels", "label_id"),
    ("orm.places", "place_id"),
];

/// What the scripts share, and they.
const FILES: [(&str, &str); 3] = [
    ("steps.js", include_str!("steps.js")),
    ("sequelize.js", include_str!("sequelize.js")),
    ("typeorm.js", include_str!("typeorm.js")),
];

/// The directory with the scripts. The libraries are those of the recipes.
pub(super) fn prepare(cache: &Path) -> Result<PathBuf> {
    recipes::node()?;
    let dir = cache.join("node");
    fs::create_dir_all(&dir)?;
    for (name, text) in FILES {
        fs::write(dir.join(name), text).with_context(|| format!("writing {name}"))?;
    }
    Ok(dir)
}

/// As they are before the proxy comes.
pub(super) fn make_tables(source: &Path, script: &str, server: &Upstream) -> Result<()> {
    match run(source, script, server.port(), "make")?.passed() {
        1 => Ok(()),
        _ => bail!("{script} made no tables"),
    }
}

/// Uses them.
pub(super) fn use_tables(source: &Path, script: &str, port: u16) -> Result<Outcome> {
    run(source, script, port, "use")
}

fn run(source: &Path, script: &str, port: u16, what: &str) -> Result<Outcome> {
    let mut command = Command::new("node");
    command
        .arg(source.join(script))
        .args([&port.to_string(), what])
        .env("NODE_PATH", recipes::node()?);
    let said = output(&mut command)?;
    let failed = said.lines().filter(|line| line.starts_with("FAILED"));
    failed.for_each(|line| println!("    {line}"));
    Ok(Outcome::of_pytest(&said))
}
