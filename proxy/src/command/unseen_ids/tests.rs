//! SchemaRefresh of one program, and what others note meanwhile.

use keywright_session::{Event, StatementOutcome};
use keywright_store::switch::PeerReport;

use super::*;

const TEXT: &str = "[store]\nurl = \"mysql://k@127.0.0.1/k\"\n[[listener]]\nbind = \"127.0.0.1:1\"\nupstream = \"127.0.0.1:2\"\n\
                    [[rule]]\ntable = \"d.t\"\ncolumn = \"id\"\nkey = \"segment:t\"\nmode = \"observe\"\nfence = true\n";
const LOOK_MS: u64 = 60_000;

fn looked(server: &str, next: u64) -> Counting {
    Counting {
        server: server.to_owned(),
        at: format!("then {next}"),
        counts: vec![Count {
            rule: 0,
            table: "d.t".to_owned(),
            next,
        }],
        accounts: vec!["batch@there (3)".to_owned()],
        own_host: "here".to_owned(),
    }
}

/// A program that looks every minute.
struct Program {
    config: Config,
    counters: Counters,
    unseen_ids: UnseenIds,
    at_ms: u64,
    others: Vec<PeerReport>,
}

impl Program {
    fn new() -> Program {
        Program {
            config: Config::parse(TEXT).unwrap(),
            counters: Counters::default(),
            unseen_ids: UnseenIds::default(),
            at_ms: 1_000 * LOOK_MS,
            others: Vec::new(),
        }
    }

    fn goes_by(&self, ids: Option<u64>) {
        let tally = self.counters.tally(["d.t.id"].into_iter());
        let outcome = StatementOutcome::Native(ids);
        let rule = Some(0);
        tally.note(&mut vec![Event { rule, outcome }]);
    }

    /// Another program notes, so long before the next look.
    fn other_notes(&mut self, ids: u64, unknown: u64, before_ms: u64) {
        self.others = vec![PeerReport {
            program: "other".to_owned(),
            rule: rule_name(&self.config.rules[0]),
            native_inserts: NativeInserts { ids, unknown },
            at_ms: self.at_ms + LOOK_MS - before_ms,
        }];
    }

    fn report(&mut self, next: u64) -> String {
        self.at_ms += LOOK_MS;
        let peer_reports = PeerReports {
            at_ms: self.at_ms,
            reports: self.others.clone(),
        };
        // The same server behind two listeners.
        let looked = [looked("one", next), looked("one", next)];
        let own = native_inserts(&self.config, &self.counters, 0);
        let (config, counters) = (&self.config, &self.counters);
        let report =
            self.unseen_ids
                .learn(config, &looked.each_ref(), &own, &peer_reports, counters);
        report.into_iter().map(|unseen| unseen.report).collect()
    }
}

#[test]
fn ids_that_nothing_went_by_for_are_told() {
    let mut program = Program::new();
    assert_eq!(program.report(90), "");
    assert_eq!(program.report(100), "");
    program.goes_by(Some(10));
    assert_eq!(program.report(110), "");
    // Some of it is still under way.
    program.goes_by(Some(10));
    for next in [112, 120, 120, 123] {
        assert_eq!(program.report(next), "");
    }
    let unseen = program.report(123);
    assert!(
        unseen.contains("about 3 ids of d.t since then 120 UTC, the last before then 123"),
        "{unseen}"
    );
    assert!(
        unseen.contains("batch@there (3); the program comes from here"),
        "{unseen}"
    );
    // Nobody knows how many of these there were.
    program.goes_by(None);
    for next in [200, 200, 201] {
        assert_eq!(program.report(next), "");
    }
    assert!(program.report(201).contains("about 4 ids"));
    assert_eq!(program.report(201), "");
    // A counter that was set back.
    for next in [50, 50] {
        assert_eq!(program.report(next), "");
    }
    let figures = program
        .counters
        .render((&[], &[]), None, (&[], None))
        .unwrap();
    assert!(figures.contains("keywright_ids_unseen_total{rule=\"d.t.id\"} 4\n"));
    // Tables that were switched meanwhile begin anew.
    program.unseen_ids.forget();
    for next in [9_000, 9_500, 9_500, 9_500] {
        assert_eq!(program.report(next), "");
    }
}

#[test]
fn what_goes_by_another_program_is_no_strangers() {
    let mut program = Program::new();
    program.other_notes(1_000, 7, 1);
    for next in [100, 100, 100, 100] {
        assert_eq!(program.report(next), "");
        program.other_notes(1_000, 7, 1);
    }
    // It notes late what was read before.
    assert_eq!(program.report(150), "");
    assert_eq!(program.report(150), "");
    program.other_notes(1_050, 7, 1);
    for next in [150, 150] {
        assert_eq!(program.report(next), "");
        program.other_notes(1_050, 7, 1);
    }
    assert_eq!(program.report(155), "");
    program.other_notes(1_050, 7, 1);
    assert!(program.report(155).contains("about 5 ids"));
    // Statements of which it does not know how many.
    program.other_notes(1_050, 8, 1);
    assert_eq!(program.report(200), "");
    program.other_notes(1_050, 8, 1);
    assert_eq!(program.report(200), "");
}

#[test]
fn a_program_that_has_ended_is_waited_for_once() {
    let mut program = Program::new();
    for next in [100, 100, 100] {
        program.other_notes(0, 0, 1);
        assert_eq!(program.report(next), "");
    }
    // Nobody knows what went by it last.
    for next in [140, 140, 140, 140, 140, 140] {
        assert_eq!(program.report(next), "");
    }
    assert_eq!(program.report(142), "");
    assert!(program.report(142).contains("about 2 ids"));
    // Nor is anything unseen when the store has forgotten it.
    program.others.clear();
    program.goes_by(Some(5));
    for next in [147, 147, 147] {
        assert_eq!(program.report(next), "");
    }
}
