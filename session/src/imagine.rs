//! What would become of statements: a real session whose upstream is imagined, so that it decides as in operation. For `explain`.

mod server;

use std::sync::Arc;

use keywright_rewrite::{InsertHead, PrepareSource, TableName, load_target, prepare_source, split};
use keywright_wire::bytes::Reader;
use keywright_wire::capability::{DEPRECATE_EOF, MULTI_STATEMENTS};
use keywright_wire::packets::{packets, write_command};
use keywright_wire::protocol::{AUTOCOMMIT, COM_INIT_DB, COM_QUERY, ERR};

use crate::insert::local_file::NO_MORE;
use crate::rules::Rules;
use crate::session::Session;
use crate::step::{Event, SessionFacts, StatementOutcome, Step};

use server::{COLLATION, Server, Unknown};

pub use server::{Columns, Imagine, State};

/// Steps of one statement at most: so many that only a loop needs more.
const STEPS_MAX: usize = 100_000;
/// Several statements in one text, and answers that end without EOF packets.
const CAPABILITIES: u64 = MULTI_STATEMENTS | DEPRECATE_EOF;

/// What would become of a statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// It gets keys.
    Rewritten {
        /// What the server is sent.
        text: Vec<u8>,
    },
    /// The client is answered with an error.
    Refused {
        /// By which name it is counted.
        construct: &'static str,
        /// The error's message.
        message: String,
    },
    /// It cannot be rewritten and is passed on, because its rule says so.
    Passed {
        /// By which name it is counted.
        construct: &'static str,
    },
    /// It is passed on, and nothing had to be done.
    Untouched,
    /// It would get keys if its rule were not observing.
    Observed,
    /// It has no column list, and the columns of this table are not known.
    ColumnsNotKnown {
        /// The table's schema.
        schema: Vec<u8>,
        /// The table.
        table: Vec<u8>,
    },
    /// Its keys may be NULL, and whether the key column of this table refuses that is not known.
    NullNotKnown {
        /// The table's schema.
        schema: Vec<u8>,
        /// The table.
        table: Vec<u8>,
    },
    /// The server is asked for the value of its key first.
    ByValue,
}

/// What becomes of one statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explained {
    /// The rule of the first table, or view of one, that it inserts into with one.
    pub rule: Option<usize>,
    /// What becomes of it.
    pub decision: Decision,
}

/// A connection to an imagined server.
pub struct Imagined {
    session: Session,
    server: Server,
    /// The rule that keys were asked for.
    asked: Option<usize>,
}

impl Imagined {
    /// A connection that has just been made. `facts` of the server are taken as they are; capabilities are those of most clients.
    pub fn new(rules: Arc<Rules>, facts: SessionFacts, state: State) -> Self {
        let facts = SessionFacts {
            capabilities: CAPABILITIES,
            collation: COLLATION,
            database: state.database.clone(),
            status: AUTOCOMMIT,
            ..facts
        };
        Self {
            session: Session::new(rules, facts),
            server: Server::new(state),
            asked: None,
        }
    }

    /// Whether a statement set sql_mode to something that its text does not show, since the last call: what follows is read in
    /// the mode before.
    pub fn lost_sql_mode(&mut self) -> bool {
        std::mem::take(&mut self.server.lost_sql_mode)
    }

    /// The database in use.
    pub fn database(&self) -> Option<&[u8]> {
        self.server.state.database.as_deref()
    }

    /// COM_INIT_DB.
    pub fn use_database(&mut self, name: &[u8], imagine: &mut dyn Imagine) {
        self.server.state.database = Some(name.to_vec());
        let mut client = Vec::new();
        write_command(COM_INIT_DB, name, &mut client);
        self.run(client, imagine);
    }

    /// Sends a statement as text, and says what became of it.
    pub fn query(&mut self, text: &[u8], imagine: &mut dyn Imagine) -> Explained {
        let mut client = Vec::new();
        write_command(COM_QUERY, text, &mut client);
        let said = self.run(client, imagine);
        let events = std::mem::take(self.session.events());
        let mut sent = std::mem::take(&mut self.server.sent);
        if sent.len() > 1 {
            // LOAD DATA LOCAL first goes out unchanged, so that the server names the file.
            sent.retain(|sent| sent != text);
        }
        let first_error = packets(&said)
            .and_then(|packets| {
                packets
                    .into_iter()
                    .map(|(_, payload)| error(payload))
                    .next()
            })
            .flatten();
        let unknown = self.server.unknown.take();
        let computes = std::mem::take(&mut self.server.computes);
        let decision = match (unknown, first_error) {
            _ if computes => Decision::ByValue,
            (Some(Unknown::Columns((schema, table))), _) => {
                Decision::ColumnsNotKnown { schema, table }
            }
            (Some(Unknown::Null((schema, table))), _) => Decision::NullNotKnown { schema, table },
            (None, Some(message)) => Decision::Refused {
                construct: refused(&events).unwrap_or("too_long"),
                message,
            },
            (None, None) => match events.iter().map(|event| event.outcome).find(is_told) {
                Some(StatementOutcome::Rewritten) => Decision::Rewritten {
                    text: sent.join(b"\n".as_slice()),
                },
                Some(
                    StatementOutcome::Passed(construct) | StatementOutcome::Refused(construct),
                ) => Decision::Passed { construct },
                Some(StatementOutcome::Observed) => Decision::Observed,
                Some(StatementOutcome::Native(_)) | None => Decision::Untouched,
            },
        };
        let asked = self.asked.take();
        // It also says which view.
        let touched = self.rule_touched(text).filter(|touched| {
            asked.is_none_or(|asked| self.session.connection.rules.configured(*touched) == asked)
        });
        Explained {
            rule: touched.or(asked),
            decision,
        }
    }

