//! LOAD DATA into a table with a rule. The server numbers the rows with LAST_INSERT_ID(), which is set to 0 before. The session sets
//! it to its proper value before a statement can see it.
//!
//! The number of rows in a file of the server's is known only afterwards. As with INSERT … SELECT, a statement with too few keys fails
//! as a whole and is tried again with more. A client's file is gathered first, and its lines are counted.

use keywright_core::{Cause, KeyBatch};
use keywright_rewrite::{
    Flavour, KeyColumn, Kind, Load, LoadPlan, TableName, Unread, Unsupported, is_given_key,
    is_out_of_range, kind, load_target,
};
use keywright_wire::answer::{End, Shape};
use keywright_wire::bytes::{HEADER_BYTES, Header, Reader, write_packet};
use keywright_wire::packets::{error_text, last_packet, only_row, single_ok};
use keywright_wire::protocol::COM_QUERY;

use crate::answer::after::After;
use crate::answer::errors::write_error;
use crate::answer::last_insert_id::PendingLastInsertId;
use crate::connection::Connection;
use crate::insert::local_file::{File, Sending, Taking};
use crate::insert::select::{GROWTH, NOT_REPEATABLE, ROWS_FIRST};
use crate::job::{Gather, Job, Next};
use crate::rules::{Mode, OnAmbiguousId, OnExplicit, Rule};
use crate::server::probe::Probe;
use crate::server::question::KeyThere;
use crate::step::{KeyFailure, KeyRequest, StatementOutcome, Step};

/// Makes the server's LAST_INSERT_ID() what the rewritten statement expects.
pub(crate) const START: &[u8] = b"SET last_insert_id=0";
pub(crate) const ASK_LAST_ID: &[u8] = b"SELECT LAST_INSERT_ID() LIMIT 1";

/// A statement and how far it has come.
#[derive(Debug)]
pub(crate) struct Loading {
    pub(crate) rule: usize,
    pub(crate) plan: LoadPlan,
    /// Rows that the next or present try has keys for.
    rows: u64,
    /// What LAST_INSERT_ID() showed before.
    before: u64,
    pub(crate) phase: Phase,
    /// The client's file, which lies behind its command.
    pub(crate) file: Option<File>,
}

/// What is next, or under way.
#[derive(Debug)]
pub(crate) enum Phase {
    /// Keys are needed.
    Keys,
    /// LAST_INSERT_ID() is being made 0 for a try with these.
    Start(KeyBatch),
    /// The try with these can go out.
    Ready(KeyBatch),
    /// It went out; this was the first key.
    Sent(u64),
    /// The server is asked which file it wants.
    Asked,
    /// It has named the file, and the client is asked for it.
    Named,
    /// The client sends its file.
    Taking(Taking),
    /// The server gets the client's file.
    Sending(u64, Sending),
    /// The server has refused it, with this, before it got the client's file.
    Refused(Vec<u8>),
}

