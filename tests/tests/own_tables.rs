//! Keywright's own tables and sequences, changed by others than its functions: by hand, by a subscription, and by whom default privileges let.

mod common;

use common::expect_cause;
use keywright_core::cause::Cause;
use keywright_testkit::{
    IdLog, PgServer, Result, Stop, WAIT_MAX, copy_ids, expect_sql_error, query_i64, wait_until,
};
use postgres::Client;

const IDS: &str = "SELECT next_biz_ids('orders', 500)";

fn draw(client: &mut Client, log: &IdLog) -> Result<()> {
    let mut run = Vec::new();
    copy_ids(client, IDS, &mut run)?;
    log.record(run);
    Ok(())
}

#[test]
fn rows_and_counters_are_changed_by_functions_alone() -> Result<()> {
    let mut server = PgServer::builder().start()?;
    let mut client = server.client("postgres")?;
    client.batch_execute(
        "CREATE EXTENSION keywright; SELECT keywright.set_worker_id(1); SELECT keywright.set_layout('leaf');
         SELECT keywright.create_tag('orders', step => 100)",
    )?;
    let log = IdLog::new();
    draw(&mut client, &log)?;
    let mut statements = vec![
        "UPDATE keywright.tag SET tag = 'other'",
        "UPDATE keywright.tag SET increment = 2",
        "DELETE FROM keywright.tag",
        "TRUNCATE keywright.tag",
        "INSERT INTO keywright.tag SELECT * FROM keywright.tag ON CONFLICT (tag) DO UPDATE SET generation = 2",
        "UPDATE keywright.node SET layout = 'twitter'",
        "DELETE FROM keywright.node",
        "TRUNCATE keywright.node",
        "TRUNCATE keywright.tag_secret",
        "ALTER TABLE keywright.tag SET UNLOGGED",
        "ALTER TABLE keywright.node SET UNLOGGED",
        "ALTER SEQUENCE keywright.tag_1 RESTART",
        "ALTER SEQUENCE keywright.snowflake_bound RESTART WITH 5",
        "DO $$ BEGIN EXECUTE 'ALTER SEQUENCE keywright.tag_1 INCREMENT BY 5'; END $$",
        "ALTER SEQUENCE keywright.tag_1 RENAME TO other",
        "ALTER TABLE keywright.tag_1_note RENAME TO other",
        "ALTER TABLE keywright.tag RENAME TO other",
        "ALTER TABLE keywright.tag RENAME COLUMN increment TO other",
        "ALTER SEQUENCE keywright.snowflake_bound SET SCHEMA public",
        "ALTER SCHEMA keywright RENAME TO other",
        "DO $$ BEGIN EXECUTE 'ALTER SEQUENCE keywright.tag_1 RENAME TO other'; END $$",
    ];
    if server.install().version().number() >= 15 {
        statements.push("ALTER SEQUENCE keywright.tag_1 SET UNLOGGED");
        statements.push("ALTER TABLE keywright.snowflake_note SET UNLOGGED");
    }
    for statement in statements {
        let answer = client.batch_execute(statement);
        let error = expect_cause(answer, Cause::OwnTables, "only keywright's functions");
        assert!(error.hint.contains("functions in schema"), "{statement}");
        // Which carries rows, and no definitions.
        let is_of_rows = !statement.starts_with("ALTER") && !statement.starts_with("DO");
        let names_a_subscription = error.hint.contains("SET PUBLICATION");
        assert_eq!(names_a_subscription, is_of_rows, "{statement}");
        draw(&mut client, &log)?;
    }
    // What changes no counter is the owner's business; what we change ourselves is none of theirs.
    client.batch_execute(
        "ALTER SEQUENCE keywright.tag_1 OWNER TO CURRENT_USER; ALTER SEQUENCE keywright.tag_1 OWNED BY keywright.tag.id;
         CREATE SEQUENCE mine; ALTER SEQUENCE mine RESTART WITH 7; ALTER SEQUENCE mine RENAME TO hers; DROP SEQUENCE hers;
         CREATE SEQUENCE keywright.tag_77; ALTER SEQUENCE keywright.tag_77 RENAME TO tag_78; DROP SEQUENCE keywright.tag_78;
         CREATE SCHEMA s; ALTER SCHEMA s RENAME TO r; CREATE TABLE r.u (); ALTER TABLE r.u SET SCHEMA public; CREATE TABLE t (); ALTER TABLE t SET UNLOGGED;
         SELECT keywright.alter_tag('orders', step => 50)",
    )?;
    draw(&mut client, &log)?;
    drop(client);
    server.restart(Stop::Immediate)?;
    draw(&mut server.client("postgres")?, &log)?;
    log.check()?;
    Ok(())
}

