//! Users of key ports as they are in force: who is let in, and what each may. [`secret`]: their passwords; `login`: how they are looked at;
//! `remembered`: what is known without looking; `turns`: in which order.

pub(crate) mod login;
mod remembered;
pub mod secret;
pub(crate) mod turns;

use std::sync::Arc;
use std::time::Duration;

use keywright_core::{Cause, Step, Tag};
use keywright_store::users::{PasswordHash, Right, User, UserChange, UserName, UserTable};
use keywright_store::{Above, Failure, FollowedUsers, Keys, TagChange, TagOptions, TagOrder};
use tokio::time::timeout;

use crate::users::login::{Login, Logins};
use crate::users::secret::HashMemory;
use crate::users::turns::Line;

/// How long a change of users is waited for until it is in force here, milliseconds. (Elsewhere it is within a second.)
const IN_FORCE_MS_MAX: u64 = 1_000;
/// Step of tags that are made.
const STEP: i64 = 1_000;

/// The users of a program's key ports. Cheap to clone.
#[derive(Debug, Clone)]
pub struct PortUsers {
    keys: Keys,
    followed: FollowedUsers,
    logins: Arc<Logins>,
    stale_max: Option<Duration>,
    wait_max: Duration,
}

impl PortUsers {
    /// Follows them from now on. `stale_s_max`: how long they stay in force while the store does not answer; 0: without end. `wait_ms_max`:
    /// how long a login waits for the store's first answer.
    pub fn follow(keys: &Keys, stale_s_max: u64, wait_ms_max: u64) -> Self {
        Self {
            followed: keys.follow_users(),
            keys: keys.clone(),
            logins: Arc::new(Logins::new()),
            stale_max: (stale_s_max > 0).then(|| Duration::from_secs(stale_s_max)),
            wait_max: Duration::from_millis(wait_ms_max),
        }
    }

    /// All of them.
    ///
    /// # Errors
    /// [`Cause::UsersUnknown`]: the store has not said who they are, or not for long.
    pub(crate) fn table(&self) -> Result<Arc<UserTable>, Failure> {
        let unknown = |message: String| {
            let failure = Failure::new(Cause::UsersUnknown, message);
            failure.hint("the log says why; keywright check looks at the store")
        };
        let (Some(table), Some(age)) = (self.followed.table(), self.followed.age()) else {
            return Err(unknown(
                "the store has not said yet who the users are".to_owned(),
            ));
        };
        match self.stale_max {
            Some(most) if age > most => Err(unknown(format!(
                "the store has not said for {} s who the users are, and users_stale_s_max is {}",
                age.as_secs(),
                most.as_secs()
            ))),
            Some(_) | None => Ok(table),
        }
    }

    /// A user who has logged in, as he is now; `None`: he has been removed, or has another password.
    ///
    /// # Errors
    /// As [`PortUsers::table`].
    pub(crate) fn still(&self, user: &User) -> Result<Option<Arc<User>>, Failure> {
        let table = self.table()?;
        let now = table.get(user.name.as_str());
        Ok(now.filter(|now| now.password == user.password).cloned())
    }

    /// Looks at what a client says of itself, who waits in this line if that takes time.
    pub(crate) fn log_in(&self, line: Line, user: &[u8], password: &[u8]) -> Login {
        match self.table() {
            Ok(table) => self.logins.begin(&table, line, (user, password)),
            Err(failure) if self.followed.age().is_some() => Login::Decided(Err(failure)),
            // The program has just begun.
            Err(_) => {
                let (users, said) = (self.clone(), (user.to_vec(), password.to_vec()));
                Login::Coming(Box::pin(async move {
                    // Too late is told by what follows.
                    let _ = timeout(users.wait_max, users.followed.known()).await;
                    let table = users.table()?;
                    match users.logins.begin(&table, line, (&said.0, &said.1)) {
                        Login::Decided(decided) => decided,
                        Login::Coming(coming) => coming.await,
                    }
                }))
            }
        }
    }

