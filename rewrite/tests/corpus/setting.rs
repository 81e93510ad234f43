//! The modes that a statement is read in, and what becomes of it, as the files show it.

use std::fmt::Write as _;

use keywright_core::KeyBatch;
use keywright_rewrite::{
    CharsetClass, Flavour, Insert, InsertHead, KeyColumn, KeyForm, Kind, LastInsertId, Load,
    LoadPlan, Modes, Plan, QueryPlan, Server, Unread, kind,
};

pub(crate) struct Setting {
    pub(crate) modes: Vec<Modes>,
    key: &'static [u8],
    form: KeyForm,
    live: Vec<Vec<u8>>,
    watched: bool,
    is_signed: bool,
    is_strict: bool,
    is_not_null: bool,
    prepare: bool,
    spacing: u64,
}

impl Setting {
    pub(crate) fn parse(words: &str) -> Setting {
        let has = |word: &str| words.split_whitespace().any(|other| other == word);
        let modes = |flavour, version| Modes {
            ansi_quotes: has("ansi"),
            no_backslash_escapes: has("plain_backslash"),
            no_auto_value_on_zero: match (has("zero_is_value"), has("zero_unknown")) {
                (true, _) => Some(true),
                (_, true) => None,
                _ => Some(false),
            },
            strict: Some(has("strict")),
            empty_is_null: has("empty_is_null"),
            charset: if has("gbk") {
                CharsetClass::TrailByteMayBeBackslash
            } else {
                CharsetClass::Safe
            },
            server: Server { flavour, version },
        };
        let version = |default| {
            let mut words = words.split_whitespace();
            let version = words.find_map(|word| word.strip_prefix("version="));
            version.map_or(default, |number| number.parse().expect("a number"))
        };
        let maria = modes(Flavour::MariaDb, version(101_119));
        let mysql = modes(Flavour::MySql, version(90_704));
        let columns: &[&str] = match (has("unknown_columns"), has("invisible_key")) {
            (true, _) => &[],
            (_, true) => &["a", "b"],
            _ => &["id", "a", "b`c"],
        };
        Setting {
            modes: match (has("maria"), has("mysql")) {
                (true, false) => vec![maria],
                (false, true) => vec![mysql],
                _ => vec![maria, mysql],
            },
            form: match (has("text"), has("bytes")) {
                (true, _) => KeyForm::Text,
                (_, true) => KeyForm::Bytes,
                _ => KeyForm::Integer,
            },
            live: columns
                .iter()
                .map(|name| name.as_bytes().to_vec())
                .collect(),
            key: match has("key_beyond_ascii") {
                true => "schlüssel".as_bytes(),
                false => b"id",
            },
            watched: has("watched"),
            is_signed: !has("unsigned"),
            is_strict: has("strict_behind"),
            is_not_null: has("not_null"),
            prepare: has("prepare"),
            spacing: if has("spacing3") { 3 } else { 1 },
        }
    }

    pub(crate) fn outcome(&self, statement: &str) -> String {
        let mut outcomes: Vec<String> = self
            .modes
            .iter()
            .map(|modes| self.outcome_in(statement, modes))
            .collect();
        outcomes.dedup();
        if outcomes.len() > 1 {
            panic!(
                "the flavours differ for {statement:?}: {outcomes:#?}; put it under [maria] and [mysql]"
            );
        }
        outcomes.concat()
    }

    fn outcome_in(&self, statement: &str, modes: &Modes) -> String {
        let text = statement.replace('⏎', "\n").into_bytes();
        let known = kind(&text, modes);
        if !matches!(known, Kind::Insert | Kind::Replace | Kind::LoadData) {
            return format!("    {known:?}\n");
        }
        let key = KeyColumn {
            name: self.key,
            form: self.form,
            live: &self.live,
            watched: self.watched,
            is_signed: self.is_signed,
            is_strict: self.is_strict,
        };
        if known == Kind::LoadData {
            let load = Load::read(&text, modes);
            return match load.and_then(|load| load.plan(&text, modes, &key)) {
                Err(Unread::Refused) => "    the server refuses it\n".to_owned(),
                Err(Unread::Unsupported(construct)) => format!("    unsupported: {construct}\n"),
                Ok(plan) => self.loaded(&plan, &text),
            };
        }
        let insert =
            InsertHead::read(&text, modes).and_then(|head| Insert::read(head, &text, modes));
        if let Ok(insert) = &insert
            && insert.is_query()
        {
            let second = insert.read_again(&text, modes);
            return match insert.plan_query(&text, modes, &key, &second, None) {
                Err(Unread::Refused) => "    the server refuses it\n".to_owned(),
                Err(Unread::Unsupported(construct)) => format!("    unsupported: {construct}\n"),
                Ok(plan) if self.prepare => selection_prepared(&plan, &text),
                Ok(plan) => self.selected(&plan, &text),
            };
        }
        let plan = insert.and_then(|insert| match self.is_not_null {
            true => insert.plan_for_not_null(&text, modes, &key),
            false => insert.plan(&text, modes, &key),
        });
        match plan {
            Err(Unread::Refused) => "    the server refuses it\n".to_owned(),
            Err(Unread::Unsupported(construct)) => format!("    unsupported: {construct}\n"),
            Ok(plan) if self.prepare => self.prepared(&plan, &text),
            Ok(plan) => self.spliced(&plan, &text),
        }
    }

    fn spliced(&self, plan: &Plan, text: &[u8]) -> String {
        if plan.keys() == 0 {
            return unchanged(plan.by_mode());
        }
        let mut out = Vec::new();
        plan.splice(text, &self.keys(plan.keys()), &mut out)
            .expect("as many keys as asked for");
        format!("    {}\n    {}\n", shown(&out), marks(plan))
    }