/// A bound that was set lower is noticed while the server knows better, and is not forgotten when it stops.
#[test]
fn a_bound_that_was_lowered_is_put_back_before_a_restart() -> Result<()> {
    let mut server = PgServer::builder().start()?;
    let mut client = server.client("postgres")?;
    client.batch_execute(
        "CREATE EXTENSION keywright; SELECT keywright.create_tag('orders', step => 100)",
    )?;
    let log = IdLog::new();
    draw(&mut client, &log)?;
    client.batch_execute("SELECT setval('keywright.tag_1', 10)")?;
    let mut run = Vec::new();
    let many = "SELECT next_biz_id('orders') FROM generate_series(1, 5000)";
    let refused = copy_ids(&mut client, many, &mut run);
    log.record(run);
    assert!(format!("{refused:?}").contains("lower than"), "{refused:?}");
    for stop in [Stop::Fast, Stop::Immediate] {
        server.restart(stop)?;
        draw(&mut server.client("postgres")?, &log)?;
    }
    log.check()?;
    Ok(())
}

/// What was left at a clean stop says how far the tag had come, too.
#[test]
fn a_bound_that_was_lowered_before_a_clean_stop_is_put_back() -> Result<()> {
    let mut server = PgServer::builder().start()?;
    let mut client = server.client("postgres")?;
    client.batch_execute(
        "CREATE EXTENSION keywright; SELECT keywright.create_tag('orders', step => 1000)",
    )?;
    let log = IdLog::new();
    let lowered = |server: &mut PgServer| -> Result<Client> {
        let mut client = server.client("postgres")?;
        draw(&mut client, &log)?;
        client.batch_execute("SELECT setval('keywright.tag_1', 10)")?;
        drop(client);
        server.restart(Stop::Fast)?;
        server.client("postgres")
    };
    let mut client = lowered(&mut server)?;
    let answer = client.batch_execute(IDS);
    expect_cause(answer, Cause::BoundDamaged, "lower than");
    draw(&mut client, &log)?;
    drop(client);
    // The note does not matter, which a data-only restore replaces, too.
    let mut client = lowered(&mut server)?;
    client.batch_execute(
        "SELECT setval('keywright.tag_1_note', last_value # (1::bigint << 50)) FROM keywright.tag_1_note",
    )?;
    let answer = client.batch_execute(IDS);
    expect_cause(answer, Cause::BoundDamaged, "lower than");
    draw(&mut client, &log)?;
    drop(client);
    // Steps that close the tag know it, too.
    for step in [
        "SELECT keywright.alter_tag('orders', increment => 2, remainder => 1)",
        "SELECT keywright.drop_tag('orders'); SELECT keywright.create_tag('orders', step => 1000)",
    ] {
        let mut client = lowered(&mut server)?;
        client.batch_execute(step)?;
        draw(&mut client, &log)?;
    }
    log.check()?;
    Ok(())
}

