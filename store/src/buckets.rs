//! Which store leases which buckets of readable ids, where there are several: the argument, and what is decided of rows that are locked.
//!
//! A bucket must be leased in one store only. The store without tags, the *giver*, has a row for each of the others that says which buckets it
//! gave to it, and its own row says which it kept; they share no bucket, which one transaction sees to. Each store has a row of its own, too: who
//! gave it its buckets, which, and whether it is *open*. Programs lease what the own row of a store says, while it is open, whatever
//! their configuration says.
//!
//! Three things hold all the time. (1) What the giver gave, and kept, has no bucket in common. (2) An open store has no bucket that the giver did
//! not give to it. (3) A bucket that was ever leased in a store stays given to it, or kept. So no bucket is leased in two stores.
//!
//! A division is changed in this order. First each other store is *closed*, if all that was leased there is among what it is to have: nothing
//! is leased there any more. Then the giver gives and keeps, in one transaction. Then each store is *opened* with what it was given.
//! Whoever breaks off leaves stores closed: their programs go on with the buckets that they have, and others wait until somebody goes on.
//!
//! Two may do so at the same time with different configurations, and any step may be late. Rows have a version that each change counts up.
//! The giver's row is written only if it has the version that was read before the first store was closed, and a store is opened only if it has
//! the version that closing it left. So whoever gives knows that nobody gave since he closed the stores: what is leased in one of them is
//! still among what he checked, unless somebody else opened it, who gave before. And whoever opens a store knows that nobody closed it since,
//! so nobody has given otherwise but before he closed it himself.
//!
//! A store that was brought back from a backup is closed, and keeps at least what it had: which of its buckets were leased since nobody knows. Its row
//! gets a version that is drawn at random: the backup's, counted up, could be one that somebody has read of the store before it was lost, who
//! would open it then. Where it is the giver, it does not know what it gave since, to stores that may not be configured any more: a giver that is
//! closed, which it is by nothing else, gives nothing. Nor is one given any that had no giver in the backup: it may have been one since.
//!
//! The owner's word goes on from there: each bucket that was ever leased is among those that its store is to have now, and no other store leases
//! any. It stands in for what rows do not know, never for what they do: what a store knows to be leased there stays there.

use keywright_core::Cause;
use keywright_core::readable::BUCKETS;

use crate::failure::Failure;
use crate::worker_ids::IdRange;

/// A store's own row.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct OwnBuckets {
    /// Drawn when the row was made.
    pub(crate) store_id: String,
    /// The id of the store that gave them: its own where it gives; empty: none did.
    pub(crate) giver: String,
    /// `None`: no bucket.
    pub(crate) buckets: Option<IdRange>,
    pub(crate) is_open: bool,
    pub(crate) is_restored: bool,
    pub(crate) version: u64,
}

impl OwnBuckets {
    /// Of a store that has no row: nothing is leased there.
    pub(crate) fn closed(store_id: String) -> Self {
        Self {
            store_id,
            giver: String::new(),
            buckets: None,
            is_open: false,
            is_restored: false,
            version: 0,
        }
    }

    /// Of a store that came back from a backup. `version`: one that no row had.
    pub(crate) fn restored(self, version: u64) -> Self {
        Self {
            is_open: false,
            is_restored: true,
            version,
            ..self
        }
    }

    /// It was restored, and what it has, or gave, since the backup is in no row that can be trusted.
    pub(crate) fn needs_word(&self) -> bool {
        self.is_forgetful() || (self.giver == self.store_id && !self.is_open)
    }

    /// It had no giver in the backup that it came back from, and may have got one since, or have given itself.
    fn is_forgetful(&self) -> bool {
        self.is_restored && self.giver.is_empty()
    }
}

/// What the giver gave to a store.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Given {
    /// Whose.
    pub(crate) store_id: String,
    /// What the store is called, for people.
    pub(crate) name: String,
    /// `None`: no bucket.
    pub(crate) buckets: Option<IdRange>,
}

/// All rows of a store.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(crate) struct BucketRows {
    pub(crate) own: Option<OwnBuckets>,
    pub(crate) given: Vec<Given>,
}

/// A store that is to have buckets, and is closed.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Receiver {
    pub(crate) store_id: String,
    pub(crate) name: String,
    /// `None`: no bucket.
    pub(crate) buckets: Option<IdRange>,
    /// It keeps what it was given before.
    pub(crate) is_restored: bool,
}

/// Stores that are not named where buckets are divided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Rest {
    /// They have what the rows say.
    AsRecorded,
    /// By the owner's word they lease none, and each bucket that was ever leased is among those that its store is to have.
    HasNone,
}

