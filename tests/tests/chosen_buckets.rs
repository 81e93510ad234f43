//! A bucket that was chosen stays chosen: a copy of its database has none until one is chosen again, and no worker id takes its place, whose
//! number may be a bucket that another database has chosen.

mod common;

use std::collections::HashSet;
use std::sync::mpsc;

use common::{ONE_READABLE, database, drop_database, expect_cause, issue_readable, text_rows};
use keywright_core::cause::Cause;
use keywright_testkit::{PgServer, Result, Stop, WAIT_MAX, query_i64, query_text, wait_until};
use postgres::{Client, NoTls};

/// So many that two databases with one bucket meet.
const BURST: &str = "SELECT string_agg(readable_id('ORD'), ' ') FROM generate_series(1, 50000)";
const HEALTH: &str =
    "SELECT severity, detail, hint FROM keywright.health WHERE name = 'readable bucket'";
const BUCKET: &str = "SELECT bucket, suspended FROM keywright.stats WHERE kind = 'readable'";

/// Readable ids are refused, and all that tells of them names the bucket that was chosen.
#[track_caller]
fn asks_for(client: &mut Client, bucket: u8, has: &str) {
    let error = expect_cause(query_text(client, ONE_READABLE), Cause::Suspended, has);
    let type_this = format!("SELECT keywright.set_readable_bucket({bucket})");
    assert!(error.hint.contains(&type_this), "{error:?}");
    let rows = text_rows(client, HEALTH).expect("a row");
    assert!(rows[0][1].contains(has), "{rows:?}");
    // A copy need not issue readable ids: all else goes on.
    let severity = match rows[0][1].contains("was chosen earlier") {
        true => {
            assert!(rows[0][1].ends_with("readable ids are refused, and nothing else"));
            "warning"
        }
        false => "error",
    };
    assert_eq!(rows[0][0], severity, "{rows:?}");
    assert!(rows[0][2].contains(&type_this), "{rows:?}");
    assert_eq!(text_rows(client, BUCKET).expect("a row"), [["NULL", "t"]]);
}

#[track_caller]
fn has_bucket(client: &mut Client, bucket: u8) {
    let issued = "SELECT bucket::bigint FROM readable_decode(readable_id('ORD'))";
    assert_eq!(query_i64(client, issued).expect("an id"), bucket.into());
    let rows = text_rows(client, HEALTH).expect("a row");
    assert_eq!(rows[0][0], "ok", "{rows:?}");
}

/// Copies a database once the sessions that a test has ended are gone.
fn copy(server: &PgServer, from: &str, to: &str) -> Result<Client> {
    let mut keeper = server.client("postgres")?;
    let copied = format!("CREATE DATABASE {to} TEMPLATE {from}");
    wait_until("a database without sessions", WAIT_MAX, || {
        Ok(keeper.batch_execute(&copied).is_ok())
    })?;
    server.client(to)
}

/// The worker id of the one is the bucket of the other.
#[test]
fn database_that_is_dumped_and_made_anew_does_not_take_its_worker_id_for_a_bucket() -> Result<()> {
    let (x, y) = (PgServer::builder().start()?, PgServer::builder().start()?);
    let identity = |worker: u8, bucket: u8| {
        format!(
            "SELECT keywright.set_worker_id({worker}, unused => true); SELECT keywright.set_readable_bucket({bucket}, unused => true)"
        )
    };
    let mut other = database(&y, "y", &identity(82, 90))?;
    let mut original = database(&x, "x0", &identity(90, 91))?;
    let mut texts = query_text(&mut original, BURST)?;
    drop(original);
    let dumps: [&[&str]; 2] = [&[], &["--create"]];
    for arguments in dumps {
        let script = x.dump("x0", arguments)?;
        drop_database(&x, "x0")?;
        if arguments.is_empty() {
            x.client("postgres")?.batch_execute("CREATE DATABASE x0")?;
            x.restore("x0", &script)?;
        } else {
            x.restore("postgres", &script)?;
        }
        let mut restored = x.client("x0")?;
        asks_for(&mut restored, 91, "readable bucket 91 was");
        restored.batch_execute(
            "SELECT keywright.promoted(lost => interval '0'); SELECT keywright.set_worker_id(90)",
        )?;
        query_i64(&mut restored, "SELECT snowflake_id()")?;
        asks_for(&mut restored, 91, "readable bucket 91 was chosen earlier");
        restored.batch_execute("SELECT keywright.set_readable_bucket(91)")?;
        has_bucket(&mut restored, 91);
        for client in [&mut restored, &mut other] {
            texts.push(' ');
            texts.push_str(&query_text(client, BURST)?);
        }
        // Once it was said so, it is this database's again, whatever its worker id.
        restored.batch_execute("SELECT keywright.set_worker_id(71)")?;
        has_bucket(&mut restored, 91);
        restored.batch_execute("SELECT keywright.set_worker_id(90)")?;
        has_bucket(&mut restored, 91);
    }
    let mut ids = HashSet::new();
    for id in texts.split(' ') {
        assert!(ids.insert(id), "{id} came twice");
    }
    assert_eq!(ids.len(), 250_000);
    Ok(())
}

