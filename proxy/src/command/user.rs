//! `user`: users of key ports, and what they may.

use std::io::{BufRead as _, IsTerminal as _, Read as _, Write as _, stderr, stdin};
use std::path::PathBuf;

use anyhow::{Context, Result, anyhow};
use clap::{Args, Subcommand};
use keywright_proxy::users::secret;
use keywright_store::users::{
    Grant, NamePattern, PasswordHash, Rights, UserChange, UserName, UserTable,
};
use keywright_store::{Failure, PasswordFrom};
use serde_json::json;

use super::{File, Format, with_store};

/// What is read of standard input at most, bytes: more than a password has.
const INPUT_BYTES_MAX: u64 = 4_096;

#[derive(Args)]
pub(crate) struct User {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Add a user. The password is the first line of standard input, or of a file.
    ///
    /// Make the first administrator by keywright init --admin, or by keywright user add NAME --rights administer --on '*'.
    Add(Add),
    /// Change a user's password to the first line of standard input, or of a file. Connected clients of the user must log in again.
    SetPassword(SetPassword),
    /// Grant a user rights on names.
    Grant(Change),
    /// Revoke rights on names from a user.
    Revoke(Change),
    /// Remove a user. Connected clients of the user are disconnected.
    Remove(Remove),
    /// List all users and their rights.
    List(List),
}

#[derive(Args)]
pub(super) struct Password {
    /// A file whose first line is the password; default: standard input.
    #[arg(long, value_name = "FILE")]
    password_file: Option<PathBuf>,
}

#[derive(Args)]
struct Add {
    /// The user.
    name: String,
    #[command(flatten)]
    file: File,
    #[command(flatten)]
    password: Password,
    /// The user's rights, separated by commas: use (take keys), create (make tags), manage (raise, alter and drop tags), administer (users; on '*' only).
    #[arg(long, requires = "on")]
    rights: Option<String>,
    /// The names, as a pattern: * stands for any characters, ? for one.
    #[arg(long, value_name = "PATTERN", requires = "rights")]
    on: Option<String>,
}

#[derive(Args)]
struct SetPassword {
    /// The user.
    name: String,
    #[command(flatten)]
    file: File,
    #[command(flatten)]
    password: Password,
}

#[derive(Args)]
struct Change {
    /// The user.
    name: String,
    #[command(flatten)]
    file: File,
    /// The rights, separated by commas: use (take keys), create (make tags), manage (raise, alter and drop tags), administer (users; on '*' only).
    #[arg(long)]
    rights: String,
    /// The names, as a pattern: * stands for any characters, ? for one. To revoke, name a pattern that was granted.
    #[arg(long, value_name = "PATTERN")]
    on: String,
}

#[derive(Args)]
struct Remove {
    /// The user.
    name: String,
    #[command(flatten)]
    file: File,
}

#[derive(Args)]
struct List {
    #[command(flatten)]
    file: File,
    /// How it is printed.
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

impl User {
    pub(crate) fn run(&self) -> Result<()> {
        match &self.command {
            Command::Add(add) => add.run(),
            Command::SetPassword(set) => set.run(),
            Command::Grant(change) => change.grant(),
            Command::Revoke(change) => change.revoke(),
            Command::Remove(remove) => remove.run(),
            Command::List(list) => list.run(),
        }
    }
}

fn failed(failure: Failure) -> anyhow::Error {
    anyhow!("{failure}")
}

fn grant(rights: &str, on: &str) -> Result<Grant> {
    let read = || Grant::new(NamePattern::parse(on)?, Rights::parse(rights)?);
    read().map_err(failed)
}

fn change(file: &File, name: &str, change: UserChange) -> Result<()> {
    let name = UserName::parse(name).map_err(failed)?;
    with_store(file, async |keys| {
        keys.change_user(name, change).await.map_err(failed)
    })
}

impl Password {
    /// Whether a file was named.
    pub(super) fn is_file(&self) -> bool {
        self.password_file.is_some()
    }

