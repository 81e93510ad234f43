//! Moving a tag of a PostgreSQL database to the store, or back: the steps in their order, each of which may be repeated, so that a move that broke off
//! anywhere goes on when it is begun again. Why they come in this order stands in `pg_ext/src/manage/moving.rs`, what the store decides in
//! [`crate::moving`].

mod between_stores;

use keywright_core::Tag;
use thiserror::Error;

use crate::database::{Database, DatabaseError, TagStanding};
use crate::failure::Failure;
use crate::keys::Keys;
use crate::moving::{Comer, Heir, Leaver, Lineage};
use crate::store::moved_rows::MovedTag;

pub use between_stores::Relocating;

/// Where a tag's ids are to come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MovedTo {
    /// The store, for all.
    Fed,
    /// The database that asks, and nobody else.
    Native,
}

/// What came of a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MoveProgress {
    /// It was taken, and there are more.
    Took(String),
    /// The tag has moved.
    Done(String),
}

/// Why a tag has not moved.
#[derive(Debug, Error)]
pub enum MoveError {
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
    /// Its server must forbid that an old catalogue issues.
    #[error(
        "keywright.source of the server at {place} says move {setting} of tag \"{tag}\", and this is move {needed}"
    )]
    SettingMissing {
        /// Which database.
        place: String,
        /// Which tag.
        tag: Tag,
        /// What the server was told.
        setting: u32,
        /// What it is to be told.
        needed: u32,
    },
    /// Its row is of before a move, and there is another number.
    #[error(
        "tag \"{tag}\" of {place} is a native tag of move {number}, and keywright.source says move {setting}: it is not fed, so it cannot be moved back"
    )]
    OldCatalogue {
        /// Which database.
        place: String,
        /// Which tag.
        tag: Tag,
        /// What the server was told.
        setting: u32,
        /// The number of the tag's row.
        number: u32,
    },
}

impl MoveError {
    /// What the reader can do.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::SettingMissing { tag, needed, .. } => Some(format!(
                "set keywright.source = '{tag}=fed:{needed}' on every standby first, then here, beside what it says of other tags; restart; then run this again"
            )),
            Self::OldCatalogue { tag, .. } => Some(format!(
                "is it an old backup, or a standby that was promoted without the last? keywright tag move {tag} --to fed --heir-lost --above ID, with the largest id that anybody may have issued"
            )),
            Self::Database { .. } | Self::Store(_) => None,
        }
    }
}

impl From<Failure> for MoveError {
    fn from(failure: Failure) -> Self {
        Self::Store(failure)
    }
}

/// A move under way.
#[derive(Debug)]
pub struct Moving {
    keys: Keys,
    database: Database,
    tag: Tag,
    to: MovedTo,
    /// The largest id that an heir who is lost may have issued.
    lost: Option<u64>,
    step: Step,
}

/// What comes next.
#[derive(Debug, Clone)]
enum Step {
    Look,
    /// To the store.
    Leave(TagStanding),
    Settle,
    Open(TagStanding),
    Opened(TagStanding, MovedTag),
    /// And back.
    Close(TagStanding),
    Return(TagStanding, MovedTag),
    Confirm,
    Done(String),
}

impl Moving {
    /// Begins a move. `lost` is the owner's word that the heir which the store has named, if it has, issues no more, and for the largest id that
    /// it may have issued.
    pub fn new(keys: Keys, database: Database, tag: Tag, to: MovedTo, lost: Option<u64>) -> Self {
        Self {
            keys,
            database,
            tag,
            to,
            lost,
            step: Step::Look,
        }
    }

    /// Takes one step. After an error, and wherever else it is given up, another move goes on.
    ///
    /// # Errors
    /// [`MoveError`].
    pub async fn advance(&mut self) -> Result<MoveProgress, MoveError> {
        let tag = self.tag.clone();
        let place = self.database.place().to_owned();
        let (took, next) = match self.step.clone() {
            Step::Look => {
                let standing = self.standing().await?;
                let said = format!(
                    "tag \"{tag}\" of {place} is {} (move {}), and keywright.source says move {}",
                    standing.source, standing.number, standing.setting
                );
                (said, self.begin(standing).await?)
            }
            Step::Leave(standing) => {
                let moved = self.database.move_to_fed(&tag, standing.setting).await;
                let above = moved.map_err(|error| self.of_database(error))?;
                let said = format!("{place} issues no more ids of its own, which end at {above}");
                (said, Step::Settle)
            }
            Step::Settle => {
                let standing = self.standing().await?;
                let said = format!("{place} has committed that, move {}", standing.number);
                (said, Step::Open(standing))
            }
            Step::Open(standing) => {
                let comer = comer(&standing, standing.number, standing.before);
                let opened = self.keys.open_moved(&tag, comer, &place, self.lost).await?;
                let said = format!("the store's tag is open, and goes on at {}", opened.free);
                (said, Step::Opened(standing, opened))
            }
            Step::Opened(standing, opened) => self.note_opened(&standing, &opened).await?,
            Step::Close(standing) => self.close(standing).await?,
            Step::Return(standing, closed) => self.give_back(&standing, &closed).await?,
            Step::Confirm => {
                let standing = self.standing().await?;
                let said = format!("{place} has committed that, move {}", standing.number);
                (said, Step::Done(native(&tag, &place, standing.number)))
            }
            Step::Done(done) => return Ok(MoveProgress::Done(done)),
        };
        self.step = next;
        Ok(MoveProgress::Took(took))
    }

