//! Users of a key port that speaks HTTP.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use keywright_testkit::redis::RespClient;
use keywright_testkit::{ProxyProcess, Result, WAIT_MAX, assert_has, wait_until};

use super::client::{Answer, HttpClient};
use super::{KEYS, Port};

const PASSWORD: &str = "open:sesame";

/// Who may take keys of which name.
const MAY: [(&str, &str); 6] = [
    ("app", "orders"),
    ("app", "tokens"),
    ("everything", "orders"),
    ("everything", "tokens"),
    ("everything", "flakes"),
    ("everything", "none"),
];

const USERS: [(&str, &[(&str, &str)]); 4] = [
    ("root", &[("administer", "*")]),
    ("app", &[("use", "orders"), ("use", "tok*")]),
    ("everything", &[("use,manage,create", "*")]),
    ("nobody", &[]),
];

fn port_with_users() -> Result<Port> {
    // A slow machine sends a late body in time.
    let port = Port::start_with("users = true\nrequest_ms_max = 60000\n", |mut config| {
        config.key_ports = vec![format!("{KEYS}users = true\n")];
        config
    })?;
    for (name, grants) in USERS {
        ProxyProcess::add_user(&port.config, name, PASSWORD, grants)?;
    }
    let mut client = port.client()?;
    // The last that was added.
    wait_until("the users", WAIT_MAX, || {
        let answer = client.say_with("GET /v1/keys", &basic("nobody", PASSWORD));
        let is_there = answer.is_ok_and(|answer| answer.status == 200);
        if !is_there {
            client = port.client()?;
        }
        Ok(is_there)
    })?;
    Ok(port)
}

fn basic(user: &str, password: &str) -> String {
    let pair = STANDARD.encode(format!("{user}:{password}"));
    format!("Authorization: Basic {pair}\r\n")
}

fn cause(answer: &Answer) -> Option<&str> {
    let (_, rest) = answer.body.split_once("\"cause\":\"")?;
    Some(rest.split_once('"')?.0)
}

/// A user may be removed between the head of a request and its body.
#[test]
fn rights_are_those_of_the_moment_in_which_keys_are_given() -> Result<()> {
    let port = port_with_users()?;
    let (mut late, mut other) = (port.client()?, port.client()?);
    let header = basic("app", PASSWORD);
    assert_eq!(late.say_with("GET /v1/keys", &header)?.status, 200);
    let head = HttpClient::written(
        "POST /v1/keys/orders",
        &format!(
            "{header}Content-Type: application/x-www-form-urlencoded\r\nContent-Length: 7\r\n"
        ),
    );
    late.send(head.as_bytes())?;
    ProxyProcess::said(&port.config, &["user", "remove", "app"])?;
    wait_until("the user to be gone", WAIT_MAX, || {
        let answer = other.say_with("GET /v1/keys", &header);
        let status = answer.map(|answer| answer.status);
        if status.is_err() {
            other = port.client()?;
        }
        Ok(status.is_ok_and(|status| status == 401))
    })?;
    late.send(b"count=9")?;
    let answer = late.read()?;
    assert_eq!(answer.status, 401, "{answer:?}");
    Ok(())
}

/// Every user, path and name.
#[test]
fn each_user_gets_keys_of_the_names_that_were_granted() -> Result<()> {
    let port = port_with_users()?;
    let mut client = port.client()?;
    for (user, _) in USERS {
        for name in ["orders", "flakes", "tokens", "none"] {
            let header = basic(user, PASSWORD);
            let may = MAY.contains(&(user, name));
            let answer = client.say_with(&format!("POST /v1/keys/{name}"), &header)?;
            let expected = match (may, name) {
                (true, "none") => (404, Some("tag_unknown")),
                (true, _) => (200, None),
                (false, _) => (403, Some("rights_missing")),
            };
            assert_eq!((answer.status, cause(&answer)), expected, "{user} {name}");
            // Clients of Leaf send no header by themselves; a proxy before them may.
            let answer = client.say_with(&format!("GET /api/segment/get/{name}"), &header)?;
            let gives = may && name == "orders";
            assert_eq!(answer.status == 200, gives, "{user} {name}: {answer:?}");
            let path = format!("GET /tinyid/id/nextId?bizType={name}&token={user}:{PASSWORD}");
            let answer = client.say(&path)?;
            let gives = may && (name == "orders" || name == "flakes");
            assert_eq!(
                answer.body.contains("\"code\":200"),
                gives,
                "{path}: {answer:?}"
            );
            let is_denied = answer.body.contains("\"code\":5");
            assert_eq!(is_denied, !may, "{path}: {answer:?}");
        }
        let answer = client.say_with("GET /v1/decode/7", &basic(user, PASSWORD))?;
        assert_eq!(answer.status, 200, "{answer:?}");
        let answer = client.say_with("GET /v1/keys", &basic(user, PASSWORD))?;
        for name in ["orders", "flakes", "tokens"] {
            let is_listed = answer.body.contains(&format!("\"name\":\"{name}\""));
            // An administrator's pattern is for all of them.
            let sees = user == "root" || MAY.contains(&(user, name));
            assert_eq!(is_listed, sees, "{user} {name}");
        }
    }
    Ok(())
}

