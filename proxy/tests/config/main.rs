//! What users write into configuration files.

mod kinds;
mod listeners;
mod rules;
mod stores;

use anyhow::Result;
use keywright_proxy::config::Config;

const SAMPLE: &str = include_str!("../../keywright.toml");

/// What the sample shows in a comment and is no default.
const WITHOUT_DEFAULT: [&str; 16] = [
    "kept_ranges_file",
    "admin_password_file",
    "admin_password_env",
    "password_file",
    "password_env",
    "worker_id",
    "certificate",
    "key",
    "upstream_ca",
    "upstream_verify",
    "upstream_name",
    "rsa_key",
    "worker_id_table",
    "leased_worker_ids",
    "fed_worker_ids",
    "assigned_worker_ids",
];

/// What is wrong with a text.
fn problems(text: &str) -> String {
    match Config::parse(text) {
        Ok(_) => String::new(),
        Err(error) => format!("{error:#}"),
    }
}

#[test]
fn the_sample_is_valid() -> Result<()> {
    let config = Config::parse(SAMPLE)?;
    assert_eq!(config.listeners.len(), 1);
    assert!(config.rules.iter().all(|rule| rule.fence));
    Ok(())
}

/// The package installs the sample for its unit, whose user reads no file of root's.
#[test]
fn the_files_with_secrets_that_the_sample_names_are_those_that_the_unit_hands_over() {
    const SECRET: [&str; 5] = [
        "password_file",
        "admin_password_file",
        "key",
        "rsa_key",
        "hide_key_file",
    ];
    let named: Vec<&str> = SAMPLE
        .lines()
        .filter_map(|line| line.trim_start_matches(['#', ' ']).split_once(" = \""))
        .filter_map(|(option, file)| SECRET.contains(&option).then_some(file))
        .filter(|file| file.starts_with('/'))
        .collect();
    assert!(named.len() > SECRET.len(), "{named:?}");
    for file in named {
        assert!(
            file.starts_with("/run/credentials/keywright.service/secrets_"),
            "{file}"
        );
    }
}

/// Settings that are commented out to show their default have no effect when they are not.
#[test]
fn defaults_that_the_sample_shows_are_the_defaults() -> Result<()> {
    let shown: String = SAMPLE
        .lines()
        .map(|line| match line.strip_prefix("# ") {
            Some(setting)
                if setting.contains(" = ")
                    && !WITHOUT_DEFAULT.iter().any(|name| setting.starts_with(name)) =>
            {
                format!("{setting}\n")
            }
            Some(_) | None => format!("{line}\n"),
        })
        .collect();
    let [plain, shown] = [SAMPLE, &shown].map(Config::parse);
    let (plain, mut shown) = (plain?, shown?);
    // They are not the same text.
    assert_ne!(plain.digest, shown.digest);
    shown.digest.clone_from(&plain.digest);
    assert_eq!(format!("{plain:?}"), format!("{shown:?}"));
    Ok(())
}

#[test]
fn all_problems_are_told_at_once() {
    let text = SAMPLE
        .replace("segment:orders", "segments:orders")
        .replace("# on_explicit = \"keep\"", "on_explicit = \"maybe\"")
        .replace("# check = \"error\"", "check = \"perhaps\"")
        .replace("# schema_refresh_s = 60", "schema_refresh_s = 0")
        .replace("# bits_max = 63", "bits_max = 70");
    let output = problems(&text);
    for part in ["segments", "maybe", "perhaps", "schema_refresh_s", "70"] {
        assert!(output.contains(part), "{part} is not in: {output}");
    }
}

#[test]
fn limits_of_zero_are_told_with_what_they_would_do() {
    let names = [
        "connections_max",
        "statements_max",
        "select_rows_max",
        "connect_ms_max",
        "login_ms_max",
        "answer_ms_max",
        "schema_refresh_s",
        "switch_wait_ms_max",
        "switch_peer_wait_s",
    ];
    let zeros: String = names.iter().map(|name| format!("{name} = 0\n")).collect();
    let text = SAMPLE.replace("[limits]\n", &format!("[limits]\n{zeros}"));
    let output = problems(&text);
    assert!(output.contains("9 problem(s)"), "{output}");
    for name in names {
        let expected = format!("limits.{name} is at least 1: with 0 ");
        assert!(output.contains(&expected), "{expected} is not in {output}");
    }
}

