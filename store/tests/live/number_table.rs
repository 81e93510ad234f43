//! Worker ids out of UidGenerator's table, beside an imitation of its generators: each start adds a row, and the row's number is the worker
//! id.

use std::collections::{BTreeSet, HashSet};

use keywright_core::{Cause, Preset};
use keywright_store::{Finding, KeySpec, Keys, RawSnowflakeSettings, Severity};
use keywright_testkit::{Flavour, Result};

use crate::common::{IssuedLog, Schema, open, open_with, runtime, until};

keywright_testkit::on_both_flavours!(
    programs_and_generators_never_have_the_same_number,
    a_number_that_was_given_up_for_a_while_is_had_again,
    a_table_that_gives_numbers_again_is_refused,
    numbers_that_the_layout_does_not_have_are_refused,
    nobody_leases_beside_the_table,
);

/// As UidGenerator's own instructions make it.
const TABLE: &str = "CREATE TABLE WORKER_NODE (ID BIGINT NOT NULL AUTO_INCREMENT, HOST_NAME VARCHAR(64) NOT NULL, PORT VARCHAR(64) NOT NULL, \
    TYPE INT NOT NULL, LAUNCH_DATE DATE NOT NULL, MODIFIED TIMESTAMP NOT NULL, CREATED TIMESTAMP NOT NULL, PRIMARY KEY (ID)) ENGINE = InnoDB";

/// A store beside such a table.
fn schema(flavour: Flavour, name: &str) -> Result<Schema> {
    let schema = Schema::on(flavour, name)?;
    schema.sql(TABLE)?;
    Ok(schema)
}

fn from_table(schema: &Schema) -> Result<Keys> {
    let its = RawSnowflakeSettings {
        worker_id_table: Some("WORKER_NODE".to_owned()),
        ..RawSnowflakeSettings::default()
    };
    open_with(&schema.raw(), &its)
}

/// A store that has recorded the table.
async fn made(schema: &Schema) -> Result<()> {
    let keys = from_table(schema)?;
    keys.init().await?;
    keys.record_worker_ids(false).await?;
    let found = keys.check(&[]).await;
    let is_error = |its: &Finding| its.severity == Severity::Error;
    assert!(!found.iter().any(is_error), "{found:?}");
    Ok(())
}

/// The number of a generator that starts.
fn generator(schema: &Schema) -> Result<u32> {
    schema.sql(
        "INSERT INTO WORKER_NODE (HOST_NAME, PORT, TYPE, LAUNCH_DATE, MODIFIED, CREATED) VALUES ('java', '8080', 1, NOW(), NOW(), NOW())",
    )?;
    Ok(u32::try_from(
        schema.number("SELECT MAX(ID) FROM WORKER_NODE")?,
    )?)
}

fn programs_and_generators_never_have_the_same_number(flavour: Flavour) -> Result<()> {
    let schema = schema(flavour, "kw_numbers")?;
    runtime()?.block_on(async {
        made(&schema).await?;
        let log = IssuedLog::default();
        let layout = Preset::Twitter.layout();
        let mut numbers = BTreeSet::new();
        let mut programs = Vec::new();
        for round in 0..6 {
            assert!(numbers.insert(generator(&schema)?));
            let keys = from_table(&schema)?;
            let source = keys.source(&KeySpec::Snowflake)?;
            let mut number = 0;
            for _ in 0..50 {
                let ids = source.take(20, true).await?;
                log.add_all("programs", &ids);
                number = keys.worker_id().unwrap();
                let decoded = layout.decode(ids.number(0).unwrap().cast_signed())?;
                assert_eq!(decoded.worker_id, number);
            }
            assert!(numbers.insert(number), "{number} twice");
            match round % 2 {
                // It ends, and another one starts in its place.
                0 => keys.hand_back().await,
                _ => programs.push((keys, source, number)),
            }
        }
        // Those that run have kept theirs.
        for (keys, source, number) in &programs {
            log.add_all("programs", &source.take(20, true).await?);
            assert_eq!(keys.worker_id(), Some(*number));
        }
        Ok(())
    })
}

