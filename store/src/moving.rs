//! Tags of PostgreSQL databases that move to the store, and back: what the store decides, pure. The steps, and why they come in this order, are
//! those of `pg_ext/src/manage/moving.rs`; [`crate::Moving`] takes them.
//!
//! A tag is open, and then programs reserve of it; or it is closed, and names its heir, who issues its ids natively above its bound. It is closed by
//! compare-and-swap for everybody at once, and stays so until the heir's database comes back, or the owner says that the heir is lost.

use std::fmt;

use keywright_core::Cause;

use crate::failure::Failure;

/// A database and its copies, standbys and backups: they cannot be told from each other by this.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Lineage {
    /// The server's system identifier.
    pub system: String,
    /// The database's object id.
    pub database: u32,
}

/// Who issues the ids of a closed tag: a database in one life of its server's memory.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Heir {
    /// Which database.
    pub lineage: Lineage,
    /// Which life: no copy has it.
    pub incarnation: String,
}

impl Heir {
    /// Reads what [`Heir`]'s `Display` writes.
    pub fn parse(text: &str) -> Option<Self> {
        let mut words = text.split(' ');
        let (system, database, incarnation) = (words.next()?, words.next()?, words.next()?);
        let database = database.parse().ok()?;
        words.next().is_none().then(|| Self {
            lineage: Lineage {
                system: system.to_owned(),
                database,
            },
            incarnation: incarnation.to_owned(),
        })
    }
}

impl fmt::Display for Heir {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            lineage: Lineage { system, database },
            incarnation,
        } = self;
        write!(formatter, "{system} {database} {incarnation}")
    }
}

/// A tag, as the store has it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TagState {
    /// The first id that was ever given, or will be.
    pub start: u64,
    /// The first id that nobody was given.
    pub free: u64,
    /// Who issues natively; `None`: the tag is open.
    pub heir: Option<Heir>,
    /// The number of the move by which the database in question came to the tag, or left it, last.
    pub known: Option<u32>,
}

/// A database that comes to the tag, and issues no more ids of its own.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Comer {
    /// Which.
    pub lineage: Lineage,
    /// The number of the move.
    pub number: u32,
    /// The number that it had as a native tag.
    pub before: u32,
    /// The first id above all that it may have issued.
    pub end: u64,
}

/// What becomes of a tag that is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Opening {
    /// See [`TagState::start`].
    pub start: u64,
    /// See [`TagState::free`].
    pub free: u64,
}

/// A database that leaves the tag, for itself.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Leaver {
    /// Who it is.
    pub heir: Heir,
    /// The number that it has as a native tag then.
    pub number: u32,
    /// The first id above all that it was handed over, and that others know to have been given.
    pub seen: u64,
}

/// Why a tag is not opened, or not closed.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Refused {
    /// The tag gave ids, or may have, that the database had before.
    GaveBelow {
        /// From here on.
        start: u64,
        /// The first id above all of the database.
        end: u64,
    },
    /// Another one issues natively.
    AnothersIds(Heir),
    /// The database that asks is of an older state than one that was here already: an old backup, a standby that lacks the last.
    OlderCatalogue {
        /// The number that the store knows.
        known: u32,
        /// The number that the database has.
        number: u32,
    },
    /// More was given than the store knows of.
    GoneBack {
        /// The first id that was given to nobody, as others know.
        seen: u64,
        /// As the store has it.
        free: u64,
    },
}

impl Refused {
    /// As it is told.
    pub fn failure(&self, tag: &str) -> Failure {
        match self {
            Self::GaveBelow { start, end } => Failure::new(
                Cause::TagMoved,
                format!(
                    "tag \"{tag}\" of the store gave ids from {start} on, and the database had its own up to {}",
                    end.saturating_sub(1)
                ),
            )
            .hint("ids of both may be the same, so they do not become one tag: use a tag of another name, and before any program begins with it: keywright advance TAG --above ID"),
            Self::AnothersIds(heir) => Failure::new(
                Cause::TagMoved,
                format!(
                    "tag \"{tag}\" is closed: database {} of the server with system identifier {} issues its ids natively, since its memory's life {}",
                    heir.lineage.database, heir.lineage.system, heir.incarnation
                ),
            )
            .hint(
                "move it back from there, also after its server was restarted; only if that database is lost, and no copy of it issues ids: --heir-lost --above ID, with the largest id \
                 that it may have issued",
            ),
            Self::OlderCatalogue { known, number } => Failure::new(
                Cause::TagMoved,
                format!(
                    "tag \"{tag}\" was moved by this database for number {known} already, and what it says of itself is of number {number}: it is an old backup, or \
                     was promoted without the last"
                ),
            )
            .hint("if nothing newer of it is in use: --heir-lost --above ID, with the largest id that any may have issued"),
            Self::GoneBack { seen, free } => Failure::new(
                Cause::BoundDamaged,
                format!(
                    "the store has gone back: ids of tag \"{tag}\" were given up to {}, and the store's bound is {free}",
                    seen.saturating_sub(1)
                ),
            )
            .hint(format!(
                "is it an old backup? keywright advance {tag} --above {}, or the highest id in use if that is higher",
                seen.saturating_sub(1)
            )),
        }
    }
}

