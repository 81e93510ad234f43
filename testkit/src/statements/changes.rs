//! What becomes of a statement's table, on the connection that sends the statement.

use super::tables::Table;

/// A change of a table, and how it is undone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Change {
    None,
    /// Its columns come into another order.
    Moved,
    /// Its key gets another name, which is that of no rule.
    Renamed,
    /// A temporary table hides it that a procedure makes.
    HiddenByCall,
    /// The same by EXECUTE.
    HiddenByExecute,
}

impl Change {
    /// The statements that make it. `first` is where the server's own keys begin then, on both sides.
    pub(super) fn made(self, table: &Table, first: u64) -> Vec<String> {
        let Table {
            name, key, moves, ..
        } = table;
        match self {
            Self::None => Vec::new(),
            Self::Moved => vec![format!("ALTER TABLE {name} MODIFY {}", moves[0])],
            Self::Renamed => vec![format!(
                "ALTER TABLE {name} CHANGE id nr {key}, AUTO_INCREMENT = {first}"
            )],
            Self::HiddenByCall => vec![format!("CALL hide_{name}()")],
            Self::HiddenByExecute => {
                let text = hiding(table).replace('\'', "''");
                let prepare = format!("PREPARE hiding FROM '{text}'");
                vec![prepare, "EXECUTE hiding".to_owned()]
            }
        }
    }

    /// The statement that undoes it.
    pub(super) fn undone(self, table: &Table) -> Option<String> {
        let Table {
            name, key, moves, ..
        } = table;
        match self {
            Self::None => None,
            Self::Moved => Some(format!("ALTER TABLE {name} MODIFY {}", moves[1])),
            Self::Renamed => Some(format!("ALTER TABLE {name} CHANGE nr id {key}")),
            Self::HiddenByCall | Self::HiddenByExecute => {
                Some(format!("DROP TEMPORARY TABLE {name}"))
            }
        }
    }

    /// The name of the key until then.
    pub(super) fn key(self) -> &'static str {
        match self {
            Self::Renamed => "nr",
            Self::None | Self::Moved | Self::HiddenByCall | Self::HiddenByExecute => "id",
        }
    }

    /// Whether there is another table of that name, which only the connection sees.
    pub(super) fn hides(self) -> bool {
        match self {
            Self::HiddenByCall | Self::HiddenByExecute => true,
            Self::None | Self::Moved | Self::Renamed => false,
        }
    }
}

/// Makes the procedure that hides a table.
pub(super) fn procedure(table: &Table) -> String {
    format!("CREATE PROCEDURE hide_{}() {}", table.name, hiding(table))
}

/// Makes a temporary table of that name, whose keys are none of the rule's.
fn hiding(table: &Table) -> String {
    format!(
        "CREATE TEMPORARY TABLE {} ({} AUTO_INCREMENT = 40",
        table.name, table.definition
    )
}
