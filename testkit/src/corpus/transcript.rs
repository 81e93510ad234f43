//! What one side saw, so that two sides can be compared: keys by their order, the schema by one name.

use std::borrow::Cow;
use std::collections::BTreeMap;

use anyhow::ensure;

use super::keys::{KEY_FIRST, KEY_SPACE_SIZE, KEY_SPACES};
use crate::Result;
use crate::wire::{Column, Done, Reply, SqlFault, Statement, Value, status};

/// Whether a statement took long is not the statement's.
const STATUS_COMPARED: u16 = !status::WAS_SLOW;

/// The replies in lines, all fields shown; bytes that are not ASCII are escaped.
pub(crate) fn show_replies(replies: &[Reply]) -> String {
    let shown: Vec<String> = replies.iter().map(show_reply).collect();
    shown.join("\n")
}

fn show_reply(reply: &Reply) -> String {
    match reply {
        Reply::Done(done) => format!("ok {}", show_done(done)),
        Reply::Failed(fault) => show_fault(fault),
        Reply::Rows(rows) => {
            let columns: Vec<String> = rows.columns.iter().map(show_column).collect();
            let lines: Vec<String> = rows.rows.iter().map(|row| show_row(row)).collect();
            format!(
                "columns {}\n{}\nend {}",
                columns.join(", "),
                lines.join("\n"),
                show_done(&rows.end)
            )
        }
    }
}

pub(crate) fn show_fault(fault: &SqlFault) -> String {
    format!(
        "error {} ({}): {}",
        fault.errno,
        fault.sqlstate,
        fault.message.escape_ascii()
    )
}

/// # Errors
/// Sides differ; the error shows where.
pub(crate) fn none_differ(faults: &[String], statements: usize) -> Result<()> {
    ensure!(
        faults.is_empty(),
        "{} of {statements} statements differ:\n\n{}",
        faults.len(),
        faults.join("\n\n")
    );
    Ok(())
}

pub(crate) fn show_statement(statement: &Statement) -> String {
    let list = |columns: &[Column]| {
        let shown: Vec<String> = columns.iter().map(show_column).collect();
        shown.join(", ")
    };
    format!(
        "prepared, parameters [{}], columns [{}], {} warnings",
        list(&statement.params),
        list(&statement.columns),
        statement.warnings
    )
}

fn show_done(done: &Done) -> String {
    format!(
        "affected {} id {} status {:#x} warnings {} info {:?} changes \"{}\"",
        done.affected_rows,
        done.last_insert_id,
        done.status & STATUS_COMPARED,
        done.warnings,
        String::from_utf8_lossy(&done.info),
        done.changes.escape_ascii()
    )
}

fn show_column(column: &Column) -> String {
    format!(
        "{}.{}({}).{}({}) type {:#x} collation {} length {} flags {:#x} decimals {}",
        column.schema.escape_ascii(),
        column.table.escape_ascii(),
        column.org_table.escape_ascii(),
        column.name.escape_ascii(),
        column.org_name.escape_ascii(),
        column.kind,
        column.collation,
        column.length,
        column.flags,
        column.decimals
    )
}

pub(crate) fn show_row(row: &[Value]) -> String {
    let fields: Vec<String> = row
        .iter()
        .map(|value| match value {
            Value::Bytes(bytes) => format!("\"{}\"", bytes.escape_ascii()),
            Value::Null | Value::Signed(_) | Value::Unsigned(_) | Value::Real(_) => {
                value.to_string()
            }
        })
        .collect();
    fields.join(" | ")
}

/// The runs of digits of a text, and what is between them.
fn pieces(text: &str) -> impl Iterator<Item = Cow<'_, str>> {
    let bytes = text.as_bytes();
    bytes
        .chunk_by(|a, b| a.is_ascii_digit() == b.is_ascii_digit())
        .map(String::from_utf8_lossy)
}

/// A number that is a key: of which space, and which.
fn as_key(digits: &str) -> Option<(usize, u64)> {
    let number: u64 = digits.parse().ok()?;
    let above = number.checked_sub(KEY_FIRST)?;
    let space = usize::try_from(above / KEY_SPACE_SIZE).ok()?;
    (space < KEY_SPACES.len()).then_some((space, number))
}

/// The place of every key among those of its space that one side saw.
#[derive(Debug, Default)]
pub(crate) struct Ranks(BTreeMap<(usize, u64), usize>);

impl Ranks {
    pub(crate) fn of<'a>(texts: impl Iterator<Item = &'a str>) -> Ranks {
        let mut keys = BTreeMap::new();
        for key in texts.flat_map(pieces).filter_map(|piece| as_key(&piece)) {
            keys.insert(key, 0);
        }
        let mut last = (0, 0);
        for (&(space, _), place) in &mut keys {
            let rank = if space == last.0 { last.1 + 1 } else { 1 };
            last = (space, rank);
            *place = rank;
        }
        Ranks(keys)
    }

    /// The text with `#t.1` for the smallest key of `t`, and so on.
    pub(crate) fn applied_to(&self, text: &str) -> String {
        let shown = |piece: Cow<'_, str>| {
            let found = as_key(&piece).and_then(|key| Some((key, *self.0.get(&key)?)));
            match found {
                Some(((space, _), rank)) => {
                    let (schema, table) = KEY_SPACES.get(space).unwrap_or(&("", "?"));
                    format!("#{table}{schema}.{rank}")
                }
                None => piece.into_owned(),
            }
        };
        pieces(text).map(shown).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_compared_by_order() {
        let native = ["id 1000000000, 7", "'1000000005'-1000000000"];
        let other = ["id 1050000001, 7", "'1050000009'-1050000001"];
        let show = |side: [&str; 2]| {
            let ranks = Ranks::of(side.into_iter());
            side.map(|text| ranks.applied_to(text))
        };
        assert_eq!(show(native), ["id #t.1, 7", "'#t.2'-#t.1"]);
        assert_eq!(show(native), show(other));
        let child = ["id 1200000000", "1000000000 1200000001"];
        assert_eq!(show(child), ["id #t_child.1", "#t.1 #t_child.2"]);
        let unlike = ["id 1050000001, 7", "'1050000009'-1050000009"];
        assert_ne!(show(native), show(unlike));
        let ranks = Ranks::of(native.into_iter());
        assert_eq!(ranks.applied_to("11000000000 10"), "11000000000 10");
    }
}
