//! `explain`: what would become of statements.

use std::fs::File as LogFile;
use std::io::BufReader;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::{ArgGroup, Args};
use keywright_proxy::config::{Config, Listener};
use keywright_proxy::explain::Explainer;
use keywright_proxy::explain::general_log::{Entry, GeneralLog};
use keywright_proxy::explain::known::Known;

use super::{File, Format, runtime};

#[derive(Args)]
#[command(group = ArgGroup::new("what").required(true).args(["statement", "log"]))]
pub(crate) struct Explain {
    #[command(flatten)]
    file: File,
    /// The default database of the statement; with --file, of connections from before the log began.
    #[arg(long)]
    database: Option<String>,
    /// The `bind` of the listener whose server is asked for columns and triggers; default: the first with an admin url whose server has the statement's
    /// table, for a log the first with an admin url.
    #[arg(long)]
    listener: Option<String>,
    /// A general query log of MySQL or MariaDB, to summarise. It contains the statements of procedures as if clients had sent them.
    #[arg(long = "file")]
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
        let named = |listener: &&Listener| {
            let bind = self.listener.as_ref();
            bind.is_none_or(|bind| listener.bind == *bind)
        };
        let listeners: Vec<&Listener> = config.listeners.iter().filter(named).collect();
        if let (Some(bind), []) = (&self.listener, listeners.as_slice()) {
            bail!("no listener has bind = \"{bind}\"");
        }
        let asks = listeners.iter().filter(|listener| listener.admin.is_some());
        let asks: Vec<&Listener> = asks.copied().collect();
        if asks.is_empty() {
            notes.push(
                "without a listener's admin url, columns, triggers and sql_mode of the server are not known"
                    .to_owned(),
            );
            return self.assumed();
        }
        match self.ask(config, &asks, notes)? {
            Some(known) => Ok(known),
            None => self.assumed(),
        }
    }

    /// Asks the first server that has the statement's table, or the first that answers.
    fn ask(
        &self,
        config: &Config,
        listeners: &[&Listener],
        notes: &mut Vec<String>,
    ) -> Result<Option<Known>> {
        let runtime = runtime()?;
        let database = self.database.as_deref().map(str::as_bytes);
        let mut first: Option<Known> = None;
        for listener in listeners {
            let known = match runtime.block_on(Known::ask(config, listener)) {
                Ok(known) => known,
                Err(error) => {
                    let bind = &listener.bind;
                    notes.push(format!(
                        "{bind}: columns, triggers and sql_mode of the server are not known: {error:#}"
                    ));
                    continue;
                }
            };
            let explainer = Explainer::new(config, &known);
            let text = self.statement.as_deref().map(str::as_bytes);
            let has_table = text.and_then(|text| explainer.has_table(text, database));
            if has_table != Some(false) {
                if first.is_some() {
                    notes.push(format!(
                        "as on {}, whose server has the table",
                        listener.bind
                    ));
                }
                return Ok(Some(known));
            }
            first.get_or_insert(known);
        }
        Ok(first)
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
