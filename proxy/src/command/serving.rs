//! `run`: serves until it is told to stop, or another program has taken over.

use std::cell::Cell;
use std::future::pending;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anyhow::{Result, anyhow, bail};
use keywright_proxy::config::LayoutTime;
use keywright_proxy::serve::listening::{InheritedSockets, Listening};
use keywright_proxy::serve::open_files::make_room;
use keywright_proxy::serve::take_over::{ENDED, Predecessor, Successor};
use keywright_proxy::serve::{self, ServeControl};
use keywright_store::switch::Switchboard;
use keywright_store::{Clock, Keys, SystemClock};
use sd_notify::NotifyState;
use tokio::signal::unix::Signal;
use tokio::sync::{oneshot, watch};
use tokio::time::{Instant, sleep};

use super::run::{Running, leave_early};
use super::signals::{Signals, Stop, tell_systemd};
use super::{File, runtime};

/// How often is looked whether a program that takes over has keys, and whether clients of one that was taken over are left,
/// milliseconds.
const POLL_MS: u64 = 20;
/// How long clients of ordered tags are still told which program gives the keys now, before their connections end, milliseconds: one
/// that asks all the time finds its way before, and none of its requests is lost with its connection.
const TELL_MS: u64 = 250;

/// Serves until SIGTERM or Ctrl-C, or until a program that it started on SIGUSR2 has taken over.
pub(crate) fn run(file: &File) -> Result<()> {
    // Before there are threads: variables are taken out of the environment.
    let inherited = InheritedSockets::from_env()?;
    let (config, keys) = file.open()?;
    let has_listeners = !config.listeners.is_empty() || !config.ports.is_empty();
    if !has_listeners && config.feeds.is_empty() {
        let file = file.config.display();
        bail!("in {file}: there is no [[listener]], and no [[feed]]");
    }
    tracing::info!(
        version = env!("CARGO_PKG_VERSION"),
        config = %file.config.display(),
        "starting"
    );
    make_room(&config);
    for warning in config.file_warnings() {
        tracing::warn!("{warning}");
    }
    // The clock may be what is wrong, and other keys are given all the same.
    match config.layout_time(SystemClock.wall_ms()) {
        Some(LayoutTime::Unusable(told) | LayoutTime::Warning(told)) => tracing::warn!("{told}"),
        None => {}
    }
    // Tables go over to keys before clients are served, and must not where none could be.
    inherited.see_that_the_rest_can_be_bound(&config)?;
    let runtime = runtime()?;
    // Before the first look, which may take long: a SIGHUP meanwhile would end a process that does not wait for it.
    let (mut signals, mut predecessor) = {
        let _inside = runtime.enter();
        (Signals::awaited()?, Predecessor::from_env()?)
    };
    let takes_over = predecessor.is_some();
    // Here, for whatever breaks the start off: what was begun is not left to others.
    let part = Switchboard::new(&keys);
    let takes_part = config.follows_the_switch();
    let begun = runtime.block_on(async {
        let begun = tokio::select! {
            running = Running::begin(file, config, (keys.clone(), part.clone()), takes_over) => running.map(Some),
            () = signals.stop.said() => Ok(None),
            () = Predecessor::gone(predecessor.as_mut()) => Err(anyhow!(ENDED)),
        };
        match &begun {
            Ok(Some(_)) => {}
            Ok(None) | Err(_) => leave_early(takes_part.then_some(&part), &keys).await,
        }
        begun
    });
    let Some(mut running) = begun? else {
        log_end();
        return Ok(());
    };
    runtime.block_on(async {
        let served = running.serve(inherited, predecessor, &mut signals).await;
        running.leave().await;
        keys.hand_back().await;
        log_end();
        served
    })
}

/// The last line of the program's log. Where one has taken over from another, both are in it.
fn log_end() {
    tracing::info!(pid = std::process::id(), "the program ends");
}

