//! A scripted client, upstream and source of keys around a session.

use keywright_core::{Cause, KeyBatch};
use keywright_rewrite::{Flavour, KeyForm, Server};
use keywright_session::*;
use std::sync::Arc;

pub(crate) use keywright_wire::capability::{
    BULK_OPERATIONS as BULK, DEPRECATE_EOF, FOUND_ROWS, MULTI_STATEMENTS as MULTI,
    QUERY_ATTRIBUTES as ATTRIBUTES,
};
pub(crate) use keywright_wire::protocol::{
    COM_STMT_BULK_EXECUTE, COM_STMT_CLOSE, COM_STMT_EXECUTE, COM_STMT_PREPARE, COM_STMT_RESET,
    COM_STMT_SEND_LONG_DATA,
};

pub(crate) struct Rig {
    pub(crate) s: Session,
    pub(crate) client: Vec<u8>,
    pub(crate) server: Vec<u8>,
    pub(crate) to_server: Vec<u8>,
    pub(crate) to_client: Vec<u8>,
    pub(crate) next: u64,
    pub(crate) requests: Vec<KeyRequest>,
    pub(crate) fail_keys: bool,
    /// Whether nobody gives keys that are asked for.
    pub(crate) holds_keys: bool,
    /// What the program knows of changed tables.
    pub(crate) schema: Arc<SchemaChanges>,
    /// Whether nobody asks about new tables. Otherwise the program's own account may see all.
    pub(crate) holds_answers: bool,
    pub(crate) closed: bool,
    pub(crate) at_least: [usize; 2],
    pub(crate) form: KeyForm,
    rule: Rule,
    facts: SessionFacts,
    /// How far apart keys are.
    pub(crate) apart: u64,
}

pub(crate) const MARIADB: Server = Server {
    flavour: Flavour::MariaDb,
    version: 101119,
};

pub(crate) fn rig(form: KeyForm, caps: u64) -> Rig {
    rig_with(form, caps, Limits::default())
}

/// Where so many keys can be had at once.
pub(crate) fn rig_of_few_keys(keys_max: u64, repeatable: bool) -> Rig {
    rig_of_rule(|rule| (rule.keys_max, rule.repeatable) = (keys_max, repeatable))
}

/// With a rule that was changed.
pub(crate) fn rig_of_rule(change: impl FnOnce(&mut Rule)) -> Rig {
    let mut r = rig(KeyForm::Integer, DEPRECATE_EOF);
    change(&mut r.rule);
    let rules = Arc::new(Rules::new(vec![r.rule.clone()], false));
    r.s = Session::new(rules, r.facts.clone());
    r
}

/// Where all tables were looked at, and t is one whose key column was seen so.
pub(crate) fn rig_of_table(key_column: KeyColumnState) -> Rig {
    rig_of_table_and_rule(key_column, |_| {})
}

pub(crate) fn rig_of_table_and_rule(
    key_column: KeyColumnState,
    change: impl FnOnce(&mut Rule),
) -> Rig {
    let mut r = rig(KeyForm::Integer, DEPRECATE_EOF | BULK);
    change(&mut r.rule);
    r.before_table(key_column, None);
    r
}

/// The same before a server, where it was seen whether the key column is NOT NULL, or not.
pub(crate) fn rig_of_not_null(server: Server, form: KeyForm, is_not_null: Option<bool>) -> Rig {
    let mut r = rig_before(server, form, DEPRECATE_EOF, Limits::default());
    r.before_table(KeyColumnState::Present, is_not_null);
    r
}

/// Whose prepared statements take their memory from there.
pub(crate) fn rig_with_budget(budget: Arc<dyn Budget>) -> Rig {
    let mut r = rig(KeyForm::Integer, DEPRECATE_EOF);
    let rules = Arc::new(Rules::new(vec![r.rule.clone()], false));
    r.s = Session::new(rules, r.facts.clone()).with_budget(budget);
    r
}

pub(crate) fn rig_with(form: KeyForm, caps: u64, limits: Limits) -> Rig {
    rig_before(MARIADB, form, caps, limits)
}

