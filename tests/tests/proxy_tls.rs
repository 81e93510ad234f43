//! TLS on either leg of the proxy, on both, on neither, and the passwords that depend on it.

use std::fs;
use std::io::ErrorKind;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use keywright_testkit::{
    Flavour, Login, Pki, ProxyConfig, ProxyProcess, Result, SqlFault, Upstream, WAIT_MAX, Wire,
    make_store, wait_until,
};
use mysql_async::prelude::Queryable;
use mysql_async::{ChangeUserOpts, Conn, OptsBuilder, SslOpts};

keywright_testkit::on_both_flavours!(
    passwords_arrive_on_every_combination_of_legs,
    whoever_must_use_tls_does_or_is_refused,
    an_upstream_must_be_whom_it_should,
    certificates_change_while_connections_live,
    large_answers_pass_through_tls,
    a_handshake_that_does_not_go_on_is_ended,
    a_client_that_idles_too_long_sees_the_same_end,
);

fn proxy(server: &Upstream, store: &str, listener: &str) -> Result<ProxyProcess> {
    ProxyProcess::start(ProxyConfig {
        listener: listener.to_owned(),
        ..ProxyConfig::before(server, store)
    })
}

/// The command-line client, with whatever the server's plugin asks for. What it says of its own TLS, and the rows.
fn client(port: u16, user: &str, ca: Option<&Path>, sql: &str) -> Result<String> {
    let mut command = Command::new("mariadb");
    command
        .args(["--no-defaults", "--password=secret", "--host=127.0.0.1"])
        .args(["--batch", "--skip-column-names"])
        .arg(format!("--user={user}"))
        .arg(format!("--port={port}"))
        .arg(format!("--execute={sql}"));
    match ca {
        Some(ca) => command
            .arg(format!("--ssl-ca={}", ca.display()))
            .arg("--ssl-verify-server-cert"),
        None => command.arg("--skip-ssl"),
    };
    let output = command.stdin(Stdio::null()).output()?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    if !output.status.success() {
        anyhow::bail!("{}", text(&output.stderr));
    }
    Ok(text(&output.stdout))
}

fn runtime() -> Result<tokio::runtime::Runtime> {
    Ok(tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?)
}

/// A driver as applications have it.
fn driver(port: u16, user: &str, ca: Option<PathBuf>) -> OptsBuilder {
    let tls = ca.map(|ca| SslOpts::default().with_root_certs(vec![ca.into()]));
    OptsBuilder::default()
        .ip_or_hostname("127.0.0.1")
        .tcp_port(port)
        .prefer_socket(false)
        .user(Some(user))
        .pass(Some("secret"))
        .ssl_opts(tls)
}

const CIPHER: &str = "SHOW SESSION STATUS LIKE 'Ssl_cipher'";

fn passwords_arrive_on_every_combination_of_legs(flavour: Flavour) -> Result<()> {
    let pki = Pki::new()?;
    let server = pki.server(flavour, "server")?;
    let store = make_store(&server, "store_legs", &[])?;
    let plugins: &[&str] = match flavour {
        Flavour::MariaDb => &["mysql_native_password", "ed25519"],
        Flavour::MySql => &["caching_sha2_password", "sha256_password"],
    };
    if flavour == Flavour::MariaDb {
        server.run("mysql", "INSTALL SONAME 'auth_ed25519'")?;
    }
    let ca = pki.file("ca.pem");
    let mut users = 0;
    for upstream in ["disabled", "preferred", "required"] {
        let lines = match upstream {
            "disabled" => String::new(),
            wanted => pki.towards_upstream(wanted),
        };
        let proxy = proxy(
            &server,
            &store,
            &(pki.towards_clients("preferred") + &lines),
        )?;
        for plugin in plugins {
            for tls in [false, true] {
                users += 1;
                let user = format!("u{users}");
                create(&server, &user, plugin)?;
                let ca = tls.then_some(ca.as_path());
                let case = format!("{plugin}, client TLS {tls}, upstream TLS {upstream}");
                // The first time the server wants the password in full, then it knows it.
                for _ in 0..2 {
                    let sql = format!("\\s; {CIPHER}");
                    let seen = client(proxy.port(), &user, ca, &sql)
                        .map_err(|error| error.context(case.clone()))?;
                    assert_eq!(seen.contains("Cipher in use"), tls, "{case}: {seen}");
                    let on_upstream = seen.lines().last().unwrap_or_default().to_owned();
                    let has_cipher = on_upstream != "Ssl_cipher\t";
                    assert_eq!(has_cipher, upstream != "disabled", "{case}: {seen}");
                }
                let wrong = client_with(proxy.port(), &user, "wrong", ca);
                assert!(wrong.contains("ERROR 1045"), "{case}: {wrong}");
                // ed25519 is not in the driver.
                if *plugin != "ed25519" && *plugin != "sha256_password" {
                    let fresh = format!("v{users}");
                    create(&server, &fresh, plugin)?;
                    drive(proxy.port(), &user, &fresh, ca)
                        .map_err(|error| error.context(case.clone()))?;
                }
            }
        }
    }
    Ok(())
}

