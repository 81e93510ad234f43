//! Which expressions the server may be asked for before the statement: they change nothing, and come to the same a moment later unless
//! their value itself is to be used.

use crate::lex::builtins::{
    has_effects, is_aggregate, is_built_in_at_once, is_pure_call, is_pure_call_of_text,
};
use crate::lex::cursor::Cursor;
use crate::lex::keywords::is_reserved;
use crate::lex::token::{Kind, Token};
use crate::read::key_wanted::KeyForm;
use crate::refusal::Unread;

/// Words that may stand in such an expression where nothing is called; a column of that name is an error of the server's own.
const WORDS: [&str; 22] = [
    "AND", "AS", "BETWEEN", "CASE", "DIV", "ELSE", "END", "FALSE", "IN", "INTEGER", "IS", "LIKE",
    "MOD", "NOT", "NULL", "OR", "SIGNED", "THEN", "TRUE", "UNSIGNED", "WHEN", "XOR",
];

/// Functions that are read without arguments; with one, LAST_INSERT_ID() sets what it returns.
const WITHOUT_ARGUMENTS: [&str; 3] = ["LAST_INSERT_ID", "UUID_SHORT", "CONNECTION_ID"];

/// An expression that was read, and what it depends on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Computed {
    pub(crate) start: usize,
    pub(crate) end: usize,
    /// A variable of the session's, which a trigger of the row before could set.
    pub(crate) reads_variable: bool,
    pub(crate) sees_last_insert_id: bool,
    /// It comes to the same once more.
    pub(crate) is_constant: bool,
    /// Another sql_mode or character set could make another value of the same text.
    pub(crate) depends_on_mode: bool,
    /// It is a key that is no number: only whether it is NULL is asked.
    pub(crate) is_text: bool,
}

