//! Constants at the key column's place: which of them ask for a key, and which are one.

use crate::lex::cursor::Cursor;
use crate::lex::literal::{digits, hex_text};
use crate::lex::scan::Scanned;
use crate::lex::token::{Kind, Token};
use crate::modes::Flavour;
use crate::read::constant::{
    AsInteger, Care, Meaning, decimal_as_integer, digits_as_integer, double_as_integer, is_zero,
    text_as_integer,
};
use crate::read::key_wanted::{KeyForm, Value, Wanted};
use crate::refusal::{KeyExpression, Unread, Unsupported};

impl Cursor<'_> {
    /// Past a constant in any number of parentheses and signs.
    pub(crate) fn constant(
        &mut self,
        wanted: Wanted<'_>,
        seen: &mut Scanned,
    ) -> Result<Value, Unread> {
        let mut depth = 0_u32;
        let mut sign = Sign::None;
        let token = loop {
            let token = self.token()?;
            match token.kind {
                Kind::Mark(b'(') => depth = depth.saturating_add(1),
                Kind::Mark(b'-') => sign = Sign::Minus,
                Kind::Mark(b'+') => sign = sign.max(Sign::Plus),
                Kind::Mark(b',' | b')' | b';') | Kind::End => return Err(Unread::Refused),
                _ => break token,
            }
        };
        let value = self.literal(token, wanted, sign, depth > 0, seen)?;
        for _ in 0..depth {
            if !self.accept_mark(b')')? {
                return Err(Unsupported::Key(KeyExpression::Operator).into());
            }
        }
        Ok(value)
    }

    fn literal(
        &mut self,
        token: Token,
        wanted: Wanted<'_>,
        sign: Sign,
        nested: bool,
        seen: &mut Scanned,
    ) -> Result<Value, Unread> {
        let refused = |reason| Err(Unsupported::Key(reason).into());
        let bytes = token.of(self.text);
        let signed = sign != Sign::None;
        match token.kind {
            Kind::Word if signed => refused(KeyExpression::Operator),
            Kind::Word => self.keyword(token, wanted, nested, seen),
            Kind::Null if self.modes.server.flavour == Flavour::MySql => Err(Unread::Refused),
            Kind::Null if !signed => Ok(Value::Null),
            Kind::Parameter if !signed && !nested => {
                seen.parameters = seen.parameters.saturating_add(1);
                Ok(Value::Parameter)
            }
            Kind::Parameter | Kind::Null => refused(KeyExpression::Operator),
            Kind::Variable => refused(KeyExpression::Variable),
            Kind::Name => refused(KeyExpression::Column),
            // A temporary table between would hold it as text.
            Kind::Hex | Kind::Bits if wanted.in_query => refused(KeyExpression::Operator),
            Kind::Text if wanted.form != KeyForm::Integer && !signed && !wanted.in_query => {
                self.own_text(bytes)
            }
            _ if wanted.form != KeyForm::Integer => refused(KeyExpression::Operator),
            Kind::Decimal => asked(
                sign.of(decimal_as_integer(bytes), is_zero(bytes)),
                wanted,
                seen,
            ),
            Kind::Float => match std::str::from_utf8(bytes).map(str::parse::<f64>) {
                Ok(Ok(number)) => asked(
                    sign.of(double_as_integer(number), is_zero(bytes)),
                    wanted,
                    seen,
                ),
                _ => refused(KeyExpression::LongNumber),
            },
            // To MariaDB `x'30'` is the string '0', and 0x30 a number.
            Kind::Hex if self.modes.server.flavour == Flavour::MariaDb && bytes.ends_with(b"'") => {
                match hex_text(digits(bytes)) {
                    // An empty one is 0 without a word, even in strict mode.
                    Some(content) if !signed && !content.is_empty() => {
                        asked(text_as_integer(&content), wanted.without_lax(), seen)
                    }
                    Some(_) if !signed => refused(KeyExpression::NotNumber),
                    Some(_) | None => refused(KeyExpression::Operator),
                }
            }
            Kind::Hex => asked(sign.of_digits(digits(bytes), 2), wanted, seen),
            Kind::Bits => asked(sign.of_digits(digits(bytes), 8), wanted, seen),
            Kind::Text if !signed => self.text_constant(bytes, wanted, seen),
            // MySQL warns of it.
            Kind::National
                if !signed && !wanted.in_query && self.modes.server.flavour == Flavour::MariaDb =>
            {
                self.text_constant(bytes.get(1..).unwrap_or_default(), wanted, seen)
            }
            Kind::National => refused(KeyExpression::Introducer),
            Kind::Text | Kind::Assign | Kind::Mark(_) | Kind::End => {
                refused(KeyExpression::Operator)
            }
        }
    }

    /// A string that is a key, and those that stand right behind it.
    fn own_text(&mut self, bytes: &[u8]) -> Result<Value, Unread> {
        const QUOTES_BYTES: usize = 2;
        let mut is_empty = bytes.len() <= QUOTES_BYTES;
        while self.peek()?.kind == Kind::Text {
            is_empty |= self.token()?.of(self.text).len() <= QUOTES_BYTES;
        }
        match is_empty && self.modes.empty_is_null {
            true => Err(Unsupported::Key(KeyExpression::EmptyText).into()),
            false => Ok(Value::Explicit),
        }
    }

    /// A string, and those that stand right behind it.
    fn text_constant(
        &mut self,
        bytes: &[u8],
        wanted: Wanted<'_>,
        seen: &mut Scanned,
    ) -> Result<Value, Unread> {
        let mut content = self.unescaped(bytes);
        while self.peek()?.kind == Kind::Text {
            let token = self.token()?;
            content.extend(self.unescaped(token.of(self.text)));
        }
        // There the servers may take it for 0 even in strict mode.
        if content.is_empty() && wanted.in_query {
            return Err(Unsupported::Key(KeyExpression::NotNumber).into());
        }
        asked(text_as_integer(&content), wanted, seen)
    }

    fn keyword(
        &mut self,
        token: Token,
        wanted: Wanted<'_>,
        nested: bool,
        seen: &mut Scanned,
    ) -> Result<Value, Unread> {
        let refused = |reason| Err(Unsupported::Key(reason).into());
        let text = self.text;
        let is = |word| token.is(text, word);
        if is("NULL") {
            return Ok(Value::Null);
        }
        // There it is that of a column that is read.
        if is("DEFAULT") && wanted.in_query {
            return refused(KeyExpression::DefaultOfOther);
        }
        if is("DEFAULT") {
            let value = self.default_value(wanted, nested)?;
            return Ok(match wanted.form {
                KeyForm::Integer => value,
                KeyForm::Text | KeyForm::Bytes => Value::Null,
            });
        }
        let is_integer = wanted.form == KeyForm::Integer;
        if is("TRUE") && is_integer {
            return Ok(Value::Explicit);
        }
        if is("FALSE") && is_integer {
            return Ok(Value::Zero);
        }
        if is("IGNORE") {
            return refused(KeyExpression::Ignore);
        }
        if is("LAST_INSERT_ID") && is_integer && self.byte(0) == b'(' {
            return self.last_insert_id_of_constant(seen);
        }
        if is("SELECT") || is("WITH") {
            return refused(KeyExpression::Subquery);
        }
        match self.peek()?.kind {
            Kind::Mark(b'(') => refused(KeyExpression::Call),
            Kind::Text if is_integer && self.introduces_ascii(token) && !wanted.in_query => {
                let string = self.token()?;
                self.text_constant(string.of(text), wanted, seen)
            }
            Kind::Text | Kind::Hex | Kind::Bits => refused(KeyExpression::Introducer),
            Kind::Mark(b',' | b')' | b';' | b'.') | Kind::End => refused(KeyExpression::Column),
            _ => refused(KeyExpression::Operator),
        }
    }

    /// Whether a word names a character set, before a string, in which digits are those of ASCII, and of which the server does not warn.
    fn introduces_ascii(&self, word: Token) -> bool {
        let is_one_of = |names: &[&str]| {
            let mut names = names.iter();
            names.any(|name| word.of(self.text).eq_ignore_ascii_case(name.as_bytes()))
        };
        match self.modes.server.flavour {
            Flavour::MariaDb if is_one_of(&["_utf8", "_utf8mb3"]) => true,
            Flavour::MariaDb | Flavour::MySql => {
                is_one_of(&["_binary", "_ascii", "_latin1", "_utf8mb4"])
            }
        }
    }

    /// `DEFAULT`, or `DEFAULT(column)`.
    fn default_value(&mut self, wanted: Wanted<'_>, nested: bool) -> Result<Value, Unread> {
        // Not past blanks that lead to something else: they are no part of the value.
        if self.peek()?.kind != Kind::Mark(b'(') {
            return match (nested, wanted.in_row) {
                (true, _) => Err(Unread::Refused),
                (_, true) => Err(Unsupported::Key(KeyExpression::DefaultInRow).into()),
                _ => Ok(Value::Zero),
            };
        }
        self.token()?;
        let column = self.path()?;
        if !self.accept_mark(b')')? {
            return Err(Unread::Refused);
        }
        if column.last.eq_ignore_ascii_case(wanted.name) {
            Ok(Value::Zero)
        } else {
            Err(Unsupported::Key(KeyExpression::DefaultOfOther).into())
        }
    }

    /// `LAST_INSERT_ID(7)` and `LAST_INSERT_ID(7)+1`: explicit keys, as this crate writes them.
    fn last_insert_id_of_constant(&mut self, seen: &mut Scanned) -> Result<Value, Unread> {
        seen.last_insert_id = true;
        self.accept_mark(b'(')?;
        let number = self.token()?;
        let explicit = number.kind == Kind::Decimal
            && decimal_as_integer(number.of(self.text)) == AsInteger::Other
            && self.accept_mark(b')')?;
        if !explicit {
            return Err(Unsupported::Key(KeyExpression::Call).into());
        }
        // As above.
        if self.peek()?.kind == Kind::Mark(b'+') {
            self.token()?;
            if self.token()?.kind != Kind::Decimal {
                return Err(Unsupported::Key(KeyExpression::Operator).into());
            }
        }
        Ok(Value::Explicit)
    }
}