    /// Rows out of a query, and 5 keys for them.
    fn selected(&self, plan: &QueryPlan, text: &[u8]) -> String {
        if plan.explicit() {
            return unchanged(plan.by_mode());
        }
        let count = if plan.is_single() { 1 } else { 5 };
        let mut out = Vec::new();
        plan.splice(text, &self.keys(count), &mut out)
            .expect("one key or a range of them");
        let mut marks = plan.rows_max().map_or("-- any rows".to_owned(), |rows| {
            format!("-- at most {rows}")
        });
        marks.push_str(match plan.last_insert_id() {
            LastInsertId::Wrapped => ", wrapped",
            LastInsertId::Literal => ", literal",
            LastInsertId::None => ", no id",
        });
        if plan.has_effects() {
            marks.push_str(", once only");
        }
        if plan.may_skip() {
            marks.push_str(", may skip");
        }
        if plan.on_duplicate() {
            marks.push_str(", on duplicate");
        }
        if plan.for_zero() {
            marks.push_str(", for 0");
        }
        let shown = shown(&out).replace("*7046029254386353131*7046029254386353131", "*…");
        format!("    {shown}\n    {marks}\n")
    }

    /// Rows out of a file, and 5 keys for them.
    fn loaded(&self, plan: &LoadPlan, text: &[u8]) -> String {
        let mut out = Vec::new();
        plan.splice(text, &self.keys(5), true, &mut out)
            .expect("a range of keys");
        let mut marks = format!("-- a line ends with {:?}", char::from(plan.line_end()));
        let flags = [
            (plan.is_local(), "local"),
            (plan.may_be_given(), "keys may be given"),
            (plan.may_skip(), "may skip"),
            (plan.has_effects(), "once only"),
            (plan.reads(), "reads"),
        ];
        for (_, flag) in flags.iter().filter(|(set, _)| *set) {
            marks.push_str(", ");
            marks.push_str(flag);
        }
        let shown = shown(&out)
            .replace("*7046029254386353131*7046029254386353131", "*…")
            .replace("LAST_INSERT_ID()", "L");
        format!("    {shown}\n    {marks}\n")
    }

    fn keys(&self, count: u64) -> KeyBatch {
        match self.form {
            KeyForm::Integer => KeyBatch::Numbers {
                first: 100,
                spacing: self.spacing,
                count,
            },
            KeyForm::Text => {
                KeyBatch::Texts((100..100 + count).map(|key| format!("k{key}")).collect())
            }
            KeyForm::Bytes => KeyBatch::Bytes((0..count).map(|_| [0xab; 16]).collect()),
        }
    }

    fn prepared(&self, plan: &Plan, text: &[u8]) -> String {
        let mut outcome = String::new();
        let parameters = plan.key_parameters();
        let mut variants = vec![plan.variant(None)];
        for parameter in parameters {
            let variant = plan.variant(Some(parameter.row));
            if !variants.contains(&variant) {
                variants.push(variant);
            }
        }
        for variant in variants {
            match plan.prepare(text, variant, self.spacing) {
                Err(error) => writeln!(outcome, "    {error}"),
                Ok(prepared) => {
                    let injected: Vec<String> = prepared
                        .injected
                        .iter()
                        .map(|one| format!("?{}=row {}", one.at, one.row))
                        .collect();
                    writeln!(
                        outcome,
                        "    {}  -- {}",
                        shown(&prepared.text),
                        injected.join(" ")
                    )
                }
            }
            .expect("writing to a string");
        }
        let own: Vec<String> = parameters
            .iter()
            .map(|one| format!("?{}=row {}", one.parameter, one.row))
            .collect();
        writeln!(outcome, "    {} {}", marks(plan), own.join(" ")).expect("writing to a string");
        outcome
    }
}

/// Rows out of a query, whose keys are parameters.
fn selection_prepared(plan: &QueryPlan, text: &[u8]) -> String {
    if plan.explicit() {
        return unchanged(plan.by_mode());
    }
    match plan.prepare(text) {
        Err(error) => format!("    {error}\n"),
        Ok(prepared) => {
            let text = shown(&prepared.text);
            let text = text.replace("*7046029254386353131*7046029254386353131", "*…");
            let (at, injected) = (prepared.at, prepared.injected);
            let parameters = plan.parameters();
            format!("    {text}\n    -- {parameters} and ?{at}={injected:?}\n")
        }
    }
}

/// The application's own keys, perhaps because of what sql_mode is.
fn unchanged(by_mode: bool) -> String {
    let why = if by_mode { " in this sql_mode" } else { "" };
    format!("    unchanged{why}\n")
}

pub(crate) fn shown(text: &[u8]) -> String {
    String::from_utf8_lossy(text).replace('\n', "⏎")
}

fn marks(plan: &Plan) -> String {
    let last_insert_id = match plan.last_insert_id() {
        LastInsertId::Wrapped => "wrapped",
        LastInsertId::Literal => "literal",
        LastInsertId::None => "no id",
    };
    let flags = [
        (plan.explicit(), "explicit"),
        (plan.on_duplicate(), "on duplicate"),
        (plan.ignore(), "ignore"),
        (plan.replace(), "replace"),
        (plan.returning(), "returning"),
        (plan.zero_is_ambiguous(), "ambiguous zero"),
        (plan.for_zero(), "for 0"),
        (plan.by_mode(), "in this sql_mode"),
        (plan.by_order(), "by the order of columns"),
        (plan.by_not_null(), "by NOT NULL"),
    ];
    let mut marks = format!("-- {} of {}, {last_insert_id}", plan.keys(), plan.rows());
    for (_, flag) in flags.iter().filter(|(set, _)| *set) {
        marks.push_str(", ");
        marks.push_str(flag);
    }
    marks
}