#[test]
fn copy_from_a_template_asks_for_a_bucket_where_one_was_chosen() -> Result<()> {
    let server = PgServer::builder().start()?;
    let identity = "SELECT keywright.set_worker_id(5); SELECT keywright.set_readable_bucket(10)";
    let mut one = database(&server, "one", identity)?;
    issue_readable(&mut one)?;
    let mut two = database(&server, "two", "SELECT keywright.set_worker_id(6)")?;
    issue_readable(&mut two)?;
    drop((one, two));
    let mut of_one = copy(&server, "one", "of_one")?;
    asks_for(&mut of_one, 10, "readable bucket 10 was chosen earlier");
    for worker in [7, 300] {
        of_one.batch_execute(&format!("SELECT keywright.set_worker_id({worker})"))?;
        asks_for(&mut of_one, 10, "readable bucket 10 was chosen earlier");
    }
    // That of the original, who lives, is refused. The worker id is the bucket where somebody says so.
    let refused = of_one.batch_execute("SELECT keywright.set_readable_bucket(10)");
    expect_cause(refused, Cause::WorkerIdInUse, "belongs to database \"one\"");
    of_one.batch_execute(
        "SELECT keywright.set_worker_id(7); SELECT keywright.set_readable_bucket(7)",
    )?;
    has_bucket(&mut of_one, 7);
    has_bucket(&mut server.client("one")?, 10);
    // One that never chose goes on with its worker id, and so does its copy.
    let mut of_two = copy(&server, "two", "of_two")?;
    expect_cause(
        query_text(&mut of_two, ONE_READABLE),
        Cause::WorkerIdUnset,
        "no readable bucket and no worker id",
    );
    of_two.batch_execute("SELECT keywright.set_worker_id(8)")?;
    has_bucket(&mut of_two, 8);
    Ok(())
}

/// Nor does a worker id that a store assigns.
#[test]
fn assigned_worker_id_does_not_take_the_place_of_a_bucket() -> Result<()> {
    let server = PgServer::builder().start()?;
    let mark = |letter: &str| format!("1.{}", letter.repeat(32));
    let assign = |mark: &str, worker: u8| {
        format!(
            "SELECT keywright.mark_assignment(NULL, '{mark}');
             SELECT keywright.assign_worker_id('{mark}', {worker}, 20, 40, NULL, true)"
        )
    };
    let identity = "SELECT keywright.set_worker_id(5); SELECT keywright.set_readable_bucket(10)";
    let mut one = database(&server, "one", identity)?;
    issue_readable(&mut one)?;
    drop(one);
    let mut branch = copy(&server, "one", "branch")?;
    branch.batch_execute(&assign(&mark("a"), 20))?;
    query_i64(&mut branch, "SELECT snowflake_id()")?;
    asks_for(&mut branch, 10, "readable bucket 10 was chosen earlier");
    // A living database that gets an assigned number in place of its own may be a copy of its disk.
    let mut one = server.client("one")?;
    one.batch_execute(&assign(&mark("b"), 21))?;
    asks_for(&mut one, 10, "readable bucket 10 was chosen earlier");
    one.batch_execute("SELECT keywright.set_readable_bucket(10)")?;
    has_bucket(&mut one, 10);
    Ok(())
}

/// What the extension's table no longer says would be missing in a dump. So it is said again before the next id.
#[test]
fn bucket_is_chosen_again_after_the_extension_was_made_anew() -> Result<()> {
    let server = PgServer::builder().start()?;
    let mut client = database(&server, "one", "SELECT keywright.set_worker_id(5)")?;
    client.batch_execute("SELECT keywright.set_readable_bucket(9)")?;
    let anew = "DROP EXTENSION keywright; CREATE EXTENSION keywright";
    for again in [
        "SELECT keywright.set_readable_bucket(9)",
        "SELECT keywright.set_worker_id(5)",
    ] {
        let last = issue_readable(&mut client)?;
        client.batch_execute(anew)?;
        query_i64(&mut client, "SELECT snowflake_id()")?;
        let refused = query_text(&mut client, ONE_READABLE);
        let error = expect_cause(refused, Cause::Suspended, "readable bucket 9 was chosen");
        assert!(error.hint.contains("set_readable_bucket(9)"), "{error:?}");
        client.batch_execute(again)?;
        let next = issue_readable(&mut client)?;
        assert!(next > last, "{last} {next}");
        has_bucket(&mut client, 9);
    }
    Ok(())
}

