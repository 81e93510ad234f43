//! What a server that is fed wants: rows as it tells them.

use keywright_core::{Layout, Tag};

use super::trouble::{Database, Subject};
use crate::engine::error::StoreError;
use crate::engine::value::{Row, column};
use crate::lease::fed::Handed;

/// What a tag of one incarnation wants.
#[derive(Debug)]
pub(super) struct Demand {
    /// Which slot of the server's memory it is, in the server's own words.
    pub(super) place: Place,
    pub(super) tag: Tag,
    /// How many ids.
    pub(super) wanted: u64,
    /// The largest id that the server knows of.
    pub(super) above: u64,
    /// The mark of the key space that the tag's ids had there, if the database knows.
    pub(super) key_space: Option<u64>,
}

impl Demand {
    /// What troubles of the tag in this database alone concern.
    pub(super) fn subject(&self) -> Subject {
        Subject::TagOf(self.tag.clone(), self.place.database.clone())
    }
}

#[derive(Debug)]
pub(super) struct Place {
    pub(super) incarnation: String,
    pub(super) database: String,
    pub(super) extension: String,
    pub(super) generation: i64,
    pub(super) sequence: String,
}

/// What a database of one incarnation wants whose snowflake ids are fed.
#[derive(Debug)]
pub(super) struct TimeDemand {
    pub(super) incarnation: String,
    system: String,
    pub(super) database: String,
    pub(super) sequence: String,
    /// The layout of its ids, as text.
    pub(super) layout_text: String,
    pub(super) ask: i64,
    pub(super) layout: Layout,
    /// What it was handed last, and whether that was in this life of its memory.
    pub(super) handed: Option<(Handed, bool)>,
    /// The mark of the key space that it is of, if it knows.
    pub(super) key_space: Option<u64>,
    /// The server's clock, unix milliseconds.
    pub(super) now_ms: i64,
}

impl TimeDemand {
    /// Whose the lease is: 64 characters at most, which is the room for it in the store.
    pub(super) fn owner(&self) -> String {
        let Self {
            system,
            database,
            incarnation,
            ..
        } = self;
        format!("{system} {database} {incarnation}")
    }

    /// What troubles of it concern.
    pub(super) fn subject(&self, name: Option<String>) -> Subject {
        Subject::Database(Database {
            owner: self.owner(),
            oid: self.database.clone(),
            name,
        })
    }

    /// The owner for people.
    pub(super) fn holder(&self, address: &str) -> String {
        format!("database {} of {address}", self.database)
    }
}

pub(super) fn tag(row: &Row) -> Result<Tag, StoreError> {
    let tag: String = column(row, "tag")?;
    Tag::parse(&tag).map_err(|_| StoreError::Column {
        column: "tag".to_owned(),
        value: tag,
    })
}

pub(super) fn demand(row: &Row) -> Result<Demand, StoreError> {
    Ok(Demand {
        place: Place {
            incarnation: column(row, "incarnation")?,
            database: column(row, "database")?,
            extension: column(row, "extension")?,
            generation: column(row, "generation")?,
            sequence: column(row, "sequence")?,
        },
        tag: tag(row)?,
        wanted: column(row, "wanted")?,
        above: column(row, "above")?,
        key_space: column(row, "key_space")?,
    })
}

pub(super) fn time_demand(row: &Row) -> Result<TimeDemand, StoreError> {
    let layout_text: String = column(row, "layout")?;
    let layout = Layout::parse(&layout_text).map_err(|_| StoreError::Column {
        column: "layout".to_owned(),
        value: layout_text.clone(),
    })?;
    let worker_id: Option<u32> = column(row, "worker_id")?;
    let until_ms: Option<i64> = column(row, "until_ms")?;
    let is_of_this_life = column::<i64>(row, "handed")? != 0;
    Ok(TimeDemand {
        incarnation: column(row, "incarnation")?,
        system: column(row, "system")?,
        database: column(row, "database")?,
        sequence: column(row, "sequence")?,
        layout_text,
        ask: column(row, "ask")?,
        layout,
        handed: worker_id.zip(until_ms).map(|(worker_id, until_ms)| {
            let handed = Handed {
                worker_id,
                until_ms,
            };
            (handed, is_of_this_life)
        }),
        key_space: column(row, "key_space")?,
        now_ms: column(row, "now_ms")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_owner_has_room_in_every_store() {
        let demand = TimeDemand {
            incarnation: format!("{:032x}", u128::MAX),
            system: u64::MAX.to_string(),
            database: u32::MAX.to_string(),
            sequence: u32::MAX.to_string(),
            layout_text: "twitter".to_owned(),
            ask: i64::MAX,
            layout: Layout::parse("twitter").unwrap(),
            handed: None,
            key_space: None,
            now_ms: 0,
        };
        // VARCHAR(64) in sql/mysql/keywright_store.sql.
        assert!(demand.owner().len() <= 64, "{}", demand.owner());
    }
}
