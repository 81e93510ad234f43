//! What a server says of itself and of the tables that rules match, at one moment. Data alone: what it means is decided elsewhere.

use std::collections::HashSet;

use keywright_rewrite::Flavour;

use super::column_type::ColumnType;
use super::replication::Replication;
use crate::handshake::server_of;

/// What one server says. What was not asked for is `None`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// Which server it is.
    pub server: Server,
    /// The tables that rules match, in the order of schema and name; the store's own may be among them.
    pub tables: Vec<Table>,
    /// Schema and name of the other tables; only where a rule matches none.
    pub others: Vec<(String, String)>,
    /// What else decides what becomes of statements.
    pub context: Option<StatementContext>,
    /// Where native ids come from; also `None` where no table of a rule that observes counts.
    pub native: Option<NativeIds>,
    /// What only people need to know.
    pub surroundings: Option<Surroundings>,
    /// Accounts that may not come from here; also `None` where the server sees the clients' own addresses.
    pub accounts: Option<Accounts>,
}

/// A server.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Server {
    /// `VERSION()`.
    pub version: String,
    /// Whether it compares names of schemas and tables without case (`lower_case_table_names`).
    pub lower_case: bool,
}

impl Server {
    /// Whose grammar it speaks; `None` if its version cannot be read.
    pub fn grammar(&self) -> Option<keywright_rewrite::Server> {
        server_of(self.version.as_bytes())
    }

    /// Whose server it is.
    pub fn flavour(&self) -> Flavour {
        self.grammar()
            .map_or(Flavour::MySql, |server| server.flavour)
    }
}

/// A table that a rule matches.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Table {
    /// Its schema.
    pub schema: String,
    /// Its name.
    pub name: String,
    /// Its engine.
    pub engine: String,
    /// Whether it has partitions.
    pub is_partitioned: bool,
    /// Whether rows go into it, and it is no view.
    pub is_base: bool,
    /// Its AUTO_INCREMENT, as far as the server tells.
    pub counter: Option<u64>,
    /// Its columns, in their order.
    pub columns: Vec<Column>,
    /// The largest number in its key column that is above 0, or 0. `None` where it was not asked for, and where every row would have to
    /// be read.
    pub largest: Option<u64>,
    /// What the server said when it refused the fence.
    pub fence_refused: Option<String>,
}

/// A column of a table.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// What it holds.
    pub kind: ColumnType,
    /// Whether it is AUTO_INCREMENT.
    pub auto_increment: bool,
    /// Whether it is NOT NULL.
    pub is_not_null: bool,
    /// Whether `SELECT *` leaves it out.
    pub is_invisible: bool,
}

/// What decides what becomes of statements, besides tables.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StatementContext {
    /// Which server it is, as the store names it.
    pub identity: String,
    /// The server's settings.
    pub settings: Settings,
    /// Triggers of all tables.
    pub triggers: Vec<Trigger>,
    /// All views.
    pub views: Vec<ListedView>,
    /// Names of stored functions, in lower case.
    pub functions: HashSet<String>,
}

/// Settings of a server.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Settings {
    /// `@@global.sql_mode`.
    pub sql_mode: String,
    /// `@@global.auto_increment_increment`.
    pub increment: u64,
    /// `@@connect_timeout`, seconds.
    pub connect_timeout_s: u64,
}

/// A trigger.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Trigger {
    /// Its table's schema.
    pub schema: String,
    /// Its table.
    pub table: String,
    /// Whether it may see LAST_INSERT_ID().
    pub sees_last_id: bool,
}

/// A view as information_schema has it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ListedView {
    /// Its schema.
    pub schema: String,
    /// Its name.
    pub name: String,
    /// The names of what it shows. MySQL's definition of a view that was made with a list of them does not have it.
    pub columns: Vec<String>,
    /// Empty if it may not be seen.
    pub definition: String,
    /// Whether rows go in through it.
    pub is_updatable: bool,
    /// Whether it has a CHECK OPTION.
    pub is_checked: bool,
}

/// Where native ids come from.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NativeIds {
    /// Which server, as the store names it.
    pub server: String,
    /// When, by its own clock, in UTC.
    pub at: String,
    /// The host that this program comes from.
    pub own_host: String,
    /// Accounts, with the number of their connections: all since the server's start where it keeps them, or those there are.
    pub accounts: Vec<(String, u64)>,
}

/// What is around tables with rules, for people.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Surroundings {
    /// Foreign keys.
    pub references: Vec<Reference>,
    /// Whatever may carry out INSERTs on the server.
    pub programs: Vec<Program>,
    /// Where a rule is switched: what a switch meets.
    pub switch: Option<SwitchContext>,
}

/// A column that refers to another one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reference {
    /// Schema, table and column that it refers to.
    pub to: [String; 3],
    /// Its own.
    pub from: [String; 3],
    /// What it holds.
    pub kind: ColumnType,
}

/// A routine, a trigger or an event.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Program {
    /// Which of them, as people write it.
    pub what: String,
    /// Its schema.
    pub schema: String,
    /// Its name.
    pub name: String,
    /// The `sql_mode` that it was made in.
    pub sql_mode: String,
    /// `None`: it may not be seen.
    pub body: Option<String>,
    /// Of a trigger that is carried out before a row goes in: its table, in its schema.
    pub before_insert: Option<String>,
}

/// What a switch meets.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SwitchContext {
    /// Who else writes.
    pub replication: Replication,
    /// Whether the server has an identity of its own (`server_uuid`).
    pub has_uuid: bool,
    /// `@@global.server_id`.
    pub server_id: Option<u64>,
    /// What the account is not allowed to do; `None` where trying would reach other servers.
    pub privileges: Option<Privileges>,
}

/// What the listener's own account is not allowed to do.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Privileges {
    /// What a switch does.
    pub denied: Vec<Denied>,
    /// What it may not see.
    pub unshown: Vec<Unshown>,
}

/// What a switch does to a table and may not.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Denied {
    /// What that takes.
    pub privilege: &'static str,
    /// The table, quoted.
    pub table: String,
    /// What the server says.
    pub message: String,
}

/// What of a schema the account may not see.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Unshown {
    /// Triggers or events.
    pub what: &'static str,
    /// What it takes to see them.
    pub privilege: &'static str,
    /// The schema, quoted.
    pub schema: String,
}

/// Accounts that applications may use and that cannot come from where the server sees the proxy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Accounts {
    /// The account may not see them.
    Hidden,
    /// They are known.
    Known {
        /// The host that whoever comes through the proxy comes from.
        seen_as: String,
        /// User and host.
        elsewhere: Vec<(String, String)>,
    },
}