#[test]
fn what_is_no_configuration_is_told_with_what_to_type() {
    let listener = "[[listener]]\nbind = \"127.0.0.1:6033\"\nupstream = \"127.0.0.1:3306\"\n";
    let rule = SAMPLE.replace("column = \"id\"", "column = id");
    for (text, expected) in [
        (
            listener,
            "there is no [store]: it says where keys are reserved",
        ),
        (&rule, "Text stands in quotes: column = \"id\""),
    ] {
        let output = problems(text);
        assert!(output.contains(expected), "{expected} is not in {output}");
    }
}

#[test]
fn an_unknown_option_names_the_one_that_was_meant() {
    let cases = [
        ("[store]\nurll = \"x\"", "Did you mean \"url\"?"),
        ("[stor]", "Did you mean \"store\"?"),
        (
            "[store]\nurl = \"x\"\n[limits]\nrewrite_byte_max = 1",
            "Did you mean \"rewrite_bytes_max\"?",
        ),
    ];
    for (text, meant) in cases {
        let output = problems(text);
        assert!(output.contains(meant), "{output}");
        assert!(output.contains("\n    line "), "{output}");
    }
}

/// Nothing that is printed or logged of a configuration shows a password: not what is wrong with it, and not the whole of it.
#[test]
fn passwords_are_not_shown() -> Result<()> {
    const SECRET: &str = "s3cr3t-w0rd";
    let file = tempfile::NamedTempFile::new()?;
    std::fs::write(file.path(), format!("{SECRET}\n"))?;
    let name = file.path().display().to_string();
    let by_file = SAMPLE
        .replace(
            "# password_file = \"/run/credentials/keywright.service/secrets_store\"",
            &format!("password_file = \"{name}\""),
        )
        .replace(
            "# admin_password_file = \"/run/credentials/keywright.service/secrets_admin\"",
            &format!("admin_password_file = \"{name}\""),
        );
    let by_url = SAMPLE.replace(
        "keywright@127.0.0.1",
        &format!("keywright:{SECRET}@127.0.0.1"),
    );
    for text in [&by_file, &by_url] {
        let config = format!("{:?}", Config::parse(text)?);
        assert!(
            config.contains("Admin(keywright to 127.0.0.1:3306)"),
            "{config}"
        );
        assert!(!config.contains(SECRET), "{config}");
    }
    let wrong = [
        by_url.replace(":3306", ":port"),
        by_url.replace("mysql://", "mysqls://"),
        format!("{by_url}\n[limits"),
        by_url.replace("[store]", "[store]\npassword_file = \"/none\""),
        by_url.replace("admin = ", "admin_password_file = \"/none\"\nadmin = "),
    ];
    for text in &wrong {
        let problem = Config::parse(text)
            .map_or_else(|error| format!("{error:#} {error:?}"), |_| String::new());
        assert!(
            !problem.is_empty() && !problem.contains(SECRET),
            "{problem}"
        );
    }
    Ok(())
}

#[test]
fn a_running_program_keeps_what_only_a_start_takes() -> Result<()> {
    let config = Config::parse(SAMPLE)?;
    let with = |line: &str, other: &str| Config::parse(&SAMPLE.replace(line, other));
    let layout = "layout = \"js53\"";
    for newer in [
        with("# switch_wait_ms_max = 3000", "switch_wait_ms_max = 9000")?,
        with("# wait_ms_max = 2000", "wait_ms_max = 2001")?,
        with("# layout = \"twitter\"", layout)?,
        with("# host_names = []", "host_names = [\"keywright\"]")?,
    ] {
        assert!(config.needs_restart(&newer));
        // However often it is read.
        let running = config.reloaded(newer.clone()).reloaded(newer.clone());
        assert_eq!(running.held_ms_max(), config.held_ms_max());
        assert_eq!(running.store.layout(), config.store.layout());
        assert_eq!(running.store.wait_ms_max(), config.store.wait_ms_max());
        assert!(!config.needs_restart(&running) && running.needs_restart(&newer));
    }
    let newer = with("# schema_refresh_s = 60", "schema_refresh_s = 61")?;
    assert!(!config.needs_restart(&newer));
    assert_eq!(config.reloaded(newer).schema_refresh_s, 61);
    Ok(())
}
