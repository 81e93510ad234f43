//! The client's next command: what it is, and whether it can be passed on untouched.

use keywright_core::Cause;
use keywright_rewrite::{
    InsertHead, Kind, PrepareSource, Sight, TableName, Unread, kind, load_target, prepare_source,
    sight, split, tables_touched, use_target,
};

use crate::answer::Shape;
use crate::bytes::{HEADER_BYTES, Header};
use crate::context::{is_harmless_set, sets_insert_id};
use crate::packets::{COM_QUERY, COM_STMT_PREPARE, write_error};
use crate::session::{After, Gather, Session, Turn};
use crate::step::Step;

/// Bytes of a statement too long to be gathered that are looked at.
const HEAD_BYTES_MAX: usize = 4096;

/// What is known of one statement before it is carried out.
enum Look {
    /// Pass it on.
    Pass(After),
    /// It is an INSERT or REPLACE on a table with a rule, or may be.
    Insert,
    /// It would be one, in a shape that cannot be rewritten.
    Unsupported(TableName, keywright_rewrite::Unsupported),
}

impl Session {
    pub(crate) fn command(&mut self, bytes: &[u8]) -> Step {
        let Some(header) = Header::read(bytes) else {
            return Step::More {
                at_least: HEADER_BYTES,
            };
        };
        if self.drop_command {
            if bytes.len() < header.total() {
                return Step::More {
                    at_least: header.total(),
                };
            }
            self.drop_command = header.continues();
            return Step::Consumed(header.total());
        }
        if header.len == 0 {
            return self.malformed();
        }
        let Some(&command) = bytes.get(HEADER_BYTES) else {
            return Step::More {
                at_least: HEADER_BYTES + 1,
            };
        };
        match command {
            COM_QUERY => self.query(header, bytes),
            COM_STMT_PREPARE => self.prepare(header, bytes),
            0x17 => self.execute(header, bytes),
            0x18 => self.long_data(header, bytes),
            0x19 => self.close(header, bytes),
            0x1A => self.reset_statement(header, bytes),
            0x1C => self.pass(header, bytes, Shape::Fetch, After::Nothing),
            // COM_QUIT
            0x01 => self.pass(header, bytes, Shape::None, After::Nothing),
            0x02 => match whole(header, bytes) {
                Some(name) => {
                    let after = After::Database(name.to_vec());
                    self.pass(header, bytes, Shape::Simple, after)
                }
                None => self.gather_command(header, bytes),
            },
            // COM_FIELD_LIST, COM_STATISTICS, COM_PROCESS_INFO
            0x04 => self.pass(header, bytes, Shape::Fields, After::Nothing),
            0x09 => self.pass(header, bytes, Shape::OnePacket, After::Nothing),
            0x0A => self.pass(header, bytes, Shape::Results, After::Nothing),
            // COM_CHANGE_USER
            0x11 if whole(header, bytes).is_some() => Step::Authenticate(header.total()),
            0x11 => self.gather_command(header, bytes),
            // COM_BINLOG_DUMP, COM_TABLE_DUMP, COM_BINLOG_DUMP_GTID, COM_CLONE
            0x12 | 0x13 | 0x1E | 0x20 => self.go_blind(),
            // COM_SET_OPTION
            0x1B => match whole(header, bytes) {
                Some(option) => {
                    let after = After::Multi(option.first() == Some(&0));
                    self.pass(header, bytes, Shape::Simple, after)
                }
                None => self.gather_command(header, bytes),
            },
            // COM_RESET_CONNECTION
            0x1F => self.pass(header, bytes, Shape::Simple, After::Reset),
            // MariaDB's COM_STMT_BULK_EXECUTE and COM_MULTI: the capabilities are not offered.
            0xFA | 0xFE => self.malformed(),
            // COM_CREATE_DB, COM_DROP_DB, COM_REFRESH, COM_SHUTDOWN, COM_PROCESS_KILL, COM_DEBUG, COM_PING, …: OK, EOF or ERR.
            _ => self.pass(header, bytes, Shape::Simple, After::Nothing),
        }
    }

