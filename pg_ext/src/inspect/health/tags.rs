//! Of tags, and of what is fed.

use keywright_core::tag::Tag;
use keywright_core::writer::Note;
use pgrx::pg_sys;

use super::finding::{Finding, Severity};
use crate::catalog::cached;
use crate::failure::Failure;
use crate::identity::writer;
use crate::refill::fed::ASKED_MS_MAX;
use crate::server::{clock, process, query, received};
use crate::settings;
use crate::shmem::area::{self, Feeding};

/// Most tags that a row names.
const TAGS_NAMED_MAX: i64 = 10;

/// Tags that a dump brought back without what says how far they were used: a bound, or the note of a tag that was made and not used. And those
/// whose last bound `pg_resetwal` may have lost.
pub(super) fn tags() -> Result<Finding, Failure> {
    let extension = cached::extension()?;
    let first = 1i64 << Note::FIRST_BIT;
    let or_lost = or_lost();
    let query = format!(
        "SELECT pg_catalog.count(*), pg_catalog.string_agg(tag, ', ' ORDER BY tag) \
                 FILTER (WHERE number OPERATOR(pg_catalog.<=) $1) \
         FROM (SELECT tag, pg_catalog.row_number() OVER (ORDER BY tag) AS number FROM keywright.tag, \
               pg_catalog.to_regclass('keywright.tag_' OPERATOR(pg_catalog.||) id::pg_catalog.text) bound, \
               pg_catalog.to_regclass('keywright.tag_' OPERATOR(pg_catalog.||) id::pg_catalog.text OPERATOR(pg_catalog.||) '_note') note \
               WHERE dropped_at IS NULL AND source OPERATOR(pg_catalog.=) 'native' AND (bound IS NULL OR note IS NULL \
               OR COALESCE(pg_catalog.pg_sequence_last_value(bound), \
                  NULLIF(pg_catalog.pg_sequence_last_value(note) OPERATOR(pg_catalog.&) {first}, 0)) IS NULL{or_lost})) t"
    );
    let restored = match or_lost.is_empty() {
        true => "They were restored without the values of their sequences.",
        false => {
            "pg_resetwal may have lost the last values of their sequences, or they were restored without them."
        }
    };
    let named = tags_named(extension.owner, &query);
    Ok(Finding {
        severity: Severity::Error.unless(named.is_none()),
        detail: match named {
            None => "of each tag its bound is there".to_owned(),
            Some((count, names)) => {
                format!("nothing says how far {count} tags were used: {names}")
            }
        },
        hint: format!(
            "{restored} Find the largest id of each that is in use and run \
             SELECT keywright.advance_tag(tag, that_id); with hide_bits it is the largest keywright.hidden_number(tag, id)."
        )
        .into(),
    })
}

/// The condition, in SQL, of a `note` for which [`Writer::may_have_lost`](keywright_core::Writer::may_have_lost) holds.
fn or_lost() -> String {
    // A standby issues nothing.
    if received::is_in_recovery() {
        return String::new();
    }
    let writer = writer::current();
    if writer.resets == 0 {
        return String::new();
    }
    let bit = Note::LIFE_BIT;
    let life = Note::new(writer, 0, 1, 0).pack() >> bit;
    format!(
        " OR COALESCE(pg_catalog.pg_sequence_last_value(note) OPERATOR(pg_catalog.>>) {bit}, -1) OPERATOR(pg_catalog.<>) {life}"
    )
}

/// Whether a program asks what is wanted, where tags are fed.
pub(super) fn feeding() -> Result<Finding, Failure> {
    let extension = cached::extension()?;
    let query = "SELECT pg_catalog.count(*), \
                 EXISTS (SELECT FROM keywright.node WHERE snowflake_source OPERATOR(pg_catalog.=) 'fed') \
                 FROM keywright.tag WHERE dropped_at IS NULL AND source OPERATOR(pg_catalog.=) 'fed'";
    let found = query::one_row_as(extension.owner, query, &[], |row| {
        (row.get::<i64>(1), row.get::<bool>(2))
    });
    let (count, is_time_fed) = found.unwrap_or_default();
    let (count, is_time_fed) = (count.unwrap_or(0), is_time_fed.unwrap_or(false));
    let fed = match (count, is_time_fed) {
        (0, false) => None,
        (0, true) => Some("the time of snowflake ids is fed".to_owned()),
        (_, false) => Some(format!("{count} tags are fed")),
        (_, true) => Some(format!(
            "{count} tags and the time of snowflake ids are fed"
        )),
    };
    let asked_ms = Feeding::here().and_then(Feeding::asked_boot_ms);
    let since_ms = asked_ms.map(|asked_ms| clock::readings().boot_ms.saturating_sub(asked_ms));
    let is_asked = since_ms.is_some_and(|ms| ms <= ASKED_MS_MAX);
    Ok(Finding {
        severity: Severity::Warning.unless(fed.is_none() || is_asked || process::is_read_only()),
        detail: match (fed, since_ms) {
            (None, _) => "nothing is fed from a store".to_owned(),
            (Some(fed), None) => {
                format!("{fed}, and no program has asked what is wanted since the server started")
            }
            (Some(fed), Some(ms)) => {
                format!("{fed}; a program asked what is wanted {} s ago", ms / 1_000)
            }
        },
        hint: "Start keywright with a [[feed]] section for this server: when what was handed over is used up, ids end.".into(),
    })
}

