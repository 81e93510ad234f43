//! README begins with a recording of the demo, shortened: its lines are the recording's, and the recording's stages are the demo's.

use std::fs;

use anyhow::Context as _;
use keywright_testkit::{Result, workspace_root};

const RECORDING: &str = "docs/demo.txt";
const COMMAND: &str = "$ cargo xtask demo --once";
/// Stands for lines that README leaves out.
const LEFT_OUT: &str = "…";

fn recording() -> Result<String> {
    let file = workspace_root().join(RECORDING);
    fs::read_to_string(file)
        .with_context(|| format!("{RECORDING}: `cargo xtask demo --once --record` writes it"))
}

#[test]
fn what_readme_shows_is_in_the_recording_in_that_order() -> Result<()> {
    let readme = fs::read_to_string(workspace_root().join("README.md"))?;
    let (_, shown) = readme.split_once(COMMAND).context("README shows no demo")?;
    let (shown, _) = shown.split_once("```").context("the block has no end")?;
    let recording = recording()?;
    let mut recorded = recording.lines().skip(1);
    let mut count = 0;
    // Behind the command stands what is said of it.
    for line in shown.lines().skip(1).filter(|line| *line != LEFT_OUT) {
        let is_there = recorded.any(|of| of.trim_end() == line);
        assert!(is_there, "README shows what {RECORDING} has not: {line}");
        count += 1;
    }
    assert!(count > 5, "only {count} lines");
    Ok(())
}

#[test]
fn the_stages_of_the_recording_are_the_demos() -> Result<()> {
    let sources = workspace_root().join("xtask/src");
    let mut texts = fs::read_to_string(sources.join("demo.rs"))?;
    for entry in fs::read_dir(sources.join("demo"))? {
        texts += &fs::read_to_string(entry?.path())?;
    }
    let texts = texts.replace("\\\"", "\"");
    let recording = recording()?;
    let stages = recording.lines().filter_map(|of| of.strip_prefix("==> "));
    let stages: Vec<&str> = stages.collect();
    for stage in &stages {
        // Numbers are put in.
        let parts = stage.split(|char: char| char.is_ascii_digit());
        let mut parts = parts.filter(|part| part.len() > 3);
        assert!(
            parts.all(|part| texts.contains(part)),
            "the demo has no stage \"{stage}\": `cargo xtask demo --once --record` renews {RECORDING}"
        );
    }
    let count = texts.matches(".stage(").count();
    assert!(
        stages.len() >= count,
        "{} stages are recorded, and the demo has {count}",
        stages.len()
    );
    Ok(())
}