/// Waits until all sources have keys: whoever is served by the program that takes over gets them from the first statement on.
async fn have_keys(keys: &Keys, wait_ms_max: u64) -> Result<()> {
    let end = Instant::now() + Duration::from_millis(wait_ms_max);
    loop {
        let stats = keys.stats();
        let mut without = stats
            .iter()
            .filter(|of| of.remaining.is_none() && !of.is_standby)
            .peekable();
        let Some(first) = without.peek().map(|of| &of.name) else {
            return Ok(());
        };
        if Instant::now() >= end {
            bail!("there were no keys of {first} within take_over_wait_ms_max ({wait_ms_max})");
        }
        if let Some((name, trouble)) = without.find_map(|of| Some((&of.name, of.trouble.as_ref()?)))
        {
            bail!("there are no keys of {name} for two programs at once: {trouble}");
        }
        sleep(Duration::from_millis(POLL_MS)).await;
    }
}

/// Returns when a new program serves clients. What is wrong with one that does not is logged, and changes nothing. `is_starting`: whether there is one.
async fn successor(
    told: &mut Signal,
    (listening, wait_ms_max): (&Listening, u64),
    is_starting: &Cell<bool>,
) -> Successor {
    while told.recv().await.is_some() {
        is_starting.set(true);
        let begun = Successor::begin(listening, wait_ms_max).await;
        is_starting.set(false);
        match begun {
            Ok(successor) => return successor,
            Err(error) => tracing::error!("take-over failed, going on as before: {error:#}"),
        }
    }
    pending().await
}

/// Says to whom SIGHUP is to be sent; does not end.
async fn refuse_reloads(hangup: &mut Signal, pid: u32) {
    while hangup.recv().await.is_some() {
        tracing::error!(
            pid,
            "reload refused: the new program has taken over, send SIGHUP to it"
        );
    }
    pending().await
}

/// The threads that serve clients.
struct Serving {
    thread: JoinHandle<Result<()>>,
    has_begun: oneshot::Receiver<()>,
    has_ended: oneshot::Receiver<()>,
    accepting: watch::Sender<bool>,
    stop: watch::Sender<bool>,
}

/// What ends a program's time as the one that accepts clients.
enum End {
    /// It was told to stop, or cannot go on.
    Stop(Result<()>),
    /// Its threads have ended.
    Over,
    /// Another one serves clients.
    TakenOver(Successor),
}

impl Serving {
    fn start(running: &Running<'_>, listening: &Arc<Listening>) -> Serving {
        let (accepting, receives_accepting) = watch::channel(true);
        let (stop, stopping) = watch::channel(false);
        let (serves, has_begun) = oneshot::channel();
        let (lives, has_ended) = oneshot::channel::<()>();
        let control = ServeControl {
            listening: Arc::clone(listening),
            accepting: receives_accepting,
            stopping,
            serves,
        };
        let (config, keys) = (running.config().clone(), running.keys().clone());
        let (snapshot, counters) = (
            running.in_force().snapshot(),
            Arc::clone(running.counters()),
        );
        let thread = thread::spawn(move || {
            // Dropped however serving ends, which is what is waited for.
            let _lives = lives;
            serve::serve(config, keys, snapshot, counters, control)
        });
        Serving {
            thread,
            has_begun,
            has_ended,
            accepting,
            stop,
        }
    }

    fn join(self) -> Result<()> {
        match self.thread.join() {
            Ok(served) => served,
            Err(_) => bail!("the program's threads panicked"),
        }
    }
}

