//! Users of key ports, as each store keeps them and programs follow them.

use std::time::{Duration, Instant};

use keywright_core::Cause;
use keywright_store::users::{
    Grant, NamePattern, PasswordHash, Right, Rights, UserChange, UserName, UserTable,
};
use keywright_store::{FollowedUsers, Keys};
use keywright_testkit::Result;

use crate::common::{Engine, Schema, on_engines, open, runtime, until};

on_engines!(
    users_are_kept_as_they_were_changed,
    changes_are_followed_by_other_programs,
    changes_at_once_come_one_after_another,
    a_row_that_cannot_be_read_spoils_no_other,
);

#[test]
fn on_mysql() -> Result<()> {
    users_are_kept_as_they_were_changed(Engine::MySql)
}

/// How long a change may take to be known elsewhere, milliseconds.
const KNOWN_MS_MAX: u64 = 1_000;

fn name(text: &str) -> UserName {
    UserName::parse(text).unwrap()
}

fn grant(rights: &str, pattern: &str) -> Grant {
    let pattern = NamePattern::parse(pattern).unwrap();
    Grant::new(pattern, Rights::parse(rights).unwrap()).unwrap()
}

fn add(grants: &[Grant]) -> UserChange {
    UserChange::Add {
        password: PasswordHash::new("$argon2id$first"),
        grants: grants.to_vec(),
    }
}

/// As lists show it.
fn shown(table: &UserTable) -> Vec<String> {
    let line = |user: &keywright_store::users::User| {
        let grants = user.grants.iter();
        let grants = grants.map(|grant| format!(" {}:{}", grant.rights, grant.pattern.as_str()));
        let password = user.password.as_str().trim_start_matches("$argon2id$");
        format!("{} {password}{}", user.name, grants.collect::<String>())
    };
    table.all().map(|user| line(user)).collect()
}

async fn change(keys: &Keys, user: &str, change: UserChange) -> std::result::Result<(), Cause> {
    let changed = keys.change_user(name(user), change).await;
    changed.map_err(|failure| failure.cause())
}

fn users_are_kept_as_they_were_changed(engine: Engine) -> Result<()> {
    let schema = Schema::of(engine, "kw_users")?;
    runtime()?.block_on(async {
        let keys = open(&schema.raw())?;
        keys.init().await?;
        assert!(keys.users().await?.is_empty());
        let both = [grant("use", "shop.*"), grant("use,create", "ü\\%_?'\"*")];
        assert_eq!(change(&keys, "app", add(&both)).await, Ok(()));
        let root = add(&[grant("administer", "*")]);
        assert_eq!(change(&keys, "Root/1", root.clone()).await, Ok(()));
        for (user, wanted, expected) in [
            ("app", add(&[]), Cause::UserExists),
            ("App", UserChange::Remove, Cause::UserUnknown),
            (
                "none",
                UserChange::Grant(grant("use", "*")),
                Cause::UserUnknown,
            ),
            (
                "none",
                UserChange::Revoke(grant("use", "*")),
                Cause::UserUnknown,
            ),
            (
                "none",
                UserChange::SetPassword(PasswordHash::new("x")),
                Cause::UserUnknown,
            ),
            (
                "app",
                UserChange::Revoke(grant("use", "shop.orders")),
                Cause::UserInvalid,
            ),
            (
                "app",
                UserChange::Revoke(grant("manage", "shop.*")),
                Cause::UserInvalid,
            ),
        ] {
            let done = change(&keys, user, wanted).await;
            assert_eq!(done, Err(expected), "{user}");
        }
        assert_eq!(
            shown(&keys.users().await?),
            [
                "Root/1 first administer:*",
                "app first use:shop.* use,create:ü\\%_?'\"*"
            ]
        );
        for wanted in [
            UserChange::Grant(grant("manage", "shop.*")),
            // Once more, which changes nothing.
            UserChange::Grant(grant("use", "shop.*")),
            UserChange::Grant(grant("use", "bank")),
            UserChange::Revoke(grant("use,create", "ü\\%_?'\"*")),
            UserChange::SetPassword(PasswordHash::new("$argon2id$second")),
        ] {
            assert_eq!(
                change(&keys, "app", wanted.clone()).await,
                Ok(()),
                "{wanted:?}"
            );
        }
        let users = keys.users().await?;
        assert_eq!(
            shown(&users),
            [
                "Root/1 first administer:*",
                "app second use:bank use,manage:shop.*"
            ]
        );
        assert!(users.get("app").unwrap().may(Right::Manage, b"shop.orders"));
        assert_eq!(change(&keys, "app", UserChange::Remove).await, Ok(()));
        // One of the same name has none of what the other was granted.
        assert_eq!(change(&keys, "app", add(&[])).await, Ok(()));
        assert_eq!(
            shown(&keys.users().await?),
            ["Root/1 first administer:*", "app first"]
        );
        Ok(())
    })
}

