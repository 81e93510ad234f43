//! Statements sent as text that are too long to gather, or too long to wait for: what their beginning says.

use keywright_rewrite::{
    CharsetClass, InsertHead, RowsFrom, Unread, behind_set_statement, has_doubtful_quotes,
    kind_of_beginning,
};
use keywright_wire::answer::Shape;
use keywright_wire::bytes::Header;

use crate::answer::after::After;
use crate::client::attributes::{HEAD_BYTES_MAX, beginning_end};
use crate::connection::Connection;
use crate::job::Next;
use crate::step::Step;

/// Whether what its end says may be an INSERT, or has one carried out that was prepared.
fn brings_another(rows: RowsFrom) -> bool {
    match rows {
        RowsFrom::Blank
        | RowsFrom::File
        | RowsFrom::BehindSet
        | RowsFrom::OfText
        | RowsFrom::Prepared => true,
        RowsFrom::Never | RowsFrom::Written | RowsFrom::Block | RowsFrom::Unseen => false,
    }
}

impl Connection {
    /// A statement that is too long to gather: it is passed on unless it is for a table with a rule, or others may follow it.
    pub(crate) fn long_query(&mut self, header: Header, bytes: &[u8]) -> Next {
        let head = self.beginning(header, bytes);
        let at_least = beginning_end(header);
        if head.map_or(0, <[u8]>::len) < HEAD_BYTES_MAX && bytes.len() < at_least {
            return Step::More { at_least }.into();
        }
        let Ok(head) = head else {
            return self.long_attributes(header, bytes);
        };
        // What it begins with is read by them.
        if self.rewrites_any() && !self.context.known {
            return self.ask_context().into();
        }
        let begins_with_blanks = self.begins_with_blanks(head);
        let modes = self.context.modes;
        let rows = kind_of_beginning(head, &modes).facts().rows;
        if self.rewrites_any()
            && (self.allows_several()
                || begins_with_blanks
                || modes.charset == CharsetClass::NoAscii
                || brings_another(rows)
                || has_doubtful_quotes(head, &modes, false))
        {
            return self.refuse_long(
                "keywright: a text longer than rewrite_bytes_max cannot be read to its end, and may have an INSERT on a table with a rule in it",
            )
            .into();
        }
        if rows != RowsFrom::Written {
            return self.pass_unread(header, bytes, After::ANYTHING);
        }
        if !self.context.known {
            return self.ask_context().into();
        }
        let (is_free, rule) = match InsertHead::read(head, &modes) {
            Ok(head) => {
                let rule = self.rule_of(&head.table);
                let is_native = rule.is_none_or(|rule| !self.rewrites(rule));
                let is_unread = self.rewrites_any() && self.may_match_unread(&head.table);
                (!head.ends_text && is_native && !is_unread, rule)
            }
            Err(Unread::Refused | Unread::Unsupported(_)) => (!self.rewrites_any(), None),
        };
        if is_free {
            if let Some(step) = rule.and_then(|rule| self.enter(header, Some(rule))) {
                return step.into();
            }
            return self.pass_unread(header, bytes, self.after_unread_insert());
        }
        self.refuse_long(
            "keywright: statement on a table with a rule is longer than rewrite_bytes_max",
        )
        .into()
    }

    /// A statement that is too long to gather, and whose text begins too far behind its attributes to be read.
    pub(crate) fn long_attributes(&mut self, header: Header, bytes: &[u8]) -> Next {
        if self.rewrites_any() {
            return self.refuse_long(
                "keywright: query attributes of a statement longer than rewrite_bytes_max cannot be read",
            ).into();
        }
        self.pass_unread(header, bytes, After::ANYTHING)
    }

    /// Whether the beginning of a long statement shows that it is the only one of its text, and an INSERT that no rule is for.
    pub(crate) fn is_for_no_rule(&self, header: Header, bytes: &[u8]) -> bool {
        let head = self.beginning(header, bytes).unwrap_or_default();
        if self.allows_several() || head.len() < HEAD_BYTES_MAX {
            return false;
        }
        self.begins_for_no_rule(head)
    }

    /// Whether the beginning of an INSERT shows that no rule is for its table.
    pub(crate) fn begins_for_no_rule(&self, head: &[u8]) -> bool {
        self.in_both_modes(|modes| match InsertHead::read(head, modes) {
            // Where its strings end depends on other modes as well.
            Ok(_) if behind_set_statement(head, modes).is_some() => false,
            Ok(read) => {
                let is_free = !read.ends_text && !self.may_match(&read.table);
                let goes_on = read.goes_on_in_swe7(head) || self.has_blanks_at_front(head, modes);
                is_free && !goes_on
            }
            Err(Unread::Refused | Unread::Unsupported(_)) => false,
        })
    }

    /// What an INSERT changes that is not read to its end: a trigger may drop a temporary table.
    pub(crate) fn after_unread_insert(&self) -> After {
        match self.context.temporary.is_empty() {
            true => After::Nothing,
            false => After::Unknown,
        }
    }

    /// Passes a statement on whose text is not read to its end.
    pub(crate) fn pass_unread(&mut self, header: Header, bytes: &[u8], after: After) -> Next {
        if self.pending_last_insert_id.is_some() {
            return self.update_last_insert_id(false).into();
        }
        self.last_insert_id = None;
        self.pass(header, bytes, Shape::Results, after)
    }
}
