//! In which of several stores a tag is at home, and how it moves from one to another: what is decided, pure. The transactions are those of
//! `store/home_rows`, the steps [`crate::Relocating`] and [`crate::Keys::create_tag`]; `tests/home_model` checks all orders of them.
//!
//! # Why no id comes twice
//!
//! Two open rows of one name are two key spaces for the same tables. So of all rows of a tag, in whatever stores, at most one is open. A row is
//! in one of four states, which its column `heir` says:
//!
//! - *open*: programs reserve of it;
//! - *opening*: nobody does; it opens when the others are closed in its favour, and in no other way. One that was *elsewhere K* before keeps K:
//!   it was closed in favour of that row, so only a move that finds the row with K closed in its favour opens it, and no `init`;
//! - *elsewhere K*: nobody does; the ids come from the row whose key space is K;
//! - *native*: a PostgreSQL database issues them ([`crate::moving`]).
//!
//! Each reservation reads the state in its own transaction, whatever configuration the program has. So a row that was closed stops every program,
//! an old one too, at its next reservation; what it holds lies below the row's bound, which never goes down.
//!
//! **Making a tag** where several stores are configured: the row of its home is made, *opening*, with a key space K that was just drawn; then
//! every other store gets a row *elsewhere K*, so that nobody who knows that store only can make the tag there; then the home opens, above the
//! bounds of all the rows that were found. An open row anywhere ends it. Two programs that make the same tag in two stores at once stop each
//! other, and neither opens: a row that is *opening* is no ground to open another, nor counts as closed for one that is open.
//!
//! **Moving**, from A to B: B's row becomes *opening* with a key space K, drawn anew unless it was opening already; A's row becomes *elsewhere K*
//! by compare-and-swap, which is the tombstone: its bound says how far A gave; then B's row opens, above that bound, if it is still opening with K.
//! Whoever opens has read the tombstone as committed, and it names K. A step may be late by any time. Had the tag moved on and come back
//! meanwhile, B's row would have another key space, since it is drawn anew whenever a closed row is to open, and the late step changes nothing.
//!
//! **A tag that tables have left** stays in its store. Native ids go on where its ids ended; its generation says so, with the rules of the store without
//! tags, and key ports give no more of it. In another store nothing would say so. So such a row is not closed in another's favour, neither by a move
//! nor when the tag was dropped and is made elsewhere (`store/tag_left`).
//!
//! **Who may reserve.** The open row lists in which other stores the tag is closed (`closed_in`, by marks of their addresses). A program that is
//! configured with a store that is not among them reserves nothing ([`keywright_core::Cause::TagHomeUnknown`]) until `keywright init`, or a move, has
//! closed the tag there. Closed rows stay: only a move opens one, and it closes the open one before. So what the list says stays true, and a
//! program needs no other store than the tag's own: one that is away stops its own tags, and no others, also those of programs that start
//! meanwhile. A store that was reached by another name counts as another until `init` has looked.
//!
//! **Patterns that were edited without a move**: the tag is not open in the store where the program looks, so it gets nothing, and `init` does not
//! make it there while another configured store has it open, or has it closed in favour of a third. Where the store that has it open is in
//! no configuration any more, nothing can know of it: as with a `[store]` whose `url` was changed, the owner must.
//!
//! **Two programs with different patterns**: at most one of the two rows is open, so one of them gets nothing.
//!
//! Tables of other systems, key ports and Redis hold no such rows. For a tag at home there each program looks in the other stores itself before
//! it takes of the tag, and takes nothing while one cannot be asked; in the other direction `init` looks whether they have the tag, once.
//! A store that was restored from a backup, or failed over to a replica without its last commits, may have a row open again that was closed, or none:
//! `run`, `check` and `init` look for two open rows, and `init` closes the tag again in all stores that answer, also those that are listed.

use std::collections::BTreeSet;
use std::fmt;

use keywright_core::Cause;

use crate::failure::Failure;
use crate::moving::{Heir, Refused as MovedAway};

