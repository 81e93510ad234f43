//! The harness itself: what it says about a PostgreSQL server is so.

use std::time::{SystemTime, UNIX_EPOCH};

use keywright_testkit::{
    Draw, IdLog, PgServer, Replication, Result, Stop, WAIT_MAX, expect_sql_error, query_i64,
    query_text, wait_until,
};

fn unix_s(client: &mut postgres::Client) -> Result<i64> {
    Ok(query_i64(
        client,
        "SELECT extract(epoch FROM clock_timestamp())::bigint",
    )?)
}

fn real_unix_s() -> Result<i64> {
    Ok(i64::try_from(
        SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs(),
    )?)
}

#[test]
fn server_outlives_kills_and_restarts_with_its_data() -> Result<()> {
    let mut server = PgServer::builder().preload(false).start()?;
    server
        .client("postgres")?
        .batch_execute("CREATE TABLE t AS SELECT 7::bigint AS n")?;
    server.kill9()?;
    assert!(!server.is_running());
    assert!(server.client("postgres").is_err());
    server.start()?;
    assert!(server.log_contains("was not properly shut down")?);
    for how in [Stop::Fast, Stop::Immediate, Stop::Smart] {
        server.restart(how)?;
        assert_eq!(
            query_i64(&mut server.client("postgres")?, "SELECT n FROM t")?,
            7
        );
    }
    Ok(())
}

#[test]
fn killed_backend_takes_the_others_with_it() -> Result<()> {
    let server = PgServer::builder().preload(false).start()?;
    let mut victim = server.client("postgres")?;
    let mut bystander = server.client("postgres")?;
    let pid = i32::try_from(query_i64(&mut victim, "SELECT pg_backend_pid()::bigint")?)?;
    server.kill9_backend(pid)?;
    assert!(bystander.simple_query("SELECT 1").is_err());
    assert_eq!(
        query_i64(&mut server.client("postgres")?, "SELECT 1::bigint")?,
        1
    );
    Ok(())
}

#[test]
fn clock_steps_while_the_server_runs() -> Result<()> {
    let mut server = PgServer::builder().preload(false).fake_clock().start()?;
    let mut client = server.client("postgres")?;
    for offset_s in [86_400, -3_600, 0] {
        server.clock()?.step_to(offset_s)?;
        let seen = unix_s(&mut client)? - real_unix_s()?;
        assert!(
            (seen - offset_s).abs() <= 5,
            "offset {seen} s, not {offset_s} s"
        );
    }
    server.clock()?.step_to(-7_200)?;
    server.kill9()?;
    server.start()?;
    let seen = unix_s(&mut server.client("postgres")?)? - real_unix_s()?;
    assert!((seen + 7_200).abs() <= 5, "offset {seen} s after a restart");
    Ok(())
}

#[test]
fn standbys_follow_and_are_promoted() -> Result<()> {
    for replication in [Replication::Asynchronous, Replication::Synchronous] {
        let mut primary = PgServer::builder().preload(false).start()?;
        let standby = primary.standby("standby", replication)?;
        primary
            .client("postgres")?
            .batch_execute("CREATE TABLE t AS SELECT 7::bigint AS n")?;
        primary.wait_replayed(&standby)?;
        let refused = standby
            .client("postgres")?
            .batch_execute("INSERT INTO t VALUES (8)");
        expect_sql_error(refused, "25006", "read-only transaction");
        primary.kill9()?;
        standby.promote()?;
        let mut client = standby.client("postgres")?;
        client.batch_execute("INSERT INTO t VALUES (8)")?;
        assert_eq!(query_i64(&mut client, "SELECT sum(n)::bigint FROM t")?, 15);
    }
    Ok(())
}

