//! What a session is made of: a connection and one job. What made it hard to follow stays away.

use std::error::Error;
use std::fs;
use std::path::Path;

/// What told how far a command had come, beside its job.
const GONE: [&str; 5] = [
    "drop_command",
    "ptr::eq",
    "Consumed(0)",
    "struct Stage",
    "enum Gather",
];
/// Where a session is named: what drivers call, and what they are shown.
const OF_SESSION: [&str; 4] = [
    "session.rs",
    "session/follow.rs",
    "session/several.rs",
    "session/show.rs",
];

fn sources(place: &Path, found: &mut Vec<(String, String)>) -> Result<(), Box<dyn Error>> {
    for entry in fs::read_dir(place)? {
        let path = entry?.path();
        if path.is_dir() {
            sources(&path, found)?;
        } else {
            found.push((path.display().to_string(), fs::read_to_string(&path)?));
        }
    }
    Ok(())
}

#[test]
fn a_command_has_one_job_and_jobs_do_not_see_the_session() -> Result<(), Box<dyn Error>> {
    let mut found = Vec::new();
    sources(
        &Path::new(env!("CARGO_MANIFEST_DIR")).join("src"),
        &mut found,
    )?;
    assert!(found.len() > 50, "{} files", found.len());
    for (name, text) in found {
        for gone in GONE {
            assert!(!text.contains(gone), "{name} has {gone}");
        }
        if text.contains("impl Session") {
            let is_there = OF_SESSION.iter().any(|place| name.ends_with(place));
            assert!(is_there, "{name} sees the session");
        }
    }
    Ok(())
}

/// Functions for others than the crate.
fn public_functions(place: &Path) -> Result<Vec<String>, Box<dyn Error>> {
    let text = fs::read_to_string(place)?;
    let named = text.lines().filter_map(|line| {
        let (name, _) = line.strip_prefix("    pub fn ")?.split_once('(')?;
        Some(name.to_owned())
    });
    Ok(named.collect())
}

#[test]
fn the_pair_of_sessions_has_what_one_has() -> Result<(), Box<dyn Error>> {
    let session = Path::new(env!("CARGO_MANIFEST_DIR"));
    let of_pair = public_functions(&session.join("oracle/src/session.rs"))?;
    assert!(of_pair.len() > 10, "{of_pair:?}");
    for place in OF_SESSION {
        let of_one = public_functions(&session.join("src").join(place))?;
        for name in of_one {
            assert!(of_pair.contains(&name), "{name} of {place}");
        }
    }
    Ok(())
}
