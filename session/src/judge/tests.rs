//! What each fact comes to by a lax rule and by a strict one.

use super::*;

const TWICE: Unsupported = Unsupported::SelectWith(SelectConstruct::Effects);
const LEFT_BEHIND: Unsupported = Unsupported::SelectWith(SelectConstruct::NotRepeatable);

/// A rule that gives keys and forbids nothing that it need not.
const LAX: Policy = Policy {
    mode: Mode::Rewrite,
    on_explicit: OnExplicit::Keep,
    on_unsupported: OnUnsupported::Pass,
    on_ambiguous_id: OnAmbiguousId::First,
    several_rows: SeveralRows::Spaced,
    repeatable: true,
    has_ahead: false,
};
/// One that forbids what it can.
const STRICT: Policy = Policy {
    on_explicit: OnExplicit::Refuse,
    on_unsupported: OnUnsupported::Refuse,
    on_ambiguous_id: OnAmbiguousId::Refuse,
    repeatable: false,
    ..LAX
};
/// A statement whose rows want keys.
const PLAIN: Facts = Facts {
    own_keys: OwnKeys::No,
    wants_keys: true,
    keys: Keys::Single,
    is_id_unsure: false,
    obstacle: None,
    obstacle_unrepeatable: None,
};

#[test]
fn several_keys_that_do_not_follow_from_the_first_are_refused_unless_the_rule_lets_them() {
    use Verdict::{Leave, Pass, Refuse, Rewrite};
    let of = |several_rows| Policy {
        several_rows,
        ..LAX
    };
    let uneven = Unsupported::SelectWith(SelectConstruct::UnevenKeys);
    for (keys, refused, apart) in [
        (Keys::Single, Rewrite, Rewrite),
        (Keys::Several, Refuse(Reason::SeveralRows), Rewrite),
        (Keys::Numbered, Refuse(Reason::SeveralRows), Leave(uneven)),
        (
            Keys::Loaded,
            Refuse(Reason::SeveralLoaded),
            Refuse(Reason::SeveralLoaded),
        ),
    ] {
        let facts = Facts { keys, ..PLAIN };
        assert_eq!(decide(of(SeveralRows::Spaced), &facts), Rewrite);
        assert_eq!(decide(of(SeveralRows::Refused), &facts), refused);
        assert_eq!(decide(of(SeveralRows::Apart), &facts), apart);
        // What wants none is no matter.
        let facts = Facts {
            wants_keys: false,
            ..facts
        };
        assert_eq!(decide(of(SeveralRows::Refused), &facts), Pass);
    }
}

#[test]
fn each_fact_has_its_verdict() {
    use Verdict::{Leave, Pass, Refuse, Rewrite};
    let given = Facts {
        own_keys: OwnKeys::Yes,
        wants_keys: false,
        ..PLAIN
    };
    let mixed = Facts {
        wants_keys: true,
        ..given
    };
    let perhaps = Facts {
        own_keys: OwnKeys::Perhaps,
        ..PLAIN
    };
    let unsure = Facts {
        is_id_unsure: true,
        ..PLAIN
    };
    let again = Facts {
        obstacle_unrepeatable: Some(LEFT_BEHIND),
        ..PLAIN
    };
    let never = Facts {
        obstacle: Some(TWICE),
        obstacle_unrepeatable: Some(TWICE),
        ..PLAIN
    };
    let all = Facts {
        own_keys: OwnKeys::Yes,
        is_id_unsure: true,
        ..never
    };
    let of = |what| Reason::Unsupported(what);
    // What is known, and what becomes of it by the lax rule and by the strict one.
    for (facts, lax, strict) in [
        (PLAIN, Rewrite, Rewrite),
        (given, Pass, Refuse(Reason::Explicit)),
        (mixed, Rewrite, Refuse(Reason::Explicit)),
        (perhaps, Rewrite, Refuse(Reason::Explicit)),
        (unsure, Rewrite, Refuse(Reason::AmbiguousId)),
        (again, Rewrite, Refuse(of(LEFT_BEHIND))),
        (never, Leave(TWICE), Refuse(of(TWICE))),
        (all, Leave(TWICE), Refuse(Reason::Explicit)),
    ] {
        assert_eq!(decide(LAX, &facts), lax, "{facts:?}");
        assert_eq!(decide(STRICT, &facts), strict, "{facts:?}");
        // One that observes counts what would have been, had it given keys.
        let observing = |policy| Policy {
            mode: Mode::Observe,
            ..policy
        };
        for (policy, would) in [(LAX, lax), (STRICT, strict)] {
            let counted = match would {
                Rewrite => Some(StatementOutcome::Observed),
                Pass => None,
                Leave(what) => Some(StatementOutcome::Passed(what.label())),
                Refuse(reason) => Some(StatementOutcome::Passed(reason.label())),
                Verdict::Observe(_) => unreachable!(),
            };
            let verdict = decide(observing(policy), &facts);
            assert_eq!(verdict, Verdict::Observe(counted), "{facts:?}");
        }
    }
}

#[test]
fn one_word_of_a_rule_forbids_one_thing() {
    let refuses = |policy, facts| match decide(policy, &facts) {
        Verdict::Refuse(reason) => Some(reason.label()),
        Verdict::Rewrite | Verdict::Pass | Verdict::Observe(_) | Verdict::Leave(_) => None,
    };
    let all = Facts {
        own_keys: OwnKeys::Yes,
        is_id_unsure: true,
        obstacle_unrepeatable: Some(LEFT_BEHIND),
        ..PLAIN
    };
    let explicit = Policy {
        on_explicit: OnExplicit::Refuse,
        ..LAX
    };
    let ambiguous = Policy {
        on_ambiguous_id: OnAmbiguousId::Refuse,
        ..LAX
    };
    let unsupported = Policy {
        on_unsupported: OnUnsupported::Refuse,
        ..LAX
    };
    let unrepeatable = Policy {
        repeatable: false,
        ..unsupported
    };
    assert_eq!(refuses(LAX, all), None);
    assert_eq!(refuses(explicit, all), Some("explicit"));
    assert_eq!(refuses(ambiguous, all), Some("ambiguous_id"));
    assert_eq!(refuses(unsupported, all), None);
    assert_eq!(refuses(unrepeatable, all), Some("insert_select"));
}

#[test]
fn what_cannot_be_read_is_left_only_where_no_id_can_meet_another() {
    let refused = |policy, what| decide_unread(policy, what).is_err();
    let ahead = |policy| Policy {
        has_ahead: true,
        ..policy
    };
    let observing = Policy {
        mode: Mode::Observe,
        ..STRICT
    };
    assert!(refused(STRICT, TWICE));
    for policy in [LAX, observing] {
        assert!(!refused(policy, TWICE));
        assert!(refused(policy, Unsupported::TableAhead));
        assert!(refused(policy, Unsupported::TableUnshown));
        assert!(refused(policy, Unsupported::TableUnanswered));
        assert!(refused(ahead(policy), TWICE));
    }
}

#[test]
fn that_a_table_has_a_rule_is_said_only_where_that_is_known() {
    for (column, said) in [(Some("id"), "with a rule"), (None, "that may have a rule")] {
        let message = Reason::Unsupported(TWICE).message(column);
        assert!(
            message.ends_with(&format!(", on a table {said}")),
            "{message}"
        );
    }
}
