//! One program takes over from another: the one that runs starts the new one, hands it the sockets that it listens on
//! (`LISTEN_FDS`), and goes on until the new one serves clients on them. Both accept for a moment, so no client waits and none is
//! lost; what goes wrong before that moment ends the new one alone.
//!
//! They talk over a socket that is the new one's standard input. It says that it serves; the other answers when it begins nothing
//! more. Whoever reads the end instead knows that the other has ended: the new one says before when it ends in order.

use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream as StdStream;
use std::process::{Child, Command, ExitStatus};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use command_fds::{CommandFdExt, FdMapping};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::time::{Instant, sleep, timeout};

use crate::serve::listening::Listening;

/// The variable that tells a program to take over, and from which process.
const VARIABLE: &str = "KEYWRIGHT_TAKES_OVER_FROM";
/// The new program serves clients.
const SERVES: u8 = b's';
/// The old one accepts nobody and begins nothing any more.
const GO_ON: u8 = b'g';
/// The new program ends in order: it was told to, or another has taken over from it.
const ENDS: u8 = b'e';
/// The first number of a socket that is handed over.
const FIRST_FD: i32 = 3;
/// How long a new program that was given up may take for its end in order, milliseconds; then it is killed, and waited for as long
/// again.
const END_MS_MAX: u64 = 5_000;
/// How often is looked whether it has ended, milliseconds.
const END_POLL_MS: u64 = 20;

/// The program that takes over from this one.
#[derive(Debug)]
pub struct Successor {
    /// Never waited for once it serves: it outlives this program, and whoever comes after as its parent hears how it ended.
    process: Child,
    channel: UnixStream,
}

impl Successor {
    /// Starts the program by the command line that this one was started by, and waits until it serves clients, `wait_ms_max` at most.
    /// Inside a runtime.
    ///
    /// # Errors
    /// It cannot be started, ends before, or takes too long: then its end is seen to.
    pub async fn begin(listening: &Listening, wait_ms_max: u64) -> Result<Successor> {
        if std::process::id() == 1 {
            bail!(
                "a container ends with its first process, which this is: start another container"
            );
        }
        let mut successor = Self::start(listening)?;
        let limit = Duration::from_millis(wait_ms_max);
        match timeout(limit, successor.channel.read_u8()).await {
            Ok(Ok(SERVES)) => return Ok(successor),
            // Whatever else it says: what follows is its end.
            Ok(Ok(_)) => {}
            Ok(Err(error)) if error.kind() == ErrorKind::UnexpectedEof => {}
            Ok(Err(error)) => tracing::debug!(%error, "what the new program says cannot be read"),
            Err(_) => {
                let ended = successor.end(END_MS_MAX).await?;
                bail!(
                    "the new program did not serve clients within take_over_wait_ms_max ({wait_ms_max}) and was given up ({ended}); what it said is above"
                )
            }
        }
        // It may have clients already, and drain.
        let ended = successor.end(wait_ms_max).await?;
        bail!("the new program ended before it served clients ({ended}); what it said is above")
    }

    /// Sees to the end of one that is not to serve: it ends when nobody hears it any more, or else is killed.
    async fn end(mut self, wait_ms_max: u64) -> Result<ExitStatus> {
        drop(self.channel);
        if let Some(ended) = ended(&mut self.process, wait_ms_max).await? {
            return Ok(ended);
        }
        let pid = self.process.id();
        tracing::warn!(pid, "the new program does not end and is killed");
        let killed = self.process.kill();
        killed.context("killing the new program, which does not end")?;
        let ended = ended(&mut self.process, END_MS_MAX).await?;
        ended.context("the new program was killed and is still there")
    }

