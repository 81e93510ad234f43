//! What users of key ports may do with which names, and what others are told.

use keywright_testkit::redis::RespValue;
use keywright_testkit::{ProxyProcess, Result, assert_has, scratch_dir};

use super::{PASSWORD, USERS, bulk, client_as, config_at, ok, port_with_users};

/// Who may do what by the table below: a user, a right, a name.
const MAY: [(&str, &str, &str); 10] = [
    ("app", "use", "orders"),
    ("app", "use", "tokens"),
    ("everything", "use", "orders"),
    ("everything", "use", "flakes"),
    ("everything", "use", "tokens"),
    ("everything", "use", "none"),
    ("keeper", "manage", "orders"),
    ("keeper", "manage", "ordinary"),
    ("keeper", "create", "fresh.keeper"),
    ("root", "administer", ""),
];

/// Requests by which a name is used.
pub(super) fn uses(name: &str) -> [Vec<&str>; 6] {
    [
        vec!["INCR", name],
        vec!["INCRBY", name, "2"],
        vec!["GET", name],
        vec!["MGET", name],
        vec!["KEYWRIGHT", "NEXT", name],
        vec!["KEYWRIGHT", "NEXT", name, "COUNT", "2"],
    ]
}

/// Every user, command and name: what is allowed is answered, whatever else comes of it, and all the rest is refused.
#[test]
fn each_user_may_what_was_granted_and_nothing_else() -> Result<()> {
    let port = port_with_users("")?;
    let number = port.proxy.key_port()?;
    let names = ["orders", "flakes", "tokens", "none"];
    for (user, _) in USERS {
        let mut client = client_as(number, user)?;
        let mut look = |request: &[&str], right: &str, name: &str| -> Result<()> {
            let may = MAY.contains(&(user, right, name));
            let reply = client.ask(request)?;
            let is_denied = matches!(&reply, RespValue::Error(text) if text.starts_with("NOPERM "));
            assert_eq!(is_denied, !may, "{user}: {request:?}: {reply:?}");
            Ok(())
        };
        for name in names {
            for request in &uses(name) {
                look(request, "use", name)?;
            }
            look(&["KEYWRIGHT", "ADVANCE", name, "0"], "manage", name)?;
            look(&["KEYWRIGHT", "ALTER", name, "STEP", "0"], "manage", name)?;
            look(&["KEYWRIGHT", "DROP", name], "manage", name)?;
            look(&["KEYWRIGHT", "CREATE", name], "create", name)?;
        }
        let fresh = format!("fresh.{user}");
        look(&["KEYWRIGHT", "CREATE", &fresh], "create", &fresh)?;
        // Names that the listener does not have.
        for name in [&fresh, "ordinary"] {
            look(&["KEYWRIGHT", "ALTER", name, "STEP", "9"], "manage", name)?;
            look(&["KEYWRIGHT", "DROP", name], "manage", name)?;
        }
        for request in [
            &["KEYWRIGHT", "USER", "LIST"][..],
            &["KEYWRIGHT", "USER", "ADD", "orders", PASSWORD],
            &["KEYWRIGHT", "USER", "SETPASS", "orders", "another sesame"],
            &["KEYWRIGHT", "USER", "GRANT", "orders", "use", "*"],
            &["KEYWRIGHT", "USER", "REVOKE", "orders", "use", "*"],
            &["KEYWRIGHT", "USER", "REMOVE", "orders"],
            &["KEYWRIGHT", "DEMOTE"],
        ] {
            look(request, "administer", "")?;
        }
        // One denied name denies them all, as in Redis.
        if user != "everything" {
            let reply = client.say("MGET tokens flakes")?;
            assert_has(reply.error()?, &["NOPERM user", "may not use"]);
        }
        assert_eq!(client.say("ACL WHOAMI")?, bulk(user));
        assert_eq!(client.say("KEYWRIGHT USER WHOAMI")?, bulk(user));
    }
    Ok(())
}

#[test]
fn strangers_are_told_nothing() -> Result<()> {
    let port = port_with_users("")?;
    // So that the users are known.
    drop(client_as(port.proxy.key_port()?, "app")?);
    let mut client = port.client()?;
    for request in [
        "INCR orders",
        "GET orders",
        "PING",
        "INFO",
        "KEYWRIGHT LIST",
        "KEYWRIGHT ABOUT orders",
        "KEYWRIGHT USER LIST",
        "KEYWRIGHT DEMOTE",
        "KEYWRIGHT USER ADD me 12345678",
        "ACL WHOAMI",
        "NONSENSE",
    ] {
        let reply = client.say(request)?;
        assert_eq!(
            reply.error()?,
            "NOAUTH Authentication required.",
            "{request}"
        );
    }
    assert_has(
        client.say("HELLO 3")?.error()?,
        &["NOAUTH HELLO must be called"],
    );
    assert_has(client.ask(&["AUTH", PASSWORD])?.error()?, &["WRONGPASS "]);
    let hello = client.ask(&["HELLO", "3", "AUTH", "app", PASSWORD, "SETNAME", "me"])?;
    assert!(matches!(hello, RespValue::Map(_)), "{hello:?}");
    assert_has(
        &format!("{:?}", client.say("CLIENT INFO")?),
        &["name=me", "user=app", "resp=3"],
    );
    let RespValue::Map(names) = client.say("KEYWRIGHT LIST")? else {
        panic!("no map");
    };
    let names: Vec<_> = names.into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, [bulk("orders"), bulk("tokens")]);
    let about = client.say("KEYWRIGHT ABOUT orders")?;
    assert!(matches!(about, RespValue::Map(_)), "{about:?}");
    for name in ["flakes", "none"] {
        let reply = client.ask(&["KEYWRIGHT", "ABOUT", name])?;
        assert_has(reply.error()?, &["NOPERM "]);
    }
    // Whoever fails to become another stays who he is.
    let wrong = client.ask(&["AUTH", "root", "none of them"])?;
    assert_has(wrong.error()?, &["WRONGPASS "]);
    assert_eq!(client.say("ACL WHOAMI")?, bulk("app"));
    assert_eq!(client.say("RESET")?, RespValue::Simple("RESET".to_owned()));
    assert_has(client.say("INCR orders")?.error()?, &["NOAUTH"]);
    Ok(())
}

