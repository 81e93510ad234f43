//! `keywright.adopt` and `release` of what is only a part: a partition, a child table, one of several columns with one source.

mod common;

use std::sync::{Arc, Mutex};

use common::{builder, expect_cause};
use keywright_core::cause::Cause;
use keywright_testkit::{Result, SharedServer, TestDatabase, query_i64};
use postgres::{Client, NoTls};

static SERVER: SharedServer = SharedServer::new();

/// Each notice and warning as severity, message, detail and hint.
type Notices = Arc<Mutex<Vec<[String; 4]>>>;

fn listening(database: &TestDatabase) -> Result<(Client, Notices)> {
    let notices = Notices::default();
    let seen = Arc::clone(&notices);
    let mut config = database.config();
    config.notice_callback(move |notice| {
        let text = |text: Option<&str>| text.unwrap_or_default().to_owned();
        if let Ok(mut seen) = seen.lock() {
            seen.push([
                notice.severity().to_owned(),
                notice.message().to_owned(),
                text(notice.detail()),
                text(notice.hint()),
            ]);
        }
    });
    Ok((config.connect(NoTls)?, notices))
}

fn taken(notices: &Notices) -> Vec<[String; 4]> {
    let taken = notices.lock().map(|mut seen| std::mem::take(&mut *seen));
    taken.unwrap_or_default()
}

/// The numbers that are there twice.
fn repeated(client: &mut Client, table: &str) -> Result<i64> {
    let sql = format!("SELECT count(*) - count(DISTINCT id) FROM {table}");
    Ok(query_i64(client, &sql)?)
}

#[test]
fn part_of_a_table_whose_parent_makes_ids_is_refused() -> Result<()> {
    let database = SERVER.database(builder)?;
    let mut client = database.client()?;
    client.batch_execute(
        "CREATE TABLE q (id bigserial, x int) PARTITION BY LIST (x); CREATE TABLE q1 PARTITION OF q FOR VALUES IN (1);
         CREATE TABLE q2 PARTITION OF q FOR VALUES IN (2, 3) PARTITION BY LIST (x); CREATE TABLE q2a PARTITION OF q2 FOR VALUES IN (2);
         CREATE TABLE \"Heads\" (id bigserial, x int); CREATE TABLE heir () INHERITS (\"Heads\");
         CREATE TABLE known (id bigint GENERATED ALWAYS AS IDENTITY, x int) PARTITION BY LIST (x);
         CREATE TABLE known2 PARTITION OF known FOR VALUES IN (2);
         CREATE TABLE flaked (id bigint DEFAULT snowflake_id(), x int) PARTITION BY LIST (x); CREATE TABLE flaked2 PARTITION OF flaked FOR VALUES IN (2)",
    )?;
    let refuse = |client: &mut Client, call: &str, of: &str, parent: &str| {
        let refused = client.batch_execute(&format!("SELECT keywright.{call}"));
        let whose = format!("it is part of {of}, which gets ids from elsewhere, too");
        let error = expect_cause(refused, Cause::AdoptRefused, &whose);
        assert!(error.hint.contains(parent), "{call}: {error:#?}");
    };
    for (part, of) in [
        ("q1", "public.q"),
        ("q2", "public.q"),
        ("q2a", "public.q"),
        ("heir", "public.\"Heads\""),
        ("known2", "public.known"),
        ("flaked2", "public.flaked"),
    ] {
        let adopt = |function: &str, table: &str| format!("{function}'{table}', 'id')");
        for function in ["adopt('z', ", "adopt_snowflake("] {
            refuse(
                &mut client,
                &adopt(function, part),
                of,
                &format!("SELECT keywright.{}.", adopt(function, of)),
            );
        }
    }
    client.batch_execute(
        "SELECT keywright.adopt('q', 'q', 'id'), keywright.adopt('heads', '\"Heads\"', 'id')",
    )?;
    for (part, of) in [
        ("q1", "public.q"),
        ("q2a", "public.q"),
        ("heir", "public.\"Heads\""),
        ("flaked2", "public.flaked"),
    ] {
        refuse(
            &mut client,
            &format!("release('{part}', 'id')"),
            of,
            &format!("SELECT keywright.release('{of}', 'id')."),
        );
    }
    // The parent's ids are not keywright's, the part's are.
    client.batch_execute("ALTER TABLE known2 ALTER id SET DEFAULT next_biz_id('q')")?;
    refuse(
        &mut client,
        "release('known2', 'id')",
        "public.known",
        "SELECT keywright.release('public.known', 'id').",
    );
    client.batch_execute("SELECT keywright.release('known', 'id')")?;
    // The whole goes over, and back.
    let fill = "INSERT INTO q (x) SELECT 1 + n % 2 FROM generate_series(1, 300) n; INSERT INTO q2a (x) SELECT 2 FROM generate_series(1, 70);
         INSERT INTO \"Heads\" SELECT FROM generate_series(1, 60); INSERT INTO heir SELECT FROM generate_series(1, 60)";
    client.batch_execute(fill)?;
    client.batch_execute(
        "SELECT keywright.release('q', 'id'), keywright.release('\"Heads\"', 'id')",
    )?;
    client.batch_execute(fill)?;
    for table in ["q", "\"Heads\""] {
        assert_eq!(repeated(&mut client, table)?, 0, "{table}");
    }
    Ok(())
}

