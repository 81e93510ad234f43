//! Three stores whose buckets two people divide at the same time, each with a configuration of his own, while programs lease all that they may.

use std::collections::BTreeSet;

use super::super::*;

pub(super) const STORES: usize = 3;
pub(super) const GIVER: usize = 0;
/// Stands for a version that is drawn at random.
const DRAWN: u64 = 1_000;

/// The first is the giver; a further store without buckets is not in the configuration.
pub(super) type Division = [Option<IdRange>; STORES];

/// What is left out of what prevents that a bucket is leased twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Flaw {
    GivesUnlooked,
    OpensUnlooked,
    ClosesUnlooked,
    LeavesOpen,
    GivesShared,
    ForgetsRestore,
    CountsUp,
    LeavesNoRow,
    GivesForgotten,
    SaysWhatIsNot,
    WordOverLeases,
}

/// What a store comes back from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Backup {
    BeforeItsRow,
    /// As its row was written first.
    First,
    Newest,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum At {
    Begins,
    Closes(usize),
    Gives,
    Opens(usize),
    Done,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Divider {
    pub(super) division: Division,
    pub(super) at: At,
    pub(super) rest: Rest,
    giver: Option<String>,
    version: u64,
    /// As closing left them, by store.
    closed: [Option<OwnBuckets>; STORES],
    pub(super) tries: u8,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct World {
    pub(super) rows: [BucketRows; STORES],
    first: [Option<BucketRows>; STORES],
    /// What the stores know.
    pub(super) known: [BTreeSet<u32>; STORES],
    /// What was ever leased.
    pub(super) ever: [BTreeSet<u32>; STORES],
    pub(super) dividers: [Divider; 2],
    /// Those that are to come back.
    pub(super) lost: Vec<(usize, Backup)>,
    /// After how many divisions something was leased.
    pub(super) changed: usize,
    /// Whether somebody gave what the rows did not know, by the owner's word.
    pub(super) went_on: bool,
}

impl Divider {
    pub(super) fn new(division: Division, tries: u8) -> Self {
        Self {
            division,
            at: At::Begins,
            rest: Rest::AsRecorded,
            giver: None,
            version: 0,
            closed: Default::default(),
            tries,
        }
    }

    /// The further stores that it divides from this one on.
    fn receivers(&self, from: usize) -> impl Iterator<Item = usize> {
        (from..STORES).filter(|store| self.division[*store].is_some())
    }

    pub(super) fn is_under_way(&self) -> bool {
        !matches!(self.at, At::Begins | At::Done)
    }

    fn names_all_of(&self, other: &Divider) -> bool {
        other
            .receivers(1)
            .all(|store| self.division[store].is_some())
    }
}

impl World {
    pub(super) fn new(divisions: [Division; 2], lost: &[(usize, Backup)], tries: u8) -> Self {
        Self {
            rows: Default::default(),
            first: Default::default(),
            known: Default::default(),
            ever: Default::default(),
            dividers: divisions.map(|division| Divider::new(division, tries)),
            lost: lost.to_vec(),
            changed: 0,
            went_on: false,
        }
    }

    /// Whether the owner may say that no other store leases any, and each store has all that was leased there: no other configuration is being
    /// put in force that has stores which this one has not.
    pub(super) fn is_so(&self, who: usize) -> bool {
        let divider = &self.dividers[who];
        let mut others = (0..2).filter(|other| *other != who);
        let are_alone = others.all(|other| {
            let other = &self.dividers[other];
            !other.is_under_way() || divider.names_all_of(other)
        });
        let has_all = |store: usize| {
            let wanted = divider.division[store];
            let mut ever = self.ever[store].iter();
            let own = self.rows[store].own.as_ref();
            let is_open = own.is_some_and(|own| own.is_open && own.buckets.is_some());
            ever.all(|bucket| is_among(*bucket, wanted))
                && (store == GIVER || wanted.is_some() || !is_open)
        };
        are_alone && (0..STORES).all(has_all)
    }

    fn write(&mut self, store: usize, own: OwnBuckets) {
        self.rows[store].own = Some(own);
        if self.first[store].is_none() && self.lost.contains(&(store, Backup::First)) {
            self.first[store] = Some(self.rows[store].clone());
        }
    }

    /// Without the flaw a store has a row in any case then.
    pub(super) fn come_back(&mut self, store: usize, backup: Backup, flaw: Option<Flaw>) {
        self.known[store].clear();
        let mut rows = match backup {
            Backup::BeforeItsRow => BucketRows::default(),
            Backup::First => self.first[store].clone().unwrap_or_default(),
            Backup::Newest => self.rows[store].clone(),
        };
        let before = match rows.own.take() {
            Some(own) => own,
            None if flaw == Some(Flaw::LeavesNoRow) => {
                self.rows[store] = rows;
                return;
            }
            None => OwnBuckets::closed(format!("id {store} anew")),
        };
        let mut own = before.clone().restored(DRAWN);
        match flaw {
            Some(Flaw::ForgetsRestore) => own.is_restored = false,
            Some(Flaw::CountsUp) => own.version = before.version + 1,
            Some(_) | None => {}
        }
        rows.own = Some(own);
        self.rows[store] = rows;
    }

    /// One transaction; `None`: refused.
    pub(super) fn step(&mut self, who: usize, flaw: Option<Flaw>) -> Option<()> {
        let mut divider = self.dividers[who].clone();
        divider.at = match divider.at.clone() {
            At::Begins => {
                let own = self.rows[GIVER].own.as_ref();
                divider.giver = own.map(|own| own.store_id.clone());
                divider.version = own.map_or(0, |own| own.version);
                divider.closed = Default::default();
                divider.receivers(1).next().map(At::Closes)?
            }
            At::Closes(store) => {
                let own = self.close(store, &divider, flaw)?;
                divider.closed[store] = Some(own);
                let next = divider.receivers(store + 1).next();
                next.map_or(At::Gives, At::Closes)
            }
            At::Gives => {
                self.give(&mut divider, flaw)?;
                divider.receivers(1).next().map(At::Opens)?
            }
            At::Opens(store) => {
                self.open(store, &divider, flaw)?;
                let next = divider.receivers(store + 1).next();
                next.map_or(At::Done, At::Opens)
            }
            At::Done => return None,
        };
        self.dividers[who] = divider;
        Some(())
    }

    fn leased(&self, store: usize) -> Vec<u32> {
        self.known[store].iter().copied().collect()
    }

    fn close(&mut self, store: usize, divider: &Divider, flaw: Option<Flaw>) -> Option<OwnBuckets> {
        let is_unlooked = match flaw {
            Some(Flaw::ClosesUnlooked) => true,
            Some(Flaw::WordOverLeases) => divider.rest == Rest::HasNone,
            Some(_) | None => false,
        };
        let leased = match is_unlooked {
            true => Vec::new(),
            false => self.leased(store),
        };
        let own = self.rows[store].own.as_ref();
        let (wanted, giver) = (divider.division[store], divider.giver.as_deref());
        plan_close(own, (&leased, None), wanted, giver, divider.rest).ok()?;
        let own = own.cloned();
        let mut own = own.unwrap_or_else(|| OwnBuckets::closed(format!("id {store}")));
        own.is_open &= flaw == Some(Flaw::LeavesOpen);
        own.version += 1;
        self.write(store, own.clone());
        Some(own)
    }

    fn give(&mut self, divider: &mut Divider, flaw: Option<Flaw>) -> Option<()> {
        let leased = self.leased(GIVER);
        let receivers = divider.closed.iter().zip(&divider.division);
        let receivers = receivers.filter_map(|(own, buckets)| {
            let own = own.as_ref()?;
            Some(Receiver {
                store_id: own.store_id.clone(),
                name: own.store_id.clone(),
                buckets: *buckets,
                is_restored: own.is_restored,
            })
        });
        let receivers: Vec<Receiver> = receivers.collect();
        let rows = &mut self.rows[GIVER];
        if let (Some(Flaw::GivesForgotten), Some(own)) = (flaw, &mut rows.own) {
            own.is_open = true;
        }
        let version = match flaw {
            Some(Flaw::GivesUnlooked) => rows.own.as_ref().map_or(0, |own| own.version),
            Some(_) | None => divider.version,
        };
        let kept = divider.division[GIVER];
        rows.given = match plan_give(rows, version, &leased, kept, &receivers, divider.rest) {
            Ok(given) => given,
            Err(_) if flaw == Some(Flaw::GivesShared) => rows.given.clone(),
            Err(_) => return None,
        };
        let own = rows.own.clone();
        let mut own = own.unwrap_or_else(|| OwnBuckets::closed(format!("id {GIVER}")));
        own.giver.clone_from(&own.store_id);
        own.buckets = kept;
        own.is_open = true;
        own.version += 1;
        divider.giver = Some(own.store_id.clone());
        self.went_on |= divider.rest == Rest::HasNone;
        self.write(GIVER, own);
        Some(())
    }

    fn open(&mut self, store: usize, divider: &Divider, flaw: Option<Flaw>) -> Option<()> {
        let own = self.rows[store].own.as_ref();
        let version = match flaw {
            Some(Flaw::OpensUnlooked) => own.map_or(0, |own| own.version),
            Some(_) | None => divider.closed[store].as_ref()?.version,
        };
        plan_open(own, version).ok()?;
        let mut own = own.cloned()?;
        own.giver = divider.giver.clone()?;
        own.buckets = divider.division[store];
        own.is_open = true;
        own.version += 1;
        self.write(store, own);
        Some(())
    }
}
