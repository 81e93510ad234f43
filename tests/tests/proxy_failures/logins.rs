//! Logins that cannot work through the proxy.

use std::io::Read;
use std::net::TcpStream;

use anyhow::Context;
use keywright_core::cause::Cause;
use keywright_testkit::{Account, Login, Pki, ProxyProcess, Result, SqlFault, WAIT_MAX, Wire};

use super::{Shop, expect, login_refused};

/// The server would believe that what it gets was protected all the way.
pub(super) fn a_password_in_clear_on_one_leg(shop: &Shop) -> Result<()> {
    shop.server.run(
        "mysql",
        "INSTALL SONAME 'auth_pam_v1'; CREATE USER pam@localhost IDENTIFIED VIA pam",
    )?;
    let mut config = shop.config.clone();
    config.upstream_socket = Some(shop.server.socket());
    let proxy = ProxyProcess::start(config)?;
    let login = Login {
        user: "pam".to_owned(),
        ..Login::root("")
    };
    let refused = Wire::connect_tcp(proxy.port(), &login).err();
    let fault = refused.and_then(|error| error.downcast::<SqlFault>().ok());
    let fault = fault.context("a plugin that asks for the password")?;
    expect(Cause::AuthUnsupported, &fault, "plugin 'dialog'");
    assert_eq!(proxy.wire("shop")?.rows("SELECT 1")?, [["1"]]);
    Ok(())
}

fn protected(shop: &Shop, listener: String) -> Result<ProxyProcess> {
    let mut config = shop.config.clone();
    config.listener = listener;
    ProxyProcess::start(config)
}

pub(super) fn a_client_without_tls(shop: &Shop) -> Result<()> {
    let pki = Pki::new()?;
    let proxy = protected(shop, pki.towards_clients("required"))?;
    let fault = login_refused(&proxy).context("a client without TLS")?;
    expect(Cause::TlsRequired, &fault, "use TLS");
    Ok(())
}

pub(super) fn a_server_without_tls(shop: &Shop) -> Result<()> {
    let pki = Pki::new()?;
    let proxy = protected(shop, pki.towards_upstream("required"))?;
    let fault = login_refused(&proxy).context("a server without TLS")?;
    expect(Cause::UpstreamTls, &fault, "offers no TLS");
    Ok(())
}

/// The proxy runs as we do, and so could log in to it whoever we are.
pub(super) fn an_account_of_the_socket(shop: &Shop) -> Result<()> {
    let ourselves = Account::user_name()?;
    let known_by = |how: &str| {
        format!(
            "CREATE USER IF NOT EXISTS {ourselves}@localhost; ALTER USER {ourselves}@localhost IDENTIFIED {how}"
        )
    };
    let mut config = shop.config.clone();
    config.upstream_socket = Some(shop.server.socket());
    let proxy = ProxyProcess::start(config)?;
    let login = Login {
        user: ourselves.clone(),
        ..Login::root("")
    };
    let mut config = shop.config.clone();
    config.upstream_socket = Some(shop.server.socket());
    config.rules.clear();
    let blind = ProxyProcess::start(config)?;
    shop.server.run(
        "mysql",
        "CREATE USER IF NOT EXISTS visitor@localhost IDENTIFIED BY ''",
    )?;
    let visitor = Login {
        user: "visitor".to_owned(),
        ..Login::root("")
    };
    let mut refused = Vec::new();
    for how in [
        "VIA unix_socket",
        "VIA mysql_native_password USING 'invalid' OR unix_socket",
    ] {
        shop.server.run("mysql", &known_by(how))?;
        Wire::connect_unix(&shop.server.socket(), &login)?;
        for proxy in [&proxy, &blind] {
            refused.push(Wire::connect_tcp(proxy.port(), &login).err());
            let mut wire = Wire::connect_tcp(proxy.port(), &visitor)?;
            refused.push(wire.change_user(&login).err());
        }
    }
    shop.server.run("mysql", &known_by("BY ''"))?;
    assert_eq!(refused.len(), 8);
    for refused in refused {
        let fault = refused.and_then(|error| error.downcast::<SqlFault>().ok());
        let fault = fault.context("an account of the socket")?;
        expect(Cause::SocketAccount, &fault, "known by its socket");
    }
    Wire::connect_tcp(proxy.port(), &login)?;
    Ok(())
}

/// The server would wait longer, and count it against the proxy.
pub(super) fn a_client_that_says_nothing(shop: &Shop) -> Result<()> {
    let proxy = shop.limited("answer_ms_max = 3000")?;
    let mut client = TcpStream::connect(("127.0.0.1", proxy.port()))?;
    client.set_read_timeout(Some(WAIT_MAX))?;
    let mut output = Vec::new();
    client.read_to_end(&mut output)?;
    let greeting = 4 + usize::from(output.first().copied().context("no greeting")?);
    let error = output.get(greeting..).context("no error")?;
    let expected = b"\xFF\x87\x04#08S01keywright: the client took longer";
    assert!(
        error
            .get(4..)
            .is_some_and(|error| error.starts_with(expected)),
        "{error:?}"
    );
    proxy.wire("shop")?;
    Ok(())
}
