//! Whether what was said is what a page shows.

use anyhow::{Result, bail};

/// How exactly.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Numbers {
    /// As shown.
    Same,
    /// Numbers, and what depends on the moment, may be others.
    Differ,
}

/// Whether each shown line stands in what was said, one behind the other. `…` stands for anything.
pub(super) fn compare(place: &str, shown: &[String], said: &str, numbers: Numbers) -> Result<()> {
    let said_lines: Vec<String> = said.lines().map(|line| plain(line, numbers)).collect();
    let mut rest = said_lines.iter();
    for line in shown.iter().filter(|line| line.trim() != "…") {
        let wanted = plain(line, numbers);
        if !rest.any(|said| holds(said, &wanted)) {
            bail!("{place} shows {line:?}, which was not said; it was\n{said}");
        }
    }
    Ok(())
}

/// The parts around `…`, one behind the other.
fn holds(said: &str, wanted: &str) -> bool {
    let mut rest = said;
    wanted.split('…').all(|part| match rest.find(part) {
        Some(at) => {
            rest = &rest[at + part.len()..];
            true
        }
        None => false,
    })
}

/// The line with single blanks, and `0` for every number where they may differ.
fn plain(line: &str, numbers: Numbers) -> String {
    let line = line.split_whitespace().collect::<Vec<_>>().join(" ");
    match numbers {
        Numbers::Same => line,
        Numbers::Differ => {
            let mut plain = String::new();
            for char in line.chars() {
                match char {
                    '0'..='9' if plain.ends_with('0') => {}
                    '0'..='9' => plain.push('0'),
                    other => plain.push(other),
                }
            }
            plain
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fits(shown: &[&str], said: &str, numbers: Numbers) -> bool {
        let shown: Vec<String> = shown.iter().map(ToString::to_string).collect();
        compare("p.md:1", &shown, said, numbers).is_ok()
    }

    #[test]
    fn lines_are_compared_in_their_order() {
        let said = "2026 INFO made a\n2026 INFO made b, above 17\nready\n";
        assert!(fits(&["…", "INFO made a", "ready"], said, Numbers::Same));
        assert!(!fits(&["ready", "INFO made a"], said, Numbers::Same));
        assert!(!fits(&["made b, above 18"], said, Numbers::Same));
        assert!(fits(&["made b, above 1800"], said, Numbers::Differ));
        assert!(fits(&["INFO … above"], said, Numbers::Same));
        assert!(!fits(&["above … INFO"], said, Numbers::Same));
    }
}