    /// The database takes what is handed over.
    async fn note_opened(
        &self,
        standing: &TagStanding,
        opened: &MovedTag,
    ) -> Result<(String, Step), MoveError> {
        let (tag, place, number) = (&self.tag, self.database.place(), standing.number);
        let noted = self.database.move_opened(tag, number, &opened.key_space);
        noted.await.map_err(|error| self.of_database(error))?;
        let said = format!("{place} knows that, and takes what is handed over");
        let done = format!("tag \"{tag}\" of {place} is fed from the store, move {number}");
        Ok((said, Step::Done(done)))
    }

    /// The store closes the tag for everybody, and names the database its heir.
    async fn close(&self, standing: TagStanding) -> Result<(String, Step), MoveError> {
        let (tag, place) = (&self.tag, self.database.place());
        let leaver = Leaver {
            heir: Heir {
                lineage: lineage(&standing),
                incarnation: standing.incarnation.clone(),
            },
            number: standing.setting,
            seen: match standing.is_fed() {
                true => standing.above.saturating_add(1),
                // Its ids since are its own.
                false => 0,
            },
        };
        let closing = self
            .keys
            .close_moved(tag, (leaver, standing.key_space), place, self.lost);
        let closed = closing.await?;
        let said = format!(
            "the store's tag is closed for everybody, and {place} is its heir from {} on",
            closed.free
        );
        let next = match standing.is_fed() {
            true => Step::Return(standing, closed),
            false => Step::Done(native(tag, place, standing.number)),
        };
        Ok((said, next))
    }

    /// The heir issues ids of its own again.
    async fn give_back(
        &self,
        standing: &TagStanding,
        closed: &MovedTag,
    ) -> Result<(String, Step), MoveError> {
        let (database, free) = (&self.database, closed.free);
        let returned = database.move_to_native(&self.tag, standing, &closed.key_space, free);
        returned.await.map_err(|error| self.of_database(error))?;
        let place = database.place();
        let said = format!("{place} issues ids of its own again, from {free} on");
        Ok((said, Step::Confirm))
    }

    /// What is to be done, by what the database says of itself.
    async fn begin(&self, standing: TagStanding) -> Result<Step, MoveError> {
        let place = || self.database.place().to_owned();
        let tag = self.tag.clone();
        let (setting, number) = (standing.setting, standing.number);
        match (self.to, standing.is_fed()) {
            // Before anything is changed the store is asked.
            (MovedTo::Fed, false) if setting > number => {
                let comer = comer(&standing, setting, number);
                self.keys.may_open(&tag, comer, self.lost).await?;
                Ok(Step::Leave(standing))
            }
            (MovedTo::Fed, false) => Err(MoveError::SettingMissing {
                place: place(),
                tag,
                setting,
                needed: number.saturating_add(1),
            }),
            (MovedTo::Fed, true) if number == 0 => Ok(Step::Done(format!(
                "tag \"{tag}\" of {} was made as a fed one",
                place()
            ))),
            (MovedTo::Fed, true) => Ok(Step::Open(standing)),
            (MovedTo::Native, true) if setting >= number => Ok(Step::Close(standing)),
            (MovedTo::Native, true) => Err(MoveError::SettingMissing {
                place: place(),
                tag,
                setting,
                needed: number,
            }),
            // Again; a store that was restored since may have it open.
            (MovedTo::Native, false) if setting == number => {
                let heir = self.keys.heir_of(&tag).await?;
                match heir.map(|heir| heir.lineage) {
                    Some(its) if its == lineage(&standing) => {
                        Ok(Step::Done(native(&tag, &place(), number)))
                    }
                    Some(_) | None if number > 0 => Ok(Step::Close(standing)),
                    // It was never moved, as far as it shows.
                    Some(_) | None => Err(MoveError::OldCatalogue {
                        place: place(),
                        tag,
                        setting,
                        number,
                    }),
                }
            }
            (MovedTo::Native, false) => Err(MoveError::OldCatalogue {
                place: place(),
                tag,
                setting,
                number,
            }),
        }
    }

    async fn standing(&self) -> Result<TagStanding, MoveError> {
        let standing = self.database.tag_move(&self.tag).await;
        standing.map_err(|error| self.of_database(error))
    }

    fn of_database(&self, error: DatabaseError) -> MoveError {
        MoveError::Database {
            place: self.database.place().to_owned(),
            error,
        }
    }
}

fn native(tag: &Tag, place: &str, number: u32) -> String {
    format!("tag \"{tag}\" of {place} issues ids of its own, move {number}; nobody else gets any")
}

fn lineage(standing: &TagStanding) -> Lineage {
    Lineage {
        system: standing.system.clone(),
        database: standing.database,
    }
}

fn comer(standing: &TagStanding, number: u32, before: u32) -> Comer {
    Comer {
        lineage: lineage(standing),
        number,
        before,
        end: standing.above.saturating_add(1),
    }
}
