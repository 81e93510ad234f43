//! Assigning a worker id to a database: the steps that its ask takes, in the order in which a crash between any two of them gives no number
//! twice, and loses none.
//!
//! The database says by which mark it asks; the store commits which number that is, and the mark that comes next; the database takes that
//! mark; the store forgets the older one; and only then the database gets its number. Who asks again with the older mark is a copy. An ask
//! that breaks off leaves the database with one of two marks, and the store knows both.

use keywright_core::Mark;
use thiserror::Error;
use uuid::Uuid;

use crate::assignment::{Ask, Asker, Refused};
use crate::database::{Database, DatabaseError, DatabaseStanding};
use crate::failure::Failure;
use crate::keys::{Keys, not_assigned};
use crate::store::assigned_admin::ReleasedNumber;
use crate::store::assigned_rows::Confirmed;
use crate::store::worker_id_rows;

/// How often an ask is planned anew, because others have asked meanwhile.
const PLANS_MAX: u32 = 20;

/// A number that a database has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AssignedId {
    /// The number.
    pub worker_id: u32,
    /// It has it since now.
    pub is_new: bool,
    /// The one that it had before.
    pub before: Option<u32>,
}

/// Why a database has no number, or no other.
#[derive(Debug, Error)]
pub enum AssignError {
    /// The database did not do what it was asked.
    #[error("database {place}: {error}")]
    Database {
        /// Which.
        place: String,
        /// Why.
        error: DatabaseError,
    },
    /// The store did not.
    #[error("{0}")]
    Store(Failure),
    /// The store has no number for it.
    #[error("{0}")]
    Refused(Refused),
    /// Another one asked with the same mark before.
    #[error(
        "database {place} is suspended, it issues no more snowflake ids: {refused}. One of the two is a copy of the other, or was restored from \
         a backup"
    )]
    Copy {
        /// Which.
        place: String,
        /// What is known.
        refused: Refused,
    },
    /// That was found before.
    #[error(
        "database {place} is suspended: another one with worker id {worker_id} and its mark has asked since"
    )]
    Suspended {
        /// Which.
        place: String,
        /// The number.
        worker_id: u32,
    },
    /// Its label is of another database.
    #[error("database {place} is a copy: its label is of another server or database")]
    Foreign {
        /// Which.
        place: String,
    },
    /// It has a number that no store assigned.
    #[error("database {place} has worker id {worker_id}, which was set by hand")]
    SetByHand {
        /// Which.
        place: String,
        /// The number.
        worker_id: u32,
    },
    /// Others asked for the same database, or with its mark.
    #[error("another ask has come between")]
    Overtaken,
    /// It is not the one that has the number.
    #[error("worker id {worker_id} is not that of database {place}, by its mark")]
    NotItsOwn {
        /// Which.
        place: String,
        /// The number.
        worker_id: u32,
    },
}

impl AssignError {
    /// What the reader can do.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Copy { .. } | Self::Suspended { .. } | Self::Foreign { .. } => {
                Some("keywright worker assign --new gives this database a worker id of its own")
            }
            Self::SetByHand { .. } => {
                Some("keywright worker assign --new gives it an assigned one in place of that")
            }
            Self::Refused(Refused::Restored) => {
                Some("keywright worker advance --above N, the largest number that any database has")
            }
            Self::Refused(Refused::StoreBehind { .. }) => Some(
                "is it the right store? after a restore: keywright store restored, then keywright worker advance --above N",
            ),
            Self::Refused(Refused::NoneLeft { .. }) => Some(
                "widen assigned_worker_ids and run keywright init --change-worker-ids, or keywright worker release",
            ),
            Self::Overtaken => Some("ask again"),
            Self::Refused(Refused::Stale { .. } | Refused::MayBeAnothers { .. })
            | Self::Database { .. }
            | Self::Store(_)
            | Self::NotItsOwn { .. } => None,
        }
    }
}

impl From<Failure> for AssignError {
    fn from(failure: Failure) -> Self {
        Self::Store(failure)
    }
}

