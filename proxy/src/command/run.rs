//! `run`: serves until it is told to stop.

use std::sync::Arc;

use anyhow::{Result, bail};
use keywright_core::Tag;
use keywright_proxy::config::{Config, Listener};
use keywright_proxy::metrics::Counters;
use keywright_proxy::password::OwnKey;
use keywright_proxy::serve::{self, Orders};
use keywright_store::{Failure, Keys};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::{oneshot, watch};

use super::looks::Looks;
use super::{File, runtime};

/// Serves until SIGTERM or Ctrl-C.
pub(crate) fn run(file: &File) -> Result<()> {
    let (config, keys) = file.open()?;
    let runtime = runtime()?;
    // Before the first look, which may take long: a SIGHUP meanwhile would end a process that does not wait for it.
    let mut signals = {
        let _inside = runtime.enter();
        Signals::awaited()?
    };
    let counters = Arc::new(Counters::default());
    let begin = async {
        are_there(&keys, &config.tags(), None).await?;
        Looks::begin(Arc::new(config.clone()), Arc::clone(&counters)).await
    };
    let begun = runtime.block_on(async {
        tokio::select! {
            looks = begin => Some(looks),
            () = signals.stop.said() => None,
        }
    });
    let Some(looks) = begun else {
        return Ok(());
    };
    let mut running = Running {
        file,
        looks: looks?,
        keys: keys.clone(),
        counters,
        own_key: Arc::new(OwnKey::made_when_needed()),
    };
    let (give, orders) = watch::channel(Arc::new(running.orders()?));
    let (stop, stopping) = watch::channel(false);
    let (serves, mut has_ended) = oneshot::channel::<()>();
    let serving = {
        let (keys, counters) = (keys.clone(), Arc::clone(&running.counters));
        std::thread::spawn(move || {
            // Dropped however serving ends, which is what is waited for.
            let _serves = serves;
            serve::serve(config, keys, orders, counters, stopping)
        })
    };
    runtime.block_on(async {
        tokio::select! {
            () = signals.stop.said() => {}
            _ = &mut has_ended => {}
            () = running.follow(&mut signals.hangup, &give) => {}
        }
        // Nobody may listen any more.
        let _ = stop.send(true);
    });
    let served = match serving.join() {
        Ok(served) => served,
        Err(_) => bail!("the proxy's threads panicked"),
    };
    runtime.block_on(keys.hand_back());
    served
}

/// Whether the store has the tags. One that does not answer holds nobody up: keys that are reserved need none, and those that are not
/// are waited for. But a tag that comes into force while others are must be known.
async fn are_there(keys: &Keys, tags: &[Tag], in_force: Option<&[Tag]>) -> Result<()> {
    match keys.missing(tags).await {
        Ok(missing) if missing.is_empty() => Ok(()),
        Ok(missing) => {
            let names: Vec<String> = missing.iter().map(|tag| format!("\"{tag}\"")).collect();
            bail!(
                "the store has no tag {}: keywright-proxy init makes it",
                names.join(", ")
            )
        }
        Err(failure) if in_force.is_none_or(|known| tags.iter().all(|tag| known.contains(tag))) => {
            tracing::warn!(%failure, "whether the store has the rules' tags is not known");
            Ok(())
        }
        Err(failure) => bail!("whether the store has the new rules' tags is not known: {failure}"),
    }
}

/// What the process is told from outside.
struct Signals {
    stop: Stop,
    hangup: Signal,
}

impl Signals {
    /// Inside a runtime.
    fn awaited() -> Result<Signals> {
        Ok(Signals {
            stop: Stop {
                terminate: signal(SignalKind::terminate())?,
                interrupt: signal(SignalKind::interrupt())?,
            },
            hangup: signal(SignalKind::hangup())?,
        })
    }
}

/// SIGTERM and Ctrl-C.
struct Stop {
    terminate: Signal,
    interrupt: Signal,
}

impl Stop {
    async fn said(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

/// What new connections follow, and what it is made of.
struct Running<'a> {
    file: &'a File,
    looks: Looks,
    keys: Keys,
    counters: Arc<Counters>,
    own_key: Arc<OwnKey>,
}

impl Running<'_> {
    /// Gives new orders whenever the rules are read again, or the servers have changed; does not end. Dropped at any time it
    /// leaves nothing half done: orders are given as a whole.
    async fn follow(&mut self, hangup: &mut Signal, give: &watch::Sender<Arc<Orders>>) {
        loop {
            let changed = tokio::select! {
                _ = hangup.recv() => match self.reload().await {
                    Ok(()) => "new connections follow the rules as they are now",
                    Err(error) => {
                        tracing::error!("the rules stay as they were: {error:#}");
                        continue;
                    }
                },
                () = self.looks.changed() => "new connections follow the servers' tables and views as they are now",
            };
            match self.orders() {
                Ok(orders) => {
                    // Whoever listened has ended, and so does the process.
                    let _ = give.send(Arc::new(orders));
                    tracing::info!("{changed}");
                }
                Err(error) => tracing::error!("the rules stay as they were: {error:#}"),
            }
        }
    }

    fn orders(&self) -> Result<Orders> {
        Orders::new(
            self.looks.config(),
            &self.keys,
            &self.looks.seen(),
            &self.counters,
            &self.own_key,
        )
    }

    /// The rules and certificates as they are now, and how the store is connected to. Where is listened and the store itself stay as
    /// they are until the next start.
    async fn reload(&mut self) -> Result<()> {
        let config = self.file.load()?;
        let same = |(old, new): (&Listener, &Listener)| old.can_become(new);
        let listeners = &self.looks.config().listeners;
        let mut pairs = listeners.iter().zip(&config.listeners);
        if config.listeners.len() != listeners.len() || !pairs.all(same) {
            bail!("listeners have changed, which needs a restart");
        }
        let failed = |failure: Failure| anyhow::anyhow!("{failure}");
        let can = self.keys.can_connect_by(&config.store).await;
        can.map_err(failed)?;
        self.keys.connect_by(&config.store);
        match self.looks_of(config).await {
            Ok(looks) => {
                self.looks = looks;
                Ok(())
            }
            Err(error) => {
                self.keys.connect_by(&self.looks.config().store);
                Err(error)
            }
        }
    }

    async fn looks_of(&self, config: Config) -> Result<Looks> {
        let in_force = self.looks.config().tags();
        are_there(&self.keys, &config.tags(), Some(&in_force)).await?;
        Looks::begin(Arc::new(config), Arc::clone(&self.counters)).await
    }
}
