//! Values that are not of the kind or the size that their option wants, and names that no option has.

use anyhow::{Context as _, Result};
use keywright_proxy::config::Config;
use serde_json::Value;

use super::{SAMPLE, problems};

const STORE: &str = "[store]\nurl = \"mysql://keywright@127.0.0.1:3306/keywright\"\n";

#[test]
fn mistakes_of_kind_and_name_hide_no_others() {
    let output = problems(&format!(
        "{STORE}store_ms_max = -1\nwait_ms = 5\nrefill_percent = \"half\"\nstep_max = 0\n\
         [snowflake]\nlease_ms = 1.5\nworker_id_from_host = \"yes\"\n\
         [[listener]]\nbind = 6033\nupstream = \"127.0.0.1:3306\"\ncheck = \"perhaps\"\n\
         [[rule]]\ntable = \"shop.orders\"\ncolum = \"id\"\nkey = \"segment\"\noffset = 1\nbits_max = \"63\"\n\
         [status]\nusers = \"ops\"\n\
         [limits]\nkeepalive_s = 4294967296\nstatements_max = 0\nrewrite_bytes_max = 1\n"
    ));
    let expected = [
        "line 3, store_ms_max: a number from 10 to 3600000, not -1",
        "line 4, wait_ms: unknown option. Did you mean \"wait_ms_max\"?",
        "line 5, refill_percent: a number from 1 to 99, not \"half\"",
        "line 8, lease_ms: a number from 1000 to 3600000, not 1.5",
        "line 9, worker_id_from_host: true or false, not \"yes\"",
        "line 11, bind: text in quotes, not 6033",
        "line 16, colum: unknown option. Did you mean \"column\"?",
        "line 19, bits_max: a number from 1 to 63, not \"63\". It stands without quotes",
        "line 21, users: a list, as [\"one\", \"two\"], not a text",
        "line 23, keepalive_s: a number from 0 to 32767, not 4294967296",
        "store.step_max: must be between 1 and 1000000000, not 0",
        "listener 1: bind is address:port or unix:/path, as \"127.0.0.1:6033\", not \"6033\"",
        "listener 1: check is error or warn, not \"perhaps\"",
        "limits.statements_max is at least 1: with 0 no INSERT could be prepared",
        "limits.rewrite_bytes_max is at least 1024, as the server's max_allowed_packet, not 1",
        "rule 1: key: offset and increment belong to key stride:TAG, not to \"segment\"",
        "rule 1: key: key \"segment\" is none of segment:TAG, ",
    ];
    for part in expected {
        assert!(output.contains(part), "{part} is not in: {output}");
    }
    let told = format!("{} problem(s)", expected.len());
    assert!(output.contains(&told), "{told}, and no others: {output}");
}

#[test]
fn what_was_meant_is_looked_at() {
    // One of several may be written as if there was no other, and a text may lack its quotes.
    let rule = "[rule]\ntable = \"shop.orders\"\ncolumn = \"id\"\nkey = \"segment:orders\"\n";
    let listener = "[[listener]]\nbind = \"127.0.0.1:6033\"\nupstream = \"127.0.0.1:3306\"\n";
    let output = problems(&format!("{STORE}{listener}{rule}"));
    assert!(output.contains("1 problem(s)"), "{output}");
    let expected = "line 6, rule: a section of which there may be several: [[rule]]";
    assert!(output.contains(expected), "{output}");
    let output = problems(&format!("{STORE}{listener}host_names = [5, [\"a\"]]\n"));
    for part in [
        "line 6, host_names: text in quotes, not 5",
        "line 6, host_names: text in quotes, not a list",
    ] {
        assert!(output.contains(part), "{part} is not in: {output}");
    }
}

#[test]
fn all_that_is_missing_is_told_at_once() {
    let output = problems("[[listener]]\nupstream = \"127.0.0.1:3306\"\n[[rule]]\nkey = 5\n");
    for part in [
        "there is no [store]: it says where keys are reserved",
        "line 1, bind: is missing",
        "line 3, table: is missing",
        "line 3, column: is missing",
        "line 4, key: text in quotes, not 5",
    ] {
        assert!(output.contains(part), "{part} is not in: {output}");
    }
}

/// Who takes one option for another may have written a password behind it.
#[test]
fn values_of_unknown_options_and_texts_in_odd_places_are_not_shown() {
    for lines in [
        "password = \"s3cr3t\"\n",
        "passwort_file = \"s3cr3t\"\n",
        "tags = \"s3cr3t\"\n",
        "url2 = \"mysql://k:s3cr3t@db/k\"\n",
    ] {
        let output = problems(&SAMPLE.replace("\n[store]\n", &format!("\n[store]\n{lines}")));
        assert!(output.contains("line "), "{output}");
        assert!(!output.contains("s3cr3t"), "{output}");
    }
}

#[test]
fn segments_of_tinyid_are_no_longer_than_the_store_gives() {
    let port = |line: &str, keys: u64| {
        problems(&format!(
            "{STORE}range_ids_max = {keys}\n[[listener]]\nprotocol = \"http\"\nbind = \"127.0.0.1:6400\"\nkeys = {{ a = \"segment:a\" }}\n{line}"
        ))
    };
    let output = port("tinyid_segment_keys = 100000000\n", 1_000_000);
    let expected = "listener 1: tinyid_segment_keys is at most range_ids_max of [store], which is 1000000, not 100000000";
    assert!(output.contains(expected), "{output}");
    assert_eq!(port("tinyid_segment_keys = 500\n", 500), "");
    // The default is cut to what there is.
    assert_eq!(port("", 500), "");
}

/// The reference is made of the same bounds.
#[test]
fn numbers_beyond_their_bounds_are_refused() -> Result<()> {
    let schema = serde_json::to_value(Config::schema())?;
    let mut tried = 0;
    for (section, types) in [
        ("store", "RawStoreSettings"),
        ("snowflake", "RawSnowflakeSettings"),
        ("limits", "RawLimits"),
        ("listener", "RawListener"),
    ] {
        let options = schema.pointer(&format!("/$defs/{types}/properties"));
        let options = options.and_then(Value::as_object).context(types)?;
        for (option, of) in options {
            let bound = |which: &str| of.get(which).and_then(Value::as_i64);
            let below = bound("minimum").map(|least| least - 1);
            let above = bound("maximum").map(|most| most + 1);
            for number in below.into_iter().chain(above) {
                let line = format!("{option} = {number}\n");
                let refused = with(section, &line).iter().any(|text| {
                    let output = problems(text);
                    output.contains(option.as_str())
                        && !output.contains(&format!("{option} has no meaning"))
                });
                assert!(refused, "[{section}] {line}");
                tried += 1;
            }
        }
    }
    assert!(tried > 60, "{tried}");
    Ok(())
}

/// A configuration with a line in a section, or several of which the option is for one.
fn with(section: &str, line: &str) -> Vec<String> {
    let port = |protocol: &str, more: &str| {
        format!(
            "{STORE}[[listener]]\nprotocol = \"{protocol}\"\nbind = \"127.0.0.1:6399\"\nkeys = {{ a = \"segment:a\" }}\n{more}{line}"
        )
    };
    match section {
        "listener" => vec![
            port("redis", "cluster_address = \"a:1\"\n"),
            port("http", ""),
        ],
        section => {
            let header = format!("\n[{section}]\n");
            vec![SAMPLE.replace(&header, &format!("{header}{line}"))]
        }
    }
}
