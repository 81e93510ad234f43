//! Walks over values at memory speed, noting the little that matters about them.

use crate::lex::byte_class::Class;
use crate::lex::call::Behind;
use crate::lex::cursor::Cursor;
use crate::refusal::Unread;

/// What was seen in the text walked over.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Scanned {
    /// `last_insert_id`, `@@identity`, `insert_id`.
    pub(crate) last_insert_id: bool,
    /// A call of what may be a stored function.
    pub(crate) calls: bool,
    /// A subquery: what it reads may be a view that sees the last id.
    pub(crate) query: bool,
    /// A table is named.
    pub(crate) from: bool,
    /// The name looked for, as a column.
    pub(crate) name: bool,
    /// The name looked for, inside a subquery: it may belong to the tables there.
    pub(crate) name_in_query: bool,
    /// RETURNING, outside parentheses.
    pub(crate) returning: bool,
    /// A key is an error, or no 0 that asks for one, because of what sql_mode is.
    pub(crate) by_mode: bool,
    /// `?`.
    pub(crate) parameters: u32,
}

impl Scanned {
    /// Adds what was seen elsewhere.
    pub(crate) fn add(&mut self, other: Self) {
        self.last_insert_id |= other.last_insert_id;
        self.calls |= other.calls;
        self.query |= other.query;
        self.from |= other.from;
        self.name |= other.name;
        self.name_in_query |= other.name_in_query;
        self.returning |= other.returning;
        self.by_mode |= other.by_mode;
        self.parameters = self.parameters.saturating_add(other.parameters);
    }

    /// Whether the text walked over could see LAST_INSERT_ID() by itself.
    pub(crate) fn sees_last_insert_id(&self) -> bool {
        self.last_insert_id || self.calls || self.query
    }
}

/// Where a walk stopped, before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stop {
    /// `,` on the walk's own level.
    Comma,
    /// `)` on the walk's own level.
    Close,
    /// The statement's next clause: ON, AS, RETURNING.
    Clause,
    /// `;` or the end of the text.
    End,
}

/// What stops a walk on its own level, besides a superfluous `)` and the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Until {
    /// So many `,`: values of a row.
    Commas(usize),
    /// `,` and words that start the next clause: one assignment.
    Clause,
    /// Nothing.
    End,
}

/// The state of a walk.
struct Walk<'a> {
    name: &'a [u8],
    until: Until,
    /// How many `,` were passed on the walk's own level.
    commas: usize,
    depth: usize,
    /// The level of the outermost subquery around the place.
    query: Option<usize>,
    /// What was passed last.
    behind: Behind,
}

impl Cursor<'_> {
    /// Past values of a row: to the `,` behind the last of `count`, or to the `)` or the statement's end; how many `,`
    /// were passed.
    #[inline]
    pub(crate) fn skip_values(
        &mut self,
        count: usize,
        name: &[u8],
        seen: &mut Scanned,
    ) -> Result<(Stop, usize), Unread> {
        let mut walk = Walk::new(name, Until::Commas(count));
        // Mostly there is nothing but constants up to there.
        match self.next_mark(walk.free_commas()) {
            Some((_, Class::Close, passed)) => return Ok((Stop::Close, passed)),
            Some((_, _, passed)) => walk.commas = passed,
            None => {}
        }
        let stop = self.walk(&mut walk, seen)?;
        Ok((stop, walk.commas))
    }

    /// Past the value of an assignment: to the `,` or the clause behind it, or to the statement's end.
    pub(crate) fn skip_assigned(
        &mut self,
        name: &[u8],
        seen: &mut Scanned,
    ) -> Result<Stop, Unread> {
        self.walk(&mut Walk::new(name, Until::Clause), seen)
    }

    /// Past everything up to the statement's end; commas and superfluous parentheses do not stop it.
    pub(crate) fn skip_statement(&mut self, seen: &mut Scanned) -> Result<(), Unread> {
        while self.walk(&mut Walk::new(b"", Until::End), seen)? == Stop::Close {
            self.at += 1;
        }
        Ok(())
    }

    fn walk(&mut self, walk: &mut Walk<'_>, seen: &mut Scanned) -> Result<Stop, Unread> {
        let mut from = self.at;
        while let Some((byte, class, passed)) = self.next_mark(walk.free_commas()) {
            if walk.depth == 0 {
                walk.commas += passed;
            }
            let behind = std::mem::take(&mut walk.behind);
            match class {
                Class::Plain => self.at += 1,
                Class::Quote => self.skip_quote(byte, (behind, from), walk, seen)?,
                Class::Word => {
                    if self.walk_word((behind, from), walk, seen)? {
                        return Ok(Stop::Clause);
                    }
                }
                Class::Comma => return Ok(Stop::Comma),
                Class::Open => {
                    walk.depth += 1;
                    self.at += 1;
                }
                Class::Close if walk.depth == 0 => return Ok(Stop::Close),
                Class::Close => {
                    walk.leave();
                    walk.behind = Behind::Operand;
                    self.at += 1;
                }
                Class::Semicolon if walk.depth == 0 => return self.at_end(),
                Class::Semicolon => return Err(Unread::Refused),
                Class::Comment => {
                    let start = self.at;
                    self.skip_blanks()?;
                    if self.at == start {
                        self.at += 1;
                    }
                }
                Class::At => self.walk_variable(seen)?,
                Class::Question => {
                    self.at += 1;
                    seen.parameters = seen.parameters.saturating_add(1);
                }
            }
            from = self.at;
        }
        if walk.depth > 0 {
            return Err(Unread::Refused);
        }
        self.at_end()
    }

    /// The end of a statement: no executable comment may be open.
    fn at_end(&self) -> Result<Stop, Unread> {
        if self.inside {
            Err(Unread::Refused)
        } else {
            Ok(Stop::End)
        }
    }

    /// Past a string or a name in quotes. `before`: what was passed last, and where that ended.
    fn skip_quote(
        &mut self,
        quote: u8,
        before: (Behind, usize),
        walk: &mut Walk<'_>,
        seen: &mut Scanned,
    ) -> Result<(), Unread> {
        let start = self.at;
        if !self.at_quoted_name() {
            self.at += 1;
            walk.behind = Behind::Operand;
            return self.skip_string(quote);
        }
        self.at += 1;
        self.skip_quoted(quote)?;
        let quoted = self.since(start);
        let inner = quoted.get(1..quoted.len() - 1).unwrap_or_default();
        walk.note_name(inner, seen);
        seen.calls |= self.opens_behind()?
            && !self.is_no_function(before, start)
            && !self.at_columns(start)?;
        Ok(())
    }

    /// Past a word; true, and before it, when it starts the next clause. `before`: what was passed last, and where that ended.
    fn walk_word(
        &mut self,
        before: (Behind, usize),
        walk: &mut Walk<'_>,
        seen: &mut Scanned,
    ) -> Result<bool, Unread> {
        let start = self.at;
        self.skip_word();
        let word = self.since(start);
        let may_end = walk.until == Until::Clause && walk.depth == 0;
        if may_end && is_clause(word) && !self.is_behind_point(start) {
            self.at = start;
            return Ok(true);
        }
        walk.note_name(word, seen);
        walk.note_keyword(word, seen);
        if word.eq_ignore_ascii_case(b"as") {
            walk.behind = Behind::As;
        }
        seen.calls |= self.may_call(start)?
            && !self.is_no_function(before, start)
            && !self.at_columns(start)?;
        Ok(false)
    }

    /// Past `@` and the quoted name behind it; words behind it are walked as words.
    fn walk_variable(&mut self, seen: &mut Scanned) -> Result<(), Unread> {
        let start = self.at;
        self.token()?;
        let variable = self.since(start);
        let system = variable.starts_with(b"@@");
        let is = |word: &[u8]| {
            variable
                .windows(word.len())
                .any(|part| part.eq_ignore_ascii_case(word))
        };
        seen.last_insert_id |=
            system && (is(b"identity") || is(b"insert_id") || is_scope(variable));
        Ok(())
    }
}

