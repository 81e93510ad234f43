//! Users of key ports: who is let in, how fast, and how soon a change is in force.

use std::thread;
use std::time::{Duration, Instant};

use keywright_testkit::redis::{RespClient, RespValue};
use keywright_testkit::{
    Flavour, ProxyConfig, ProxyProcess, Result, Upstream, WAIT_MAX, assert_has, make_store,
    wait_until,
};

use super::{KEYS, PASSWORD, USERS, bulk, client_as, ok, port_with_users};

/// How soon a change is in force everywhere, milliseconds.
const IN_FORCE_MS_MAX: u64 = 1_000;
/// How much longer a busy machine may take, milliseconds.
const GRACE_MS: u64 = 5_000;

/// Whatever is tried: it takes as long for users that there are as for others, ends the connection, and shows up in no log.
#[test]
fn guessing_is_slow_and_ends_the_connection() -> Result<()> {
    let port = port_with_users("bulk_bytes_max = 16384\n")?;
    let number = port.proxy.key_port()?;
    drop(client_as(number, "app")?);
    let mut took = [Duration::MAX; 2];
    for round in 0..6 {
        for (which, user) in ["app", "stranger"].iter().enumerate() {
            let mut client = port.client()?;
            let began = Instant::now();
            let guess = format!("a wrong guess {round}");
            let reply = client.ask(&["AUTH", user, &guess])?;
            took[which] = began.elapsed().min(took[which]);
            assert_eq!(
                reply.error()?,
                "WRONGPASS invalid username-password pair or user is disabled."
            );
        }
    }
    let [known, unknown] = took;
    assert!(
        known < unknown * 5 && unknown < known * 5,
        "{known:?} {unknown:?}"
    );
    for user in ["", "app\0", "\u{fc}", "app:", "*", " "] {
        let mut client = port.client()?;
        let reply = client.ask(&["AUTH", user, PASSWORD])?;
        assert_has(reply.error()?, &["WRONGPASS "]);
    }
    // Too long for a password: nothing is hashed.
    let mut client = port.client()?;
    let long = "x".repeat(16_000);
    for _ in 0..5 {
        let reply = client.ask(&["AUTH", "app", &long])?;
        assert_has(reply.error()?, &["WRONGPASS "]);
    }
    assert_eq!(client.rest()?, b"");
    // A thousand tries in one go: five are looked at.
    let mut client = port.client()?;
    let guess = RespClient::written(&["AUTH", "app", "a wrong guess"]);
    client.send(&guess.repeat(1_000))?;
    let told = String::from_utf8(client.rest()?)?;
    assert_eq!(told.matches("WRONGPASS").count(), 5, "{told}");
    assert!(port.metric("keywright_port_cut_off_total{why=\"guesses\"")? >= 2);
    // Others log in meanwhile.
    let mut client = client_as(number, "app")?;
    client.say("INCR orders")?.integer()?;
    let log = port.proxy.log();
    for secret in [PASSWORD, "wrong guess", "argon2"] {
        assert!(!log.contains(secret), "{log}");
        let (_, metrics) = port.proxy.http_get("/metrics")?;
        assert!(!metrics.contains(secret));
    }
    Ok(())
}

/// Each left 19 MiB behind in another heap: a few guesses of anybody who reached the port took hundreds of megabytes for good.
#[test]
fn guesses_take_no_more_memory_than_one() -> Result<()> {
    /// What one takes, and some for the connections, kB.
    const KB_MAX: u64 = 40 << 10;
    let port = port_with_users("")?;
    let before = port.proxy.memory_kb()?;
    for number in 0..20 {
        let guess = format!("a wrong guess {number}");
        let reply = port.client()?.ask(&["AUTH", "app", &guess])?;
        assert_has(reply.error()?, &["WRONGPASS "]);
    }
    let more_kb = port.proxy.memory_kb()?.saturating_sub(before);
    assert!(more_kb < KB_MAX, "{more_kb} kB more");
    Ok(())
}