/// A bound that was reset reads like that of a new tag. The note beside it tells the two apart.
#[test]
fn a_bound_that_was_reset_is_not_a_new_tags() -> Result<()> {
    let mut server = PgServer::builder().start()?;
    let mut client = server.client("postgres")?;
    client.batch_execute(
        "CREATE EXTENSION keywright; SELECT keywright.create_tag('orders', step => 100); SELECT keywright.create_tag('new')",
    )?;
    let log = IdLog::new();
    let reset = "SELECT setval('keywright.tag_1', 0, false)";
    draw(&mut client, &log)?;
    client.batch_execute(reset)?;
    drop(client);
    server.restart(Stop::Immediate)?;
    let mut client = server.client("postgres")?;
    let refused = client.batch_execute(IDS);
    let error = expect_cause(refused, Cause::BoundDamaged, "nothing says how far");
    assert!(error.hint.contains("advance_tag('orders', "), "{error:#?}");
    let first = query_i64(&mut client, "SELECT next_biz_id('new')")?;
    assert_eq!(first, 1);
    client.batch_execute("SELECT keywright.advance_tag('orders', 5000)")?;
    draw(&mut client, &log)?;
    // After a clean stop what was left says how far the tag had come.
    client.batch_execute(reset)?;
    drop(client);
    server.restart(Stop::Fast)?;
    let mut client = server.client("postgres")?;
    let refused = client.batch_execute(IDS);
    expect_cause(refused, Cause::BoundDamaged, "lower than");
    draw(&mut client, &log)?;
    log.check()?;
    Ok(())
}

/// A superuser may drop a sequence of a tag, its bound or its note. Then nothing is issued, and whoever says how far the tag was used cannot say less than
/// the server knows, by what was issued since it started or was left when it stopped.
#[test]
fn a_bound_that_was_dropped_does_not_begin_below_what_is_known() -> Result<()> {
    for (dropped, stops) in [
        ("tag_1", false),
        ("tag_1", true),
        ("tag_1_note", false),
        ("tag_1_note", true),
    ] {
        let drop_it = format!("DROP SEQUENCE keywright.{dropped}");
        let mut server = PgServer::builder().start()?;
        let mut client = server.client("postgres")?;
        client.batch_execute(
            "CREATE EXTENSION keywright; SELECT keywright.create_tag('orders', step => 1000)",
        )?;
        let log = IdLog::new();
        draw(&mut client, &log)?;
        if stops {
            drop(client);
            server.restart(Stop::Fast)?;
            client = server.client("postgres")?;
        }
        client.batch_execute(&format!("BEGIN; {drop_it}; ROLLBACK"))?;
        draw(&mut client, &log)?;
        if stops {
            drop(client);
            server.restart(Stop::Fast)?;
            client = server.client("postgres")?;
        }
        let mut other = server.client("postgres")?;
        draw(&mut other, &log)?;
        client.batch_execute(&drop_it)?;
        for session in [&mut client, &mut other] {
            let refused = session.batch_execute(IDS);
            expect_cause(refused, Cause::BoundDamaged, "nothing says how far");
        }
        client.batch_execute("SELECT keywright.advance_tag('orders', 0)")?;
        for session in [&mut client, &mut other] {
            draw(session, &log)?;
        }
        log.check()?;
    }
    Ok(())
}

/// The bound of snowflake ids likewise: in memory it is further than what a second `setval` leaves.
#[test]
fn a_time_bound_that_was_lowered_is_put_back() -> Result<()> {
    let server = PgServer::builder()
        .setting("keywright.bound_window_ms", "100")
        .start()?;
    let mut client = server.client("postgres")?;
    let bound = "SELECT last_value FROM keywright.snowflake_bound";
    client.batch_execute(
        "CREATE EXTENSION keywright; SELECT keywright.set_worker_id(1); SELECT snowflake_id()",
    )?;
    let was = query_i64(&mut client, bound)?;
    client.batch_execute("SELECT setval('keywright.snowflake_bound', 10)")?;
    let log = IdLog::new();
    let mut draw = |query| {
        let mut run = Vec::new();
        let answer = copy_ids(&mut client, query, &mut run);
        log.record(run);
        answer
    };
    wait_until("what set the bound is noticed", WAIT_MAX, || {
        Ok(draw("SELECT snowflake_id()")
            .is_err_and(|error| format!("{error:?}").contains("lower than the")))
    })?;
    draw("SELECT snowflake_id() FROM generate_series(1, 1000)")?;
    assert!(query_i64(&mut client, bound)? >= was);
    log.check()?;
    Ok(())
}

