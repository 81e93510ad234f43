//! What the proxy makes of signals while it waits for a server that does not answer, or for clients that say nothing.

use std::io::Read;
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;

use keywright_testkit::{
    Flavour, Pki, ProxyConfig, ProxyProcess, Result, Upstream, WAIT_MAX, assert_has, free_port,
    make_store, wait_until,
};

keywright_testkit::on_both_flavours!(
    a_stop_does_not_wait_for_a_look,
    a_stop_does_not_wait_for_who_has_not_logged_in,
    a_stop_does_not_wait_for_a_server_that_is_connected_to,
    a_reload_during_the_first_look_is_followed_behind_it,
    a_stop_and_its_end_are_in_the_log,
);

/// The place where a proxy looks at a server, and nobody answers.
struct Mute(TcpListener);

impl Mute {
    fn new() -> Result<Mute> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        listener.set_nonblocking(true)?;
        Ok(Mute(listener))
    }

    /// Waits until the proxy looks, and keeps it waiting as long as what is returned lives.
    fn looked_at(&self) -> Result<TcpStream> {
        let mut looking = None;
        wait_until("a look", WAIT_MAX, || {
            looking = self.0.accept().ok();
            Ok(looking.is_some())
        })?;
        let (looking, _) = looking.expect("it was waited for");
        Ok(looking)
    }

    /// A proxy with a second listener that looks here, which may fail.
    fn config(&self, server: &Arc<Upstream>, store: &str) -> Result<ProxyConfig> {
        let (bind, upstream) = (free_port()?, server.port());
        let admin = self.0.local_addr()?;
        let more = format!(
            "[[listener]]\nbind = \"127.0.0.1:{bind}\"\nupstream = \"127.0.0.1:{upstream}\"\n\
             admin = \"mysql://root@{admin}\"\ncheck = \"warn\"\n\
             [limits]\nconnect_ms_max = 600000\n"
        );
        Ok(ProxyConfig {
            more,
            ..ProxyConfig::before(server, store)
        })
    }
}

fn wait_for_connections(proxy: &ProxyProcess, count: &str) -> Result<()> {
    wait_until("the clients that are meant", WAIT_MAX, || {
        let connections = proxy.figure("keywright_connections", &[])?;
        Ok(connections.as_deref() == Some(count))
    })
}

fn a_stop_does_not_wait_for_a_look(flavour: Flavour) -> Result<()> {
    let server = Upstream::shared(flavour)?;
    let store = make_store(&server, "store_mute", &[("t", 1)])?;
    let mute = Mute::new()?;
    // Without rules nobody looks.
    let config = mute.config(&server, &store)?;
    let mut proxy = ProxyProcess::start(config.clone())?;
    proxy.reload(config.rule("mute.t", "segment:t"))?;
    let _looking = mute.looked_at()?;
    proxy.reload_again()?;
    assert!(proxy.stop()?.success(), "{}", proxy.log());
    proxy.begin()?;
    let _looking = mute.looked_at()?;
    assert!(proxy.stop()?.success(), "{}", proxy.log());
    Ok(())
}

/// Such as a balancer's probes that keep their connections. All limits are longer than the test waits for the end.
fn a_stop_does_not_wait_for_who_has_not_logged_in(flavour: Flavour) -> Result<()> {
    let pki = Pki::new()?;
    let server = Upstream::shared(flavour)?;
    let store = make_store(&server, "store_probed", &[])?;
    let tls = pki.towards_clients("required");
    let mut proxy = ProxyProcess::start(ProxyConfig {
        key_ports: vec![format!("keys = {{ tokens = \"uuid_v7\" }}\n{tls}")],
        more: "[limits]\nanswer_ms_max = 600000\nlogin_ms_max = 600000\ndrain_ms_max = 600000\n"
            .to_owned(),
        ..ProxyConfig::before(&server, &store)
    })?;
    let _before_tls = TcpStream::connect(("127.0.0.1", proxy.key_port()?))?;
    let mut greeted = TcpStream::connect(("127.0.0.1", proxy.port()))?;
    greeted.set_read_timeout(Some(WAIT_MAX))?;
    greeted.read_exact(&mut [0; 4])?;
    wait_for_connections(&proxy, "2")?;
    assert!(proxy.stop()?.success(), "{}", proxy.log());
    Ok(())
}