impl Running<'_> {
    /// Serves clients until none is left to be served.
    async fn serve(
        &mut self,
        inherited: InheritedSockets,
        mut predecessor: Option<Predecessor>,
        signals: &mut Signals,
    ) -> Result<()> {
        let listening = Arc::new(self.listen(inherited, predecessor.is_some())?);
        let wait_ms_max = self.config().take_over_wait_ms_max;
        if predecessor.is_some() {
            tokio::select! {
                there = have_keys(self.keys(), wait_ms_max) => there?,
                () = signals.stop.said() => return Ok(()),
                () = Predecessor::gone(predecessor.as_mut()) => bail!(ENDED),
            }
        }
        let mut serving = Serving::start(self, &listening);
        let Signals {
            stop,
            hangup,
            take_over,
        } = signals;
        let is_starting = Cell::new(false);
        let end = tokio::select! {
            () = stop.said() => End::Stop(Ok(())),
            _ = &mut serving.has_ended => End::Over,
            end = async {
                let has_begun = &mut serving.has_begun;
                if let Err(error) = self.begin_to_serve(has_begun, predecessor.as_mut()).await {
                    return End::Stop(Err(error));
                }
                tokio::select! {
                    () = self.follow(Some((&mut *hangup, &is_starting))) => End::Stop(Ok(())),
                    successor = successor(take_over, (&listening, wait_ms_max), &is_starting) => End::TakenOver(successor),
                }
            } => end,
        };
        drop(listening);
        if let Some(predecessor) = &mut predecessor {
            predecessor.let_go().await;
        }
        let (is_over, outcome) = match end {
            End::Over => (true, Ok(())),
            End::Stop(outcome) => {
                tracing::info!(connections = self.counters().open(), "stopping");
                tell_systemd(NotifyState::Stopping);
                if self.keys().leave_order().await {
                    tokio::select! {
                        () = sleep(Duration::from_millis(TELL_MS)) => {}
                        () = stop.said() => {}
                    }
                }
                (false, outcome)
            }
            End::TakenOver(successor) => {
                let is_over = self.give_way(successor, &mut serving, (stop, hangup)).await;
                (is_over, Ok(()))
            }
        };
        // Nobody may listen any more.
        let _ = serving.stop.send(true);
        if !is_over {
            self.drain(&mut serving.has_ended).await;
        }
        serving.join().and(outcome)
    }

    fn listen(&self, mut inherited: InheritedSockets, takes_over: bool) -> Result<Listening> {
        let listening = Listening::begin(self.config(), &mut inherited)?;
        let left = inherited.left().join(", ");
        match left.is_empty() {
            true => {}
            // They are closed here now, and there when the other program gives way.
            false if takes_over => tracing::info!(addresses = left, "listened on no more"),
            false => bail!(
                "the service manager hands over {left}, which is the bind of no listener: clients would wait there in vain"
            ),
        }
        Ok(listening)
    }

    /// Clients are served: from now on this program is the one that goes on.
    async fn begin_to_serve(
        &mut self,
        has_begun: &mut oneshot::Receiver<()>,
        predecessor: Option<&mut Predecessor>,
    ) -> Result<()> {
        if has_begun.await.is_err() {
            // The threads' end says why.
            pending::<()>().await;
        }
        let follows_file = match predecessor {
            Some(predecessor) => {
                predecessor.relieve().await?;
                tracing::info!(from = predecessor.pid, "took over");
                self.reload_if_changed().await
            }
            None => true,
        };
        if follows_file {
            self.may_switch();
        }
        tell_systemd(NotifyState::Ready);
        Ok(())
    }

    /// Another program serves clients. Those that are connected here go on until they leave, for `drain_ms_max`, and then end as
    /// at a stop. True: the threads have ended.
    async fn give_way(
        &mut self,
        mut successor: Successor,
        serving: &mut Serving,
        (stop, hangup): (&mut Stop, &mut Signal),
    ) -> bool {
        self.give_way_in_switches();
        self.keys().leave_order().await;
        tell_systemd(NotifyState::MainPid(successor.pid()));
        // To its end: whoever was accepted is counted then.
        serving.accepting.send_replace(false);
        serving.accepting.closed().await;
        let pid = successor.pid();
        if let Err(error) = successor.go_on().await {
            tracing::warn!(pid, %error, "the new program cannot be told to go on");
        }
        let counters = Arc::clone(self.counters());
        let connections = counters.open();
        tracing::info!(pid, connections, "the new program has taken over");
        let all_have_left = async {
            while counters.open() > 0 {
                sleep(Duration::from_millis(POLL_MS)).await;
            }
        };
        let limit = Duration::from_millis(self.config().drain_ms_max);
        tokio::select! {
            () = stop.said() => false,
            _ = &mut serving.has_ended => true,
            () = all_have_left => false,
            () = sleep(limit) => false,
            () = successor.crashed() => {
                // Whoever starts it again may wait for this end.
                tracing::error!(pid, "the new program has crashed");
                false
            }
            () = refuse_reloads(hangup, pid) => false,
            () = self.follow(None) => false,
        }
    }
}
