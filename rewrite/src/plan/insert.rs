//! Plans an INSERT or REPLACE: one walk over its rows finds those that need a key.

use crate::lex::cursor::Cursor;
use crate::modes::{Flavour, Modes};
use crate::plan::insert_plan::{LastInsertId, Plan};
use crate::plan::key_column::{KeyColumn, all_listed, full_list, listed};
use crate::plan::row_sites::{KeyPosition, Walked};
use crate::read::constant::Care;
use crate::read::insert::{Columns, Insert, Source};
use crate::read::key_wanted::{KeyForm, Wanted};
use crate::refusal::{Unread, Unsupported};

impl Insert {
    /// Walks over the rows and decides about each.
    ///
    /// # Errors
    /// [`Unread::Unsupported`] for what cannot be done exactly; [`Unread::Refused`] for what the server refuses by itself.
    pub fn plan(&self, text: &[u8], modes: &Modes, key: &KeyColumn<'_>) -> Result<Plan, Unread> {
        self.plan_for(text, modes, key, self.wanted(modes, key))
    }

    /// The same where what is computed as key is known not to be NULL, or is none that matters: only NULL asks for a key that is no number.
    ///
    /// # Errors
    /// As [`Self::plan`].
    pub fn plan_without_nulls(
        &self,
        text: &[u8],
        modes: &Modes,
        key: &KeyColumn<'_>,
    ) -> Result<Plan, Unread> {
        let wanted = Wanted {
            is_computed_own: true,
            ..self.wanted(modes, key)
        };
        self.plan_for(text, modes, key, wanted)
    }

    /// The same where NULL makes no value of the server's own in the key's column, which is NOT NULL. A strict server refuses NULL there (1048), so
    /// what is computed is a key, or an error. Without strict mode, and with IGNORE, this is [`Self::plan`].
    ///
    /// # Errors
    /// As [`Self::plan`].
    pub fn plan_for_not_null(
        &self,
        text: &[u8],
        modes: &Modes,
        key: &KeyColumn<'_>,
    ) -> Result<Plan, Unread> {
        let wanted = self.wanted(modes, key);
        let wanted = Wanted {
            null_fails: key.form != KeyForm::Integer && wanted.care.is_strict && !self.head.delayed,
            ..wanted
        };
        self.plan_for(text, modes, key, wanted)
    }

    fn plan_for(
        &self,
        text: &[u8],
        modes: &Modes,
        key: &KeyColumn<'_>,
        wanted: Wanted<'_>,
    ) -> Result<Plan, Unread> {
        if !key.name.is_ascii() || key.name.is_empty() {
            return Err(Unsupported::KeyName.into());
        }
        if u32::try_from(text.len()).is_err() {
            return Err(Unsupported::TooLong.into());
        }
        if self.source == Source::Query {
            return Err(Unsupported::Select.into());
        }
        let mut cursor = Cursor::new(text, modes);
        (cursor.at, cursor.inside, cursor.set_var) = (self.rows, self.inside, self.set_var);
        let place = self.place(text, key)?;
        let mut walked = Walked::new(place, modes.no_auto_value_on_zero);
        match self.source {
            Source::Values | Source::Rows => {
                cursor.walk_rows(wanted, self.source == Source::Rows, &mut walked)?
            }
            Source::Set | Source::Query => cursor.walk_assignments(wanted, &mut walked)?,
        }
        let parameters = walked.seen.parameters;
        cursor.walk_tail(self.source == Source::Rows, &mut walked)?;
        if walked.last() {
            walked.put_keys_last(parameters);
        }
        if cursor.set_var {
            return Err(Unsupported::SetVar.into());
        }
        if let Some(reason) = walked.alone.filter(|_| walked.rows > 1) {
            return Err(Unsupported::Key(reason).into());
        }
        self.finish(key, modes, walked)
    }

    /// What a key is read for.
    pub(crate) fn wanted<'k>(&'k self, modes: &Modes, key: &KeyColumn<'k>) -> Wanted<'k> {
        Wanted {
            name: key.name,
            table: &self.head.table.table,
            schema: self.head.table.schema.as_deref(),
            form: key.form,
            care: Care {
                is_signed: key.is_signed,
                zero_is_value: modes.no_auto_value_on_zero,
                is_strict: modes.strict == Some(true) && !self.head.ignore,
                is_lax: modes.strict == Some(false) || self.head.ignore,
                empty_is_null: modes.empty_is_null,
            },
            is_strict_behind: key.is_strict,
            in_row: self.source == Source::Rows,
            in_query: self.source == Source::Query,
            is_computed_own: false,
            null_fails: false,
        }
    }

    /// Where the key stands in each row.
    pub(crate) fn place(&self, text: &[u8], key: &KeyColumn<'_>) -> Result<KeyPosition, Unread> {
        let is_key = |name: &[u8]| name.eq_ignore_ascii_case(key.name);
        if self.names_empty_rows {
            // It is to stand among the others.
            let is_there = key.live.iter().any(|name| is_key(name));
            return match is_there {
                true => Ok(KeyPosition::Absent { values: None }),
                false => Err(Unsupported::ColumnsUnknown.into()),
            };
        }
        let (matches, values): (Vec<usize>, usize) = match &self.columns {
            Columns::Listed { names, .. } => (
                indices(names.iter().map(|name| is_key(&name.bytes(text)))),
                names.len(),
            ),
            Columns::Absent { .. } | Columns::Empty { .. } if !self.needs_columns() => {
                return Ok(KeyPosition::Absent { values: None });
            }
            Columns::Absent { .. } | Columns::Empty { .. } if key.live.is_empty() => {
                return Err(Unsupported::ColumnsUnknown.into());
            }
            Columns::Absent { .. } | Columns::Empty { .. } => (
                indices(key.live.iter().map(|name| is_key(name))),
                key.live.len(),
            ),
        };
        match matches.as_slice() {
            [] => Ok(KeyPosition::Absent {
                values: Some(values),
            }),
            [index] => Ok(KeyPosition::At {
                index: *index,
                values,
            }),
            _ => Err(Unread::Refused),
        }
    }

