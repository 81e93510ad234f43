//! `KEYWRIGHT USER`: what administrators may do; and who may do that, and what else takes other rights than to take keys.

use keywright_core::Cause;
use keywright_resp::command::{Granted, Secret, UserCommand};
use keywright_resp::reply::Writer;
use keywright_store::Failure;
use keywright_store::users::{Grant, NamePattern, Rights, UserChange, UserName, UserTable};

use crate::port::access::Who;
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
        Ok(change) => Outcome::Doing(Box::pin(change.carry_out(who.clone(), users.clone()))),
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

    async fn carry_out(self, who: Who, users: PortUsers) -> Result<Done, Failure> {
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
        // A password may have waited for others to be hashed, and an administrator is none any more.
        who.now_among(&users)?.may_administer()?;
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

/// The users, for whoever may change something.
pub(super) fn users_of(keys: &PortKeys, may: Result<(), Failure>) -> Result<&PortUsers, Failure> {
    may?;
    // Only a listener with users has clients that may.
    keys.users.as_ref().ok_or_else(|| {
        Failure::new(
            Cause::CommandRefused,
            "nothing is managed through a listener without users",
        )
    })
}

/// Tells why nothing is done.
pub(super) fn refuse(
    keys: &PortKeys,
    name: &[u8],
    failure: &Failure,
    to: &mut Writer<'_>,
) -> Outcome {
    refused::refuse(keys, name, failure, to);
    Outcome::Answered
}
