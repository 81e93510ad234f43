//! Passwords, wherever they come from, are in nothing that the program says: at no log level, in no message, figure or list.

use std::fs;

use keywright_testkit::{
    Flavour, Login, ProxyConfig, ProxyProcess, Result, Upstream, WAIT_MAX, Wire, assert_has,
    free_port, make_store, wait_until,
};

const STORE: &str = "st0re-w0rd-one";
const STORE_NEXT: &str = "st0re-w0rd-tw0";
const ADMIN: &str = "4dmin-w0rd";
const CLIENT: &str = "cl1ent-w0rd";
/// Stands in statements.
const LITERAL: &str = "l1teral-in-a-statement";

/// Where the program has the passwords of its own accounts from.
#[derive(Debug, Clone, Copy)]
enum From {
    Url,
    File,
    Environment,
}

struct Places<'a> {
    server: &'a Upstream,
    store: &'a Upstream,
    dir: &'a tempfile::TempDir,
    /// The second listener's.
    tls_port: u16,
}

impl Places<'_> {
    fn file(&self, password: &str) -> Result<String> {
        let mut passwords = [STORE, STORE_NEXT, ADMIN].iter();
        let number = passwords.position(|of| *of == password);
        let file = self.dir.path().join(format!("{number:?}"));
        fs::write(&file, format!("{password}\n"))?;
        Ok(file.display().to_string())
    }

    /// Two listeners before one server; what is behind the second asks for TLS that the server does not have.
    fn config(&self, from: From, store_password: &str) -> Result<ProxyConfig> {
        let (store, server) = (self.store.port(), self.server.port());
        let in_url = |password: &str| match from {
            From::Url => format!(":{password}"),
            From::File | From::Environment => String::new(),
        };
        let mut config = ProxyConfig::before(
            self.server,
            &format!(
                "mysql://kw{}@127.0.0.1:{store}/keywright",
                in_url(store_password)
            ),
        )
        .rule("shop.t", "segment:t");
        let mut listener = String::new();
        match from {
            From::Url => {}
            From::File => {
                config.store = format!("password_file = \"{}\"\n", self.file(store_password)?);
                listener = format!("admin_password_file = \"{}\"", self.file(ADMIN)?);
            }
            From::Environment => {
                config.store = "password_env = \"OF_STORE\"\n".to_owned();
                listener = "admin_password_env = \"OF_ADMIN\"".to_owned();
                let variable = |name: &str, value: &str| (name.to_owned(), value.to_owned());
                config.environment = vec![
                    variable("OF_STORE", store_password),
                    variable("OF_ADMIN", ADMIN),
                ];
            }
        }
        config.more = format!(
            "[[listener]]\nbind = \"127.0.0.1:{}\"\nupstream = \"127.0.0.1:{server}\"\n\
             admin = \"mysql://kw{}@127.0.0.1:{server}\"\nupstream_tls = \"required\"\nupstream_verify = \"none\"\n{listener}\n\
             [status]\nusers = [\"root\", \"clerk\"]\n[limits]\nlogin_ms_max = 2000\nschema_refresh_s = 1\n",
            self.tls_port,
            in_url(ADMIN),
        );
        let level = "trace,sqlparser::parser=trace".to_owned();
        let level = ("KEYWRIGHT_LOG".to_owned(), level);
        config.environment.push(level);
        Ok(config)
    }
}

/// What the program has said, and where.
#[derive(Default)]
struct Said(Vec<(String, String)>);

impl Said {
    fn add(&mut self, place: impl ToString, text: impl Into<String>) {
        self.0.push((place.to_string(), text.into()));
    }

    fn command(&mut self, config: &ProxyConfig, arguments: &[&str]) -> Result<String> {
        let output = ProxyProcess::command(config, arguments)?;
        let text = String::from_utf8([output.stdout, output.stderr].concat())?;
        self.add(format!("{arguments:?}"), text.clone());
        Ok(text)
    }

    fn has_no_secret(&self) {
        for (place, text) in &self.0 {
            for secret in [STORE, STORE_NEXT, ADMIN, CLIENT, LITERAL] {
                // As bytes are written by Debug.
                let bytes = format!("{:?}", secret.as_bytes());
                let bytes = bytes.trim_matches(['[', ']']);
                assert!(!text.contains(secret), "{secret} is in {place}:\n{text}");
                assert!(!text.contains(bytes), "{secret} is in {place}:\n{text}");
            }
        }
    }
}

#[test]
fn passwords_are_in_nothing_that_is_said() -> Result<()> {
    let server = Upstream::start(Flavour::MariaDb)?;
    let accounts = |password: &str| {
        format!("CREATE USER kw@'%' IDENTIFIED BY '{password}'; GRANT ALL ON *.* TO kw@'%'")
    };
    server.run(
        "mysql",
        &format!(
            "CREATE DATABASE shop; CREATE TABLE shop.t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a TEXT);
             {}; CREATE USER clerk@'%' IDENTIFIED BY '{CLIENT}'; GRANT ALL ON shop.* TO clerk@'%'",
            accounts(ADMIN)
        ),
    )?;
    let mut store = Upstream::start(Flavour::MariaDb)?;
    make_store(&store, "keywright", &[("t", 1)])?;
    store.run("mysql", &accounts(STORE))?;
    let dir = tempfile::tempdir()?;
    let tls_port = free_port()?;
    let mut said = Said::default();
    for from in [From::Url, From::File, From::Environment] {
        let places = Places {
            server: &server,
            store: &store,
            dir: &dir,
            tls_port,
        };
        store.run(
            "mysql",
            &format!("ALTER USER kw@'%' IDENTIFIED BY '{STORE}'"),
        )?;
        let right = places.config(from, STORE)?;
        commands(&mut said, &right, &places.config(from, STORE_NEXT)?)?;
        let right = places.config(from, STORE)?;
        let proxy = ProxyProcess::start(right.clone())?;
        clients(&mut said, &proxy, &places)?;
        passwords_change(&mut said, proxy, from, &places)?;
    }
    let places = Places {
        server: &server,
        store: &store,
        dir: &dir,
        tls_port,
    };
    let config = places.config(From::Environment, STORE_NEXT)?;
    let proxy = ProxyProcess::start(config.clone())?;
    store.kill9()?;
    said.command(&config, &["check"])?;
    wait_until("the store's absence", WAIT_MAX, || {
        Ok(proxy
            .http_get("/metrics")?
            .1
            .contains("keywright_store_up 0"))
    })?;
    pages(&mut said, &proxy)?;
    said.add("the log without a store", proxy.log());
    said.has_no_secret();
    // What is no secret is there, in the lists, too.
    assert!(said.0.iter().any(|(_, text)| text.contains("clerk")));
    Ok(())
}

