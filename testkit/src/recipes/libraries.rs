//! The libraries that recipes are for, in environments of their own below `target/`.

use std::collections::hash_map::DefaultHasher;
use std::fs;
use std::hash::{Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail};

use crate::{Result, workspace_root};

/// A library, pinned to what was tested.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Library {
    /// As pages name it.
    pub(super) title: &'static str,
    /// As its registry names it.
    pub(super) package: &'static str,
    /// What was tested.
    pub(super) version: &'static str,
}

impl Library {
    const fn new(title: &'static str, package: &'static str, version: &'static str) -> Library {
        Library {
            title,
            package,
            version,
        }
    }
}

/// From the Python package index.
pub(super) const PYTHON: [Library; 4] = [
    Library::new("Django", "Django", "5.2.19"),
    Library::new("SQLAlchemy", "SQLAlchemy", "2.1.9"),
    Library::new("psycopg", "psycopg[binary]", "3.3.9"),
    Library::new("mysqlclient", "mysqlclient", "2.3.2"),
];

/// The client of Redis, from the same.
const REDIS: [Library; 1] = [Library::new("redis-py", "redis", "8.1.0")];

/// From the npm registry.
pub(super) const NODE: [Library; 7] = [
    Library::new("Sequelize", "sequelize", "6.37.8"),
    Library::new("TypeORM", "typeorm", "1.1.1"),
    Library::new("mysql2", "mysql2", "3.24.6"),
    Library::new("pg", "pg", "8.23.1"),
    // What TypeORM's own instructions install beside it.
    Library::new("reflect-metadata", "reflect-metadata", "0.2.2"),
    Library::new("TypeScript", "typescript", "5.9.3"),
    Library::new("types of Node", "@types/node", "20.19.43"),
];

/// The client of Redis for Node, from the same.
const NODE_REDIS: [Library; 1] = [Library::new("ioredis", "ioredis", "6.0.0")];

/// The Python of an environment with `PYTHON`.
///
/// # Errors
/// It cannot be made; pip has said why.
pub fn python() -> Result<PathBuf> {
    python_with("python", &PYTHON)
}

/// The Python of an environment with the client of Redis.
///
/// # Errors
/// As [`python`].
pub fn python_with_redis() -> Result<PathBuf> {
    python_with("python-redis", &REDIS)
}

fn python_with(kind: &str, libraries: &[Library]) -> Result<PathBuf> {
    let dir = kept(kind, libraries, |dir| {
        run(Command::new("python3").args(["-m", "venv"]).arg(dir))?;
        let requirements = libraries
            .iter()
            .map(|one| format!("{}=={}", one.package, one.version));
        run(Command::new(dir.join("bin/python"))
            .args(["-m", "pip", "install", "--quiet", "--no-cache-dir"])
            .arg("--disable-pip-version-check")
            .args(requirements))
    })?;
    Ok(dir.join("bin/python"))
}

/// A directory `node_modules` with `NODE`.
///
/// # Errors
/// It cannot be made; npm has said why.
pub fn node() -> Result<PathBuf> {
    node_with("node", &NODE)
}

/// A directory `node_modules` with the client of Redis.
///
/// # Errors
/// As [`node`].
pub fn node_with_redis() -> Result<PathBuf> {
    node_with("node-redis", &NODE_REDIS)
}

fn node_with(kind: &str, libraries: &[Library]) -> Result<PathBuf> {
    let dir = kept(kind, libraries, |dir| {
        fs::create_dir(dir)?;
        fs::write(dir.join("package.json"), "{\"private\": true}\n")?;
        let packages = libraries
            .iter()
            .map(|one| format!("{}@{}", one.package, one.version));
        run(Command::new("npm")
            .args(["install", "--silent", "--no-audit", "--no-fund"])
            .args(["--ignore-scripts", "--no-package-lock"])
            .args(packages)
            .current_dir(dir))
    })?;
    Ok(dir.join("node_modules"))
}

/// The directory with these libraries, made if it is not there yet.
fn kept(
    kind: &str,
    libraries: &[Library],
    make: impl FnOnce(&Path) -> Result<()>,
) -> Result<PathBuf> {
    let mut hasher = DefaultHasher::new();
    for library in libraries {
        (library.package, library.version).hash(&mut hasher);
    }
    let name = format!("{kind}-{:016x}", hasher.finish());
    let cache = workspace_root().join("target/recipes");
    crate::machine::kept::kept(&cache, (kind, name.as_str()), |dir| {
        eprintln!("fetching libraries for {kind}");
        make(dir)
    })
}

fn run(command: &mut Command) -> Result<()> {
    let output = command
        .output()
        .with_context(|| format!("running {command:?}"))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!("{command:?} failed: {}\n{said}", output.status);
    }
    Ok(())
}
