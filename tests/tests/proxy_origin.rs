//! Where clients come from: headers of the PROXY protocol, in and out.

use std::io::{Read, Write};
use std::net::TcpStream;

use keywright_core::cause::Cause;
use keywright_testkit::{
    Flavour, Login, ProxyConfig, ProxyProcess, Result, SqlFault, Upstream, WAIT_MAX, Wire,
    make_store,
};

/// What every header begins with.
const SIGNATURE: [u8; 12] = *b"\r\n\r\n\0\r\nQUIT\n";

/// Of a TCP connection from 10.1.2.3:4567 to 10.1.2.4:3306, with something more that nobody asked for.
fn from_afar() -> Vec<u8> {
    let mut header = SIGNATURE.to_vec();
    header.extend([0x21, 0x11, 0, 12 + 5]);
    header.extend([10, 1, 2, 3, 10, 1, 2, 4]);
    header.extend(4567_u16.to_be_bytes());
    header.extend(3306_u16.to_be_bytes());
    header.extend([0x04, 0, 2, 0, 0]);
    header
}

/// Of a balancer that looks whether somebody is there.
fn for_itself() -> Vec<u8> {
    [&SIGNATURE[..], &[0x20, 0, 0, 0]].concat()
}

fn app() -> Login {
    Login {
        user: "app".to_owned(),
        password: "secret".to_owned(),
        ..Login::root("")
    }
}

/// MySQL itself does not know the protocol.
fn server() -> Result<Upstream> {
    let server = Upstream::start_with(Flavour::MariaDb, &["--proxy-protocol-networks=127.0.0.1"])?;
    server.run(
        "mysql",
        "CREATE USER app@'10.1.2.3' IDENTIFIED BY 'secret'; CREATE USER app@'127.0.0.1' IDENTIFIED BY 'secret'",
    )?;
    Ok(server)
}

fn proxy(server: &Upstream, store: &str, listener: &str) -> Result<ProxyProcess> {
    ProxyProcess::start(ProxyConfig {
        listener: listener.to_owned(),
        more: "[limits]\nlogin_ms_max = 5000\n".to_owned(),
        ..ProxyConfig::before(server, store)
    })
}

fn seen_as(mut wire: Wire) -> Result<String> {
    Ok(wire.rows("SELECT USER()")?.concat().concat())
}

#[test]
fn the_server_sees_where_clients_come_from() -> Result<()> {
    let server = server()?;
    let store = make_store(&server, "keywright", &[])?;
    let both = proxy(
        &server,
        &store,
        "proxy_protocol = true\nupstream_proxy_protocol = true\n",
    )?;
    let wire = Wire::connect_after(&from_afar(), both.port(), &app())?;
    assert_eq!(seen_as(wire)?, "app@10.1.2.3");
    let wire = Wire::connect_after(&for_itself(), both.port(), &app())?;
    assert_eq!(seen_as(wire)?, "app@127.0.0.1");

    // Without the one way out, the header tells nobody anything.
    let inward = proxy(&server, &store, "proxy_protocol = true\n")?;
    let wire = Wire::connect_after(&from_afar(), inward.port(), &app())?;
    assert_eq!(seen_as(wire)?, "app@127.0.0.1");
    let outward = proxy(&server, &store, "upstream_proxy_protocol = true\n")?;
    assert_eq!(
        seen_as(Wire::connect_tcp(outward.port(), &app())?)?,
        "app@127.0.0.1"
    );
    Ok(())
}

#[test]
fn connections_without_a_header_are_refused() -> Result<()> {
    let server = server()?;
    let store = make_store(&server, "keywright", &[])?;
    let proxy = proxy(&server, &store, "proxy_protocol = true\n")?;
    let too_long = [&SIGNATURE[..], &[0x21, 0x11, 0xFF, 0xFF]].concat();
    let too_short = [&SIGNATURE[..], &[0x21, 0x11, 0, 4], &[0; 4]].concat();
    for header in [b"0123456789abcdef".to_vec(), too_long, too_short] {
        let refused = Wire::connect_after(&header, proxy.port(), &app());
        let fault = refused
            .err()
            .and_then(|error| error.downcast::<SqlFault>().ok());
        let seen = fault.map(|fault| fault.errno);
        assert_eq!(seen, Some(Cause::PacketMalformed.mysql_errno()));
    }
    // Who says nothing, or breaks off, is waited for no longer than a login may take, and told too.
    for some in [&b""[..], &from_afar()[..20]] {
        let mut silent = TcpStream::connect(("127.0.0.1", proxy.port()))?;
        silent.set_read_timeout(Some(WAIT_MAX))?;
        silent.write_all(some)?;
        let mut output = Vec::new();
        silent.read_to_end(&mut output)?;
        let errno = Cause::PacketMalformed.mysql_errno().to_le_bytes();
        assert_eq!(output.get(5..7), Some(errno.as_slice()), "{output:?}");
    }
    Ok(())
}
