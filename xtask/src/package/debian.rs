//! A Debian package out of what is staged.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use keywright_testkit::workspace_root;

use super::contents::{Contents, relative, set_mode};
use crate::shell::{output, run, step};

/// The revision of the packaging.
const REVISION: &str = "1";
const MAINTAINER: &str = "The Keywright authors <keywright@example.org>";

pub(super) fn build(contents: &Contents, stage: &Path, dir: &Path) -> Result<PathBuf> {
    let architecture = output(Command::new("dpkg").arg("--print-architecture"))?;
    let Contents { name, version, .. } = contents;
    documents(contents, stage)?;
    let control_dir = stage.join("DEBIAN");
    fs::create_dir_all(&control_dir)?;
    let depends = libraries(contents, stage, dir)?;
    let control = format!(
        "Package: {name}\nVersion: {version}-{REVISION}\nArchitecture: {architecture}\nPriority: optional\n\
         Maintainer: {MAINTAINER}\n{}",
        contents.control.replace("${shlibs}", &depends)
    );
    fs::write(control_dir.join("control"), control).context("writing the control file")?;
    if !contents.conffiles.is_empty() {
        let conffiles = contents.conffiles.join("\n") + "\n";
        fs::write(control_dir.join("conffiles"), conffiles)?;
    }
    for entry in fs::read_dir(&contents.scripts)? {
        let script = entry?.path();
        let to = control_dir.join(script.file_name().context("a script without a name")?);
        fs::copy(&script, &to)?;
        set_mode(&to, 0o755)?;
    }
    checksums(stage, &control_dir)?;
    let deb = dir.join(format!("{name}_{version}-{REVISION}_{architecture}.deb"));
    step(&format!("making {}", deb.display()));
    let mut build = Command::new("dpkg-deb");
    run(build
        .args(["--root-owner-group", "--build"])
        .arg(stage)
        .arg(&deb))?;
    Ok(deb)
}

/// What Debian wants to lie beside every package: copyright and changelog.
fn documents(contents: &Contents, stage: &Path) -> Result<()> {
    let Contents { name, version, .. } = contents;
    let doc = stage.join("usr/share/doc").join(name);
    fs::create_dir_all(&doc)?;
    let copyright = doc.join("copyright");
    fs::copy(workspace_root().join("packaging/copyright"), &copyright)?;
    set_mode(&copyright, 0o644)?;
    let date = output(Command::new("git").current_dir(workspace_root()).args([
        "log",
        "-1",
        "--format=%cD",
    ]))?;
    let changelog = format!(
        "{name} ({version}-{REVISION}) unstable; urgency=medium\n\n  * See CHANGELOG.md of the project.\n\n -- {MAINTAINER}  {date}\n"
    );
    let plain = doc.join("changelog.Debian");
    fs::write(&plain, changelog)?;
    set_mode(&plain, 0o644)?;
    run(Command::new("gzip").args(["-9", "--no-name"]).arg(plain))
}

/// The packages of the libraries that the binaries are linked to, with the versions that they need.
fn libraries(contents: &Contents, stage: &Path, dir: &Path) -> Result<String> {
    // dpkg-shlibdeps reads a source package's control file.
    let source = dir.join("source");
    fs::create_dir_all(source.join("debian"))?;
    let stanza = format!(
        "Source: {0}\n\nPackage: {0}\nArchitecture: any\n",
        contents.name
    );
    fs::write(source.join("debian/control"), stanza)?;
    let mut command = Command::new("dpkg-shlibdeps");
    command.current_dir(&source).arg("-O");
    for binary in &contents.binaries {
        command.arg(format!("-e{}", stage.join(relative(binary)).display()));
    }
    let said = output(&mut command)?;
    fs::remove_dir_all(&source)?;
    let depends = said
        .lines()
        .find_map(|line| line.strip_prefix("shlibs:Depends="));
    depends
        .map(str::to_owned)
        .context("dpkg-shlibdeps names no library")
}

/// What `debsums` compares files with.
fn checksums(stage: &Path, control_dir: &Path) -> Result<()> {
    let mut find = Command::new("find");
    find.current_dir(stage)
        .args(["usr", "lib", "etc", "-type", "f"]);
    // Not all packages have all three.
    let found = find.output().context("running find")?;
    let found = String::from_utf8(found.stdout)?;
    let mut files: Vec<&str> = found.lines().collect();
    files.sort_unstable();
    let sums = output(Command::new("md5sum").current_dir(stage).args(&files))?;
    let mut file = File::create(control_dir.join("md5sums"))?;
    std::io::Write::write_all(&mut file, format!("{sums}\n").as_bytes())?;
    Ok(())
}