/// The program's rules have snowflake keys, have others, and have snowflake keys again.
fn a_number_that_was_given_up_for_a_while_is_had_again(flavour: Flavour) -> Result<()> {
    const HOLDERS: &str = "SELECT COUNT(*) FROM keywright_worker WHERE owner IS NOT NULL";
    let schema = schema(flavour, "kw_numbers_back")?;
    runtime()?.block_on(async {
        made(&schema).await?;
        let its = RawSnowflakeSettings {
            worker_id_table: Some("WORKER_NODE".to_owned()),
            lease_ms: 1_000,
            bound_window_ms: 1_000,
            ..RawSnowflakeSettings::default()
        };
        let keys = open_with(&schema.raw(), &its)?;
        let mut last = 0;
        for round in 0..3 {
            let source = keys.source(&KeySpec::Snowflake)?;
            let id = source.take(1, true).await?.number(0).unwrap();
            assert!(id > last, "round {round}: {id} {last}");
            last = id;
            assert_eq!(keys.worker_id(), Some(1), "round {round}");
            keys.use_only(&HashSet::new());
            until("a worker id that was given up", || {
                schema.number(HOLDERS).is_ok_and(|held| held == 0)
            })
            .await;
        }
        assert_eq!(schema.number("SELECT COUNT(*) FROM WORKER_NODE")?, 1);
        Ok(())
    })
}

fn a_table_that_gives_numbers_again_is_refused(flavour: Flavour) -> Result<()> {
    let schema = schema(flavour, "kw_numbers_again")?;
    runtime()?.block_on(async {
        made(&schema).await?;
        for _ in 0..2 {
            let keys = from_table(&schema)?;
            keys.source(&KeySpec::Snowflake)?.take(1, true).await?;
        }
        schema.sql("DROP TABLE WORKER_NODE")?;
        schema.sql(TABLE)?;
        let keys = from_table(&schema)?;
        let refused = keys.source(&KeySpec::Snowflake)?.take(1, true).await;
        let refused = refused.unwrap_err();
        assert_eq!(refused.cause(), Cause::BoundDamaged);
        let told = refused.to_string();
        assert!(
            told.contains("WORKER_NODE has given number 1, which is not above"),
            "{told}"
        );
        // Asked again, it takes no further number.
        assert!(
            keys.source(&KeySpec::Snowflake)?
                .take(1, true)
                .await
                .is_err()
        );
        schema.sql("ALTER TABLE WORKER_NODE AUTO_INCREMENT = 8")?;
        let keys = from_table(&schema)?;
        keys.source(&KeySpec::Snowflake)?.take(1, true).await?;
        assert_eq!(keys.worker_id(), Some(8));
        Ok(())
    })
}

fn numbers_that_the_layout_does_not_have_are_refused(flavour: Flavour) -> Result<()> {
    let schema = schema(flavour, "kw_numbers_used_up")?;
    runtime()?.block_on(async {
        made(&schema).await?;
        schema.sql("ALTER TABLE WORKER_NODE AUTO_INCREMENT = 1023")?;
        let last = from_table(&schema)?;
        last.source(&KeySpec::Snowflake)?.take(1, true).await?;
        assert_eq!(last.worker_id(), Some(1023));
        let keys = from_table(&schema)?;
        let refused = keys.source(&KeySpec::Snowflake)?.take(1, true).await;
        let refused = refused.unwrap_err();
        assert_eq!(refused.cause(), Cause::WorkersFull);
        assert!(refused.to_string().contains("number 1024"), "{refused}");
        Ok(())
    })
}

fn nobody_leases_beside_the_table(flavour: Flavour) -> Result<()> {
    let table = schema(flavour, "kw_numbers_alone")?;
    let leased = schema(flavour, "kw_numbers_leased")?;
    runtime()?.block_on(async {
        made(&table).await?;
        from_table(&table)?
            .source(&KeySpec::Snowflake)?
            .take(1, true)
            .await?;
        let other = open(&table.raw())?;
        let refused = other.source(&KeySpec::Snowflake)?.take(1, true).await;
        let refused = refused.unwrap_err();
        assert_eq!(refused.cause(), Cause::WorkerIdInUse);
        assert!(
            refused
                .to_string()
                .contains("from table WORKER_NODE in the store"),
            "{refused}"
        );
        let refused = other.record_worker_ids(true).await.unwrap_err();
        assert!(
            refused.to_string().contains("cannot be leased"),
            "{refused}"
        );
        // The other way round.
        let keys = open(&leased.raw())?;
        keys.init().await?;
        keys.source(&KeySpec::Snowflake)?.take(1, true).await?;
        let refused = from_table(&leased)?
            .record_worker_ids(true)
            .await
            .unwrap_err();
        assert!(
            refused
                .to_string()
                .contains("programs have leased worker id 0"),
            "{refused}"
        );
        let unrecorded = from_table(&leased)?
            .source(&KeySpec::Snowflake)?
            .take(1, true)
            .await;
        assert_eq!(unrecorded.unwrap_err().cause(), Cause::WorkerIdInUse);
        // A table that is not there is found by a look.
        table.sql("DROP TABLE WORKER_NODE")?;
        let found = from_table(&table)?.check(&[]).await;
        let is_told =
            |its: &Finding| its.severity == Severity::Error && its.message.contains("WORKER_NODE");
        assert!(found.iter().any(is_told), "{found:?}");
        Ok(())
    })
}
