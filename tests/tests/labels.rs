//! `SECURITY LABEL`: without keywright's name it is the server's own business, with it what a restored dump needs.

use std::process::Command;

use anyhow::ensure;
use keywright_testkit::{PgServer, Replication, Result, expect_sql_error, query_i64, query_text};
use postgres::Client;

/// A label as another server's dump has it.
const FOREIGN: &str = "worker=7 system=1 database=2";
const LABELS: &str =
    "SELECT count(*) FROM pg_shseclabel WHERE provider = 'keywright' AND label ~ '^worker='";

fn set_up(server: &PgServer) -> Result<Client> {
    let mut client = server.client("postgres")?;
    client.batch_execute("CREATE EXTENSION keywright")?;
    Ok(client)
}

fn label(provider: &str, object: &str, label: &str) -> String {
    format!("SECURITY LABEL {provider} ON {object} IS {label}")
}

/// As in a server that never heard of keywright: what the server's own regression test expects.
#[test]
fn without_our_name_the_server_answers_as_ever() -> Result<()> {
    let server = PgServer::builder().start()?;
    let mut client = set_up(&server)?;
    client.batch_execute(
        "SELECT keywright.set_worker_id(1); CREATE TABLE t (); SELECT snowflake_id()",
    )?;
    for (object, text) in [
        ("TABLE t", "'x'"),
        ("DATABASE postgres", "NULL"),
        ("ROLE postgres", "'x'"),
    ] {
        expect_sql_error(
            client.batch_execute(&label("", object, text)),
            "22023",
            "no security label providers have been loaded",
        );
        expect_sql_error(
            client.batch_execute(&label("FOR dummy", object, text)),
            "22023",
            "security label provider \"dummy\" is not loaded",
        );
    }
    assert_eq!(query_i64(&mut client, LABELS)?, 1);
    Ok(())
}

/// What the server checks for a provider's label it checks for ours.
#[test]
fn with_our_name_the_servers_checks_hold() -> Result<()> {
    let server = PgServer::builder().start()?;
    let mut client = set_up(&server)?;
    client.batch_execute("CREATE ROLE dbo LOGIN; CREATE ROLE other LOGIN; CREATE TABLE t ()")?;
    client.batch_execute("CREATE DATABASE shop OWNER dbo")?;
    let set = label("FOR keywright", "DATABASE shop", &format!("'{FOREIGN}'"));
    let mut other = server.connect("postgres", "other")?;
    expect_sql_error(
        other.batch_execute(&set),
        "42501",
        "must be owner of database shop",
    );
    expect_sql_error(
        client.batch_execute(&set.replace("shop", "nowhere")),
        "3D000",
        "database \"nowhere\" does not exist",
    );
    expect_sql_error(
        client.batch_execute(&format!("BEGIN READ ONLY; {set}")),
        "25006",
        "cannot execute SECURITY LABEL in a read-only transaction",
    );
    client.batch_execute("ROLLBACK")?;
    for object in [
        "TABLE t",
        "ROLE dbo",
        "TABLESPACE pg_default",
        "COLUMN t.c",
        "TABLE nowhere",
    ] {
        expect_sql_error(
            client.batch_execute(&label("FOR keywright", object, &format!("'{FOREIGN}'"))),
            "55006",
            "a worker id or readable bucket is not given by a security label",
        );
    }
    assert_eq!(query_i64(&mut client, LABELS)?, 0);
    let mut owner = server.connect("postgres", "dbo")?;
    owner.batch_execute(&format!("BEGIN; {set}; ROLLBACK"))?;
    assert_eq!(query_i64(&mut client, LABELS)?, 0);
    owner.batch_execute(&format!("DO $$ BEGIN EXECUTE $q${set}$q$; END $$"))?;
    assert_eq!(query_i64(&mut client, LABELS)?, 1);
    // Twice in one transaction: the second sees what the first wrote.
    owner.batch_execute(&format!("BEGIN; {set}; {set}; COMMIT"))?;
    owner.batch_execute(&label("FOR \"keywright\"", "DATABASE shop", "NULL"))?;
    assert_eq!(query_i64(&mut client, LABELS)?, 0);
    let tag = String::from_utf8(server.tool("psql").args(["-Xc", &set]).output()?.stdout)?;
    assert_eq!(tag.trim(), "SECURITY LABEL");
    Ok(())
}

