//! The register of a server's worker ids: which database was given which, and how far each was used by those that gave it up.
//!
//! It is one text, kept where all databases of a server see it. An entry per number, separated by blanks; fields separated
//! by colons, `-` for none.

use std::fmt;

use crate::layout::Layout;

/// What is given to one database at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Number {
    /// A worker id of snowflake ids.
    Worker(u32),
    /// A bucket of readable ids.
    Bucket(u8),
}

/// How far a number was used: all ids that were issued with it lie at or below this.
///
/// A moment says nothing about the numbers of another layout; between layouts ids are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Floor {
    /// The first moment that was not used, unix milliseconds.
    pub bound_ms: i64,
    /// The largest id, of any worker, below that moment.
    pub id: i64,
    /// The layout of both.
    pub layout: Layout,
}

impl Floor {
    /// All ids of `layout` below a moment, unix milliseconds.
    pub fn below_ms(layout: Layout, bound_ms: i64) -> Self {
        let end_tick = layout.ticks_from(bound_ms);
        Self {
            bound_ms,
            id: layout.largest_id_below(end_tick),
            layout,
        }
    }

    /// All ids of `layout` whose states lie below `end_state`.
    pub fn below_state(layout: Layout, end_state: u64) -> Self {
        let end_tick = end_state.div_ceil(1 << layout.sequence_bits());
        Self {
            bound_ms: layout.unix_ms_of(end_tick),
            id: layout.largest_id_below(end_tick),
            layout,
        }
    }

    /// The first state of `layout` whose ids, and those of all later ones, this does not cover.
    pub fn first_state(&self, layout: &Layout) -> u64 {
        let tick = if *layout == self.layout {
            layout.ticks_from(self.bound_ms)
        } else {
            layout.tick_above(self.id)
        };
        tick << layout.sequence_bits()
    }

    /// The one that covers more ids. With one layout that is the later one.
    pub fn higher(self, other: Option<Self>) -> Self {
        match other {
            Some(other) if other.id > self.id => other,
            Some(_) | None => self,
        }
    }

    /// Whether everything that `other` covers is covered.
    pub fn covers(&self, other: &Self) -> bool {
        self.id >= other.id
    }
}

/// What is known of a number that a database has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Held {
    /// The life of shared memory in which it was given.
    pub life: u64,
    /// The sequence that is the bound of its ids; 0 when that was dropped.
    pub sequence: u32,
    /// The first moment the database may use, unix milliseconds.
    pub from_ms: Option<i64>,
    /// What was used before that bound was.
    pub floor: Option<Floor>,
    /// The layout of the ids that it issues.
    pub layout: Layout,
}

impl Held {
    /// Whether this may be the sequence that is the bound of its ids. Where it is not, that one was dropped, and nobody saw how far it had come.
    pub fn may_be_bound_by(&self, sequence: u32) -> bool {
        self.sequence == 0 || self.sequence == sequence
    }
}

/// What is known of a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Use {
    /// The database has it.
    Held(Held),
    /// It was given up after ids up to there were issued with it, or none.
    Left {
        /// What was used.
        floor: Option<Floor>,
    },
    /// Its database was dropped, and how far it had come is not known.
    Lost,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Entry {
    number: Number,
    database: u32,
    usage: Use,
}

/// Every number that was ever given to a database of the server.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Register {
    entries: Vec<Entry>,
    assigned: Option<AssignedRange>,
}

/// Worker ids that a store assigns, by what it said when it last did on this server: they are not set by hand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AssignedRange {
    /// The smallest.
    pub first: u32,
    /// The largest.
    pub last: u32,
}

impl AssignedRange {
    const NAME: &'static str = "assigned";

    fn parse(entry: &str) -> Option<Self> {
        let numbers = entry.strip_prefix(Self::NAME)?.strip_prefix(':')?;
        let (first, last) = numbers.split_once('-')?;
        Some(Self {
            first: first.parse().ok()?,
            last: last.parse().ok()?,
        })
    }
}

impl fmt::Display for AssignedRange {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}-{}", self.first, self.last)
    }
}

impl Register {
    /// Reads the text; `None` if it is not one of a register.
    pub fn parse(text: &str) -> Option<Self> {
        let mut register = Self::default();
        for entry in text.split_ascii_whitespace() {
            match AssignedRange::parse(entry) {
                Some(range) => register.assigned = Some(range),
                None => register.entries.push(Entry::parse(entry)?),
            }
        }
        Some(register)
    }

    /// The worker ids that a store assigns, if one ever did on this server.
    pub fn assigned(&self) -> Option<AssignedRange> {
        self.assigned
    }