    /// The column list and the alias list as they must become.
    fn edits(&self, key: &KeyColumn<'_>, walked: &Walked) -> Vec<(usize, Vec<u8>)> {
        let mut edits = Vec::new();
        if walked.sites.is_empty() {
            return edits;
        }
        let (own, last) = (walked.absent(), walked.last());
        // An alias that names all columns of rows without values names the key where it stands.
        let (own_listed, last_listed) = match self.names_empty_rows {
            true => (false, false),
            false => (own, last),
        };
        let live = if self.needs_columns() { key.live } else { &[] };
        match &self.columns {
            Columns::Absent { .. } if self.source == Source::Set => {}
            Columns::Absent { at } => {
                edits.push((*at, full_list(key.name, live, own_listed, last_listed)));
            }
            Columns::Empty { at } => {
                edits.push((*at, all_listed(key.name, live, own_listed, last_listed)));
            }
            Columns::Listed { .. } if !own => {}
            Columns::Listed { at, end, .. } => {
                edits.push((if last { *end } else { *at }, listed(key.name, last)));
            }
        }
        if self.names_empty_rows {
            return edits;
        }
        if let Some((start, end)) = walked.alias_list.filter(|_| own) {
            edits.push((
                if last { end } else { start },
                listed(b"keywright_key", last),
            ));
        }
        edits
    }

    /// What stands beside the key in a row without values whose alias names all columns.
    fn beside(&self, key: &KeyColumn<'_>) -> (Vec<u8>, Vec<u8>) {
        if !self.names_empty_rows {
            return (Vec::new(), Vec::new());
        }
        let mut live = key.live.iter();
        let before = live
            .position(|name| name.eq_ignore_ascii_case(key.name))
            .unwrap_or(0);
        let behind = live.len();
        (b"DEFAULT,".repeat(before), b",DEFAULT".repeat(behind))
    }

    fn finish(&self, key: &KeyColumn<'_>, modes: &Modes, walked: Walked) -> Result<Plan, Unread> {
        let edits = self.edits(key, &walked);
        if walked.ambiguous && walked.certain {
            return Err(Unsupported::ZeroAmbiguous.into());
        }
        let literal = self.head.prefixed
            || walked.on_duplicate
            || walked.seen.sees_last_insert_id()
            || key.watched;
        let last_insert_id = match (key.form, modes.server.flavour) {
            (KeyForm::Text | KeyForm::Bytes, _) => LastInsertId::None,
            (KeyForm::Integer, Flavour::MariaDb) if self.head.delayed => LastInsertId::None,
            (KeyForm::Integer, _) if literal => LastInsertId::Literal,
            (KeyForm::Integer, _) => LastInsertId::Wrapped,
        };
        // To MySQL it is a name as others.
        let returning = walked.seen.returning && modes.server.flavour == Flavour::MariaDb;
        Ok(Plan {
            key_name: match self.source {
                Source::Set => key.name.to_vec(),
                Source::Values | Source::Rows | Source::Query => Vec::new(),
            },
            edits,
            beside: self.beside(key),
            sites: walked.sites,
            parameters: walked.seen.parameters,
            last_insert_id,
            rows: walked.rows,
            keys: walked.keys,
            explicit: walked.explicit,
            zero_is_ambiguous: walked.ambiguous,
            for_zero: walked.for_zero,
            by_mode: walked.seen.by_mode,
            by_order: self.needs_columns(),
            by_not_null: walked.by_not_null,
            is_signed: key.is_signed,
            is_strict_behind: key.is_strict,
            key_parameters: walked.key_parameters,
            on_duplicate: walked.on_duplicate,
            sees_last_insert_id: walked.seen.sees_last_insert_id(),
            ignore: self.head.ignore,
            verb: self.head.verb,
            returning: returning || self.head.analyze,
        })
    }
}

/// The places of what is true.
fn indices(tests: impl Iterator<Item = bool>) -> Vec<usize> {
    tests
        .enumerate()
        .filter(|(_, found)| *found)
        .map(|(index, _)| index)
        .collect()
}

#[cfg(test)]
pub(crate) mod tests {
    use crate::modes::{Flavour, Modes, Server};
    use crate::plan::insert_plan::Plan;
    use crate::plan::key_column::KeyColumn;
    use crate::read::insert::Insert;
    use crate::read::insert_head::InsertHead;
    use crate::read::key_wanted::KeyForm;
    use crate::refusal::Unread;

    /// The plan of an INSERT whose table has the key `id`, which something else reads as LAST_INSERT_ID() or not.
    pub(crate) fn planned(text: &[u8], watched: bool) -> Result<Plan, Unread> {
        let modes = Modes {
            no_auto_value_on_zero: Some(false),
            strict: Some(true),
            ..Modes::plain(Server {
                flavour: Flavour::MariaDb,
                version: 101_119,
            })
        };
        planned_in(text, &modes, watched)
    }

    /// The same, in these modes.
    pub(crate) fn planned_in(text: &[u8], modes: &Modes, watched: bool) -> Result<Plan, Unread> {
        let key = KeyColumn {
            name: b"id",
            form: KeyForm::Integer,
            live: &[],
            watched,
            is_signed: true,
            is_strict: false,
        };
        let head = InsertHead::read(text, modes)?;
        Insert::read(head, text, modes)?.plan(text, modes, &key)
    }
}
