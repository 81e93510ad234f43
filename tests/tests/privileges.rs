//! Who may do what: ordinary roles use tags and cannot move them, and nothing of theirs runs with the owner's rights.

mod common;

use common::{builder, expect_cause, expect_unknown_setting, text_rows};
use keywright_core::cause::Cause;
use keywright_testkit::{
    Result, SharedServer, TestDatabase, expect_sql_error, query_i64, query_text,
};
use postgres::{Client, NoTls};

static SERVER: SharedServer = SharedServer::new();

/// A database with tag `t`, and an ordinary role named after it.
struct Scene {
    database: TestDatabase,
    owner: Client,
    role: String,
}

fn scene() -> Result<Scene> {
    let database = SERVER.database(builder)?;
    let mut owner = database.client()?;
    let role = format!("role_of_{}", database.name());
    owner.batch_execute(&format!(
        "CREATE ROLE {role} LOGIN; GRANT CREATE ON DATABASE {} TO {role};
         SELECT keywright.create_tag('t')",
        database.name()
    ))?;
    Ok(Scene {
        database,
        owner,
        role,
    })
}

impl Scene {
    fn visitor(&self) -> Result<Client> {
        self.database
            .server()
            .connect(self.database.name(), &self.role)
    }
}

#[test]
fn ordinary_roles_use_tags_and_change_nothing() -> Result<()> {
    let scene = scene()?;
    let mut visitor = scene.visitor()?;
    visitor.batch_execute(
        "CREATE TEMP TABLE event (id bigint DEFAULT snowflake_id(), n bigint DEFAULT next_biz_id('t'), memo text DEFAULT readable_id('m'));
         INSERT INTO event SELECT FROM generate_series(1, 2000);
         SELECT next_biz_ids('t', 10), snowflake_ids(10);
         SELECT snowflake_decode(id), readable_decode(memo) FROM event",
    )?;
    let distinct = "SELECT count(DISTINCT n) FROM event";
    assert_eq!(query_i64(&mut visitor, distinct)?, 2000);
    for statement in [
        "SELECT keywright.create_tag('mine')",
        "SELECT keywright.alter_tag('t', step => 5)",
        "SELECT keywright.drop_tag('t')",
        "SELECT keywright.advance_tag('t', 1000000)",
        "SELECT keywright.grant_tag('t', 'public')",
        "SELECT keywright.revoke_tag('t', 'public')",
        "SELECT keywright.set_worker_id(7)",
        "SELECT keywright.set_layout('leaf')",
        "SELECT keywright.adopt('x', 'event', 'id')",
        "SELECT * FROM keywright.tag_figures()",
        "SELECT * FROM keywright.word_figures()",
        "SELECT * FROM keywright.health_checks()",
        "SELECT keywright.tag_reserved_to(1)",
        "SELECT * FROM keywright.tag",
        "SELECT * FROM keywright.node",
        "SELECT * FROM keywright.tags",
        "SELECT * FROM keywright.stats",
        "SELECT * FROM keywright.health",
        "UPDATE keywright.tag SET step = 1",
        "DELETE FROM keywright.tag",
        "INSERT INTO keywright.node (layout) VALUES ('leaf')",
        "SELECT setval('keywright.tag_1', 1)",
        "SELECT nextval('keywright.tag_1')",
        "SELECT setval('keywright.snowflake_bound', 1)",
        "SELECT nextval('keywright.snowflake_bound')",
        "SELECT nextval('keywright.readable_bound')",
        "SELECT last_value FROM keywright.snowflake_note",
        "SELECT setval('keywright.tag_1_note', 1)",
        "CREATE TABLE keywright.mine (n int)",
    ] {
        expect_sql_error(
            visitor.batch_execute(statement),
            "42501",
            "permission denied",
        );
    }
    for statement in [
        "ALTER SEQUENCE keywright.tag_1 RESTART",
        "DROP SEQUENCE keywright.snowflake_bound",
        "DROP FUNCTION snowflake_id()",
        "DROP EXTENSION keywright",
        "CREATE OR REPLACE FUNCTION keywright.drop_tag(tag text) RETURNS void LANGUAGE sql AS ''",
    ] {
        let refused = visitor.batch_execute(statement).err();
        let code = refused.as_ref().and_then(|error| error.code());
        assert_eq!(
            code.map(|code| code.code()),
            Some("42501"),
            "{statement}: {refused:?}"
        );
    }
    Ok(())
}

