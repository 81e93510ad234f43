//! Dumps in parts: schema and data apart, sections, several processes, one schema, one table. A restored tag goes on above what
//! its original issued, or says that nothing tells how far that was.

use std::cell::Cell;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, ensure};
use keywright_testkit::{PgServer, Result, expect_sql_error, query_i64, query_text};
use postgres::Client;
use tempfile::TempDir;

const TAKE: &str = "SELECT next_biz_id('orders')";
/// More than the tag has issued below.
const ISSUED: i64 = 5_000;
const DEFAULTS: &str = "CREATE EXTENSION keywright; CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT next_biz_id('orders'))";

/// A server with a database `shop`, and as many empty ones as are asked for.
struct Scene {
    server: PgServer,
    files: TempDir,
    databases: Cell<u32>,
}

impl Scene {
    fn new() -> Result<Scene> {
        let server = PgServer::builder().start()?;
        server
            .client("postgres")?
            .batch_execute("CREATE DATABASE shop")?;
        let mut shop = server.client("shop")?;
        shop.batch_execute(DEFAULTS)?;
        shop.batch_execute(
            "SELECT keywright.create_tag('bills', start => 500); \
             SELECT keywright.create_tag('orders', step => 100, step_max => 100); \
             INSERT INTO orders SELECT FROM generate_series(1, 5000); \
             CREATE ROLE clerk; GRANT SELECT, INSERT ON orders TO clerk",
        )?;
        Ok(Scene {
            server,
            files: tempfile::tempdir()?,
            databases: Cell::new(0),
        })
    }

    fn dump(&self, arguments: &[&str]) -> Result<PathBuf> {
        let file = self
            .files
            .path()
            .join(format!("dump{}", arguments.join("")));
        let mut command = self.server.tool("pg_dump");
        command.args(arguments).arg("shop").arg("--file").arg(&file);
        run(&mut command)?;
        Ok(file)
    }

    /// A new database with these dumps in it, each restored up to its first error.
    fn restored(&self, first: &str, dumps: &[&[&str]]) -> Result<Client> {
        self.databases.set(self.databases.get() + 1);
        let database = format!("copy_{}", self.databases.get());
        self.server
            .client("postgres")?
            .batch_execute(&format!("CREATE DATABASE {database}"))?;
        let mut client = self.server.client(&database)?;
        client.batch_execute(first)?;
        for arguments in dumps {
            let file = self.dump(arguments)?;
            let mut psql = self.server.tool("psql");
            psql.args(["-Xq", "-v", "ON_ERROR_STOP=1", "-d", &database, "-f"]);
            run(psql.arg(file))?;
        }
        Ok(client)
    }

    /// A new database with an archive in it, restored in so many runs.
    fn restored_by_pg_restore(&self, runs: &[&[&str]]) -> Result<Client> {
        let client = self.restored("", &[])?;
        let archive = self.dump(&["--format=custom"])?;
        let database = query_text(&mut self.last()?, "SELECT current_database()::text")?;
        for arguments in runs {
            let mut command = self.server.tool("pg_restore");
            command.args(["--exit-on-error", "--dbname", &database]);
            run(command.args(*arguments).arg(&archive))?;
        }
        Ok(client)
    }

    fn last(&self) -> Result<Client> {
        self.server
            .client(&format!("copy_{}", self.databases.get()))
    }
}

