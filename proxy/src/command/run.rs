//! `run`: serves until it is told to stop.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, bail};
use keywright_proxy::config::Config;
use keywright_proxy::serve::{self, Orders};
use keywright_proxy::tables::Seen;
use keywright_store::Keys;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

use super::{File, check, runtime};

/// Serves until SIGTERM or Ctrl-C.
pub(crate) fn run(file: &File) -> Result<()> {
    let (config, keys) = file.open()?;
    let runtime = runtime()?;
    let seen = runtime.block_on(prepare(&config))?;
    let (give, orders) = watch::channel(Arc::new(Orders::new(&config, &keys, &seen)?));
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
    let serving = {
        let (keys, config) = (keys.clone(), config.clone());
        std::thread::spawn(move || serve::serve(config, keys, orders, stopping))
    };
    runtime.block_on(async {
        loop {
            tokio::select! {
                _ = terminate.recv() => break,
                _ = interrupt.recv() => break,
                _ = hangup.recv() => match reload(file, &config, &keys).await {
                    Ok(orders) => {
                        // Whoever listened has ended, and so does the process.
                        let _ = give.send(Arc::new(orders));
                        tracing::info!("new connections follow the rules as they are now");
                    }
                    Err(error) => tracing::error!("the rules stay as they were: {error:#}"),
                },
                () = tokio::time::sleep(Duration::from_millis(100)) => {
                    if serving.is_finished() {
                        break;
                    }
                }
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

/// The rules of the file as it is now. Listeners and the store stay as they are until the next start.
async fn reload(file: &File, running: &Config, keys: &Keys) -> Result<Orders> {
    let config = file.load()?;
    if config.listeners != running.listeners {
        bail!("listeners have changed, which needs a restart");
    }
    let seen = prepare(&config).await?;
    Orders::new(&config, keys, &seen)
}

/// Looks at the tables of every listener, applies fences, and fails with all that forbids to go on.
async fn prepare(config: &Config) -> Result<Vec<Seen>> {
    let mut seen = Vec::new();
    let mut errors = Vec::new();
    for listener in &config.listeners {
        let found = check::look(config, listener, true).await;
        for warning in &found.warnings {
            tracing::warn!(listener = listener.bind, "{warning}");
        }
        let of_listener = |error: &String| format!("{}: {error}", listener.bind);
        errors.extend(found.errors.iter().map(of_listener));
        seen.push(found.seen);
    }
    if errors.is_empty() {
        Ok(seen)
    } else {
        bail!(
            "{} problem(s) on the servers must be solved first:\n    {}",
            errors.len(),
            errors.join("\n    ")
        );
    }
}
