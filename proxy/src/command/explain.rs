//! `explain`: what would become of statements.

use std::fs::File as LogFile;
use std::io::BufReader;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::Args;
use keywright_proxy::config::Config;
use keywright_proxy::explain::Explainer;
use keywright_proxy::explain::general_log::{Entry, GeneralLog};
use keywright_proxy::explain::known::Known;

use super::{File, Format, runtime};

#[derive(Args)]
pub(crate) struct Explain {
    #[command(flatten)]
    file: File,
    /// The database that names without one belong to; with --file, that of connections which were there before the log began.
    #[arg(long)]
    database: Option<String>,
    /// The `bind` of the listener whose server is asked for columns and triggers; default: the first with an admin url.
    #[arg(long)]
    listener: Option<String>,
    /// A general query log of MySQL or MariaDB, of which a summary is told. What procedures carry out is in it as if clients
    /// had sent it.
    #[arg(
        long = "file",
        conflicts_with = "statement",
        required_unless_present = "statement"
    )]
    log: Option<PathBuf>,
    /// How it is printed.
    #[arg(long, value_enum, default_value_t)]
    format: Format,
    /// The statement.
    statement: Option<String>,
}

impl Explain {
    pub(crate) fn run(&self) -> Result<()> {
        let config = self.file.load()?;
        let mut notes = Vec::new();
        let known = self.known(&config, &mut notes)?;
        if self.format == Format::Text {
            notes.iter().for_each(|note| println!("note: {note}"));
        }
        let explainer = Explainer::new(&config, &known);
        let database = self.database.as_deref();
        if let Some(log) = &self.log {
            let summary = explainer.log(open(log)?, database)?;
            match self.format {
                Format::Text => print!("{}", explainer.report(&summary)),
                Format::Json => println!("{}", explainer.report_json(&summary, notes.clone())?),
            }
        }
        if let Some(statement) = &self.statement {
            match self.format {
                Format::Text => println!("{}", explainer.statement(statement, database)),
                Format::Json => {
                    println!("{}", explainer.statement_json(statement, database, notes)?);
                }
            }
        }
        Ok(())
    }

    /// What is known of the server; what is not is noted.
    fn known(&self, config: &Config, notes: &mut Vec<String>) -> Result<Known> {
        let listener = match &self.listener {
            Some(bind) => Some(
                config
                    .listeners
                    .iter()
                    .find(|listener| listener.bind == *bind)
                    .with_context(|| format!("no listener has bind = \"{bind}\""))?,
            ),
            None => config
                .listeners
                .iter()
                .find(|listener| listener.admin.is_some()),
        };
        let Some(listener) = listener.filter(|listener| listener.admin.is_some()) else {
            notes.push(
                "without a listener's admin url, columns, triggers and sql_mode of the server are not known"
                    .to_owned(),
            );
            return self.assumed();
        };
        match runtime()?.block_on(Known::ask(config, listener)) {
            Ok(known) => Ok(known),
            Err(error) => {
                notes.push(format!(
                    "columns, triggers and sql_mode of the server are not known: {error:#}"
                ));
                self.assumed()
            }
        }
    }

    /// What is assumed of a server that cannot be asked. A log begins with its version.
    fn assumed(&self) -> Result<Known> {
        let version = match &self.log {
            Some(log) => match GeneralLog::new(open(log)?, 0)
                .next_line()?
                .map(|line| line.entry)
            {
                Some(Entry::Version(version)) => {
                    Some(String::from_utf8_lossy(&version).into_owned())
                }
                Some(_) | None => None,
            },
            None => None,
        };
        Ok(Known::assumed(version.as_deref()))
    }
}

fn open(log: &Path) -> Result<BufReader<LogFile>> {
    let file = LogFile::open(log).with_context(|| format!("opening {}", log.display()))?;
    Ok(BufReader::new(file))
}