/// Why buckets are not divided so.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Refused {
    /// Another store gave it its buckets.
    AnothersBuckets,
    /// It was restored, and does not know what it gave since.
    Forgotten,
    /// The bucket was leased there, and is not among those that it is to have.
    Leased(u32),
    /// The store was restored, and is to have less than before.
    Restored(IdRange),
    /// Another store has some of them.
    Shared {
        buckets: IdRange,
        /// What that one is called; empty: the giver itself.
        other: String,
        theirs: IdRange,
    },
    /// Databases are assigned these numbers, and have the buckets of the same number.
    Assigned(IdRange),
    /// The same, by the store itself, which is to have other buckets.
    AssignedThere(IdRange),
    /// Somebody else has changed it meanwhile.
    Overtaken,
}

impl Refused {
    /// As it is told of a store.
    pub(crate) fn failure(&self, store: &str) -> Failure {
        let in_use = |message: String| Failure::new(Cause::WorkerIdInUse, message);
        match self {
            Self::AnothersBuckets => in_use(format!(
                "store \"{store}\" was given its buckets of readable ids by a store that gives none in this configuration"
            ))
            .hint("use a configuration in which that store has no tags, or leave readable_buckets of this one out; where that store was lost or restored, see keywright init --no-other-buckets"),
            Self::Forgotten => in_use(format!(
                "store \"{store}\" was restored from a backup: which buckets of readable ids it has and gave to other stores since is not known"
            ))
            .hint("let this configuration have each store that leases buckets, with all that it ever had: keywright init --no-other-buckets"),
            Self::Leased(bucket) => in_use(format!(
                "bucket {bucket} of readable ids was leased in store \"{store}\", and is not among its readable_buckets"
            ))
            .hint("a bucket stays with the store where it was leased first: let readable_buckets contain it"),
            Self::Restored(before) => in_use(format!(
                "store \"{store}\" was restored from a backup, and had the buckets {before} of readable ids"
            ))
            .hint("let its readable_buckets contain them: which of them were leased since the backup is not known"),
            Self::Shared {
                buckets,
                other,
                theirs,
            } => {
                let other = match other.as_str() {
                    "" => "the store without tags".to_owned(),
                    other => format!("store \"{other}\""),
                };
                in_use(format!(
                    "the buckets {buckets} of readable ids cannot be those of store \"{store}\": {other} has {theirs}"
                ))
                .hint("choose buckets that no store ever had, also none that is not configured any more")
            }
            Self::Assigned(assigned) => in_use(format!(
                "the buckets of store \"{store}\" are among {assigned}, which databases are assigned as worker ids and have as buckets"
            ))
            .hint("choose other readable_buckets, or other assigned_worker_ids"),
            Self::AssignedThere(assigned) => in_use(format!(
                "store \"{store}\" assigns databases {assigned} as worker ids, and they have the buckets of these numbers, which are not all among its own"
            ))
            .hint("let its readable_buckets contain them"),
            Self::Overtaken => in_use(format!(
                "somebody else divides the buckets of store \"{store}\" at the same time"
            ))
            .hint("run it again when nobody else does, if the configuration is still right"),
        }
    }
}

fn is_among(bucket: u32, buckets: Option<IdRange>) -> bool {
    buckets.is_some_and(|range| range.has(bucket))
}

/// Whether databases that are assigned these numbers have a bucket that is not among some.
pub(crate) fn has_others(assigned: IdRange, buckets: Option<IdRange>) -> bool {
    (0..BUCKETS).any(|bucket| assigned.has(bucket) && !is_among(bucket, buckets))
}

/// Whether one range has all of another.
fn contains(range: Option<IdRange>, other: IdRange) -> bool {
    is_among(other.first, range) && is_among(other.last, range)
}

fn check_leased(leased: &[u32], wanted: Option<IdRange>) -> Result<(), Refused> {
    match leased.iter().find(|bucket| !is_among(**bucket, wanted)) {
        Some(bucket) => Err(Refused::Leased(*bucket)),
        None => Ok(()),
    }
}

fn check_restored(own: &OwnBuckets, wanted: Option<IdRange>) -> Result<(), Refused> {
    match own.buckets.filter(|before| !contains(wanted, *before)) {
        Some(before) if own.is_restored => Err(Refused::Restored(before)),
        Some(_) | None => Ok(()),
    }
}

/// Whether a store with this row may give.
fn check_gives(own: &OwnBuckets, rest: Rest) -> Result<(), Refused> {
    let is_giver = own.giver == own.store_id;
    match rest {
        Rest::HasNone => Ok(()),
        Rest::AsRecorded if is_giver && own.is_open => Ok(()),
        Rest::AsRecorded if is_giver || own.is_forgetful() => Err(Refused::Forgotten),
        Rest::AsRecorded => Err(Refused::AnothersBuckets),
    }
}

