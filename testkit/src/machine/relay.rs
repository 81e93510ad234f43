//! A network between a program and a server of this machine, which a test cuts and mends.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

use anyhow::Context as _;

use crate::Result;

/// Passes bytes of connections on to a server. While it is cut, connections stay, and what is sent arrives when it is mended.
pub struct Relay {
    port: u16,
    network: Arc<Network>,
}

struct Network {
    server_port: u16,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    is_cut: bool,
    is_over: bool,
    ends: Vec<TcpStream>,
}

impl Relay {
    /// To the server at this port.
    ///
    /// # Errors
    /// Nothing can be listened on.
    pub fn to(server_port: u16) -> Result<Relay> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).context("a relay's listener")?;
        let port = listener.local_addr()?.port();
        let network = Arc::new(Network {
            server_port,
            state: Mutex::default(),
            changed: Condvar::new(),
        });
        let accepting = Arc::clone(&network);
        thread::spawn(move || {
            for client in listener.incoming() {
                if accepting.state().is_over {
                    return;
                }
                // Who finds no server behind it is disconnected.
                let _ = client.map(|client| accepting.connect(client));
            }
        });
        Ok(Relay { port, network })
    }

    /// Where it listens.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Nothing is passed on from now on.
    pub fn cut(&self) {
        self.network.state().is_cut = true;
    }

    /// Everything is, also what was sent meanwhile.
    pub fn mend(&self) {
        self.network.state().is_cut = false;
        self.network.changed.notify_all();
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        let ends = {
            let mut state = self.network.state();
            state.is_over = true;
            std::mem::take(&mut state.ends)
        };
        self.network.changed.notify_all();
        for end in ends {
            let _ = end.shutdown(Shutdown::Both);
        }
        // Whoever accepts sees that it is over.
        let _ = TcpStream::connect(("127.0.0.1", self.port));
    }
}

impl Network {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn connect(self: &Arc<Self>, client: TcpStream) -> std::io::Result<()> {
        let server = TcpStream::connect(("127.0.0.1", self.server_port))?;
        for end in [&client, &server] {
            end.set_nodelay(true)?;
            self.state().ends.push(end.try_clone()?);
        }
        let ways = [(client.try_clone()?, server.try_clone()?), (server, client)];
        for (from, to) in ways {
            let network = Arc::clone(self);
            thread::spawn(move || network.pass(from, to));
        }
        Ok(())
    }

    /// One direction of one connection, until it ends.
    fn pass(&self, mut from: TcpStream, mut to: TcpStream) {
        let mut bytes = [0; 1 << 14];
        loop {
            let count = from.read(&mut bytes).unwrap_or(0);
            let mut state = self.state();
            while state.is_cut && !state.is_over {
                let waited = self.changed.wait(state);
                state = waited.unwrap_or_else(PoisonError::into_inner);
            }
            drop(state);
            let read = bytes.get(..count).unwrap_or_default();
            if read.is_empty() || to.write_all(read).is_err() {
                let _ = to.shutdown(Shutdown::Write);
                return;
            }
        }
    }
}
