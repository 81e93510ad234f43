//! Tables of other systems, side by side with their own algorithms: imitations of how Leaf, tinyid and the service with
//! `id_generator` reserve and issue, each in its own connection.

use keywright_store::RawStoreSettings;
use keywright_testkit::Result;
use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Opts};

use crate::common::{
    IssuedLog, Schema, open, runtime, segment, small_steps, tag, take_by_each, take_many,
};

pub const LEAF: &str = "CREATE TABLE leaf_alloc (biz_tag VARCHAR(128) NOT NULL DEFAULT '', max_id BIGINT(20) NOT NULL DEFAULT '1', \
    step INT(11) NOT NULL, description VARCHAR(256) DEFAULT NULL, \
    update_time TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP, PRIMARY KEY (biz_tag)) ENGINE=InnoDB; \
    INSERT INTO leaf_alloc (biz_tag, max_id, step) VALUES ('orders', 1, 100)";

const TINYID: &str = "CREATE TABLE tiny_id_info (id BIGINT(20) UNSIGNED NOT NULL AUTO_INCREMENT, biz_type VARCHAR(63) NOT NULL DEFAULT '', \
    begin_id BIGINT(20) NOT NULL DEFAULT '0', max_id BIGINT(20) NOT NULL DEFAULT '0', step INT(11) DEFAULT '0', \
    delta INT(11) NOT NULL DEFAULT '1', remainder INT(11) NOT NULL DEFAULT '0', create_time TIMESTAMP NOT NULL DEFAULT '2010-01-01 00:00:00', \
    update_time TIMESTAMP NOT NULL DEFAULT '2010-01-01 00:00:00', version BIGINT(20) NOT NULL DEFAULT '0', \
    PRIMARY KEY (id), UNIQUE KEY uniq_biz_type (biz_type)) ENGINE=InnoDB; \
    INSERT INTO tiny_id_info (biz_type, begin_id, max_id, step, delta, remainder) VALUES ('orders', 1, 0, 90, 3, 2)";

const ID_GENERATOR: &str = "CREATE TABLE id_generator (id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY, biz_key VARCHAR(64) NOT NULL UNIQUE, \
    max_id BIGINT NOT NULL, step INT NOT NULL, create_time DATETIME, update_time DATETIME, version INT NOT NULL DEFAULT 0, \
    app_name VARCHAR(64), description VARCHAR(64), is_del TINYINT NOT NULL DEFAULT 0) ENGINE=InnoDB; \
    INSERT INTO id_generator (biz_key, max_id, step) VALUES ('orders', 0, 100)";

/// How often the imitation reserves.
const ROUNDS: u64 = 150;

async fn connect(raw: &RawStoreSettings) -> Result<Conn> {
    Ok(Conn::new(Opts::from_url(&raw.url)?).await?)
}

/// Leaf: UPDATE with its own step, read back in the transaction, hand out from `max_id - step` to below `max_id`.
async fn leaf(raw: RawStoreSettings, log: IssuedLog, by: String) -> Result<()> {
    let mut conn = connect(&raw).await?;
    for round in 0..ROUNDS {
        let step = 100 << (round % 3);
        conn.query_drop("START TRANSACTION").await?;
        conn.query_drop(format!(
            "UPDATE leaf_alloc SET max_id = max_id + {step} WHERE biz_tag = 'orders'"
        ))
        .await?;
        let max: Option<u64> = conn
            .query_first("SELECT max_id FROM leaf_alloc WHERE biz_tag = 'orders'")
            .await?;
        conn.query_drop("COMMIT").await?;
        let max = max.unwrap();
        for id in max - step..max {
            log.add(&by, id);
        }
    }
    Ok(())
}