/// Whether a store that is given buckets may be closed in favour of these. `assigned`: the numbers that it assigns to databases. `giver`: the id of
/// the store without tags, where it has one.
///
/// # Errors
/// Another gave it its buckets; one was leased, or is a database's, that it is not to have.
pub(crate) fn plan_close(
    own: Option<&OwnBuckets>,
    (leased, assigned): (&[u32], Option<IdRange>),
    wanted: Option<IdRange>,
    giver: Option<&str>,
    rest: Rest,
) -> Result<(), Refused> {
    check_leased(leased, wanted)?;
    if let Some(assigned) = assigned.filter(|assigned| has_others(*assigned, wanted)) {
        return Err(Refused::AssignedThere(assigned));
    }
    let (Some(own), Rest::AsRecorded) = (own, rest) else {
        return Ok(());
    };
    if own.is_forgetful() {
        return Err(Refused::Forgotten);
    }
    if !own.giver.is_empty() && Some(own.giver.as_str()) != giver {
        return Err(Refused::AnothersBuckets);
    }
    check_restored(own, wanted)
}

/// What the giver's rows say then of the others: what it gave to stores that are not named stays given. `version`: of its own row as it was read
/// before any store was closed; 0: it had none.
///
/// # Errors
/// Two stores would have a bucket in common; one was leased that its store is not to have; somebody else has changed it meanwhile.
pub(crate) fn plan_give(
    rows: &BucketRows,
    version: u64,
    leased: &[u32],
    kept: Option<IdRange>,
    receivers: &[Receiver],
    rest: Rest,
) -> Result<Vec<Given>, (String, Refused)> {
    let of_giver = |refused| (String::new(), refused);
    let own = rows.own.as_ref();
    if own.map_or(0, |own| own.version) != version {
        return Err(of_giver(Refused::Overtaken));
    }
    if let Some(own) = own {
        check_gives(own, rest).map_err(of_giver)?;
    }
    check_leased(leased, kept).map_err(of_giver)?;
    let mut given = rows.given.clone();
    match rest {
        Rest::AsRecorded => check_came_back(rows, kept, receivers)?,
        Rest::HasNone => take_from_rest(&mut given, kept, receivers),
    }
    for receiver in receivers {
        given.retain(|its| its.store_id != receiver.store_id);
        given.push(Given {
            store_id: receiver.store_id.clone(),
            name: receiver.name.clone(),
            buckets: receiver.buckets,
        });
    }
    check_disjoint(&given, kept)?;
    Ok(given)
}

/// That stores which came back from a backup keep what they had.
fn check_came_back(
    rows: &BucketRows,
    kept: Option<IdRange>,
    receivers: &[Receiver],
) -> Result<(), (String, Refused)> {
    if let Some(own) = &rows.own {
        check_restored(own, kept).map_err(|refused| (String::new(), refused))?;
    }
    for receiver in receivers.iter().filter(|receiver| receiver.is_restored) {
        let before = rows
            .given
            .iter()
            .find(|its| its.store_id == receiver.store_id);
        let before = before.and_then(|its| its.buckets);
        if let Some(before) = before.filter(|before| !contains(receiver.buckets, *before)) {
            return Err((receiver.name.clone(), Refused::Restored(before)));
        }
    }
    Ok(())
}

/// What stores that are not named were given, and others are to have now, they have no more.
fn take_from_rest(given: &mut [Given], kept: Option<IdRange>, receivers: &[Receiver]) {
    for its in given {
        let mut wanted = receivers.iter().map(|receiver| receiver.buckets);
        let is_wanted = |range: IdRange| {
            let mut all = std::iter::once(kept).chain(&mut wanted).flatten();
            all.any(|other| other.meets(&range))
        };
        if its.buckets.is_some_and(is_wanted) {
            its.buckets = None;
        }
    }
}

fn check_disjoint(given: &[Given], kept: Option<IdRange>) -> Result<(), (String, Refused)> {
    // The newest come last: they are told of.
    for (place, its) in given.iter().enumerate().rev() {
        let Some(buckets) = its.buckets else { continue };
        let before = given.iter().take(place);
        let before = before.map(|other| (other.name.as_str(), other.buckets));
        for (other, theirs) in before.chain([("", kept)]) {
            if let Some(theirs) = theirs.filter(|theirs| theirs.meets(&buckets)) {
                let other = other.to_owned();
                let shared = Refused::Shared {
                    buckets,
                    other,
                    theirs,
                };
                return Err((its.name.clone(), shared));
            }
        }
    }
    Ok(())
}

/// Whether a store that was closed may be opened.
///
/// # Errors
/// Somebody else has changed it meanwhile.
pub(crate) fn plan_open(own: Option<&OwnBuckets>, version: u64) -> Result<(), Refused> {
    match own {
        Some(own) if own.version == version => Ok(()),
        Some(_) | None => Err(Refused::Overtaken),
    }
}

#[cfg(test)]
mod tests;
