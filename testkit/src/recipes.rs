//! The recipes of the documentation, run: the code that a page prints, with the library that it is for.
//!
//! What a page prints is what runs, so that it cannot go stale. Programs of `tests/recipes/` use it and look whether what it
//! says comes true.

mod libraries;
mod page;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail};
use tempfile::TempDir;

pub use libraries::{node, node_with_redis, python, python_with_redis};
pub use page::Page;

use crate::{Result, workspace_root};

/// A directory with the code of a page, and the programs that use it.
#[derive(Debug)]
pub struct Recipe {
    dir: TempDir,
}

impl Recipe {
    /// Lays out the programs of `tests/recipes/` of the page's name, and what the page prints in that part and in none, all
    /// with words replaced.
    ///
    /// # Errors
    /// There is no such page, or no such programs.
    pub fn lay_out(page: &Page, part: &str, replaced: &[(&str, &str)]) -> Result<Recipe> {
        let dir = tempfile::tempdir().context("making a directory for a recipe")?;
        let programs = workspace_root().join("tests/recipes").join(page.name());
        copy_all(&programs, dir.path(), replaced)?;
        for (name, text) in page.files(part) {
            let path = dir.path().join(name);
            if let Some(parent) = path.parent() {
                fs::create_dir_all(parent)?;
            }
            let text = replace_all(&text, replaced);
            fs::write(&path, text).with_context(|| format!("writing {}", path.display()))?;
        }
        Ok(Recipe { dir })
    }

    /// Where it lies.
    #[must_use]
    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// Runs a program in the directory, and returns the ids that it printed, one a line as `id NUMBER`.
    ///
    /// # Errors
    /// It fails, or prints an id twice.
    pub fn run(&self, command: &mut Command) -> Result<BTreeSet<u64>> {
        let output = command
            .current_dir(self.dir())
            .output()
            .with_context(|| format!("running {command:?}"))?;
        let said = String::from_utf8_lossy(&output.stdout);
        if !output.status.success() {
            let errors = String::from_utf8_lossy(&output.stderr);
            bail!("{command:?} failed: {}\n{said}{errors}", output.status);
        }
        let mut ids = BTreeSet::new();
        for line in said.lines() {
            let Some(id) = line.strip_prefix("id ") else {
                continue;
            };
            let id = id
                .parse()
                .with_context(|| format!("{command:?} printed {line:?}"))?;
            if !ids.insert(id) {
                bail!("{command:?} got id {id} twice");
            }
        }
        Ok(ids)
    }
}

/// The text with words replaced, as pages name one server and database, and tests have others.
#[must_use]
pub fn replace_all(text: &str, replaced: &[(&str, &str)]) -> String {
    let mut text = text.to_owned();
    for (word, other) in replaced {
        text = text.replace(word, other);
    }
    text
}

fn copy_all(from: &Path, to: &Path, replaced: &[(&str, &str)]) -> Result<()> {
    let entries = fs::read_dir(from).with_context(|| format!("reading {}", from.display()))?;
    for entry in entries {
        let path: PathBuf = entry?.path();
        let name = path.file_name().context("a directory's entry has a name")?;
        if path.is_dir() {
            fs::create_dir_all(to.join(name))?;
            copy_all(&path, &to.join(name), replaced)?;
        } else {
            let text =
                fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
            fs::write(to.join(name), replace_all(&text, replaced))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::libraries::{NODE, PYTHON};
    use super::*;

    /// Pages whose code runs, with the libraries that they must name as they were tested.
    const TESTED: [(&str, &[&str]); 4] = [
        ("django", &["Django", "psycopg", "mysqlclient"]),
        ("sqlalchemy", &["SQLAlchemy", "psycopg", "mysqlclient"]),
        ("sequelize", &["Sequelize", "pg", "mysql2"]),
        ("typeorm", &["TypeORM", "pg", "mysql2"]),
    ];

    /// What a page says whose code nothing runs.
    const UNTESTED: &str = "*Untested";

    #[test]
    fn pages_say_what_they_were_tested_with() -> Result<()> {
        for (name, titles) in TESTED {
            let page = Page::read(name)?;
            for title in titles {
                let library = PYTHON.iter().chain(&NODE).find(|one| one.title == *title);
                let version = library.context("a library that nothing installs")?.version;
                let named = format!("{title} {version}");
                assert!(page.text().contains(&named), "{name} lacks {named:?}");
            }
        }
        Ok(())
    }

    #[test]
    fn code_that_nothing_runs_is_marked_untested() -> Result<()> {
        for entry in fs::read_dir(workspace_root().join("docs/recipes"))? {
            let path = entry?.path();
            let name = path.file_stem().context("a page has a name")?;
            let page = Page::read(&name.to_string_lossy())?;
            let not_run = page.not_run();
            assert!(
                not_run.is_empty() || page.text().contains(UNTESTED),
                "{name:?}: nothing runs the code at lines {not_run:?}, and the page does not say {UNTESTED:?}"
            );
        }
        Ok(())
    }
}