/// What an administrator changes at one program is soon in force at another, for who is connected, too.
#[test]
fn changes_are_in_force_everywhere_while_clients_are_connected() -> Result<()> {
    let port = port_with_users("")?;
    let other = ProxyProcess::start(port.config.clone())?;
    let mut root = client_as(port.proxy.key_port()?, "root")?;
    let there = other.key_port()?;
    let add = root.ask(&["KEYWRIGHT", "USER", "ADD", "late", PASSWORD])?;
    assert_eq!(add, ok());
    let mut late = client_as(there, "late")?;
    assert_has(late.say("INCR orders")?.error()?, &["NOPERM"]);
    let mut slowest = Duration::ZERO;
    for (change, reply) in [
        ("GRANT late use ord*", ":"),
        ("REVOKE late use ord*", "NOPERM"),
        ("GRANT late use *", ":"),
        (
            "SETPASS late another-sesame",
            "NOAUTH user \"late\" was removed, or has another password",
        ),
    ] {
        assert_eq!(
            root.say(&format!("KEYWRIGHT USER {change}"))?,
            ok(),
            "{change}"
        );
        let began = Instant::now();
        wait_until(change, WAIT_MAX, || {
            Ok(match late.say("INCR orders")? {
                RespValue::Integer(_) => reply == ":",
                other => other.error()?.starts_with(reply),
            })
        })?;
        slowest = slowest.max(began.elapsed());
    }
    println!("changes were in force after {slowest:?} at most");
    assert!(
        slowest < Duration::from_millis(IN_FORCE_MS_MAX + GRACE_MS),
        "{slowest:?}"
    );
    assert_eq!(late.rest()?, b"");
    let mut late = RespClient::connect(there)?;
    assert_eq!(late.ask(&["AUTH", "late", "another-sesame"])?, ok());
    assert_eq!(root.say("KEYWRIGHT USER REMOVE late")?, ok());
    wait_until("the end of a removed user", WAIT_MAX, || {
        Ok(late
            .say("INCR orders")?
            .error()
            .is_ok_and(|error| error.starts_with("NOAUTH")))
    })?;
    assert_eq!(late.rest()?, b"");
    // One of the same name and password is another one.
    let add = root.ask(&["KEYWRIGHT", "USER", "ADD", "late", "another-sesame"])?;
    assert_eq!(add, ok());
    for (request, expected) in [
        (
            "ADD late 12345678",
            "USER_EXISTS user \"late\" exists already",
        ),
        ("REMOVE none", "USER_UNKNOWN there is no user \"none\""),
        ("ADD a:b 12345678", "USER_INVALID a user's name has"),
        (
            "ADD short 1234567",
            "USER_INVALID a password has 8 to 512 bytes",
        ),
        (
            "GRANT late administer ord*",
            "USER_INVALID administer is for all names",
        ),
        (
            "GRANT late everything *",
            "USER_INVALID rights are use, create",
        ),
        (
            "REVOKE late use none",
            "USER_INVALID user \"late\" was granted nothing",
        ),
        (
            "SHOW late",
            "ERR unknown subcommand 'SHOW' of KEYWRIGHT USER",
        ),
        ("GRANT late", "ERR wrong number of arguments"),
    ] {
        let reply = root.say(&format!("KEYWRIGHT USER {request}"))?;
        assert_has(reply.error()?, &[expected]);
    }
    root.say("HELLO 3")?;
    let RespValue::Map(users) = root.say("KEYWRIGHT USER LIST")? else {
        panic!("no map");
    };
    assert_eq!(users.len(), USERS.len() + 1);
    let rights = |on: &str, rights: &str| (bulk(on), bulk(rights));
    let app = RespValue::Map(vec![rights("orders", "use"), rights("tok??s", "use")]);
    assert!(users.contains(&(bulk("app"), app)), "{users:?}");
    assert!(!format!("{users:?}").contains("argon2"));
    Ok(())
}

/// After the first of a user, logins are looked at in memory: hashing would take some hundredths of a second each.
#[test]
fn logins_are_fast_after_the_first() -> Result<()> {
    const LOGINS: usize = 2_000;
    let port = port_with_users("")?;
    let number = port.proxy.key_port()?;
    let mut took = Duration::MAX;
    for round in 0..3 {
        let mut stranger = port.client()?;
        let began = Instant::now();
        // What was looked at once is known.
        stranger.ask(&["AUTH", "app", &format!("a wrong guess {round}")])?;
        took = took.min(began.elapsed());
    }
    let hashed = 1.0 / took.as_secs_f64();
    let mut client = client_as(number, "app")?;
    let began = Instant::now();
    for _ in 0..LOGINS {
        assert_eq!(client.ask(&["AUTH", "app", PASSWORD])?, ok());
    }
    let one = LOGINS as f64 / began.elapsed().as_secs_f64();
    let began = Instant::now();
    client.send(&RespClient::written(&["AUTH", "app", PASSWORD]).repeat(LOGINS))?;
    for _ in 0..LOGINS {
        assert_eq!(client.read()?, ok());
    }
    let pipelined = LOGINS as f64 / began.elapsed().as_secs_f64();
    let began = Instant::now();
    for _ in 0..LOGINS / 10 {
        drop(client_as(number, "app")?);
    }
    let connections = (LOGINS / 10) as f64 / began.elapsed().as_secs_f64();
    println!(
        "AUTH/s: {one:.0} one after another, {pipelined:.0} in a pipeline, {connections:.0} with a connection each"
    );
    // A busy machine may be slow, but not so slow as argon2.
    assert!(
        pipelined > 4.0 * hashed && one > 2.0 * hashed,
        "{pipelined} {one} {hashed}"
    );
    Ok(())
}

