//! What is to be done with one statement: which rows need a key, and where each is written.

use crate::lex::cursor::Cursor;
use crate::lex::name::write_name;
use crate::modes::{Flavour, Modes};
use crate::plan::rows::{Place, Walked};
use crate::read::constant::Care;
use crate::read::insert::{Columns, Insert, Source};
use crate::read::insert_head::Verb;
use crate::read::key_value::{KeyForm, Value, Wanted};
use crate::refusal::{Unread, Unsupported};

/// The column that gets the keys.
#[derive(Debug, Clone, Copy)]
pub struct KeyColumn<'a> {
    /// Its name, in ASCII.
    pub name: &'a [u8],
    /// What it holds.
    pub form: KeyForm,
    /// The table's visible columns in their live order, in the client's character set. Only looked at when
    /// [`Insert::needs_columns`] says so.
    pub live: &'a [Vec<u8>],
    /// Something that the text does not show reads LAST_INSERT_ID(): a trigger, a default expression.
    pub watched: bool,
    /// It is known to have numbers below 0.
    pub is_signed: bool,
    /// The table's engine is known to be strict in all rows and not only in the first, where sql_mode is: InnoDB without triggers.
    pub is_strict: bool,
}

/// How the server comes to report the first key as LAST_INSERT_ID().
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Lid {
    /// The first generated key is written as `LAST_INSERT_ID(k)`: the server reports it in the OK packet and afterwards. Of
    /// several it is written into the second row that gets one, so that nothing is reported when the first row fails.
    Wrapped,
    /// Literals only; the OK packet's id is corrected and LAST_INSERT_ID() brought up to date afterwards.
    Literal,
    /// A native insert would report nothing: keys that are no numbers, and DELAYED.
    None,
}

/// What to do with one INSERT or REPLACE.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// The key's column, where it is to be assigned to.
    pub(crate) key_name: Vec<u8>,
    /// Text put in once, ascending: a column list, the key's column, an alias.
    pub(crate) edits: Vec<(usize, Vec<u8>)>,
    /// One per row that gets a key or whose key is a parameter, ascending.
    pub(crate) sites: Vec<Site>,
    pub(crate) parameters: u32,
    pub(crate) lid: Lid,
    rows: u64,
    keys: u64,
    explicit: bool,
    unsure_of_zero: bool,
    for_zero: bool,
    by_mode: bool,
    by_order: bool,
    is_signed: bool,
    is_strict_behind: bool,
    key_parameters: Vec<KeyParameter>,
    on_duplicate: bool,
    sees_last_id: bool,
    ignore: bool,
    verb: Verb,
    returning: bool,
}

/// Where a row's key goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Site {
    /// The text from here …
    pub(crate) start: u32,
    /// … to here is replaced.
    pub(crate) end: u32,
    pub(crate) row: u32,
    /// How many of the client's parameters come before it.
    pub(crate) parameters: u32,
    pub(crate) kind: SiteKind,
}

/// How a row's key is written.
///
/// A column that is absent is put first, so that the parameter a prepared statement needs for it is its first. It is put
/// last where a value refers to it: such a value must find what it finds natively, the column's default.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SiteKind {
    /// `key,` before the row's other values.
    First,
    /// `,key` behind the row's other values.
    Last,
    /// `key` between `(` and `)`.
    Only,
    /// `` `id`=key, `` before the assignments.
    Assign,
    /// `` ,`id`=key `` behind the assignments.
    AssignLast,
    /// In place of what stands there.
    Replace,
    /// In place of what stands there unless `NO_AUTO_VALUE_ON_ZERO` is set when the server gets to it.
    UnlessZeroIsValue,
    /// A parameter, which stays.
    Parameter,
}

/// A row whose key is a parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeyParameter {
    /// The row, from 0.
    pub row: u32,
    /// Which of the client's parameters it is, from 0.
    pub parameter: u16,
}

impl Insert {
    /// Walks over the rows and decides about each.
    ///
    /// # Errors
    /// [`Unread::Unsupported`] for what cannot be done exactly; [`Unread::Refused`] for what the server refuses by itself.
    pub fn plan(&self, text: &[u8], modes: &Modes, key: &KeyColumn<'_>) -> Result<Plan, Unread> {
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
        let wanted = self.wanted(modes, key);
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
        self.finish(key, modes, walked)
    }

