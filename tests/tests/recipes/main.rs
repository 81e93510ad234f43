//! The recipes of the documentation on PostgreSQL: what the pages print runs, with the libraries that they are for.

#[path = "../common/frameworks.rs"]
mod frameworks;
mod pgbouncer;

use std::sync::atomic::{AtomicU32, Ordering};

use frameworks::{DJANGO, Framework, RAILS, SEQUELIZE, SQLALCHEMY, TYPEORM, assert_distinct};
use keywright_testkit::recipes::replace_all;
use keywright_testkit::{PgServer, Result, SharedServer, TestDatabase};

static SERVER: SharedServer = SharedServer::new();

/// The server, with the account that pages use.
fn server() -> Result<TestDatabase> {
    let database = SERVER.database(PgServer::builder)?;
    database.client()?.batch_execute(
        "DO $$ BEGIN CREATE ROLE app LOGIN; EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; END $$",
    )?;
    Ok(database)
}

/// A database of that account, set up as pages say, with a worker id of its own.
fn database(server: &PgServer, name: &str, more: &str) -> Result<()> {
    const SETUP: &str = "CREATE EXTENSION keywright;\nSELECT keywright.set_worker_id(1);";
    set_up(server, name, &format!("{SETUP} {more}"))
}

/// A database that a page's `setup.sql` makes ready; each gets a worker id of its own, as the page says.
fn set_up(server: &PgServer, name: &str, setup: &str) -> Result<()> {
    /// Beyond those of the server's test databases.
    static WORKER_ID: AtomicU32 = AtomicU32::new(100);
    server
        .client("postgres")?
        .batch_execute(&format!("CREATE DATABASE {name} OWNER app"))?;
    let worker_id = WORKER_ID.fetch_add(1, Ordering::Relaxed);
    let own = format!("set_worker_id({worker_id})");
    let setup = replace_all(setup, &[("set_worker_id(1)", &own)]);
    Ok(server.client(name)?.batch_execute(&setup)?)
}

/// Runs the page's code on two databases.
fn on_two_databases(framework: &Framework) -> Result<()> {
    let database = server()?;
    let server = database.server();
    let mut sides = Vec::new();
    for number in [1, 2] {
        let name = format!("{}_{number}", framework.page);
        let setup = framework.page()?.file("postgres", "setup.sql")?;
        set_up(server, &name, &setup)?;
        let recipe = framework.lay_out("postgres", &name, server.port(), &[])?;
        sides.push(framework.check(&recipe, "postgres")?);
        // Programs bring some ids of their own.
        let sql = format!(
            "SELECT bool_and(snowflake_worker(id) = (SELECT worker_id FROM keywright.stats WHERE kind = 'snowflake'))
             FROM {} WHERE id NOT BETWEEN 9000000000 AND 9000000009",
            framework.table
        );
        let all_ours: bool = server.client(&name)?.query_one(&sql, &[])?.get(0);
        assert!(all_ours, "{name} has ids that the extension did not make");
    }
    assert_distinct(&sides);
    Ok(())
}

#[test]
fn django() -> Result<()> {
    on_two_databases(&DJANGO)
}

#[test]
fn a_table_of_django_goes_over_and_back() -> Result<()> {
    let database = server()?;
    let server = database.server();
    let name = "django_existing";
    let setup = DJANGO.page()?.file("postgres", "setup.sql")?;
    set_up(server, name, &setup)?;
    let recipe = DJANGO.lay_out("postgres", name, server.port(), &[])?;
    let ids = DJANGO.run(&recipe, &["existing.py"])?;
    assert_eq!(ids.len(), 4);
    Ok(())
}

#[test]
fn sqlalchemy() -> Result<()> {
    on_two_databases(&SQLALCHEMY)
}

#[test]
fn sequelize() -> Result<()> {
    on_two_databases(&SEQUELIZE)
}

#[test]
fn typeorm() -> Result<()> {
    on_two_databases(&TYPEORM)
}

#[test]
fn rails() -> Result<()> {
    on_two_databases(&RAILS)
}