    /// Waits for the whole command; one that is too long for that breaks the protocol.
    fn gather_command(&mut self, header: Header, bytes: &[u8]) -> Step {
        if header.continues() || header.len > self.facts.limits.rewrite_bytes_max {
            return self.malformed();
        }
        Step::More {
            at_least: header.total().max(bytes.len() + 1),
        }
    }

    fn query(&mut self, header: Header, bytes: &[u8]) -> Step {
        let Some(text) = whole(header, bytes) else {
            if header.continues() || header.len > self.facts.limits.rewrite_bytes_max {
                return self.long_query(header, bytes);
            }
            return Step::More {
                at_least: header.total(),
            };
        };
        if self.is_several(text) {
            return self.several(header, bytes, text);
        }
        let look = match self.look(text) {
            Ok(look) => look,
            Err(()) => return self.ask_context(),
        };
        match look {
            Look::Insert => self.insert(header, bytes, text),
            Look::Pass(after) => self.pass_query(header, bytes, text, after),
            Look::Unsupported(table, what) => match self.rule_of(&table) {
                Some(rule) => self.unsupported(header, bytes, rule, what),
                None => self.pass_query(header, bytes, text, After::Unknown),
            },
        }
    }

    /// Passes a statement on, after LAST_INSERT_ID() was brought up to date if it could see it.
    pub(crate) fn pass_query(
        &mut self,
        header: Header,
        bytes: &[u8],
        text: &[u8],
        after: After,
    ) -> Step {
        let sight = sight(text, &self.context.modes);
        if self.pending_lid.is_some() && sight != Sight::Blind {
            return self.update_lid();
        }
        if sight == Sight::Sees || may_set_lid(kind(text, &self.context.modes)) {
            self.lid = None;
        }
        self.pass(header, bytes, Shape::Results, after)
    }

    /// Sends `DO LAST_INSERT_ID(k)` before the command, which is looked at again afterwards.
    pub(crate) fn update_lid(&mut self) -> Step {
        let id = self.pending_lid.unwrap_or(0);
        self.own_query(format!("DO LAST_INSERT_ID({id})").as_bytes(), Gather::Lid)
    }

    /// Asks the server what must be known of its state before the command is looked at again.
    pub(crate) fn ask_context(&mut self) -> Step {
        self.own_query(crate::context::PROBE, Gather::Context)
    }

    pub(crate) fn own_query(&mut self, text: &[u8], gather: Gather) -> Step {
        crate::packets::write_command(COM_QUERY, text, &mut self.up);
        self.answer.expect(Shape::Results);
        self.turn = Turn::Gather(gather);
        Step::Consumed(0)
    }

    /// Looks at one statement. `Err`: the server's modes must be known first.
    fn look(&mut self, text: &[u8]) -> Result<Look, ()> {
        let modes = self.context.modes;
        let names = |text: &[u8]| {
            let tables = tables_touched(text, &modes).unwrap_or_default();
            let database = self.context.database.clone().unwrap_or_default();
            let full =
                |name: TableName| (name.schema.unwrap_or_else(|| database.clone()), name.table);
            tables.into_iter().map(full).collect::<Vec<_>>()
        };
        Ok(match kind(text, &modes) {
            Kind::Insert | Kind::Replace => {
                if self.context.insert_id_set {
                    self.context.insert_id_set = false;
                    return Ok(Look::Pass(After::Nothing));
                }
                if !self.may_be_ruled(text) {
                    return Ok(Look::Pass(After::Nothing));
                }
                if !self.context.known {
                    return Err(());
                }
                Look::Insert
            }
            Kind::LoadData => {
                if !self.context.known {
                    return Err(());
                }
                match load_target(text, &modes) {
                    Some(table) => {
                        Look::Unsupported(table, keywright_rewrite::Unsupported::LoadData)
                    }
                    None => Look::Pass(After::Nothing),
                }
            }
            Kind::Use => match use_target(text, &modes) {
                Some(name) => Look::Pass(After::Database(name)),
                None => Look::Pass(After::Unknown),
            },
            Kind::Set => {
                self.context.insert_id_set |= sets_insert_id(text);
                Look::Pass(if is_harmless_set(text) {
                    After::Nothing
                } else {
                    After::Unknown
                })
            }
            Kind::Prepare | Kind::ExecuteImmediate => self.look_into(text)?,
            Kind::CreateTemporary => Look::Pass(After::Tables {
                dropped: Vec::new(),
                made: names(text),
                unknown: false,
            }),
            Kind::DropTable => Look::Pass(After::Tables {
                dropped: names(text),
                made: Vec::new(),
                unknown: false,
            }),
            Kind::SetStatement
            | Kind::Execute
            | Kind::Call
            | Kind::Compound
            | Kind::Other
            | Kind::Ddl => Look::Pass(After::Unknown),
            Kind::Empty
            | Kind::Select
            | Kind::With
            | Kind::OtherQuery
            | Kind::Update
            | Kind::Delete
            | Kind::Show
            | Kind::Explain
            | Kind::Analyze
            | Kind::Do
            | Kind::Handler
            | Kind::Lock
            | Kind::Unlock
            | Kind::Flush
            | Kind::Kill
            | Kind::Deallocate
            | Kind::Begin
            | Kind::Commit
            | Kind::Rollback
            | Kind::Savepoint
            | Kind::Xa
            | Kind::CreateRoutine => Look::Pass(After::Nothing),
        })
    }