/// tinyid and `id_generator`: read without a lock, write by version, try again when somebody else was faster.
async fn optimistic(
    raw: RawStoreSettings,
    (table, key): (&'static str, &'static str),
    ids: fn(u64, u64) -> Vec<u64>,
    log: IssuedLog,
) -> Result<()> {
    let mut conn = connect(&raw).await?;
    let mut done = 0;
    while done < ROUNDS {
        let row: Option<(u64, u64, u64)> = conn
            .query_first(format!(
                "SELECT max_id, step, version FROM {table} WHERE {key} = 'orders'"
            ))
            .await?;
        let (max, step, version) = row.unwrap();
        let new = max + step;
        conn.query_drop(format!(
            "UPDATE {table} SET max_id = {new}, update_time = NOW(), version = version + 1 \
             WHERE {key} = 'orders' AND max_id = {max} AND version = {version}"
        ))
        .await?;
        if conn.affected_rows() == 1 {
            done += 1;
            for id in ids(max, new) {
                log.add(table, id);
            }
        }
    }
    Ok(())
}

fn settings(schema: &Schema, dialect: &str) -> RawStoreSettings {
    RawStoreSettings {
        dialect: dialect.to_owned(),
        // No adapting up: many reservations.
        step_max: 100,
        ..schema.raw()
    }
}

/// Nobody can list them all then.
#[test]
fn a_tag_whose_row_cannot_be_read_keeps_nobody_from_asking_for_another() -> Result<()> {
    let schema = Schema::new("kw_leaf_unreadable")?;
    schema.sql(LEAF)?;
    schema.sql("INSERT INTO leaf_alloc (biz_tag, max_id, step) VALUES ('broken', -5, 100)")?;
    runtime()?.block_on(async {
        let keys = open(&settings(&schema, "leaf"))?;
        assert!(keys.tags().await.is_err());
        let bound = keys.tag_bound(&tag("orders")).await?;
        assert_eq!(bound.map(|its| its.next), Some(1));
        assert!(keys.tag_bound(&tag("broken")).await.is_err());
        assert_eq!(keys.tag_bound(&tag("missing")).await?, None);
        Ok(())
    })
}

/// A program has many tags, and one that is missing is not made here.
#[test]
fn a_tag_that_only_its_own_system_makes_is_named() -> Result<()> {
    let schema = Schema::new("kw_leaf_missing")?;
    schema.sql(LEAF)?;
    runtime()?.block_on(async {
        let keys = open(&settings(&schema, "leaf"))?;
        let made = keys.create_tag(&tag("nix"), &small_steps(10)).await;
        let told = made.unwrap_err().to_string();
        assert!(
            told.contains("tag \"nix\": tags of dialect leaf are made"),
            "{told}"
        );
        Ok(())
    })
}

/// `init` makes no table of another system: to run it again would end the same way.
#[test]
fn a_table_of_another_shape_is_told_with_the_columns_that_it_needs() -> Result<()> {
    let schema = Schema::new("kw_other_shape")?;
    schema.sql("CREATE TABLE id_generator (name VARCHAR(64) NOT NULL PRIMARY KEY, current_max_id BIGINT NOT NULL)")?;
    runtime()?.block_on(async {
        for (dialect, columns) in [
            (
                "id_generator",
                "biz_key, max_id, step, version, update_time",
            ),
            ("leaf", "biz_tag, max_id, step"),
        ] {
            let keys = open(&settings(&schema, dialect))?;
            keys.init().await?;
            let source = keys.source(&segment("orders"))?;
            let refused = source.take(1, true).await.unwrap_err().to_string();
            let needed = format!("with the columns {columns})");
            assert!(refused.ends_with(&needed), "{refused}");
            assert!(!refused.contains("init"), "{refused}");
        }
        Ok(())
    })
}

#[test]
fn leaf_servers_go_on_beside_us() -> Result<()> {
    let schema = Schema::new("kw_leaf")?;
    schema.sql(LEAF)?;
    runtime()?.block_on(async {
        let raw = settings(&schema, "leaf");
        let log = IssuedLog::default();
        let keys = open(&raw)?;
        keys.init().await?;
        let source = keys.source(&segment("orders"))?;
        let others =
            (0..2).map(|n| tokio::spawn(leaf(raw.clone(), log.clone(), format!("leaf {n}"))));
        let others: Vec<_> = others.collect();
        let ours = (0..3).map(|n| {
            tokio::spawn(take_many(
                source.clone(),
                log.clone(),
                format!("ours {n}"),
                400,
            ))
        });
        let ours: Vec<_> = ours.collect();
        for other in others {
            other.await??;
        }
        for task in ours {
            task.await?;
        }
        assert!(log.len() > 20_000);
        assert_eq!(log.min(), 1);
        Ok(())
    })
}

