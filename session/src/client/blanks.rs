//! Statements that the server reads otherwise than the proxy, by their character set: it has blanks beyond ASCII, characters that end in
//! what looks like a quote, or names that have other bytes in UTF-8.

use keywright_rewrite::{
    CharsetClass, Kind, Modes, Unsupported, begins_with_blanks_beyond_ascii, brings_rows,
    has_blanks_beyond_ascii, has_doubtful_quotes, kind, may_have_blanks_beyond_ascii,
    reads_blanks_beyond_ascii,
};

use crate::connection::Connection;
use crate::rules::unread_names::SHORT_BYTES_MAX;
use crate::step::Step;

impl Connection {
    /// What keeps a text from being read, if anything does. `is_several`: there may be several statements in it. `Err`: the character set is
    /// to be asked for first.
    pub(crate) fn is_beyond_reading(
        &mut self,
        text: &[u8],
        is_several: bool,
    ) -> Result<Option<Unsupported>, Step> {
        let modes = self.context.modes;
        // Most texts are such: ASCII is read alike in all character sets but swe7.
        let is_ascii = text.len() <= SHORT_BYTES_MAX && text.is_ascii();
        if is_ascii && modes.charset != CharsetClass::NoAscii {
            return Ok(None);
        }
        let at_worst = Modes {
            charset: match self.context.known {
                true => modes.charset,
                false => CharsetClass::TrailByteMayBeBackslash,
            },
            ..modes
        };
        let rewrites = self.rewrites_any();
        let is_doubtful = has_doubtful_quotes(text, &at_worst, is_several) && !self.only_observes();
        let may_have_blanks = || rewrites && may_have_blanks_beyond_ascii(text, &modes);
        let has_no_ascii = rewrites && modes.charset == CharsetClass::NoAscii && brings_rows(text);
        let is_unread = rewrites && self.fills_unread(text, is_several);
        let is_unsure = is_doubtful || has_no_ascii || is_unread;
        if !self.context.known && (is_unsure || may_have_blanks()) {
            return Err(self.ask_context());
        }
        Ok(if has_no_ascii {
            Some(Unsupported::NoAscii)
        } else if rewrites && has_blanks_beyond_ascii(text, &modes) {
            Some(Unsupported::Blank)
        } else if is_unread {
            Some(Unsupported::NameCharset)
        } else {
            is_doubtful.then_some(Unsupported::Charset)
        })
    }

    /// What a statement is: one with blanks beyond ASCII may be any, or name other tables than it looks, so it may change anything. What
    /// defines tables, or asks for keys, stays what it is: more follows from that.
    pub(crate) fn statement_kind(&self, text: &[u8]) -> Kind {
        let modes = &self.context.modes;
        let kind = kind(text, modes);
        let is_any = !matches!(kind, Kind::Ddl | Kind::NextValue)
            && reads_blanks_beyond_ascii(text, modes)
            && self.rewrites_any();
        if is_any { Kind::Other } else { kind }
    }

    /// Whether the beginning of a text that is not read to its end may be another than it looks, by blanks beyond ASCII.
    pub(crate) fn begins_with_blanks(&self, beginning: &[u8]) -> bool {
        self.rewrites_any() && self.has_blanks_at_front(beginning, &self.context.modes)
    }

    /// The same in these modes, whether or not a rule rewrites.
    pub(super) fn has_blanks_at_front(&self, beginning: &[u8], modes: &Modes) -> bool {
        begins_with_blanks_beyond_ascii(beginning, modes, self.context.known)
    }
}