/// What precedes a key space in a row.
const ELSEWHERE: &str = "store ";
/// The text of a row that is to open.
const OPENING: &str = "opening";
/// What precedes, in such a row, the key space of the one in whose favour it was closed before.
const OPENING_AFTER: &str = "opening after ";

/// For whoever has all stores in the configuration, of which none has the tag open.
pub(crate) const OPEN_NOWHERE: &str = "if it has all of them, a store was restored or is lost: \"A tag that is open nowhere\" in docs/operations/several-stores.md";

/// What a row is for those who would reserve of it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Standing {
    /// Programs reserve of it.
    Open,
    /// It opens when the others are closed in its favour. It may have been closed in favour of the row with that key space before.
    Opening(Option<String>),
    /// The ids come from the row with this key space, in another store.
    Elsewhere(String),
    /// A PostgreSQL database issues them.
    Native(Heir),
}

impl Standing {
    /// Reads what [`Standing::text`] writes.
    pub fn parse(text: Option<&str>) -> Option<Self> {
        match text {
            None => Some(Self::Open),
            Some(OPENING) => Some(Self::Opening(None)),
            Some(text) => match (
                text.strip_prefix(ELSEWHERE),
                text.strip_prefix(OPENING_AFTER),
            ) {
                (Some(key_space), _) => Some(Self::Elsewhere(key_space.to_owned())),
                (None, Some(key_space)) => Some(Self::Opening(Some(key_space.to_owned()))),
                (None, None) => Heir::parse(text).map(Self::Native),
            },
        }
    }

    /// As it stands in the row.
    pub fn text(&self) -> Option<String> {
        match self {
            Self::Open => None,
            Self::Opening(None) => Some(OPENING.to_owned()),
            Self::Opening(Some(before)) => Some(format!("{OPENING_AFTER}{before}")),
            Self::Elsewhere(key_space) => Some(format!("{ELSEWHERE}{key_space}")),
            Self::Native(heir) => Some(heir.to_string()),
        }
    }
}

/// A row that a move begins with.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Source {
    /// Its key space.
    pub key_space: String,
    /// Those of rows from which the ids came before.
    pub leads: BTreeSet<String>,
    /// Whether it lists the target's store among those in which the tag is closed.
    pub lists_target: bool,
}

impl Source {
    /// Whether a row that was closed in favour of another is closed in favour of this one.
    fn has(&self, its: &str) -> bool {
        self.lists_target || its == self.key_space || self.leads.contains(its)
    }
}

/// A tag's row in one store.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct HomeRow {
    /// The first id that nobody was given, or may have been.
    pub free: u64,
    /// Drawn when the row was made, and anew whenever a closed one is to open.
    pub key_space: String,
    /// What it is for those who would reserve of it.
    pub standing: Standing,
    /// Nobody reserves of it; it may be made again.
    pub is_dropped: bool,
}

/// Why a step is not taken.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Refused {
    /// The tag is open there.
    Open,
    /// Another move or another `init` is under way, or broke off.
    UnderWay,
    /// The ids come from a row that is not the one in question.
    AnothersIds,
    /// A PostgreSQL database issues them.
    Native(Heir),
    /// There is no such tag, or it was dropped.
    Missing,
    /// The row is not what it was when the move began: another one went on.
    Overtaken,
}

impl fmt::Display for Refused {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Open => "is open there",
            Self::UnderWay => {
                "is about to open there: a move or an init is under way, or broke off"
            }
            Self::AnothersIds => "is closed there, and its ids come from another store",
            Self::Native(_) => "is closed there: a PostgreSQL database issues its ids natively",
            Self::Missing => "is not there",
            Self::Overtaken => "has moved on meanwhile",
        })
    }
}