impl Cursor<'_> {
    /// Past an expression that the server may be asked for; `None`: it is not known to be one.
    pub(crate) fn computed(&mut self, form: KeyForm) -> Result<Option<Computed>, Unread> {
        self.skip_blanks()?;
        let begins_inside = self.inside;
        let mut found = Computed {
            start: self.at,
            end: self.at,
            reads_variable: false,
            sees_last_insert_id: false,
            is_constant: true,
            depends_on_mode: false,
            is_text: form != KeyForm::Integer,
        };
        let mut depth = 0_usize;
        // Which parentheses, from the innermost on, hold one value, and no list. Of those beyond 64 nothing is known.
        let mut hold_one = 0_u64;
        let mut before = None;
        loop {
            let token = self.peek()?;
            match token.kind {
                Kind::Mark(b',' | b')') | Kind::End | Kind::Mark(b';') if depth == 0 => break,
                Kind::End | Kind::Mark(b';') => return Ok(None),
                // A row: the server refuses it, and already when it is prepared.
                Kind::Mark(b',') if hold_one & 1 == 1 => return Ok(None),
                _ if depth == 0 && self.begins_clause(&token) => break,
                Kind::Mark(b'(') => {
                    depth = depth.saturating_add(1);
                    hold_one = hold_one << 1 | u64::from(!self.begins_list(before));
                }
                Kind::Mark(b')') => {
                    depth = depth.saturating_sub(1);
                    hold_one >>= 1;
                }
                _ => {}
            }
            before = Some(token);
            self.token()?;
            if !self.is_pure(token, depth, &mut found)? {
                return Ok(None);
            }
            found.end = token.end.max(self.at);
        }
        // What a comment has in it may count on one server and not on the other.
        let text = self.text.get(found.start..found.end).unwrap_or_default();
        let is_plain = !begins_inside && !self.inside && !text.windows(2).any(|pair| pair == b"/*");
        Ok(Some(found).filter(|_| is_plain && !text.is_empty()))
    }

    /// Whether a parenthesis behind this token begins arguments, or what IN compares with.
    fn begins_list(&self, before: Option<Token>) -> bool {
        before.is_some_and(|before| {
            let mut words = WORDS.iter();
            before.kind == Kind::Word
                && (before.is(self.text, "IN") || !words.any(|word| before.is(self.text, word)))
        })
    }

    fn begins_clause(&self, token: &Token) -> bool {
        let mut words = ["ON", "AS", "RETURNING"].iter();
        words.any(|word| token.is(self.text, word))
    }

    /// Whether a token, which was just passed, may stand in it.
    fn is_pure(
        &mut self,
        token: Token,
        depth: usize,
        found: &mut Computed,
    ) -> Result<bool, Unread> {
        let of = token.of(self.text);
        Ok(match token.kind {
            Kind::Mark(mark) => {
                // `||` and NOT are read as sql_mode says.
                found.depends_on_mode |= b"|!".contains(&mark);
                b"(),+-*/%&|^~<>=!".contains(&mark)
            }
            Kind::Decimal | Kind::Float => true,
            Kind::Text | Kind::National => {
                found.depends_on_mode = true;
                true
            }
            Kind::Variable if self.peek()?.kind == Kind::Assign => false,
            Kind::Variable if of.starts_with(b"@@") => {
                found.sees_last_insert_id = true;
                [b"@@identity".as_slice(), b"@@last_insert_id"]
                    .iter()
                    .any(|name| of.eq_ignore_ascii_case(name))
            }
            Kind::Variable => {
                found.reads_variable = true;
                true
            }
            Kind::Word => self.is_pure_word(token, depth, found)?,
            // The bits of a text, or a number: which of them, where they stand tells.
            Kind::Hex | Kind::Bits => false,
            Kind::Name | Kind::Null | Kind::Parameter | Kind::Assign | Kind::End => false,
        })
    }

    fn is_pure_word(
        &mut self,
        token: Token,
        depth: usize,
        found: &mut Computed,
    ) -> Result<bool, Unread> {
        let text = self.text;
        let is = |word: &&str| token.is(text, word);
        let opens = self.peek()?.kind == Kind::Mark(b'(');
        let opens_at_once = self.byte(0) == b'(';
        found.depends_on_mode |= token.is(text, "NOT") || (opens && !opens_at_once);
        // In parentheses of its own: alone it is a syntax error, which it is not in those of the question.
        if token.is(text, "SELECT") {
            return Ok(depth > 0);
        }
        if WORDS.iter().any(is) && (!opens || is_reserved(token.of(text))) {
            return Ok(true);
        }
        if !opens_at_once {
            return Ok(false);
        }
        if WITHOUT_ARGUMENTS.iter().any(is) {
            // A text that is no NULL stays as it is written, and then it comes to another.
            if found.is_text && token.is(text, "UUID_SHORT") {
                return Ok(false);
            }
            found.sees_last_insert_id |= token.is(text, "LAST_INSERT_ID");
            found.is_constant &= !token.is(text, "UUID_SHORT");
            self.token()?;
            return self.accept_mark(b')');
        }
        let of = token.of(text);
        Ok(is_pure_call(of) || (found.is_text && is_pure_call_of_text(of, self.modes.server)))
    }

    /// Past a query in parentheses that the server may carry out more than once: where it ends. `None`: it is not known to be one.
    pub(crate) fn pure_query(&mut self) -> Result<Option<(usize, usize)>, Unread> {
        self.skip_blanks()?;
        let (start, begins_inside) = (self.at, self.inside);
        let opens = self.accept_mark(b'(')? && self.accept("SELECT")?;
        let mut depth = 1_usize;
        while depth > 0 && opens {
            let token = self.token()?;
            let calls = self.peek()?.kind == Kind::Mark(b'(');
            let may_stand = match token.kind {
                Kind::Mark(b'(') => {
                    depth = depth.saturating_add(1);
                    true
                }
                Kind::Mark(b')') => {
                    depth = depth.saturating_sub(1);
                    true
                }
                Kind::Mark(mark) => b",+-*/%&|^~<>=!.".contains(&mark),
                Kind::Word => self.may_stand_in_query(token)?,
                Kind::Name => !calls,
                Kind::Variable => {
                    let is_own = !token.of(self.text).starts_with(b"@@");
                    is_own && self.peek()?.kind != Kind::Assign
                }
                Kind::Text | Kind::National | Kind::Decimal | Kind::Float => true,
                Kind::Hex | Kind::Bits => true,
                Kind::Null | Kind::Parameter | Kind::Assign | Kind::End => false,
            };
            if !may_stand {
                return Ok(None);
            }
        }
        let text = self.since(start);
        let is_plain = !begins_inside && !self.inside && !text.windows(2).any(|pair| pair == b"/*");
        Ok((opens && is_plain).then_some((start, self.at)))
    }

    fn may_stand_in_query(&mut self, token: Token) -> Result<bool, Unread> {
        let of = token.of(self.text);
        let mut others = ["INTO", "PROCEDURE", "NEXT", "PREVIOUS"].iter();
        if has_effects(of) || others.any(|word| token.is(self.text, word)) {
            return Ok(false);
        }
        let calls = self.peek()?.kind == Kind::Mark(b'(');
        let at_once = self.byte(0) == b'(' && (is_pure_call(of) || is_aggregate(of));
        Ok(!calls || at_once || is_reserved(of))
    }

    /// Whether the text from here to its end leaves the variables, LAST_INSERT_ID() and what was counted last as they are, and asks for
    /// none of the last: the question changes that. `takes_parameters`: what is bound changes nothing of it.
    pub(crate) fn leaves_values(&mut self, takes_parameters: bool) -> Result<bool, Unread> {
        let mut is_qualified = false;
        loop {
            let token = self.token()?;
            let of = token.of(self.text);
            let is_behind_point =
                std::mem::replace(&mut is_qualified, token.kind == Kind::Mark(b'.'));
            if is_behind_point && self.peek()?.kind == Kind::Mark(b'(') {
                return Ok(false);
            }
            match token.kind {
                Kind::End => return Ok(true),
                Kind::Variable => {
                    let is_system = of.starts_with(b"@@");
                    let is_count = ends_with(of, b"_count");
                    if (is_system && is_count) || self.peek()?.kind == Kind::Assign {
                        return Ok(false);
                    }
                }
                Kind::Parameter if !takes_parameters => return Ok(false),
                Kind::Name if self.peek()?.kind == Kind::Mark(b'(') => return Ok(false),
                Kind::Word if !self.leaves_word(token)? => return Ok(false),
                _ => {}
            }
        }
    }

    fn leaves_word(&mut self, token: Token) -> Result<bool, Unread> {
        let of = token.of(self.text);
        if ends_with(of, b"_count") || of.eq_ignore_ascii_case(b"found_rows") {
            return Ok(false);
        }
        let opens = self.peek()?.kind == Kind::Mark(b'(');
        if token.is(self.text, "LAST_INSERT_ID") && opens {
            let mut ahead = *self;
            ahead.token()?;
            return ahead.accept_mark(b')');
        }
        let opens_at_once = self.byte(0) == b'(';
        Ok(match opens {
            false => true,
            true if opens_at_once => is_built_in_at_once(of, self.modes.server),
            true => is_reserved(of),
        })
    }
}

fn ends_with(name: &[u8], end: &[u8]) -> bool {
    let at = name.len().saturating_sub(end.len());
    name.get(at..)
        .is_some_and(|last| last.eq_ignore_ascii_case(end))
}