    /// Notes which they are.
    pub fn set_assigned(&mut self, range: AssignedRange) {
        self.assigned = Some(range);
    }

    /// Who was given the number last, and what is known of its use.
    pub fn find(&self, number: Number) -> Option<(u32, Use)> {
        let found = self.entries.iter().find(|entry| entry.number == number);
        found.map(|entry| (entry.database, entry.usage))
    }

    /// What is known of a number if this database has it.
    pub fn held(&self, number: Number, database: u32) -> Option<Held> {
        match self.find(number)? {
            (holder, Use::Held(held)) if holder == database => Some(held),
            (_, Use::Held(_) | Use::Left { .. } | Use::Lost) => None,
        }
    }

    /// The numbers that a database has.
    pub fn held_by(&self, database: u32) -> impl Iterator<Item = (Number, Held)> {
        let of_database = self.entries.iter();
        of_database.filter_map(move |entry| match entry.usage {
            Use::Held(held) if entry.database == database => Some((entry.number, held)),
            Use::Held(_) | Use::Left { .. } | Use::Lost => None,
        })
    }

    /// Whether a number belongs to a database, or did.
    pub fn has_had_any(&self, database: u32) -> bool {
        self.entries.iter().any(|entry| entry.database == database)
    }

    /// Notes what is known of a number now.
    pub fn set(&mut self, number: Number, database: u32, usage: Use) {
        self.entries.retain(|entry| entry.number != number);
        self.entries.push(Entry {
            number,
            database,
            usage,
        });
    }
}

impl fmt::Display for Register {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, entry) in self.entries.iter().enumerate() {
            let blank = if index == 0 { "" } else { " " };
            write!(formatter, "{blank}{entry}")?;
        }
        match self.assigned {
            Some(range) => {
                let blank = if self.entries.is_empty() { "" } else { " " };
                write!(formatter, "{blank}{}:{range}", AssignedRange::NAME)
            }
            None => Ok(()),
        }
    }
}

impl Entry {
    fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split(':');
        let mut next = || parts.next();
        let number = parse_number(next()?)?;
        let database = next()?.parse().ok()?;
        let usage = match next()? {
            "held" => Use::Held(Held {
                life: next()?.parse().ok()?,
                sequence: next()?.parse().ok()?,
                from_ms: parse_or_none(next()?, |text| text.parse().ok())?,
                floor: parse_or_none(next()?, parse_floor)?,
                layout: Layout::parse(next()?).ok()?,
            }),
            "left" => Use::Left {
                floor: parse_or_none(next()?, parse_floor)?,
            },
            "lost" => Use::Lost,
            _ => return None,
        };
        parts.next().is_none().then_some(Self {
            number,
            database,
            usage,
        })
    }
}

impl fmt::Display for Entry {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.number {
            Number::Worker(worker) => write!(formatter, "w{worker}")?,
            Number::Bucket(bucket) => write!(formatter, "r{bucket}")?,
        }
        write!(formatter, ":{}:", self.database)?;
        match &self.usage {
            Use::Held(held) => {
                let Held {
                    life,
                    sequence,
                    from_ms,
                    floor,
                    layout,
                } = held;
                write!(formatter, "held:{life}:{sequence}:{}:", OrNone(from_ms))?;
                write!(formatter, "{}:{layout}", OrNone(floor))
            }
            Use::Left { floor } => write!(formatter, "left:{}", OrNone(floor)),
            Use::Lost => write!(formatter, "lost"),
        }
    }
}

/// No layout's text has a slash.
impl fmt::Display for Floor {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/{}/{}", self.bound_ms, self.id, self.layout)
    }
}

struct OrNone<'value, T>(&'value Option<T>);

impl<T: fmt::Display> fmt::Display for OrNone<'_, T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(value) => value.fmt(formatter),
            None => formatter.write_str("-"),
        }
    }
}

fn parse_or_none<T>(text: &str, parse: impl FnOnce(&str) -> Option<T>) -> Option<Option<T>> {
    if text == "-" {
        return Some(None);
    }
    parse(text).map(Some)
}

fn parse_number(text: &str) -> Option<Number> {
    match text.split_at_checked(1)? {
        ("w", number) => number.parse().ok().map(Number::Worker),
        ("r", number) => number.parse().ok().map(Number::Bucket),
        (_, _) => None,
    }
}

fn parse_floor(text: &str) -> Option<Floor> {
    let mut parts = text.splitn(3, '/');
    Some(Floor {
        bound_ms: parts.next()?.parse().ok()?,
        id: parts.next()?.parse().ok()?,
        layout: Layout::parse(parts.next()?).ok()?,
    })
}
