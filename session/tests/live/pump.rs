//! The state machine between real clients and real servers: what sockets and handshakes need is done in the simplest way.

use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;

use keywright_core::KeyBatch;
use keywright_rewrite::{Flavour, Server};
use keywright_session::{KeyRequest, Limits, Rules, Session, SessionFacts, Step};
use keywright_wire::capability::{COMPRESS, TLS, ZSTD};

/// What a listener with rules does not offer: TLS and compression.
const NOT_OFFERED: u64 = COMPRESS | TLS | ZSTD;

enum Came {
    Client(Vec<u8>),
    Upstream(Vec<u8>),
    End,
}

/// The next key of each rule.
pub(crate) type Keys = Arc<Mutex<HashMap<usize, u64>>>;

/// Accepts clients and puts a session between each and the upstream. Returns the port.
pub(crate) fn start(
    upstream: u16,
    server: Server,
    rules: Rules,
    keys: Keys,
) -> std::io::Result<u16> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let port = listener.local_addr()?.port();
    let rules = Arc::new(rules);
    thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let (rules, keys) = (Arc::clone(&rules), Arc::clone(&keys));
            thread::spawn(move || {
                // A connection that ends badly is seen by the client of the test.
                let _ = serve(client, upstream, server, rules, &keys);
            });
        }
    });
    Ok(port)
}

fn packet(from: &mut TcpStream) -> std::io::Result<Vec<u8>> {
    let mut head = [0; 4];
    from.read_exact(&mut head)?;
    let len = usize::from(head[0]) | usize::from(head[1]) << 8 | usize::from(head[2]) << 16;
    let mut whole = head.to_vec();
    whole.resize(4 + len, 0);
    from.read_exact(&mut whole[4..])?;
    Ok(whole)
}

/// Passes packets until the upstream says OK or ERR; the OK packet's status flags.
fn authenticate(client: &mut TcpStream, upstream: &mut TcpStream) -> std::io::Result<Option<u16>> {
    loop {
        let said = packet(upstream)?;
        client.write_all(&said)?;
        match said.get(4) {
            Some(0) => return Ok(Some(u16::from(said[7]) | u16::from(said[8]) << 8)),
            Some(0xFF) | None => return Ok(None),
            // "Fast authentication succeeded" is followed by OK without the client's doing.
            Some(1) if said.get(5) == Some(&3) => {}
            Some(_) => upstream.write_all(&packet(client)?)?,
        }
    }
}

fn serve(
    mut client: TcpStream,
    port: u16,
    server: Server,
    rules: Arc<Rules>,
    keys: &Keys,
) -> std::io::Result<()> {
    let mut upstream = TcpStream::connect(("127.0.0.1", port))?;
    client.set_nodelay(true)?;
    upstream.set_nodelay(true)?;
    let mut greeting = packet(&mut upstream)?;
    let version = greeting
        .iter()
        .skip(5)
        .position(|byte| *byte == 0)
        .unwrap_or(0);
    let low = 5 + version + 1 + 4 + 8 + 1;
    let not_offered = NOT_OFFERED.to_le_bytes();
    for (at, bits) in [(low, 0), (low + 1, 1), (low + 5, 2), (low + 6, 3)] {
        greeting[at] &= !not_offered[bits];
    }
    if server.flavour == Flavour::MariaDb {
        // Its own capabilities: cached metadata, and results for each row of a bulk execution.
        greeting[low + 14] &= !(1 << 4 | 1 << 5);
    }
    client.write_all(&greeting)?;
    let response = packet(&mut client)?;
    upstream.write_all(&response)?;
    let Some(status) = authenticate(&mut client, &mut upstream)? else {
        return Ok(());
    };
    let facts = facts(&response, server, status);
    let session = Session::new(rules, facts.clone());
    drive(&mut client, &mut upstream, session, &facts, keys)?;
    let _ = client.shutdown(Shutdown::Both);
    let _ = upstream.shutdown(Shutdown::Both);
    Ok(())
}

