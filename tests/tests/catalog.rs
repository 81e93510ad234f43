//! What the install script declares is what the library exports, and what the script says of rights, volatility and settings is what the
//! server's catalogues hold.

mod common;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::Context;
use common::{builder, text_rows};
use keywright_testkit::{
    PgServer, Result, SharedServer, expect_sql_error, query_i64, workspace_root,
};

static SERVER: SharedServer = SharedServer::new();

/// C symbols that the library exports.
fn exported(library: &Path) -> Result<BTreeSet<String>> {
    let output = Command::new("nm")
        .args(["--dynamic", "--defined-only", "--format=posix"])
        .arg(library)
        .output()
        .context("running nm, of the package binutils")?;
    anyhow::ensure!(output.status.success(), "nm failed: {output:?}");
    let text = String::from_utf8(output.stdout)?;
    let names = text.lines().filter_map(|line| line.split(' ').next());
    Ok(names.map(str::to_owned).collect())
}

/// The symbols that the install script names.
fn declared() -> Result<BTreeSet<String>> {
    let script = workspace_root().join("sql/postgres/keywright--0.1.0.sql");
    let script = fs::read_to_string(script)?;
    let mut symbols = BTreeSet::new();
    for part in script.split("'MODULE_PATHNAME', '").skip(1) {
        let symbol = part.split('\'').next().unwrap_or_default();
        assert!(
            symbols.insert(symbol.to_owned()),
            "{symbol} is declared twice"
        );
    }
    assert_eq!(script.matches("LANGUAGE c ").count(), symbols.len());
    Ok(symbols)
}

#[test]
fn script_and_library_name_the_same_functions() -> Result<()> {
    let server = PgServer::builder().initialise()?;
    let exported = exported(&server.install().pkglibdir().join("keywright.so"))?;
    let declared = declared()?;
    assert!(
        declared.len() > 20,
        "the script was not understood: {declared:?}"
    );
    let described: BTreeSet<String> = exported
        .iter()
        .filter_map(|symbol| symbol.strip_prefix("pg_finfo_"))
        .map(str::to_owned)
        .collect();
    assert_eq!(
        described, declared,
        "exported and declared functions differ"
    );
    let missing: Vec<_> = declared.difference(&exported).collect();
    assert!(missing.is_empty(), "described but not there: {missing:?}");
    assert!(exported.contains("_PG_init") && exported.contains("Pg_magic_func"));
    Ok(())
}

