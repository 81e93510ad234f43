//! Tags that tables went over to and left again. Native ids go on where theirs ended. Only the generation in the tag's row, beside the rules of the same
//! store, says so: a row in another store, or a database, would give these ids once more.

use keywright_core::{Cause, Tag};

use super::switch_rows::rules;
use super::{Link, Row, StoreError, column};
use crate::failure::Failure;
use crate::switch::space::KeySpace;

/// Whether tables have left a tag, whose row this is: they went over to it, and no rule in force has it any more. Tags of other systems have no
/// generation.
pub(super) async fn is_left_by_tables(
    tag: &Tag,
    row: &Row,
    link: &mut Link,
) -> Result<bool, StoreError> {
    let generation: u64 = column(row, "generation")?;
    if generation == 0 {
        return Ok(false);
    }
    let rules = rules(link, None).await?;
    let has_it = |keys: Option<&KeySpace>| keys.and_then(KeySpace::tag) == Some(tag);
    Ok(!rules.iter().any(|(rule, _)| has_it(rule.keys.as_ref())))
}

/// Why no other store and no database gives the ids of such a tag.
pub(crate) fn left_by_tables(tag: &Tag) -> Failure {
    let message = format!(
        "tables have left tag \"{tag}\", and their native ids go on where its ids ended, so the tag stays where it is"
    );
    Failure::new(Cause::KeysLeft, message).hint(
        "use a tag of another name; or let the tables go over to it again (mode = \"rewrite\"), and then move it",
    )
}