/// Opens a tag for a database that issues natively no more. `lost`: the owner's word for the largest id that an heir who is lost may have issued, or the
/// database itself, of which an old backup was put back.
///
/// # Errors
/// [`Refused`]: ids could come twice.
pub fn plan_open(tag: &TagState, comer: &Comer, lost: Option<u64>) -> Result<Opening, Refused> {
    let older = |known| Refused::OlderCatalogue {
        known,
        number: comer.before,
    };
    let vouched = lost.map_or(0, |lost| lost.saturating_add(1));
    let free = tag.free.max(comer.end).max(vouched);
    let start = tag.start;
    // A database that was never here, nor any of its data, has ids of another tag, whatever became of the heir.
    let is_a_strangers = tag.known.is_none() && comer.before == 0;
    match (&tag.heir, lost, tag.known) {
        (Some(_), Some(_), _)
            if is_a_strangers && tag.start < comer.end && tag.start < tag.free =>
        {
            Err(Refused::GaveBelow {
                start,
                end: comer.end,
            })
        }
        (Some(_), Some(_), _) => Ok(Opening { start, free }),
        (None, Some(_), Some(known)) if known > comer.number => Ok(Opening { start, free }),
        (Some(heir), None, _) if heir.lineage != comer.lineage => {
            Err(Refused::AnothersIds(heir.clone()))
        }
        // Only the native life that began when it became the heir knows how far its ids came.
        (Some(_), None, Some(known)) if known == comer.before && comer.number > known => {
            Ok(Opening { start, free })
        }
        (Some(_), None, known) => Err(older(known.unwrap_or(0))),
        // Again: what it had then is below, though an old catalogue may count a gap above that.
        (None, _, Some(known)) if known == comer.number => Ok(Opening { start, free }),
        (None, _, Some(known)) if known > comer.number => Err(older(known)),
        (None, _, Some(_) | None) if tag.start == tag.free => Ok(Opening { start: free, free }),
        (None, _, Some(_) | None) if tag.start >= comer.end => Ok(Opening {
            start,
            free: tag.free.max(vouched),
        }),
        (None, _, Some(_) | None) => Err(Refused::GaveBelow {
            start,
            end: comer.end,
        }),
    }
}

/// Closes a tag for everybody, and names its heir: the first id that is his.
///
/// # Errors
/// [`Refused`]: ids could come twice.
pub fn plan_close(tag: &TagState, leaver: &Leaver, lost: Option<u64>) -> Result<u64, Refused> {
    match (&tag.heir, lost) {
        (Some(heir), _) if *heir == leaver.heir => Ok(tag.free),
        (Some(_), Some(lost)) => Ok(tag.free.max(leaver.seen).max(lost.saturating_add(1))),
        (Some(heir), None) => Err(Refused::AnothersIds(heir.clone())),
        (None, _) => match tag.known {
            Some(known) if known > leaver.number && lost.is_none() => {
                Err(Refused::OlderCatalogue {
                    known,
                    number: leaver.number,
                })
            }
            Some(_) | None if tag.free < leaver.seen => Err(Refused::GoneBack {
                seen: leaver.seen,
                free: tag.free,
            }),
            Some(_) | None => Ok(tag.free.max(lost.map_or(0, |lost| lost.saturating_add(1)))),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heir(system: &str) -> Heir {
        Heir {
            lineage: Lineage {
                system: system.to_owned(),
                database: 5,
            },
            incarnation: "1".to_owned(),
        }
    }

    #[test]
    fn a_lost_heir_makes_no_room_for_another_databases_ids() {
        let closed = TagState {
            start: 48_001,
            free: 61_001,
            heir: Some(heir("one")),
            known: None,
        };
        let comer = |before, end| Comer {
            lineage: heir("another").lineage,
            number: 2,
            before,
            end,
        };
        // The heir issued up to 70,000, by the owner's word, and a database that was never moved has had 1 to 50,000 of its own.
        let stranger = plan_open(&closed, &comer(0, 50_001), Some(70_000));
        assert_eq!(
            stranger,
            Err(Refused::GaveBelow {
                start: 48_001,
                end: 50_001
            })
        );
        // One whose ids end below, and the heir's data in another server (pg_upgrade, a dump), whose row knows its move.
        for its in [comer(0, 48_001), comer(1, 65_001)] {
            let opened = plan_open(&closed, &its, Some(70_000)).unwrap();
            assert_eq!((opened.start, opened.free), (48_001, 70_001));
        }
    }

    /// An old backup of the database was put back before the store's tag was open: its end says too little.
    #[test]
    fn the_owners_word_counts_also_where_no_heir_is_named() {
        let comer = |number| Comer {
            lineage: heir("one").lineage,
            number,
            before: 0,
            end: 30_001,
        };
        // It was never there, it was opened by the same step before, and its ids are all below the store's.
        let never = |start| TagState {
            start,
            free: start,
            heir: None,
            known: None,
        };
        let again = TagState {
            known: Some(1),
            ..never(30_001)
        };
        let above = TagState {
            start: 40_001,
            free: 45_001,
            heir: None,
            known: None,
        };
        for (state, before_free) in [(never(1), 30_001), (again, 30_001), (above, 45_001)] {
            let free = |lost| plan_open(&state, &comer(1), lost).unwrap().free;
            assert_eq!(free(None), before_free);
            assert_eq!(free(Some(50_000)), 50_001);
            assert_eq!(free(Some(7)), before_free);
        }
    }
}
