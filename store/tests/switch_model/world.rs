//! The state: a store, one server with one table, programs in front of it.

/// Programs that share the store.
pub const PROGRAMS: usize = 2;
/// Tags, by index.
pub const TAGS: usize = 2;
/// Ids that a reservation takes.
pub const RANGE_IDS: u8 = 2;

/// An id, small enough for a bit set.
pub type Id = u8;

/// Where ids of the table come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Rule {
    /// From the server.
    Native,
    /// From this tag.
    Keys(usize),
}

/// A range that was reserved, or its rest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Range {
    pub tag: usize,
    pub generation: u8,
    pub start: Id,
    pub end: Id,
}

/// A tag's row, or what is said of all snowflake ids: there a reservation stands for a lease, whose worker id keeps it apart from others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Tag {
    /// First id that is not reserved; 0: nobody has had a lease.
    pub hi: Id,
    /// Snowflake ids begin here or above; 0 for a tag, whose bound is raised instead.
    pub first: Id,
    pub is_snowflake: bool,
    pub generation: u8,
    pub open: bool,
}

impl Tag {
    /// The first id above all that it has issued, and above what was before.
    pub fn bound(&self) -> Id {
        self.hi.max(self.first)
    }

    /// From now on it issues nothing below.
    pub fn raise(&mut self, above: Id) {
        match self.is_snowflake {
            true => self.first = self.first.max(above),
            false => self.hi = self.hi.max(above),
        }
    }
}

/// How far an attempt is, as the store has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Phase {
    /// Programs are to hold; tables are fenced once all do.
    Holding,
    /// It is given up: fences are lifted, then programs are released.
    Ending,
    /// Off: the tag is closed, and there is no way back.
    Closed,
}

/// The attempt that is under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Attempt {
    pub number: u8,
    pub to: Rule,
    pub phase: Phase,
    /// By program: it holds, or is silent.
    pub held: [bool; PROGRAMS],
    /// What was read under the lock, and by whose session.
    pub counter: Option<(Id, usize)>,
    /// The table had its fence before.
    pub was_fenced: bool,
    /// The server on which it was read.
    pub server: u8,
    /// The closed tag's bound.
    pub above: Id,
}

/// All that is durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Store {
    pub rule: Rule,
    /// The server on which keys are in force.
    pub server: u8,
    pub tags: [Tag; TAGS],
    pub returned: Option<Range>,
    pub attempt: Option<Attempt>,
    /// The next attempt's number.
    pub next_attempt: u8,
}

/// An ALTER TABLE … AUTO_INCREMENT.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Alter {
    Fence,
    /// To this value.
    Lift(Id),
}

/// The connection of a program that leads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Session {
    None,
    /// It has the table's lock.
    Locked,
    /// So it has, and an ALTER is on its way.
    Sent(Alter),
    /// The ALTER was carried out, the lock is free.
    Done,
}

impl Session {
    pub fn has_lock(self) -> bool {
        match self {
            Self::Locked | Self::Sent(_) => true,
            Self::None | Self::Done => false,
        }
    }
}

/// The server's table. Of its rows the worst is assumed: they are gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Server {
    /// Counts failovers.
    pub identity: u8,
    /// The next native id; ids of transactions that were rolled back are below it too. A fence forgets it.
    pub counter: Id,
    pub fenced: bool,
    pub sessions: [Session; PROGRAMS],
}

impl Server {
    pub fn is_locked(&self) -> bool {
        self.sessions.iter().any(|session| session.has_lock())
    }
}

/// What a program that leads does next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Lead {
    No,
    /// Fence, or close the tag, once all hold.
    Leading(u8),
    /// A variant: the counter was read before the lock.
    CountedEarly(u8, Id),
    /// A variant: the old tag's bound was read before it is closed.
    BoundEarly(u8, Id),
    /// The counter was read under the lock, and is to be recorded.
    Counted(u8, Id),
    /// It was, and the fence is to be sent.
    Recorded(u8, Id),
    /// The fence was sent.
    Fencing(u8, Id),
    /// All is fenced: commit.
    Commit(u8, Id),
    /// Kill what the attempt's session may still do.
    Kill(u8),
    /// Lock the table, to lift its fence.
    LiftLock(u8),
    /// A variant: the table is locked, and its fence lifted, without asking the store.
    LiftBlind(u8, Id),
    /// Locked: ask the store whether it is still to be lifted.
    LiftAsk(u8),
    Lifting(u8),
    /// Release the hold.
    Release(u8),
    /// Off, after the tag was closed: lock the table.
    Forward(u8),
    ForwardAsk(u8),
    ForwardLifting(u8),
    ForwardDone(u8),
}

/// One program; its clients are one that has at most one statement under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Program {
    pub up: bool,
    /// What it follows, and which generations of the tags it knows.
    pub rule: Rule,
    /// On which server.
    pub server: u8,
    pub known: [u8; TAGS],
    /// New statements wait for the end of this attempt.
    pub hold: Option<u8>,
    /// A transaction is open that has touched the table.
    pub transaction: bool,
    pub range: Option<Range>,
    /// The answer to a reservation that is still on its way.
    pub reply: Option<Range>,
    /// A rest on its way back to the store.
    pub handing_back: Option<Range>,
    /// A key that was taken, in a statement that the server has not yet had.
    pub sent: Option<Id>,
    pub lead: Lead,
}

/// How much may still happen, so that there is an end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Budget {
    pub natives: u8,
    pub keys: u8,
    pub reservations: u8,
    pub attempts: u8,
    /// Crashes, clean stops and restarts of the server.
    pub faults: u8,
    /// Tables that come without a fence and with an id of their own.
    pub brought: u8,
    /// Another server takes the place of the one that there was.
    pub failovers: u8,
}

/// Everything.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct World {
    pub store: Store,
    pub server: Server,
    pub programs: [Program; PROGRAMS],
    pub left: Budget,
    /// The own id of a table that came, until keys go on above it.
    pub brought: Option<Id>,
    /// Every id that somebody got, native or issued.
    pub issued: u64,
    pub twice: bool,
}

impl World {
    /// Somebody gets an id.
    pub fn issue(&mut self, id: Id) {
        let bit = 1_u64 << id;
        self.twice |= self.issued & bit != 0;
        self.issued |= bit;
    }

    /// The attempt of that number in that phase.
    pub fn attempt(&self, number: u8, phase: Phase) -> Option<Attempt> {
        let attempt = self.store.attempt?;
        (attempt.number == number && attempt.phase == phase).then_some(attempt)
    }

    /// Whether keys are in force on another server than the one that there is.
    pub fn is_elsewhere(&self) -> bool {
        self.store.rule != Rule::Native && self.store.server != self.server.identity
    }

    /// Whether nobody is in the way of LOCK TABLES.
    pub fn can_lock(&self) -> bool {
        !self.server.is_locked() && self.programs.iter().all(|program| !program.transaction)
    }

    /// Where all must come to rest: no attempt, nobody holds, everybody follows what is in force, and native inserts are refused
    /// if and only if keys are issued, but for a table or a server that came behind the last attempt that there may be.
    pub fn is_settled(&self) -> bool {
        let follows = |program: &Program| {
            program.up && program.hold.is_none() && program.rule == self.store.rule
        };
        self.store.attempt.is_none()
            && self.programs.iter().all(follows)
            && !self.server.is_locked()
            && (self.server.fenced == (self.store.rule != Rule::Native)
                || self.brought.is_some()
                || self.is_elsewhere())
    }
}