    /// What a key is read for.
    pub(crate) fn wanted<'k>(&self, modes: &Modes, key: &KeyColumn<'k>) -> Wanted<'k> {
        Wanted {
            name: key.name,
            form: key.form,
            care: Care {
                is_signed: key.is_signed,
                zero_is_value: modes.no_auto_value_on_zero,
                is_strict: modes.strict == Some(true) && !self.head.ignore,
            },
            is_strict_behind: key.is_strict,
            in_row: self.source == Source::Rows,
            in_query: self.source == Source::Query,
        }
    }

    /// Where the key stands in each row.
    pub(crate) fn place(&self, text: &[u8], key: &KeyColumn<'_>) -> Result<Place, Unread> {
        let is_key = |name: &[u8]| name.eq_ignore_ascii_case(key.name);
        let (matches, values): (Vec<usize>, usize) = match &self.columns {
            Columns::Listed { names, .. } => (
                indices(names.iter().map(|name| is_key(&name.bytes(text)))),
                names.len(),
            ),
            Columns::Absent { .. } if !self.needs_columns() => {
                return Ok(Place::Absent { values: None });
            }
            Columns::Absent { .. } if key.live.is_empty() => {
                return Err(Unsupported::ColumnsUnknown.into());
            }
            Columns::Absent { .. } => (
                indices(key.live.iter().map(|name| is_key(name))),
                key.live.len(),
            ),
        };
        match matches.as_slice() {
            [] => Ok(Place::Absent {
                values: Some(values),
            }),
            [index] => Ok(Place::At {
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
        match &self.columns {
            Columns::Absent { .. } if self.source == Source::Set => {}
            Columns::Listed { .. } if !own => {}
            Columns::Listed { names, at, end } => {
                edits.push((
                    if last { *end } else { *at },
                    listed(key.name, names.is_empty(), last),
                ));
            }
            Columns::Absent { at } => {
                let live = if self.needs_columns() { key.live } else { &[] };
                edits.push((*at, full_list(key.name, live, own, last)));
            }
        }
        if let Some((start, end)) = walked.alias_list.filter(|_| own) {
            edits.push((
                if last { end } else { start },
                listed(b"keywright_key", false, last),
            ));
        }
        edits
    }

    fn finish(&self, key: &KeyColumn<'_>, modes: &Modes, walked: Walked) -> Result<Plan, Unread> {
        let edits = self.edits(key, &walked);
        if walked.unsure && walked.certain {
            return Err(Unsupported::ZeroUnsure.into());
        }
        let literal =
            self.head.prefixed || walked.on_duplicate || walked.seen.sees_last_id() || key.watched;
        let lid = match (key.form, modes.server.flavour) {
            (KeyForm::Text | KeyForm::Bytes, _) => Lid::None,
            (KeyForm::Integer, Flavour::MariaDb) if self.head.delayed => Lid::None,
            (KeyForm::Integer, _) if literal => Lid::Literal,
            (KeyForm::Integer, _) => Lid::Wrapped,
        };
        Ok(Plan {
            key_name: match self.source {
                Source::Set => key.name.to_vec(),
                Source::Values | Source::Rows | Source::Query => Vec::new(),
            },
            edits,
            sites: walked.sites,
            parameters: walked.seen.parameters,
            lid,
            rows: walked.rows,
            keys: walked.keys,
            explicit: walked.explicit,
            unsure_of_zero: walked.unsure,
            for_zero: walked.for_zero,
            by_mode: walked.seen.by_mode,
            by_order: self.needs_columns(),
            is_signed: key.is_signed,
            is_strict_behind: key.is_strict,
            key_parameters: walked.key_parameters,
            on_duplicate: walked.on_duplicate,
            sees_last_id: walked.seen.sees_last_id(),
            ignore: self.head.ignore,
            verb: self.head.verb,
            returning: walked.seen.returning || self.head.analyze,
        })
    }
}

impl Plan {
    /// What it takes of memory beside its own size, bytes.
    pub fn held_bytes(&self) -> usize {
        let edits: usize = self.edits.iter().map(|(_, text)| text.len()).sum();
        size_of_val(self.sites.as_slice())
            .saturating_add(size_of_val(self.key_parameters.as_slice()))
            .saturating_add(edits)
    }

    /// How many rows the statement has.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// How many rows need a key, those whose key is a parameter not counted. Of 0 the statement is forwarded unchanged.
    pub fn keys(&self) -> u64 {
        self.keys
    }

    /// Whether some row brings its own key.
    pub fn explicit(&self) -> bool {
        self.explicit
    }

    /// How LAST_INSERT_ID() comes about.
    pub fn lid(&self) -> Lid {
        self.lid
    }

    /// The same with literals only, if it was wrapped.
    #[must_use]
    pub fn unwrapped(mut self) -> Self {
        if self.lid == Lid::Wrapped {
            self.lid = Lid::Literal;
        }
        self
    }

    /// Whether it says ON DUPLICATE KEY UPDATE.
    pub fn on_duplicate(&self) -> bool {
        self.on_duplicate
    }

    /// Whether something in it may see LAST_INSERT_ID(), and give it another value.
    pub fn sees_last_id(&self) -> bool {
        self.sees_last_id
    }

    /// Whether it says IGNORE.
    pub fn ignore(&self) -> bool {
        self.ignore
    }

    /// Whether it is a REPLACE.
    pub fn replace(&self) -> bool {
        self.verb == Verb::Replace
    }

    /// Whether the answer is a result set: RETURNING, ANALYZE.
    pub fn returning(&self) -> bool {
        self.returning
    }

    /// How many `?` the text has.
    pub fn parameters(&self) -> u32 {
        self.parameters
    }

    /// Whether the keys are for zeros or DEFAULTs while it is not known whether those ask for keys.
    pub fn unsure_of_zero(&self) -> bool {
        self.unsure_of_zero
    }

    /// Whether a row asks for a key by 0 or DEFAULT, which it does only without `NO_AUTO_VALUE_ON_ZERO`.
    pub fn for_zero(&self) -> bool {
        self.for_zero
    }

    /// Whether another sql_mode, or a table's engine, could make a key ask for one that does not now.
    pub fn by_mode(&self) -> bool {
        self.by_mode
    }

    /// Whether another order of the table's columns makes another plan: the statement has values and no column list.
    pub fn by_order(&self) -> bool {
        self.by_order
    }

    /// What is known beside a bound key of a row: of the column, and of the server's care.
    pub fn care(&self, modes: &Modes, row: u32) -> Care {
        // A function may have written to a table that rolls nothing back: then the server only warns.
        let is_strict = modes.strict == Some(true) && !self.ignore && !self.sees_last_id;
        Care {
            is_signed: self.is_signed,
            zero_is_value: modes.no_auto_value_on_zero,
            is_strict: is_strict && (row == 0 || self.is_strict_behind),
        }
    }

    /// The rows whose key is a parameter, in row order.
    pub fn key_parameters(&self) -> &[KeyParameter] {
        &self.key_parameters
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

/// A name for a list: first, last, or alone.
pub(crate) fn listed(name: &[u8], alone: bool, last: bool) -> Vec<u8> {
    let mut edit = Vec::new();
    if last && !alone {
        edit.push(b',');
    }
    write_name(name, &mut edit);
    if !last && !alone {
        edit.push(b',');
    }
    edit
}

/// A whole column list: the live columns, and the key's where it is not among them.
pub(crate) fn full_list(name: &[u8], live: &[Vec<u8>], own: bool, last: bool) -> Vec<u8> {
    let own = own.then_some(name);
    let (first, behind) = if last { (None, own) } else { (own, None) };
    let names = first
        .into_iter()
        .chain(live.iter().map(Vec::as_slice))
        .chain(behind);
    let mut edit = b" (".to_vec();
    for (index, name) in names.enumerate() {
        if index > 0 {
            edit.push(b',');
        }
        write_name(name, &mut edit);
    }
    edit.push(b')');
    edit
}

/// What a value means for a row.
pub(crate) fn site_kind(value: Value, no_auto_value_on_zero: Option<bool>) -> Option<SiteKind> {
    match (value, no_auto_value_on_zero) {
        (Value::Null, _) | (Value::Zero, Some(false)) => Some(SiteKind::Replace),
        (Value::Zero, None) => Some(SiteKind::UnlessZeroIsValue),
        (Value::Zero, Some(true)) | (Value::Explicit, _) => None,
        (Value::Parameter, _) => Some(SiteKind::Parameter),
    }
}