/// A library that is loaded later than the statement has only what it finds.
#[test]
fn what_a_crash_would_empty_gives_no_ids() -> Result<()> {
    let server = PgServer::builder().start()?;
    if server.install().version().number() < 15 {
        // No such sequences there, and its tables alone hold no bound.
        return Ok(());
    }
    let mut client = server.client("postgres")?;
    client.batch_execute(
        "CREATE EXTENSION keywright; SELECT keywright.set_worker_id(1);
         SELECT keywright.create_tag('orders', step => 100); SELECT next_biz_id('orders');
         UPDATE pg_class SET relpersistence = 'u' WHERE relname = 'tag_1'",
    )?;
    let mut late = server.client("postgres")?;
    let message = "sequence keywright.tag_1 is unlogged";
    expect_cause(late.batch_execute(IDS), Cause::BoundDamaged, message);
    client.batch_execute(
        "UPDATE pg_class SET relpersistence = 'p' WHERE relname = 'tag_1';
         UPDATE pg_class SET relpersistence = 'u' WHERE relname = 'tag'",
    )?;
    let mut late = server.client("postgres")?;
    let message = "one of them is unlogged";
    expect_cause(late.batch_execute(IDS), Cause::BoundDamaged, message);
    Ok(())
}

/// Two databases that share out the numbers, and a publication of everything.
#[test]
fn a_subscription_does_not_change_how_ids_are_issued() -> Result<()> {
    let server = PgServer::builder()
        .setting("wal_level", "logical")
        .start()?;
    let mut admin = server.client("postgres")?;
    for (name, remainder) in [("one", 1), ("two", 0)] {
        admin.batch_execute(&format!("CREATE DATABASE {name}"))?;
        server.client(name)?.batch_execute(&format!(
            "CREATE EXTENSION keywright; SELECT keywright.set_worker_id({});
             SELECT keywright.create_tag('orders', step => 100, increment => 2, remainder => {remainder});
             CREATE TABLE words (id bigint PRIMARY KEY, word text)",
            remainder + 1
        ))?;
    }
    let (mut one, mut two) = (server.client("one")?, server.client("two")?);
    let log = IdLog::new();
    draw(&mut one, &log)?;
    draw(&mut two, &log)?;
    // As pg_restore --disable-triggers does it.
    for table in ["tag", "tag_secret", "node"] {
        two.batch_execute(&format!(
            "ALTER TABLE keywright.{table} DISABLE TRIGGER ALL; ALTER TABLE keywright.{table} ENABLE TRIGGER ALL"
        ))?;
    }
    one.batch_execute("CREATE PUBLICATION everything FOR ALL TABLES")?;
    one.batch_execute("SELECT pg_create_logical_replication_slot('s', 'pgoutput')")?;
    two.batch_execute(&format!(
        "CREATE SUBSCRIPTION s CONNECTION 'host={} port={} user=postgres dbname=one' PUBLICATION everything
         WITH (create_slot = false, slot_name = 's', copy_data = false)",
        server.socket_dir().display(),
        server.port()
    ))?;
    // A tag that is not here comes, and issues nothing before somebody says how far it was used; it is changed along with its original.
    one.batch_execute(
        "SELECT keywright.create_tag('bills', step => 100); SELECT next_biz_id('bills'); INSERT INTO words VALUES (1, 'a');
         SELECT keywright.alter_tag('bills', step => 50)",
    )?;
    let steps = "SELECT coalesce(max(step), 0) FROM keywright.tag WHERE tag = 'bills'";
    wait_until("the tag that comes", WAIT_MAX, || {
        Ok(query_i64(&mut two, steps)? == 50)
    })?;
    for statement in [
        "SELECT next_biz_id('bills')",
        "SELECT keywright.grant_tag('bills', 'public')",
        "SELECT keywright.revoke_tag('bills', 'public')",
        "SELECT keywright.drop_tag('bills')",
    ] {
        let answer = two.batch_execute(statement);
        let error = expect_cause(answer, Cause::BoundDamaged, "nothing says how far");
        assert!(error.hint.contains("keywright.advance_tag"), "{statement}");
    }
    // As a tool that restores or replicates would have it.
    two.batch_execute(
        "SET session_replication_role = replica; SELECT keywright.create_tag('made', step => 10);
         SELECT next_biz_id('made'); RESET session_replication_role",
    )?;
    assert_eq!(query_i64(&mut two, "SELECT count(*) FROM words")?, 1);
    // One that is here stays as it is, and the subscription stops where everybody sees it.
    one.batch_execute("SELECT keywright.alter_tag('orders', step => 10)")?;
    let refused = "only keywright's functions change the rows of its tables";
    wait_until("the refusal", WAIT_MAX, || server.log_contains(refused))?;
    for _ in 0..5 {
        draw(&mut one, &log)?;
        draw(&mut two, &log)?;
    }
    let mut late = server.client("two")?;
    draw(&mut late, &log)?;
    log.check()?;
    let kept = "SELECT remainder::bigint FROM keywright.tag WHERE tag = 'orders'";
    assert_eq!(query_i64(&mut late, kept)?, 0);
    two.batch_execute("ALTER SUBSCRIPTION s DISABLE; ALTER SUBSCRIPTION s SET (slot_name = NONE); DROP SUBSCRIPTION s")?;
    Ok(())
}