/// What becomes of a LOAD DATA.
enum LoadDecision {
    Try,
    /// It may have no keys of its own, and could only be undone if it has.
    Explicit,
    /// Which rows go in is not known, and the rule refuses that.
    AmbiguousId,
    Unsupported(&'static str),
}

fn decision(rule: &Rule, plan: &LoadPlan) -> LoadDecision {
    let refuses_given = plan.may_be_given() && rule.on_explicit == OnExplicit::Refuse;
    if refuses_given && !rule.repeatable {
        LoadDecision::Explicit
    } else if plan.may_skip() && rule.on_ambiguous_id == OnAmbiguousId::Refuse {
        LoadDecision::AmbiguousId
    } else if plan.reads() && !rule.repeatable {
        LoadDecision::Unsupported(
            "with a query that may read a view which could see LAST_INSERT_ID()",
        )
    } else if plan.is_local() {
        LoadDecision::Try
    } else if plan.has_effects() {
        LoadDecision::Unsupported("with a call or an assignment that must not be carried out twice")
    } else if !rule.repeatable {
        LoadDecision::Unsupported(NOT_REPEATABLE)
    } else {
        LoadDecision::Try
    }
}

impl Loading {
    /// What LAST_INSERT_ID() is to show: the first key, if its row went in. If a row failed, that was another one if a second
    /// key was made.
    fn shown_after(&self, first: u64, failed: bool, went_in: bool) -> PendingLastInsertId {
        let before = self.before;
        let if_above = |above| PendingLastInsertId::ToIfAbove {
            above,
            id: first,
            before,
        };
        match (failed, went_in) {
            (true, _) => if_above(first),
            (false, true) if self.plan.may_be_given() => if_above(0),
            (false, true) => PendingLastInsertId::To(first),
            (false, false) => PendingLastInsertId::To(before),
        }
    }
}

impl Connection {
    /// A LOAD DATA or LOAD XML.
    pub(crate) fn load(
        &mut self,
        header: Header,
        bytes: &[u8],
        text: &[u8],
        table: &TableName,
    ) -> Next {
        if self.stage.load.is_some() {
            return self.go_on_loading(header, bytes, text);
        }
        let index = match self.rule_now(table) {
            Ok(Some(index)) => index,
            Ok(None) => return self.pass_query(header, bytes, text, After::Nothing),
            Err(question) => return self.ask(&question).into(),
        };
        let Some(rule) = self.rules.rules().get(index).cloned() else {
            return self.pass_query(header, bytes, text, After::Nothing);
        };
        match self.key_there(table, index, &rule) {
            Err(question) => return self.ask(&question).into(),
            Ok(KeyThere::No) => return self.pass_query(header, bytes, text, After::Nothing),
            Ok(KeyThere::Narrow) => {
                return self.unsupported(header, bytes, Some(index), Unsupported::KeyNarrow);
            }
            Ok(KeyThere::Yes | KeyThere::Untold) => {}
        }
        let (schema, name) = self.named(table);
        if self.rules.is_ahead(index, schema, name) {
            return self.unsupported(header, bytes, Some(index), Unsupported::TableAhead);
        }
        if self.context.insert_id_set {
            return self.pass_query(header, bytes, text, After::Nothing);
        }
        if let Some(what) = self.rules.unsupported(index) {
            return self.unsupported(header, bytes, Some(index), what);
        }
        let modes = self.context.modes;
        let key = KeyColumn {
            name: rule.column.as_bytes(),
            form: rule.form,
            live: &[],
            watched: rule.watched,
            is_signed: rule.is_signed,
            is_strict: rule.repeatable,
        };
        let plan = Load::read(text, &modes).and_then(|load| load.plan(text, &modes, &key));
        let plan = match plan {
            Ok(plan) => plan,
            Err(Unread::Refused) => return self.pass_query(header, bytes, text, After::Nothing),
            Err(Unread::Unsupported(what)) => {
                return self.unsupported(header, bytes, Some(index), what);
            }
        };
        if let Some(step) = self.enter(header, Some(index)) {
            return step.into();
        }
        let decision = decision(&rule, &plan);
        if rule.mode == Mode::Observe {
            self.note(
                Some(index),
                match decision {
                    LoadDecision::Try => StatementOutcome::Observed,
                    LoadDecision::Explicit => StatementOutcome::Passed("explicit"),
                    LoadDecision::AmbiguousId => StatementOutcome::Passed("ambiguous_id"),
                    LoadDecision::Unsupported(what) => {
                        StatementOutcome::Passed(Unsupported::LoadWith(what).label())
                    }
                },
            );
            self.note_native(index, None);
            self.watch_fence(index);
            return self.pass_query(header, bytes, text, After::Nothing);
        }
        match decision {
            LoadDecision::Try => self.begin_loading(index, plan, text),
            LoadDecision::Explicit => self.refuse_explicit(header, index, &rule).into(),
            LoadDecision::AmbiguousId => self.refuse_ambiguous_id(header, index).into(),
            LoadDecision::Unsupported(what) => {
                let what = Unsupported::LoadWith(what);
                self.unsupported(header, bytes, Some(index), what)
            }
        }
    }

    fn begin_loading(&mut self, rule: usize, plan: LoadPlan, text: &[u8]) -> Next {
        let Some(before) = self.shown_last_insert_id() else {
            return match self.pending_last_insert_id {
                Some(_) => self.update_last_insert_id(false).into(),
                None => self
                    .ask_by_text(ASK_LAST_ID, Probe::ReadLastInsertId)
                    .into(),
            };
        };
        let is_local = plan.is_local();
        self.stage.load = Some(Loading {
            rule,
            plan,
            rows: ROWS_FIRST.min(self.facts.limits.select_rows_max).max(1),
            before,
            phase: if is_local { Phase::Asked } else { Phase::Keys },
            file: None,
        });
        if is_local {
            // It goes out unchanged and gets an empty file, so that the server checks it before the client sends anything.
            self.send_own(text);
            Job::Gathering(Gather::FileName).with(Step::Consumed(0))
        } else {
            self.ask_load_keys()
        }
    }