fn create(server: &Upstream, user: &str, plugin: &str) -> Result<()> {
    let how = match server.flavour() {
        Flavour::MariaDb => format!("IDENTIFIED VIA {plugin} USING PASSWORD('secret')"),
        Flavour::MySql => format!("IDENTIFIED WITH {plugin} BY 'secret'"),
    };
    server
        .run("mysql", &format!("CREATE USER {user}@'127.0.0.1' {how}"))
        .map(drop)
}

fn client_with(port: u16, user: &str, password: &str, ca: Option<&Path>) -> String {
    let mut command = Command::new("mariadb");
    command
        .args(["--no-defaults", "--host=127.0.0.1", "--execute=SELECT 1"])
        .arg(format!("--password={password}"))
        .arg(format!("--user={user}"))
        .arg(format!("--port={port}"));
    match ca {
        Some(ca) => command.arg(format!("--ssl-ca={}", ca.display())),
        None => command.arg("--skip-ssl"),
    };
    match command.stdin(Stdio::null()).output() {
        Ok(output) => String::from_utf8_lossy(&output.stderr).into_owned(),
        Err(error) => error.to_string(),
    }
}

/// Logs in as one user, and becomes another that the server does not know yet.
fn drive(port: u16, user: &str, other: &str, ca: Option<&Path>) -> Result<()> {
    runtime()?.block_on(async {
        let mut conn = Conn::new(driver(port, user, ca.map(Path::to_owned))).await?;
        let who = "SELECT SUBSTRING_INDEX(CURRENT_USER(), '@', 1)";
        let seen: Option<String> = conn.query_first(who).await?;
        assert_eq!(seen.as_deref(), Some(user));
        let change = ChangeUserOpts::new()
            .with_user(Some(other.to_owned()))
            .with_pass(Some("secret".to_owned()));
        conn.change_user(change).await?;
        let seen: Option<String> = conn.query_first(who).await?;
        assert_eq!(seen.as_deref(), Some(other));
        conn.disconnect().await?;
        Ok(())
    })
}

fn fault(outcome: Result<Wire>) -> Option<(u16, String)> {
    let fault = outcome.err()?.downcast::<SqlFault>().ok()?;
    let message = String::from_utf8_lossy(&fault.message).into_owned();
    Some((fault.errno, message))
}

fn whoever_must_use_tls_does_or_is_refused(flavour: Flavour) -> Result<()> {
    let pki = Pki::new()?;
    let options: &[&str] = match flavour {
        Flavour::MariaDb => &["--skip-ssl"],
        Flavour::MySql => &["--tls-version="],
    };
    let server = Upstream::start_with(flavour, options)?;
    let store = make_store(&server, "store_must", &[])?;
    server.run("mysql", "CREATE USER u@'127.0.0.1' IDENTIFIED BY 'secret'")?;
    let strict = proxy(&server, &store, &pki.towards_clients("required"))?;
    let refused = fault(strict.wire("mysql"));
    assert_eq!(refused.map(|(errno, _)| errno), Some(3159));
    client(strict.port(), "u", Some(&pki.file("ca.pem")), "SELECT 1")?;
    let strict = proxy(&server, &store, &pki.towards_upstream("required"))?;
    let refused = fault(strict.wire("mysql"));
    assert_eq!(refused.map(|(errno, _)| errno), Some(1043));
    // Where it is only preferred, a server without TLS is served without.
    let lenient = pki.towards_upstream("preferred");
    let lenient = proxy(&server, &store, &lenient)?;
    assert_eq!(lenient.wire("mysql")?.rows("SELECT 1")?, [["1"]]);
    Ok(())
}

