//! A PostgreSQL database with the extension that a command is about.

use std::path::PathBuf;

use anyhow::{Result, anyhow};
use clap::Args;
use keywright_store::{Database, DatabaseSettings, RawDatabase};

/// A database with the extension.
#[derive(Args)]
pub(super) struct Target {
    /// The database, with a role that may call the functions that the command needs, such as the extension's owner: postgres://user@host:port/database.
    /// In user and password, write / : @ ? # % as %2F %3A %40 %3F %23 %25. Not through a pooler.
    #[arg(long, value_name = "URL")]
    database: Option<String>,
    /// A file whose first line is the role's password.
    #[arg(long, value_name = "FILE", requires = "database")]
    password_file: Option<PathBuf>,
    /// The environment variable that holds the role's password.
    #[arg(long, value_name = "NAME", requires = "database")]
    password_env: Option<String>,
    /// TLS to the database; its certificate is checked.
    #[arg(long, requires = "database")]
    tls: bool,
    /// The authorities that may have signed the database's certificate, PEM; default: the public ones.
    #[arg(long, value_name = "FILE", requires = "database")]
    tls_ca_file: Option<PathBuf>,
}

impl Target {
    pub(super) async fn connect(&self) -> Result<Database> {
        let settings = DatabaseSettings::new(&RawDatabase {
            url: self.database.clone().unwrap_or_default(),
            password_file: self.password_file.clone(),
            password_env: self.password_env.clone(),
            is_tls: self.tls,
            tls_ca_file: self.tls_ca_file.clone(),
        })?;
        let place = settings.place().to_owned();
        let database = Database::connect(&settings).await;
        database.map_err(|error| anyhow!("database {place}: {error}"))
    }
}