#[test]
fn copy_of_a_killed_server_runs_beside_it() -> Result<()> {
    let identity = "SELECT system_identifier FROM pg_control_system()";
    let mut original = PgServer::builder().preload(false).start()?;
    let original_id = query_i64(&mut original.client("postgres")?, identity)?;
    assert!(original.copy().is_err());
    original.kill9()?;
    let mut copy = original.copy()?;
    copy.start()?;
    original.start()?;
    assert_ne!(original.port(), copy.port());
    assert_eq!(
        query_i64(&mut copy.client("postgres")?, identity)?,
        original_id
    );
    let other = PgServer::builder().preload(false).start()?;
    assert_ne!(
        query_i64(&mut other.client("postgres")?, identity)?,
        original_id
    );
    Ok(())
}

#[test]
fn paused_server_goes_on() -> Result<()> {
    let server = PgServer::builder().preload(false).start()?;
    let mut client = server.client("postgres")?;
    server.pause()?;
    let (send, receive) = std::sync::mpsc::channel();
    let asker = std::thread::spawn(move || send.send(query_i64(&mut client, "SELECT 7::bigint")));
    assert!(
        receive
            .recv_timeout(std::time::Duration::from_millis(300))
            .is_err()
    );
    server.resume()?;
    assert_eq!(receive.recv_timeout(WAIT_MAX)??, 7);
    assert!(asker.join().is_ok());
    Ok(())
}

#[test]
fn settings_and_tools_reach_the_server() -> Result<()> {
    let mut server = PgServer::builder()
        .preload(false)
        .setting("work_mem", "5MB")
        .start()?;
    assert_eq!(
        query_text(&mut server.client("postgres")?, "SHOW work_mem")?,
        "5MB"
    );
    server.set("work_mem", "6MB");
    server.restart(Stop::Fast)?;
    assert_eq!(
        query_text(&mut server.client("postgres")?, "SHOW work_mem")?,
        "6MB"
    );
    let output = server
        .tool("psql")
        .args(["-Atc", "SELECT 6 * 7"])
        .output()?;
    assert_eq!(String::from_utf8(output.stdout)?, "42\n");
    wait_until("a port that answers", WAIT_MAX, || {
        Ok(std::net::TcpStream::connect(("127.0.0.1", server.port())).is_ok())
    })
}

#[test]
fn every_id_that_arrives_is_logged_also_when_the_server_is_killed() -> Result<()> {
    let mut server = PgServer::builder().preload(false).start()?;
    server
        .client("postgres")?
        .batch_execute("CREATE SEQUENCE s CACHE 1000")?;
    let (config, log) = (server.config("postgres", "postgres"), IdLog::new());
    let query = "SELECT nextval('s') FROM generate_series(1, 20000)";
    let draw = Draw {
        connections: 4,
        rounds: 5,
        query,
    };
    assert!(log.draw(&config, draw).is_empty());
    assert_eq!(log.check()?.count, 400_000);
    let endless = Draw {
        rounds: usize::MAX,
        ..draw
    };
    let errors = std::thread::scope(|scope| -> Result<Vec<anyhow::Error>> {
        let drawing = scope.spawn(|| log.draw(&config, endless));
        let issued = "SELECT last_value FROM s";
        let mut client = server.client("postgres")?;
        wait_until("ids beyond the first ones", WAIT_MAX, || {
            Ok(query_i64(&mut client, issued)? > 500_000)
        })?;
        server.kill9()?;
        drawing
            .join()
            .map_err(|_| anyhow::anyhow!("drawing panicked"))
    })?;
    assert_eq!(errors.len(), 4);
    assert!(log.check()?.count > 400_000);
    Ok(())
}

#[test]
fn extension_under_test_is_in_the_private_installation() -> Result<()> {
    let server = PgServer::builder().start()?;
    let library = server.install().pkglibdir().join("keywright.so");
    assert!(
        library.is_file() && library.starts_with(std::env::temp_dir()),
        "{library:?}"
    );
    let mut client = server.client("postgres")?;
    assert_eq!(
        query_text(&mut client, "SHOW shared_preload_libraries")?,
        "keywright"
    );
    client.batch_execute("CREATE EXTENSION keywright")?;
    client.batch_execute("SELECT keywright.set_worker_id(1)")?;
    assert!(query_i64(&mut client, "SELECT snowflake_id()")? > 0);
    Ok(())
}
