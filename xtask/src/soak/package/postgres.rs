//! The quick starts on PostgreSQL.

use std::path::Path;

use anyhow::{Context, Result, ensure};

use super::figure::Figure;
use super::machine::Machine;
use super::page::Page;
use super::walk::{Walk, bring};

/// What the package needs besides what the bare root has.
pub(super) const PACKAGES: &[&str] = &["postgresql-15"];

/// The one of README.md, from the package to the first id.
pub(super) fn of_readme(machine: &Machine, deb: &Path) -> Result<Figure> {
    let mut page = Page::read("README.md")?;
    let block = page.next("shell")?;
    bring(machine, &[deb])?;
    let walk = Walk::begin(machine);
    let said = walk.shell(&block)?;
    ensure!(
        has_id(&said),
        "{}: the last command returned no id:\n{said}",
        block.place
    );
    Ok(Figure::new(
        "README.md, PostgreSQL: the first id",
        walk.took(),
    ))
}

/// The page of its own.
pub(super) fn of_its_page(machine: &Machine, deb: &Path) -> Result<Figure> {
    let mut page = Page::read("docs/postgres/quick-start.md")?;
    bring(machine, &[deb])?;
    let walk = Walk::begin(machine);
    walk.shell(&page.next("shell")?)?;
    let file = "/etc/postgresql/15/main/postgresql.conf";
    let setting = page.next(&format!("append {file}"))?;
    let before = machine.read(file)?;
    machine.write(file, &(before + &setting.text()))?;
    walk.shell(&page.next("shell")?)?;
    walk.psql(&page.next("psql")?).context("making ids")?;
    let took = walk.took();
    walk.psql(&page.next("psql")?).context("reading ids")?;
    page.end()?;
    Ok(Figure::new(
        "docs/postgres/quick-start.md: the first id",
        took,
    ))
}

/// Whether a snowflake id stands alone on a line.
fn has_id(said: &str) -> bool {
    let mut lines = said.lines().map(str::trim);
    lines.any(|line| line.len() >= 18 && line.parse::<i64>().is_ok())
}