    /// PREPARE … FROM and EXECUTE IMMEDIATE of a text: an INSERT on a rule's table inside would need new keys at every EXECUTE.
    fn look_into(&mut self, text: &[u8]) -> Result<Look, ()> {
        if !self.context.known {
            return Err(());
        }
        let modes = self.context.modes;
        Ok(match prepare_source(text, &modes) {
            PrepareSource::Text { text, .. } => match InsertHead::read(&text, &modes) {
                Ok(head) => {
                    Look::Unsupported(head.table, keywright_rewrite::Unsupported::TextPrepare)
                }
                Err(Unread::Refused | Unread::Unsupported(_)) => Look::Pass(After::Unknown),
            },
            PrepareSource::Computed { .. } | PrepareSource::Unreadable => {
                Look::Pass(After::Unknown)
            }
        })
    }

    /// A statement too long to be gathered: passed on unless it is for a table with a rule.
    fn long_query(&mut self, header: Header, bytes: &[u8]) -> Step {
        let head = bytes.get(HEADER_BYTES + 1..).unwrap_or_default();
        if head.len() < HEAD_BYTES_MAX {
            return Step::More {
                at_least: HEADER_BYTES + 1 + HEAD_BYTES_MAX,
            };
        }
        let modes = self.context.modes;
        match kind(head, &modes) {
            Kind::Insert | Kind::Replace => {
                if !self.context.known {
                    return self.ask_context();
                }
                let free = InsertHead::read(head, &modes)
                    .is_ok_and(|head| self.rule_of(&head.table).is_none());
                if free {
                    return self.pass(header, bytes, Shape::Results, After::Unknown);
                }
                write_error(
                    Cause::PacketTooLarge,
                    "keywright-proxy: statement on a table with a rule is longer than rewrite_bytes_max",
                    1,
                    &mut self.down,
                );
                Step::Close
            }
            _ => self.pass(header, bytes, Shape::Results, After::Unknown),
        }
    }

    fn is_several(&self, text: &[u8]) -> bool {
        self.allows_several()
            && memchr::memchr_iter(b';', text).any(|at| {
                text.get(at + 1..)
                    .is_some_and(|rest| !rest.iter().all(u8::is_ascii_whitespace))
            })
    }