    /// Read and hashed.
    pub(super) fn hash(&self) -> Result<PasswordHash> {
        let password = match &self.password_file {
            Some(file) => {
                let from = PasswordFrom {
                    in_url: false,
                    file: Some(file),
                    env: None,
                };
                let read = from
                    .read()
                    .map_err(|(option, what)| anyhow!("{option}: {what}"));
                read?.unwrap_or_default()
            }
            None => {
                if stdin().is_terminal() {
                    // Who knows without is not kept from it.
                    let _ = writeln!(
                        stderr(),
                        "The password, and Enter (it is shown; --password-file reads a file):"
                    );
                }
                let mut line = String::new();
                let mut input = stdin().lock().take(INPUT_BYTES_MAX);
                input
                    .read_line(&mut line)
                    .context("reading the password from standard input")?;
                line.trim_end_matches(['\r', '\n']).to_owned()
            }
        };
        secret::hash(password.as_bytes()).map_err(failed)
    }
}

/// A user who may administer users, and nothing else. Nothing is asked of the store yet.
///
/// # Errors
/// It cannot be called so, or the password cannot be read, or be one.
pub(super) fn administrator(name: &str, password: &Password) -> Result<(UserName, UserChange)> {
    let granted = grant("administer", "*")?;
    let name = UserName::parse(name).map_err(failed)?;
    let add = UserChange::Add {
        password: password.hash()?,
        grants: vec![granted],
    };
    Ok((name, add))
}

impl Add {
    fn run(&self) -> Result<()> {
        let granted = self.rights.as_deref().zip(self.on.as_deref());
        let granted = granted.map(|(rights, on)| grant(rights, on)).transpose()?;
        // Before anything is read: whoever types it need not do so in vain.
        UserName::parse(&self.name).map_err(failed)?;
        let add = UserChange::Add {
            password: self.password.hash()?,
            grants: granted.into_iter().collect(),
        };
        change(&self.file, &self.name, add)?;
        println!("added user \"{}\"", self.name);
        Ok(())
    }
}

impl SetPassword {
    fn run(&self) -> Result<()> {
        let set = UserChange::SetPassword(self.password.hash()?);
        change(&self.file, &self.name, set)?;
        println!("user \"{}\" has another password", self.name);
        Ok(())
    }
}

impl Change {
    fn grant(&self) -> Result<()> {
        let granted = grant(&self.rights, &self.on)?;
        let told = (granted.rights, granted.pattern.as_str().to_owned());
        change(&self.file, &self.name, UserChange::Grant(granted))?;
        println!("user \"{}\" may {} \"{}\"", self.name, told.0, told.1);
        Ok(())
    }

    fn revoke(&self) -> Result<()> {
        let revoked = grant(&self.rights, &self.on)?;
        let told = (revoked.rights, revoked.pattern.as_str().to_owned());
        change(&self.file, &self.name, UserChange::Revoke(revoked))?;
        println!(
            "user \"{}\" may no more {} \"{}\" by that pattern",
            self.name, told.0, told.1
        );
        Ok(())
    }
}

impl Remove {
    fn run(&self) -> Result<()> {
        change(&self.file, &self.name, UserChange::Remove)?;
        println!("removed user \"{}\"", self.name);
        Ok(())
    }
}

impl List {
    fn run(&self) -> Result<()> {
        with_store(&self.file, async |keys| {
            let users = keys.users().await.map_err(failed)?;
            for row in users.left_out() {
                // The list is worth printing without.
                let _ = writeln!(stderr(), "{row}; it is left out");
            }
            match self.format {
                Format::Text => print!("{}", lines(&users)),
                Format::Json => println!("{}", document(&users)),
            }
            Ok(())
        })
    }
}

/// A line per user.
fn lines(users: &UserTable) -> String {
    let line = |user: &keywright_store::users::User| {
        let grants = user.grants.iter();
        let grants = grants.map(|grant| format!(" {} {}", grant.rights, grant.pattern.as_str()));
        let grants: Vec<String> = grants.collect();
        format!("{}{}\n", user.name, grants.join(";"))
    };
    users.all().map(|user| line(user)).collect()
}

fn document(users: &UserTable) -> serde_json::Value {
    let users = users.all().map(|user| {
        let grants = user.grants.iter().map(
            |grant| json!({ "rights": grant.rights.to_string(), "on": grant.pattern.as_str() }),
        );
        json!({ "name": user.name.as_str(), "grants": grants.collect::<Vec<_>>() })
    });
    json!({ "users": users.collect::<Vec<_>>() })
}
