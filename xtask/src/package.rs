//! `cargo xtask package`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use clap::Args;
use keywright_testkit::workspace_root;

use crate::install::{PG_CONFIG, Server};
use crate::shell::{output, run, step};

/// The version of everything in the workspace.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Make a Debian package and a tarball in target/package.
#[derive(Args)]
pub(crate) struct Package {
    /// The `pg_config` of the installation that the package is for.
    #[arg(long, value_name = "PATH", default_value = PG_CONFIG)]
    pg_config: PathBuf,
}

impl Package {
    pub(crate) fn run(self) -> Result<()> {
        let server = Server::built_for(&self.pg_config)?;
        let dir = workspace_root().join("target/package");
        fs::create_dir_all(&dir).with_context(|| format!("making {}", dir.display()))?;
        let deb = debian_package(&server, &dir)?;
        let tarball = tarball(&server, &dir)?;
        step("unpacking both to see that all is there");
        let listed = output(Command::new("dpkg-deb").arg("--contents").arg(&deb))?;
        show(&deb, &listed, &server)?;
        let listed = output(Command::new("tar").arg("-tzvf").arg(&tarball))?;
        show(&tarball, &listed, &server)
    }
}

/// Prints what a package holds, or fails when something is missing in it.
fn show(package: &Path, listed: &str, server: &Server) -> Result<()> {
    println!("{}\n{listed}", package.display());
    let sql = server
        .extension
        .sql()
        .iter()
        .filter_map(|file| file.file_name());
    let sql = sql.map(|name| name.to_string_lossy().into_owned());
    let others = ["keywright.so", "README.md", "keywright_decode.sql"].map(str::to_owned);
    for name in sql.chain(others) {
        if !listed.contains(&name) {
            bail!("{} lacks {name}", package.display());
        }
    }
    Ok(())
}

fn debian_package(server: &Server, dir: &Path) -> Result<PathBuf> {
    let version = server.version;
    let name = format!("postgresql-{version}-keywright");
    let architecture = output(Command::new("dpkg").arg("--print-architecture"))?;
    let stage = empty(&dir.join("deb"))?;
    let inside = |path: &Path| stage.join(path.strip_prefix("/").unwrap_or(path));
    let (lib, share) = (inside(&server.pkglibdir), inside(&server.sharedir));
    let doc = stage.join("usr/share/doc").join(&name);
    stage_files(server, &lib, &share.join("extension"), &doc)?;
    let control = format!(
        "Package: {name}\nVersion: {VERSION}\nArchitecture: {architecture}\nSection: database\nPriority: optional\n\
         Maintainer: The Keywright authors <keywright@localhost>\nDepends: postgresql-{version}, libc6\n\
         Description: globally unique, time-ordered 64-bit keys for PostgreSQL {version}\n \
         snowflake_id() and next_biz_id('tag') for column defaults: no id is ever issued\n \
         twice, whatever crashes and whatever the clock does.\n"
    );
    fs::create_dir_all(stage.join("DEBIAN"))?;
    fs::write(stage.join("DEBIAN/control"), control).context("writing the control file")?;
    let deb = dir.join(format!("{name}_{VERSION}_{architecture}.deb"));
    step(&format!("making {}", deb.display()));
    let mut build = Command::new("dpkg-deb");
    run(build
        .args(["--root-owner-group", "--build"])
        .arg(&stage)
        .arg(&deb))?;
    fs::remove_dir_all(&stage).context("removing what was staged")?;
    Ok(deb)
}

fn tarball(server: &Server, dir: &Path) -> Result<PathBuf> {
    let name = format!(
        "keywright-{VERSION}-pg{}-{}",
        server.version,
        std::env::consts::ARCH
    );
    let stage = empty(&dir.join(&name))?;
    stage_files(
        server,
        &stage.join("lib"),
        &stage.join("share/extension"),
        &stage,
    )?;
    let file = dir.join(format!("{name}.tar.gz"));
    step(&format!("making {}", file.display()));
    let mut tar = Command::new("tar");
    tar.args([
        "--sort=name",
        "--owner=0",
        "--group=0",
        "--numeric-owner",
        "-czf",
    ]);
    run(tar.arg(&file).arg("-C").arg(dir).arg(&name))?;
    fs::remove_dir_all(&stage).context("removing what was staged")?;
    Ok(file)
}

/// The library, what `CREATE EXTENSION` reads, and beside the manual the functions for MySQL.
fn stage_files(server: &Server, lib: &Path, extension: &Path, doc: &Path) -> Result<()> {
    let root = workspace_root();
    let mut files = vec![
        (
            server.extension.library().to_path_buf(),
            lib.join("keywright.so"),
        ),
        (root.join("README.md"), doc.join("README.md")),
        (
            root.join("sql/mysql/keywright_decode.sql"),
            doc.join("mysql/keywright_decode.sql"),
        ),
    ];
    for file in server.extension.sql() {
        let name = file.file_name().context("a file without a name")?;
        files.push((file.clone(), extension.join(name)));
    }
    for (from, to) in files {
        let parent = to.parent().context("a file without a directory")?;
        fs::create_dir_all(parent)?;
        fs::copy(&from, &to)
            .with_context(|| format!("copying {} to {}", from.display(), to.display()))?;
    }
    Ok(())
}

fn empty(dir: &Path) -> Result<PathBuf> {
    if dir.exists() {
        fs::remove_dir_all(dir).with_context(|| format!("removing {}", dir.display()))?;
    }
    fs::create_dir_all(dir).with_context(|| format!("making {}", dir.display()))?;
    Ok(dir.to_path_buf())
}