fn an_upstream_must_be_whom_it_should(flavour: Flavour) -> Result<()> {
    let pki = Pki::new()?;
    let stranger = Pki::new()?;
    let server = pki.server(flavour, "other")?;
    let store = make_store(&server, "store_whom", &[])?;
    let ours = pki.towards_upstream("required");
    let name = |name: &str| format!("{ours}upstream_name = \"{name}\"\n");
    let verify = |how: &str| format!("upstream_verify = \"{how}\"\n");
    let encrypted = |lines: &str| -> Result<bool> {
        let proxy = proxy(&server, &store, lines)?;
        match proxy.wire("mysql") {
            Ok(mut wire) => {
                let cipher = wire.rows(CIPHER)?;
                assert_ne!(cipher.concat().last().map(String::as_str), Some(""));
                Ok(true)
            }
            Err(error) => {
                assert_eq!(fault(Err(error)).map(|(errno, _)| errno), Some(1043));
                assert!(proxy.log().contains("certificate"), "{}", proxy.log());
                Ok(false)
            }
        }
    };
    // The certificate is for db.example.
    assert!(!encrypted(&ours)?);
    assert!(encrypted(&name("db.example"))?);
    assert!(!encrypted(&name("db.example.org"))?);
    assert!(encrypted(&(ours.clone() + &verify("ca")))?);
    assert!(!encrypted(
        &(stranger.towards_upstream("required") + &verify("ca"))
    )?);
    let unverified = "upstream_tls = \"required\"\n".to_owned() + &verify("none");
    assert!(encrypted(&unverified)?);
    Ok(())
}

fn certificates_change_while_connections_live(flavour: Flavour) -> Result<()> {
    let pki = Pki::new()?;
    let server = Upstream::shared(flavour)?;
    let store = make_store(&server, "store_change", &[])?;
    create(
        &server,
        "changing",
        match flavour {
            Flavour::MariaDb => "mysql_native_password",
            Flavour::MySql => "caching_sha2_password",
        },
    )?;
    let config = ProxyConfig {
        listener: pki.towards_clients("required"),
        ..ProxyConfig::before(&server, &store)
    };
    let mut proxy = ProxyProcess::start(config.clone())?;
    let old_ca = pki.file("ca.pem");
    let runtime = runtime()?;
    let mut living = runtime.block_on(Conn::new(driver(
        proxy.port(),
        "changing",
        Some(old_ca.clone()),
    )))?;
    let next = Pki::new()?;
    for file in ["proxy.pem", "proxy.key"] {
        fs::copy(next.file(file), pki.file(file))?;
    }
    proxy.reload(config.clone())?;
    let new_ca = next.file("ca.pem");
    wait_until("the new certificate", WAIT_MAX, || {
        Ok(client(proxy.port(), "changing", Some(&new_ca), "SELECT 1").is_ok())
    })?;
    assert!(client(proxy.port(), "changing", Some(&old_ca), "SELECT 1").is_err());
    let seen: Option<u64> = runtime.block_on(living.query_first("SELECT 7"))?;
    assert_eq!(seen, Some(7));
    // What cannot be read changes nothing, and all of it is told.
    fs::write(pki.file("proxy.pem"), "no certificate")?;
    fs::remove_file(pki.file("proxy.key"))?;
    proxy.reload(config)?;
    wait_until("the problems", WAIT_MAX, || {
        let log = proxy.log();
        Ok(["proxy.pem has no certificate", "proxy.key: "]
            .iter()
            .all(|part| log.contains(part)))
    })?;
    client(proxy.port(), "changing", Some(&new_ca), "SELECT 1")?;
    runtime.block_on(living.disconnect())?;
    Ok(())
}

fn large_answers_pass_through_tls(flavour: Flavour) -> Result<()> {
    let pki = Pki::new()?;
    let server = pki.server(flavour, "server")?;
    let store = make_store(&server, "store_large", &[])?;
    server.run(
        "mysql",
        "CREATE USER large@'127.0.0.1' IDENTIFIED BY 'secret'; SET GLOBAL max_allowed_packet = 67108864",
    )?;
    let lines = pki.towards_clients("required") + &pki.towards_upstream("required");
    let proxy = proxy(&server, &store, &lines)?;
    runtime()?.block_on(async {
        let opts = driver(proxy.port(), "large", Some(pki.file("ca.pem")));
        let mut conn = Conn::new(opts.max_allowed_packet(Some(60_000_000))).await?;
        for length in [1, 16_383, 16_384, 70_000, 20_000_000] {
            let long = "y".repeat(length);
            let sql = format!("SELECT REPEAT('x', {length}), LENGTH('{long}')");
            let seen: Option<(String, usize)> = conn.query_first(sql).await?;
            let seen = seen.map(|(text, sent)| (text.len(), sent));
            assert_eq!(seen, Some((length, length)));
        }
        conn.disconnect().await?;
        Ok(())
    })
}