/// Tags of which `keywright.source` says something else than their rows.
pub(super) fn source() -> Result<Finding, Failure> {
    let extension = cached::extension()?;
    let query = "SELECT pg_catalog.array_agg(tag ORDER BY tag), pg_catalog.array_agg(move_number ORDER BY tag), \
                 pg_catalog.array_agg(source OPERATOR(pg_catalog.=) 'native' ORDER BY tag) \
                 FROM keywright.tag WHERE dropped_at IS NULL";
    let found = query::one_row_as(extension.owner, query, &[], |row| {
        let (tags, numbers) = (row.get::<Vec<String>>(1), row.get::<Vec<i32>>(2));
        (tags, numbers, row.get::<Vec<bool>>(3))
    });
    let (tags, numbers, natives) = found.unwrap_or_default();
    let rows = tags.unwrap_or_default().into_iter();
    let rows = rows.zip(numbers.unwrap_or_default());
    let (mut refused, mut forgotten) = (Vec::new(), Vec::new());
    for ((name, number), is_native) in rows.zip(natives.unwrap_or_default()) {
        let number = number.cast_unsigned();
        // Without the library the setting is not there; another row tells that.
        let moves = match (area::is_there(), Tag::parse(&name)) {
            (true, Ok(tag)) => settings::moves_of(&tag),
            (true, Err(_)) => 0,
            (false, _) => number,
        };
        match is_native {
            true if moves != number => refused.push(name),
            // With an old catalogue it would issue.
            false if moves < number => forgotten.push(name),
            true | false => {}
        }
    }
    let first = |names: &[String]| {
        let most = usize::try_from(TAGS_NAMED_MAX).unwrap_or(0);
        let more = if names.len() > most { ", ..." } else { "" };
        let names: Vec<&str> = names.iter().take(most).map(String::as_str).collect();
        format!("{}{more}", names.join(", "))
    };
    Ok(Finding {
        severity: match (refused.is_empty(), forgotten.is_empty()) {
            (false, _) => Severity::Error,
            (true, false) => Severity::Warning,
            (true, true) => Severity::Ok,
        },
        detail: match (refused.as_slice(), forgotten.as_slice()) {
            ([], []) => "keywright.source agrees with the rows of all tags".to_owned(),
            ([], _) => format!(
                "keywright.source does not say how often {} tags were moved to a store: {}",
                forgotten.len(),
                first(&forgotten)
            ),
            (_, _) => format!(
                "by keywright.source {} native tags issue nothing: {}",
                refused.len(),
                first(&refused)
            ),
        },
        hint: "Native tags: keywright tag move TAG --to fed. Fed ones: have keywright.source count their moves, on every standby, too, and restart.".into(),
    })
}

/// Tags whose ids hide their volume without the key that does it.
pub(super) fn hide_keys() -> Result<Finding, Failure> {
    let extension = cached::extension()?;
    let query = "SELECT pg_catalog.count(*), pg_catalog.string_agg(tag, ', ' ORDER BY tag) \
                 FILTER (WHERE number OPERATOR(pg_catalog.<=) $1) \
         FROM (SELECT tag, pg_catalog.row_number() OVER (ORDER BY tag) AS number FROM keywright.tag t \
               WHERE dropped_at IS NULL AND hide_bits IS NOT NULL \
               AND NOT EXISTS (SELECT FROM keywright.tag_secret s WHERE s.tag_id OPERATOR(pg_catalog.=) t.id)) t";
    let named = tags_named(extension.owner, query);
    Ok(Finding {
        severity: Severity::Error.unless(named.is_none()),
        detail: match named {
            None => "of each tag that hides its volume the key is there".to_owned(),
            Some((count, names)) => {
                format!("the key that hides their volume is missing for {count} tags: {names}")
            }
        },
        hint: "A dump left them out. Where the tags were made, SELECT keywright.hide_key(tag) shows them; run \
               SELECT keywright.set_hide_key(tag, that_key) here."
            .into(),
    })
}

/// How many tags a query found, and the names of the first of them; `None` if there is none.
fn tags_named(owner: pg_sys::Oid, query: &str) -> Option<(i64, String)> {
    let found = query::one_row_as(owner, query, &[TAGS_NAMED_MAX.into()], |row| {
        (row.get::<i64>(1), row.get::<String>(2))
    });
    let (count, names) = found?;
    let count = count.filter(|count| *count > 0)?;
    let more = if count > TAGS_NAMED_MAX { ", ..." } else { "" };
    Some((count, format!("{}{more}", names.unwrap_or_default())))
}