    /// A LOAD DATA that is to be prepared, and the table it is for. MySQL refuses that by itself.
    pub(crate) fn load_to_prepare(&self, text: &[u8]) -> Option<(TableName, Unsupported)> {
        let modes = &self.context.modes;
        let can = modes.server.flavour == Flavour::MariaDb && kind(text, modes) == Kind::LoadData;
        let table = load_target(text, modes).filter(|_| can)?;
        Some((table, Unsupported::LoadWith("in a prepared statement")))
    }

    /// The same, if a rule is for the table.
    pub(crate) fn prepared_load(&self, text: &[u8]) -> Option<(Option<usize>, Unsupported)> {
        let (table, what) = self.load_to_prepare(text)?;
        Some((Some(self.rule_behind(&table)?), what))
    }

    /// LAST_INSERT_ID() was asked for.
    pub(crate) fn answer_last_id(&mut self, answer: &[u8]) -> Job {
        let row = only_row(answer, 1, self.deprecates_eof());
        let id = row.and_then(|row| std::str::from_utf8(Reader(row).text()?).ok()?.parse().ok());
        match id {
            Some(id) => {
                self.last_insert_id = Some(id);
                Job::Idle
            }
            None => self.fail_own(answer),
        }
    }

    /// Keys for so many rows. No driver computes them from the first, so they need not be consecutive.
    fn ask_load_keys(&mut self) -> Next {
        let Some(load) = &self.stage.load else {
            return self.malformed().into();
        };
        let (rule, count) = (load.rule, load.rows);
        Job::Keys.with(Step::Keys(KeyRequest {
            rule: self.rules.configured(rule),
            count,
            contiguous: false,
        }))
    }

    /// The client's file has come whole, with so many rows at most.
    pub(crate) fn file_taken(&mut self, header: Header, rows: u64) -> Next {
        let rows_max = self.facts.limits.select_rows_max;
        let Some(load) = &mut self.stage.load else {
            return self.malformed().into();
        };
        let rule = load.rule;
        (load.rows, load.phase) = (rows, Phase::Keys);
        if rows <= rows_max {
            return self.ask_load_keys();
        }
        self.note(Some(rule), StatementOutcome::Refused("load_data_rows"));
        let message = too_many(rows_max);
        self.refuse(header, Cause::StatementUnsupported, &message)
            .into()
    }

    fn go_on_loading(&mut self, header: Header, bytes: &[u8], text: &[u8]) -> Next {
        let Some(load) = &mut self.stage.load else {
            return self.malformed().into();
        };
        let header = load.file.as_ref().map_or(header, |file| file.whole(header));
        match std::mem::replace(&mut load.phase, Phase::Keys) {
            Phase::Keys => {
                let (rule, rows) = (load.rule, load.rows);
                let Some(keys) = self.stage.keys.take() else {
                    return self.ask_load_keys();
                };
                match keys.and_then(|keys| self.fits(rule, keys, rows)) {
                    Ok(keys) => self.start_try(keys),
                    Err(failure) => self.refuse(header, failure.cause, &failure.message).into(),
                }
            }
            Phase::Ready(keys) => self.send_load(header, bytes, text, &keys),
            Phase::Refused(answer) => self.reply_after_file(header, answer).into(),
            Phase::Start(_)
            | Phase::Sent(_)
            | Phase::Asked
            | Phase::Named
            | Phase::Taking(_)
            | Phase::Sending(..) => self.malformed().into(),
        }
    }

    /// Answers the command, and the client's file if there is one, as the server did.
    fn reply_after_file(&mut self, header: Header, mut answer: Vec<u8>) -> Step {
        self.forget_command();
        if let Some(sequence) = answer.get_mut(HEADER_BYTES - 1) {
            *sequence = header.sequence.wrapping_add(1);
        }
        self.down.append(&mut answer);
        Step::Consumed(header.total())
    }

    fn start_try(&mut self, keys: KeyBatch) -> Next {
        if let Some(load) = &mut self.stage.load {
            load.phase = Phase::Start(keys);
        }
        self.send_own(START);
        Job::Gathering(Gather::LoadStart).with(Step::Consumed(0))
    }

    /// The rows' keys, if the column has room for them.
    fn fits(&self, index: usize, keys: KeyBatch, rows: u64) -> Result<KeyBatch, KeyFailure> {
        match self.rules.rules().get(index) {
            Some(rule) => self.in_bits(rule, keys, rows),
            None => Ok(keys),
        }
    }

