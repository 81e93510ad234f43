//! Tags that hide how many keys there are: each with its permutation, whose key does not stand in the configuration.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use keywright_core::Tag;
use keywright_core::hiding::{HideBits, HideKey, Hiding};
use schemars::JsonSchema;
use serde::Deserialize;

use super::password;
use super::problems::{Problems, SettingsError, SettingsProblem};

/// A tag whose keys do not show how many there are: a secret permutation turns its numbers into keys. `keywright init` makes the tag so, and it stays so.
/// Programs with another key, or without this section, get nothing of it.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RawHiddenTag {
    /// The tag.
    pub tag: String,
    /// The bits of its keys: 63, 53 (JavaScript's numbers) or 31 (`INT`).
    pub hide_bits: i64,
    /// A file whose first line is the key: 32 hexadecimal digits, with `\x` before them or without. **Without it nothing of the tag is issued any
    /// more**: keep a copy.
    pub hide_key_file: Option<PathBuf>,
    /// The name of the environment variable that holds it.
    pub hide_key_env: Option<String>,
}

/// The tags that hide how many keys there are, checked.
#[derive(Debug, Clone, Default)]
pub struct HiddenTags(BTreeMap<Tag, Arc<Hiding>>);

impl HiddenTags {
    /// Checks the sections; reads the files.
    ///
    /// # Errors
    /// [`SettingsError`] with all problems.
    pub fn new(raw: &[RawHiddenTag]) -> Result<Self, SettingsError> {
        let mut problems = Problems::default();
        let mut tags = BTreeMap::new();
        for (index, raw) in raw.iter().enumerate() {
            let mut of_section = Problems::default();
            let tag = Tag::parse(&raw.tag);
            if let Err(error) = &tag {
                of_section.add("tag", error.to_string());
            }
            let bits = HideBits::new(raw.hide_bits);
            if let Err(error) = &bits {
                of_section.add("hide_bits", error.to_string());
            }
            let key = key_of(raw, &mut of_section);
            if let (Ok(tag), Ok(bits), Some(key)) = (tag, bits, key) {
                let hiding = Arc::new(Hiding::new(&key, bits));
                if tags.insert(tag, hiding).is_some() {
                    of_section.add(
                        "tag",
                        format!("there is a section for \"{}\" already", raw.tag),
                    );
                }
            }
            let section = format!("hidden_tag {}", index.saturating_add(1));
            problems
                .0
                .extend(of_section.0.into_iter().map(|found| SettingsProblem {
                    setting: format!("{section}: {}", found.setting),
                    ..found
                }));
        }
        match problems.0.is_empty() {
            true => Ok(Self(tags)),
            false => Err(SettingsError {
                problems: problems.0,
            }),
        }
    }

    /// The permutation of a tag; `None`: its keys are its numbers.
    pub fn of(&self, tag: &Tag) -> Option<&Arc<Hiding>> {
        self.0.get(tag)
    }

    /// The tags, in order.
    pub fn tags(&self) -> impl Iterator<Item = &Tag> {
        self.0.keys()
    }

    /// Whether they are the same, each with the same permutation.
    pub fn are_as(&self, other: &Self) -> bool {
        let of = |tags: &Self| -> Vec<(Tag, [u8; 8])> {
            let all = tags.0.iter();
            all.map(|(tag, hiding)| (tag.clone(), hiding.fingerprint().bytes()))
                .collect()
        };
        of(self) == of(other)
    }
}

/// The key of a section. What it is, is never told.
fn key_of(raw: &RawHiddenTag, problems: &mut Problems) -> Option<HideKey> {
    const FILE: &str = "hide_key_file";
    const ENV: &str = "hide_key_env";
    let (setting, text) = match (&raw.hide_key_file, &raw.hide_key_env) {
        (Some(_), Some(_)) => (ENV, Err(format!("there is {FILE} too"))),
        (Some(file), None) => (FILE, password::in_file(file)),
        (None, Some(name)) => (ENV, password::in_variable(name)),
        (None, None) => (
            FILE,
            Err(format!("the key is missing: say {FILE} or {ENV}")),
        ),
    };
    let key = text.and_then(|text| HideKey::parse(text.trim()).map_err(|error| error.to_string()));
    key.map_err(|problem| problems.add(setting, problem)).ok()
}

#[cfg(test)]
mod tests {
    use super::{HiddenTags, RawHiddenTag};

    fn raw(tag: &str, hide_bits: i64, file: Option<&str>) -> RawHiddenTag {
        RawHiddenTag {
            tag: tag.to_owned(),
            hide_bits,
            hide_key_file: file.map(Into::into),
            hide_key_env: None,
        }
    }

    #[test]
    fn all_that_is_wrong_is_told_at_once_and_no_key_is() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "secret!\n").unwrap();
        let both = RawHiddenTag {
            hide_key_env: Some("X".to_owned()),
            ..raw("c", 53, Some("/none"))
        };
        let sections = [
            raw("a b", 52, None),
            raw("b", 31, file.path().to_str()),
            both,
        ];
        let error = HiddenTags::new(&sections).unwrap_err().to_string();
        let lines: Vec<&str> = error.lines().collect();
        assert_eq!(lines.len(), 5, "{error}");
        for (line, is) in lines.iter().zip([
            "hidden_tag 1: tag: ",
            "hidden_tag 1: hide_bits: hidden keys have 63, 53 or 31 bits, not 52",
            "hidden_tag 1: hide_key_file: the key is missing: say hide_key_file or hide_key_env",
            "hidden_tag 2: hide_key_file: a hide key is 32 hexadecimal digits",
            "hidden_tag 3: hide_key_env: there is hide_key_file too",
        ]) {
            assert!(line.starts_with(is), "{line}");
        }
        assert!(!error.contains("secret!"), "{error}");
    }

    #[test]
    fn sections_are_compared_by_what_they_make_of_numbers() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let of = |digits: &str, bits| {
            std::fs::write(file.path(), format!("{digits}\n")).unwrap();
            HiddenTags::new(&[raw("orders", bits, file.path().to_str())]).unwrap()
        };
        let one = of(&"07".repeat(16), 53);
        assert!(one.are_as(&of(&format!("\\x{}", "07".repeat(16)), 53)));
        assert!(!one.are_as(&of(&"07".repeat(16), 31)));
        assert!(!one.are_as(&of(&"08".repeat(16), 53)));
        let twice = [
            raw("a", 53, file.path().to_str()),
            raw("a", 53, file.path().to_str()),
        ];
        assert!(
            HiddenTags::new(&twice)
                .unwrap_err()
                .to_string()
                .contains("already")
        );
    }
}
