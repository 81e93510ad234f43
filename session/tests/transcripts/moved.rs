//! INSERT … SELECTs that bring their own keys and name no columns: what their values are for is known by the order that the
//! columns had when they were prepared, and that may change.

use std::sync::Arc;

use keywright_rewrite::{KeyForm, Unsupported};
use keywright_session::*;

use super::rig::*;

/// Its key is its own where `id` comes first, and asked for where it comes last.
const GIVEN: &str = "INSERT INTO t SELECT 7, a, NULL FROM u";
/// Its key is its own in each order of the columns.
const ALWAYS_GIVEN: &str = "INSERT INTO t SELECT 7, a, 8 FROM u";

const FIRST: [&str; 3] = ["id", "a", "b"];
const LAST: [&str; 3] = ["a", "b", "id"];

/// Its connection, and the count of changes that it shares with others.
struct Shared {
    r: Rig,
    schema: Arc<SchemaChanges>,
}

impl Shared {
    /// With a rule that was changed, and a statement that was prepared as number 7 while `id` came first.
    fn with(text: &str, change: impl FnOnce(&mut Rule)) -> Self {
        let (r, schema) = connected(change);
        let mut shared = Self { r, schema };
        let asked = stmt_prepare(&mut shared.r, text, "1");
        let sent = shared.r.tell(asked.into_bytes(), &FIRST);
        let prepare = [&[COM_STMT_PREPARE], text.as_bytes()].concat();
        assert!(sent.ends_with(&packet(0, &prepare)), "as it is: {sent:?}");
        shared.r.answer(&prepared(7, 0));
        shared.r.output();
        shared
    }

    /// Executes it, and answers as [`Rig::tell`]. Returns whether the server got the execution.
    fn goes_out(&mut self, columns: [&str; 3]) -> bool {
        let sent = self.r.say(&execute(7, &[]));
        let sent = self.r.tell(sent, &columns);
        let is_sent = sent.ends_with(&packet(0, &execute(7, &[])));
        let is_reset = sent.ends_with(&packet(0, &[COM_STMT_RESET, 7, 0, 0, 0]));
        assert_ne!(is_sent, is_reset, "{sent:?}");
        let answered = self.r.output();
        self.r.answer(&ok(0, 0));
        match is_sent {
            true => assert_eq!(self.r.output(), ok(0, 0)),
            false => assert!(
                has(&answered, "before its table was changed"),
                "{answered:?}"
            ),
        }
        is_sent
    }

    /// Executes it, where nothing may be asked.
    fn goes_out_at_once(&mut self) {
        let sent = self.r.say(&execute(7, &[]));
        assert_eq!(sent, packet(0, &execute(7, &[])));
        self.r.answer(&ok(1, 0));
        assert_eq!(self.r.output(), ok(1, 0));
    }
}

/// With a rule that was changed.
fn connected(change: impl FnOnce(&mut Rule)) -> (Rig, Arc<SchemaChanges>) {
    let mut r = rig(KeyForm::Integer, DEPRECATE_EOF | BULK);
    let schema = Arc::new(SchemaChanges::default());
    let mut rule = r.rule_in(Mode::Rewrite);
    change(&mut rule);
    let rules = Rules::new(vec![rule], false).with_schema(Arc::clone(&schema));
    r.s = Session::new(Arc::new(rules), r.facts());
    (r, schema)
}

#[test]
fn another_connection_moves_the_columns() {
    let mut shared = Shared::with(GIVEN, |_| ());
    shared.goes_out_at_once();
    shared.schema.note_defined();
    assert!(!shared.goes_out(LAST), "the server would make its key");
    assert!(!shared.goes_out(LAST), "nor the second time");
    assert!(shared.goes_out(FIRST), "they were moved back");
    shared.goes_out_at_once();
}

#[test]
fn somebody_moves_the_columns_past_the_program() {
    let mut shared = Shared::with(GIVEN, |_| ());
    shared.schema.note_schema_refresh(0, false);
    assert!(
        !shared.goes_out(LAST),
        "a refresh does not say what it missed"
    );
}

#[test]
fn this_connection_moves_the_columns() {
    let mut shared = Shared::with(GIVEN, |_| ());
    shared.r.query("ALTER TABLE t MODIFY id BIGINT AFTER b");
    shared.r.answer(&ok(0, 0));
    shared.r.output();
    assert!(!shared.goes_out(LAST));
}

#[test]
fn columns_that_stay_are_asked_for_once() {
    let mut shared = Shared::with(GIVEN, |_| ());
    for _ in 0..3 {
        shared.schema.note_schema_refresh(0, false);
        assert!(shared.goes_out(FIRST));
        shared.goes_out_at_once();
    }
    assert!(shared.r.requests.is_empty());
}

#[test]
fn another_key_of_its_own_goes_out() {
    let mut shared = Shared::with(ALWAYS_GIVEN, |_| ());
    shared.schema.note_defined();
    assert!(shared.goes_out(LAST));
    shared.goes_out_at_once();
}

