//! The column of a rule in one of its tables.

use keywright_rewrite::Flavour;

use super::column_type::ColumnType;
use super::quote::quoted;
use crate::config::Configured;

/// What becomes of the fence of a table with partitions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Partitions {
    /// It is kept: the table has none, or the server counts as in others.
    #[default]
    KeepFence,
    /// MariaDB begins at 1 again behind a row that is left out of an `INSERT IGNORE … ON DUPLICATE KEY UPDATE` of several.
    MayLoseFence,
    /// MariaDB begins at 1 again behind the first INSERT that fails, since it counts one further than the largest number there is.
    LoseFence,
}

impl Partitions {
    /// Of a table that has them or not, on a server, whose fence is there.
    pub(super) fn of(is_partitioned: bool, flavour: Flavour, fence: u64) -> Self {
        match (is_partitioned, flavour) {
            (false, _) | (true, Flavour::MySql) => Self::KeepFence,
            (true, Flavour::MariaDb) if fence == u64::MAX => Self::LoseFence,
            (true, Flavour::MariaDb) => Self::MayLoseFence,
        }
    }
}

/// The column of a rule in one of its tables.
#[derive(Debug, Clone, Default)]
pub struct KeyColumn {
    /// Which of the rules.
    pub rule: usize,
    /// The table's schema.
    pub schema: String,
    /// The table.
    pub table: String,
    /// The column.
    pub name: String,
    /// What it holds.
    pub kind: ColumnType,
    /// Whether it is AUTO_INCREMENT.
    pub auto_increment: bool,
    /// Whether it is NOT NULL.
    pub is_not_null: bool,
    /// The AUTO_INCREMENT from which on the server makes no key for this column.
    pub fence: u64,
    /// Whether that is what the table has.
    pub fenced: bool,
    /// The next id that the server would make, as far as it tells.
    pub counter: Option<u64>,
    /// The table's engine.
    pub engine: String,
    /// What becomes of the fence where the table is partitioned.
    pub partitions: Partitions,
    /// The largest number in it, as [`super::Table::largest`] has it.
    pub largest: Option<u64>,
    /// What the server said when it refused the fence.
    pub fence_refused: Option<String>,
}

impl KeyColumn {
    /// `` `schema`.`table` ``
    pub fn quoted_table(&self) -> String {
        format!("{}.{}", quoted(&self.schema), quoted(&self.table))
    }

    /// The statement that applies the fence.
    pub fn fence_statement(&self) -> String {
        let name = self.quoted_table();
        format!("ALTER TABLE {name} AUTO_INCREMENT = {}", self.fence)
    }

    /// `` `column` ``
    pub fn quoted_name(&self) -> String {
        quoted(&self.name)
    }

    /// The largest number that a column of integers holds; `None` for others.
    pub fn integer_max(&self) -> Option<u64> {
        self.kind.integer_max()
    }

    /// Whether its rows reach the largest number that it holds, as far as that was asked for: then the server makes no further one, with a fence or without.
    pub(super) fn is_full(&self) -> bool {
        let max = self.integer_max();
        self.largest
            .is_some_and(|largest| max.is_some_and(|max| largest >= max))
    }

    /// What is to be said of one that is full.
    pub(crate) fn why_full(&self) -> String {
        let (table, name, kind) = (self.quoted_table(), self.quoted_name(), &self.kind.name);
        format!(
            "{table} is full: its highest id is the largest number that {name} ({kind}) holds, so the server refuses each INSERT without an id (167, on \
             MySQL 1467). Make the column larger"
        )
    }

    /// Whether a native counter ends where the fence is: then nothing on the server tells a table whose numbers are used up from one with a fence, once the
    /// rows with the last ids are gone. So it is on MariaDB, and on MySQL with BIGINT UNSIGNED, of which an id of the application's own may be the last.
    pub(crate) fn may_end_at_fence(&self) -> bool {
        let max = self.integer_max();
        max.is_some_and(|max| self.fence == max.saturating_add(1))
    }

    /// Whether its engine is InnoDB.
    pub(super) fn is_innodb(&self) -> bool {
        self.engine.eq_ignore_ascii_case("InnoDB")
    }

    /// Whether the server keeps the fence of such a table.
    pub fn can_have_fence(&self) -> bool {
        self.is_innodb() && self.partitions != Partitions::LoseFence
    }

    /// Whether it has a counter, and can have no fence.
    pub(super) fn is_unfenceable(&self) -> bool {
        self.auto_increment && !self.can_have_fence()
    }

    /// Why it can have no fence, behind its name.
    pub fn why_unfenceable(&self) -> String {
        if self.is_innodb() {
            "is partitioned, and MariaDB loses the fence of a partitioned table whose key is BIGINT UNSIGNED".to_owned()
        } else {
            format!("is {}, and the fence needs InnoDB", self.engine)
        }
    }

    /// The statement behind which it can have one.
    pub(crate) fn makes_fenceable(&self) -> String {
        let table = self.quoted_table();
        if self.is_innodb() {
            format!(
                "ALTER TABLE {table} MODIFY {} BIGINT NOT NULL AUTO_INCREMENT",
                self.quoted_name()
            )
        } else {
            format!("ALTER TABLE {table} ENGINE = InnoDB")
        }
    }

    /// What keeps the keys of a rule from fitting in, if anything.
    pub(crate) fn lacks_room(&self, configured: &Configured) -> Option<String> {
        self.kind.lacks_room(configured)
    }
}

/// The AUTO_INCREMENT from which on a server makes no key for such a column.
///
/// InnoDB refuses every generation from its largest number on. MariaDB, when it opens a table anew, as after a restart, believes in no
/// number further than one above the column's largest, and begins behind the highest id instead; that one it refuses too.
pub(super) fn fence_of(kind: &ColumnType, flavour: Flavour) -> u64 {
    match (flavour, kind.integer_max()) {
        (Flavour::MariaDb, Some(max)) => max.saturating_add(1),
        (Flavour::MariaDb, None) | (Flavour::MySql, _) => u64::MAX,
    }
}

#[cfg(test)]
mod tests {
    use keywright_rewrite::Flavour;

    use super::{ColumnType, KeyColumn, fence_of};

    /// Where it does not, each fence can be lifted again whatever is recorded.
    #[test]
    fn a_native_counter_ends_at_the_fence_or_below() {
        for (flavour, data_type, may) in [
            (Flavour::MariaDb, "tinyint(4)", true),
            (Flavour::MariaDb, "int(10) unsigned", true),
            (Flavour::MariaDb, "bigint(20)", true),
            (Flavour::MariaDb, "bigint(20) unsigned", true),
            (Flavour::MariaDb, "double", false),
            (Flavour::MySql, "int", false),
            (Flavour::MySql, "bigint", false),
            (Flavour::MySql, "bigint unsigned", true),
        ] {
            let kind = ColumnType {
                name: data_type.to_owned(),
                ..ColumnType::default()
            };
            let column = KeyColumn {
                fence: fence_of(&kind, flavour),
                kind,
                ..KeyColumn::default()
            };
            assert_eq!(column.may_end_at_fence(), may, "{data_type} {flavour:?}");
        }
    }
}
