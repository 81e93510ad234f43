//! Configurations and snapshots.

use keywright_proxy::config::Config;
use keywright_proxy::schema::{
    Column, ColumnType, ListedView, Program, Replication, Server, Settings, Snapshot,
    StatementContext, Surroundings, SwitchContext, Table, Trigger,
};

pub(crate) const MARIADB: &str = "10.11.14-MariaDB-log";
pub(crate) const MYSQL: &str = "9.7.0";

/// One rule for tables `shop.*`, column `id`; `key` and what else the rule says, one setting a line.
pub(crate) fn config(key: &str, more: &str) -> Config {
    with_rules(&[("shop.*", key, more)])
}

/// Rules: tables, key, what else they say.
pub(crate) fn with_rules(rules: &[(&str, &str, &str)]) -> Config {
    let mut text =
        "[store]\nurl = \"mysql://k@127.0.0.1/k\"\n[[listener]]\nbind = \"127.0.0.1:1\"\n\
                    upstream = \"127.0.0.1:2\"\n"
            .to_owned();
    for (tables, key, more) in rules {
        let rule =
            format!("[[rule]]\ntable = \"{tables}\"\ncolumn = \"id\"\nkey = \"{key}\"\n{more}\n");
        text.push_str(&rule);
    }
    Config::parse(&text).unwrap()
}

pub(crate) fn column(name: &str, kind: &str) -> Column {
    Column {
        name: name.to_owned(),
        kind: ColumnType {
            name: kind.to_owned(),
            length: 0,
        },
        auto_increment: false,
        is_not_null: false,
        is_invisible: false,
    }
}

/// An InnoDB table of `shop` without AUTO_INCREMENT, with columns `id` and `a`.
pub(crate) fn plain(name: &str, kind: &str) -> Table {
    Table {
        schema: "shop".to_owned(),
        name: name.to_owned(),
        engine: "InnoDB".to_owned(),
        is_base: true,
        columns: vec![column("id", kind), column("a", "int")],
        ..Table::default()
    }
}

/// The same with AUTO_INCREMENT.
pub(crate) fn counted(name: &str, kind: &str, counter: u64) -> Table {
    let mut table = plain(name, kind);
    table.columns[0].auto_increment = true;
    Table {
        counter: Some(counter),
        ..table
    }
}

/// An updatable view of `shop` with these columns.
pub(crate) fn view(name: &str, columns: &[&str], definition: &str) -> ListedView {
    ListedView {
        schema: "shop".to_owned(),
        name: name.to_owned(),
        columns: columns.iter().map(ToString::to_string).collect(),
        definition: definition.to_owned(),
        is_updatable: true,
        is_checked: false,
    }
}

pub(crate) fn trigger(table: &str, sees_last_id: bool) -> Trigger {
    Trigger {
        schema: "shop".to_owned(),
        table: table.to_owned(),
        sees_last_id,
    }
}

pub(crate) fn program(what: &str, name: &str, body: Option<&str>) -> Program {
    Program {
        what: what.to_owned(),
        schema: "shop".to_owned(),
        name: name.to_owned(),
        sql_mode: String::new(),
        body: body.map(str::to_owned),
        before_insert: None,
    }
}

/// A server about which there is nothing to say, with these tables.
pub(crate) fn snapshot(version: &str, tables: Vec<Table>) -> Snapshot {
    Snapshot {
        server: Server {
            version: version.to_owned(),
            lower_case: false,
        },
        tables,
        context: Some(StatementContext {
            settings: Settings {
                sql_mode: String::new(),
                increment: 1,
                connect_timeout_s: 10,
            },
            ..StatementContext::default()
        }),
        surroundings: Some(Surroundings {
            switch: Some(SwitchContext {
                replication: Replication {
                    sources: Some(Vec::new()),
                    prepared: Some(0),
                    ..Replication::default()
                },
                has_uuid: true,
                server_id: Some(1),
                privileges: Some(Default::default()),
            }),
            ..Surroundings::default()
        }),
        ..Snapshot::default()
    }
}

pub(crate) fn context(snapshot: &mut Snapshot) -> &mut StatementContext {
    snapshot.context.as_mut().unwrap()
}

pub(crate) fn surroundings(snapshot: &mut Snapshot) -> &mut Surroundings {
    snapshot.surroundings.as_mut().unwrap()
}

pub(crate) fn switch(snapshot: &mut Snapshot) -> &mut SwitchContext {
    surroundings(snapshot).switch.as_mut().unwrap()
}
