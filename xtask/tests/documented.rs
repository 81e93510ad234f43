//! Every variable of the environment that is ours is named in the documentation, which names no other; so is every row of keywright.health.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// What names of our variables begin with.
const PREFIX: &str = "KEYWRIGHT_";
/// Where they are named: those of tests, and those of the program.
const PAGES: [&str; 2] = ["docs/contributing/testing.md", "docs/operations/log.md"];
/// What holds no sources of ours.
const NOT_OURS: [&str; 2] = ["target", ".git"];

fn workspace() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}

/// The variables of the environment that a text names.
fn variables(text: &str) -> impl Iterator<Item = String> {
    text.match_indices(PREFIX).filter_map(|(at, _)| {
        let is_part = |char: &char| char.is_ascii_uppercase() || *char == '_';
        let name: String = text[at..].chars().take_while(is_part).collect();
        (name.len() > PREFIX.len()).then_some(name)
    })
}

/// Adds those that the sources in a directory name.
fn add_variables(dir: &Path, names: &mut BTreeSet<String>) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && !NOT_OURS.iter().any(|name| path.ends_with(name)) {
            add_variables(&path, names);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            names.extend(variables(&fs::read_to_string(&path).unwrap()));
        }
    }
}

#[test]
fn variables_of_the_environment_are_documented() {
    let mut used = BTreeSet::new();
    add_variables(workspace(), &mut used);
    assert!(used.len() > 10, "{used:?}");
    let mut documented = BTreeSet::new();
    for page in PAGES {
        documented.extend(variables(
            &fs::read_to_string(workspace().join(page)).unwrap(),
        ));
    }
    let missing: Vec<_> = used.difference(&documented).collect();
    assert!(missing.is_empty(), "{PAGES:?} lack {missing:?}");
    let gone: Vec<_> = documented.difference(&used).collect();
    assert!(gone.is_empty(), "no source reads {gone:?}");
}

#[test]
fn rows_of_health_are_documented() {
    let read = |path: &str| fs::read_to_string(workspace().join(path)).unwrap();
    let source = read("pg_ext/src/inspect/health.rs");
    let checks = source.split("const CHECKS").nth(1).unwrap();
    let checks = checks.split("];").next().unwrap();
    let rows: Vec<&str> = checks.split("(\"").skip(1).collect();
    let rows: Vec<&str> = rows
        .iter()
        .map(|row| row.split('"').next().unwrap())
        .collect();
    assert!(rows.len() > 10, "{rows:?}");
    let page = read("docs/postgres/health.md");
    let table = page.split("\n| row | what it says |\n").nth(1).unwrap();
    let table = table.split("\n\n").next().unwrap();
    let documented: Vec<&str> = table
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split('`').next())
        .collect();
    assert_eq!(documented, rows);
}
