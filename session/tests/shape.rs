//! What a session is made of: a connection and one job. What made it hard to follow stays away.

use std::error::Error;
use std::fs;
use std::path::Path;

/// What told how far a command had come, beside its job.
const GONE: [&str; 9] = [
    "drop_command",
    "ptr::eq",
    "Consumed(0)",
    "struct Stage",
    "enum Gather",
    "fn malformed",
    "fn own_query",
    "fn front(",
    // In the connection, where the answer and the text that they are about have jobs.
    "self.watches_fence",
];
/// What lay where nobody looked for it.
const AT_HOME: [(&str, &str); 2] = [
    ("fn rule_of(", "rules/lookup.rs"),
    ("fn close(", "prepared/named.rs"),
];
/// Where a session is named: what drivers call, and what they are shown.
const OF_SESSION: [&str; 5] = [
    "session.rs",
    "session/follow.rs",
    "session/several.rs",
    "session/show.rs",
    "session/turns.rs",
];

/// The sources of the session, by path.
fn of_session() -> Result<Vec<(String, String)>, Box<dyn Error>> {
    let mut found = Vec::new();
    let place = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    sources(&place, &mut found)?;
    assert!(found.len() > 50, "{} files", found.len());
    Ok(found)
}

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
    for (name, text) in of_session()? {
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

#[test]
fn how_far_a_statement_has_come_is_told_in_one_file() -> Result<(), Box<dyn Error>> {
    let mut jobs = 0;
    for (name, text) in of_session()? {
        let here = text.matches("impl Work for ").count();
        assert!(here <= 1, "{name} has {here} jobs");
        jobs += here;
        let moves_on = text.contains(".phase = ") || text.contains("enum Phase");
        assert!(here == 1 || !moves_on, "{name} moves a job on");
    }
    assert!(jobs > 5, "{jobs} jobs");
    Ok(())
}

#[test]
fn what_lay_where_nobody_looks_is_at_home() -> Result<(), Box<dyn Error>> {
    let found = of_session()?;
    for (what, home) in AT_HOME {
        let has = found.iter().filter(|(_, text)| text.contains(what));
        let places: Vec<_> = has.map(|(name, _)| name.as_str()).collect();
        assert!(
            matches!(places.as_slice(), [only] if only.ends_with(home)),
            "{what} in {places:?}"
        );
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