/// Also where the server was restarted before anything was issued: both numbers are this database's by its label.
#[test]
fn numbers_are_had_again_after_the_extension_was_made_anew_and_a_restart() -> Result<()> {
    for stop in [Stop::Fast, Stop::Immediate] {
        let mut server = PgServer::builder().start()?;
        let identity =
            "SELECT keywright.set_worker_id(5); SELECT keywright.set_readable_bucket(33)";
        let mut client = database(&server, "one", identity)?;
        let last = issue_readable(&mut client)?;
        let last_id = query_i64(&mut client, "SELECT snowflake_id()")?;
        client.batch_execute("DROP EXTENSION keywright; CREATE EXTENSION keywright")?;
        drop(client);
        server.restart(stop)?;
        let mut client = server.client("one")?;
        let refused = query_text(&mut client, ONE_READABLE);
        let error = expect_cause(refused, Cause::Suspended, "readable bucket 33 was chosen");
        assert!(error.hint.contains("set_readable_bucket(33)"), "{error:?}");
        client.batch_execute(
            "SELECT keywright.set_readable_bucket(33); SELECT keywright.set_worker_id(5)",
        )?;
        let next = issue_readable(&mut client)?;
        assert!(next > last, "{last} {next}");
        has_bucket(&mut client, 33);
        let next_id = query_i64(&mut client, "SELECT snowflake_id()")?;
        assert!(next_id > last_id, "{last_id} {next_id}");
    }
    Ok(())
}

/// A dump in part brings no word of the bucket. So whoever sets a worker id hears of the bucket that comes with it, and who chose one before hears nothing.
#[test]
fn a_bucket_that_comes_with_a_worker_id_is_named() -> Result<()> {
    let server = PgServer::builder().start()?;
    let (send, notices) = mpsc::channel();
    let mut config = server.config("postgres", "postgres");
    config.notice_callback(move |notice| {
        // Nobody may be listening any more.
        let _ = send.send(notice.message().to_owned());
    });
    let mut client = config.connect(NoTls)?;
    client.batch_execute("CREATE EXTENSION keywright")?;
    notices.try_iter().for_each(drop);
    for (statement, said) in [
        ("set_worker_id(5)", Some(5)),
        ("set_worker_id(5)", None),
        ("set_worker_id(300)", None),
        ("set_worker_id(6)", Some(6)),
        ("set_readable_bucket(9)", None),
        ("set_worker_id(7)", None),
    ] {
        client.batch_execute(&format!("SELECT keywright.{statement}"))?;
        let heard: Vec<String> = notices.try_iter().collect();
        let expected: Vec<String> = said
            .iter()
            .map(|worker: &u8| format!("readable bucket {worker} comes with worker id {worker}"))
            .collect();
        assert_eq!(heard, expected, "{statement}");
    }
    Ok(())
}

/// Migrations give the database that data comes into a worker id. They need not know of the bucket.
#[test]
fn data_alone_brings_word_of_the_bucket() -> Result<()> {
    let server = PgServer::builder().start()?;
    let identity = "SELECT keywright.set_worker_id(5); SELECT keywright.set_readable_bucket(10)";
    drop(database(&server, "one", identity)?);
    let data = server.dump("one", &["--data-only"])?;
    let mut two = database(&server, "two", "SELECT keywright.set_worker_id(6)")?;
    server.restore("two", &data)?;
    asks_for(&mut two, 10, "readable bucket 10 was chosen earlier");
    two.batch_execute("SELECT keywright.set_worker_id(6)")?;
    asks_for(&mut two, 10, "readable bucket 10 was chosen earlier");
    two.batch_execute("SELECT keywright.set_readable_bucket(6)")?;
    has_bucket(&mut two, 6);
    // A row is there already, and says nothing of a bucket.
    let settled = "SELECT keywright.set_worker_id(7, unused => true); SELECT keywright.set_readable_zone('+01:00'); \
                   SELECT keywright.set_readable_zone('UTC')";
    let mut three = database(&server, "three", settled)?;
    let refused = format!(
        "{:#}",
        server.restore("three", &data).expect_err("a refusal")
    );
    for part in [
        "readable bucket 10 was chosen",
        "SELECT keywright.set_readable_bucket(10)",
    ] {
        assert!(refused.contains(part), "{refused}");
    }
    // As the hint says.
    three.batch_execute("SELECT keywright.set_readable_bucket(11)")?;
    server.restore("three", &data)?;
    has_bucket(&mut three, 11);
    Ok(())
}