    /// Runs session and server until the client's bytes are used up; returns what the session itself sent the client.
    fn run(&mut self, mut client: Vec<u8>, imagine: &mut dyn Imagine) -> Vec<u8> {
        let (mut answers, mut said, mut forwarded) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..STEPS_MAX {
            let asks_client = answers.is_empty();
            let step = if asks_client {
                self.session.on_client(&client)
            } else {
                self.session.on_upstream(&answers)
            };
            let own = std::mem::take(self.session.to_upstream());
            let words = std::mem::take(self.session.to_client());
            if asks_client {
                said.extend(words);
            }
            self.server
                .serve(&self.session.connection, &own, &mut answers, imagine);
            let from = if asks_client {
                &mut client
            } else {
                &mut answers
            };
            match step {
                Step::Forward(count) => {
                    let count = count.min(from.len());
                    let bytes: Vec<u8> = from.drain(..count).collect();
                    if asks_client {
                        forwarded.extend(bytes);
                    }
                }
                Step::Consumed(count) => drop(from.drain(..count.min(from.len()))),
                Step::Keys(request) => {
                    self.asked.get_or_insert(request.rule);
                    let keys = imagine.keys(request);
                    self.session.on_keys(Ok(keys));
                }
                Step::More { .. } if asks_client && self.session.awaits_file() => {
                    client.extend(NO_MORE);
                }
                Step::Blocked if asks_client && !answers.is_empty() => {}
                Step::Wait if self.is_taken_as_shown() => {}
                // Nothing more comes from either side.
                Step::More { .. }
                | Step::Blocked
                | Step::Wait
                | Step::Authenticate(_)
                | Step::Show(_)
                | Step::Close => break,
            }
            if packets(&forwarded).is_some() {
                let commands = std::mem::take(&mut forwarded);
                self.server
                    .serve(&self.session.connection, &commands, &mut answers, imagine);
            }
        }
        said
    }

    /// Whether a statement waits for what the program's own account may see: here that is everything.
    fn is_taken_as_shown(&self) -> bool {
        let connection = &self.session.connection;
        let Some((table, _)) = &connection.table_report.awaited else {
            return false;
        };
        connection.rules.schema().note_shown(table, true);
        true
    }

    fn rule_touched(&self, text: &[u8]) -> Option<usize> {
        let modes = self.session.connection.context.modes;
        split(text, &modes).iter().find_map(|piece| {
            let text = text.get(piece.range.clone())?;
            let inserts_into = |text: &[u8]| -> Option<TableName> {
                Some(InsertHead::read(text, &modes).ok()?.table)
            };
            let prepared = || match prepare_source(text, &modes) {
                PrepareSource::Text { text, .. } => inserts_into(&text),
                PrepareSource::Computed { .. } | PrepareSource::Unreadable => None,
            };
            let table = inserts_into(text)
                .or_else(|| load_target(text, &modes))
                .or_else(prepared)?;
            self.session.connection.rule_of(&table)
        })
    }
}

fn refused(events: &[Event]) -> Option<&'static str> {
    events.iter().find_map(|event| match event.outcome {
        StatementOutcome::Refused(construct) => Some(construct),
        StatementOutcome::Rewritten
        | StatementOutcome::Observed
        | StatementOutcome::Native(_)
        | StatementOutcome::Passed(_) => None,
    })
}

/// Whether it says what becomes of a statement.
fn is_told(what: &StatementOutcome) -> bool {
    match what {
        StatementOutcome::Rewritten
        | StatementOutcome::Observed
        | StatementOutcome::Refused(_)
        | StatementOutcome::Passed(_) => true,
        StatementOutcome::Native(_) => false,
    }
}

/// The message of an error packet.
fn error(payload: &[u8]) -> Option<String> {
    let mut reader = Reader(payload);
    (reader.u8()? == ERR).then_some(())?;
    // Number, mark, state.
    reader.take(2 + 1 + 5)?;
    Some(String::from_utf8_lossy(reader.0).into_owned())
}
