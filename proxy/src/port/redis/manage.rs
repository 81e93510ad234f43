//! `KEYWRIGHT USER`, `CREATE` and `ADVANCE`: what users with other rights than to take keys may do.

use keywright_core::{Cause, Tag};
use keywright_resp::command::{Granted, Secret, UserCommand};
use keywright_resp::reply::Writer;
use keywright_store::users::{Grant, NamePattern, Right, Rights, UserChange, UserName, UserTable};
use keywright_store::{Failure, KeySpec};

use crate::port::access::{Who, count_refusal};
use crate::port::issue;
use crate::port::keys::PortKeys;
use crate::port::redis::outcome::{Done, Outcome};
use crate::port::redis::refused;
use crate::users::{PortUsers, secret};

/// What becomes of a command, or why it is refused.
pub(super) fn carry_out_user(
    command: UserCommand<'_>,
    who: &Who,
    keys: &PortKeys,
    to: &mut Writer<'_>,
) -> Outcome {
    if command == UserCommand::Whoami {
        to.bulk(who.name().as_bytes());
        return Outcome::Answered;
    }
    let users = match users_of(keys, who.may_administer()) {
        Ok(users) => users,
        Err(failure) => return refuse(keys, b"", &failure, to),
    };
    let change = match command {
        UserCommand::Whoami => return Outcome::Answered,
        UserCommand::List => {
            match users.table() {
                Ok(table) => list(&table, to),
                Err(failure) => return refuse(keys, b"", &failure, to),
            }
            return Outcome::Answered;
        }
        UserCommand::Add { name, password } => Wanted::with_password(name, password, Wanted::Add),
        UserCommand::SetPassword { name, password } => {
            Wanted::with_password(name, password, Wanted::SetPassword)
        }
        UserCommand::Grant(granted) => {
            read_grant(granted).map(|(name, grant)| Wanted::Change(name, UserChange::Grant(grant)))
        }
        UserCommand::Revoke(granted) => {
            read_grant(granted).map(|(name, grant)| Wanted::Change(name, UserChange::Revoke(grant)))
        }
        UserCommand::Remove(name) => {
            read_name(name).map(|name| Wanted::Change(name, UserChange::Remove))
        }
    };
    match change {
        Ok(change) => Outcome::Doing(Box::pin(change.carry_out(users.clone()))),
        Err(failure) => refuse(keys, b"", &failure, to),
    }
}

/// A change, as it was asked for.
enum Wanted {
    Add(UserName, Vec<u8>),
    SetPassword(UserName, Vec<u8>),
    Change(UserName, UserChange),
}

impl Wanted {
    fn with_password(
        name: &[u8],
        password: Secret<'_>,
        wanted: fn(UserName, Vec<u8>) -> Self,
    ) -> Result<Self, Failure> {
        let name = read_name(name)?;
        secret::check_length(password.0)?;
        Ok(wanted(name, password.0.to_vec()))
    }

    async fn carry_out(self, users: PortUsers) -> Result<Done, Failure> {
        let (name, change) = match self {
            Self::Change(name, change) => (name, change),
            Self::Add(name, password) => {
                let password = users.hash(password).await?;
                let grants = Vec::new();
                (name, UserChange::Add { password, grants })
            }
            Self::SetPassword(name, password) => {
                (name, UserChange::SetPassword(users.hash(password).await?))
            }
        };
        users.change(name, change).await.map(|()| Done::Ok)
    }
}

fn text(bytes: &[u8]) -> Result<&str, Failure> {
    let invalid = |_| Failure::new(Cause::UserInvalid, "what is said of a user is not UTF-8");
    std::str::from_utf8(bytes).map_err(invalid)
}

fn read_name(name: &[u8]) -> Result<UserName, Failure> {
    UserName::parse(text(name)?)
}