/// The command, as people use it.
#[test]
fn the_command_says_what_it_did() -> Result<()> {
    let scratch = scratch_dir()?;
    let config = config_at(scratch.path(), "users = true\n");
    ProxyProcess::said(&config, &["init"])?;
    ProxyProcess::add_user(&config, "root", PASSWORD, &[("administer", "*")])?;
    ProxyProcess::add_user(
        &config,
        "app",
        PASSWORD,
        &[("use", "shop.*"), ("manage", "shop.*")],
    )?;
    let said = |arguments: &[&str]| ProxyProcess::said(&config, arguments);
    assert_eq!(
        said(&["user", "list"])?,
        "app use,manage shop.*\nroot administer *\n"
    );
    assert_has(
        &said(&["user", "list", "--format", "json"])?,
        &[
            "\"name\":\"app\"",
            "\"on\":\"shop.*\"",
            "\"rights\":\"use,manage\"",
        ],
    );
    let revoked = said(&[
        "user", "revoke", "app", "--rights", "manage", "--on", "shop.*",
    ])?;
    assert_has(&revoked, &["user \"app\" may no more manage \"shop.*\""]);
    assert_eq!(said(&["user", "remove", "app"])?, "removed user \"app\"\n");
    assert_eq!(said(&["user", "list"])?, "root administer *\n");
    for (arguments, expected) in [
        (&["user", "remove", "app"][..], "there is no user \"app\""),
        (
            &["user", "add", "root", "--password-file", "/none"],
            "cannot be read",
        ),
        (&["user", "add", "a:b"], "a user's name has 1 to 64"),
        (
            &[
                "user",
                "grant",
                "root",
                "--rights",
                "administer",
                "--on",
                "shop.*",
            ],
            "administer is for all names",
        ),
        // Never as an argument, which others of the machine could read.
        (
            &["user", "add", "app", "--password", PASSWORD],
            "unexpected argument",
        ),
    ] {
        let output = ProxyProcess::command(&config, arguments)?;
        assert!(!output.status.success());
        assert_has(&String::from_utf8(output.stderr)?, &[expected]);
    }
    Ok(())
}

/// Whoever may use the store's account makes the first administrator, who makes the others.
#[test]
fn init_makes_the_first_administrator() -> Result<()> {
    let scratch = scratch_dir()?;
    let config = config_at(scratch.path(), "users = true\n");
    let file = scratch.path().join("password").display().to_string();
    std::fs::write(&file, format!("{PASSWORD}\nanother line\n"))?;
    let said = |arguments: &[&str]| ProxyProcess::said(&config, arguments);
    said(&["init"])?;
    let nobody = "lets in users only, and there are none yet: keywright init --admin NAME";
    assert_has(
        &said(&["check"])?,
        &["store: warning: listener 127.0.0.1:", nobody],
    );
    let admin = ["init", "--admin", "root", "--password-file", &file];
    assert_has(
        &said(&admin)?,
        &["added user \"root\", who administers users"],
    );
    assert!(!said(&["check"])?.contains("lets in users only"));
    assert_eq!(said(&["user", "list"])?, "root administer *\n");
    // Once more, with another password: it may be in a script.
    std::fs::write(&file, "another sesame\n")?;
    let again = said(&admin)?;
    assert_has(
        &again,
        &["user \"root\" is there already, and was left as it is"],
    );
    let proxy = ProxyProcess::start(config.clone())?;
    let mut root = client_as(proxy.key_port()?, "root")?;
    let add = root.ask(&["KEYWRIGHT", "USER", "ADD", "app", "12345678"])?;
    assert_eq!(add, ok());
    // Whoever has gone, even the last one, can be made anew by whoever may use the store's account.
    said(&["user", "remove", "root"])?;
    assert_has(
        &said(&admin)?,
        &["added user \"root\", who administers users"],
    );
    let grant = ["--rights", "administer", "--on", "*"];
    said(&[&["user", "revoke", "root"][..], &grant].concat())?;
    said(&[&["user", "grant", "app"][..], &grant].concat())?;
    assert_eq!(said(&["user", "list"])?, "app administer *\nroot\n");
    for (arguments, expected) in [
        (&["init", "--admin", "a:b"][..], "a user's name has 1 to 64"),
        (
            &["init", "--admin", "x", "--password-file", "/none"],
            "cannot be read",
        ),
        (
            &["init", "--password-file", &file],
            "--password-file is that of --admin NAME",
        ),
    ] {
        let output = ProxyProcess::command(&config, arguments)?;
        assert!(!output.status.success());
        assert_has(&String::from_utf8(output.stderr)?, &[expected]);
    }
    Ok(())
}
