//! What users write into configuration files.

use anyhow::Result;
use keywright_proxy::config::Config;
use keywright_session::SeveralRows;

const SAMPLE: &str = include_str!("../keywright.toml");

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
    let output = match Config::parse(&text) {
        Ok(_) => String::new(),
        Err(error) => format!("{error:#}"),
    };
    for part in ["segments", "maybe", "perhaps", "schema_refresh_s", "70"] {
        assert!(output.contains(part), "{part} is not in: {output}");
    }
}

#[test]
fn limits_of_zero_are_told_with_what_they_would_do() {
    let names = [
        "connections_max",
        "rewrite_bytes_max",
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
    let bits = SAMPLE.replace("# bits_max = 63", "bits_max = \"63\"");
    let number = SAMPLE.replace("column = \"id\"", "column = 5");
    for (text, expected) in [
        (
            listener,
            "there is no [store]: it says where keys are reserved",
        ),
        (&rule, "Text stands in quotes: column = \"id\""),
        (
            &bits,
            ", bits_max: invalid type: string \"63\", expected u32. A number stands without quotes",
        ),
        (
            &number,
            ", column: invalid type: integer `5`, expected a string. Text stands in quotes",
        ),
    ] {
        let output = problems(text);
        assert!(output.contains(expected), "{expected} is not in {output}");
    }
}

#[test]
fn native_ids_are_blocked_unless_it_is_said_otherwise() -> Result<()> {
    let fences = |text: &str| -> Result<Vec<(bool, bool)>> {
        let config = Config::parse(text)?;
        let rules = config.rules.iter();
        Ok(rules.map(|rule| (rule.fence, rule.is_switched)).collect())
    };
    let sample = SAMPLE.replace("# mode = \"rewrite\"", "mode = \"rewrite\"");
    for mode in ["rewrite", "observe"] {
        for (key, is_switched) in [
            ("segment:orders", true),
            ("snowflake", true),
            ("uuid_v7", false),
        ] {
            let text = sample.replace("mode = \"rewrite\"", &format!("mode = \"{mode}\""));
            let text = text.replace("segment:orders", key);
            let is_fenced = is_switched || mode == "rewrite";
            assert_eq!(fences(&text)?, [(is_fenced, is_switched)], "{mode} {key}");
            let without = text.replace("# fence = true", "fence = false");
            assert_eq!(fences(&without)?, [(false, is_switched)], "{mode} {key}");
        }
    }
    Ok(())
}

#[test]
fn keys_that_cannot_be_switched_are_not_switched_off_behind_the_fence() {
    let observing = SAMPLE
        .replace("# mode = \"rewrite\"", "mode = \"observe\"")
        .replace("# fence = true", "fence = true")
        .replace("segment:orders", "uuid_v7");
    let output = problems(&observing);
    assert!(output.contains("only observes"), "{output}");
    let unlike = format!(
        "{SAMPLE}\n[[rule]]\ntable = \"a.b\"\ncolumn = \"id\"\nkey = \"stride:orders\"\noffset = 1\nincrement = 2\n"
    );
    let output = problems(&unlike);
    assert!(output.contains("not for both"), "{output}");
}

#[test]
fn a_layout_has_no_more_bits_than_its_rule() -> Result<()> {
    let snowflake = |layout: &str| {
        let text = SAMPLE.replace("segment:orders", "snowflake");
        text.replace("# bits_max = 63", "bits_max = 53")
            .replace("# layout = \"twitter\"", &format!("layout = \"{layout}\""))
    };
    Config::parse(&snowflake("js53"))?;
    let output = problems(&snowflake("twitter"));
    assert!(
        output.contains("ids of layout \"twitter\" have 63 bits, and bits_max is 53"),
        "{output}"
    );
    Ok(())
}

/// What the first listener says besides.
fn listener(lines: &str) -> String {
    SAMPLE.replace("# tls = \"disabled\"\n", lines)
}

fn problems(text: &str) -> String {
    match Config::parse(text) {
        Ok(_) => String::new(),
        Err(error) => format!("{error:#}"),
    }
}

#[test]
fn problems_of_tls_are_told_at_once() {
    let output = problems(&listener(
        "tls = \"required\"\ncertificate = \"/no/such.pem\"\nkey = \"/no/such.key\"\n\
         upstream_tls = \"required\"\nrsa_key = \"/no/such.rsa\"\ncheck = \"perhaps\"\n",
    ));
    for part in [
        "5 problem(s)",
        "listener 1: certificate /no/such.pem: ",
        "key /no/such.key: ",
        "rsa_key /no/such.rsa: ",
        "upstream_tls is \"required\" and needs upstream_ca, or upstream_verify = \"none\"",
        "check is error or warn",
    ] {
        assert!(output.contains(part), "{part} is not in: {output}");
    }
}

#[test]
fn addresses_are_looked_at_before_they_are_used() {
    let bind = "bind = \"127.0.0.1:6033\"";
    let upstream = "upstream = \"127.0.0.1:3306\"";
    for (from, to) in [
        (bind, "bind = \"127.0.0.1:66033\""),
        (bind, "bind = \"6033\""),
        (bind, "bind = \"::1:6033\""),
        (upstream, "upstream = \"mysql://127.0.0.1:3306\""),
        (upstream, "upstream = \"127.0.0.1\""),
        (upstream, "upstream = \"unix:socket\""),
    ] {
        let output = problems(&SAMPLE.replace(from, to));
        let (option, value) = to.split_once(" = ").unwrap_or_default();
        let part = format!(
            "listener 1: {option} is address:port or unix:/path, as \"127.0.0.1:3306\", not {value}"
        );
        assert!(output.contains(&part), "{part} is not in: {output}");
    }
    for (from, to) in [
        (bind, "bind = \"[::1]:6033\""),
        (bind, "bind = \"unix:/run/keywright/socket\""),
        (upstream, "upstream = \"db.example:3306\""),
    ] {
        assert_eq!(problems(&SAMPLE.replace(from, to)), "");
    }
}

#[test]
fn two_sockets_of_one_address_are_a_problem() {
    let second = "[[listener]]\nbind = \"127.0.0.1:6033\"\nupstream = \"127.0.0.1:3307\"\n";
    let text = SAMPLE
        .replace("bind = \"127.0.0.1:9306\"", "bind = \"127.0.0.1:6033\"")
        .replace(
            "# The first rule that",
            &format!("{second}# The first rule that"),
        );
    let output = problems(&text);
    for part in [
        "listener 2: bind is \"127.0.0.1:6033\", and so is listener 1: bind",
        "metrics.bind is \"127.0.0.1:6033\", and so is listener 1: bind",
    ] {
        assert!(output.contains(part), "{part} is not in: {output}");
    }
}

#[test]
fn options_of_tls_that_would_do_nothing_are_problems() {
    for (lines, part) in [
        ("tls = \"yes\"\n", "tls is disabled, preferred or required"),
        ("tls = \"preferred\"\nkey = \"k\"\n", "needs certificate"),
        ("certificate = \"c\"\n", "certificate has no effect"),
        ("upstream_ca = \"c\"\n", "upstream_ca has no effect"),
        (
            "upstream_tls = \"required\"\nupstream_verify = \"none\"\nupstream_ca = \"c\"\n",
            "upstream_ca has no effect",
        ),
        (
            "upstream_tls = \"required\"\nupstream_verify = \"none\"\nupstream_name = \"db\"\n",
            "upstream_name has no effect",
        ),
        (
            "upstream_tls = \"required\"\nupstream_ca = \"c\"\nupstream_name = \"no host\"\n",
            "is no name of a host",
        ),
    ] {
        let output = problems(&listener(lines));
        assert!(output.contains(part), "{part} is not in: {output}");
    }
    let unverified = "upstream_tls = \"required\"\nupstream_verify = \"none\"\n";
    assert_eq!(problems(&listener(unverified)), "");
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
        let output =
            Config::parse(text).map_or_else(|error| format!("{error:#}"), |_| String::new());
        assert!(output.contains(meant), "{output}");
        assert!(output.starts_with("line "), "{output}");
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
            "# password_file = \"/etc/keywright/store.password\"",
            &format!("password_file = \"{name}\""),
        )
        .replace(
            "# admin_password_file = \"/etc/keywright/admin.password\"",
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

#[test]
fn hidden_tags_are_for_what_goes_with_them() -> Result<()> {
    let file = tempfile::NamedTempFile::new()?;
    std::fs::write(file.path(), "\\x000102030405060708090a0b0c0d0e0f\n")?;
    let path = file.path().display();
    let section =
        format!("\n[[hidden_tag]]\ntag = \"orders\"\nhide_bits = 53\nhide_key_file = \"{path}\"\n");
    let with = |rule: &str| {
        Config::parse(&format!("{SAMPLE}{section}").replace("# log_keys = false", rule))
    };
    let config = with("")?;
    assert_eq!(config.rules[0].rule.several_rows, SeveralRows::Refused);
    assert_eq!(config.rules[0].rule.bits_max, 53, "its keys have no more");
    assert!(config.rules[0].fence && config.rules[0].is_switched);
    assert!(!format!("{config:?}").contains("0102"), "no key is shown");
    let allowed = with("on_several_rows = \"allow\"")?;
    assert_eq!(allowed.rules[0].rule.several_rows, SeveralRows::Apart);
    assert!(!config.needs_restart(&allowed));

    let told = with("on_several_rows = \"split\"\nbits_max = 31\nfence = false").unwrap_err();
    assert!(
        told.to_string()
            .contains("on_several_rows is allow or refuse, not \"split\""),
        "{told:#}"
    );
    let told = format!("{:#}", with("bits_max = 31\nfence = false").unwrap_err());
    for part in [
        "keys of tag \"orders\" have hide_bits = 53, and bits_max is 31",
        "fence = false is not for them",
    ] {
        assert!(told.contains(part), "{told}");
    }
    // All at once, and for tags that are no such.
    let sections = "[[hidden_tag]]\ntag = \"a b\"\nhide_bits = 64\n[[hidden_tag]]\ntag = \"c\"\nhide_bits = 53\nhide_key_env = \"NOT_THERE\"\n";
    let told = format!(
        "{SAMPLE}{sections}[[feed]]\nurl = \"postgres://x@127.0.0.1/x\"\ntags = [\"orders\"]\n"
    )
    .replace("# log_keys = false", "on_several_rows = \"allow\"");
    let told = format!("{:#}", Config::parse(&told).unwrap_err());
    for part in [
        "hidden_tag 1: tag: ",
        "hidden_tag 1: hide_bits: hidden keys have 63, 53 or 31 bits, not 64",
        "hidden_tag 1: hide_key_file: the key is missing",
        "hidden_tag 2: hide_key_env: the environment has no variable \"NOT_THERE\"",
        "on_several_rows is for a tag with a [[hidden_tag]] section",
    ] {
        assert!(told.contains(part), "{part}: {told}");
    }
    let feed = format!(
        "{SAMPLE}{section}[[feed]]\nurl = \"postgres://x@127.0.0.1/x\"\ntags = [\"orders\"]\n"
    );
    let told = format!("{:#}", Config::parse(&feed).unwrap_err());
    assert!(
        told.contains("fed databases have no key for that"),
        "{told}"
    );
    let leaf =
        format!("{SAMPLE}{section}").replace("# dialect = \"keywright\"", "dialect = \"leaf\"");
    let told = format!("{:#}", Config::parse(&leaf).unwrap_err());
    assert!(
        told.contains("[[hidden_tag]] needs a store with dialect"),
        "{told}"
    );
    let stride = format!("{SAMPLE}{section}").replace(
        "key = \"segment:orders\"",
        "key = \"stride:orders\"\noffset = 1\nincrement = 2",
    );
    let told = format!("{:#}", Config::parse(&stride).unwrap_err());
    assert!(told.contains("so it has no stride"), "{told}");
    Ok(())
}

/// Two stores, the second with these lines.
fn with_stores(second: &str) -> String {
    let first = SAMPLE.replace("\n[store]\n", "\n[[store]]\nname = \"main\"\n");
    format!("{first}\n[[store]]\nurl = \"file:/var/lib/keywright/far.db\"\n{second}")
}

#[test]
fn a_tag_is_in_the_first_store_that_has_a_pattern_for_it() -> Result<()> {
    let config = Config::parse(&with_stores(
        "name = \"far\"\ntags = [\"order?\", \"x.*\"]\n",
    ))?;
    let of = |tag: &str| -> Result<Option<String>> {
        let tag = keywright_core::Tag::parse(tag)?;
        Ok(config.store.further_store_of(&tag).map(str::to_owned))
    };
    assert_eq!(of("orders")?.as_deref(), Some("far"));
    assert_eq!(of("x.y")?.as_deref(), Some("far"));
    assert_eq!(of("bills")?, None);
    // The switch is one transaction with the tag's bound.
    assert!(
        config
            .rules
            .iter()
            .all(|rule| !rule.is_switched && rule.fence)
    );
    let other = Config::parse(&with_stores("name = \"far\"\ntags = [\"x.*\"]\n"))?;
    assert!(other.rules.iter().all(|rule| rule.is_switched));
    Ok(())
}

#[test]
fn stores_that_cannot_be_are_told_at_once() {
    for (second, expected) in [
        (
            "tags = [\"x\"]\n",
            "store.name: each of several stores needs one",
        ),
        (
            "name = \"main\"\ntags = [\"x\"]\n",
            "\"main\" is there twice",
        ),
        (
            "name = \"far\"\n",
            "only one store may have none, since it holds all other tags: not \"main\" and \"far\"",
        ),
        ("name = \"a b\"\ntags = [\"x\"]\n", "\"a b\" is none"),
        (
            "name = \"far\"\ntags = [\"*\"]\n",
            "would leave no tags to the store that has none",
        ),
        ("name = \"far\"\ntags = [\"\"]\n", "store \"far\": tags"),
        (
            "name = \"far\"\ntags = [\"a.*\", \"a.b*\"]\n",
            "\"a.b*\" is never asked: \"a.*\" of store \"far\" comes before",
        ),
        (
            "name = \"far\"\ntags = [\"x\"]\nwait_ms_max = 0\n",
            "store \"far\": wait_ms_max",
        ),
        (
            "name = \"far\"\ntags = [\"x\"]\nkept_ranges_file = \"/var/lib/keywright/ranges\"\n",
            "store \"far\": kept_ranges_file: is for the store without tags alone",
        ),
        (
            "name = \"far\"\ntags = [\"x\"]\nwait_ms_mx = 5\n",
            "Did you mean \"wait_ms_max\"?",
        ),
        (
            "name = \"far\"\ntags = [\"orders\"]\n[[feed]]\nurl = \"postgres://k@db1/shop\"\ntags = [\"orders\"]\n",
            "tag \"orders\" is in store \"far\", and must be in the one that has no tags",
        ),
    ] {
        let output = problems(&with_stores(second));
        assert!(output.contains(expected), "{expected} is not in {output}");
    }
    let both = format!("{SAMPLE}\n[[store]]\nname = \"far\"\n");
    assert!(problems(&both).contains("Several stores are written as [[store]]"));
    let only = SAMPLE.replace("\n[store]\n", "\n[store]\ntags = [\"x\"]\n");
    assert!(problems(&only).contains("the only one holds all tags"));
    let none = SAMPLE.replace(
        "\n[store]\n",
        "\n[[store]]\nname = \"main\"\ntags = [\"x\"]\n",
    );
    assert!(
        problems(&format!(
            "{none}\n[[store]]\nname = \"b\"\nurl = \"file:/b\"\ntags = [\"y\"]\n"
        ))
        .contains("one store must have none")
    );
}
