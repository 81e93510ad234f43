//! What `run` will make of rules that differ from what is in force.

use std::path::Path;

use keywright_proxy::config::Config;
use keywright_store::Keys;
use keywright_store::switch::{KeySpace, Standing, Switchboard, WantedKeys};

use super::wanted::{in_force, is_news, named, place_of, wanted};

/// What is to be said of one rule.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Intended {
    /// It is switched.
    Switched(String),
    /// It stays as it is, whatever the configuration says.
    Stays(String),
}

/// Of all rules of a configuration that was read from `file`. That the store cannot be asked is told elsewhere.
pub(super) async fn intended(
    (config, file): (&Config, &Path),
    keys: &Keys,
    standing: Option<&Standing>,
) -> Vec<Intended> {
    let Some(standing) = standing else {
        return Vec::new();
    };
    let Ok(all) = Switchboard::new(keys).all_wanted().await else {
        return Vec::new();
    };
    let place = place_of(file);
    let rules = config.rules.iter();
    let told = rules.filter_map(|configured| {
        let wanted = wanted(configured)?;
        let from = in_force(standing, &wanted.rule);
        let is_news = is_news((&place, &wanted), from.as_ref(), &all);
        told(&configured.name(), &wanted, (from.as_ref(), is_news))
    });
    told.collect()
}

fn told(
    name: &str,
    wanted: &WantedKeys,
    (from, is_news): (Option<&KeySpace>, bool),
) -> Option<Intended> {
    let to = wanted.keys.as_ref();
    if from == to {
        return None;
    }
    Some(match (is_news, from, to) {
        (true, None, _) => Intended::Switched(format!(
            "{name} has native auto-increment now: run switches its tables over to keys"
        )),
        (true, Some(_), None) => Intended::Switched(format!(
            "{name} has keys now, and mode = \"observe\": run has its tables go back to native auto-increment"
        )),
        (true, Some(_), Some(_)) => Intended::Switched(format!(
            "{name} gets its ids from {} now: run switches its tables over to {}",
            named(from),
            named(to)
        )),
        (false, _, _) => Intended::Stays(format!(
            "{name} gets its ids from {} now, as another program or file has switched it, and this configuration says {}: a program that starts leaves \
             it so. Set the file to it; to switch, start the program with that, then change the rule and send SIGHUP",
            named(from),
            named(to)
        )),
    })
}

#[cfg(test)]
mod tests {
    use keywright_core::Tag;
    use keywright_store::switch::{KeySpace, RuleName, WantedKeys};

    use super::{Intended, told};

    #[test]
    fn what_run_does_is_said() {
        let space = |tag: &str| KeySpace::Tag(Tag::parse(tag).unwrap());
        for (from, to, is_news, said) in [
            (None, None, true, None),
            (Some("a"), Some("a"), false, None),
            (
                None,
                Some("a"),
                true,
                Some("switches its tables over to keys"),
            ),
            (Some("a"), None, true, Some("go back to native")),
            (
                Some("a"),
                Some("b"),
                true,
                Some("from \"segment:a\" now: run switches its tables over to \"segment:b\""),
            ),
            (
                Some("a"),
                Some("b"),
                false,
                Some("from \"segment:a\" now, as another program"),
            ),
            (
                None,
                Some("a"),
                false,
                Some("from native auto-increment now, as another program"),
            ),
        ] {
            let wanted = WantedKeys {
                rule: RuleName {
                    tables: "shop.t".to_owned(),
                    column: "id".to_owned(),
                },
                keys: to.map(space),
            };
            let from = from.map(space);
            let output = told("shop.t.id", &wanted, (from.as_ref(), is_news));
            let text = match (&output, is_news) {
                (Some(Intended::Switched(text)), true) | (Some(Intended::Stays(text)), false) => {
                    Some(text)
                }
                (None, _) => None,
                (Some(_), _) => panic!("{output:?}"),
            };
            assert_eq!(text.is_some(), said.is_some(), "{output:?}");
            if let (Some(text), Some(said)) = (text, said) {
                assert!(text.contains(said), "{text}");
            }
        }
    }
}