/// Name, arguments, volatility (i, s, v), parallel safety (s, r, u), strict, runs as its owner, who may execute.
const FUNCTIONS: &str = "
next_biz_id(text) v u called caller everybody
next_biz_ids(text,integer) v u called caller everybody
readable_decode(text) s s strict caller everybody
readable_decode(text,text) i s strict caller everybody
readable_id(text) v u called caller everybody
snowflake_decode(bigint) s s strict caller everybody
snowflake_decode(bigint,text) i s strict caller everybody
snowflake_floor(timestamp with time zone) s s strict caller everybody
snowflake_floor(timestamp with time zone,text) i s strict caller everybody
snowflake_id() v u called caller everybody
snowflake_ids(integer) v u called caller everybody
snowflake_sequence(bigint) s s strict caller everybody
snowflake_sequence(bigint,text) i s strict caller everybody
snowflake_timestamp(bigint) s s strict caller everybody
snowflake_timestamp(bigint,text) i s strict caller everybody
snowflake_worker(bigint) s s strict caller everybody
snowflake_worker(bigint,text) i s strict caller everybody
uuid_v1() v s called caller everybody
uuid_v3(bytea) i s strict caller everybody
uuid_v3(uuid,bytea) i s strict caller everybody
uuid_v3(uuid,text) i s strict caller everybody
uuid_v5(uuid,bytea) i s strict caller everybody
uuid_v5(uuid,text) i s strict caller everybody
uuid_v7() v s called caller everybody
keywright.acknowledge_promotion() v u called owner owner
keywright.adopt(text,regclass,name) v u called caller owner
keywright.adopt_snowflake(regclass,name) v u called caller owner
keywright.advance_tag(text,bigint) v u called owner owner
keywright.alter_tag(text,bigint,bigint,bigint,bigint,integer,integer,integer) v u called owner owner
keywright.assign_worker_id(text,integer,integer,integer,timestamp with time zone,boolean) v u called owner owner
keywright.assignment() v u called owner owner
keywright.await_demand(text[],boolean) v u called caller owner
keywright.create_fed_tag(text,bigint,bigint,bigint,boolean) v u called owner owner
keywright.create_tag(text,bigint,bigint,bigint,bigint,bigint,boolean,integer,bytea,integer,integer) v u called owner owner
keywright.drop_tag(text) v u called owner owner
keywright.feed_tag(text,oid,oid,integer,oid,text,text,bigint,bigint) v u called caller owner
keywright.feed_time(text,oid,oid,text,bigint,text,integer,bigint,bigint) v u called caller owner
keywright.grant_tag(text,name) v u called owner owner
keywright.handed_over(text[]) v u called caller owner
keywright.handed_time() v u called caller owner
keywright.health_checks() v r called owner owner,pg_monitor
keywright.hidden_number(text,bigint) s r strict owner owner
keywright.hide_key(text) s r called owner owner
keywright.lower_bound(timestamp with time zone) v u called caller owner
keywright.mark_assignment(text,text) v u called owner owner
keywright.move_opened(text,integer,text) v u called owner owner
keywright.move_to_fed(text,integer) v u called owner owner
keywright.move_to_native(text,integer,text,text,bigint) v u called owner owner
keywright.node_inserted() v u called owner owner
keywright.only_by_functions() v u called caller owner
keywright.promoted(interval) v u called owner owner
keywright.release(regclass,name) v u called caller owner
keywright.release_assignment(text,integer) v u called owner owner
keywright.revoke_tag(text,name) v u called owner owner
keywright.set_hide_key(text,bytea) v u called owner owner
keywright.set_layout(text) v u called owner owner
keywright.set_readable_bucket(integer,timestamp with time zone,boolean,boolean) v u called owner owner
keywright.set_readable_zone(text) v u called owner owner
keywright.set_snowflake_source(text) v u called owner owner
keywright.set_worker_id(integer,timestamp with time zone,boolean,boolean) v u called owner owner
keywright.suspend_assignment(text) v u called owner owner
keywright.tag_figures() v r called caller owner,pg_monitor
keywright.tag_inserted() v u called owner owner
keywright.tag_move(text) v u called owner owner
keywright.tag_reserved_to(integer) v r strict owner owner,pg_monitor
keywright.time_demand() v u called caller owner
keywright.word_figures() v r called owner owner,pg_monitor
";

#[test]
fn functions_have_the_rights_and_promises_they_should() -> Result<()> {
    let database = SERVER.database(builder)?;
    let mut client = database.client()?;
    let sql = "
        SELECT CASE nspname WHEN 'public' THEN '' ELSE nspname || '.' END || proname || '('
            || replace(oidvectortypes(proargtypes), ', ', ',') || ')',
            provolatile, proparallel, CASE WHEN proisstrict THEN 'strict' ELSE 'called' END,
            CASE WHEN prosecdef THEN 'owner' ELSE 'caller' END,
            (SELECT string_agg(CASE grantee WHEN 0 THEN 'everybody' WHEN proowner THEN 'owner' ELSE grantee::regrole::text END, ',')
             FROM aclexplode(coalesce(proacl, acldefault('f', proowner)))
             WHERE grantee = 0 OR proacl IS NOT NULL)
        FROM pg_proc p JOIN pg_namespace n ON n.oid = pronamespace
        JOIN pg_depend d ON d.objid = p.oid AND d.classid = 'pg_proc'::regclass AND d.deptype = 'e'
            AND d.refobjid = (SELECT oid FROM pg_extension WHERE extname = 'keywright')
        ORDER BY nspname DESC, proname, oidvectortypes(proargtypes) COLLATE \"C\"";
    let found: Vec<String> = text_rows(&mut client, sql)?
        .iter()
        .map(|row| row.join(" "))
        .collect();
    assert_eq!(found, FUNCTIONS.trim().lines().collect::<Vec<_>>());
    // What runs as its owner must not be led astray by the caller's search path.
    let unsafe_paths = "SELECT count(*) FROM pg_proc p WHERE prosecdef AND pronamespace = 'keywright'::regnamespace
        AND proconfig IS DISTINCT FROM ARRAY['search_path=pg_catalog, pg_temp']";
    assert_eq!(query_i64(&mut client, unsafe_paths)?, 0);
    Ok(())
}