/// An ask under way.
#[derive(Debug)]
pub struct Assigning {
    keys: Keys,
    database: Database,
    /// A number of its own, whatever it has.
    is_new: bool,
    standing: Option<DatabaseStanding>,
    plans: u32,
    step: Step,
}

/// What comes next.
#[derive(Debug, Clone)]
enum Step {
    Look,
    Intend,
    Plan(Asker),
    Commit(Asker, Ask),
    Mark(Asker, u32, Mark),
    Confirm(Asker, u32, Mark),
    Give(u32, Mark, Confirmed),
    Done(AssignedId),
}

/// What a database is to do, by what it says of itself.
fn begin(standing: &DatabaseStanding, is_new: bool) -> Result<Step, AssignError> {
    let place = || standing.name.place.clone();
    let under = |mark, worker_id| {
        Step::Plan(Asker {
            mark,
            worker_id,
            is_same_life: standing.is_same_life,
            database: standing.name.clone(),
        })
    };
    if is_new {
        return Ok(Step::Intend);
    }
    if !standing.is_here {
        return Err(AssignError::Foreign { place: place() });
    }
    match (standing.worker_id, standing.mark, standing.next) {
        // An ask that broke off goes on.
        (_, _, Some(next)) => Ok(under(next, None)),
        (Some(worker_id), Some(_), None) if standing.is_suspended => Err(AssignError::Suspended {
            place: place(),
            worker_id,
        }),
        (Some(worker_id), Some(mark), None) => Ok(under(mark, Some(worker_id))),
        (Some(worker_id), None, None) => Err(AssignError::SetByHand {
            place: place(),
            worker_id,
        }),
        (None, Some(_) | None, None) => Ok(Step::Intend),
    }
}

fn draw(asks: u32) -> Mark {
    Mark {
        asks,
        random: Uuid::new_v4().as_u128(),
    }
}

impl Assigning {
    /// Begins an ask. With `is_new` the database gets another number than it has.
    pub fn new(keys: Keys, database: Database, is_new: bool) -> Self {
        Self {
            keys,
            database,
            is_new,
            standing: None,
            plans: 0,
            step: Step::Look,
        }
    }

    /// Takes all steps.
    ///
    /// # Errors
    /// [`AssignError`]; may be asked again.
    pub async fn run(mut self) -> Result<AssignedId, AssignError> {
        loop {
            if let Some(assigned) = self.advance().await? {
                return Ok(assigned);
            }
        }
    }

    /// Takes one step; `None`: there are more. After an error, and wherever else it is given up, another ask goes on.
    ///
    /// # Errors
    /// [`AssignError`].
    pub async fn advance(&mut self) -> Result<Option<AssignedId>, AssignError> {
        let next = match self.step.clone() {
            Step::Look => {
                let standing = self.database.standing().await;
                let standing = standing.map_err(|error| self.of_database(error))?;
                let step = begin(&standing, self.is_new)?;
                self.standing = Some(standing);
                step
            }
            Step::Intend => self.intend().await?,
            Step::Plan(asker) => self.plan(asker).await?,
            Step::Commit(asker, ask) => {
                let next = draw(ask.asks);
                let layout = self.layout();
                match self.keys.commit_ask(&asker, &layout, ask, next).await? {
                    true => Step::Mark(asker, ask.worker_id, next),
                    false => Step::Plan(asker),
                }
            }
            Step::Mark(asker, worker_id, next) => {
                let marked = self.database.mark(Some(asker.mark), next).await;
                marked.map_err(|error| self.of_database(error))?;
                Step::Confirm(asker, worker_id, next)
            }
            Step::Confirm(asker, worker_id, next) => {
                let confirmed = self.keys.confirm_ask(worker_id, next).await?;
                let confirmed = confirmed.ok_or(AssignError::Overtaken)?;
                match asker.worker_id {
                    Some(worker_id) => Step::Done(AssignedId {
                        worker_id,
                        is_new: false,
                        before: None,
                    }),
                    None => Step::Give(worker_id, next, confirmed),
                }
            }
            Step::Give(worker_id, mark, confirmed) => {
                let Confirmed {
                    is_unused,
                    bound_ms,
                } = confirmed;
                let is_unused = is_unused && bound_ms.is_none();
                let range = self.keys.assigned_range();
                let range = range.ok_or_else(worker_id_rows::not_recorded)?;
                let given = self
                    .database
                    .assign(mark, worker_id, range, bound_ms, is_unused)
                    .await;
                given.map_err(|error| self.of_database(error))?;
                Step::Done(AssignedId {
                    worker_id,
                    is_new: true,
                    before: self.standing.as_ref().and_then(|its| its.worker_id),
                })
            }
            Step::Done(assigned) => return Ok(Some(assigned)),
        };
        self.step = next;
        Ok(None)
    }

