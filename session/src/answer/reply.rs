//! What the session must know of a statement to put LAST_INSERT_ID() right behind it, and what it has to become.

use keywright_rewrite::{LastInsertId, LastInsertIdChange};
use keywright_wire::bytes::Reader;
use keywright_wire::done::Done;

/// What a statement that is passed on may see and change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Effect {
    /// It could see LAST_INSERT_ID().
    pub(crate) sees: bool,
    /// It calls something that may do more than its text shows.
    pub(crate) calls: bool,
    /// It changes rows of tables whose triggers may do more, or reads tables that may be views: so may functions behind those.
    pub(crate) fires: bool,
    /// It asks for ROW_COUNT().
    pub(crate) counts: bool,
    pub(crate) change: LastInsertIdChange,
    /// It is an INSERT: its OK packet says whether a key was generated.
    pub(crate) inserts: bool,
}

impl Effect {
    /// Of a statement that was not read.
    pub(crate) const UNKNOWN: Self = Self {
        sees: true,
        calls: true,
        fires: true,
        counts: false,
        change: LastInsertIdChange::Unknown,
        inserts: false,
    };

    /// Of a text without any.
    pub(crate) const NOTHING: Self = Self {
        sees: false,
        calls: false,
        fires: false,
        counts: false,
        change: LastInsertIdChange::Keeps,
        inserts: false,
    };

    /// Of both, one behind the other.
    pub(crate) fn and(self, other: Self) -> Self {
        Self {
            sees: self.sees || other.sees,
            calls: self.calls || other.calls,
            fires: self.fires || other.fires,
            counts: self.counts || other.counts,
            change: match (self.change, other.change) {
                (LastInsertIdChange::Keeps, LastInsertIdChange::Keeps) => LastInsertIdChange::Keeps,
                // What is set first may be set again, or by an INSERT.
                (_, _) => LastInsertIdChange::Unknown,
            },
            inserts: self.inserts || other.inserts,
        }
    }
}

/// What the session must know to correct the answer to a rewritten statement.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) last_insert_id: LastInsertId,
    pub(crate) rows: u64,
    pub(crate) keys: u64,
    /// The first key.
    pub(crate) first: Option<u64>,
    pub(crate) may_skip: bool,
    pub(crate) on_duplicate: bool,
    /// It may say IGNORE: then the answer tells how many of several rows were left out, and else how many were updated.
    pub(crate) may_ignore: bool,
    /// The server is known to report the key of the only row if it went in, and else none.
    pub(crate) reports_key: bool,
    /// The statement may have given LAST_INSERT_ID() a value of its own.
    pub(crate) may_change: bool,
    /// What LAST_INSERT_ID() showed before, as far as that is known.
    pub(crate) before: Option<u64>,
}

/// What LAST_INSERT_ID() has to become before anybody can see it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PendingLastInsertId {
    /// This.
    To(u64),
    /// This if the server's is above a number, and else what it was before: it counts the keys of a LOAD DATA.
    ToIfAbove { above: u64, id: u64, before: u64 },
    /// This while the server's is that number: an INSERT that went out meanwhile may have made a key.
    ToWhile { server: u64, id: u64 },
}

impl PendingLastInsertId {
    /// The number, if it is known.
    pub(crate) fn id(self) -> Option<u64> {
        match self {
            Self::To(id) => Some(id),
            Self::ToIfAbove { .. } | Self::ToWhile { .. } => None,
        }
    }

    /// The number, as the server computes it.
    pub(crate) fn expression(self) -> String {
        match self {
            Self::To(id) => id.to_string(),
            Self::ToIfAbove { above, id, before } => {
                format!("IF(LAST_INSERT_ID()>{above},{id},{before})")
            }
            // MySQL takes a signed and an unsigned number together for no integer.
            Self::ToWhile { server, id } => {
                format!("CAST(IF(LAST_INSERT_ID()={server},{id},LAST_INSERT_ID()) AS UNSIGNED)")
            }
        }
    }
}

/// What LAST_INSERT_ID() is to show after a statement that succeeded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reported {
    /// What it showed before; the server's own id in the OK packet is right.
    Before,
    /// What it showed before, although the server has the key that did not go in.
    NotThatKey,
    /// This key, in the OK packet too.
    Key(u64),
}