/// Its server takes the connection, and does not greet. All limits are longer than the test waits for the end.
fn a_stop_does_not_wait_for_a_server_that_is_connected_to(flavour: Flavour) -> Result<()> {
    let server = Upstream::shared(flavour)?;
    let store = make_store(&server, "store_ungreeted", &[])?;
    let mute = Mute::new()?;
    let (bind, upstream) = (free_port()?, mute.0.local_addr()?);
    let mut proxy = ProxyProcess::start(ProxyConfig {
        more: format!(
            "[[listener]]\nbind = \"127.0.0.1:{bind}\"\nupstream = \"{upstream}\"\n\
             [limits]\nconnect_ms_max = 600000\ndrain_ms_max = 600000\n"
        ),
        ..ProxyConfig::before(&server, &store)
    })?;
    let mut client = TcpStream::connect(("127.0.0.1", bind))?;
    client.set_read_timeout(Some(WAIT_MAX))?;
    let _connected_to = mute.looked_at()?;
    assert!(proxy.stop()?.success(), "{}", proxy.log());
    let mut told = Vec::new();
    client.read_to_end(&mut told)?;
    let errno = told.get(5..7).map(<[u8]>::to_vec);
    assert_eq!(errno, Some(1053_u16.to_le_bytes().to_vec()), "{told:?}");
    Ok(())
}

fn a_reload_during_the_first_look_is_followed_behind_it(flavour: Flavour) -> Result<()> {
    let server = Upstream::shared(flavour)?;
    let store = make_store(&server, "store_mute_first", &[("t", 1)])?;
    let mute = Mute::new()?;
    let config = mute.config(&server, &store)?;
    let mut proxy = ProxyProcess::start(config.clone())?;
    proxy.reload(config.rule("mute.t", "segment:t"))?;
    mute.looked_at()?;
    proxy.stop()?;
    proxy.begin()?;
    let looking = mute.looked_at()?;
    proxy.reload_again()?;
    drop(looking);
    mute.looked_at()?;
    wait_until("the reload", WAIT_MAX, || {
        // Whatever else connects is sent away.
        drop(mute.0.accept());
        Ok(proxy.log().contains("the rules as they are now"))
    })?;
    assert!(proxy.stop()?.success(), "{}", proxy.log());
    Ok(())
}

/// Two clients do not end their transactions, and the program does not wait for them for ever.
fn a_stop_and_its_end_are_in_the_log(flavour: Flavour) -> Result<()> {
    const CLOSING: &str = "closing what did not end in drain_ms_max";
    let server = Upstream::shared(flavour)?;
    server.run(
        "mysql",
        "CREATE DATABASE told_end; CREATE TABLE told_end.t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT)",
    )?;
    let store = make_store(&server, "store_told_end", &[("t", 1)])?;
    let mut config = ProxyConfig::before(&server, &store).rule("told_end.t", "segment:t");
    config.more = "[limits]\ndrain_ms_max = 300\n".to_owned();
    let mut proxy = ProxyProcess::start(config)?;
    let mut open = Vec::new();
    for _ in 0..2 {
        let mut wire = proxy.wire("told_end")?;
        wire.run("BEGIN")?;
        wire.run("INSERT INTO t (a) VALUES (1)")?;
        open.push(wire);
    }
    let pid = proxy.pid()?;
    wait_for_connections(&proxy, "2")?;
    assert!(proxy.stop()?.success(), "{}", proxy.log());
    let log = proxy.log();
    assert_has(
        &log,
        &["told to stop signal=\"SIGTERM\"", "stopping connections=2"],
    );
    let closing: Vec<&str> = log.lines().filter(|line| line.contains(CLOSING)).collect();
    let [closing] = closing.as_slice() else {
        panic!("one line for all threads: {log}");
    };
    assert!(closing.ends_with("connections=2"), "{closing}");
    let end = format!("the program ends pid={pid}\n");
    assert!(log.ends_with(&end), "{log}");
    drop(open);
    // Nobody is connected, and nothing is closed.
    proxy.restart()?;
    wait_for_connections(&proxy, "0")?;
    assert!(proxy.stop()?.success(), "{}", proxy.log());
    let log = proxy.log();
    assert_has(&log, &["told to stop", "the program ends"]);
    assert!(!log.contains(CLOSING), "{log}");
    Ok(())
}