#[test]
fn standby_refuses_a_label_as_the_server_does() -> Result<()> {
    let primary = PgServer::builder().start()?;
    set_up(&primary)?;
    let standby = primary.standby("one", Replication::Asynchronous)?;
    let taken = standby.client("postgres")?.batch_execute(&label(
        "FOR keywright",
        "DATABASE postgres",
        "NULL",
    ));
    expect_sql_error(
        taken,
        "25006",
        "cannot execute SECURITY LABEL in a read-only transaction",
    );
    Ok(())
}

/// The statement is one of the library's: a session that has not loaded it gets the server's ordinary answer.
#[test]
fn without_the_preload_only_a_session_that_loaded_the_library_labels() -> Result<()> {
    let server = PgServer::builder().preload(false).start()?;
    let mut client = server.client("postgres")?;
    let set = label(
        "FOR keywright",
        "DATABASE postgres",
        &format!("'{FOREIGN}'"),
    );
    expect_sql_error(
        client.batch_execute(&set),
        "22023",
        "security label provider \"keywright\" is not loaded",
    );
    client.batch_execute(&format!("LOAD 'keywright'; {set}"))?;
    assert_eq!(query_i64(&mut client, LABELS)?, 1);
    client.batch_execute(&label("FOR keywright", "DATABASE postgres", "NULL"))?;
    assert_eq!(query_i64(&mut client, LABELS)?, 0);
    expect_sql_error(
        client.batch_execute(&label("", "DATABASE postgres", "'x'")),
        "22023",
        "no security label providers have been loaded",
    );
    Ok(())
}

/// A hook that was there before ours still gets every statement.
#[test]
fn other_libraries_go_on_seeing_statements() -> Result<()> {
    for libraries in [
        "pg_stat_statements,keywright",
        "keywright,pg_stat_statements",
    ] {
        let server = PgServer::builder()
            .setting("shared_preload_libraries", libraries)
            .start()?;
        let mut client = set_up(&server)?;
        client.batch_execute("CREATE EXTENSION pg_stat_statements")?;
        client.batch_execute("CREATE TABLE counted ()")?;
        let failed = client.batch_execute("CREATE TABLE counted ()");
        expect_sql_error(failed, "42P07", "relation \"counted\" already exists");
        client.batch_execute("DROP TABLE counted")?;
        let seen =
            "SELECT count(*) FROM pg_stat_statements WHERE query ~ '^(CREATE|DROP) TABLE counted'";
        assert_eq!(query_i64(&mut client, seen)?, 2, "{libraries}");
    }
    Ok(())
}

