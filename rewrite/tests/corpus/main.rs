//! Statements and what becomes of them, in files that people read: `tests/corpus/*.txt`.
//!
//! A line in brackets sets the modes of the lines below it. Every other line that starts at the margin is a statement on
//! table t(id, a, b) whose keys are 100, 101, …; `⏎` stands for a line break. The indented lines below it are the outcome.
//! With `KEYWRIGHT_CORPUS=write` in the environment the outcomes are written instead of compared: read the difference.

mod bounds;
mod setting;

use std::path::Path;

use setting::Setting;

fn check(file: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/corpus")
        .join(file);
    let before = std::fs::read_to_string(&path).expect("the corpus can be read");
    let mut after = String::new();
    let mut setting = Setting::parse("");
    for line in before.lines() {
        if line.starts_with("    ") {
            continue;
        }
        after.push_str(line);
        after.push('\n');
        if let Some(words) = line
            .strip_prefix('[')
            .and_then(|rest| rest.strip_suffix(']'))
        {
            setting = Setting::parse(words);
        } else if !line.is_empty() && !line.starts_with("// ") {
            after.push_str(&setting.outcome(line));
        }
    }
    if std::env::var("KEYWRIGHT_CORPUS").is_ok_and(|value| value == "write") {
        std::fs::write(&path, &after).expect("the corpus can be written");
        return;
    }
    for (number, (before, after)) in before.lines().zip(after.lines()).enumerate() {
        assert_eq!(before, after, "{file}:{}", number + 1);
    }
    assert_eq!(before.lines().count(), after.lines().count(), "{file}");
}

#[test]
fn values() {
    check("values.txt");
}

#[test]
fn keys() {
    check("keys.txt");
}

#[test]
fn forms() {
    check("forms.txt");
}

#[test]
fn text() {
    check("text.txt");
}

#[test]
fn last_insert_id() {
    check("last_insert_id.txt");
}

#[test]
fn refused() {
    check("refused.txt");
}

#[test]
fn selects() {
    check("selects.txt");
}

#[test]
fn loads() {
    check("loads.txt");
}

#[test]
fn shapes() {
    check("shapes.txt");
}

#[test]
fn prepared() {
    check("prepared.txt");
}

#[test]
fn kinds() {
    check("kinds.txt");
}

/// A file that no test names would be compared with nothing.
#[test]
fn every_file_has_its_test() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus");
    let files = std::fs::read_dir(dir).expect("the corpus can be listed");
    for file in files {
        let name = file.expect("the corpus can be listed").file_name();
        if !name.to_string_lossy().ends_with(".txt") {
            continue;
        }
        let call = format!("check({name:?});");
        assert!(include_str!("main.rs").contains(&call), "{call} is missing");
    }
}