fn has(users: &FollowedUsers, user: &str) -> bool {
    users.table().is_some_and(|table| table.get(user).is_some())
}

fn changes_are_followed_by_other_programs(engine: Engine) -> Result<()> {
    let schema = Schema::of(engine, "kw_users_followed")?;
    runtime()?.block_on(async {
        let keys = open(&schema.raw())?;
        let others = open(&schema.raw())?;
        // Before there are tables.
        let users = others.follow_users();
        keys.init().await?;
        until("an answer", || users.table().is_some()).await;
        assert!(users.age().is_some_and(|age| age < Duration::from_secs(30)));
        let mut slowest = Duration::ZERO;
        for round in 0..5 {
            let user = format!("user-{round}");
            keys.change_user(name(&user), add(&[])).await?;
            let began = Instant::now();
            until("the user", || has(&users, &user)).await;
            slowest = slowest.max(began.elapsed());
            keys.change_user(name(&user), UserChange::Remove).await?;
            until("its end", || !has(&users, &user)).await;
        }
        println!("{engine:?}: a change was known after {slowest:?}");
        assert!(
            slowest < Duration::from_millis(KNOWN_MS_MAX * 10),
            "{slowest:?}"
        );
        Ok(())
    })
}

fn changes_at_once_come_one_after_another(engine: Engine) -> Result<()> {
    const PROGRAMS: usize = 4;
    const ROUNDS: usize = 5;
    let schema = Schema::of(engine, "kw_users_at_once")?;
    runtime()?.block_on(async {
        let keys = open(&schema.raw())?;
        keys.init().await?;
        keys.change_user(name("app"), add(&[])).await?;
        let mut tasks = Vec::new();
        for program in 0..PROGRAMS {
            let keys = open(&schema.raw())?;
            tasks.push(tokio::spawn(async move {
                for round in 0..ROUNDS {
                    let right = Right::ALL[(program + round) % 3].name();
                    let granted = UserChange::Grant(grant(right, "shop.*"));
                    keys.change_user(name("app"), granted).await?;
                    let user = format!("app-{program}-{round}");
                    keys.change_user(name(&user), add(&[grant("use", "*")]))
                        .await?;
                }
                Ok::<(), anyhow::Error>(())
            }));
        }
        for task in tasks {
            task.await??;
        }
        let users = keys.users().await?;
        assert_eq!(users.len(), 1 + PROGRAMS * ROUNDS);
        let app = users.get("app").unwrap();
        assert_eq!(app.grants, [grant("use,create,manage", "shop.*")]);
        Ok(())
    })
}

/// People change rows by hand. One that cannot be read gives nothing, and keeps nothing from taking effect.
fn a_row_that_cannot_be_read_spoils_no_other(engine: Engine) -> Result<()> {
    let schema = Schema::of(engine, "kw_users_unread")?;
    runtime()?.block_on(async {
        let keys = open(&schema.raw())?;
        let users = keys.follow_users();
        keys.init().await?;
        let both = [grant("use", "bank"), grant("use,manage", "shop.*")];
        for user in ["app", "gone", "odd"] {
            keys.change_user(name(user), add(&both)).await?;
        }
        until("the users", || has(&users, "odd")).await;
        let odd = match engine {
            Engine::MariaDb | Engine::MySql | Engine::Postgres | Engine::File => {
                schema.sql("UPDATE keywright_user SET name = 'o:dd' WHERE name = 'odd'")?;
                vec!["user \"o:dd\": column \"name\" holds o:dd".to_owned()]
            }
            // A row under the key of another is no row there.
            Engine::Etcd => {
                schema.sql("DELETE FROM keywright_user WHERE name = 'odd'")?;
                Vec::new()
            }
        };
        for change in [
            "UPDATE keywright_user_grant SET rights = 'use+create' WHERE user_name = 'app' AND name_pattern = 'bank'",
            "DELETE FROM keywright_user WHERE name = 'gone'",
            "UPDATE keywright_user_version SET version = 'changed by hand'",
        ] {
            schema.sql(change)?;
        }
        until("the removal", || !has(&users, "gone")).await;
        let right = "a right of user \"app\": column \"rights\" holds use+create on bank";
        let left_out = [vec![right.to_owned()], odd].concat();
        let followed = users.table().unwrap();
        for table in [&*followed, &keys.users().await?] {
            assert_eq!(shown(table), ["app first use,manage:shop.*"]);
            assert_eq!(table.left_out(), left_out);
        }
        Ok(())
    })
}
