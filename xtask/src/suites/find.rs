//! Which tests a name means. Sources are looked at first, so that only what may have such a test is built.

use anyhow::Result;
use keywright_testkit::workspace_root;

use super::build::{Built, build};
use super::sources::{self, Source};
use super::{Form, Suite};
use crate::shell::step;

/// How a name is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Level {
    /// With whole names of files, modules and functions.
    Whole,
    /// With any part of a path.
    Part,
}

/// A name as it is compared with paths.
struct Name(String);

/// The tests that lie below a file, module or function of that name; if there is none, those that have it in their path.
///
/// # Errors
/// A suite that may have such a test cannot be built.
pub(crate) fn find(suites: &[Suite], name: &str) -> Result<Vec<Built>> {
    let name = Name::new(name);
    let made = made_by_macros()?;
    for level in [Level::Whole, Level::Part] {
        let mut candidates = Vec::new();
        for suite in suites {
            if name.may_mean(suite, &made, level)? {
                candidates.push(suite.clone());
            }
        }
        let mut found = build(&candidates)?.suites;
        for built in &mut found {
            built.narrow(|path| name.means(path, level));
        }
        found.retain(|built| !built.tests.is_empty());
        if !found.is_empty() {
            let count: usize = found.iter().map(|built| built.tests.len()).sum();
            step(&format!("{count} tests of that name"));
            return Ok(found);
        }
    }
    Ok(Vec::new())
}

impl Name {
    /// Also of a path as a shell completes it: `session/tests/imagined.rs`.
    fn new(typed: &str) -> Name {
        let typed = typed.trim_start_matches("./").trim_end_matches('/');
        let typed = typed.strip_suffix(".rs").unwrap_or(typed);
        let roots = ["/main", "/lib", "/mod"];
        let root = roots.iter().find_map(|root| typed.strip_suffix(root));
        Name(root.unwrap_or(typed).replace('/', "::"))
    }

    fn means(&self, path: &str, level: Level) -> bool {
        match level {
            Level::Whole => format!("::{path}::").contains(&format!("::{}::", self.0)),
            Level::Part => path.contains(&self.0),
        }
    }

    /// Whether the sources of a suite leave it open that one of its tests is meant.
    fn may_mean(&self, suite: &Suite, made: &[String], level: Level) -> Result<bool> {
        let sources = sources::of(&suite.root)?;
        Ok(sources.iter().any(|source| {
            let has_tests = match suite.form {
                Form::Doc => source.has_examples(),
                Form::Library | Form::Program | Form::Integration => {
                    source.has_tests() || source.calls_macros()
                }
            };
            has_tests && self.may_mean_in(suite, source, made, level)
        }))
    }

    /// A test's path is that of its file, then names that stand in it.
    fn may_mean_in(&self, suite: &Suite, source: &Source, made: &[String], level: Level) -> bool {
        let root = suite.place();
        let modules = source.modules.iter().map(String::as_str);
        let file: Vec<&str> = root.split("::").chain(modules).collect();
        let made = if source.calls_macros() { made } else { &[] };
        let inner: Vec<&str> = source
            .names()
            .chain(made.iter().map(String::as_str))
            .collect();
        let parts: Vec<&str> = self.0.split("::").collect();
        match level {
            Level::Whole => {
                let in_file = file.windows(parts.len()).any(|run| run == parts);
                in_file
                    || (0..parts.len()).any(|split| {
                        let (outside, inside) = parts.split_at(split);
                        file.ends_with(outside) && inside.iter().all(|part| inner.contains(part))
                    })
            }
            Level::Part => parts.iter().all(|part| {
                let mut known = file.iter().chain(&inner);
                known.any(|name| name.contains(part))
            }),
        }
    }
}

/// The names that the harness's macros give to modules and functions.
fn made_by_macros() -> Result<Vec<String>> {
    let sources = sources::of(&workspace_root().join("testkit/src/lib.rs"))?;
    let names = sources.iter().flat_map(Source::names_in_macros);
    Ok(names.map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_names_are_files_modules_and_functions() {
        let path = "session::tests::transcripts::cursors::rows_come_in_parts";
        let whole = [
            "session",
            "transcripts",
            "cursors",
            "transcripts::cursors",
            "rows_come_in_parts",
            "session/tests/transcripts/cursors.rs",
            "session/tests/transcripts/main.rs",
            "./session/tests/",
        ];
        for name in whole {
            assert!(Name::new(name).means(path, Level::Whole), "{name}");
        }
        for name in ["cursor", "rows_come", "s::cursors::rows"] {
            assert!(!Name::new(name).means(path, Level::Whole), "{name}");
            assert!(Name::new(name).means(path, Level::Part), "{name}");
        }
        assert!(!Name::new("nothing_like_it").means(path, Level::Part));
    }

    #[test]
    fn sources_tell_which_suites_may_have_a_name() -> Result<()> {
        let suites = crate::suites::all()?;
        let made = made_by_macros()?;
        let cases: [(&str, Level, &[&str]); 6] = [
            (
                "testkit/src",
                Level::Whole,
                &["testkit::src", "testkit::src"],
            ),
            ("imagined", Level::Whole, &["session::tests::imagined"]),
            ("cursors", Level::Whole, &["session::tests::transcripts"]),
            (
                "views_have_the_rule_of_the_table",
                Level::Part,
                &["session::src"],
            ),
            (
                "live::mariadb::corpus_is_what_native_auto_increment_shows",
                Level::Whole,
                &["session::tests::live"],
            ),
            ("no_such_thing_anywhere", Level::Part, &[]),
        ];
        for (typed, level, expected) in cases {
            let name = Name::new(typed);
            let mut found = Vec::new();
            for suite in &suites {
                if name.may_mean(suite, &made, level)? {
                    found.push(suite.place());
                }
            }
            // This very text has the names too.
            found.retain(|place| place != "xtask::src");
            assert_eq!(found, expected, "{typed}");
        }
        Ok(())
    }
}