#[test]
fn tags_are_limited_to_roles() -> Result<()> {
    let mut scene = scene()?;
    let role = scene.role.clone();
    let mut visitor = scene.visitor()?;
    let call = "SELECT next_biz_id('t')";
    query_i64(&mut visitor, call)?;
    scene
        .owner
        .batch_execute("SELECT keywright.revoke_tag('t', 'public')")?;
    // The session that used it a moment ago is refused as well.
    expect_cause(
        visitor.batch_execute(call),
        Cause::Privilege,
        "denied for tag \"t\"",
    );
    let several = visitor.batch_execute("SELECT next_biz_ids('t', 3)");
    expect_cause(several, Cause::Privilege, "denied for tag \"t\"");
    query_i64(&mut scene.owner, call)?;

    scene
        .owner
        .batch_execute(&format!("SELECT keywright.grant_tag('t', '{role}')"))?;
    query_i64(&mut visitor, call)?;
    scene
        .owner
        .batch_execute(&format!("SELECT keywright.revoke_tag('t', '{role}')"))?;
    expect_cause(
        visitor.batch_execute(call),
        Cause::Privilege,
        "denied for tag \"t\"",
    );

    // Through a group, also when the membership ends.
    scene.owner.batch_execute(&format!(
        "CREATE ROLE group_{role}; GRANT group_{role} TO {role}; SELECT keywright.grant_tag('t', 'group_{role}')"
    ))?;
    query_i64(&mut visitor, call)?;
    scene
        .owner
        .batch_execute(&format!("REVOKE group_{role} FROM {role}"))?;
    expect_cause(
        visitor.batch_execute(call),
        Cause::Privilege,
        "denied for tag \"t\"",
    );
    // A privilege counts for the role in force, so a session cannot take it along.
    scene.owner.batch_execute(&format!("SET ROLE {role}"))?;
    expect_cause(
        scene.owner.batch_execute(call),
        Cause::Privilege,
        "denied for tag \"t\"",
    );
    Ok(())
}

#[test]
fn grant_execute_makes_managers() -> Result<()> {
    let mut scene = scene()?;
    let role = scene.role.clone();
    scene.owner.batch_execute(&format!(
        "GRANT EXECUTE ON FUNCTION keywright.create_tag, keywright.advance_tag, keywright.adopt TO {role};
         CREATE SCHEMA own AUTHORIZATION {role}; CREATE TABLE public.others (id bigserial)"
    ))?;
    let mut manager = scene.visitor()?;
    manager.batch_execute(
        "SELECT keywright.create_tag('mine'); SELECT keywright.advance_tag('mine', 5000);
         CREATE TABLE own.t (id bigserial PRIMARY KEY); INSERT INTO own.t SELECT FROM generate_series(1, 7);
         SELECT keywright.adopt('adopted', 'own.t', 'id')",
    )?;
    assert_eq!(query_i64(&mut manager, "SELECT next_biz_id('mine')")?, 5001);
    let insert = "INSERT INTO own.t DEFAULT VALUES RETURNING id";
    assert_eq!(query_i64(&mut manager, insert)?, 8);
    // It runs with the caller's rights on the table.
    let others = manager.batch_execute("SELECT keywright.adopt('x', 'others', 'id')");
    expect_sql_error(others, "42501", "permission denied for table others");
    let dropped = manager.batch_execute("SELECT keywright.drop_tag('mine')");
    expect_sql_error(dropped, "42501", "permission denied for function drop_tag");
    Ok(())
}