    /// Hashes a new password, when it is its turn.
    ///
    /// # Errors
    /// It is too short or too long; too many are being looked at.
    pub(crate) async fn hash(&self, password: Vec<u8>) -> Result<PasswordHash, Failure> {
        let hash = move |memory: &mut HashMemory| memory.hash(&password);
        self.logins.in_turn(hash).await
    }

    /// Changes a user, and waits until that is in force here.
    ///
    /// # Errors
    /// There is no such user, or there is one already; the store cannot be used.
    pub(crate) async fn change(&self, name: UserName, change: UserChange) -> Result<(), Failure> {
        let mut followed = self.followed.clone();
        followed.seen();
        self.keys.change_user(name, change).await?;
        followed.ask();
        // What is too late here is in force a little later, as elsewhere.
        let _ = timeout(Duration::from_millis(IN_FORCE_MS_MAX), followed.changed()).await;
        Ok(())
    }

    /// Makes a tag that is for no rule's tables.
    ///
    /// # Errors
    /// There is one already, or a rule is for it; the store cannot be used.
    pub(crate) async fn create(&self, tag: &Tag, order: TagOrder) -> Result<(), Failure> {
        let step = Step::new(STEP);
        let step = step.map_err(|error| Failure::new(Cause::ArgumentOutOfRange, error.to_string()));
        let options = TagOptions {
            order,
            ..TagOptions::with_step(step?)
        };
        self.keys.create_tag_of_no_rule(tag, &options).await
    }

    /// Lets another program give keys of ordered tags, of the slot group with this number or of all.
    ///
    /// # Errors
    /// This one does not give them.
    pub(crate) async fn demote(&self, group: Option<u64>) -> Result<(), Failure> {
        self.keys.demote(group).await
    }

    /// Changes a tag.
    ///
    /// # Errors
    /// There is no such tag, or it cannot be so; the store cannot be used.
    pub(crate) async fn alter(&self, tag: &Tag, change: &TagChange) -> Result<(), Failure> {
        self.keys.alter_tag(tag, change).await
    }

    /// Drops a tag; the first number that nobody was given.
    ///
    /// # Errors
    /// There is no such tag, or a rule is for it; the store cannot be used.
    pub(crate) async fn drop_tag(&self, tag: &Tag) -> Result<u64, Failure> {
        self.keys.drop_tag(tag).await
    }

    /// Raises a tag; the first number that nobody was given. `use_up`: also where that leaves it none of its numbers, or almost none.
    ///
    /// # Errors
    /// There is no such tag; it cannot have such a number; it would be used up; the store cannot be used.
    pub(crate) async fn advance(&self, tag: Tag, id: u64, use_up: bool) -> Result<u64, Failure> {
        match use_up {
            true => self.keys.advance_using_up(&tag, id).await,
            false => self.keys.advance(&Above::Tag { tag, id }).await,
        }
    }
}

/// Whether a user may do that with a name.
///
/// # Errors
/// [`Cause::RightsMissing`].
pub(crate) fn may(user: &User, right: Right, name: &[u8]) -> Result<(), Failure> {
    if user.may(right, name) {
        return Ok(());
    }
    let (who, right) = (&user.name, right.name());
    let shown = name.get(..64).unwrap_or(name).escape_ascii();
    let message = format!("user \"{who}\" may not {right} \"{shown}\"");
    let failure = Failure::new(Cause::RightsMissing, message);
    Err(failure.hint(format!(
        "an administrator grants it: KEYWRIGHT USER GRANT {who} {right} {shown}"
    )))
}

/// Whether a user may add, change and remove users.
///
/// # Errors
/// [`Cause::RightsMissing`].
pub(crate) fn may_administer(user: &User) -> Result<(), Failure> {
    match user.administers() {
        true => Ok(()),
        false => Err(Failure::new(
            Cause::RightsMissing,
            format!("user \"{}\" may not administer users", user.name),
        )),
    }
}