/// A session of a database, and what it issues with.
type Session = (Client, &'static str);

/// One session with and one without a transaction for each kind of ids. Both have issued.
fn issuing(server: &PgServer) -> Result<Vec<Session>> {
    let mut client = server.client("shop")?;
    let mut sessions = Vec::new();
    for ids in ["SELECT snowflake_id()", "SELECT count(readable_id('a'))"] {
        // Whoever extends a bound in a transaction keeps it until that ends.
        query_i64(&mut client, ids)?;
        for begin in ["", "BEGIN"] {
            let mut session = server.client("shop")?;
            session.batch_execute(begin)?;
            sessions.push((session, ids));
        }
    }
    all_issue(&mut sessions, "at first");
    Ok(sessions)
}

fn all_issue(sessions: &mut [Session], when: &str) {
    for (session, ids) in sessions {
        let taken = query_i64(session, ids);
        assert!(taken.is_ok(), "{when}: {ids}: {taken:?}");
    }
}

/// It is taken from every session that is open, in its transactions too, once that has committed, and not before; whichever database it was said in.
#[test]
fn a_label_that_is_removed_takes_the_identity_away() -> Result<()> {
    const REMOVE: &str = "SECURITY LABEL FOR keywright ON DATABASE shop IS NULL";
    const REPLACE: &str = "SECURITY LABEL FOR keywright ON DATABASE shop \
                           IS 'worker=7 bucket=worker system=1 database=2'";
    const NONE: &str = "no worker id";
    let server = PgServer::builder()
        .setting("max_prepared_transactions", "1")
        .start()?;
    let mut admin = server.client("postgres")?;
    admin.batch_execute("CREATE DATABASE shop")?;
    let mut client = server.client("shop")?;
    client.batch_execute("CREATE EXTENSION keywright")?;
    let in_part = format!("BEGIN; {REMOVE}; SAVEPOINT part; {REMOVE}; ROLLBACK TO part");
    let prepared = format!("BEGIN; {REMOVE}; PREPARE TRANSACTION 'p'");
    let undone = [
        format!("BEGIN; {REMOVE}; ROLLBACK"),
        format!("BEGIN; SAVEPOINT part; {REMOVE}; ROLLBACK TO part; COMMIT"),
    ];
    for (worker_id, (database, change, commit, told)) in (1..).zip([
        ("shop", REMOVE, "", NONE),
        ("postgres", REMOVE, "", NONE),
        ("postgres", &*in_part, "COMMIT", NONE),
        ("shop", &*prepared, "COMMIT PREPARED 'p'", NONE),
        (
            "postgres",
            REPLACE,
            "",
            "was given to another server or database",
        ),
    ]) {
        client.batch_execute(&format!("SELECT keywright.set_worker_id({worker_id})"))?;
        let mut sessions = issuing(&server)?;
        let mut changer = server.client(database)?;
        for change in &undone {
            changer.batch_execute(change)?;
            all_issue(&mut sessions, change);
        }
        changer.batch_execute(change)?;
        if !commit.is_empty() {
            all_issue(&mut sessions, change);
            changer.batch_execute(commit)?;
        }
        for (session, ids) in &mut sessions {
            expect_sql_error(query_i64(session, ids), "55000", told);
        }
    }
    // The server keeps the number for the database.
    admin.batch_execute("CREATE EXTENSION keywright")?;
    let other = admin.batch_execute("SELECT keywright.set_worker_id(5)");
    expect_sql_error(other, "55006", "worker id 5 belongs to database \"shop\"");
    Ok(())
}

/// By whoever takes the first id of all before that has committed, too.
#[test]
fn a_label_that_is_removed_takes_away_what_nobody_had_used() -> Result<()> {
    let server = PgServer::builder().start()?;
    let mut client = server.client("postgres")?;
    client.batch_execute("CREATE EXTENSION keywright; SELECT keywright.set_worker_id(1)")?;
    client.batch_execute("BEGIN; SECURITY LABEL FOR keywright ON DATABASE postgres IS NULL")?;
    let mut sessions: Vec<Session> = Vec::new();
    for ids in ["SELECT snowflake_id()", "SELECT count(readable_id('a'))"] {
        let mut session = server.client("postgres")?;
        session.batch_execute("BEGIN")?;
        sessions.push((session, ids));
    }
    all_issue(&mut sessions, "before the commit");
    client.batch_execute("COMMIT")?;
    for (session, ids) in &mut sessions {
        expect_sql_error(query_i64(session, ids), "55000", "no worker id");
    }
    Ok(())
}

/// `pg_dumpall` of a server whose databases have worker ids, into another.
#[test]
fn dump_of_a_whole_server_restores() -> Result<()> {
    let source = PgServer::builder().start()?;
    let mut admin = source.client("postgres")?;
    admin.batch_execute("CREATE DATABASE shop")?;
    source.client("shop")?.batch_execute(
        "CREATE EXTENSION keywright; SELECT keywright.set_worker_id(1); SELECT keywright.create_tag('orders'); \
         SELECT next_biz_id('orders'), snowflake_id()",
    )?;
    let script = output(source.tool("pg_dumpall").args(["--no-role-passwords"]))?;
    for preload in [true, false] {
        let target = PgServer::builder().preload(preload).start()?;
        let file = tempfile::NamedTempFile::new()?;
        std::fs::write(file.path(), &script)?;
        let restored = target
            .tool("psql")
            .args(["-Xqf"])
            .arg(file.path())
            .output()?;
        let errors = String::from_utf8_lossy(&restored.stderr).into_owned();
        let labelled =
            "SELECT label FROM pg_shseclabel WHERE provider = 'keywright' AND label ~ '^worker'";
        let mut client = target.client("shop")?;
        if preload {
            assert!(query_text(&mut client, labelled)?.starts_with("worker=1 "));
            let taken = query_i64(&mut client, "SELECT snowflake_id()");
            expect_sql_error(taken, "55000", "was given to another server or database");
            client.batch_execute("SELECT keywright.set_worker_id(1); SELECT snowflake_id()")?;
            assert!(query_i64(&mut client, "SELECT next_biz_id('orders')")? > 1);
        } else {
            assert!(
                errors.contains("security label provider \"keywright\" is not loaded"),
                "{errors}"
            );
            assert_eq!(query_i64(&mut client, LABELS)?, 0);
        }
        // The superuser that runs the script is there already.
        let others = errors.lines().filter(|line| {
            line.contains("ERROR") && !line.contains("role \"postgres\" already exists")
        });
        assert_eq!(others.count(), usize::from(!preload), "{errors}");
    }
    Ok(())
}

fn output(command: &mut Command) -> Result<Vec<u8>> {
    let output = command.output()?;
    ensure!(
        output.status.success(),
        "{command:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(output.stdout)
}
