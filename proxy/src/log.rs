//! The log's lines: no name, and nothing that a peer says, makes one that looks like another event's.

mod output;

use std::fmt;

use tracing::{Event, Level, Metadata, Subscriber};
use tracing_subscriber::fmt::format::{Format, Writer};
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

pub use output::LogOutput;

/// How the further lines of an event begin.
const FURTHER_LINE: &str = "    ";
/// What ends a line, and is no control character.
const LINE_ENDS: [char; 2] = ['\u{2028}', '\u{2029}'];

/// What the targets of the program's own crates begin with.
const OWN_TARGETS: &str = "keywright";

/// Whether it is logged where its level is wanted. What libraries say at `debug` and `trace` is not, whatever is wanted: the drivers of stores and the
/// parser of statements show statements there, with the values in them.
#[must_use]
pub fn may_be_shown(metadata: &Metadata<'_>) -> bool {
    *metadata.level() <= Level::INFO || metadata.target().starts_with(OWN_TARGETS)
}

/// Formats events: their further lines begin with blanks, and control characters are escaped. Lists of problems have several lines on purpose.
#[derive(Debug, Default)]
pub struct EventLines(Format);

impl<S, N> FormatEvent<S, N> for EventLines
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let mut text = String::new();
        self.0
            .format_event(context, Writer::new(&mut text), event)?;
        writer.write_str(&lines(&text))
    }
}

/// The lines of one event.
fn lines(text: &str) -> String {
    let text = text.strip_suffix('\n').unwrap_or(text);
    let mut out = String::with_capacity(text.len() + 1);
    for (number, line) in text.split('\n').enumerate() {
        if number > 0 {
            out.push('\n');
            if !line.starts_with(FURTHER_LINE) {
                out.push_str(FURTHER_LINE);
            }
        }
        push_on_one_line(line, &mut out);
    }
    out.push('\n');
    out
}

/// A name, or what a peer says, on one line: control characters are escaped.
pub fn on_one_line(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    push_on_one_line(text, &mut out);
    out
}

fn push_on_one_line(text: &str, out: &mut String) {
    for character in text.chars() {
        match character.is_control() || LINE_ENDS.contains(&character) {
            true => out.extend(character.escape_debug()),
            false => out.push(character),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{lines, on_one_line};

    #[test]
    fn lists_keep_their_lines() {
        assert_eq!(
            lines("2 problems:\n    one\n      two\n"),
            "2 problems:\n    one\n      two\n"
        );
        assert_eq!(lines("a: b\nc: d\n"), "a: b\n    c: d\n");
        assert_eq!(lines("é\t\0\n"), "é\\t\\0\n");
    }

    #[test]
    fn what_a_peer_says_stays_on_one_line() {
        assert_eq!(
            on_one_line("Table 'd.t\nx\u{85}\u{2028}' is \"ü\""),
            "Table 'd.t\\nx\\u{85}\\u{2028}' is \"ü\""
        );
    }
}