#[test]
fn monitors_read_the_views_and_only_them() -> Result<()> {
    let mut scene = scene()?;
    scene
        .owner
        .batch_execute(&format!("GRANT pg_monitor TO {}", scene.role))?;
    scene
        .owner
        .batch_execute("SELECT snowflake_id(), next_biz_id('t')")?;
    let mut monitor = scene.visitor()?;
    let tag = "SELECT current_id, remaining, refills FROM keywright.stats WHERE tag = 't'";
    assert_eq!(text_rows(&mut monitor, tag)?, [["1", "99", "1"]]);
    let word =
        "SELECT suspended, worker_id IS NOT NULL FROM keywright.stats WHERE kind = 'snowflake'";
    assert_eq!(text_rows(&mut monitor, word)?, [["f", "t"]]);
    let reserved = "SELECT tag, reserved_to FROM keywright.tags";
    assert_eq!(text_rows(&mut monitor, reserved)?, [["t", "100"]]);
    let health = "SELECT count(*) FROM keywright.health WHERE name = 'worker id' AND ok";
    assert_eq!(query_i64(&mut monitor, health)?, 1);
    let refused = monitor.batch_execute("SELECT keywright.advance_tag('t', 10)");
    expect_sql_error(
        refused,
        "42501",
        "permission denied for function advance_tag",
    );
    let refused = monitor.batch_execute("SELECT * FROM keywright.tag");
    expect_sql_error(refused, "42501", "permission denied for table tag");
    Ok(())
}

/// Operators, functions, types and tables that note who runs them, in a schema that is searched first.
const TRAPS: &str = "
    CREATE SCHEMA evil; GRANT ALL ON SCHEMA evil TO PUBLIC;
    CREATE TABLE evil.seen (who text); GRANT ALL ON evil.seen TO PUBLIC;
    -- What an error takes back was done all the same: a sequence counts it.
    CREATE SEQUENCE evil.done; GRANT ALL ON evil.done TO PUBLIC;
    CREATE FUNCTION evil.trap() RETURNS boolean LANGUAGE plpgsql AS
        $$ BEGIN
            INSERT INTO evil.seen VALUES (current_user);
            IF current_user OPERATOR(pg_catalog.<>) session_user THEN PERFORM pg_catalog.nextval('evil.done'); END IF;
            RETURN true;
        END $$;
    CREATE FUNCTION evil.eq(text, text) RETURNS boolean LANGUAGE sql AS 'SELECT evil.trap()';
    CREATE FUNCTION evil.eq(name, text) RETURNS boolean LANGUAGE sql AS 'SELECT evil.trap()';
    CREATE FUNCTION evil.eq(oid, oid) RETURNS boolean LANGUAGE sql AS 'SELECT evil.trap()';
    CREATE FUNCTION evil.eq(int, int) RETURNS boolean LANGUAGE sql AS 'SELECT evil.trap()';
    CREATE OPERATOR evil.= (FUNCTION = evil.eq, LEFTARG = text, RIGHTARG = text);
    CREATE OPERATOR evil.= (FUNCTION = evil.eq, LEFTARG = name, RIGHTARG = text);
    CREATE OPERATOR evil.= (FUNCTION = evil.eq, LEFTARG = oid, RIGHTARG = oid);
    CREATE OPERATOR evil.= (FUNCTION = evil.eq, LEFTARG = int, RIGHTARG = int);
    CREATE OPERATOR evil.<> (FUNCTION = evil.eq, LEFTARG = text, RIGHTARG = text);
    CREATE FUNCTION evil.max(bigint) RETURNS bigint LANGUAGE sql AS 'SELECT evil.trap(); SELECT 1::bigint';
    CREATE FUNCTION evil.now() RETURNS timestamptz LANGUAGE sql AS 'SELECT evil.trap(); SELECT pg_catalog.now()';
    CREATE FUNCTION evil.current_database() RETURNS name LANGUAGE sql AS $$ SELECT evil.trap(); SELECT 'x'::name $$;
    CREATE FUNCTION evil.format(text, VARIADIC text[]) RETURNS text LANGUAGE sql AS $$ SELECT evil.trap(); SELECT 'x' $$;
    CREATE DOMAIN evil.text AS pg_catalog.text CHECK (evil.trap());
    CREATE DOMAIN evil.int8 AS pg_catalog.int8 CHECK (evil.trap());
    CREATE DOMAIN evil.regclass AS pg_catalog.regclass CHECK (evil.trap());
    CREATE TABLE evil.tag (); CREATE TABLE evil.node (); CREATE VIEW evil.pg_extension AS SELECT evil.trap();
