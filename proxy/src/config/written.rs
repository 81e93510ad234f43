//! The file as it is written, held against what its options take, so that all mistakes of name and kind are told at once.
//!
//! A deserializer ends with the first one. So what it would refuse is taken out before, or gives way to what was probably meant, and the rest goes on to
//! be validated.

use std::borrow::Cow;
use std::mem;

use anyhow::Result;
use keywright_core::nearest::nearest;
use serde::Deserialize;
use serde_json::{Map, Value};
use toml::Spanned;
use toml::de::{DeArray, DeInteger, DeTable, DeValue, Deserializer};

use crate::config::no_toml;
use crate::config::problems::Problems;
use crate::config::raw::Raw;

/// The section that stands alone or in a list.
const STORE: &str = "store";
/// So much of a value is told, characters.
const TOLD_CHARS_MAX: usize = 40;

/// The options, and what is wrong with those that cannot be read.
///
/// # Errors
/// It is no TOML; or too little can be read for the rest to be looked at, which is told as [`Problems`].
pub(super) fn read(text: &str) -> Result<(Raw, Vec<String>)> {
    let mut file = DeTable::parse(text).map_err(|error| no_toml::error(text, &error))?;
    let schema = schemars::schema_for!(Raw).to_value();
    let mut reading = Reading {
        text,
        schema: &schema,
        found: Vec::new(),
    };
    reading.table(None, file.get_mut(), &schema);
    let mut found = reading.found;
    found.sort_by_key(|(place, _)| *place);
    let problems: Vec<String> = found.into_iter().map(|(_, problem)| problem).collect();
    match Raw::deserialize(Deserializer::from(file)) {
        Ok(raw) => Ok((raw, problems)),
        Err(error) if problems.is_empty() => Err(no_toml::error(text, &error)),
        // Something that must be there is not, which is among them.
        Err(_) => Err(Problems(problems).into()),
    }
}

/// A file (`'i`) that is held against what may stand in it (`'s`).
struct Reading<'i, 's> {
    text: &'i str,
    schema: &'s Value,
    /// What is wrong, and where.
    found: Vec<(usize, String)>,
}

impl<'i, 's> Reading<'i, 's> {
    /// Looks at the options of a section that begins there, or at the sections of the file (`None`).
    fn table(&mut self, place: Option<usize>, table: &mut DeTable<'i>, of: &'s Value) {
        let options = of.get("properties").and_then(Value::as_object);
        // Names that whoever writes the file chooses.
        let any = of.get("additionalProperties").filter(|of| of.is_object());
        let required = of.get("required").and_then(Value::as_array);
        let mut missing: Vec<&str> = required.map_or_else(Vec::new, |names| {
            let names = names.iter().filter_map(Value::as_str);
            names.filter(|name| !table.contains_key(*name)).collect()
        });
        let mut unknown = Vec::new();
        for (key, mut value) in mem::take(table) {
            let name: &str = key.get_ref();
            let Some(of) = options.and_then(|options| options.get(name)).or(any) else {
                unknown.push((key, value));
                continue;
            };
            if self.value(name, &mut value, of) {
                table.insert(key, value);
            }
        }
        for (key, mut value) in unknown {
            let name: &str = key.get_ref();
            let near = options.and_then(|options| near(name, options));
            let told = not_there(place.is_none(), near, options);
            self.tell(key.span().start, name, &told);
            // What must be there was written so, and is looked at. Else a value could come to where it is told, and be a password.
            let Some(near) = near.filter(|near| missing.contains(near)) else {
                continue;
            };
            missing.retain(|name| *name != near);
            if let Some(of) = options.and_then(|options| options.get(near))
                && self.value(near, &mut value, of)
            {
                let key = Spanned::new(key.span(), Cow::Owned(near.to_owned()));
                table.insert(key, value);
            }
        }
        for name in missing {
            match place {
                Some(place) => self.tell(place, name, "is missing"),
                None => self.found.push((
                    0,
                    format!("there is no [{name}]: it says where keys are reserved"),
                )),
            }
        }
    }

