//! What the log says: lines of a connection have its number and say whom it serves, and no name makes a line of another event.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use std::{fs, thread};

use keywright_proxy::config::Config;
use keywright_proxy::handshake::password::OwnKey;
use keywright_proxy::in_force::InForce;
use keywright_proxy::log::{EventLines, may_be_shown};
use keywright_proxy::metrics::Counters;
use keywright_proxy::schema::TableFacts;
use keywright_proxy::serve::listening::{InheritedSockets, Listening};
use keywright_proxy::serve::{ServeControl, serve};
use keywright_store::Keys;
use tokio::sync::{oneshot, watch};
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt;

/// How long to wait for listeners.
const WAITS_MAX: usize = 3_000;
const WAIT: Duration = Duration::from_millis(10);
/// A header of the PROXY protocol: TCP over IPv4, from 192.0.2.7:4567 to 192.0.2.1:3306.
const HEADER: &[u8] =
    b"\r\n\r\n\0\r\nQUIT\n\x21\x11\x00\x0C\xC0\x00\x02\x07\xC0\x00\x02\x01\x11\xD7\x0C\xEA";

/// The log, kept.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Log {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

fn free_port() -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    listener.local_addr().unwrap().port()
}

/// A client that is refused, since there is no server; where it has come from.
fn refused(port: u16, header: &[u8]) -> SocketAddr {
    let connected = (0..WAITS_MAX).find_map(|_| {
        let connected = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).ok();
        if connected.is_none() {
            thread::sleep(WAIT);
        }
        connected
    });
    let mut client = connected.expect("the listener");
    client.write_all(header).unwrap();
    let mut output = Vec::new();
    client.read_to_end(&mut output).unwrap();
    let output = String::from_utf8_lossy(&output);
    assert!(output.contains("Can't connect to MySQL server"), "{output}");
    client.local_addr().unwrap()
}

/// The connections whose lines say so, by their number.
fn clients(log: &str, words: &str) -> BTreeMap<u64, String> {
    let lines = log.lines().filter(|line| line.contains(words));
    lines
        .map(|line| {
            let (_, fields) = line.split_once("connection{connection=").expect(line);
            let (fields, _) = fields.split_once('}').expect(line);
            let (number, client) = fields.split_once(" client=").expect(line);
            (number.parse().unwrap(), client.to_owned())
        })
        .collect()
}

#[test]
fn lines_of_a_connection_name_it() {
    let log = Log::default();
    tracing_subscriber::fmt()
        .with_writer(log.clone())
        .with_env_filter("info")
        .with_ansi(false)
        .init();
    let socket = std::env::temp_dir().join(format!("keywright-log-{}.sock", std::process::id()));
    let [direct, balanced, nobody] = [free_port(), free_port(), free_port()];
    let text = format!(
        "[store]\nurl = \"mysql://k@127.0.0.1:{nobody}/k\"\n\
         [[listener]]\nbind = \"127.0.0.1:{direct}\"\nupstream = \"127.0.0.1:{nobody}\"\n\
         [[listener]]\nbind = \"127.0.0.1:{balanced}\"\nupstream = \"127.0.0.1:{nobody}\"\nproxy_protocol = true\n\
         [[listener]]\nbind = \"unix:{}\"\nupstream = \"127.0.0.1:{nobody}\"\n",
        socket.display()
    );
    let config = Config::parse(&text).unwrap();
    let keys = Keys::open(config.store.clone()).unwrap();
    let counters = Arc::new(Counters::default());
    let seen = vec![
        TableFacts::default(),
        TableFacts::default(),
        TableFacts::default(),
    ];
    let in_force = InForce::new(
        keys.clone(),
        Arc::clone(&counters),
        Arc::new(OwnKey::made_when_needed()),
        (Arc::new(config), seen),
        (None, BTreeSet::new()),
    )
    .unwrap();
    let (stop, stopping) = watch::channel(false);
    let (config, snapshot) = (Config::parse(&text).unwrap(), in_force.snapshot());
    let (_accept, accepting) = watch::channel(true);
    let (serves, _) = oneshot::channel();
    let orders = ServeControl {
        listening: Arc::new(Listening::begin(&config, &mut InheritedSockets::default()).unwrap()),
        accepting,
        stopping,
        serves,
    };
    let serves = thread::spawn(move || serve(config, keys, snapshot, counters, orders));
    let mut expected: Vec<String> = (0..2).map(|_| refused(direct, &[]).to_string()).collect();
    refused(balanced, HEADER);
    expected.push("192.0.2.7:4567".to_owned());
    let mut client = std::os::unix::net::UnixStream::connect(&socket).unwrap();
    client.read_to_end(&mut Vec::new()).unwrap();
    expected.push("unix".to_owned());
    stop.send(true).unwrap();
    serves.join().unwrap().unwrap();
    // The socket's file is the listener's; where it has left it, it is ours to remove.
    let _ = fs::remove_file(socket);
    let log = log.text();
    let named = clients(&log, "upstream cannot be reached");
    assert_eq!(named.into_values().collect::<Vec<_>>(), expected, "{log}");
}

#[test]
fn a_name_makes_no_line_of_another_event() {
    const NAME: &str = "t\r\n2026-11-30T19:09:08.000000Z  INFO forged\u{1b}[2J";
    let log = Log::default();
    let subscriber = tracing_subscriber::fmt()
        .with_writer(log.clone())
        .with_ansi(false)
        .event_format(EventLines::default())
        .finish();
    tracing::subscriber::with_default(subscriber, || {
        let _inside = tracing::info_span!("connection", client = %NAME).entered();
        tracing::error!(table = %NAME, "a rule matches {NAME}");
        tracing::info!("the next");
    });
    let log = log.text();
    let begun = log.lines().filter(|line| !line.starts_with("    "));
    assert_eq!(begun.count(), 2, "{log}");
    assert!(log.ends_with("the next\n"), "{log}");
    assert!(!log.contains(['\r', '\u{1b}']), "{log:?}");
}

/// Whatever is asked for.
#[test]
fn statements_that_libraries_log_are_not_shown() {
    const SECRET: &str = "s3cret-of-a-statement";
    let log = Log::default();
    let subscriber = tracing_subscriber::fmt()
        .with_writer(log.clone())
        .with_ansi(false)
        .with_env_filter("trace,sqlparser::parser=trace,tokio_postgres=debug")
        .finish()
        .with(filter_fn(may_be_shown));
    tracing::subscriber::with_default(subscriber, || {
        tracing::debug!(target: "sqlparser::parser", "Parsing sql '{SECRET}'");
        tracing::trace!(target: "tokio_postgres::query", "with parameters: {SECRET}");
        tracing::warn!(target: "rustls::conn", "a library warns");
        tracing::trace!(target: "keywright_store::store", "the store says more");
    });
    let log = log.text();
    assert!(!log.contains(SECRET), "{log}");
    for shown in ["a library warns", "the store says more"] {
        assert!(log.contains(shown), "{log}");
    }
}
