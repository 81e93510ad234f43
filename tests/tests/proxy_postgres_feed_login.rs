//! How a program logs in to a server that it feeds: with a password and TLS, as the page shows it, and what it says where something is missing.

use std::fs;

use keywright_testkit::{
    PgServer, Pki, ProxyConfig, ProxyProcess, Result, assert_has, query_i64, scratch_dir,
};

/// A server whose feeder comes over TLS and with a password only.
fn server(pki: &Pki) -> Result<PgServer> {
    let file = |name: &str| pki.file(name).display().to_string();
    let server = PgServer::builder()
        .setting("ssl", "on")
        .setting("ssl_cert_file", &file("server.pem"))
        .setting(
            "ssl_key_file",
            &pki.postgres_key("server")?.display().to_string(),
        )
        .start()?;
    let rules = server.data_dir().join("pg_hba.conf");
    let before = fs::read_to_string(&rules)?;
    let of_feeder = "hostssl all keywright_feeder 127.0.0.1/32 scram-sha-256\nhost all keywright_feeder 127.0.0.1/32 reject\n";
    fs::write(&rules, format!("{of_feeder}{before}"))?;
    let mut client = server.client("postgres")?;
    client.batch_execute(
        "SELECT pg_reload_conf(); CREATE EXTENSION keywright; CREATE ROLE keywright_feeder LOGIN PASSWORD 'a secret'; \
         GRANT USAGE ON SCHEMA keywright TO keywright_feeder",
    )?;
    client.batch_execute("CREATE DATABASE shop")?;
    server.client("shop")?.batch_execute(
        "CREATE EXTENSION keywright; SELECT keywright.create_fed_tag('orders'); CREATE TABLE orders (id BIGINT DEFAULT next_biz_id('orders'))",
    )?;
    Ok(server)
}

#[test]
fn a_feeder_logs_in_by_password_and_tls() -> Result<()> {
    let pki = Pki::new()?;
    let server = server(&pki)?;
    let dir = scratch_dir()?;
    let password = dir.path().join("feeder.password");
    let section = |tls: &str| {
        format!(
            "\n[[feed]]\nurl = \"postgres://keywright_feeder@127.0.0.1:{}/postgres\"\npassword_file = \"{}\"\n{tls}\ntags = [\"orders\"]\n",
            server.port(),
            password.display()
        )
    };
    let ca = pki.file("ca.pem");
    let required = format!("tls = \"required\"\ntls_ca_file = \"{}\"", ca.display());
    let of = |tls: &str| ProxyConfig {
        key_ports: Vec::new(),
        more: section(tls),
        ..ProxyConfig::key_port(&dir.path().join("store.db"), "")
    };
    let checked = |config: &ProxyConfig| -> Result<String> {
        let output = ProxyProcess::command(config, &["check"])?;
        Ok(String::from_utf8(output.stdout)? + &String::from_utf8(output.stderr)?)
    };
    let config = of(&required);
    fs::write(&password, "a guess\n")?;
    ProxyProcess::said(&config, &["init"])?;
    assert_has(&checked(&config)?, &["cannot be fed", "password"]);
    fs::write(&password, "a secret\n")?;
    assert_has(&checked(&config)?, &["may not feed", "EXECUTE"]);
    server.client("postgres")?.batch_execute(
        "GRANT EXECUTE ON FUNCTION keywright.await_demand, keywright.feed_tag, keywright.handed_over TO keywright_feeder",
    )?;
    assert_has(&checked(&config)?, &["ready to run"]);
    assert_has(&checked(&of("tls = \"disabled\""))?, &["cannot be fed"]);
    // No authority that it knows has signed the server's certificate.
    assert_has(&checked(&of("tls = \"required\""))?, &["certificate"]);
    let mut program = ProxyProcess::start(config)?;
    let mut client = server.client("shop")?;
    let insert = "WITH new AS (INSERT INTO orders SELECT FROM generate_series(1, 100) RETURNING id) SELECT count(DISTINCT id) FROM new";
    assert_eq!(query_i64(&mut client, insert)?, 100);
    let secure = "SELECT count(*) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE ssl AND usename = 'keywright_feeder'";
    assert_eq!(query_i64(&mut client, secure)?, 1);
    program.stop()?;
    assert!(!program.log().contains("secret"));
    Ok(())
}