    /// Whether a value can be read now. One of another kind gives way to what was probably meant, if that can be told.
    fn value(&mut self, name: &str, value: &mut Spanned<DeValue<'i>>, of: &'s Value) -> bool {
        let of = self.resolved(of);
        let place = value.span().start;
        let items = of.get("items").map(|items| self.resolved(items));
        if let Some(items) = items
            && !value.get_ref().is_array()
            && (is_one(items, value.get_ref()) || value.get_ref().is_table() && is_table(items))
        {
            let told = match is_table(items) {
                true => format!("a section of which there may be several: [[{name}]]"),
                false => wrong(name, of, &self.shown(of, value)),
            };
            if name != STORE {
                self.tell(place, name, &told);
            }
            in_list(value);
        }
        if let ("object", DeValue::Table(table)) = (kind(of), value.get_mut()) {
            self.table(Some(place), table, of);
            return true;
        }
        if let (Some(items), DeValue::Array(list)) = (items, value.get_mut()) {
            let mut are_good = true;
            for item in list.iter_mut() {
                are_good &= self.value(name, item, items);
            }
            return are_good;
        }
        if is_one(of, value.get_ref()) {
            return true;
        }
        let meant = self.meant(of, value);
        let quotes = match (&meant, value.get_ref().is_str()) {
            (Some(_), true) => ". It stands without quotes",
            (Some(_), false) | (None, _) => "",
        };
        let told = wrong(name, of, &self.shown(of, value));
        self.tell(place, name, &format!("{told}{quotes}"));
        let Some(meant) = meant else {
            return false;
        };
        *value.get_mut() = meant;
        true
    }

    fn tell(&mut self, place: usize, name: &str, what: &str) {
        let before = self.text.get(..place).unwrap_or_default();
        let line = before.matches('\n').count() + 1;
        self.found
            .push((place, format!("line {line}, {name}: {what}")));
    }