impl Refused {
    /// As it is told of a tag in a store.
    pub fn failure(&self, tag: &str, store: &str) -> Failure {
        let in_store =
            |said: &dyn fmt::Display| format!("tag \"{tag}\" of store \"{store}\" {said}");
        match self {
            Self::Open => Failure::new(Cause::TagExists, in_store(self)).hint(format!(
                "open in two stores it would give ids twice: keywright tag move {tag} --to-store NAME moves it; one that was never used: keywright tag \
                 drop {tag} --store {store}"
            )),
            Self::UnderWay => Failure::new(Cause::TagMoved, in_store(self)).hint(format!(
                "run that again, which goes on; or, if it is not to go on: keywright tag drop {tag} --store {store}"
            )),
            Self::AnothersIds => Failure::new(Cause::TagMoved, in_store(self)).hint(format!(
                "use a configuration that has the store to which it was moved; {OPEN_NOWHERE}"
            )),
            Self::Native(heir) => MovedAway::AnothersIds(heir.clone()).failure(tag),
            Self::Missing => Failure::new(Cause::TagUnknown, in_store(self)).hint("keywright init makes it"),
            Self::Overtaken => Failure::new(Cause::TagMoved, in_store(self)).hint("run it again"),
        }
    }
}

/// What is to be done with a row.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Plan<T> {
    /// It is so already.
    AsItIs(T),
    /// The row becomes that.
    Change(T),
}

impl<T> Plan<T> {
    /// What holds then.
    pub fn outcome(&self) -> &T {
        match self {
            Self::AsItIs(outcome) | Self::Change(outcome) => outcome,
        }
    }
}

/// What a row that waits is.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Waiting {
    /// Its key space.
    pub key_space: String,
    /// That of the row in whose favour it was closed before.
    pub before: Option<String>,
}

/// Has a row wait until the others are closed in its favour. `fresh` was never used.
///
/// # Errors
/// It is open; its ids come from a row that the move does not begin with; a database issues the ids.
pub fn plan_prepare(
    row: Option<&HomeRow>,
    fresh: &str,
    source: &Source,
) -> Result<Plan<Waiting>, Refused> {
    let waiting = |key_space: &str, before: Option<&String>| Waiting {
        key_space: key_space.to_owned(),
        before: before.cloned(),
    };
    let Some(row) = row else {
        return Ok(Plan::Change(waiting(fresh, None)));
    };
    let is_its = |before: &String| source.has(before);
    match (&row.standing, row.is_dropped) {
        (Standing::Opening(Some(before)), _) if !is_its(before) => Err(Refused::AnothersIds),
        // Others may be closed in its favour.
        (Standing::Opening(before), false) => {
            Ok(Plan::AsItIs(waiting(&row.key_space, before.as_ref())))
        }
        (Standing::Opening(before), true) => {
            Ok(Plan::Change(waiting(&row.key_space, before.as_ref())))
        }
        (Standing::Open, true) => Ok(Plan::Change(waiting(&row.key_space, None))),
        (Standing::Open, false) => Err(Refused::Open),
        // Steps of an earlier move may still be under way.
        (Standing::Elsewhere(before), _) if is_its(before) => {
            Ok(Plan::Change(waiting(fresh, Some(before))))
        }
        (Standing::Elsewhere(_), _) => Err(Refused::AnothersIds),
        (Standing::Native(heir), _) => Err(Refused::Native(heir.clone())),
    }
}

/// Has a row say that the ids come from the tag's home: the first id that nobody was given of it. `leads`: key spaces of rows from which the ids
/// came before, and which say that they come from the home now.
///
/// # Errors
/// It is open, or may open; its ids come from a third row.
pub fn plan_claim(
    row: Option<&HomeRow>,
    home: &str,
    leads: &BTreeSet<String>,
) -> Result<Plan<u64>, Refused> {
    let Some(row) = row else {
        return Ok(Plan::Change(1));
    };
    match (&row.standing, row.is_dropped) {
        (Standing::Open | Standing::Opening(None), true) => Ok(Plan::Change(row.free)),
        (Standing::Open, false) => Err(Refused::Open),
        // Also where the home is open: who has it wait may not know that home.
        (Standing::Opening(_), false) => Err(Refused::UnderWay),
        (Standing::Opening(Some(its)), true) if its == home || leads.contains(its) => {
            Ok(Plan::Change(row.free))
        }
        (Standing::Opening(Some(_)), true) => Err(Refused::AnothersIds),
        (Standing::Elsewhere(its), _) if its == home => Ok(Plan::AsItIs(row.free)),
        (Standing::Elsewhere(its), _) if leads.contains(its) => Ok(Plan::Change(row.free)),
        (Standing::Elsewhere(_), _) => Err(Refused::AnothersIds),
        (Standing::Native(heir), _) => Err(Refused::Native(heir.clone())),
    }
}

