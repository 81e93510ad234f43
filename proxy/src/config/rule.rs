//! One rule, as it is written and as it is once everything about it has been checked.

use keywright_rewrite::KeyForm;
use keywright_session::{Mode, OnAmbiguousId, OnExplicit, OnUnsupported, Pattern, Rule};
use keywright_store::{KeyKind, KeySpec, KeySpecError, UuidForm};

use crate::config::configured::Configured;
use crate::config::raw::RawRule;

/// Checks a rule; what is wrong with it is told among the problems.
pub(super) fn configured(
    index: usize,
    raw: &RawRule,
    problems: &mut Vec<String>,
) -> Option<Configured> {
    let before = problems.len();
    let mut wrong = |what: String| problems.push(format!("rule {}: {what}", index + 1));
    let table = Pattern::parse(&raw.table).map_err(|error| wrong(format!("table: {error}")));
    let spec = KeySpec::parse(&raw.key, raw.offset, raw.increment).map_err(|error| {
        // What the numbers do not belong to may be no key, besides.
        let besides = match matches!(error, KeySpecError::NumbersWithoutStride { .. }) {
            true => KeySpec::parse(&raw.key, None, None).err(),
            false => None,
        };
        wrong(format!("key: {error}"));
        if let Some(error) = besides {
            wrong(format!("key: {error}"));
        }
    });
    let mut choose = |name: &str, value: &str, choices: [&str; 2]| {
        let found = choices.iter().position(|choice| *choice == value);
        if found.is_none() {
            let [one, other] = choices;
            wrong(format!("{name} is {one} or {other}, not \"{value}\""));
        }
        found == Some(0)
    };
    let keep = choose("on_explicit", &raw.on_explicit, ["keep", "refuse"]);
    let refuse = choose("on_unsupported", &raw.on_unsupported, ["refuse", "pass"]);
    let first = choose("on_ambiguous_id", &raw.on_ambiguous_id, ["first", "refuse"]);
    let rewrite = choose("mode", &raw.mode, ["rewrite", "observe"]);
    let allows_apart = raw
        .on_several_rows
        .as_ref()
        .is_some_and(|value| choose("on_several_rows", value, ["allow", "refuse"]));
    if raw.column.is_empty() || !raw.column.is_ascii() {
        wrong(format!("column must be ASCII, not \"{}\"", raw.column));
    }
    if !(1..=63).contains(&raw.bits_max) {
        wrong(format!("bits_max is 1 to 63, not {}", raw.bits_max));
    }
    let (Ok(table), Ok(spec), true) = (table, spec, problems.len() == before) else {
        return None;
    };
    Some(Configured {
        rule: Rule {
            on_explicit: match keep {
                true => OnExplicit::Keep,
                false => OnExplicit::Refuse,
            },
            on_unsupported: match refuse {
                true => OnUnsupported::Refuse,
                false => OnUnsupported::Pass,
            },
            on_ambiguous_id: match first {
                true => OnAmbiguousId::First,
                false => OnAmbiguousId::Refuse,
            },
            mode: match rewrite {
                true => Mode::Rewrite,
                false => Mode::Observe,
            },
            bits_max: raw.bits_max,
            // Until it is known which tags hide how many keys there are, what the store allows, and how the tables are.
            ..Rule::new(table, &raw.column, form(&spec))
        },
        spec,
        // Until it is known whose tags they are.
        fence: false,
        needs_fence: false,
        is_switched: false,
        allows_apart,
        log_keys: raw.log_keys,
        servers: None,
    })
}

fn form(spec: &KeySpec) -> KeyForm {
    match spec {
        KeySpec::Uuid {
            form: UuidForm::Bytes16,
            ..
        } => KeyForm::Bytes,
        KeySpec::Segment(_)
        | KeySpec::Snowflake
        | KeySpec::Uuid { .. }
        | KeySpec::Stride(_)
        | KeySpec::Readable(_) => match spec.kind() {
            KeyKind::Number => KeyForm::Integer,
            KeyKind::Text { .. } => KeyForm::Text,
            KeyKind::Bytes16 => KeyForm::Bytes,
        },
    }
}
