//! Moving a tag from one store to another: the steps in their order, each of which may be repeated, so that a move that broke off anywhere goes on
//! when it is begun again. Why they come in this order stands in [`crate::home`].

use keywright_core::Tag;

use super::MoveProgress;
use crate::failure::Failure;
use crate::keys::Keys;
use crate::keys::relocation::{MoveEnds, MoveLook};
use crate::store::home_rows::FoundHome;

/// A move under way.
#[derive(Debug)]
pub struct Relocating {
    keys: Keys,
    tag: Tag,
    to: String,
    step: Step,
}

/// What comes next.
#[derive(Debug)]
enum Step {
    Look,
    Prepare(MoveEnds, Box<FoundHome>),
    Close(MoveEnds, String),
    Open(MoveEnds, String),
    Settle(String),
    Done(String),
}

impl Relocating {
    /// Begins, or goes on with, a move to the store of that name.
    pub fn new(keys: Keys, tag: Tag, to: &str) -> Self {
        Self {
            keys,
            tag,
            to: to.to_owned(),
            step: Step::Look,
        }
    }

    /// Takes the next step.
    ///
    /// # Errors
    /// Ids could come twice; a store cannot be used. Begun again, it goes on.
    pub async fn advance(&mut self) -> Result<MoveProgress, Failure> {
        let (tag, to) = (&self.tag, &self.to);
        let (took, next) = match &self.step {
            Step::Look => match self.keys.look_for_move(tag, to).await? {
                MoveLook::AtHome(free) => {
                    let said = format!("tag \"{tag}\" is in store \"{to}\" already");
                    let done = format!("tag \"{tag}\" is in store \"{to}\", from {free} on");
                    (said, Step::Settle(done))
                }
                MoveLook::From(ends, found) => {
                    let from = ends.from.store_name();
                    let said = format!("tag \"{tag}\" is to go from store \"{from}\" to \"{to}\"");
                    (said, Step::Prepare(ends, found))
                }
            },
            Step::Prepare(ends, found) => {
                let key_space = ends.prepare(tag, found).await?;
                let said = format!(
                    "store \"{to}\" has a row of it, of which nobody reserves yet: key space {key_space}"
                );
                (said, Step::Close(ends.clone(), key_space))
            }
            Step::Close(ends, key_space) => {
                let bound = ends.close(tag, key_space).await?;
                let said = format!(
                    "store \"{}\" has closed it for everybody: all that was reserved there is below {bound}",
                    ends.from.store_name()
                );
                (said, Step::Open(ends.clone(), key_space.clone()))
            }
            Step::Open(ends, key_space) => {
                let first = ends.open(tag, key_space).await?;
                let said = format!("store \"{to}\" has opened it: it goes on at {first}");
                let done = format!("tag \"{tag}\" is in store \"{to}\", from {first} on");
                (said, Step::Settle(done))
            }
            Step::Settle(done) => (self.settle().await?, Step::Done(done.clone())),
            Step::Done(done) => return Ok(MoveProgress::Done(done.clone())),
        };
        self.step = next;
        Ok(MoveProgress::Took(took))
    }

    /// It may be open in no other store of the configuration either.
    async fn settle(&self) -> Result<String, Failure> {
        let closed = self.keys.settle(&self.tag).await?;
        Ok(match closed.is_empty() {
            true => "it is closed in all other stores of the configuration".to_owned(),
            false => format!("it is closed now in {}, too", closed.join(", ")),
        })
    }
}
