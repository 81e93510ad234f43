//! Programs under a service manager: it keeps the sockets, and is told who is its main process.

use std::io::ErrorKind;
use std::net::{TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixDatagram;
use std::process::Command;
use std::thread;

use command_fds::{CommandFdExt as _, FdMapping};
use keywright_testkit::{Login, ProxyProcess, Result, WAIT_MAX, Wire, assert_has, wait_until};

use crate::{insert, shop};

/// The program as systemd starts it: the sockets are its descriptors from 3 on, for its process alone.
fn with_sockets(program: &Command, sockets: Vec<OwnedFd>) -> Result<Command> {
    let mut shell = Command::new("sh");
    shell
        .args(["-c", "LISTEN_PID=$$ exec \"$0\" \"$@\""])
        .arg(program.get_program())
        .args(program.get_args())
        .env("LISTEN_FDS", sockets.len().to_string());
    let mappings = (3..).zip(sockets).map(|(child_fd, parent_fd)| FdMapping {
        parent_fd,
        child_fd,
    });
    shell.fd_mappings(mappings.collect())?;
    Ok(shell)
}

/// Starts it on sockets that are there.
fn begin(proxy: &mut ProxyProcess, sockets: &[&TcpListener]) -> Result<()> {
    let mut failed = None;
    let sockets = sockets.iter().map(|socket| Ok(socket.try_clone()?.into()));
    let sockets: Vec<OwnedFd> = sockets.collect::<Result<_>>()?;
    proxy.begin_by(|program| {
        with_sockets(&program, sockets).unwrap_or_else(|error| {
            failed = Some(error);
            program
        })
    })?;
    failed.map_or(Ok(()), Err)
}

#[test]
fn who_comes_while_a_program_restarts_waits_in_the_managers_socket() -> Result<()> {
    let (_server, config) = shop("kept")?;
    let mut proxy = ProxyProcess::start(config.rule("kept.t", "segment:kept"))?;
    proxy.stop()?;
    let port = proxy.port();
    let listener = TcpListener::bind(("127.0.0.1", port))?;
    let metrics = TcpListener::bind(("127.0.0.1", proxy.metrics_port()))?;
    let visit = move || insert(&mut Wire::connect_tcp(port, &Login::root("kept"))?);
    // Twice: once before any program, once between two.
    for _ in 0..2 {
        let visitor = thread::spawn(visit);
        begin(&mut proxy, &[&metrics, &listener])?;
        let visited = visitor.join().expect("the visitor does not panic");
        assert!(visited? > 0, "{}", proxy.log());
        assert_eq!(proxy.http_get("/readyz")?.0, 200);
        assert!(proxy.stop()?.success(), "{}", proxy.log());
    }
    // One that no listener names is no socket to let clients wait in.
    let other = TcpListener::bind("127.0.0.1:0")?;
    begin(&mut proxy, &[&metrics, &listener, &other])?;
    assert!(!proxy.wait()?.success(), "{}", proxy.log());
    let address = other.local_addr()?.to_string();
    assert_has(
        &proxy.log(),
        &[&address, "which is the bind of no listener"],
    );
    Ok(())
}

#[test]
fn the_manager_hears_which_process_is_the_main_one() -> Result<()> {
    let (_server, config) = shop("told")?;
    let mut proxy = ProxyProcess::start(config.rule("told.t", "segment:told"))?;
    proxy.stop()?;
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("notify");
    let manager = UnixDatagram::bind(&path)?;
    manager.set_read_timeout(Some(WAIT_MAX))?;
    let hears = || {
        let mut text = [0; 256];
        let count = manager.recv(&mut text)?;
        Result::Ok(String::from_utf8_lossy(&text[..count]).trim().to_owned())
    };
    proxy.begin_by(|mut program| {
        program.env("NOTIFY_SOCKET", &path);
        program
    })?;
    assert_eq!(hears()?, "READY=1");
    let mut old = proxy.take_over()?;
    // In this order: what a process says that is not the main one is not heard.
    assert_eq!(hears()?, format!("MAINPID={}", proxy.pid()?));
    assert_eq!(hears()?, "READY=1");
    assert!(old.wait()?.success(), "{}", proxy.log());
    proxy.stop()?;
    assert_eq!(hears()?, "STOPPING=1");
    manager.set_nonblocking(true)?;
    let more = manager.recv(&mut [0; 256]).map_err(|error| error.kind());
    assert_eq!(more, Err(ErrorKind::WouldBlock));
    wait_until("that nobody listens", WAIT_MAX, || {
        Ok(TcpStream::connect(("127.0.0.1", proxy.port())).is_err())
    })
}
