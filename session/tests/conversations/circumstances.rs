//! Rules, capabilities, limits: what a conversation takes place in.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use fastrand::Rng;
use keywright_rewrite::{Flavour, KeyForm, Server};
use keywright_session::{
    Budget, KeyColumnState, Limits, Mode, OnAmbiguousId, OnExplicit, OnUnsupported, Pattern, Rule,
    RuleAdmission, Rules, SchemaChanges, SessionFacts, SeveralRows, TableSnapshot, Traffic, View,
    ViewKey,
};
use keywright_wire::capability::{
    BULK_OPERATIONS, DEPRECATE_EOF, EXTENDED_METADATA, MULTI_STATEMENTS, QUERY_ATTRIBUTES,
};

use crate::pick;

/// Whose keys are in force on which server.
pub(crate) const HERE: &str = "uuid=here";
/// The rule that is switched, the last of them.
const SWITCHED: &str = "*.t";

/// What is known of a connection, and how it is driven.
#[derive(Debug, Clone)]
pub(crate) struct Circumstances {
    pub(crate) facts: SessionFacts,
    /// Without rules it is a passthrough.
    has_rules: bool,
    pub(crate) sees_status: bool,
    pub(crate) must_see_change_user: bool,
    lower_case: bool,
    tables: Tables,
    /// Bits, keys at once, watched, repeatable, signed: of the rules.
    rule: (u32, u64, bool, bool, bool),
    is_ahead: bool,
    pub(crate) begins_with: Option<Version>,
    budget_bytes: Option<usize>,
    /// Long INSERTs may be rewritten where they lie.
    pub(crate) in_place: bool,
    pub(crate) chunks: Chunks,
    /// In how many of 256 answers something is wrong.
    pub(crate) wrong: u8,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tables {
    None,
    Some,
    All,
}

/// In what parts bytes come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Chunks {
    Whole,
    /// As few as the session asks for.
    Asked,
    /// Up to so many bytes.
    UpTo(usize),
}

/// A version of the rules that may be switched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Version {
    pub(crate) rewrites: bool,
    pub(crate) is_held: bool,
    pub(crate) waits_for_store: bool,
    /// Its keys are in force: on any server, here too, elsewhere only.
    pub(crate) servers: u8,
    pub(crate) is_ahead: bool,
}

impl Version {
    pub(crate) fn any(random: &mut Rng) -> Self {
        Self {
            rewrites: random.bool(),
            is_held: random.u8(..) < 80,
            waits_for_store: random.u8(..) < 24,
            servers: pick(random, &[0, 0, 0, 1, 1, 2]),
            is_ahead: random.u8(..) < 24,
        }
    }
}

/// Memory of which there is so much.
#[derive(Debug)]
struct Memory(AtomicUsize);

impl Budget for Memory {
    fn take(&self, bytes: usize) -> bool {
        let take = |left: usize| left.checked_sub(bytes);
        let taken = self
            .0
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, take);
        taken.is_ok()
    }

    fn give_back(&self, bytes: usize) {
        self.0.fetch_add(bytes, Ordering::Relaxed);
    }
}

impl Circumstances {
    pub(crate) fn any(random: &mut Rng) -> Self {
        let is_maria = random.bool();
        let server = match is_maria {
            true => (Flavour::MariaDb, 101_119),
            false => (Flavour::MySql, 90_704),
        };
        let mut has = |of_256: u16, capability: u64| {
            u64::from(u16::from(random.u8(..)) < of_256) * capability
        };
        let (attributes, bulk) = match is_maria {
            true => (0, has(200, BULK_OPERATIONS) | has(60, EXTENDED_METADATA)),
            false => (has(100, QUERY_ATTRIBUTES), 0),
        };
        let several = has(130, MULTI_STATEMENTS);
        let capabilities = has(170, DEPRECATE_EOF) | several | attributes | bulk;
        Self {
            facts: SessionFacts {
                server: Server {
                    flavour: server.0,
                    version: server.1,
                },
                capabilities,
                collation: pick(random, &[45, 45, 45, 8, 28, 0]),
                user: Vec::new(),
                database: (random.u8(..) < 230).then(|| b"d".to_vec()),
                status: 2,
                limits: Limits {
                    rewrite_bytes_max: pick(random, &[3_000, 10_000, 200_000, 200_000]),
                    statements_max: pick(random, &[1, 3, 100]),
                    select_rows_max: pick(random, &[3, 100, 1_000, 1_000_000]),
                },
            },
            has_rules: random.u8(..) < 251,
            sees_status: random.u8(..) < 60,
            must_see_change_user: random.u8(..) < 40,
            lower_case: random.u8(..) < 60,
            tables: pick(
                random,
                &[Tables::None, Tables::None, Tables::Some, Tables::All],
            ),
            rule: (
                pick(random, &[63, 63, 53]),
                pick(random, &[u64::MAX, u64::MAX, 256]),
                random.u8(..) < 60,
                random.u8(..) < 200,
                random.bool(),
            ),
            is_ahead: random.u8(..) < 12,
            begins_with: (random.u8(..) < 110).then(|| Version {
                is_held: false,
                is_ahead: false,
                ..Version::any(random)
            }),
            budget_bytes: (random.u8(..) < 60).then(|| pick(random, &[100, 400, 10_000])),
            in_place: random.bool(),
            chunks: match random.u8(0..10) {
                0..=4 => Chunks::Whole,
                5 | 6 => Chunks::Asked,
                7 => Chunks::UpTo(1),
                8 => Chunks::UpTo(8),
                _ => Chunks::UpTo(60),
            },
            wrong: pick(random, &[0, 0, 0, 0, 0, 12]),
        }
    }