fn run(command: &mut Command) -> Result<()> {
    let output = command
        .output()
        .with_context(|| format!("running {command:?}"))?;
    ensure!(
        output.status.success(),
        "{command:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(())
}

/// The tags are those of the original, go on above it, and belong to the extension again.
fn is_whole(client: &mut Client, what: &str) -> Result<()> {
    // A schema public that a dump made anew is not everybody's.
    client.batch_execute("GRANT USAGE ON SCHEMA public TO clerk; SET ROLE clerk")?;
    assert!(query_i64(client, TAKE)? > ISSUED, "{what}");
    client.batch_execute("INSERT INTO orders DEFAULT VALUES; RESET ROLE")?;
    assert!(
        query_i64(client, "SELECT next_biz_id('bills')")? >= 500,
        "{what}"
    );
    // A new tag takes nothing of theirs.
    client.batch_execute("SELECT keywright.create_tag('new')")?;
    assert_eq!(query_i64(client, "SELECT next_biz_id('new')")?, 1, "{what}");
    assert!(query_i64(client, TAKE)? > ISSUED, "{what}");
    client.batch_execute("DROP TABLE orders; DROP EXTENSION keywright")?;
    Ok(())
}

/// Nothing says how far the tag came, so it stands still until somebody does.
fn stands_still(client: &mut Client, what: &str) -> Result<()> {
    let refusal = expect_sql_error(
        query_i64(client, TAKE),
        "XX001",
        "nothing says how far tag \"orders\" was used",
    );
    assert!(
        refusal.hint.contains("keywright.advance_tag('orders', "),
        "{what}: {refusal:?}"
    );
    let health = "SELECT severity || ': ' || detail || ': ' || hint FROM keywright.health WHERE name = 'tags'";
    let output = query_text(client, health)?;
    assert!(
        output.starts_with("error: nothing says how far 2 tags were used: bills, orders: ")
            && output.contains("advance_tag"),
        "{what}: {output}"
    );
    let reserved_to = "SELECT count(*) FROM keywright.tags WHERE reserved_to IS NULL";
    assert_eq!(query_i64(client, reserved_to)?, 2, "{what}");
    client.batch_execute("ALTER TABLE IF EXISTS orders ALTER id DROP DEFAULT")?;
    expect_sql_error(
        client.batch_execute("BEGIN; SELECT keywright.create_tag('orders')"),
        "42710",
        "exists already",
    );
    client.batch_execute("ROLLBACK")?;
    let beyond =
        client.batch_execute("SELECT keywright.advance_tag('orders', 9223372036854775807)");
    expect_sql_error(beyond, "22003", "is beyond the end of tag \"orders\"");
    client.batch_execute("BEGIN; SELECT keywright.advance_tag('orders', 7000); ROLLBACK")?;
    client.batch_execute("SELECT keywright.advance_tag('orders', 6000)")?;
    let first = query_i64(client, TAKE)?;
    assert!((6_001..8_000).contains(&first), "{what}: {first}");
    client.batch_execute("SELECT keywright.advance_tag('bills', 500)")?;
    assert_eq!(
        query_i64(client, "SELECT next_biz_id('bills')")?,
        501,
        "{what}"
    );
    let fine = "SELECT detail FROM keywright.health WHERE name = 'tags' AND severity = 'ok'";
    assert_eq!(query_text(client, fine)?, "of each tag its bound is there");
    client.batch_execute("DROP TABLE IF EXISTS orders; DROP EXTENSION keywright")?;
    Ok(())
}

#[test]
fn dump_in_parts_is_whole() -> Result<()> {
    let scene = Scene::new()?;
    let parts: [(&str, &str, &[&[&str]]); 6] = [
        ("in one", "", &[&[]]),
        (
            "schema, then data",
            "",
            &[&["--schema-only"], &["--data-only"]],
        ),
        (
            "sections",
            "",
            &[
                &["--section=pre-data"],
                &["--section=data"],
                &["--section=post-data"],
            ],
        ),
        (
            "rows as statements",
            "",
            &[&["--schema-only"], &["--data-only", "--inserts"]],
        ),
        (
            "data into what migrations made",
            &format!("{DEFAULTS}; GRANT SELECT, INSERT ON orders TO clerk"),
            &[&["--data-only"]],
        ),
        (
            "two schemas and the extension",
            "DROP SCHEMA public",
            &[&[
                "--schema=public",
                "--schema=keywright",
                "--extension=keywright",
            ]],
        ),
    ];
    for (what, first, dumps) in parts {
        let mut client = scene.restored(first, dumps).context(what)?;
        is_whole(&mut client, what).context(what)?;
    }
    for arguments in [&["--jobs=4"][..], &["--single-transaction"]] {
        let what = arguments.join(" ");
        let mut client = scene
            .restored_by_pg_restore(&[arguments])
            .context(what.clone())?;
        is_whole(&mut client, &what).context(what)?;
    }
    Ok(())
}

/// With `--disable-triggers` pg_restore turns triggers on again in such a way that they would not fire where a subscription makes the changes.
#[test]
fn a_restore_without_triggers_leaves_rows_guarded() -> Result<()> {
    let scene = Scene::new()?;
    let mut client = scene.restored_by_pg_restore(&[
        &["--section=pre-data"],
        &["--section=data", "--disable-triggers"],
        &["--section=post-data"],
    ])?;
    let tags = "SELECT count(*) FROM keywright.tag";
    assert_eq!(query_i64(&mut client, tags)?, 2);
    // As whoever applies a subscription's changes.
    client.batch_execute("SET session_replication_role = replica")?;
    for statement in [
        "UPDATE keywright.tag SET increment = 2, remainder = 1",
        "DELETE FROM keywright.tag",
        "TRUNCATE keywright.tag",
        "TRUNCATE keywright.tag_secret",
        "TRUNCATE keywright.node",
    ] {
        expect_sql_error(
            client.batch_execute(statement),
            "55000",
            "only keywright's functions change the rows of its tables",
        );
    }
    let health = "SELECT severity || ': ' || detail FROM keywright.health WHERE name = 'guards'";
    assert_eq!(
        query_text(&mut client, health)?,
        "ok: the triggers that keep others from changing keywright's tables are on"
    );
    Ok(())
}

#[test]
fn tag_without_its_bound_stands_still() -> Result<()> {
    let scene = Scene::new()?;
    let parts: [(&str, &str, &[&[&str]]); 4] = [
        (
            "no values of sequences",
            "",
            &[&["--exclude-table-data=keywright.tag_*"]],
        ),
        (
            "no sequences",
            "CREATE EXTENSION keywright",
            &[&["--data-only", "--table=keywright.tag"]],
        ),
        (
            "no sequences, and nothing that makes them",
            "CREATE EXTENSION keywright",
            &[&["--data-only", "--disable-triggers", "--table=keywright.tag"]],
        ),
        (
            "one schema without keywright's",
            "DROP SCHEMA public",
            &[&["--schema=public", "--extension=keywright"]],
        ),
    ];
    for (what, first, dumps) in parts {
        let mut client = scene.restored(first, dumps).context(what)?;
        stands_still(&mut client, what).context(what)?;
    }
    Ok(())
}

/// The note beside a bound was written behind it: alone it says that the bound did not come along. That of a tag without any id stands alone.
#[test]
fn note_without_its_bound_gives_no_ids() -> Result<()> {
    let scene = Scene::new()?;
    let id = "SELECT id::bigint FROM keywright.tag WHERE tag = 'orders'";
    let id = query_i64(&mut scene.server.client("shop")?, id)?;
    let left_out = format!("--exclude-table-data=keywright.tag_{id}");
    let mut client = scene.restored("", &[&[left_out.as_str()]])?;
    let note = format!("SELECT last_value FROM keywright.tag_{id}_note WHERE is_called");
    assert!(query_i64(&mut client, &note)? > 0);
    for statement in [
        TAKE,
        "CREATE TABLE bare (id bigint); SELECT keywright.adopt('orders', 'bare', 'id')",
    ] {
        let refusal = expect_sql_error(
            client.batch_execute(statement),
            "XX001",
            "nothing says how far tag \"orders\" was used",
        );
        let advice = "keywright.advance_tag('orders', ";
        assert!(refusal.hint.contains(advice), "{statement}: {refusal:?}");
    }
    let health = "SELECT severity || ': ' || detail FROM keywright.health WHERE name = 'tags'";
    let said = query_text(&mut client, health)?;
    assert_eq!(said, "error: nothing says how far 1 tags were used: orders");
    assert!(query_i64(&mut client, "SELECT next_biz_id('bills')")? >= 500);
    // As the hint says.
    client.batch_execute("SELECT keywright.advance_tag('orders', 6000)")?;
    assert!(query_i64(&mut client, TAKE)? > 6_000);
    let said = query_text(&mut client, health)?;
    assert_eq!(said, "ok: of each tag its bound is there");
    Ok(())
}

/// Tags are data: a dump without data has none, and what it has of them is in nobody's way.
#[test]
fn tag_that_was_not_dumped_is_made_anew() -> Result<()> {
    let scene = Scene::new()?;
    let parts: [(&str, &str, &[&[&str]]); 3] = [
        ("the schema alone", "", &[&["--schema-only"]]),
        (
            "one table",
            "CREATE EXTENSION keywright",
            &[&["--table=orders"]],
        ),
        (
            "keywright's schema alone",
            DEFAULTS,
            &[&["--schema=keywright"]],
        ),
    ];
    for (what, first, dumps) in parts {
        let mut client = scene.restored(first, dumps).context(what)?;
        expect_sql_error(
            query_i64(&mut client, TAKE),
            "42704",
            "tag \"orders\" does not exist",
        );
        client.batch_execute("SELECT keywright.create_tag('orders', start => 7000)")?;
        assert_eq!(query_i64(&mut client, TAKE)?, 7_000, "{what}");
        client.batch_execute("INSERT INTO orders DEFAULT VALUES")?;
    }
    // Of a schema that was restored alone the data may still come.
    let mut client = scene.restored("", &[&["--schema-only"]])?;
    client.batch_execute("SELECT keywright.create_tag('other'); SELECT next_biz_id('other')")?;
    let data = scene.dump(&["--data-only"])?;
    let database = query_text(&mut client, "SELECT current_database()::text")?;
    let mut psql = scene.server.tool("psql");
    psql.args(["-Xq", "-v", "ON_ERROR_STOP=1", "-d", &database, "-f"]);
    run(psql.arg(data))?;
    assert_eq!(query_i64(&mut client, "SELECT next_biz_id('other')")?, 2);
    assert!(query_i64(&mut client, TAKE)? > ISSUED);
    client.batch_execute("SELECT keywright.create_tag('later'); SELECT next_biz_id('later')")?;
    Ok(())
}

const NODE: &str = "SELECT layout || ' ' || readable_zone FROM keywright.node";
const LAST_BOUND: &str = "SELECT last_value FROM keywright.snowflake_bound";

/// What a migration does beside making tables.
fn settle(worker_id: usize) -> String {
    format!(
        "SELECT keywright.set_worker_id({worker_id}, unused => true); SELECT keywright.set_layout('leaf'); \
         SELECT keywright.set_readable_zone('+08:00')"
    )
}

/// Migrations run everywhere, so the database that data comes into is set as the one that it came from.
#[test]
fn data_goes_into_what_migrations_set() -> Result<()> {
    let scene = Scene::new()?;
    let mut shop = scene.server.client("shop")?;
    shop.batch_execute(&settle(7))?;
    shop.batch_execute("SELECT snowflake_id(), readable_id('AB')")?;
    let issued_ms = query_i64(&mut shop, LAST_BOUND)?;
    let data_only = [&["--data-only"][..], &["--data-only", "--inserts"]];
    for (worker_id, arguments) in (8..).zip(data_only) {
        let settled = settle(worker_id);
        let migrations = format!("{DEFAULTS}; GRANT SELECT, INSERT ON orders TO clerk; {settled}");
        let mut client = scene.restored(&migrations, &[arguments])?;
        assert_eq!(query_i64(&mut client, LAST_BOUND)?, issued_ms);
        client.batch_execute("SELECT snowflake_id(), readable_id('AB')")?;
        assert!(query_i64(&mut client, LAST_BOUND)? > issued_ms);
        assert_eq!(query_text(&mut client, NODE)?, query_text(&mut shop, NODE)?);
        is_whole(&mut client, &arguments.join(" "))?;
    }
    Ok(())
}

/// Ids of the one and of the other could meet: so the restore stops, and says how it goes on.
#[test]
fn data_of_another_layout_or_zone_is_refused_with_what_helps() -> Result<()> {
    let scene = Scene::new()?;
    scene.server.client("shop")?.batch_execute(&settle(7))?;
    let set = [
        "SELECT keywright.set_layout('instagram')",
        "SELECT keywright.set_readable_zone('-03:30')",
    ];
    // A worker id is given for a layout, if only the one that is in force unless another is set.
    let first = format!("{DEFAULTS}; SELECT keywright.set_worker_id(20)");
    let refused = scene.restored(&first, &[&["--data-only"]]);
    let output = format!("{:#}", refused.err().context("a refusal")?);
    assert!(output.contains("another layout or time zone"), "{output}");
    for (worker_id, set) in (8..).zip(set) {
        let first = format!("{DEFAULTS}; GRANT SELECT, INSERT ON orders TO clerk; {set}");
        let refused = scene.restored(&first, &[&["--data-only"]]);
        let output = format!("{:#}", refused.err().context("a refusal")?);
        for part in [
            "layout",
            "SELECT keywright.set_layout('leaf')",
            "SELECT keywright.set_readable_zone('+08:00')",
        ] {
            assert!(output.contains(part), "{output}");
        }
        // As the hint says.
        let first = format!("{first}; {}", settle(worker_id));
        let mut client = scene.restored(&first, &[&["--data-only"]])?;
        is_whole(&mut client, set)?;
    }
    Ok(())
}
