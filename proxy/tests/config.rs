//! What users write into configuration files.

use anyhow::Result;
use keywright_proxy::config::Config;

const SAMPLE: &str = include_str!("../keywright-proxy.toml");

#[test]
fn the_sample_is_valid() -> Result<()> {
    let config = Config::parse(SAMPLE)?;
    assert_eq!(config.listeners.len(), 1);
    assert!(config.rules.iter().all(|rule| rule.fence));
    Ok(())
}

/// Settings that are commented out to show their default have no effect when they are not.
#[test]
fn defaults_that_the_sample_shows_are_the_defaults() -> Result<()> {
    let shown: String = SAMPLE
        .lines()
        .map(|line| match line.strip_prefix("# ") {
            Some(setting)
                if setting.contains(" = ")
                    && !setting.starts_with("password_file")
                    && !setting.starts_with("worker_id") =>
            {
                format!("{setting}\n")
            }
            Some(_) | None => format!("{line}\n"),
        })
        .collect();
    let [plain, shown] = [SAMPLE, &shown].map(Config::parse);
    assert_eq!(format!("{:?}", plain?), format!("{:?}", shown?));
    Ok(())
}

#[test]
fn all_problems_are_told_at_once() {
    let text = SAMPLE
        .replace("segment:orders", "segments:orders")
        .replace("# on_explicit = \"keep\"", "on_explicit = \"maybe\"")
        .replace("# mode = \"rewrite\"", "mode = \"observe\"")
        .replace("# check = \"error\"", "check = \"perhaps\"")
        .replace("# look_s = 60", "look_s = 0")
        .replace("# bits_max = 63", "bits_max = 70");
    let told = match Config::parse(&text) {
        Ok(_) => String::new(),
        Err(error) => format!("{error:#}"),
    };
    for part in [
        "segments",
        "maybe",
        "only observes",
        "perhaps",
        "look_s",
        "70",
    ] {
        assert!(told.contains(part), "{part} is not in: {told}");
    }
}
