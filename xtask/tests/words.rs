//! Words that were replaced stay replaced: one concept, one word.

use std::fs;
use std::path::Path;

/// Words that must not come back, what stands in their place, and where they may stand because they mean something else.
const REPLACED: &[(&str, &str, &[&str])] = &[
    ("lid", "last_insert_id", &[]),
    ("Familiars", "PlanCache", &[]),
    ("familiar", "cached statement", &[]),
    ("Blind", "passthrough", &[]),
    ("attentive", "must_see_change_user", &[]),
    ("sent ahead", "long data", &[]),
    ("sent_ahead", "long data", &[]),
    ("Pieces", "MultiStatement", &["rewrite/tests/properties/"]),
    ("of_pieces", "multi-statement", &[]),
    ("Means", "ListenerContext", &["docs/operations/runbook.md"]),
    ("Wish", "ReservationRequest, WantedKeys", &[]),
    ("wish", "what is wanted, a request", &[]),
    ("converse", "run, transaction", &[]),
    ("AsyncTalk", "Transaction", &[]),
    ("Told", "a reply, a report", &[]),
    ("tell_behind", "report", &[]),
    ("beneath", "stale tags", &[]),
    ("look_s", "schema_refresh_s", &[]),
    ("on_unsure", "on_ambiguous_id", &[]),
    ("keywright back", "keywright release", &[]),
    ("Incarnation", "Writer", &[]),
    ("so many keys cannot be had", "batch too large", &[]),
    (
        "rules stay as they were",
        "reload failed, keeping the previous configuration",
        &[],
    ),
    (
        "that are being gathered take",
        "statement buffer limit reached",
        &[],
    ),
    (
        "take memory_bytes_max",
        "statement buffer limit reached",
        &[],
    ),
    ("that is no tag", "not a valid tag name", &[]),
    ("SeenTable", "TableSnapshot", &[]),
    ("Sighting", "KeyColumnState", &[]),
    ("sighting", "key column state", &[]),
    ("sighted", "what the schema snapshot says", &[]),
    ("note_look", "note_schema_refresh", &[]),
    ("Door", "RuleAdmission", &[]),
    ("Adopted", "RulesUpdate", &[]),
    ("pass_unread", "count_passthrough", &["session/src/client/"]),
    (
        "Fate",
        "Decision",
        &["store/tests/simulation/", "tests/tests/proxy_constants.rs"],
    ),
    ("Outward", "UpstreamTls", &[]),
    (
        "Heard",
        "PeerReports",
        &["core/tests/simulation/", "session/tests/"],
    ),
    ("WentBy", "NativeInserts", &[]),
    ("past the proxy", "past the programs", &[]),
    ("this proxy", "this program", &[]),
    ("another proxy", "another program", &[]),
    ("each proxy", "each program", &[]),
    ("every proxy", "every program", &[]),
    ("the proxy is stopping", "keywright is stopping", &[]),
];

/// What holds no texts of ours.
const NOT_OURS: [&str; 3] = ["target", ".git", "node_modules"];
/// What is searched.
const TEXTS: [&str; 12] = [
    "rs", "md", "toml", "sql", "sh", "yml", "yaml", "json", "html", "txt", "service", "control",
];
/// The one file that has to name them.
const HERE: &str = "xtask/tests/words.rs";

fn workspace() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}

/// Whether a text has the word, standing alone or between underscores. What follows a `\n` in a string stands alone too.
fn has(text: &str, word: &str) -> bool {
    text.match_indices(word).any(|(at, _)| {
        let (before, behind) = (&text[..at], &text[at + word.len()..]);
        let joined = |char: Option<char>| char.is_some_and(char::is_alphanumeric);
        (before.ends_with("\\n") || !joined(before.chars().next_back()))
            && !joined(behind.chars().next())
    })
}

/// Adds the places in a directory where a replaced word stands.
fn search(dir: &Path, found: &mut Vec<String>) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            if !NOT_OURS.iter().any(|name| path.ends_with(name)) {
                search(&path, found);
            }
            continue;
        }
        let name = path.strip_prefix(workspace()).unwrap().to_string_lossy();
        let extension = path.extension().unwrap_or_default().to_string_lossy();
        if name == HERE || !TEXTS.contains(&&*extension) {
            continue;
        }
        let text = String::from_utf8_lossy(&fs::read(&path).unwrap()).into_owned();
        for (line, number) in text.lines().zip(1..) {
            for (word, instead, allowed) in REPLACED {
                if has(line, word) && !allowed.iter().any(|allowed| name.starts_with(allowed)) {
                    found.push(format!("{name}:{number}: {word:?} is {instead}"));
                }
            }
        }
    }
}

#[test]
fn replaced_words_stay_replaced() {
    let mut found = Vec::new();
    search(workspace(), &mut found);
    assert!(found.is_empty(), "{found:#?}");
}

#[test]
fn a_word_is_found_where_it_stands_alone() {
    for text in ["lid", "pending_lid = 1", "(lid)", r#""[limits]\nlid = 1""#] {
        assert!(has(text, "lid"), "{text}");
    }
    for text in ["valid", "lids", "slide"] {
        assert!(!has(text, "lid"), "{text}");
    }
}
