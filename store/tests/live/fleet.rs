//! Databases that a store assigns worker ids.

use std::collections::BTreeMap;
use std::sync::Arc;

use keywright_store::assignment::AssignedRow;
use keywright_store::{
    AssignError, AssignedId, Assigning, Database, DatabaseSettings, Keys, RawDatabase,
    RawSnowflakeSettings,
};
use keywright_testkit::{PgServer, Result};

use crate::common::{Engine, IssuedLog, Schema, in_postgres, open_with, runtime};

pub fn ranges(leased: &str, assigned: &str) -> RawSnowflakeSettings {
    let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    RawSnowflakeSettings {
        leased_worker_ids: some(leased),
        assigned_worker_ids: some(assigned),
        ..RawSnowflakeSettings::default()
    }
}

/// A store that assigns, and a server with databases.
pub struct Fleet {
    pub schema: Schema,
    snowflake: RawSnowflakeSettings,
    pub server: Arc<PgServer>,
}

impl Fleet {
    pub fn new(engine: Engine, name: &str, assigned: &str) -> Result<Fleet> {
        let fleet = Fleet {
            schema: Schema::of(engine, name)?,
            snowflake: ranges("0-255", assigned),
            server: Arc::new(PgServer::builder().start()?),
        };
        runtime()?.block_on(async {
            let keys = fleet.keys()?;
            keys.init().await?;
            keys.record_worker_ids(false).await?;
            Ok(fleet)
        })
    }

    pub fn keys(&self) -> Result<Keys> {
        open_with(&self.schema.raw(), &self.snowflake)
    }

    pub fn create(&self, database: &str) -> Result<()> {
        in_postgres(
            &self.server,
            "postgres",
            &format!("CREATE DATABASE {database}"),
        )?;
        in_postgres(&self.server, database, "CREATE EXTENSION keywright")?;
        Ok(())
    }

    pub async fn ask(&self, database: &str, is_new: bool) -> Result<Assigning> {
        assigning(self.keys()?, &self.server, database, is_new).await
    }

    pub async fn assign(
        &self,
        database: &str,
    ) -> Result<std::result::Result<AssignedId, AssignError>> {
        Ok(self.ask(database, false).await?.run().await)
    }

    pub async fn rows(&self) -> Result<BTreeMap<u32, AssignedRow>> {
        let rows = self.keys()?.assigned().await?;
        Ok(rows.into_iter().map(|row| (row.worker_id, row)).collect())
    }
}

pub async fn assigning(
    keys: Keys,
    server: &PgServer,
    database: &str,
    is_new: bool,
) -> Result<Assigning> {
    Ok(Assigning::new(
        keys,
        connect(server, database).await?,
        is_new,
    ))
}

pub async fn connect(server: &PgServer, database: &str) -> Result<Database> {
    let settings = DatabaseSettings::new(&RawDatabase {
        url: server.url(database),
        ..RawDatabase::default()
    })?;
    Ok(Database::connect(&settings).await?)
}

/// Has a database issue; the worker id in its ids.
pub fn draw(server: &PgServer, database: &str, log: &IssuedLog) -> Result<u32> {
    let drawn = in_postgres(
        server,
        database,
        "SELECT id, snowflake_worker(id) FROM (SELECT snowflake_id() AS id FROM generate_series(1, 5000)) AS drawn",
    )?;
    for row in &drawn {
        log.add(database, row[0].parse()?);
    }
    Ok(drawn[0][1].parse()?)
}

/// Why a database issues nothing.
pub fn refusal(server: &PgServer, database: &str) -> String {
    let drawn = in_postgres(server, database, "SELECT snowflake_id()");
    format!("{:?}", drawn.expect_err("it issues"))
}