    /// Where `$ref` and `anyOf` lead. The other of two is that the option is not there.
    fn resolved(&self, of: &'s Value) -> &'s Value {
        let mut of = of;
        loop {
            let reference = of.get("$ref").and_then(Value::as_str);
            let pointer = reference.and_then(|its| its.strip_prefix('#'));
            let there = pointer.and_then(|pointer| self.schema.pointer(pointer));
            let one = of.get("anyOf").and_then(|both| both.get(0));
            match there.or(one) {
                Some(next) => of = next,
                None => return of,
            }
        }
    }

    /// What was probably meant by a value of another kind: the text of a number, or the number in a text.
    fn meant(&self, of: &Value, value: &Spanned<DeValue<'i>>) -> Option<DeValue<'i>> {
        let written = self.text.get(value.span())?;
        let meant = match value.get_ref() {
            DeValue::Integer(_)
            | DeValue::Float(_)
            | DeValue::Boolean(_)
            | DeValue::Datetime(_) => DeValue::String(Cow::Borrowed(written)),
            DeValue::String(_) => {
                let bare = written.trim_matches(['"', '\'']);
                let bare = Some(bare).filter(|bare| !bare.is_empty())?;
                DeValue::parse(bare).ok()?.into_inner()
            }
            DeValue::Array(_) | DeValue::Table(_) => return None,
        };
        is_one(of, &meant).then_some(meant)
    }

    /// A value, as far as it is told: texts only where none may stand that is a secret.
    fn shown(&self, of: &Value, value: &Spanned<DeValue<'i>>) -> String {
        let is_plain = ["integer", "boolean"].contains(&kind(of));
        match value.get_ref() {
            DeValue::Array(_) => "a list".to_owned(),
            DeValue::Table(_) => "a table".to_owned(),
            DeValue::String(_) if !is_plain => "a text".to_owned(),
            DeValue::String(_)
            | DeValue::Integer(_)
            | DeValue::Float(_)
            | DeValue::Boolean(_)
            | DeValue::Datetime(_) => {
                let written = self.text.get(value.span()).unwrap_or_default();
                let line = written.lines().next().unwrap_or_default();
                line.chars().take(TOLD_CHARS_MAX).collect()
            }
        }
    }
}

/// What a schema is for: one of the words of JSON Schema, and nothing if it says none.
fn kind(of: &Value) -> &str {
    match of.get("type") {
        Some(Value::Array(kinds)) => {
            let mut kinds = kinds.iter().filter_map(Value::as_str);
            kinds.find(|kind| *kind != "null").unwrap_or_default()
        }
        Some(kind) => kind.as_str().unwrap_or_default(),
        None => "",
    }
}

fn is_table(of: &Value) -> bool {
    kind(of) == "object"
}

/// Whether a value that is neither table nor list is of the kind that is wanted.
fn is_one(of: &Value, value: &DeValue<'_>) -> bool {
    match kind(of) {
        "string" => value.is_str(),
        "boolean" => value.is_bool(),
        "integer" => value.as_integer().is_some_and(|number| holds(of, number)),
        _ => false,
    }
}

/// Whether the program has room for a number. Narrower bounds are looked at with everything else.
fn holds(of: &Value, number: &DeInteger<'_>) -> bool {
    let Ok(number) = i128::from_str_radix(number.as_str(), number.radix()) else {
        return false;
    };
    match of.get("format").and_then(Value::as_str) {
        Some("uint32") => u32::try_from(number).is_ok(),
        Some("uint64" | "uint") => u64::try_from(number).is_ok(),
        Some(_) | None => i64::try_from(number).is_ok(),
    }
}

/// Makes a list of a value that stands alone.
fn in_list(value: &mut Spanned<DeValue<'_>>) {
    let span = value.span();
    let one = mem::replace(value.get_mut(), DeValue::Boolean(false));
    let mut list = DeArray::new();
    list.push(Spanned::new(span, one));
    *value.get_mut() = DeValue::Array(list);
}

/// What an option takes, and what it was given.
fn wrong(name: &str, of: &Value, given: &str) -> String {
    let bound = |which: &str| of.get(which).and_then(Value::as_i64);
    let is_section = of.get("properties").is_some();
    let takes = match kind(of) {
        "string" => "text in quotes".to_owned(),
        "boolean" => "true or false".to_owned(),
        "integer" => match (bound("minimum"), bound("maximum")) {
            (Some(least), Some(most)) => format!("a number from {least} to {most}"),
            (Some(least), None) => format!("a number, at least {least}"),
            (None, Some(most)) => format!("a number, at most {most}"),
            (None, None) => "a number".to_owned(),
        },
        "array" if kind(of.get("items").unwrap_or(of)) == "string" => {
            "a list, as [\"one\", \"two\"]".to_owned()
        }
        "array" => format!("sections, each of them [[{name}]]"),
        _ if is_section => format!("a section, [{name}]"),
        _ => "a table, as { name = \"text\" }".to_owned(),
    };
    format!("{takes}, not {given}")
}

/// What is said of a name that nothing has.
fn not_there(is_file: bool, near: Option<&str>, options: Option<&Map<String, Value>>) -> String {
    let what = match is_file {
        true => "unknown section",
        false => "unknown option",
    };
    match near {
        Some(near) => format!("{what}. Did you mean \"{near}\"?"),
        None => {
            let known: Vec<&str> = options
                .into_iter()
                .flat_map(|options| options.keys().map(String::as_str))
                .collect();
            format!("{what}. There are {}", known.join(", "))
        }
    }
}

/// What was probably meant by a name: one that goes on with its unit or its bound, or else the nearest.
fn near<'s>(name: &str, options: &'s Map<String, Value>) -> Option<&'s str> {
    let known = || options.keys().map(String::as_str);
    let goes_on = |option: &&str| {
        let rest = option.strip_prefix(name);
        rest.is_some_and(|rest| rest.starts_with('_'))
    };
    let longer = known().find(goes_on);
    longer.or_else(|| nearest(name, known()).into_iter().next())
}
