//! `keywright`: the program, its unit, a sample configuration, the manual, manual pages and completions.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use super::contents::{Contents, Staged, empty, manual};
use crate::shell::{cargo, output, run, run_loudly};
use crate::tree::Tree;

const PROGRAM: &str = "/usr/bin/keywright";
const CONFIG: &str = "/etc/keywright/keywright.toml";
/// Shells, and the files that they read completions from.
const COMPLETIONS: [(&str, &str); 3] = [
    ("bash", "/usr/share/bash-completion/completions/keywright"),
    ("zsh", "/usr/share/zsh/vendor-completions/_keywright"),
    (
        "fish",
        "/usr/share/fish/vendor_completions.d/keywright.fish",
    ),
];

/// `dir` takes what the program itself makes.
pub(super) fn contents(tree: &Tree, dir: &Path) -> Result<Contents> {
    let program = built(tree)?;
    let root = &tree.root;
    let doc = PathBuf::from("/usr/share/doc/keywright");
    let file = Staged::readable;
    let mut files = vec![
        Staged {
            from: program.clone(),
            to: PROGRAM.into(),
            mode: 0o755,
        },
        file(root.join("proxy/keywright.toml"), CONFIG.into()),
        file(
            root.join("packaging/keywright.service"),
            "/lib/systemd/system/keywright.service".into(),
        ),
    ];
    files.extend(manual(root, &doc)?);
    let made = empty(&dir.join("made"))?;
    for (shell, to) in COMPLETIONS {
        let completions = output(Command::new(&program).args(["generate", "completions", shell]))?;
        let from = made.join(shell);
        fs::write(&from, completions + "\n")?;
        files.push(file(from, to.into()));
    }
    for page in manual_pages(&program, &made)? {
        let name = page.file_name().context("a page without a name")?;
        let to = Path::new("/usr/share/man/man1").join(name);
        files.push(file(page, to));
    }
    let control = "Section: database\nDepends: ${shlibs}\nSuggests: default-mysql-client\n\
        Description: globally unique, time-ordered 64-bit keys for MySQL and MariaDB\n \
        A proxy that fills generated keys into the INSERTs of applications, for the\n \
        auto-increment columns that its rules name: unique over all shards.\n";
    Ok(Contents {
        name: "keywright".to_owned(),
        version: tree.version.clone(),
        control: control.to_owned(),
        files,
        directories: vec![(PathBuf::from("/etc/keywright/secrets"), 0o700)],
        scripts: root.join("packaging/keywright"),
        conffiles: vec![CONFIG],
        binaries: vec![PathBuf::from(PROGRAM)],
    })
}

/// Builds the program: where it is.
fn built(tree: &Tree) -> Result<PathBuf> {
    let build = [
        "build",
        "--release",
        "--package",
        "keywright-proxy",
        "--bin",
        "keywright",
    ];
    let mut build = cargo(build);
    build.current_dir(&tree.root);
    run_loudly(build.arg("--target-dir").arg(&tree.target))?;
    Ok(tree.target.join("release/keywright"))
}

/// The pages of the program and its commands, compressed as Debian wants them.
fn manual_pages(program: &Path, made: &Path) -> Result<Vec<PathBuf>> {
    let dir = empty(&made.join("man"))?;
    run(Command::new(program).args(["generate", "man"]).arg(&dir))?;
    let mut pages = Vec::new();
    for entry in fs::read_dir(&dir)? {
        let page = entry?.path();
        let compressed = dir.join(format!("{}.gz", page.display()));
        let mut gzip = Command::new("gzip");
        gzip.args(["-9", "--no-name", "--stdout"]).arg(&page);
        run(gzip.stdout(File::create(&compressed)?))?;
        fs::remove_file(&page)?;
        pages.push(compressed);
    }
    pages.sort();
    Ok(pages)
}
