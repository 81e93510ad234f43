//! Whether `upstream`, where clients' statements go, and `admin`, by which tables are looked at and fenced, are one server.

use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use keywright_store::{innermost, server_identity};
use mysql_async::Conn;
use tokio::time::timeout;

use super::finding::{Finding, Severity};
use super::take::connect;
use crate::admin::Admin;
use crate::config::{Config, Listener};

/// What is to be said where they are two, or that is not known: the account of `admin` logs in at `upstream`, too.
pub async fn elsewhere(config: &Config, listener: &Listener) -> Option<Finding> {
    let admin = listener.admin.as_ref()?;
    // A server that wants a header of the PROXY protocol hears nobody without.
    if listener.upstream_proxy_protocol || admin.leads_to(&listener.upstream) {
        return None;
    }
    // That `admin` reaches nobody is told elsewhere.
    let by_admin = identity_by_admin(config, listener).await.ok()?;
    let upstream = &listener.upstream;
    match identity_at(config, admin, upstream).await {
        Ok(identity) if identity == by_admin => None,
        Ok(identity) => Some(Severity::Warning.of(format!(
            "upstream {upstream} is the server {identity}, and admin leads to {by_admin}: keys come into force only where admin leads, and INSERTs \
             wait in vain on another server"
        ))),
        Err(error) => Some(Severity::Warning.of(format!(
            "whether upstream {upstream} is the server that admin leads to is not known: {error:#}"
        ))),
    }
}

async fn identity_by_admin(config: &Config, listener: &Listener) -> Result<String> {
    let conn = connect(config, listener).await?;
    in_time(config, identity_of(conn)).await
}

async fn identity_at(config: &Config, admin: &Admin, address: &str) -> Result<String> {
    let opts = admin.opts_at(address);
    let opts = opts.context("its address cannot be read")?;
    let looked = async {
        // The driver's errors repeat what is inside of them.
        let conn = Conn::new(opts).await;
        identity_of(conn.map_err(|error| anyhow!("{}", innermost(&error)))?).await
    };
    in_time(config, looked).await
}

async fn identity_of(mut conn: Conn) -> Result<String> {
    let identity = server_identity(&mut conn).await;
    let identity = identity.map_err(|failure| anyhow!("{failure}"))?;
    conn.disconnect().await?;
    Ok(identity)
}

async fn in_time<T>(config: &Config, looked: impl Future<Output = Result<T>>) -> Result<T> {
    timeout(Duration::from_millis(config.connect_ms_max), looked)
        .await
        .context("it took longer than connect_ms_max")?
}