    /// Several statements in one text: passed on if none of them is for a table with a rule.
    fn several(&mut self, header: Header, bytes: &[u8], text: &[u8]) -> Step {
        if !self.context.known {
            return self.ask_context();
        }
        let modes = self.context.modes;
        let pieces = split(text, &modes);
        if pieces.len() == 1 {
            return match self.look(text) {
                Ok(Look::Insert) => self.insert(header, bytes, text),
                Ok(Look::Pass(after)) => self.pass_query(header, bytes, text, after),
                Ok(Look::Unsupported(table, what)) => match self.rule_of(&table) {
                    Some(rule) => self.unsupported(header, bytes, rule, what),
                    None => self.pass_query(header, bytes, text, After::Unknown),
                },
                Err(()) => self.ask_context(),
            };
        }
        let (mut dropped, mut made) = (Vec::new(), Vec::new());
        // After a USE, SET or CALL the rest is read in a state that nobody knows yet.
        let mut changed = false;
        let what = keywright_rewrite::Unsupported::Several;
        for piece in &pieces {
            let piece = text.get(piece.range.clone()).unwrap_or_default();
            let table = match self.look(piece) {
                Err(()) => return self.ask_context(),
                Ok(Look::Insert) => match InsertHead::read(piece, &modes) {
                    Ok(head) => Some(head.table),
                    Err(Unread::Refused) => None,
                    Err(Unread::Unsupported(_)) => return self.refuse_unsupported(header, what),
                },
                Ok(Look::Unsupported(table, _)) => Some(table),
                Ok(Look::Pass(after)) => {
                    match after {
                        After::Tables {
                            dropped: gone,
                            made: new,
                            ..
                        } => {
                            dropped.extend(gone);
                            made.extend(new);
                        }
                        // DDL changes tables, not how names and texts are read.
                        After::Unknown if kind(piece, &modes) == Kind::Ddl => {}
                        After::Unknown | After::Database(_) => changed = true,
                        After::Nothing
                        | After::Lid(_)
                        | After::Reset
                        | After::Multi(_)
                        | After::Prepared { .. } => {}
                    }
                    None
                }
            };
            let Some(table) = table else {
                continue;
            };
            if changed && self.rules.may_match(table.schema.as_deref(), &table.table) {
                return self.refuse_unsupported(header, what);
            }
            if let Some(rule) = self.rule_of(&table) {
                return self.unsupported(header, bytes, rule, what);
            }
        }
        let after = After::Tables {
            dropped,
            made,
            unknown: true,
        };
        self.pass_query(header, bytes, text, after)
    }

    /// Whether an INSERT or REPLACE could be for a table with a rule, in whatever modes the server reads it.
    pub(crate) fn may_be_ruled(&self, text: &[u8]) -> bool {
        [false, true].into_iter().any(|ansi_quotes| {
            let modes = keywright_rewrite::Modes {
                ansi_quotes,
                ..self.context.modes
            };
            match InsertHead::read(text, &modes) {
                Ok(head) => self
                    .rules
                    .may_match(head.table.schema.as_deref(), &head.table.table),
                Err(Unread::Refused) => false,
                Err(Unread::Unsupported(_)) => true,
            }
        })
    }

    /// The rule for a table as a statement names it; none for a temporary table that hides it.
    pub(crate) fn rule_of(&self, table: &TableName) -> Option<usize> {
        let schema = table
            .schema
            .as_deref()
            .or(self.context.database.as_deref())?;
        let (rule, _) = self.rules.find(schema, &table.table)?;
        let hidden = self.context.temporary.iter().any(|(of, name)| {
            self.rules.same_name(of, schema) && self.rules.same_name(name, &table.table)
        });
        (!hidden).then_some(rule)
    }
}

/// The payload after the command byte, if the packet has come whole and is the only one.
pub(crate) fn whole(header: Header, bytes: &[u8]) -> Option<&[u8]> {
    if header.continues() {
        return None;
    }
    bytes.get(HEADER_BYTES + 1..header.total())
}

/// Whether a statement of that kind may change LAST_INSERT_ID() although its text does not name it.
fn may_set_lid(kind: Kind) -> bool {
    match kind {
        Kind::Insert
        | Kind::Replace
        | Kind::LoadData
        | Kind::SetStatement
        | Kind::Prepare
        | Kind::Execute
        | Kind::ExecuteImmediate
        | Kind::Call
        | Kind::Compound
        | Kind::Other
        | Kind::Set
        | Kind::Analyze => true,
        Kind::Empty
        | Kind::Select
        | Kind::With
        | Kind::OtherQuery
        | Kind::Update
        | Kind::Delete
        | Kind::Show
        | Kind::Explain
        | Kind::Do
        | Kind::Handler
        | Kind::Lock
        | Kind::Unlock
        | Kind::Flush
        | Kind::Kill
        | Kind::Use
        | Kind::Deallocate
        | Kind::Begin
        | Kind::Commit
        | Kind::Rollback
        | Kind::Savepoint
        | Kind::Xa
        | Kind::CreateTemporary
        | Kind::DropTable
        | Kind::CreateRoutine
        | Kind::Ddl => false,
    }
}