/// What stands before a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Sign {
    None,
    Plus,
    /// A `-`, perhaps one of several.
    Minus,
}

impl Sign {
    /// What a number without sign comes to behind this. `is_zero`: it is 0 if it asks.
    fn of(self, as_integer: AsInteger, is_zero: bool) -> AsInteger {
        match self {
            Self::None | Self::Plus => as_integer,
            Self::Minus => as_integer.negated(is_zero),
        }
    }

    /// The same of hexadecimal or binary digits: where they are computed with, those of the last eight bytes count.
    fn of_digits(self, digits: &[u8], per_byte: usize) -> AsInteger {
        match self {
            Self::Minus if digits.len() > per_byte * 8 => AsInteger::Unclean,
            Self::None | Self::Plus | Self::Minus => {
                self.of(digits_as_integer(digits, per_byte), true)
            }
        }
    }
}

fn asked(as_integer: AsInteger, wanted: Wanted<'_>, seen: &mut Scanned) -> Result<Value, Unread> {
    // What was called before in the row may have written to a table that rolls nothing back: then the server only warns.
    let care = Care {
        is_strict: wanted.care.is_strict && !seen.calls,
        // What a query yields may be put aside before it is stored.
        is_lax: wanted.care.is_lax && !wanted.in_query,
        ..wanted.care
    };
    match as_integer.meaning(care) {
        Ok(Meaning::Zero) => Ok(Value::Zero),
        Ok(Meaning::ZeroNow) => {
            seen.by_mode = true;
            Ok(Value::Zero)
        }
        Ok(Meaning::Explicit) => Ok(Value::Explicit),
        Ok(Meaning::ExplicitNow) => {
            seen.by_mode = true;
            Ok(Value::Explicit)
        }
        Err(reason) => Err(Unsupported::Key(reason).into()),
    }
}
