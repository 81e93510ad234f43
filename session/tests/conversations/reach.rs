//! What conversations have reached: ones that never come to something show nothing of it.

use std::collections::BTreeMap;

use keywright_session::{StatementOutcome, Step};

/// How often what was reached.
#[derive(Debug, Default)]
pub(crate) struct Reach {
    pub(crate) steps: u64,
    times: BTreeMap<&'static str, u64>,
}

/// Texts that only a session sends, and what they show.
const TEXTS: [(&[u8], &str); 12] = [
    (b"@@session.sql_mode", "asks for the state"),
    (b"SHOW CREATE TABLE `", "asks for a temporary table"),
    (b"\x16SELECT *", "asks for columns"),
    (b"\x16SELECT `id`", "asks for the key"),
    (b"SHOW WARNINGS", "asks for warnings"),
    (
        b"SELECT LAST_INSERT_ID() LIMIT 1",
        "asks for LAST_INSERT_ID()",
    ),
    (b"SET last_insert_id=", "corrects LAST_INSERT_ID()"),
    (b"PREPARE `keywright execute`", "prepares out of a text"),
    (b"LAST_INSERT_ID(?)", "prepares with room for keys"),
    (b"ROWNUM()", "numbers rows of a query"),
    (b"CASE WHEN LAST_INSERT_ID()=0", "numbers rows of a file"),
    (b"\xfa", "executes rows of parameters"),
];

impl Reach {
    /// What others have reached.
    pub(crate) fn add(&mut self, others: &Self) {
        self.steps += others.steps;
        for (&what, times) in &others.times {
            *self.times.entry(what).or_default() += times;
        }
    }

    pub(crate) fn note(&mut self, what: &'static str, is_so: bool) {
        if is_so {
            *self.times.entry(what).or_default() += 1;
        }
    }

    pub(crate) fn step(&mut self, step: Step) {
        self.steps += 1;
        let what = match step {
            Step::Forward(_) => "Forward",
            Step::Consumed(_) => "Consumed",
            Step::More { .. } => "More",
            Step::Blocked => "Blocked",
            Step::Keys(_) => "Keys",
            Step::Wait => "Wait",
            Step::Authenticate(_) => "Authenticate",
            Step::Show(_) => "Show",
            Step::Close => "Close",
        };
        self.note(what, true);
    }

    pub(crate) fn event(&mut self, what: StatementOutcome) {
        let label = match what {
            StatementOutcome::Rewritten => "Rewritten",
            StatementOutcome::Observed => "Observed",
            StatementOutcome::Native(Some(_)) => "Native, of a known number",
            StatementOutcome::Native(None) => "Native",
            StatementOutcome::Refused(construct) | StatementOutcome::Passed(construct) => construct,
        };
        self.note(label, true);
    }

    pub(crate) fn upstream(&mut self, bytes: &[u8]) {
        for (text, what) in TEXTS {
            if !self.times.contains_key(what) {
                let has = bytes.windows(text.len()).any(|part| part == text);
                self.note(what, has);
            }
        }
    }

    /// What was never reached of what must be.
    pub(crate) fn missing(&self) -> Vec<&'static str> {
        let others = [
            "Forward",
            "Consumed",
            "More",
            "Blocked",
            "Keys",
            "Wait",
            "Authenticate",
            "Show",
            "Close",
            "Rewritten",
            "Observed",
            "Native, of a known number",
            "Native",
            "explicit",
            "ambiguous_id",
            "several_rows",
            "insert_select_rows",
            "load_data_rows",
            "asks whether open",
            "takes other rules",
            "goes on",
            "cannot take other rules",
            "rewrites where it lies",
            "waits without an answer",
            "may not see a table",
        ];
        let texts = TEXTS.iter().map(|(_, what)| *what);
        let wanted = others.into_iter().chain(texts);
        wanted
            .filter(|what| !self.times.contains_key(what))
            .collect()
    }
}