fn read_grant(granted: Granted<'_>) -> Result<(UserName, Grant), Failure> {
    let name = read_name(granted.name)?;
    let rights = Rights::parse(text(granted.rights)?)?;
    let pattern = NamePattern::parse(text(granted.pattern)?)?;
    Ok((name, Grant::new(pattern, rights)?))
}

fn list(table: &UserTable, to: &mut Writer<'_>) {
    to.map(table.len());
    for user in table.all() {
        to.bulk(user.name.as_str().as_bytes());
        to.map(user.grants.len());
        for grant in &user.grants {
            to.bulk(grant.pattern.as_str().as_bytes());
            to.bulk(grant.rights.to_string().as_bytes());
        }
    }
}

/// Makes the tag of a name: the one that its keys come from or, where the listener has no such name, the tag that is called so.
pub(super) fn create(name: &[u8], who: &Who, keys: &PortKeys, to: &mut Writer<'_>) -> Outcome {
    let wanted = users_of(keys, who.may_manage(Right::Create, name));
    let wanted = wanted.and_then(|users| Ok((users, tag_to_make(name, keys)?)));
    match wanted {
        Ok((users, tag)) => {
            let users = users.clone();
            Outcome::Doing(Box::pin(async move {
                users.create(&tag).await.map(|()| Done::Ok)
            }))
        }
        Err(failure) => refuse(keys, name, &failure, to),
    }
}

/// Has all later keys of a name lie above a number.
pub(super) fn advance(
    (name, above): (&[u8], i64),
    who: &Who,
    keys: &PortKeys,
    to: &mut Writer<'_>,
) -> Outcome {
    let wanted = users_of(keys, who.may_manage(Right::Manage, name));
    let wanted = wanted.and_then(|users| Ok((users, tag_to_raise(name, keys)?, number(above)?)));
    match wanted {
        Ok((users, tag, above)) => {
            let users = users.clone();
            Outcome::Doing(Box::pin(async move {
                users.advance(tag, above).await.map(Done::Number)
            }))
        }
        Err(failure) => refuse(keys, name, &failure, to),
    }
}

fn number(above: i64) -> Result<u64, Failure> {
    let negative = |_| {
        let message = format!("a key is 0 or more, not {above}");
        Failure::new(Cause::ArgumentOutOfRange, message)
    };
    u64::try_from(above).map_err(negative)
}

fn tag_to_make(name: &[u8], keys: &PortKeys) -> Result<Tag, Failure> {
    if keys.name(name).is_some() {
        return tag_to_raise(name, keys);
    }
    let invalid = |message: String| Failure::new(Cause::TagInvalid, message);
    let text = std::str::from_utf8(name).map_err(|error| invalid(error.to_string()))?;
    Tag::parse(text).map_err(|error| invalid(error.to_string()))
}

fn tag_to_raise(name: &[u8], keys: &PortKeys) -> Result<Tag, Failure> {
    let named = keys.name(name);
    let named = named.ok_or_else(|| issue::unknown(name, keys))?;
    match &named.spec {
        KeySpec::Segment(tag) => Ok(tag.clone()),
        KeySpec::Snowflake | KeySpec::Stride(_) | KeySpec::Readable(_) | KeySpec::Uuid { .. } => {
            let message = format!("the keys of \"{}\" come from no tag", named.name);
            let failure = Failure::new(Cause::KeyKind, message);
            Err(failure
                .hint("keywright advance raises snowflake and readable ids, of all programs"))
        }
    }
}

/// The users, for whoever may change something.
fn users_of(keys: &PortKeys, may: Result<(), Failure>) -> Result<&PortUsers, Failure> {
    may?;
    // Only a listener with users has clients that may.
    keys.users.as_ref().ok_or_else(|| {
        Failure::new(
            Cause::CommandRefused,
            "nothing is managed through a listener without users",
        )
    })
}

fn refuse(keys: &PortKeys, name: &[u8], failure: &Failure, to: &mut Writer<'_>) -> Outcome {
    count_refusal(keys, name, failure);
    refused::write_failure(to, failure);
    Outcome::Answered
}
