//! What the store holds of the switch, and what programs let each other know through it.

use keywright_core::Tag;

use crate::host::host_of;
use crate::switch::space::KeySpace;

/// How far the attempt is that is under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// There is none.
    None,
    /// Programs are to hold; tables are fenced when all do.
    Holding,
    /// It was given up: its fences are lifted, then programs are released.
    Ending,
    /// Back to native: the tags are closed, and there is only one way from here.
    Closed,
}

impl Phase {
    const ALL: [Self; 4] = [Self::None, Self::Holding, Self::Ending, Self::Closed];

    /// As it stands in the store.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Holding => "holding",
            Self::Ending => "ending",
            Self::Closed => "closed",
        }
    }

    pub(crate) fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|phase| phase.name() == name)
    }
}

/// A rule, by what it is for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct RuleName {
    /// Its pattern.
    pub tables: String,
    /// Its column.
    pub column: String,
}

/// A table of a server: its schema and its name.
pub type TableName = (String, String);

/// What is in force for a rule's tables, and what is to become of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InForce {
    /// The rule.
    pub rule: RuleName,
    /// Where keys come from; `None`: native auto-increment.
    pub keys: Option<KeySpace>,
    /// Where they are to come from, if the attempt is about this rule.
    pub next: Option<Option<KeySpace>>,
    /// Native again: counters went on from here, or are to.
    pub above: Option<u64>,
    /// The servers on which the keys are in force.
    pub servers: Vec<String>,
}

/// A program, as the store knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Peer {
    /// Unique to one run.
    pub program: String,
    /// Host and process, for people.
    pub holder: String,
    /// How long nothing was heard of it, milliseconds; 0 while the store's clock, set back, is before the moment when it was.
    pub silent_ms: u64,
    /// When it was heard of last, unix milliseconds by the store's clock.
    pub seen_ms: u64,
    /// The attempt for which its statements wait.
    pub held: Option<u64>,
}

/// Who was silent for so long has probably ended, milliseconds: programs say that they are there every second, also while they carry an attempt.
const SILENT_MS: u64 = 3_000;

impl Peer {
    /// Whether it has probably ended.
    pub fn is_silent(&self) -> bool {
        self.silent_ms > SILENT_MS
    }

    /// The name of the machine that it runs on.
    pub fn host(&self) -> Option<&str> {
        host_of(&self.holder)
    }
}

/// What the store says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Standing {
    /// The attempt that is under way, or was the last one.
    pub attempt: u64,
    /// How far it is.
    pub phase: Phase,
    /// Who began it.
    pub leader: Option<String>,
    /// How long ago, milliseconds; 0 while the store's clock, set back, is before that.
    pub age_ms: u64,
    /// All rules whose tables were ever switched.
    pub rules: Vec<InForce>,
    /// Generations of all tags, and of snowflake ids.
    pub generations: Vec<(KeySpace, u64)>,
    /// Key space ids of all tags.
    pub key_space_ids: Vec<(Tag, String)>,
    /// Programs that were heard of.
    pub peers: Vec<Peer>,
}

/// What is to become of a rule's tables.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// The rule.
    pub rule: RuleName,
    /// What must be in force when it begins.
    pub from: Option<KeySpace>,
    /// What is to be.
    pub to: Option<KeySpace>,
}

/// What a configuration wants for a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WantedKeys {
    /// The rule.
    pub rule: RuleName,
    /// Where keys are to come from; `None`: native auto-increment.
    pub keys: Option<KeySpace>,
}

/// A counter that was read under the lock of its table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recorded {
    /// Which server.
    pub server: String,
    /// The table's schema.
    pub schema: String,
    /// The table.
    pub table: String,
    /// The next native id.
    pub counter: u64,
    /// It had its fence before.
    pub was_fenced: bool,
}

/// What went by a program on the tables of a rule that observes, since the program began.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct NativeInserts {
    /// Native ids that statements asked for, at most.
    pub ids: u64,
    /// Grows with statements whose number is not known.
    pub unknown: u64,
}

/// What another program has noted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PeerReport {
    /// Unique to one run.
    pub program: String,
    /// The rule.
    pub rule: RuleName,
    /// All that went by before it was noted is in it.
    pub native_inserts: NativeInserts,
    /// When, unix milliseconds by the store's clock.
    pub at_ms: u64,
}

/// Native ids of a rule that observes which came by no program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unseen {
    /// The rule.
    pub rule: RuleName,
    /// About so many.
    pub ids: u64,
    /// Tables, first and last moment, and accounts, for people.
    pub report: String,
}

/// What a program hears of the others when it has noted its own figures.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PeerReports {
    /// The moment just before, unix milliseconds by the store's clock.
    pub at_ms: u64,
    /// By all others that were not forgotten.
    pub reports: Vec<PeerReport>,
}

/// The ids that keys may have since tables first went over to them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IdSpan {
    /// The first.
    pub first: u64,
    /// The first id that was not reserved yet.
    pub bound: u64,
}

/// What became of keys that were reserved and not given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dropped {
    /// They are of an older generation now, and nobody gives them; these are the ids that keys may have.
    All(IdSpan),
    /// All keys are above.
    Nothing,
    /// They are as they were: an attempt is under way, or so much was not reserved yet.
    Not,
}

/// A table that came to a rule late, with ids that may be keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LateTable {
    /// Which server.
    pub server: String,
    /// The table's schema.
    pub schema: String,
    /// The table.
    pub table: String,
    /// What was found, for people.
    pub report: String,
}