#[test]
fn a_rule_that_passes_on_what_it_cannot_do_counts_it() {
    let pass = |rule: &mut Rule| rule.on_unsupported = OnUnsupported::Pass;
    let mut shared = Shared::with(GIVEN, pass);
    shared.schema.note_defined();
    shared.r.s.events().clear();
    assert!(shared.goes_out(LAST));
    let outcome = StatementOutcome::Passed(Unsupported::TableChanged.label());
    let is_it = |event: &Event| event.outcome == outcome;
    assert!(shared.r.s.events().iter().any(is_it));
}

#[test]
fn a_bulk_execution_is_judged_too() {
    let mut shared = Shared::with(GIVEN, |_| ());
    shared.schema.note_defined();
    let bulk = [COM_STMT_BULK_EXECUTE, 7, 0, 0, 0, 0, 0];
    let sent = shared.r.say(&bulk);
    let sent = shared.r.tell(sent, &LAST);
    assert!(!sent.ends_with(&packet(0, &bulk)), "{sent:?}");
    assert!(has(&shared.r.output(), "before its table was changed"));
}

#[test]
fn what_is_kept_of_it_counts_as_memory() {
    let memory = Arc::new(super::prepared::Memory::default());
    let mut r = rig_with_budget(Arc::<super::prepared::Memory>::clone(&memory));
    let sent = stmt_prepare(&mut r, GIVEN, "1");
    assert!(sent.contains("SELECT * FROM"), "{sent}");
    r.answer(&described(&FIRST));
    r.answer(&prepared(7, 0));
    assert_eq!(memory.taken(), GIVEN.len());
    r.say(&[COM_STMT_CLOSE, 7, 0, 0, 0]);
    assert_eq!(memory.taken(), 0, "closed");
}

/// What the server said then may be of before that.
#[test]
fn what_changes_while_it_is_asked_is_asked_for_again() {
    const ASKS: &str = "INSERT INTO t VALUES (NULL, 1, 2)";
    const QUERY: &str = "INSERT INTO t SELECT NULL, a, b FROM u";
    for (text, parameters) in [(GIVEN, 0), (ASKS, 1), (QUERY, 3)] {
        let (mut r, schema) = connected(|_| ());
        let asked = stmt_prepare(&mut r, text, "1");
        assert!(asked.contains("SELECT * FROM"), "{asked}");
        schema.note_defined();
        let sent = r.answer(&described(&FIRST));
        r.tell(sent, &FIRST);
        r.answer(&prepared(7, parameters));
        r.output();
        for is_asked in [true, false] {
            let sent = r.say(&execute(7, &[]));
            let asks = has(&sent, "SELECT ");
            assert_eq!(asks, is_asked, "{text}: {}", String::from_utf8_lossy(&sent));
            let sent = r.tell(sent, &FIRST);
            let execution = [COM_STMT_EXECUTE, 7, 0, 0, 0];
            assert!(sent.windows(5).any(|part| part == execution), "{text}");
            r.answer(&ok(1, 100));
            r.output();
        }
        // The same of an execution.
        schema.note_defined();
        let mut sent = r.say(&execute(7, &[]));
        while !has(&sent, "SELECT * FROM") {
            sent = r.tell_once(&sent, &FIRST).expect(text);
        }
        schema.note_defined();
        let mut is_asked = false;
        let mut sent = r.answer(&described(&FIRST));
        for _ in 0..2 {
            is_asked |= has(&sent, "SELECT * FROM");
            while let Some(next) = r.tell_once(&sent, &FIRST) {
                sent = next;
                is_asked |= has(&sent, "SELECT * FROM");
            }
            r.answer(&ok(1, 100));
            sent = r.say(&execute(7, &[]));
        }
        assert!(is_asked, "{text}");
    }
}

#[test]
fn an_id_that_is_not_sure_is_refused_where_rows_get_keys() {
    let text = "INSERT INTO t VALUES (7, 1, NULL), (8, 2, NULL) ON DUPLICATE KEY UPDATE a = 3";
    let (mut r, schema) = connected(|rule| rule.on_ambiguous_id = OnAmbiguousId::Refuse);
    let asked = stmt_prepare(&mut r, text, "1");
    let sent = r.tell(asked.into_bytes(), &FIRST);
    assert!(has(&sent, "INSERT"), "each row brings its own key");
    r.answer(&prepared(7, 0));
    r.output();
    let sent = r.say(&execute(7, &[]));
    assert!(sent.ends_with(&packet(0, &execute(7, &[]))), "{sent:?}");
    r.answer(&ok(2, 0));
    assert_eq!(r.output(), ok(2, 0));
    schema.note_defined();
    let sent = r.say(&execute(7, &[]));
    let sent = r.tell(sent, &LAST);
    let is_sent = sent.ends_with(&packet(0, &execute(7, &[])));
    assert!(!is_sent, "now the last column is the key: {sent:?}");
    assert!(has(&r.output(), "cannot tell the first id"));
    assert!(r.requests.is_empty());
}
