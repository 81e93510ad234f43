//! A program that is stopped right before it locks a table, while another finishes the attempt: no transaction pays for it when what it
//! had sent arrives.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;

use keywright_proxy::switch::Conductor;
use keywright_store::switch::{Next, Phase, Switchboard};
use keywright_testkit::{Result, WAIT_MAX, wait_until};

use crate::barrier::{
    Clients, Fleet, IMPATIENT, LIMITS, follows, is_wanted, runtime, space, until,
};

/// What a LOCK TABLES begins with, as a packet has it.
const LOCK: &[u8] = b"\x03LOCK TABLES";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// All goes through.
    Open,
    /// The next LOCK TABLES stays.
    Armed,
    /// One is there.
    Caught,
    /// It goes on.
    Released,
    /// The server has ended that connection.
    Ended,
}

/// Before a server, a way on which a LOCK TABLES can be kept.
struct Valve {
    state: Mutex<State>,
    changed: Condvar,
}

impl Valve {
    /// The port to connect to.
    fn before(upstream: u16) -> Result<(u16, Arc<Valve>)> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let port = listener.local_addr()?.port();
        let valve = Arc::new(Valve {
            state: Mutex::new(State::Open),
            changed: Condvar::new(),
        });
        let its = Arc::clone(&valve);
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let Ok(server) = TcpStream::connect(("127.0.0.1", upstream)) else {
                    continue;
                };
                its.relay(client, server);
            }
        });
        Ok((port, valve))
    }

    fn relay(self: &Arc<Self>, client: TcpStream, server: TcpStream) {
        let (Ok(mut to_client), Ok(mut from_server)) = (client.try_clone(), server.try_clone())
        else {
            return;
        };
        let caught = Arc::new(Mutex::new(false));
        let (its, is_caught) = (Arc::clone(self), Arc::clone(&caught));
        thread::spawn(move || {
            let _ = std::io::copy(&mut from_server, &mut to_client);
            let _ = to_client.shutdown(Shutdown::Both);
            if *is_caught.lock().unwrap() {
                its.become_(State::Ended);
            }
        });
        let its = Arc::clone(self);
        thread::spawn(move || its.send(client, server, &caught));
    }

    fn send(&self, mut client: TcpStream, mut server: TcpStream, caught: &Mutex<bool>) {
        let mut buffer = [0; 4096];
        while let Ok(length @ 1..) = client.read(&mut buffer) {
            let bytes = &buffer[..length];
            let is_lock = bytes.windows(LOCK.len()).any(|part| part == LOCK);
            if is_lock && self.state() == State::Armed {
                *caught.lock().unwrap() = true;
                self.become_(State::Caught);
                let state = self.state.lock().unwrap();
                let is_kept = |state: &mut State| *state == State::Caught;
                drop(self.changed.wait_while(state, is_kept));
            }
            if server.write_all(bytes).is_err() {
                return;
            }
        }
    }

    fn state(&self) -> State {
        *self.state.lock().unwrap()
    }

    fn become_(&self, state: State) {
        *self.state.lock().unwrap() = state;
        self.changed.notify_all();
    }
}

#[test]
fn a_lock_that_comes_late_ends_no_transaction() -> Result<()> {
    if !is_wanted() {
        return Ok(());
    }
    for at in [0, 1] {
        runtime()?.block_on(stall(at))?;
    }
    Ok(())
}

/// On this one of the two servers.
async fn stall(at: usize) -> Result<()> {
    let fleet = Fleet::new(["sw_stalled", "sw_stalled_other"][at]).await?;
    let (port, valve) = Valve::before(fleet.servers[at].port())?;
    let mut ports = [&fleet.servers[0], &fleet.servers[1]].map(|server| server.port());
    ports[at] = port;
    let config = Arc::new(fleet.config_through(ports)?);
    let board = Switchboard::new(&fleet.keys);
    let mut leader = Conductor::new(board, config, LIMITS, Clients::default());
    let mut other = fleet.program(IMPATIENT);
    until(&mut leader, follows).await?;
    until(&mut other, follows).await?;
    assert!(leader.begin(&fleet.change(None, Some(space()))).await?);
    until(&mut leader, |next| matches!(next, Next::Acknowledge(_))).await?;
    until(&mut other, |next| matches!(next, Next::Acknowledge(_))).await?;
    valve.become_(State::Armed);
    let is_caught = async {
        while valve.state() != State::Caught {
            tokio::task::yield_now().await;
        }
    };
    // It goes on no more, and what it has sent is on its way.
    tokio::select! {
        stepped = leader.step() => anyhow::bail!("{stepped:?}"),
        () = is_caught => {}
    }
    until(&mut other, |next| matches!(next, Next::Undo(_))).await?;
    until(&mut other, follows).await?;
    assert_eq!(fleet.standing().await?.phase, Phase::None);

    let mut wire = fleet.servers[at].wire(fleet.schema)?;
    wire.run("BEGIN")?;
    wire.rows("SELECT a FROM t")?;
    if valve.state() == State::Caught {
        valve.become_(State::Released);
    }
    let waits = "SELECT COUNT(*) FROM information_schema.processlist WHERE state = 'Waiting for table metadata lock'";
    wait_until(
        "the lock to arrive, or its connection to end",
        WAIT_MAX,
        || {
            let is_there = fleet.servers[at].run("", waits)? == [["1"]];
            Ok(is_there || valve.state() == State::Ended)
        },
    )?;
    wire.run("INSERT INTO t (a) VALUES (1)")?;
    wire.run("COMMIT")?;
    assert!(fleet.insert()?.iter().all(Option::is_some));
    Ok(())
}
