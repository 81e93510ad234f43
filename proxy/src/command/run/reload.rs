//! The configuration is read again while the program runs, and put in force as a whole or not at all.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use anyhow::{Result, bail};
use keywright_proxy::config::{Config, LayoutTime};
use keywright_proxy::in_force;
use keywright_store::switch::Switchboard;
use keywright_store::{Clock, Failure, SystemClock};
use tokio::time::sleep;

use super::asked::standing;
use super::{Running, tags};
use crate::command::forgotten::forget_left;
use crate::command::hidden;
use crate::command::schema_refresh::SchemaRefresh;
use crate::command::stale::go_above_new_tables;

/// How often others hear of a program while it looks at servers, milliseconds.
const BEAT_MS: u64 = 1_000;

impl Running<'_> {
    /// The rules and certificates as they are now, and how the store is connected to. Where is listened and the store itself stay as
    /// they are until the next start.
    pub(super) async fn reload(&mut self) -> Result<()> {
        let config = self.file.load()?;
        if let Some(changes) = self.config.listens_otherwise(&config) {
            bail!("listeners have changed, which needs a restart: {changes}");
        }
        self.in_force.may_leave(&config)?;
        hidden::have_not_changed(&self.config, &config)?;
        let failed = |failure: Failure| anyhow::anyhow!("{failure}");
        let can = self.keys.can_connect_by(&config.store).await;
        can.map_err(failed)?;
        let needs_restart = self.config.needs_restart(&config);
        let config = Arc::new(self.config.reloaded(config));
        for warning in config.file_warnings() {
            tracing::warn!("{warning}");
        }
        // It may have been so before, and other keys go on.
        match config.layout_time(SystemClock.wall_ms()) {
            Some(LayoutTime::Unusable(told) | LayoutTime::Warning(told)) => {
                tracing::warn!("{told}");
            }
            None => {}
        }
        self.keys.connect_by(&config.store);
        let taken = self.take(config).await;
        if taken.is_err() {
            self.keys.connect_by(&self.config.store);
        } else if needs_restart {
            tracing::warn!(
                "[store], [snowflake], limits, feeds, metrics and status stay as they were at the start, but for logins, schema_refresh_s and switch_peer_wait_s: others take a restart"
            );
        }
        taken
    }

    /// The program has taken over. The one before may have been told to read a file that has changed since this one read it. False: what the file says now
    /// cannot be put in force, so that nothing is to be switched by what it said before.
    pub(in crate::command) async fn reload_if_changed(&mut self) -> bool {
        let why = match self.file.load() {
            Ok(config) if config.digest == self.config.digest => return true,
            Ok(_) => "the file has changed since this program read it",
            Err(_) => "the file cannot be read again as a configuration",
        };
        let reloaded = self.reload().await;
        self.counters.reloaded(reloaded.is_ok(), SystemTime::now());
        match reloaded {
            Ok(()) => {
                tracing::info!(
                    "the file has changed since this program read it: connections follow the rules as they are now"
                );
                true
            }
            Err(error) => {
                tracing::error!(
                    "{why}: reload failed, keeping the previous configuration, and no switch is begun before SIGHUP applies the file, or SIGUSR2 where it \
                     needs a restart: {error:#}"
                );
                false
            }
        }
    }

    /// Where no rule was switched before, others wait for this program before it reads what is in force: else they would change that, and
    /// it would go by the old until its first step.
    async fn take(&mut self, config: Arc<Config>) -> Result<()> {
        let begins = self.switching.is_none() && config.follows_the_switch();
        if begins {
            let heard = self.board.beat(None).await;
            heard.map_err(|failure| anyhow::anyhow!("{failure}"))?;
        }
        let taken = self.put_in_force(config).await;
        if begins {
            if let Some(switching) = &mut self.switching {
                switching.beat().await;
            }
            if let Err(failure) = self.board.leave().await {
                tracing::debug!(%failure, "others wait for this program's reload until it was silent for long");
            }
        }
        taken
    }

    async fn put_in_force(&mut self, config: Arc<Config>) -> Result<()> {
        tags::are_usable(&self.keys, &config, Some(&self.config.tags())).await?;
        let standing = standing(&config, &self.keys).await;
        if config.follows_the_switch() && standing.is_none() {
            bail!("the store does not say where keys come from now");
        }
        let known = standing.as_ref().map(in_force::key_spaces_of);
        let effective = in_force::effective_on_reload(&config, known.as_ref());
        let (counters, board) = (Arc::clone(&self.counters), self.board.clone());
        let (before, keys) = (Arc::clone(&self.config), self.keys.clone());
        let of_switch = self.board.clone();
        let moves = self.in_force.moves(&config, standing.as_ref());
        let begun = async {
            moves.are_none().await?;
            let begun = SchemaRefresh::begin(Arc::new(effective), counters, board, false).await?;
            // As late as can be: by the rules before, clients bring native ids to tables that come to a tag.
            go_above_new_tables(&config, &before, &keys).await?;
            // From here on a fence of these tables may be that of other keys.
            match forget_left(&config, Some(&before), &of_switch).await {
                Err(error) if config.follows_the_switch() => Err(error),
                // What the store says of rules is nothing to this program now, and a schema refresh comes back to it.
                Ok(()) | Err(_) => Ok(begun),
            }
        };
        let schema_refresh = match &mut self.switching {
            Some(switching) => switching.beat_during(begun).await?,
            None => {
                let (board, follows) = (self.board.clone(), config.follows_the_switch());
                tokio::select! {
                    begun = begun => begun?,
                    never = beat(&board, follows) => match never {},
                }
            }
        };
        self.in_force.configure(
            Arc::clone(&config),
            schema_refresh.facts(),
            standing.as_ref(),
        )?;
        self.schema_refresh = schema_refresh;
        self.config = Arc::clone(&config);
        self.counters.certificates(config.certificate_expiries());
        self.keys
            .keep_ranges_by(&config.digest, config.peer_wait_ms());
        if let Some(switching) = &mut self.switching {
            switching.configure(config);
        }
        self.begin_switching();
        self.refresh_schema_now();
        Ok(())
    }
}

/// Others hear of a program that is not in the switch yet, but for `follows`; without end.
async fn beat(board: &Switchboard, follows: bool) -> Infallible {
    loop {
        sleep(Duration::from_millis(BEAT_MS)).await;
        if follows && let Err(failure) = board.beat(None).await {
            tracing::debug!(%failure, "the store does not hear that the program is there");
        }
    }
}