/// Before MySQL.
pub(crate) fn rig_of_mysql(form: KeyForm, caps: u64) -> Rig {
    let server = Server {
        flavour: Flavour::MySql,
        version: 90704,
    };
    rig_before(server, form, caps, Limits::default())
}

/// What a login says.
pub(crate) fn facts(server: Server, caps: u64) -> SessionFacts {
    SessionFacts {
        server,
        capabilities: caps,
        collation: 45,
        user: Vec::new(),
        database: Some(b"d".to_vec()),
        status: 2,
        limits: Limits::default(),
    }
}

fn rig_before(server: Server, form: KeyForm, caps: u64, limits: Limits) -> Rig {
    let rule = Rule {
        repeatable: true,
        is_steady: true,
        is_signed: true,
        ..Rule::new(Pattern::parse("*.t").unwrap(), "id", form)
    };
    let facts = SessionFacts {
        limits,
        ..facts(server, caps)
    };
    Rig {
        s: Session::new(
            Arc::new(Rules::new(vec![rule.clone()], false)),
            facts.clone(),
        ),
        client: vec![],
        server: vec![],
        to_server: vec![],
        to_client: vec![],
        next: 100,
        requests: vec![],
        fail_keys: false,
        holds_keys: false,
        schema: Arc::default(),
        holds_answers: false,
        closed: false,
        at_least: [0; 2],
        form,
        rule,
        facts,
        apart: 1,
    }
}
impl Rig {
    /// A new session, where all tables were looked at, and t is one whose key column was seen so.
    fn before_table(&mut self, key_column: KeyColumnState, is_not_null: Option<bool>) {
        let table = TableSnapshot {
            schema: "d".to_owned(),
            name: "t".to_owned(),
            key_column,
            is_not_null,
            traits: None,
        };
        let rules = Rules::new(vec![self.rule.clone()], false)
            .with_tables(&[table], true)
            .with_schema(Arc::clone(&self.schema));
        self.s = Session::new(Arc::new(rules), self.facts.clone());
    }
    pub(crate) fn run(&mut self) {
        let mut idle = 0;
        let mut side = 0;
        while idle < 2 && !self.closed {
            let step = if side == 0 {
                self.s.on_client_in_place(&mut self.client)
            } else {
                self.s.on_upstream(&self.server)
            };
            self.to_server.append(self.s.to_upstream());
            self.to_client.append(self.s.to_client());
            idle += 1;
            match step {
                Step::Forward(n) => {
                    idle = 0;
                    let (from, to) = if side == 0 {
                        (&mut self.client, &mut self.to_server)
                    } else {
                        (&mut self.server, &mut self.to_client)
                    };
                    assert!(
                        n <= from.len(),
                        "Forward({n}) of a buffer of {} bytes",
                        from.len()
                    );
                    to.extend(from.drain(..n));
                }
                Step::Consumed(n) => {
                    idle = 0;
                    let from = if side == 0 {
                        &mut self.client
                    } else {
                        &mut self.server
                    };
                    assert!(
                        n <= from.len(),
                        "Consumed({n}) of a buffer of {} bytes",
                        from.len()
                    );
                    from.drain(..n);
                }
                Step::More { at_least } => self.at_least[side] = at_least,
                Step::Wait if self.s.awaited_answer().is_some() && !self.holds_answers => {
                    idle = 0;
                    let asked = self.schema.tables_to_ask(false);
                    assert!(!asked.is_empty(), "nobody will answer");
                    for table in &asked {
                        self.schema.note_shown(table, true);
                    }
                    continue;
                }
                Step::Blocked | Step::Wait => {}
                Step::Keys(request) => {
                    idle = 0;
                    self.requests.push(request);
                    if self.holds_keys {
                        return;
                    }
                    let keys = if self.fail_keys {
                        Err(KeyFailure {
                            cause: Cause::StoreUnavailable,
                            message: "down".into(),
                        })
                    } else {
                        Ok(match self.form {
                            KeyForm::Text => KeyBatch::Texts(
                                (0..request.count).map(|i| format!("k{i}")).collect(),
                            ),
                            _ => KeyBatch::Numbers {
                                first: self.next,
                                spacing: self.apart,
                                count: request.count,
                            },
                        })
                    };
                    self.next += request.count * self.apart;
                    self.s.on_keys(keys);
                    continue;
                }
                Step::Authenticate(_) | Step::Show(_) => panic!(),
                Step::Close => self.closed = true,
            }
            side = 1 - side;
        }
    }
    /// The client sends a command; answers what the upstream got.
    pub(crate) fn say(&mut self, payload: &[u8]) -> Vec<u8> {
        self.say_numbered(0, payload)
    }
    pub(crate) fn say_numbered(&mut self, number: u8, payload: &[u8]) -> Vec<u8> {
        self.client.extend(packet(number, payload));
        self.run();
        std::mem::take(&mut self.to_server)
    }
    pub(crate) fn query(&mut self, text: &str) -> Vec<u8> {
        let mut p = vec![3];
        p.extend(text.as_bytes());
        self.say(&p)
    }
    /// The upstream answers; returns what went out next to the upstream.
    pub(crate) fn answer(&mut self, bytes: &[u8]) -> Vec<u8> {
        self.server.extend(bytes);
        self.run();
        std::mem::take(&mut self.to_server)
    }
    /// Answers what the session asks before a statement, whose table has these columns. Returns what goes out at last.
    pub(crate) fn tell(&mut self, mut sent: Vec<u8>, columns: &[&str]) -> Vec<u8> {
        while let Some(next) = self.tell_once(&sent, columns) {
            sent = next;
        }
        sent
    }
    /// The same of one question; `None`: it is none.
    pub(crate) fn tell_once(&mut self, sent: &[u8], columns: &[&str]) -> Option<Vec<u8>> {
        let answer = match sent {
            sent if has(sent, "@@session.sql_mode") => probe("1"),
            sent if has(sent, "SET last_insert_id") => ok(0, 0),
            sent if has(sent, "SHOW CREATE TABLE") => rows(&["t", "CREATE TABLE"]),
            sent if has(sent, "SELECT `id` FROM") => described(&["id"]),
            sent if has(sent, "SELECT * FROM") => described(columns),
            _ => return None,
        };
        Some(self.answer(&answer))
    }
    /// As [`Rig::probed`], where no temporary table hides the rule's, which is asked too if one may.
    pub(crate) fn unhidden(&mut self, text: &str) -> String {
        let sent = self.probed(text, "1");
        match sent.contains("SHOW CREATE TABLE") {
            true => {
                String::from_utf8_lossy(&self.answer(&rows(&["t", "CREATE TABLE"]))).into_owned()
            }
            false => sent,
        }
    }
    /// Says a text and answers the probe if one comes; what the upstream got as the statement.
    pub(crate) fn probed(&mut self, text: &str, increment: &str) -> String {
        let sent = self.query(text);
        let sent = if has(&sent, "@@session.sql_mode") {
            self.answer(&probe(increment))
        } else {
            sent
        };
        String::from_utf8_lossy(&sent).into_owned()
    }
    pub(crate) fn facts(&self) -> SessionFacts {
        self.facts.clone()
    }
    pub(crate) fn rule_in(&self, mode: Mode) -> Rule {
        Rule {
            mode,
            ..self.rule.clone()
        }
    }
    pub(crate) fn output(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.to_client)
    }
}
pub(crate) fn packet(seq: u8, p: &[u8]) -> Vec<u8> {
    let l = (p.len() as u32).to_le_bytes();
    let mut o = vec![l[0], l[1], l[2], seq];
    o.extend(p);
    o
}
pub(crate) fn has(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|w| w == text.as_bytes())
}
pub(crate) fn ok(affected: u8, id: u8) -> Vec<u8> {
    packet(1, &[0, affected, id, 2, 0, 0, 0])
}
pub(crate) fn err() -> Vec<u8> {
    let mut p = vec![0xFF, 0x26, 0x04];
    p.extend(b"#23000Duplicate entry for key");
    packet(1, &p)
}
pub(crate) fn def(seq: u8) -> Vec<u8> {
    let mut p = vec![];
    for s in ["def", "", "t", "t", "id", "id"] {
        p.push(s.len() as u8);
        p.extend(s.as_bytes());
    }
    p.extend([12, 63, 0, 20, 0, 0, 0, 8, 0, 0, 0, 0, 0]);
    packet(seq, &p)
}
/// Which server answers.
pub(crate) const SERVER: &str = "uuid=here";
/// The probe's answer, with DEPRECATE_EOF.
pub(crate) fn probe(increment: &str) -> Vec<u8> {
    probe_in("", increment)
}
pub(crate) fn probe_in(sql_mode: &str, increment: &str) -> Vec<u8> {
    probe_of(sql_mode, increment, "0")
}
/// The same while the client's own insert_id waits for its INSERT.
pub(crate) fn probe_with_insert_id(id: &str) -> Vec<u8> {
    probe_of("", "1", id)
}
fn probe_of(sql_mode: &str, increment: &str, insert_id: &str) -> Vec<u8> {
    rows(&[sql_mode, "utf8mb4", "d", increment, insert_id, SERVER])
}
/// A result of one row, with DEPRECATE_EOF.
pub(crate) fn rows(row: &[&str]) -> Vec<u8> {
    let columns = row.len() as u8;
    let mut o = packet(1, &[columns]);
    for i in 0..columns {
        o.extend(def(2 + i));
    }
    let mut values = vec![];
    for s in row {
        values.push(s.len() as u8);
        values.extend(s.as_bytes());
    }
    o.extend(packet(2 + columns, &values));
    o.extend(packet(3 + columns, &[0xFE, 0, 0, 2, 0, 0, 0]));
    o
}
/// After an INSERT was prepared as number 7 in that sql_mode, whose key is its one parameter.
pub(crate) fn with_bound_key(sql_mode: &str) -> Rig {
    let mut r = rig(KeyForm::Integer, DEPRECATE_EOF);
    let text = b"INSERT INTO t (id, a) VALUES (?, 1)";
    r.say(&[&[COM_STMT_PREPARE], text.as_slice()].concat());
    r.answer(&probe_in(sql_mode, "1"));
    r.answer(&prepared(7, 1));
    r.output();
    r
}
pub(crate) fn prepared(id: u32, params: u16) -> Vec<u8> {
    let mut p = vec![0];
    p.extend(id.to_le_bytes());
    p.extend([0, 0]);
    p.extend(params.to_le_bytes());
    p.extend([0, 0, 0]);
    let mut o = packet(1, &p);
    for i in 0..params {
        o.extend(def(2 + i as u8));
    }
    o
}
pub(crate) fn stmt_prepare(r: &mut Rig, text: &str, increment: &str) -> String {
    let mut p = vec![COM_STMT_PREPARE];
    p.extend(text.as_bytes());
    let sent = r.say(&p);
    let sent = if has(&sent, "@@session.sql_mode") {
        r.answer(&probe(increment))
    } else {
        sent
    };
    String::from_utf8_lossy(&sent).into_owned()
}
pub(crate) fn execute(id: u32, rest: &[u8]) -> Vec<u8> {
    let mut p = vec![COM_STMT_EXECUTE];
    p.extend(id.to_le_bytes());
    p.extend([0, 1, 0, 0, 0]);
    p.extend(rest);
    p
}
/// What the server says of the statement that asks for columns.
pub(crate) fn described(columns: &[&str]) -> Vec<u8> {
    let count = u8::try_from(columns.len()).unwrap();
    let mut answer = packet(1, &[0, 90, 0, 0, 0, count, 0, 0, 0, 0, 0, 0]);
    for (sequence, column) in (2..).zip(columns) {
        let mut definition = vec![];
        for text in ["def", "", "t", "t", column, column] {
            definition.push(u8::try_from(text.len()).unwrap());
            definition.extend(text.as_bytes());
        }
        definition.extend([12, 63, 0, 20, 0, 0, 0, 8, 0, 0, 0, 0, 0]);
        answer.extend(packet(sequence, &definition));
    }
    answer
}