";

const HOSTILE: &str = "SET search_path = evil, pg_catalog, public";

#[test]
fn hostile_objects_never_run_as_the_owner() -> Result<()> {
    let mut scene = scene()?;
    let role = scene.role.clone();
    let mut visitor = scene.visitor()?;
    visitor.batch_execute(TRAPS)?;
    scene.owner.batch_execute(&format!(
        "GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA keywright TO {role};
         CREATE FUNCTION public.careless(a text) RETURNS boolean LANGUAGE plpgsql SECURITY DEFINER AS
             $$ BEGIN RETURN a = 'x'; END $$;
         GRANT CREATE ON SCHEMA public TO {role}"
    ))?;
    // The traps work: a function that is not careful falls into them.
    visitor.batch_execute(&format!("{HOSTILE}; SELECT careless('x')"))?;
    let victims = "SELECT count(*) FROM evil.seen WHERE who OPERATOR(pg_catalog.<>) session_user::pg_catalog.text";
    assert_eq!(query_i64(&mut visitor, victims)?, 1);
    scene
        .owner
        .batch_execute("TRUNCATE evil.seen; ALTER SEQUENCE evil.done RESTART")?;

    // A new session looks everything up again, under the hostile path.
    let mut visitor = scene.visitor()?;
    visitor.batch_execute(&format!(
        "{HOSTILE};
         CREATE TABLE public.adoptable (id pg_catalog.int8 PRIMARY KEY, n int GENERATED ALWAYS AS IDENTITY);
         INSERT INTO public.adoptable VALUES (41);
         SELECT snowflake_id(), next_biz_id('t'), readable_id('a');
         SELECT next_biz_ids('t', 2000), snowflake_decode(5), snowflake_floor(pg_catalog.now());
         SELECT keywright.create_tag('e'); SELECT keywright.alter_tag('e', step => 5000); SELECT keywright.advance_tag('e', 7);
         SELECT keywright.grant_tag('e', 'public'); SELECT keywright.revoke_tag('e', 'public');
         SELECT keywright.drop_tag('e'); SELECT keywright.create_tag('e');
         SELECT keywright.set_worker_id(321); SELECT keywright.set_layout('twitter');
         SELECT keywright.adopt('adoptable', 'public.adoptable', 'id');
         SELECT * FROM keywright.tag_figures(); SELECT * FROM keywright.word_figures();
         SELECT * FROM keywright.health_checks()"
    ))?;
    assert_eq!(
        query_i64(&mut visitor, victims)?,
        0,
        "code of {role} ran as somebody else"
    );
    // Statements that fail: the path, and what every session may have beside it.
    let unknown = "SELECT next_biz_id('u')";
    let refused = visitor.batch_execute(unknown);
    expect_cause(refused, Cause::TagUnknown, "does not exist");
    visitor.batch_execute(
        "SET search_path = public;
         CREATE FUNCTION pg_temp.trap(pg_catalog.text) RETURNS boolean LANGUAGE sql AS 'SELECT evil.trap()';
         CREATE DOMAIN pg_temp.text AS pg_catalog.text CHECK (pg_temp.trap(VALUE))",
    )?;
    let refused = visitor.batch_execute(unknown);
    expect_cause(refused, Cause::TagUnknown, "does not exist");
    let done = "SELECT count(*) FROM evil.done WHERE is_called";
    assert_eq!(
        query_i64(&mut scene.owner, done)?,
        0,
        "code of {role} ran as somebody else"
    );
    visitor.batch_execute(HOSTILE)?;
    let id = query_i64(
        &mut visitor,
        "INSERT INTO public.adoptable DEFAULT VALUES RETURNING id",
    )?;
    assert_eq!(id, 42, "the column's real maximum counts");
    Ok(())
}

