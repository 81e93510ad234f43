//! Several stores, and which of them has a tag.

use anyhow::Result;
use keywright_proxy::config::Config;

use super::{SAMPLE, problems};

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
