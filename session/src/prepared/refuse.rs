//! Prepared statements, and executions of them, that are refused.

use keywright_core::Cause;
use keywright_rewrite::Unsupported;
use keywright_wire::bytes::Header;
use keywright_wire::packets::write_close;

use crate::connection::Connection;
use crate::job::Job;
use crate::judge::Reason;
use crate::step::Step;

impl Connection {
    /// An execution is needed whole.
    pub(crate) fn refuse_long_execution(&mut self) -> Step {
        self.refuse_long(
            "keywright: parameters of a statement on a table with a rule are longer than rewrite_bytes_max",
        )
    }

    /// Refuses an execution. What was sent as long data for it must not become part of the next one.
    pub(crate) fn refuse_execution(&mut self, header: Header, id: u32, what: Unsupported) -> Step {
        self.forget_long_data(id);
        let rule = self.rule_of_statement(id);
        self.refuse_unsupported(header, rule, what)
    }

    pub(crate) fn rule_of_statement(&self, id: u32) -> Option<usize> {
        self.statements
            .ours
            .get(&id)
            .map(|statement| statement.rule)
    }

    /// Refuses an execution. What was sent as long data for it must not become part of the next one.
    pub(crate) fn refuse_select_execution(
        &mut self,
        header: Header,
        id: u32,
        what: Unsupported,
    ) -> Step {
        self.forget_long_data(id);
        let select = self.statements.selects.get(&id);
        let rule = select.map(|select| select.rule);
        self.refuse_unsupported(header, rule, what)
    }

    /// The server counts other parameters in a statement that it has prepared than were read in it, so values would go to others than their
    /// own. It is closed; the client's command ends with that.
    pub(crate) fn refuse_other_parameters(
        &mut self,
        statement: u32,
        rule: Option<usize>,
        sequence: u8,
    ) {
        write_close(statement, &mut self.up);
        let reason = Reason::Unsupported(Unsupported::OtherParameters);
        self.tell_refused(rule, reason, sequence);
    }

    /// The same of another text of a statement, which was prepared for the execution at the front.
    pub(crate) fn fail_other_parameters(&mut self, statement: u32, id: u32) -> Job {
        let select = || self.statements.selects.get(&id).map(|select| select.rule);
        let rule = self.rule_of_statement(id).or_else(select);
        let sequence = self.table_report.answer_sequence.unwrap_or(1);
        self.refuse_other_parameters(statement, rule, sequence);
        self.shown_row_count = None;
        self.forget_command();
        self.forget_long_data_of_any(id);
        Job::Answered
    }

    pub(crate) fn refuse_statement(&mut self, header: Header) -> Step {
        let message = "keywright: too many prepared statements on tables with rules";
        self.refuse(header, Cause::MemoryFull, message)
    }

    pub(crate) fn refuse_texts(&mut self, header: Header) -> Step {
        let message = "keywright: statement buffer limit reached by texts of prepared statements (memory_bytes_max)";
        self.refuse(header, Cause::MemoryFull, message)
    }
}
