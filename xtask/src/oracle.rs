//! `cargo xtask oracle`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use clap::Args;
use keywright_testkit::workspace_root;

use crate::shell::{cargo, output, run_loudly, step};

/// What a session consists of.
const CRATES: [&str; 4] = ["core", "rewrite", "session", "wire"];
/// Conversations that are tried unless others are asked for: some minutes.
const CONVERSATIONS: u64 = 200_000;
/// What the earlier crates have in place of the version: two crates of one name and version cannot be in one program.
const VERSION: &str = "version = \"0.0.0-before\"";

/// Drive the MySQL session of an earlier commit and the one that stands with the same bytes, and compare what they do.
///
/// Both get the transcripts, broken packets and conversations at random, in whole and in parts. Compared after every step: what
/// each side is sent, how much was consumed for it, keys that are asked for, and what is counted. The first difference ends the run.
/// It shows both answers and the conversation, cut down to what matters, and how to run it again.
#[derive(Args)]
pub(crate) struct Oracle {
    /// The earlier commit. Without it: where this branch left main; on main itself the last commit if crates of the session have changes
    /// that are not committed, or else the one before.
    #[arg(long, value_name = "COMMIT")]
    before: Option<String>,
    /// How many conversations at random.
    #[arg(long, default_value_t = CONVERSATIONS)]
    conversations: u64,
    /// The number of the first of them: each has a number that repeats it.
    #[arg(long, default_value_t = 0)]
    seed: u64,
}

impl Oracle {
    pub(crate) fn run(self) -> Result<()> {
        let root = workspace_root();
        let commit = match &self.before {
            Some(named) => git(&["rev-parse", "--verify", &format!("{named}^{{commit}}")])?,
            None => default_commit()?,
        };
        let subject = git(&["log", "-1", "--format=%h %s", &commit])?;
        step(&format!("before: {subject}"));
        unpack(&commit, &root.join("target/oracle/before"))?;
        let oracle = root.join("session/oracle");
        // So that both have the dependencies of everything else.
        fs::copy(root.join("Cargo.lock"), oracle.join("Cargo.lock"))
            .context("copying Cargo.lock")?;
        let test = |name: &str| {
            let mut command = cargo(["test", "--quiet", "--release"]);
            command
                .arg("--manifest-path")
                .arg(oracle.join("Cargo.toml"))
                .arg("--target-dir")
                .arg(root.join("target/oracle/build"))
                .args(["--test", name]);
            command
        };
        run_loudly(&mut test("transcripts"))?;
        run_loudly(&mut test("hostile"))?;
        let mut conversations = test("conversations");
        conversations
            .args(["--", "--nocapture"])
            .env("KEYWRIGHT_CONVERSATIONS", self.conversations.to_string())
            .env("KEYWRIGHT_SEED", self.seed.to_string());
        run_loudly(&mut conversations)
    }
}

/// Whether the pair of sessions compiles, with the last commit on both sides. Where crates of the session have changes that are not
/// committed, its conversions cannot be right for both sides, and nothing is checked; nor is it outside a clone.
pub(crate) fn compiles() -> Result<()> {
    let root = workspace_root();
    if !root.join(".git").exists()
        || !git(&[&["status", "--porcelain", "--"], &CRATES[..]].concat())?.is_empty()
    {
        return Ok(());
    }
    unpack(
        &git(&["rev-parse", "HEAD"])?,
        &root.join("target/oracle/before"),
    )?;
    let oracle = root.join("session/oracle");
    fs::copy(root.join("Cargo.lock"), oracle.join("Cargo.lock")).context("copying Cargo.lock")?;
    let mut check = cargo(["check", "--quiet", "--all-targets"]);
    check
        .arg("--manifest-path")
        .arg(oracle.join("Cargo.toml"))
        .arg("--target-dir")
        .arg(root.join("target/oracle/build"));
    run_loudly(&mut check)
}

fn git(arguments: &[&str]) -> Result<String> {
    output(git_command().args(arguments))
}

fn git_command() -> Command {
    let mut command = Command::new("git");
    command.current_dir(workspace_root());
    command
}

fn default_commit() -> Result<String> {
    let head = git(&["rev-parse", "HEAD"])?;
    // A clone need not have a main of its own.
    let left = ["main", "origin/main"]
        .iter()
        .find_map(|main| git(&["merge-base", "HEAD", main]).ok());
    match left {
        Some(left) if left != head => Ok(left),
        Some(_) | None => {
            let changed = git(&[&["status", "--porcelain", "--"], &CRATES[..]].concat())?;
            match changed.is_empty() {
                true => git(&["rev-parse", "--verify", "HEAD~1"]),
                false => Ok(head),
            }
        }
    }
}

/// Puts a commit's crates there, unless they are there already.
fn unpack(commit: &str, place: &Path) -> Result<()> {
    let mark = place.join("commit");
    if fs::read_to_string(&mark).is_ok_and(|there| there == commit) {
        return Ok(());
    }
    if place.exists() {
        fs::remove_dir_all(place).with_context(|| format!("removing {}", place.display()))?;
    }
    fs::create_dir_all(place).with_context(|| format!("making {}", place.display()))?;
    let mut archive = git_command()
        .args(["archive", commit, "Cargo.toml"])
        .args(CRATES)
        .stdout(Stdio::piped())
        .spawn()
        .context("running git archive")?;
    let bytes = archive.stdout.take().context("git archive says nothing")?;
    let unpacked = Command::new("tar")
        // Cargo builds anew what is younger than what it has built: files are as old as this, not as their commit.
        .args(["-x", "-m", "-C"])
        .arg(place)
        .stdin(bytes)
        .status()
        .context("running tar")?;
    if !archive.wait()?.success() || !unpacked.success() {
        bail!("the crates of {commit} cannot be unpacked");
    }
    rename(&place.join("Cargo.toml"))?;
    fs::write(mark, commit)?;
    Ok(())
}

/// Gives the crates of a workspace another version.
fn rename(manifest: &PathBuf) -> Result<()> {
    let text = fs::read_to_string(manifest)?;
    let mut lines: Vec<&str> = text.lines().collect();
    let version = lines.iter_mut().find(|line| line.starts_with("version = "));
    *version.context("the workspace has no version")? = VERSION;
    fs::write(manifest, lines.join("\n") + "\n")?;
    Ok(())
}