    async fn intend(&self) -> Result<Step, AssignError> {
        let mark = draw(0);
        let marked = self.database.mark(None, mark).await;
        marked.map_err(|error| self.of_database(error))?;
        // The label is of this database from now on, whatever it was before.
        let standing = self.database.standing().await;
        let standing = standing.map_err(|error| self.of_database(error))?;
        Ok(Step::Plan(Asker {
            mark,
            worker_id: None,
            is_same_life: true,
            database: standing.name,
        }))
    }

    async fn plan(&mut self, asker: Asker) -> Result<Step, AssignError> {
        self.plans += 1;
        if self.plans > PLANS_MAX {
            return Err(AssignError::Overtaken);
        }
        let layout = self.layout();
        let refused = match self.keys.plan_ask(&asker, &layout).await? {
            Ok(ask) => return Ok(Step::Commit(asker, ask)),
            Err(refused) => refused,
        };
        match (&refused, asker.worker_id) {
            (Refused::Stale { .. }, Some(worker_id)) => {
                let suspended = self.database.suspend(asker.mark).await;
                suspended.map_err(|error| self.of_database(error))?;
                let place = asker.database.place;
                let report = format!("{place} had an older mark, and was suspended");
                // The database is told first: without the note nothing is wrong.
                self.keys.report_copy(worker_id, report).await?;
                Err(AssignError::Copy { place, refused })
            }
            (Refused::MayBeAnothers { .. }, _) => Ok(Step::Intend),
            (
                Refused::Stale { .. }
                | Refused::StoreBehind { .. }
                | Refused::Restored
                | Refused::NoneLeft { .. },
                _,
            ) => Err(AssignError::Refused(refused)),
        }
    }

    fn layout(&self) -> String {
        let standing = self.standing.as_ref();
        standing.map_or(String::new(), |its| its.layout.clone())
    }

    fn of_database(&self, error: DatabaseError) -> AssignError {
        AssignError::Database {
            place: self.database.place().to_owned(),
            error,
        }
    }
}

/// Has a database give its number up, and the store know how far it was used. May be repeated.
///
/// # Errors
/// [`AssignError`].
pub async fn release(
    keys: &Keys,
    database: &Database,
    worker_id: u32,
) -> Result<ReleasedNumber, AssignError> {
    let of_database = |error| AssignError::Database {
        place: database.place().to_owned(),
        error,
    };
    let rows = keys.assigned().await?;
    let row = rows.iter().find(|row| row.worker_id == worker_id);
    let row = row.ok_or_else(|| not_assigned(worker_id))?;
    let standing = database.standing().await.map_err(of_database)?;
    let known = standing
        .mark
        .filter(|mark| row.mark == *mark || row.next == Some(*mark));
    let has_another = standing.worker_id.is_some_and(|its| its != worker_id);
    let (Some(mark), true, false) = (known, standing.is_here, has_another) else {
        return Err(AssignError::NotItsOwn {
            place: database.place().to_owned(),
            worker_id,
        });
    };
    let release = async || database.release(mark, worker_id).await;
    release().await.map_err(of_database)?;
    // Once more: that it has committed is said of standbys, too, which would go on with the number when they are promoted.
    let used = release().await.map_err(of_database)?;
    let layout = used.layout.as_deref();
    match keys
        .given_up(worker_id, mark, used.bound_ms, layout)
        .await?
    {
        ReleasedNumber::NotAssigned => Err(AssignError::Overtaken),
        released @ (ReleasedNumber::Released | ReleasedNumber::Retired) => Ok(released),
    }
}
