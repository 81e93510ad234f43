//! Clients that compress: the program offers it to nobody.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::Context;
use keywright_testkit::{
    Flavour, Login, Pki, ProxyConfig, ProxyProcess, Result, SqlFault, Upstream, Wire, assert_has,
    capability, make_store,
};

keywright_testkit::on_both_flavours!(whoever_compresses_uninvited_is_told_so);

/// The command-line client, which is told to compress and obeys the greeting: what it gets for a query.
fn client(port: u16, ca: Option<&Path>) -> Result<String> {
    let mut command = Command::new("mariadb");
    command
        .args(["--no-defaults", "--compress", "--user=u"])
        .args(["--password=secret", "--host=127.0.0.1", "--batch"])
        .args(["--skip-column-names", "--execute=SELECT 7"])
        .arg(format!("--port={port}"));
    match ca {
        Some(ca) => command.arg(format!("--ssl-ca={}", ca.display())),
        None => command.arg("--skip-ssl"),
    };
    let output = command.stdin(Stdio::null()).output()?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    if !output.status.success() {
        anyhow::bail!("{}", text(&output.stderr));
    }
    Ok(text(&output.stdout))
}

/// Its first statement would wait for ever.
fn whoever_compresses_uninvited_is_told_so(flavour: Flavour) -> Result<()> {
    let pki = Pki::new()?;
    let server = Upstream::start(flavour)?;
    let store = make_store(&server, "store_compressed", &[])?;
    server.run("mysql", "CREATE USER u@'127.0.0.1' IDENTIFIED BY 'secret'")?;
    let proxy = ProxyProcess::start(ProxyConfig {
        listener: pki.towards_clients("preferred"),
        ..ProxyConfig::before(&server, &store)
    })?;
    let (port, ca) = (proxy.port(), pki.file("ca.pem"));
    for claimed in [capability::COMPRESS, capability::ZSTD] {
        let login = Login {
            claimed,
            ..Login::root("mysql")
        };
        for refused in [
            Wire::connect_tcp(port, &login),
            Wire::connect_tls(port, &ca, &login),
        ] {
            let error = refused.err().context("it was let in")?;
            let fault = error.downcast::<SqlFault>()?;
            let message = String::from_utf8_lossy(&fault.message);
            assert_eq!(fault.errno, 1156, "{message}");
            assert_has(&message, &["turn compression off"]);
        }
    }
    for ca in [None, Some(ca.as_path())] {
        assert_eq!(client(port, ca)?.trim(), "7");
    }
    Ok(())
}