impl<'a> Walk<'a> {
    fn new(name: &'a [u8], until: Until) -> Self {
        Self {
            name,
            until,
            commas: 0,
            depth: 0,
            query: None,
            behind: Behind::Other,
        }
    }

    /// How many `,` may be passed from here without stopping.
    fn free_commas(&self) -> usize {
        match self.until {
            Until::Commas(count) if self.depth == 0 => count.saturating_sub(self.commas + 1),
            Until::Clause if self.depth == 0 => 0,
            Until::Commas(_) | Until::Clause | Until::End => usize::MAX,
        }
    }

    /// Out of one pair of parentheses.
    fn leave(&mut self) {
        if self.query == Some(self.depth) {
            self.query = None;
        }
        self.depth -= 1;
    }

    /// Notes the name looked for, with or without quotes.
    fn note_name(&self, word: &[u8], seen: &mut Scanned) {
        if word.len() == self.name.len() && word.eq_ignore_ascii_case(self.name) {
            match self.query {
                Some(_) => seen.name_in_query = true,
                None => seen.name = true,
            }
        }
    }

    /// Notes keywords and variables.
    fn note_keyword(&mut self, word: &[u8], seen: &mut Scanned) {
        let is = |other: &[u8]| word.eq_ignore_ascii_case(other);
        match word.len() {
            4 => seen.from |= is(b"from") || is(b"join") || is(b"into"),
            5 if is(b"table") => (seen.from, seen.query) = (true, true),
            6 if is(b"select") => {
                seen.query = true;
                self.query = self.query.or(Some(self.depth));
            }
            9 => {
                seen.last_insert_id |= is(b"insert_id") || is(b"variables");
                seen.returning |= self.depth == 0 && is(b"returning");
            }
            14 => seen.last_insert_id |= is(b"last_insert_id"),
            _ => {}
        }
    }
}

/// Whether a word ends the assignments of a SET.
fn is_clause(word: &[u8]) -> bool {
    let is = |other: &[u8]| word.eq_ignore_ascii_case(other);
    is(b"on") || is(b"as") || is(b"returning")
}

/// `@@session` and the like, whose variable follows behind blanks or a comment, with the point between on either side of them.
fn is_scope(variable: &[u8]) -> bool {
    let scope = variable.strip_suffix(b".").unwrap_or(variable);
    [b"@@session".as_slice(), b"@@local", b"@@global"]
        .iter()
        .any(|known| known.eq_ignore_ascii_case(scope))
}

#[cfg(test)]
mod tests {
    use super::Scanned;

    #[test]
    fn what_was_seen_once_or_twice_was_seen() {
        let all = |parameters| Scanned {
            last_insert_id: true,
            calls: true,
            query: true,
            from: true,
            name: true,
            name_in_query: true,
            returning: true,
            by_mode: true,
            parameters,
        };
        let mut seen = Scanned::default();
        seen.add(Scanned::default());
        assert_eq!(seen, Scanned::default());
        seen.add(all(3));
        assert_eq!(seen, all(3));
        seen.add(all(4));
        assert_eq!(seen, all(7));
        seen.add(Scanned::default());
        assert_eq!(seen, all(7));
    }
}