/// All connections of an application that starts log in at once: the password is hashed once, and nobody else waits for that.
#[test]
fn a_crowd_that_logs_in_at_once_is_let_in() -> Result<()> {
    const CLIENTS: usize = 100;
    let port = port_with_users("")?;
    let number = port.proxy.key_port()?;
    let mut root = client_as(number, "root")?;
    // Else the list is no map.
    root.say("HELLO 3")?;
    wait_until("the crowd's user", WAIT_MAX, || {
        let RespValue::Map(users) = root.say("KEYWRIGHT USER LIST")? else {
            return Ok(false);
        };
        Ok(users.iter().any(|(name, _)| *name == bulk("everything")))
    })?;
    let let_in: Vec<Result<RespValue>> = thread::scope(|scope| {
        let logins: Vec<_> = (0..CLIENTS)
            .map(|_| {
                scope.spawn(|| RespClient::connect(number)?.ask(&["AUTH", "everything", PASSWORD]))
            })
            .collect();
        logins
            .into_iter()
            .map(|login| login.join().unwrap())
            .collect()
    });
    for reply in let_in {
        assert_eq!(reply?, ok());
    }
    Ok(())
}

/// Who the users are is remembered while the store is away, for as long as the configuration says.
#[test]
fn while_the_store_is_away_users_stay_in_force_for_a_time() -> Result<()> {
    const STALE_S: u64 = 10;
    let mut server =
        Upstream::start_with(Flavour::MariaDb, &["--innodb-flush-log-at-trx-commit=1"])?;
    let url = make_store(&server, "keywright", &[("orders", 1)])?;
    let config = |stale_s: u64| ProxyConfig {
        store_url: url.clone(),
        store: "wait_ms_max = 700\nstore_ms_max = 2000\n".to_owned(),
        key_ports: vec![format!("{KEYS}users = true\n").replace("flakes = \"snowflake\", ", "")],
        more: format!("[limits]\nusers_stale_s_max = {stale_s}\n"),
        ..ProxyConfig::default()
    };
    ProxyProcess::add_user(&config(0), "app", PASSWORD, &[("use", "*")])?;
    let (short, endless) = (
        ProxyProcess::start(config(STALE_S))?,
        ProxyProcess::start(config(0))?,
    );
    let mut short_client = client_as(short.key_port()?, "app")?;
    let mut endless_client = client_as(endless.key_port()?, "app")?;
    server.kill9()?;
    // A UUID needs no store.
    let token = short_client.say("KEYWRIGHT NEXT tokens")?;
    assert!(matches!(token, RespValue::Bulk(_)), "{token:?}");
    wait_until("the end of what is known", WAIT_MAX, || {
        Ok(match short_client.say("KEYWRIGHT NEXT tokens")? {
            RespValue::Error(error) => {
                assert_has(&error, &["USERS_UNKNOWN the store has not said for"]);
                true
            }
            _ => false,
        })
    })?;
    let refused = RespClient::connect(short.key_port()?)?.ask(&["AUTH", "app", PASSWORD])?;
    assert_has(
        refused.error()?,
        &["USERS_UNKNOWN", &format!("users_stale_s_max is {STALE_S}")],
    );
    let token = endless_client.say("KEYWRIGHT NEXT tokens")?;
    assert!(matches!(token, RespValue::Bulk(_)), "{token:?}");
    drop(client_as(endless.key_port()?, "app")?);
    // A program that begins now knows nobody.
    let new = ProxyProcess::start(config(0))?;
    let refused = RespClient::connect(new.key_port()?)?.ask(&["AUTH", "app", PASSWORD])?;
    assert_has(
        refused.error()?,
        &["USERS_UNKNOWN the store has not said yet"],
    );
    server.restart()?;
    wait_until("users again", WAIT_MAX, || {
        let token = short_client.say("KEYWRIGHT NEXT tokens")?;
        Ok(matches!(token, RespValue::Bulk(_)))
    })?;
    drop(client_as(new.key_port()?, "app")?);
    Ok(())
}
