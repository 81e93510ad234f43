//! Routines, triggers and events that carry out INSERTs which the proxy does not see, and triggers that see its keys.

use keywright_rewrite::{Modes, Server, TableName, names_new, tables_filled};

use crate::schema::finding::{Finding, OfTable, Severity};
use crate::schema::matched::Matched;
use crate::schema::snapshot::Program;

pub(super) fn findings(matched: &Matched<'_>) -> Vec<Finding> {
    let snapshot = matched.snapshot;
    let (Some(surroundings), Some(server)) = (&snapshot.surroundings, snapshot.server.grammar())
    else {
        return Vec::new();
    };
    let mut found = Vec::new();
    let mut seeing = Vec::new();
    let mut unseen = 0_u64;
    for program in &surroundings.programs {
        match &program.body {
            Some(body) => {
                let modes = modes(program, server);
                found.extend(inserts(program, body, matched, &modes));
                seeing.extend(sees_key(program, body, matched, &modes));
            }
            None => unseen += 1,
        }
    }
    let mut findings = Severity::Warning.of_each(found.into_iter());
    findings.extend(Severity::Warning.of_each(seeing.into_iter()));
    if unseen > 0 {
        findings.push(Severity::Warning.of(format!(
            "{unseen} routine(s) cannot be read with the privileges of the listener's admin url: whether they insert into tables with rules is not known"
        )));
    }
    findings
}

fn modes(program: &Program, server: Server) -> Modes {
    let has = |mode| program.sql_mode.split(',').any(|part| part == mode);
    Modes {
        ansi_quotes: has("ANSI_QUOTES"),
        no_backslash_escapes: has("NO_BACKSLASH_ESCAPES"),
        ..Modes::plain(server)
    }
}

/// A trigger that reads a key before the row goes in: the server's own auto-increment has none then.
fn sees_key(
    program: &Program,
    body: &str,
    matched: &Matched<'_>,
    modes: &Modes,
) -> Option<OfTable> {
    let table = program.before_insert.as_ref()?;
    let mut columns = matched.columns.iter();
    let column = columns.find(|column| {
        column.auto_increment && column.schema == program.schema && column.table == *table
    })?;
    if !names_new(body.as_bytes(), column.name.as_bytes(), modes) {
        return None;
    }
    let Program { schema, name, .. } = program;
    let key = &column.name;
    let program = format!("trigger {schema}.{name}");
    let message = format!(
        "{program} names NEW.{key} before a row goes into {schema}.{table}: it sees the key there, and 0 where the server makes it"
    );
    Some(OfTable::alike("NEW", &program, message))
}

fn inserts(program: &Program, body: &str, matched: &Matched<'_>, modes: &Modes) -> Vec<OfTable> {
    let mut tables = tables_filled(body.as_bytes(), modes);
    tables.dedup();
    let mut found = Vec::new();
    for TableName { schema, table } in tables {
        let schema = schema.unwrap_or_else(|| program.schema.clone().into_bytes());
        let Some((rule, _)) = matched.rules.find(&schema, &table) else {
            continue;
        };
        let table = format!(
            "{}.{}",
            String::from_utf8_lossy(&schema),
            String::from_utf8_lossy(&table)
        );
        let Program {
            what, schema, name, ..
        } = program;
        let configured = matched.config.rules.get(rule);
        let then = match configured.is_some_and(|configured| configured.fence) {
            true => "fails at the fence",
            false => "takes a key of the server's own",
        };
        let program = format!("{what} {schema}.{name}");
        let message = format!(
            "{program} inserts into {table}: keywright does not see that, and what brings no key {then}"
        );
        found.push(OfTable::alike(&format!("{what} {then}"), &program, message));
    }
    found
}