/// Whoever may set a sequence back has ids come twice.
#[test]
fn default_privileges_give_nobody_the_bounds() -> Result<()> {
    let server = PgServer::builder().start()?;
    let mut owner = server.client("postgres")?;
    owner.batch_execute(
        "CREATE ROLE app LOGIN;
         ALTER DEFAULT PRIVILEGES GRANT ALL ON SEQUENCES TO app;
         ALTER DEFAULT PRIVILEGES GRANT ALL ON TABLES TO app;
         ALTER DEFAULT PRIVILEGES GRANT ALL ON TABLES TO PUBLIC;
         ALTER DEFAULT PRIVILEGES GRANT ALL ON FUNCTIONS TO app;
         ALTER DEFAULT PRIVILEGES GRANT ALL ON SCHEMAS TO app;
         CREATE EXTENSION keywright;
         SELECT keywright.create_tag('orders'); SELECT keywright.create_tag('hidden', hide_bits => 53)",
    )?;
    let mut app = server.connect("postgres", "app")?;
    app.batch_execute("SELECT next_biz_id('orders'), next_biz_id('hidden')")?;
    for statement in [
        "SELECT setval('keywright.tag_1', 1)",
        "SELECT nextval('keywright.tag_1_note')",
        "SELECT setval('keywright.snowflake_bound', 1)",
        "SELECT * FROM keywright.tag_secret",
        "INSERT INTO keywright.node (layout) VALUES ('leaf')",
        "UPDATE keywright.tag SET step = 1",
        "SELECT * FROM keywright.node",
        "SELECT * FROM keywright.tags",
        "INSERT INTO keywright.tags (tag, step, step_min, step_max, start, max) VALUES ('a', 1, 1, 1, 1, 9)",
        "SELECT keywright.drop_tag('orders')",
        "SELECT keywright.create_tag('more')",
        "SELECT keywright.hide_key('hidden')",
        "SELECT * FROM keywright.health",
        "CREATE TABLE keywright.mine (n int)",
    ] {
        let refused = app.batch_execute(statement);
        expect_sql_error(refused, "42501", "permission denied");
    }
    // A dump makes the sequences itself, in a database with the same default privileges.
    owner.batch_execute("CREATE DATABASE copy")?;
    server.client("copy")?.batch_execute(
        "ALTER DEFAULT PRIVILEGES GRANT ALL ON SEQUENCES TO app; ALTER DEFAULT PRIVILEGES GRANT ALL ON TABLES TO app",
    )?;
    let script = server.dump("postgres", &[])?;
    let mut copy = server.client("copy")?;
    copy.batch_execute("SELECT 1")?;
    server.restore("copy", &script)?;
    let mut app = server.connect("copy", "app")?;
    app.batch_execute("SELECT next_biz_id('orders')")?;
    for statement in [
        "SELECT setval('keywright.tag_1', 1)",
        "SELECT nextval('keywright.tag_1')",
        "SELECT setval('keywright.tag_1_note', 1)",
    ] {
        let refused = app.batch_execute(statement);
        expect_sql_error(refused, "42501", "permission denied");
    }
    Ok(())
}
