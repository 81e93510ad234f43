//! `run`: serves until it is told to stop.

use std::sync::Arc;

use anyhow::{Result, bail};
use keywright_proxy::config::Listener;
use keywright_proxy::metrics::Counters;
use keywright_proxy::password::OwnKey;
use keywright_proxy::serve::{self, Orders};
use keywright_store::Keys;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{oneshot, watch};

use super::looks::Looks;
use super::{File, runtime};

/// Serves until SIGTERM or Ctrl-C.
pub(crate) fn run(file: &File) -> Result<()> {
    let (config, keys) = file.open()?;
    let runtime = runtime()?;
    let counters = Arc::new(Counters::default());
    let mut looks = runtime.block_on(Looks::begin(
        Arc::new(config.clone()),
        Arc::clone(&counters),
    ))?;
    let own_key = Arc::new(OwnKey::made_when_needed());
    let made = orders(&looks, &keys, &counters, &own_key)?;
    let (give, orders) = watch::channel(Arc::new(made));
    let (stop, stopping) = watch::channel(false);
    let signals = {
        let _inside = runtime.enter();
        [
            SignalKind::terminate(),
            SignalKind::interrupt(),
            SignalKind::hangup(),
        ]
        .map(signal)
    };
    let [terminate, interrupt, hangup] = signals;
    let (mut terminate, mut interrupt, mut hangup) = (terminate?, interrupt?, hangup?);
    let (serves, mut has_ended) = oneshot::channel::<()>();
    let serving = {
        let (keys, counters) = (keys.clone(), Arc::clone(&counters));
        std::thread::spawn(move || {
            // Dropped however serving ends, which is what is waited for.
            let _serves = serves;
            serve::serve(config, keys, orders, counters, stopping)
        })
    };
    runtime.block_on(async {
        loop {
            let changed = tokio::select! {
                _ = terminate.recv() => break,
                _ = interrupt.recv() => break,
                _ = hangup.recv() => match reload(file, &looks, &counters).await {
                    Ok(reloaded) => {
                        looks = reloaded;
                        "new connections follow the rules as they are now"
                    }
                    Err(error) => {
                        tracing::error!("the rules stay as they were: {error:#}");
                        continue;
                    }
                },
                () = looks.changed() => "new connections follow the servers' tables and views as they are now",
                _ = &mut has_ended => break,
            };
            match self::orders(&looks, &keys, &counters, &own_key) {
                Ok(orders) => {
                    // Whoever listened has ended, and so does the process.
                    let _ = give.send(Arc::new(orders));
                    tracing::info!("{changed}");
                }
                Err(error) => tracing::error!("the rules stay as they were: {error:#}"),
            }
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

fn orders(
    looks: &Looks,
    keys: &Keys,
    counters: &Counters,
    own_key: &Arc<OwnKey>,
) -> Result<Orders> {
    Orders::new(looks.config(), keys, &looks.seen(), counters, own_key)
}

/// The rules and certificates as they are now. Where is listened and the store stay as they are until the next start.
async fn reload(file: &File, running: &Looks, counters: &Arc<Counters>) -> Result<Looks> {
    let config = file.load()?;
    let same = |(old, new): (&Listener, &Listener)| old.can_become(new);
    let listeners = &running.config().listeners;
    let mut pairs = listeners.iter().zip(&config.listeners);
    if config.listeners.len() != listeners.len() || !pairs.all(same) {
        bail!("listeners have changed, which needs a restart");
    }
    Looks::begin(Arc::new(config), Arc::clone(counters)).await
}