impl Reply {
    /// The id that native auto-increment would have reported.
    /// `counts_found`: an update that changes nothing counts as one row, as an insert does.
    pub(crate) fn reported(&self, done: Done, payload: &[u8], counts_found: bool) -> Reported {
        let Some(first) = self.first else {
            return Reported::Before;
        };
        let nothing = self.may_skip && done.affected_rows == 0;
        match self.last_insert_id {
            LastInsertId::None => Reported::Before,
            LastInsertId::Wrapped if nothing => Reported::NotThatKey,
            LastInsertId::Wrapped => Reported::Key(first),
            LastInsertId::Literal if !self.may_skip => Reported::Key(first),
            LastInsertId::Literal if self.rows == 1 && self.went_in(done, first, counts_found) => {
                Reported::Key(first)
            }
            LastInsertId::Literal if self.rows == 1 || nothing => Reported::Before,
            // Several rows, and the server does not say which went in: none, or as if the first did.
            LastInsertId::Literal if self.updated_all(done, payload, counts_found) => {
                Reported::Before
            }
            LastInsertId::Literal => Reported::Key(first),
        }
    }

    /// Whether each of several rows found another to update, perhaps to what it was.
    #[cold]
    fn updated_all(&self, done: Done, payload: &[u8], counts_found: bool) -> bool {
        let updated = match records_and_duplicates(payload).filter(|_| !self.may_ignore) {
            // Of VALUES those are all rows that were found then, and of a SELECT still those that changed: if all did, none went in.
            Some((records, duplicates)) if counts_found => return records == duplicates,
            Some((_, updated)) => updated.checked_mul(2),
            None => None,
        };
        let all = self.on_duplicate.then(|| self.rows.saturating_mul(2));
        updated.or(all) == Some(done.affected_rows)
    }

    /// Whether the only row went in. The number of rows tells, which for an update is 2, or 0 when nothing changed. Where rows that are
    /// found count it is 1 then, and the reported id tells: a value may report another. None tells nothing where the server reports no key.
    fn went_in(&self, done: Done, first: u64, counts_found: bool) -> bool {
        let is_counted = !(self.on_duplicate && counts_found);
        let is_unreported = done.insert_id == 0 && !self.reports_key;
        done.affected_rows == 1 && (is_counted || is_unreported || done.insert_id == first)
    }
}

/// How many rows a statement had, and how many of them were updated, as the OK packet of a statement of several rows says in words:
/// `Records: 2  Duplicates: 1  Warnings: 0`, in the language of the session.
fn records_and_duplicates(payload: &[u8]) -> Option<(u64, u64)> {
    let mut reader = Reader(payload);
    reader.u8()?;
    reader.lenenc()?;
    reader.lenenc()?;
    reader.u16()?;
    reader.u16()?;
    let words = std::str::from_utf8(reader.text()?).ok()?;
    let mut numbers = words
        .split(|of: char| !of.is_ascii_digit())
        .filter(|part| !part.is_empty());
    let records = numbers.next()?.parse().ok()?;
    let duplicates = numbers.next()?.parse().ok()?;
    (numbers.count() == 1).then_some((records, duplicates))
}

/// Whether a text may ask for ROW_COUNT(). Texts may be long: only what stands around a `_` is looked at.
pub(crate) fn names_row_count(text: &[u8]) -> bool {
    const BEFORE: usize = "row".len();
    const NAME: &[u8] = b"row_count";
    memchr::memchr_iter(b'_', text).any(|at| {
        let start = at.checked_sub(BEFORE);
        let part = start.and_then(|start| text.get(start..)?.get(..NAME.len()));
        part.is_some_and(|part| part.eq_ignore_ascii_case(NAME))
    })
}

#[cfg(test)]
mod tests {
    use super::names_row_count;

    #[test]
    fn row_count_is_seen_wherever_it_stands() {
        for text in [
            "row_count",
            "SELECT ROW_COUNT(), 1",
            "_Row_Count",
            "a_b row_row_count",
        ] {
            assert!(names_row_count(text.as_bytes()), "{text}");
        }
        for text in [
            "",
            "_",
            "_count",
            "ow_count",
            "row_coun",
            "rowcount()",
            "row _count",
        ] {
            assert!(!names_row_count(text.as_bytes()), "{text}");
        }
    }
}