/// Closes a row for everybody in favour of another: the bound, above which that opens.
///
/// # Errors
/// It is not open, and not closed in that row's favour.
pub fn plan_close(row: Option<&HomeRow>, target: &str) -> Result<Plan<u64>, Refused> {
    let row = row.filter(|row| !row.is_dropped).ok_or(Refused::Missing)?;
    match &row.standing {
        Standing::Open => Ok(Plan::Change(row.free)),
        Standing::Elsewhere(its) if its == target => Ok(Plan::AsItIs(row.free)),
        Standing::Elsewhere(_) => Err(Refused::AnothersIds),
        Standing::Opening(_) => Err(Refused::UnderWay),
        Standing::Native(heir) => Err(Refused::Native(heir.clone())),
    }
}

/// Opens a row, above what all the others gave (`bound`), which are closed in its favour: the first id that it gives.
///
/// # Errors
/// It does not wait for that any more.
pub fn plan_open(row: Option<&HomeRow>, key_space: &str, bound: u64) -> Result<Plan<u64>, Refused> {
    let row = row.filter(|row| !row.is_dropped).ok_or(Refused::Missing)?;
    if row.key_space != key_space {
        return Err(Refused::Overtaken);
    }
    match &row.standing {
        Standing::Opening(_) => Ok(Plan::Change(row.free.max(bound))),
        Standing::Open => Ok(Plan::AsItIs(row.free)),
        Standing::Elsewhere(_) => Err(Refused::Overtaken),
        Standing::Native(heir) => Err(Refused::Native(heir.clone())),
    }
}

/// The key spaces of rows from which the ids of a tag came before: each says that they come from the home, or from one of these.
pub fn leads_to(home: &str, rows: &[HomeRow]) -> BTreeSet<String> {
    let mut leads = BTreeSet::from([home.to_owned()]);
    loop {
        let before = leads.len();
        for row in rows {
            if let Standing::Elsewhere(its) = &row.standing
                && leads.contains(its)
            {
                leads.insert(row.key_space.clone());
            }
        }
        if leads.len() == before {
            leads.remove(home);
            return leads;
        }
    }
}

/// The stores of a configuration in which a tag is not known to be closed, by what its open row lists.
pub(crate) fn not_closed_in<'a>(
    others: &'a [OtherStore],
    closed_in: Option<&str>,
) -> Vec<&'a OtherStore> {
    let listed: Vec<&str> = closed_in.unwrap_or_default().split(' ').collect();
    let lacks = |other: &&OtherStore| !listed.contains(&other.mark.as_str());
    others.iter().filter(lacks).collect()
}

/// Most stores that a row lists.
const LISTED_MAX: usize = 32;

/// The list with these marks, and without that one.
///
/// # Errors
/// It would be too long.
pub(crate) fn listed(
    closed_in: Option<&str>,
    more: &[String],
    without: Option<&str>,
) -> Result<Option<String>, Failure> {
    let known = closed_in.unwrap_or_default().split(' ');
    let known = known.filter(|mark| !mark.is_empty());
    let mut marks: BTreeSet<&str> = known.chain(more.iter().map(String::as_str)).collect();
    if let Some(without) = without {
        marks.remove(without);
    }
    if marks.len() > LISTED_MAX {
        let message = format!(
            "a tag is closed in {LISTED_MAX} other stores at most, by all the names that these had"
        );
        return Err(Failure::new(Cause::ArgumentOutOfRange, message).hint(
            "empty closed_in of the tag's row, and run keywright init with each configuration",
        ));
    }
    let marks: Vec<&str> = marks.into_iter().collect();
    Ok((!marks.is_empty()).then(|| marks.join(" ")))
}

/// Another store of the configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OtherStore {
    pub(crate) name: String,
    /// Of where it is.
    pub(crate) mark: String,
}

#[cfg(test)]
mod tests;