    pub(crate) fn has(&self, capability: u64) -> bool {
        self.facts.capabilities & capability != 0
    }

    pub(crate) fn is_maria(&self) -> bool {
        match self.facts.server.flavour {
            Flavour::MariaDb => true,
            Flavour::MySql => false,
        }
    }

    pub(crate) fn budget(&self) -> Option<Arc<dyn Budget>> {
        let memory = Memory(AtomicUsize::new(self.budget_bytes?));
        Some(Arc::new(memory))
    }

    fn list(&self, rewrites: bool) -> Vec<Rule> {
        let (bits_max, keys_max, watched, repeatable, is_signed) = self.rule;
        let rule = |table: &str| Rule {
            table: Pattern::parse(table).expect("a pattern"),
            column: "id".to_owned(),
            form: KeyForm::Integer,
            on_explicit: OnExplicit::Keep,
            on_unsupported: OnUnsupported::Refuse,
            on_ambiguous_id: OnAmbiguousId::First,
            several_rows: SeveralRows::Spaced,
            mode: Mode::Rewrite,
            bits_max,
            keys_max,
            watched,
            repeatable,
            is_steady: repeatable,
            is_signed,
            is_auto_increment: is_signed,
        };
        vec![
            Rule {
                on_explicit: OnExplicit::Refuse,
                on_ambiguous_id: OnAmbiguousId::Refuse,
                ..rule("d.strict")
            },
            Rule {
                mode: Mode::Observe,
                ..rule("*.seen")
            },
            Rule {
                on_unsupported: OnUnsupported::Pass,
                several_rows: SeveralRows::Refused,
                ..rule("*.pass*")
            },
            Rule {
                form: KeyForm::Text,
                ..rule("*.txt")
            },
            Rule {
                form: KeyForm::Bytes,
                ..rule("*.bin")
            },
            Rule {
                repeatable: false,
                watched: true,
                several_rows: SeveralRows::Apart,
                ..rule("*.once")
            },
            rule("*.narrow"),
            rule("*.without"),
            Rule {
                mode: match rewrites {
                    true => Mode::Rewrite,
                    false => Mode::Observe,
                },
                ..rule(SWITCHED)
            },
        ]
    }

    /// The forms of the keys of its rules.
    pub(crate) fn forms(&self) -> Vec<KeyForm> {
        self.list(true).iter().map(|rule| rule.form).collect()
    }

    /// The rules of a version; the first has the number 0.
    pub(crate) fn rules(
        &self,
        version: Option<(u64, Version)>,
        schema: &Arc<SchemaChanges>,
        traffic: &Arc<Traffic>,
    ) -> Arc<Rules> {
        if !self.has_rules {
            return Arc::new(Rules::new(Vec::new(), false));
        }
        let list = self.list(version.is_none_or(|(_, version)| version.rewrites));
        let tables: Vec<String> = list
            .iter()
            .map(|rule| rule.table.table().to_owned())
            .collect();
        let of_last = tables.len() - 1;
        let view = |name: &str, key| View {
            schema: "d".to_owned(),
            name: name.to_owned(),
            rule: of_last,
            key,
        };
        let mut rules = Rules::new(list, self.lower_case)
            .with_schema(Arc::clone(schema))
            .with_views(&[
                view("v", ViewKey::Column("nr".to_owned())),
                view("w", ViewKey::Unsupported("that does not show the key")),
            ]);
        if self.tables != Tables::None {
            let seen = |name: &str, key_column| TableSnapshot {
                schema: "d".to_owned(),
                name: name.to_owned(),
                key_column,
                is_not_null: None,
                traits: None,
            };
            let seen = [
                seen("t", KeyColumnState::Present),
                seen("strict", KeyColumnState::Present),
                seen("seen", KeyColumnState::Present),
                seen("narrow", KeyColumnState::TooNarrow),
                seen("txt", KeyColumnState::TooNarrow),
                seen("without", KeyColumnState::Missing),
            ];
            rules = rules.with_tables(&seen, self.tables == Tables::All);
        }
        if self.is_ahead || version.is_some_and(|(_, version)| version.is_ahead) {
            rules = rules.with_ahead([("d", "t")].into_iter());
        }
        if let Some((number, version)) = version {
            let admissions: Vec<RuleAdmission> = tables
                .iter()
                .map(|table| admission(table, version))
                .collect();
            rules = rules.with_traffic(traffic, number, &admissions);
        }
        Arc::new(rules)
    }
}

fn admission(table: &str, version: Version) -> RuleAdmission {
    let is_switched = table == "t" || table == "seen";
    let servers: Option<BTreeSet<String>> = match version.servers {
        0 => None,
        1 => Some([HERE.to_owned(), "uuid=other".to_owned()].into()),
        _ => Some(["uuid=other".to_owned()].into()),
    };
    RuleAdmission {
        name: table.to_owned(),
        is_held: is_switched && version.is_held,
        waits_for_store: is_switched && version.waits_for_store,
        is_switched,
        servers: servers.filter(|_| is_switched),
    }
}