fn facts(response: &[u8], server: Server, status: u16) -> SessionFacts {
    let capabilities = u32::from_le_bytes([response[4], response[5], response[6], response[7]]);
    let user = &response[36..];
    let proof = &user[user.iter().position(|byte| *byte == 0).unwrap_or(0) + 1..];
    let database = proof.iter().copied().skip(1 + usize::from(proof[0]));
    SessionFacts {
        server,
        capabilities: u64::from(capabilities),
        collation: u16::from(response[12]),
        user: Vec::new(),
        database: (capabilities & 8 != 0).then(|| database.take_while(|byte| *byte != 0).collect()),
        status,
        limits: Limits::default(),
    }
}

fn reader(mut from: TcpStream, to: Sender<Came>, wrap: fn(Vec<u8>) -> Came) {
    thread::spawn(move || {
        let mut buffer = vec![0; 64 << 10];
        while let Ok(bytes) = from.read(&mut buffer) {
            if bytes == 0 || to.send(wrap(buffer[..bytes].to_vec())).is_err() {
                break;
            }
        }
        let _ = to.send(Came::End);
    });
}

fn drive(
    client: &mut TcpStream,
    upstream: &mut TcpStream,
    mut session: Session,
    facts: &SessionFacts,
    keys: &Keys,
) -> std::io::Result<()> {
    let (to, came) = channel();
    reader(client.try_clone()?, to.clone(), Came::Client);
    reader(upstream.try_clone()?, to, Came::Upstream);
    let mut buffers = [Vec::new(), Vec::new()];
    while let Ok(now) = came.recv() {
        match now {
            Came::Client(bytes) => buffers[0].extend(bytes),
            Came::Upstream(bytes) => buffers[1].extend(bytes),
            Came::End => break,
        }
        let mut idle = 0;
        for side in [0, 1].into_iter().cycle() {
            let buffer = &mut buffers[side];
            let step = match side {
                0 => session.on_client_in_place(buffer),
                _ => session.on_upstream(buffer),
            };
            upstream.write_all(session.to_upstream())?;
            session.to_upstream().clear();
            client.write_all(session.to_client())?;
            session.to_client().clear();
            idle += 1;
            match step {
                Step::Forward(bytes) => {
                    let to = if side == 0 {
                        &mut *upstream
                    } else {
                        &mut *client
                    };
                    to.write_all(&buffer[..bytes])?;
                    buffer.drain(..bytes);
                    idle = 0;
                }
                Step::Consumed(bytes) => {
                    buffer.drain(..bytes);
                    idle = 0;
                }
                Step::Keys(request) => {
                    session.on_keys(Ok(take(keys, request)));
                    idle = 0;
                }
                Step::Authenticate(bytes) => {
                    upstream.write_all(&buffer[..bytes])?;
                    buffer.drain(..bytes);
                    if !change_user(client, upstream, &came)? {
                        return Ok(());
                    }
                    session.reset(facts.clone());
                    idle = 0;
                }
                Step::More { .. } | Step::Blocked | Step::Wait => {}
                Step::Show(_) | Step::Close => return Ok(()),
            }
            if idle == 2 {
                break;
            }
        }
    }
    Ok(())
}

/// The exchange of COM_CHANGE_USER; the sockets are read by the readers. False when a connection ended.
fn change_user(
    client: &mut TcpStream,
    upstream: &mut TcpStream,
    came: &Receiver<Came>,
) -> std::io::Result<bool> {
    loop {
        match came.recv() {
            Ok(Came::Client(bytes)) => upstream.write_all(&bytes)?,
            Ok(Came::Upstream(bytes)) => {
                client.write_all(&bytes)?;
                if matches!(bytes.get(4), Some(0 | 0xFF)) {
                    return Ok(true);
                }
            }
            Ok(Came::End) | Err(_) => return Ok(false),
        }
    }
}

fn take(keys: &Keys, request: KeyRequest) -> KeyBatch {
    let mut keys = keys.lock().unwrap_or_else(|broken| broken.into_inner());
    let next = keys.entry(request.rule).or_insert(1);
    let first = *next;
    *next += request.count;
    KeyBatch::Numbers {
        first,
        spacing: 1,
        count: request.count,
    }
}
