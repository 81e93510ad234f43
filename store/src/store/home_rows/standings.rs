//! What stands of many tags in a store, for those who look before anything is reserved.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use keywright_core::Tag;

use crate::dialect::Dialect;
use crate::home::Standing;
use crate::store::tag_read::{is_dropped, standing_of};
use crate::store::{Link, Row, Store, StoreError, Transaction, column, values};

/// Tags that one query asks for.
const TAGS_MAX: usize = 1_000;

/// What stands in a tag's row.
#[derive(Debug)]
pub(crate) struct StandingRow {
    pub(crate) standing: Standing,
    pub(crate) is_dropped: bool,
    /// The stores in which it is closed, by mark.
    pub(crate) closed_in: Option<String>,
}

/// What stands of tags in a store.
#[derive(Debug)]
pub(crate) enum Standings {
    /// The rows that there are and that can be read.
    Rows(HashMap<Tag, StandingRow>),
    /// A store that keeps no such rows says only which tags it has.
    Others(HashSet<Tag>),
}

impl Standings {
    /// Whether programs reserve of a tag there.
    pub(crate) fn has_open(&self, tag: &Tag) -> bool {
        match self {
            Self::Rows(_) => self
                .row(tag)
                .is_some_and(|row| row.standing == Standing::Open && !row.is_dropped),
            Self::Others(tags) => tags.contains(tag),
        }
    }

    /// A tag's row.
    pub(crate) fn row(&self, tag: &Tag) -> Option<&StandingRow> {
        match self {
            Self::Rows(rows) => rows.get(tag),
            Self::Others(_) => None,
        }
    }
}

/// Reads what stands of tags in a store that keeps rows: a few queries, however many they are. Nothing is locked. Each reservation reads it again, in
/// its own transaction.
#[derive(Debug)]
pub(crate) struct ReadStandings {
    pub(crate) store: Arc<Store>,
    pub(crate) tags: Vec<Tag>,
}

impl Transaction<Standings> for ReadStandings {
    async fn run(&self, link: &mut Link) -> Result<Standings, StoreError> {
        match self.store.dialect {
            Dialect::Keywright => self.read_rows(link).await,
            Dialect::Leaf | Dialect::IdGenerator | Dialect::Tinyid => self.read_names(link).await,
        }
    }
}

impl ReadStandings {
    async fn read_rows(&self, link: &mut Link) -> Result<Standings, StoreError> {
        let mut found = HashMap::new();
        for row in self.rows("tag, heir, dropped_ms, closed_in", link).await? {
            match self.read_row(&row) {
                Ok(Some((tag, row))) => drop(found.insert(tag, row)),
                // Nobody reserves of a row that cannot be read.
                Ok(None) | Err(StoreError::Column { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(Standings::Rows(found))
    }

    fn read_row(&self, row: &Row) -> Result<Option<(Tag, StandingRow)>, StoreError> {
        let Ok(tag) = Tag::parse(&column::<String>(row, "tag")?) else {
            return Ok(None);
        };
        let Ok(standing) = standing_of(row, &tag)? else {
            return Ok(None);
        };
        let row = StandingRow {
            standing,
            is_dropped: is_dropped(&self.store, row)?,
            closed_in: column(row, "closed_in")?,
        };
        Ok(Some((tag, row)))
    }

    /// Those that are in the table of another system, of which it is not known whether it tells names in another case apart.
    async fn read_names(&self, link: &mut Link) -> Result<Standings, StoreError> {
        let columns = format!("{} AS tag", self.store.dialect.tag_column());
        let mut names = HashSet::new();
        for row in self.rows(&columns, link).await? {
            names.insert(column::<String>(&row, "tag")?.to_ascii_lowercase());
        }
        let is_there = |tag: &&Tag| names.contains(&tag.as_str().to_ascii_lowercase());
        let there = self.tags.iter().filter(is_there);
        Ok(Standings::Others(there.cloned().collect()))
    }

    /// These columns of the tags' rows.
    async fn rows(&self, columns: &str, link: &mut Link) -> Result<Vec<Row>, StoreError> {
        let mut all = Vec::new();
        for tags in self.tags.chunks(TAGS_MAX) {
            let select = format!(
                "SELECT {columns} FROM {} WHERE {} IN ({})",
                self.store.segment_table,
                self.store.dialect.tag_column(),
                vec!["?"; tags.len()].join(", ")
            );
            let names = tags.iter().flat_map(|tag| values![tag.as_str()]);
            all.extend(link.rows(select, names.collect()).await?);
        }
        Ok(all)
    }
}