    fn start(listening: &Listening) -> Result<Successor> {
        let (ours, theirs) = StdStream::pair().context("making a socket")?;
        ours.set_nonblocking(true).context("making a socket")?;
        let mut words = std::env::args_os();
        let program = words.next().context("the program has no name")?;
        let mut mappings = Vec::new();
        for (child_fd, socket) in (FIRST_FD..).zip(listening.sockets()) {
            let parent_fd = socket.try_clone_to_owned();
            let parent_fd = parent_fd.context("sharing a listening socket")?;
            mappings.push(FdMapping {
                parent_fd,
                child_fd,
            });
        }
        let mut command = Command::new(&program);
        command
            .args(words)
            .stdin(OwnedFd::from(theirs))
            .env(VARIABLE, std::process::id().to_string())
            .env("LISTEN_FDS", mappings.len().to_string())
            // Whose they are is not known before it is started.
            .env_remove("LISTEN_PID")
            .env_remove("LISTEN_FDNAMES")
            .env_remove("LISTEN_FDS_FIRST_FD");
        command.fd_mappings(mappings)?;
        let process = command.spawn();
        let process = process.with_context(|| format!("starting {}", program.display()))?;
        tracing::info!(pid = process.id(), "a new program is to take over");
        Ok(Successor {
            process,
            channel: UnixStream::from_std(ours)?,
        })
    }

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.process.id()
    }

    /// Tells it that this program accepts nobody and begins nothing any more.
    ///
    /// # Errors
    /// It has ended.
    pub async fn go_on(&mut self) -> io::Result<()> {
        self.channel.write_u8(GO_ON).await
    }

    /// Returns when it has crashed.
    pub async fn crashed(&mut self) {
        if self.channel.read_u8().await.is_ok() {
            // It ends in order, which changes nothing here.
            std::future::pending().await
        }
    }
}

/// How a program has ended; `None`: it has not within the limit. Asked now and then: a process of the runtime's own is waited for even
/// after it was dropped, and who comes after as its parent would not hear how it ended.
async fn ended(process: &mut Child, wait_ms_max: u64) -> Result<Option<ExitStatus>> {
    let limit = Instant::now() + Duration::from_millis(wait_ms_max);
    loop {
        let ended = process.try_wait().context("waiting for its end")?;
        if ended.is_some() || Instant::now() >= limit {
            return Ok(ended);
        }
        sleep(Duration::from_millis(END_POLL_MS)).await;
    }
}

/// The program that this one takes over from.
#[derive(Debug)]
pub struct Predecessor {
    /// Its process.
    pub pid: u32,
    channel: UnixStream,
}

impl Predecessor {
    /// The one that the environment names, if it does. Inside a runtime.
    ///
    /// # Errors
    /// It is not there.
    pub fn from_env() -> Result<Option<Predecessor>> {
        let Ok(pid) = std::env::var(VARIABLE) else {
            return Ok(None);
        };
        let channel = || {
            let socket = StdStream::from(io::stdin().as_fd().try_clone_to_owned()?);
            socket.set_nonblocking(true)?;
            // Of something else it is an error.
            socket.peer_addr()?;
            UnixStream::from_std(socket)
        };
        let channel = channel().with_context(|| {
            format!("{VARIABLE} is set, and standard input is no socket of that program: it is set by the program itself, on SIGUSR2")
        })?;
        let pid = pid.parse();
        let pid = pid.with_context(|| format!("{VARIABLE} is no process id"))?;
        Ok(Some(Predecessor { pid, channel }))
    }

    /// Tells it that clients are served here, and returns when it accepts nobody and begins nothing any more.
    ///
    /// # Errors
    /// It has ended before: it was told to stop, or crashed.
    pub async fn relieve(&mut self) -> Result<()> {
        let answer = async {
            self.channel.write_u8(SERVES).await?;
            self.channel.read_u8().await
        };
        match answer.await {
            Ok(GO_ON) => Ok(()),
            Ok(other) => bail!("the program before has said {other}"),
            Err(error) => Err(error).context(ENDED),
        }
    }

    /// Tells it, if it is still there, that this program ends in order.
    pub async fn let_go(&mut self) {
        // It may have ended long ago.
        let _ = self.channel.write_u8(ENDS).await;
    }

    /// Returns when it has ended; never where there is none.
    pub async fn gone(of: Option<&mut Predecessor>) {
        match of {
            Some(Predecessor { channel, .. }) => while channel.read_u8().await.is_ok() {},
            None => std::future::pending().await,
        }
    }
}

/// What a program says whose predecessor has ended.
pub const ENDED: &str =
    "the program that was to be taken over from has ended before, or has given this one up";