#[test]
fn parts_with_one_source_go_over_together() -> Result<()> {
    let database = SERVER.database(builder)?;
    let mut client = database.client()?;
    client.batch_execute(
        "CREATE TABLE q (id bigint, x int) PARTITION BY LIST (x); CREATE TABLE q1 PARTITION OF q FOR VALUES IN (1);
         CREATE TABLE q2 PARTITION OF q FOR VALUES IN (2); CREATE SEQUENCE s;
         ALTER TABLE q1 ALTER id SET DEFAULT nextval('s'); ALTER TABLE q2 ALTER id SET DEFAULT nextval('s')",
    )?;
    let fill = "INSERT INTO q1 (x) SELECT 1 FROM generate_series(1, 99); INSERT INTO q2 (x) SELECT 2 FROM generate_series(1, 99)";
    client.batch_execute(fill)?;
    for (part, whole) in [
        ("adopt('q', 'q1', 'id')", "adopt('q', 'public.q', 'id')"),
        ("release('q2', 'id')", "release('public.q', 'id')"),
    ] {
        if part.starts_with("release") {
            client.batch_execute("ALTER TABLE q ALTER id DROP DEFAULT")?;
            client.batch_execute(
                "ALTER TABLE q1 ALTER id SET DEFAULT next_biz_id('q'); ALTER TABLE q2 ALTER id SET DEFAULT next_biz_id('q')",
            )?;
        }
        let refused = client.batch_execute(&format!("SELECT keywright.{part}"));
        let error = expect_cause(refused, Cause::AdoptRefused, "it is part of public.q");
        assert!(error.hint.contains(whole), "{error:#?}");
        client.batch_execute(&format!("SELECT keywright.{whole}"))?;
        client.batch_execute(fill)?;
        assert_eq!(repeated(&mut client, "q")?, 0, "{part}");
    }
    Ok(())
}

#[test]
fn part_that_alone_makes_its_ids_goes_over() -> Result<()> {
    let database = SERVER.database(builder)?;
    let (mut client, notices) = listening(&database)?;
    client.batch_execute(
        "CREATE TABLE q (id bigint, x int, other bigint) PARTITION BY LIST (x); CREATE TABLE q1 PARTITION OF q FOR VALUES IN (1);
         CREATE SEQUENCE s; ALTER TABLE q1 ALTER id SET DEFAULT nextval('s');
         INSERT INTO q1 (x) SELECT 1 FROM generate_series(1, 9); SELECT keywright.adopt('q1', 'q1', 'id');
         INSERT INTO q1 (x) SELECT 1 FROM generate_series(1, 9); SELECT keywright.release('q1', 'id');
         INSERT INTO q1 (x) SELECT 1 FROM generate_series(1, 9)",
    )?;
    assert_eq!(repeated(&mut client, "q")?, 0);
    assert_eq!(taken(&notices), Vec::<[String; 4]>::new());
    Ok(())
}

#[test]
fn columns_that_stay_with_the_source_are_named() -> Result<()> {
    let database = SERVER.database(builder)?;
    let (mut client, notices) = listening(&database)?;
    client.batch_execute(
        "SELECT keywright.create_tag('sh'), keywright.create_tag('sh_2');
         CREATE TABLE sh2 (id bigint DEFAULT next_biz_id('sh'), other bigint DEFAULT next_biz_id('sh'));
         CREATE TABLE \"Sh3\" (id bigint DEFAULT next_biz_id('sh')); CREATE TABLE sh4 (id bigint DEFAULT next_biz_id('sh_2'));
         CREATE SEQUENCE s; CREATE TABLE t1 (id bigint DEFAULT nextval('s')); CREATE TABLE t2 (id bigint DEFAULT nextval('s'));
         CREATE TABLE t3 (id bigserial); SELECT keywright.adopt('t3', 't3', 'id')",
    )?;
    assert_eq!(taken(&notices), Vec::<[String; 4]>::new());
    for (call, detail) in [
        (
            "release('sh2', 'id')",
            "They are public.\"Sh3\".id, public.sh2.other.",
        ),
        ("release('sh2', 'other')", "They are public.\"Sh3\".id."),
        ("adopt('t1', 't1', 'id')", "They are public.t2.id."),
        ("adopt('sh_3', '\"Sh3\"', 'id')", ""),
        ("adopt('t2', 't2', 'id')", ""),
        ("release('sh4', 'id')", ""),
    ] {
        client.batch_execute(&format!("SELECT keywright.{call}"))?;
        let notices = taken(&notices);
        if detail.is_empty() {
            assert_eq!(notices, Vec::<[String; 4]>::new(), "{call}");
            continue;
        }
        let [[severity, message, said, hint]] = notices.as_slice() else {
            panic!("{call}: {notices:?}");
        };
        assert_eq!(severity, "NOTICE", "{call}");
        assert!(message.contains("other columns stay"), "{call}: {message}");
        assert_eq!(said, detail, "{call}");
        assert!(hint.contains("unique per column"), "{call}: {hint}");
    }
    Ok(())
}
