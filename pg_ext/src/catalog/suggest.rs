//! The failure of a tag that is not there, and which one was probably meant.

use keywright_core::cause::Cause;
use keywright_core::nearest::nearest;
use keywright_core::tag::Tag;

use crate::catalog::{cached, sequences};
use crate::failure::Failure;
use crate::server::{query, role};

/// How many tags are looked at to either side of the wanted one, in the order of their names.
const NEIGHBOURS: i64 = 250;

/// The tag nearest to `wanted` that the role in force may use. Looks at a bounded number of tags: all of them where there
/// are few, else those that begin alike.
pub fn tag_like(wanted: &Tag) -> Option<String> {
    let extension = cached::extension().ok()?;
    let user = role::user();
    // A tag has neither blanks nor commas.
    let list = query::one_row_as(
        extension.owner,
        "SELECT pg_catalog.string_agg(t.id::pg_catalog.text OPERATOR(pg_catalog.||) ' ' OPERATOR(pg_catalog.||) t.tag, ',') \
         FROM ((SELECT id, tag, dropped_at FROM keywright.tag WHERE tag OPERATOR(pg_catalog.>) $1 ORDER BY tag LIMIT $2) \
               UNION ALL \
               (SELECT id, tag, dropped_at FROM keywright.tag WHERE tag OPERATOR(pg_catalog.<) $1 ORDER BY tag DESC LIMIT $2)) AS t \
         WHERE t.dropped_at IS NULL",
        &[wanted.as_str().into(), NEIGHBOURS.into()],
        |row| row.get::<String>(1),
    )
    .flatten()?;
    let known: Vec<(&str, &str)> = list
        .split(',')
        .filter_map(|known| known.split_once(' '))
        .collect();
    let may_use = |tag: &&str| {
        known
            .iter()
            .find(|(_, known)| known == tag)
            .and_then(|(id, _)| sequences::of_tag(id.parse().ok()?).ok())
            .is_some_and(|sequence| role::may_use_sequence(sequence, user))
    };
    nearest(wanted.as_str(), known.iter().map(|(_, tag)| *tag))
        .into_iter()
        .find(may_use)
        .map(str::to_owned)
}

/// The failure of a tag that was never created, or was dropped.
pub fn unknown_tag(tag: &Tag) -> Failure {
    let failure = Failure::new(Cause::TagUnknown, format!("tag \"{tag}\" does not exist"));
    let create = format!("reate it with SELECT keywright.create_tag('{tag}').");
    failure.hint(match tag_like(tag) {
        Some(near) => format!("Did you mean \"{near}\"? Otherwise c{create}"),
        None => format!("C{create}"),
    })
}
