//! Rules: which are switched, the fence before their tables, layouts and hidden keys.

use anyhow::Result;
use keywright_proxy::config::Config;
use keywright_session::SeveralRows;

use super::{SAMPLE, problems};

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
    let shown = format!("{config:?}");
    for key in ["000102030405", "0, 1, 2, 3, 4, 5"] {
        assert!(!shown.contains(key), "no key is shown");
    }
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
