//! The pages of the documentation that follow from what the extension makes: functions, views, settings.

mod common;

use common::{builder, text_rows};
use keywright_testkit::docs::{generated_part, table};
use keywright_testkit::{Result, SharedServer};
use postgres::Client;

static SERVER: SharedServer = SharedServer::new();

/// Functions that people call, in or outside schema `keywright`.
fn functions(client: &mut Client, operator: &str) -> Result<String> {
    let sql = format!(
        "SELECT CASE nspname WHEN 'public' THEN '' ELSE nspname || '.' END || proname
             || '(' || pg_get_function_arguments(p.oid) || ')', pg_get_function_result(p.oid), obj_description(p.oid, 'pg_proc')
         FROM pg_proc p JOIN pg_namespace n ON n.oid = pronamespace
         JOIN pg_depend d ON d.objid = p.oid AND d.classid = 'pg_proc'::regclass AND d.deptype = 'e'
             AND d.refobjid = (SELECT oid FROM pg_extension WHERE extname = 'keywright')
         WHERE prorettype <> 'trigger'::regtype AND nspname {operator} 'keywright'
             -- What views are made of.
             AND NOT EXISTS (SELECT FROM pg_depend v JOIN pg_rewrite r ON r.oid = v.objid WHERE v.refobjid = p.oid
                 AND v.classid = 'pg_rewrite'::regclass)
         ORDER BY proname COLLATE \"C\", pronargs, oidvectortypes(proargtypes) COLLATE \"C\""
    );
    let rows = text_rows(client, &sql)?;
    assert!(rows.len() > 10, "only {} functions", rows.len());
    let rows = rows.into_iter().map(|row| {
        let [call, result, meaning] = <[String; 3]>::try_from(row).unwrap_or_default();
        let call = call.replace("timestamp with time zone", "timestamptz");
        let (call, out) = arguments(&call);
        let result = result.replace("timestamp with time zone", "timestamptz");
        let result = result.replace("record", &format!("({})", out.join(", ")));
        [format!("`{call}`"), format!("`{result}`"), meaning]
    });
    Ok(table(["function", "returns", "meaning"], rows))
}

/// The call with the arguments that are given, and those that come out: a record's columns.
fn arguments(call: &str) -> (String, Vec<String>) {
    let Some((name, arguments)) = call.split_once('(') else {
        return (call.to_owned(), Vec::new());
    };
    let (mut given, mut out) = (Vec::new(), Vec::new());
    for argument in arguments.trim_end_matches(')').split(", ") {
        match argument.strip_prefix("OUT ") {
            Some(column) => out.push(column.to_owned()),
            // The type is said before its default.
            None => given.push(
                argument
                    .replace("DEFAULT NULL::bigint", "DEFAULT NULL")
                    .replace("DEFAULT NULL::integer", "DEFAULT NULL")
                    .replace("DEFAULT NULL::bytea", "DEFAULT NULL")
                    .replace("DEFAULT NULL::timestamptz", "DEFAULT NULL"),
            ),
        }
    }
    (format!("{name}({})", given.join(", ")), out)
}

#[test]
fn the_page_of_functions_is_what_the_extension_makes() -> Result<()> {
    let database = SERVER.database(builder)?;
    let mut client = database.client()?;
    let mut text = String::from("## For everybody\n\n");
    text += &functions(&mut client, "<>")?;
    text += "\n## For those who manage ids\n\n";
    text += &functions(&mut client, "=")?;
    text += "\n## Views\n";
    let views = "SELECT c.relname, obj_description(c.oid, 'pg_class') FROM pg_class c
        WHERE relnamespace = 'keywright'::regnamespace AND relkind = 'v' ORDER BY relname";
    for view in text_rows(&mut client, views)? {
        let [name, meaning] = <[String; 2]>::try_from(view).unwrap_or_default();
        text += &format!("\n### `keywright.{name}`\n\n{meaning}\n\n");
        let columns = format!(
            "SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute
             WHERE attrelid = 'keywright.{name}'::regclass AND attnum > 0 ORDER BY attnum"
        );
        let columns = text_rows(&mut client, &columns)?.into_iter().map(|row| {
            let [column, kind] = <[String; 2]>::try_from(row).unwrap_or_default();
            [
                format!("`{column}`"),
                kind.replace("timestamp with time zone", "timestamptz"),
            ]
        });
        text += &table(["column", "type"], columns);
    }
    generated_part("docs/reference/functions.md", "functions", &text)
}

#[test]
fn the_page_of_settings_is_what_the_server_shows() -> Result<()> {
    let database = SERVER.database(builder)?;
    let mut client = database.client()?;
    let sql = "SELECT name, boot_val || coalesce(' ' || unit, ''), coalesce(min_val || ' to ' || max_val, array_to_string(enumvals, ', '), ''), context,
            short_desc || coalesce(' ' || extra_desc, '')
        FROM pg_settings WHERE name LIKE 'keywright.%' ORDER BY name COLLATE \"C\"";
    let rows = text_rows(&mut client, sql)?;
    assert!(rows.len() > 10, "only {} settings", rows.len());
    let rows = rows.into_iter().map(|row| {
        let [name, default, range, context, meaning] =
            <[String; 5]>::try_from(row).unwrap_or_default();
        let who = match context.as_str() {
            "postmaster" => "a restart",
            "superuser" => "a superuser",
            _ => "any user",
        };
        [format!("`{name}`"), default, range, who.to_owned(), meaning]
    });
    let text = table(["setting", "default", "values", "set by", "meaning"], rows);
    generated_part("docs/reference/settings.md", "settings", &text)
}