#[test]
fn tinyid_servers_go_on_beside_us_and_its_remainder_is_kept() -> Result<()> {
    let schema = Schema::new("kw_tinyid")?;
    schema.sql(TINYID)?;
    runtime()?.block_on(async {
        let raw = settings(&schema, "tinyid");
        let log = IssuedLog::default();
        let keys = open(&raw)?;
        let source = keys.source(&segment("orders"))?;
        // (currentId, maxId], those with id % 3 == 2.
        let ids = |old, new| (old + 1..=new).filter(|id| id % 3 == 2).collect();
        let theirs = tokio::spawn(optimistic(
            raw.clone(),
            ("tiny_id_info", "biz_type"),
            ids,
            log.clone(),
        ));
        for _ in 0..2_000 {
            let taken = source.take(7, true).await?;
            assert_eq!(taken.number(0).unwrap() % 3, 2);
            log.add_all("ours", &taken);
        }
        theirs.await??;
        Ok(())
    })
}

#[test]
fn the_next_id_of_a_tag_is_told_as_its_table_counts() -> Result<()> {
    for (name, table, made, next) in [
        ("leaf", "leaf_alloc", LEAF, 5_000),
        ("tinyid", "tiny_id_info", TINYID, 5_001),
        ("id_generator", "id_generator", ID_GENERATOR, 5_001),
    ] {
        let schema = Schema::new(&format!("kw_next_{name}"))?;
        schema.sql(made)?;
        schema.sql(&format!("UPDATE {table} SET max_id = 5000"))?;
        let keys = open(&settings(&schema, name));
        let tags = runtime()?.block_on(async { anyhow::Ok(keys?.tags().await?) })?;
        let told: Vec<u64> = tags.iter().map(|tag| tag.next).collect();
        assert_eq!(told, [next], "{name}");
    }
    Ok(())
}

/// It is not known which end of a range is its own: whichever, we never meet.
#[test]
fn id_generator_goes_on_beside_us_whichever_end_is_its_own() -> Result<()> {
    let from_lower: fn(u64, u64) -> Vec<u64> = |old, new| (old..new).collect();
    let from_upper: fn(u64, u64) -> Vec<u64> = |old, new| (old + 1..=new).collect();
    for (name, ids) in [("kw_gen_lower", from_lower), ("kw_gen_upper", from_upper)] {
        let schema = Schema::new(name)?;
        schema.sql(ID_GENERATOR)?;
        runtime()?.block_on(async {
            let raw = settings(&schema, "id_generator");
            let log = IssuedLog::default();
            let keys = open(&raw)?;
            let source = keys.source(&segment("orders"))?;
            let theirs = tokio::spawn(optimistic(
                raw.clone(),
                ("id_generator", "biz_key"),
                ids,
                log.clone(),
            ));
            take_many(source, log.clone(), "ours".to_owned(), 600).await;
            theirs.await?
        })?;
    }
    Ok(())
}

/// A table without row locks or transactions is safe too: the number is written by compare-and-swap.
#[test]
fn an_engine_without_transactions_is_no_danger() -> Result<()> {
    let schema = Schema::new("kw_myisam")?;
    schema.sql(&LEAF.replace("InnoDB", "MyISAM"))?;
    runtime()?.block_on(async {
        let raw = settings(&schema, "leaf");
        let log = IssuedLog::default();
        let issuers = [open(&raw)?, open(&raw)?, open(&raw)?];
        take_by_each(&issuers, &segment("orders"), &log, 300).await
    })
}