fn a_handshake_that_does_not_go_on_is_ended(flavour: Flavour) -> Result<()> {
    use std::io::{Read, Write};
    let pki = Pki::new()?;
    let server = Upstream::shared(flavour)?;
    let store = make_store(&server, "store_slow", &[])?;
    let proxy = ProxyProcess::start(ProxyConfig {
        listener: pki.towards_clients("preferred"),
        more: "[limits]\nlogin_ms_max = 3000".to_owned(),
        ..ProxyConfig::before(&server, &store)
    })?;
    // A request for TLS, and then nothing.
    let mut request = vec![32, 0, 0, 1];
    request.extend((1_u32 << 11 | 1 << 9 | 1 << 15).to_le_bytes());
    request.extend([0; 28]);
    for sent in [&request[..], &request[..20], &[]] {
        let mut stream = TcpStream::connect(("127.0.0.1", proxy.port()))?;
        stream.set_read_timeout(Some(WAIT_MAX))?;
        stream.write_all(sent)?;
        let began = Instant::now();
        let mut heard = Vec::new();
        stream.read_to_end(&mut heard)?;
        assert!(began.elapsed() < Duration::from_secs(30));
    }
    let mut wire = Wire::connect_tcp(proxy.port(), &Login::root("mysql"))?;
    assert_eq!(wire.rows("SELECT 1")?, [["1"]]);
    Ok(())
}

/// MariaDB resets such a connection without a word. MySQL says why, and both it and the proxy end it in order, of which the proxy
/// alone tells TLS too.
fn a_client_that_idles_too_long_sees_the_same_end(flavour: Flavour) -> Result<()> {
    let pki = Pki::new()?;
    let server = pki.server(flavour, "server")?;
    let store = make_store(&server, "store_idle", &[])?;
    let clients = pki.towards_clients("required");
    let both = clients.clone() + &pki.towards_upstream("required");
    let proxies = [
        proxy(&server, &store, &clients)?,
        proxy(&server, &store, &both)?,
    ];
    let idle = |port: u16| -> Result<Wire> {
        let mut wire = Wire::connect_tls(port, &pki.file("ca.pem"), &Login::root("mysql"))?;
        wire.run("SET wait_timeout = 1")?;
        Ok(wire)
    };
    let mut direct = idle(server.port())?;
    let through = proxies.iter().map(|proxy| idle(proxy.port()));
    let through = through.collect::<Result<Vec<_>>>()?;
    let (words, end) = direct.read_to_end();
    let same = match flavour {
        Flavour::MariaDb => {
            assert_eq!((words.len(), end), (0, Some(ErrorKind::ConnectionReset)));
            end
        }
        Flavour::MySql => {
            assert!(words.windows(5).any(|state| state == b"HY000"), "{words:?}");
            assert_eq!(end, Some(ErrorKind::UnexpectedEof));
            None
        }
    };
    for mut wire in through {
        assert_eq!(wire.read_to_end(), (words.clone(), same));
    }
    Ok(())
}

/// A server takes bytes that nobody has read for a client that is still there, and TLS has a goodbye of its own. Clients that give up and come again would take
/// up one of the server's connections after the other. (MySQL looks at none of its connections with TLS meanwhile, whoever the client is.)
#[test]
fn a_client_that_leaves_its_waiting_statement_leaves_the_server_too() -> Result<()> {
    let pki = Pki::new()?;
    let server = pki.server(Flavour::MariaDb, "server")?;
    let store = make_store(&server, "store_leaves", &[])?;
    server.run(
        "mysql",
        "CREATE DATABASE shop; CREATE TABLE shop.busy (a INT)",
    )?;
    let lines = pki.towards_clients("preferred") + &pki.towards_upstream("required");
    let proxy = proxy(&server, &store, &lines)?;
    let mut holder = server.wire("shop")?;
    holder.run("LOCK TABLES busy WRITE")?;
    let login = Login::root("shop");
    let clients = [
        proxy.wire("shop")?,
        Wire::connect_tls(proxy.port(), &pki.file("ca.pem"), &login)?,
    ];
    for mut client in clients {
        let connection = format!(
            "SELECT COUNT(*) FROM information_schema.processlist WHERE id = {}",
            client.thread_id()
        );
        let waits = format!("{connection} AND state LIKE '%metadata lock'");
        client.send_query("INSERT INTO busy VALUES (1)")?;
        wait_until("the statement", WAIT_MAX, || {
            Ok(server.run("mysql", &waits)? == [["1"]])
        })?;
        drop(client);
        wait_until("the end of the server's connection", WAIT_MAX, || {
            Ok(server.run("mysql", &connection)? == [["0"]])
        })?;
    }
    holder.run("UNLOCK TABLES")?;
    assert_eq!(holder.rows("SELECT COUNT(*) FROM busy")?, [["0"]]);
    Ok(())
}