#[test]
fn who_is_no_user_is_told_401() -> Result<()> {
    let port = port_with_users()?;
    let mut client = port.client()?;
    for request in ["POST /v1/keys/orders", "GET /v1/keys", "GET /v1/decode/7"] {
        let answer = client.say(request)?;
        assert_eq!(
            (answer.status, cause(&answer)),
            (401, Some("password_missing"))
        );
        // A password alone says no user: Bearer is not offered.
        let offered = answer.header("www-authenticate");
        assert!(
            offered.is_some_and(|scheme| scheme.starts_with("Basic ")),
            "{offered:?}"
        );
    }
    for header in [
        basic("app", "open"),
        basic("none", PASSWORD),
        basic("", ""),
        "Authorization: Basic *\r\n".to_owned(),
        format!("Authorization: Bearer {PASSWORD}\r\n"),
        format!("Authorization: Basic {}\r\n", STANDARD.encode(b"\xff:\xff")),
    ] {
        let mut client = port.client()?;
        let answer = client.say_with("POST /v1/keys/orders", &header)?;
        assert_eq!(
            (answer.status, cause(&answer)),
            (401, Some("password_wrong")),
            "{header}"
        );
    }
    // Guesses end the connection.
    let mut client = port.client()?;
    let request = HttpClient::written("POST /v1/keys/orders", &basic("app", "a wrong guess"));
    client.send(request.repeat(20).as_bytes())?;
    let told = client.rest()?;
    assert_eq!(told.matches("HTTP/1.1 401").count(), 5, "{told}");
    assert!(!port.proxy.log().contains("guess"));
    let mut client = port.client()?;
    let wrong = client.say("GET /tinyid/id/nextId?bizType=orders&token=app:none")?;
    assert_has(&wrong.body, &["\"code\":5", "token is error"]);
    Ok(())
}

/// Who says nobody at all has said no wrong password.
#[test]
fn a_request_of_tinyid_without_a_token_is_no_guess() -> Result<()> {
    let port = port_with_users()?;
    let mut client = port.client()?;
    for _ in 0..12 {
        for token in ["", "&token="] {
            let refused = client.say(&format!("GET /tinyid/id/nextId?bizType=orders{token}"))?;
            assert_has(&refused.body, &["\"code\":5", "token is error"]);
        }
    }
    // The connection goes on.
    let app = client.say(&format!(
        "GET /tinyid/id/nextId?bizType=orders&token=app:{PASSWORD}"
    ))?;
    assert_has(&app.body, &["\"code\":200"]);
    Ok(())
}

/// Clients of tinyid have a token. One that is right hides no guess in the header, and says no other user beside a right one.
#[test]
fn the_header_is_looked_at_whatever_the_token_says() -> Result<()> {
    let port = port_with_users()?;
    let request = format!("GET /tinyid/id/nextId?bizType=orders&token=app:{PASSWORD}");
    let wrong = || port.metric("keywright_port_refused_total{cause=\"password_wrong\"");
    let before = wrong()?;
    let mut client = port.client()?;
    let guess = HttpClient::written(&request, &basic("root", "a wrong guess"));
    client.send(guess.repeat(12).as_bytes())?;
    let told = client.rest()?;
    let count = |code: &str| told.matches(&format!("\"code\":{code}")).count();
    assert_eq!((count("5"), count("200")), (5, 0), "{told}");
    assert_eq!(wrong()? - before, 5);
    let mut client = port.client()?;
    let nobody = client.say_with(&request, &basic("nobody", PASSWORD))?;
    assert_has(&nobody.body, &["\"code\":5"]);
    let app = client.say(&request)?;
    assert_has(&app.body, &["\"code\":200"]);
    Ok(())
}

#[test]
fn a_removed_user_gets_no_more_keys_on_an_open_connection() -> Result<()> {
    let port = port_with_users()?;
    let mut client = port.client()?;
    let header = basic("app", PASSWORD);
    let answer = client.say_with("POST /v1/keys/orders", &header)?;
    assert_eq!(answer.status, 200, "{answer:?}");
    let mut root = RespClient::connect(port.proxy.key_port()?)?;
    root.ask(&["AUTH", "root", PASSWORD])?;
    root.say("KEYWRIGHT USER REVOKE app use orders")?;
    wait_until("a revoked right", WAIT_MAX, || {
        let answer = client.say_with("POST /v1/keys/orders", &header)?;
        Ok(answer.status == 403)
    })?;
    let answer = client.say_with("POST /v1/keys/tokens", &header)?;
    assert_eq!(answer.status, 200, "{answer:?}");
    root.say("KEYWRIGHT USER REMOVE app")?;
    wait_until("a removed user", WAIT_MAX, || {
        let answer = client.say_with("POST /v1/keys/tokens", &header)?;
        Ok(answer.status == 401)
    })
}

/// Of a file that every machine has, and everybody may read.
#[test]
fn a_password_that_others_can_read_is_told_of() -> Result<()> {
    let port = Port::start("password_file = \"/etc/passwd\"\n")?;
    let told = "password_file: others on this machine may read or change \"/etc/passwd\" (mode 0644): chmod 600";
    assert_has(&port.proxy.log(), &[told]);
    let checked = ProxyProcess::said(&port.config, &["check"])?;
    assert_has(&checked, &[told, "warning: listener", "ready to run"]);
    Ok(())
}