#[test]
fn everything_says_what_it_is() -> Result<()> {
    let database = SERVER.database(builder)?;
    let mut client = database.client()?;
    // The sequence behind an identity column is the column's own matter.
    let silent = "
        SELECT d.classid::regclass, pg_describe_object(d.classid, d.objid, 0) FROM pg_depend d
        WHERE d.deptype = 'e' AND d.refobjid = (SELECT oid FROM pg_extension WHERE extname = 'keywright')
          AND d.classid IN ('pg_proc'::regclass, 'pg_class'::regclass)
          AND obj_description(d.objid, d.classid::regclass::name) IS NULL
          AND NOT EXISTS (SELECT FROM pg_depend i WHERE i.objid = d.objid AND i.deptype = 'i' AND i.refobjsubid > 0)";
    assert_eq!(text_rows(&mut client, silent)?, Vec::<Vec<String>>::new());
    let control = "SELECT count(*) FROM pg_extension e WHERE extname = 'keywright' AND obj_description(e.oid, 'pg_extension') <> ''";
    assert_eq!(query_i64(&mut client, control)?, 1);
    Ok(())
}

#[test]
fn views_have_these_columns() -> Result<()> {
    let database = SERVER.database(builder)?;
    let mut client = database.client()?;
    for (view, columns) in [
        (
            "tags",
            "tag text, step int8, step_min int8, step_max int8, start int8, max int8, reserved_to int8, \
             created_at timestamptz, dropped_at timestamptz, source text, hide_bits int4, hide_fingerprint text, refill_threshold_percent int4, increment int4, remainder int4",
        ),
        (
            "stats",
            "kind text, tag text, worker_id int4, layout text, bucket int4, zone text, current_id int8, remaining int8, step int8, issued int8, \
             bound timestamptz, lead_ms int8, suspended bool, refills int8, last_refill timestamptz, waits int8, wait_ms float8",
        ),
        (
            "health",
            "name text, ok bool, severity text, detail text, hint text",
        ),
    ] {
        let sql = format!(
            "SELECT string_agg(attname || ' ' || typname, ', ' ORDER BY attnum) FROM pg_attribute a JOIN pg_type t ON t.oid = atttypid
             WHERE attrelid = 'keywright.{view}'::regclass AND attnum > 0"
        );
        assert_eq!(text_rows(&mut client, &sql)?, [[columns]], "{view}");
    }
    Ok(())
}

#[test]
fn settings_have_these_defaults() -> Result<()> {
    let database = SERVER.database(builder)?;
    let mut client = database.client()?;
    let sql = "SELECT substr(name, 11), boot_val, coalesce(unit, ''), context FROM pg_settings
               WHERE name LIKE 'keywright.%' ORDER BY name COLLATE \"C\"";
    let expected = [
        ["bound_window_ms", "5000", "ms", "superuser"],
        ["clock_jump_ms_max", "600000", "ms", "superuser"],
        ["clock_policy", "carry", "", "superuser"],
        ["clock_wait_ms_max", "1000", "ms", "superuser"],
        ["failover_skew_ms_max", "10000", "ms", "superuser"],
        ["fed_cover_s", "1200", "s", "superuser"],
        ["ids_per_call_max", "10000", "", "superuser"],
        ["lead_ms_max", "10000", "ms", "superuser"],
        ["refill_cover_s", "600", "s", "superuser"],
        ["refill_threshold_percent", "50", "", "superuser"],
        ["refill_wait_ms_max", "10000", "ms", "user"],
        ["source", "native", "", "postmaster"],
        ["start_jump_days_max", "366", "", "superuser"],
        ["tags_max", "1024", "", "postmaster"],
        ["workers_max", "64", "", "postmaster"],
    ];
    assert_eq!(text_rows(&mut client, sql)?, expected);
    Ok(())
}

#[test]
fn extension_leaves_nothing_behind() -> Result<()> {
    let database = SERVER.database(builder)?;
    let mut client = database.client()?;
    client.batch_execute("SELECT keywright.create_tag('t'); SELECT next_biz_id('t')")?;
    client.batch_execute("DROP EXTENSION keywright")?;
    let left = "SELECT count(*) FROM pg_class WHERE relname LIKE 'tag%' AND relnamespace > 16384";
    assert_eq!(query_i64(&mut client, left)?, 0);
    let gone = client.batch_execute("CREATE SCHEMA keywright; SELECT next_biz_id('t')");
    expect_sql_error(gone, "42883", "next_biz_id");
    Ok(())
}