#[test]
fn settings_cannot_change_who_a_database_is() -> Result<()> {
    let mut scene = scene()?;
    let role = scene.role.clone();
    scene
        .owner
        .batch_execute("SELECT keywright.set_worker_id(500)")?;
    let config = || {
        let mut config = scene.database.server().config(scene.database.name(), &role);
        config.options("-c keywright.worker_id=7");
        config
    };
    let refused = config().connect(NoTls);
    expect_unknown_setting(refused, "keywright.worker_id")?;
    let refused = config()
        .options("-c keywright.lead_ms_max=3600000")
        .connect(NoTls);
    expect_sql_error(refused, "42501", "permission denied to set parameter");

    let mut visitor = scene.visitor()?;
    for statement in [
        "SET keywright.worker_id = 7",
        "SET keywright.layout = 'leaf'",
        "SELECT set_config('keywright.worker_id', '7', false)",
        &format!("ALTER ROLE {role} SET keywright.worker_id = 7"),
    ] {
        expect_unknown_setting(visitor.batch_execute(statement), "keywright.")?;
    }
    for (statement, sqlstate) in [
        ("SET keywright.clock_policy = 'refuse'", "42501"),
        ("SET keywright.failover_skew_ms_max = 0", "42501"),
        (
            &format!("ALTER ROLE {role} SET keywright.lead_ms_max = 100"),
            "42501",
        ),
        ("SET keywright.tags_max = 1", "55P02"),
    ] {
        expect_sql_error(visitor.batch_execute(statement), sqlstate, "");
    }
    visitor.batch_execute("SET keywright.refill_wait_ms_max = 77")?;
    let worker = "SELECT snowflake_worker(snowflake_id())::bigint";
    assert_eq!(query_i64(&mut visitor, worker)?, 500);
    Ok(())
}

/// The server asks only whose the schema is: that of the database's owner, mostly.
#[test]
fn owners_of_a_schema_cannot_drop_the_extension_with_it() -> Result<()> {
    let mut scene = scene()?;
    let (name, role) = (scene.database.name().to_owned(), scene.role.clone());
    scene.owner.batch_execute(&format!(
        "ALTER DATABASE {name} OWNER TO {role}; ALTER SCHEMA public OWNER TO {role}"
    ))?;
    let mut visitor = scene.visitor()?;
    let next = "SELECT next_biz_id('t')";
    let before = query_i64(&mut visitor, next)?;
    for statement in [
        "DROP SCHEMA public CASCADE",
        "DROP OWNED BY CURRENT_USER CASCADE",
    ] {
        let refused = visitor.batch_execute(statement);
        expect_cause(refused, Cause::OwnTables, "only its owner drops");
    }
    assert!(query_i64(&mut visitor, next)? > before);
    query_i64(&mut visitor, "SELECT snowflake_id()")?;
    scene.owner.batch_execute("DROP SCHEMA public CASCADE")?;
    let left = "SELECT count(*) FROM pg_extension WHERE extname = 'keywright'";
    assert_eq!(query_i64(&mut scene.owner, left)?, 0);
    Ok(())
}

#[test]
fn owners_of_a_database_cannot_label_it_themselves() -> Result<()> {
    let mut scene = scene()?;
    let (name, role) = (scene.database.name().to_owned(), scene.role.clone());
    scene
        .owner
        .batch_execute(&format!("ALTER DATABASE {name} OWNER TO {role}"))?;
    let label = query_text(
        &mut scene.owner,
        "SELECT label FROM pg_shseclabel WHERE provider = 'keywright' AND objoid =
             (SELECT oid FROM pg_database WHERE datname = current_database())",
    )?;
    let forged = label.replacen("worker=", "worker=9", 1);
    let mut visitor = scene.visitor()?;
    for label in [forged.as_str(), label.as_str(), "worker=7", "nonsense"] {
        let statement = format!("SECURITY LABEL FOR keywright ON DATABASE {name} IS '{label}'");
        let refused = visitor.batch_execute(&statement);
        let error = expect_cause(
            refused,
            Cause::WorkerIdInUse,
            "not given by a security label",
        );
        assert!(error.hint.contains("keywright.set_worker_id(n)"));
    }
    query_i64(&mut visitor, "SELECT snowflake_id()")?;
    Ok(())
}