/// What the program's other commands say, with the right password and with a wrong one.
fn commands(said: &mut Said, right: &ProxyConfig, wrong: &ProxyConfig) -> Result<()> {
    let text = said.command(right, &["check"])?;
    assert_has(&text, &["ready to run"]);
    said.command(right, &["check", "--format", "json"])?;
    said.command(right, &["init"])?;
    said.command(right, &["release"])?;
    said.command(
        right,
        &[
            "explain",
            "--database",
            "shop",
            "INSERT INTO t (a) VALUES (1)",
        ],
    )?;
    for command in ["check", "init"] {
        let text = said.command(wrong, &[command])?;
        assert_has(&text, &["Access denied"]);
    }
    Ok(())
}

fn clients(said: &mut Said, proxy: &ProxyProcess, places: &Places<'_>) -> Result<()> {
    let login = Login {
        user: "clerk".to_owned(),
        password: CLIENT.to_owned(),
        ..Login::root("shop")
    };
    let mut wire = Wire::connect_tcp(proxy.port(), &login)?;
    for text in [
        format!("INSERT INTO t (a) VALUES ('{LITERAL}')"),
        format!("INSERT INTO t (id, a) VALUES (RAND(), '{LITERAL}')"),
        format!("INSERT INTO t (a) VALUES ('{LITERAL}"),
        format!("INSERT INTO t (a) SELECT '{LITERAL}' UNION ALL SELECT a FROM t"),
        format!("INSERT INTO t (id, a) SELECT NULL, '{LITERAL}' FROM missing"),
        format!("SET PASSWORD = PASSWORD('{CLIENT}')"),
    ] {
        wire.query(text)?;
    }
    wire.change_user(&login)?;
    let wrong = Login {
        password: format!("{CLIENT}-not"),
        ..login.clone()
    };
    let refused = Wire::connect_tcp(proxy.port(), &wrong)
        .map(drop)
        .unwrap_err();
    said.add("a login that is refused", format!("{refused:#}"));
    // The server behind the second listener has no TLS.
    let refused = Wire::connect_tcp(places.tls_port, &login)
        .map(drop)
        .unwrap_err();
    said.add("TLS that is not there", format!("{refused:#}"));
    for list in ["STATUS", "RULES", "SOURCES", "CONNECTIONS"] {
        let rows = wire.rows(format!("SHOW KEYWRIGHT {list}"))?;
        said.add(list, format!("{rows:?}"));
    }
    pages(said, proxy)
}

fn pages(said: &mut Said, proxy: &ProxyProcess) -> Result<()> {
    for path in ["/", "/status.json", "/metrics", "/readyz", "/healthz"] {
        said.add(path, proxy.http_get(path)?.1);
    }
    Ok(())
}

/// Reloads that are refused, and a password that is another one on the store, until the program is told.
fn passwords_change(
    said: &mut Said,
    mut proxy: ProxyProcess,
    from: From,
    places: &Places<'_>,
) -> Result<()> {
    let wait_for_refusals = |proxy: &ProxyProcess, count: usize| {
        wait_until("the reload's refusal", WAIT_MAX, || {
            Ok(proxy.log().matches("reload failed").count() == count)
        })
    };
    let wait_for_store = |proxy: &ProxyProcess, is_up: u8| {
        let figure = format!("keywright_store_up {is_up}\n");
        wait_until("the store's figure", WAIT_MAX, || {
            Ok(proxy.http_get("/metrics")?.1.contains(&figure))
        })
    };
    let mut unread = places.config(from, STORE)?;
    unread.store_url = format!("mysql://kw:{STORE_NEXT}@127.0.0.1:port/keywright");
    proxy.reload(unread)?;
    wait_for_refusals(&proxy, 1)?;
    proxy.reload(places.config(From::Url, STORE_NEXT)?)?;
    wait_for_refusals(&proxy, 2)?;
    assert_has(&proxy.log(), &["Access denied"]);
    let (store, next) = (places.store, places.config(From::Url, STORE_NEXT)?);
    wait_for_store(&proxy, 1)?;
    store.run(
        "mysql",
        &format!("ALTER USER kw@'%' IDENTIFIED BY '{STORE_NEXT}'; KILL USER kw"),
    )?;
    wait_for_store(&proxy, 0)?;
    pages(said, &proxy)?;
    proxy.reload(next)?;
    wait_for_store(&proxy, 1)?;
    // It says all that it can: else this shows nothing.
    assert_has(&proxy.log(), &[" DEBUG ", " ERROR "]);
    said.add(format!("the log, {from:?}"), proxy.log());
    proxy.stop()?;
    said.add(format!("the log at the end, {from:?}"), proxy.log());
    Ok(())
}
