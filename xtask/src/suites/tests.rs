//! No test is left out: every target, every source file.

use std::collections::BTreeSet;
use std::fs;

use super::*;
use crate::fuzz;

fn workspace() -> Result<Vec<Package>> {
    packages(&workspace_root().join("Cargo.toml"))
}

/// The checks and the tests with servers take each what cargo has once; together they take all.
#[test]
fn every_target_with_tests_is_in_exactly_one_plan() -> Result<()> {
    let suites = all()?;
    let mut expected = Vec::new();
    for package in workspace()? {
        for target in package.targets {
            let of_target = (package.name.to_string(), target.src_path.to_string());
            if target.test {
                expected.push((of_target.clone(), false));
            }
            if target.doctest {
                expected.push((of_target, true));
            }
        }
    }
    let mut planned = Vec::new();
    for starts in Starts::ALL {
        for suite in suites.iter().filter(|suite| suite.starts == starts) {
            let of_target = (suite.package.clone(), suite.root.display().to_string());
            planned.push((of_target, suite.form == Form::Doc));
        }
    }
    expected.sort();
    planned.sort();
    assert_eq!(planned, expected);
    assert!(planned.len() > 60, "{planned:?}");
    Ok(())
}

#[test]
fn what_cargo_does_not_test_has_no_tests() -> Result<()> {
    for package in workspace()? {
        for target in package.targets {
            let is_library = target.kind.iter().any(|kind| {
                matches!(
                    kind,
                    TargetKind::Lib | TargetKind::CDyLib | TargetKind::ProcMacro
                )
            });
            for source in sources::of(target.src_path.as_std_path())? {
                let path = source.path.display();
                assert!(target.test || !source.has_tests(), "{path} has tests");
                let examined = target.doctest || !is_library;
                assert!(examined || !source.has_examples(), "{path} has examples");
            }
        }
    }
    Ok(())
}

/// A file that nobody declares to be a module is not compiled, and its tests never run.
#[test]
fn every_source_file_belongs_to_a_target() -> Result<()> {
    let mut manifests = vec![workspace_root()];
    manifests.extend(fuzz::crates()?);
    // Cargo knows nothing of it before the crates of an earlier commit are there; its tests are the session's.
    let mut roots = vec![workspace_root().join("session/oracle/src/lib.rs")];
    for manifest in manifests {
        for package in packages(&manifest.join("Cargo.toml"))? {
            let targets = package.targets.into_iter();
            roots.extend(targets.map(|target| target.src_path.into_std_path_buf()));
        }
    }
    let mut compiled = BTreeSet::new();
    for root in roots {
        compiled.extend(sources::of(&root)?.into_iter().map(|source| source.path));
    }
    let mut there = BTreeSet::new();
    for package in workspace()? {
        let dir = package.manifest_path.parent().context("no directory")?;
        add_files(dir.as_std_path(), &mut there)?;
    }
    let forgotten: Vec<_> = there.difference(&compiled).collect();
    assert!(forgotten.is_empty(), "no target has {forgotten:?}");
    assert!(there.len() > 300, "{} files", there.len());
    Ok(())
}

fn add_files(dir: &Path, files: &mut BTreeSet<PathBuf>) -> Result<()> {
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        if path.is_dir() && !path.ends_with("target") {
            add_files(&path, files)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.insert(path);
        }
    }
    Ok(())
}

/// So that packages are installed, and tests repeated on other versions, for those who need it.
#[test]
fn suites_start_what_their_place_says() -> Result<()> {
    for suite in all()? {
        if suite.form != Form::Integration {
            continue;
        }
        for source in sources::of(&suite.root)? {
            let mut words = source.text.split(|c: char| !c.is_alphanumeric());
            let foreign = words.find(|word| {
                let postgres = matches!(*word, "PgServer" | "PgInstall" | "SharedServer");
                let mysql = matches!(*word, "MariaServer" | "MySqlServer" | "Upstream");
                match suite.starts {
                    Starts::Nothing => {
                        postgres || (mysql && source.text.contains("keywright_testkit"))
                    }
                    Starts::MySql => postgres,
                    Starts::Postgres => mysql,
                    Starts::Both => false,
                }
            });
            let path = source.path.display();
            assert_eq!(foreign, None, "{path} is in the wrong place");
        }
    }
    Ok(())
}

#[test]
fn places_say_what_is_started() {
    let cases = [
        ("core::tests::simulation", Starts::Nothing),
        ("session::tests::imagined", Starts::Nothing),
        ("tests::src", Starts::Nothing),
        ("store::tests::live", Starts::Both),
        ("tests::tests::proxy_postgres_store", Starts::Both),
        ("tests::tests::proxy_corpus", Starts::MySql),
        ("tests::tests::mysql_decode", Starts::MySql),
        ("tests::tests::clock", Starts::Postgres),
        ("tests::tests::of_tomorrow", Starts::Postgres),
    ];
    for (place, expected) in cases {
        assert_eq!(starts(place), expected, "{place}");
    }
}
