//! The test suites of the workspace. Cargo says which there are, and where a suite lies says what it needs, so that no list
//! can lack one:
//!
//! - what lies in `tests/tests/` starts PostgreSQL, or MySQL and MariaDB when its name begins with `mysql_` or `proxy_`, or all of them when
//!   it begins with `proxy_postgres_`;
//! - a suite of another crate that is named `live` starts all of them;
//! - everything else starts nothing and is part of the checks.

pub(crate) mod build;
pub(crate) mod find;
pub(crate) mod run;
mod sources;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use cargo_metadata::{MetadataCommand, Package, Target, TargetKind};
use keywright_testkit::workspace_root;

use crate::shell::{cargo, output};

/// The servers that the tests of a suite start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Starts {
    Nothing,
    MySql,
    Postgres,
    Both,
}

impl Starts {
    /// In the order in which suites run.
    pub(crate) const ALL: [Self; 4] = [Self::Nothing, Self::MySql, Self::Both, Self::Postgres];

    pub(crate) fn mysql(self) -> bool {
        matches!(self, Self::MySql | Self::Both)
    }

    pub(crate) fn postgres(self) -> bool {
        matches!(self, Self::Postgres | Self::Both)
    }
}

/// What cargo makes of a suite.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Form {
    /// The unit tests of a library.
    Library,
    /// The unit tests of a program.
    Program,
    /// A file or directory in `tests/` of a crate.
    Integration,
    /// The examples in a library's documentation.
    Doc,
}

/// Tests that cargo builds into one program.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Suite {
    pub(crate) starts: Starts,
    pub(crate) package: String,
    pub(crate) form: Form,
    /// The target's.
    pub(crate) name: String,
    /// The file at its root.
    pub(crate) root: PathBuf,
    /// Where its tests run.
    pub(crate) package_dir: PathBuf,
}

/// All suites, those first that need least.
///
/// # Errors
/// Cargo does not understand the workspace.
pub(crate) fn all() -> Result<Vec<Suite>> {
    let mut suites = Vec::new();
    for package in packages(&workspace_root().join("Cargo.toml"))? {
        for target in &package.targets {
            suites.extend(of_target(&package, target)?);
        }
    }
    suites.sort();
    Ok(suites)
}

/// The packages of a workspace, as cargo sees them.
///
/// # Errors
/// Cargo does not understand the workspace.
pub(crate) fn packages(manifest: &Path) -> Result<Vec<Package>> {
    let mut command = cargo(["metadata", "--no-deps", "--format-version", "1"]);
    let said = output(command.arg("--manifest-path").arg(manifest))?;
    let metadata = MetadataCommand::parse(said).context("reading what cargo says of packages")?;
    Ok(metadata.packages)
}

/// None, its tests, its documentation's, or both.
fn of_target(package: &Package, target: &Target) -> Result<Vec<Suite>> {
    let of_form = |form: Form| -> Result<Suite> {
        let root = target.src_path.clone().into_std_path_buf();
        let package_dir = package.manifest_path.parent();
        Ok(Suite {
            starts: starts(&place(&root)),
            package: package.name.to_string(),
            form,
            name: target.name.clone(),
            package_dir: package_dir.context("a manifest lies nowhere")?.into(),
            root,
        })
    };
    let mut suites = Vec::new();
    if target.test {
        let form = if target.kind.contains(&TargetKind::Test) {
            Form::Integration
        } else if target.kind.contains(&TargetKind::Bin) {
            Form::Program
        } else {
            Form::Library
        };
        suites.push(of_form(form)?);
    }
    if target.doctest {
        suites.push(of_form(Form::Doc)?);
    }
    Ok(suites)
}

impl Suite {
    /// Where it lies in the repository, as its tests are called: `session::tests::imagined`, `session::src`.
    pub(crate) fn place(&self) -> String {
        place(&self.root)
    }

    /// How people read it: `session/tests/imagined`, `session/src, examples in the documentation`.
    pub(crate) fn title(&self) -> String {
        let place = self.place().replace("::", "/");
        match self.form {
            Form::Library | Form::Program | Form::Integration => place,
            Form::Doc => format!("{place}, examples in the documentation"),
        }
    }
}

/// The module that a file of the repository is, below the place where it lies.
fn place(file: &Path) -> String {
    let file = file.strip_prefix(workspace_root()).unwrap_or(file);
    let file = file.with_extension("");
    let file = match file.file_name().and_then(|name| name.to_str()) {
        Some("main" | "lib" | "mod") => file.parent().unwrap_or(&file),
        Some(_) | None => &file,
    };
    let parts = file.iter().map(|part| part.to_string_lossy());
    parts.collect::<Vec<_>>().join("::")
}

fn starts(place: &str) -> Starts {
    if let Some(name) = place.strip_prefix("tests::tests::") {
        let of_mysql = name.starts_with("mysql_") || name.starts_with("proxy_");
        return if name.starts_with("proxy_postgres_") {
            Starts::Both
        } else if of_mysql {
            Starts::MySql
        } else {
            Starts::Postgres
        };
    }
    if place.ends_with("::tests::live") {
        Starts::Both
    } else {
        Starts::Nothing
    }
}