    /// LAST_INSERT_ID() was made 0, or could not be.
    pub(crate) fn load_started(&mut self, end: Option<End>, answer: &[u8]) -> Job {
        let Some(load) = &mut self.stage.load else {
            return Job::Idle;
        };
        let before = load.before;
        load.phase = match std::mem::replace(&mut load.phase, Phase::Keys) {
            Phase::Start(keys) if matches!(end, Some(End::Ok(_))) => Phase::Ready(keys),
            _ => Phase::Refused(last_packet(answer).to_vec()),
        };
        (self.last_insert_id, self.pending_last_insert_id) =
            (None, Some(PendingLastInsertId::To(before)));
        Job::Idle
    }

    fn send_load(&mut self, header: Header, bytes: &[u8], text: &[u8], keys: &KeyBatch) -> Next {
        let Some(load) = &self.stage.load else {
            return self.malformed().into();
        };
        let index = load.rule;
        let rule = self.rules.rules().get(index);
        let may_give = rule.is_some_and(|rule| rule.on_explicit == OnExplicit::Keep);
        let attributes = match self.attributes(bytes) {
            Ok(attributes) => attributes,
            Err(what) => return self.refuse_unsupported(header, Some(index), what).into(),
        };
        let mut payload = Vec::with_capacity(text.len().saturating_add(256));
        payload.push(COM_QUERY);
        payload.extend_from_slice(attributes);
        let spliced = load.plan.splice(text, keys, may_give, &mut payload);
        let (Ok(()), Some(first)) = (spliced, keys.number(0)) else {
            let what = Unsupported::LoadWith("with keys in too many ranges");
            return self.refuse_unsupported(header, Some(index), what).into();
        };
        if let Some(load) = &mut self.stage.load {
            load.phase = Phase::Sent(first);
        }
        write_packet(&payload, 0, &mut self.up);
        self.answer.expect(Shape::Results);
        Job::Gathering(Gather::Load).with(Step::Consumed(0))
    }

    /// A try was answered: with the error for too few keys, or with the answer that the client gets.
    pub(crate) fn answer_load(&mut self, answer: &[u8]) -> Job {
        // Reports of progress may come before it.
        let last = last_packet(answer);
        let error = error_text(last);
        let too_few = error.is_some_and(|(number, message)| is_out_of_range(number, message));
        if too_few && self.grow_load() {
            return Job::Idle;
        }
        let Some(mut load) = self.take_stage().load else {
            return Job::Idle;
        };
        if load.file.is_some() && matches!(load.phase, Phase::Sent(_)) {
            // The file is still there, and is answered together with its command.
            load.phase = Phase::Refused(last.to_vec());
            self.stage.load = Some(load);
            return Job::Idle;
        }
        // Otherwise it was sent on together with its command.
        let then = match load.file {
            None => Job::Answered,
            Some(_) => Job::Idle,
        };
        let is_given = error.is_some_and(|(number, message)| is_given_key(number, message));
        let sequence = Header::read(last).map_or(1, |header| header.sequence);
        if too_few {
            self.note(Some(load.rule), StatementOutcome::Refused("load_data_rows"));
            let message = too_many(self.facts.limits.select_rows_max);
            let cause = Cause::StatementUnsupported;
            write_error(cause, &message, sequence, &mut self.down);
            return then;
        }
        if is_given {
            self.tell_explicit(load.rule, sequence);
            return then;
        }
        self.note(Some(load.rule), StatementOutcome::Rewritten);
        self.down.extend_from_slice(answer);
        if let Phase::Sent(first) | Phase::Sending(first, _) = load.phase {
            let failed = error.is_some();
            let went_in = single_ok(last).is_some_and(|(_, _, done)| done.affected_rows > 0);
            self.pending_last_insert_id = Some(load.shown_after(first, failed, went_in));
        }
        then
    }

    /// More keys for the next try; false if there may be no more.
    fn grow_load(&mut self) -> bool {
        let most = self.facts.limits.select_rows_max;
        let Some(load) = self.stage.load.as_mut().filter(|load| load.file.is_none()) else {
            return false;
        };
        let before = load.rows;
        (load.rows, load.phase) = (before.saturating_mul(GROWTH).min(most), Phase::Keys);
        load.rows > before
    }
}

fn too_many(rows_max: u64) -> String {
    format!(
        "keywright: LOAD DATA of more than {rows_max} rows into a table with a rule (select_rows_max)"
    )
}
