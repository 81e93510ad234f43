//! What a program follows while it runs: its configuration, the servers, the switch.

mod asked;
mod reload;
mod tags;

use std::cell::Cell;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use anyhow::{Result, anyhow};
use keywright_proxy::config::Config;
use keywright_proxy::handshake::password::OwnKey;
use keywright_proxy::in_force::{self, InForce};
use keywright_proxy::metrics::Counters;
use keywright_store::Keys;
use keywright_store::switch::{Standing, Switchboard};
use tokio::signal::unix::Signal;
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::File;
use super::forgotten::try_to_forget_left;
use super::new_tables::Asker;
use super::schema_refresh::SchemaRefresh;
use super::stale::raise_stale_tags;
use super::switching::{Switching, tell_end};
use asked::{
    FirstStanding, ask_fed_servers, look_for_rules_left_out, rules_that_may_have_keys,
    see_what_tables_have,
};

/// How long a program that is to end while it starts may take to say so to the store and to hand back what it has of it, milliseconds: less than
/// the program that it was to take over from waits for its end.
const LEAVE_MS_MAX: u64 = 3_000;

/// What connections follow, and what it is made of.
pub(super) struct Running<'a> {
    file: &'a File,
    /// As it was read.
    config: Arc<Config>,
    schema_refresh: SchemaRefresh,
    asker: Asker,
    keys: Keys,
    /// What is noted there is of this program, whatever its configuration.
    board: Switchboard,
    /// Where it takes part in the switch.
    part: Switchboard,
    counters: Arc<Counters>,
    in_force: Arc<InForce>,
    /// Where a rule is switched.
    switching: Option<Switching>,
}

/// Whether the store is to be told that the program ends. One that does not answer hears nothing, so that others wait: whoever starts next may go on
/// with what is kept.
async fn may_leave(part: &Switchboard, keys: &Keys) -> bool {
    match part.standing().await.is_ok() {
        true => keys.stop_keeping(),
        false => keys.leave_kept_ranges(),
    }
}

/// The program ends before it serves anybody: what it has said to the store, reserved and leased there would stand in the way of the next start.
/// `part`: where it takes part in the switch, if it does.
pub(super) async fn leave_early(part: Option<&Switchboard>, keys: &Keys) {
    let leaving = async {
        if let Some(part) = part
            && may_leave(part, keys).await
        {
            tell_end(part).await;
        }
        keys.hand_back().await;
    };
    let limit = Duration::from_millis(LEAVE_MS_MAX);
    if timeout(limit, leaving).await.is_err() {
        tracing::warn!(
            "the store does not answer in time: what was reserved there may be lost, and a worker id is free only when its lease has run out"
        );
    }
}

impl<'a> Running<'a> {
    /// `part`: where it is to take part in the switch. `takes_over`: another program serves clients, and goes on if this one cannot give keys.
    pub(super) async fn begin(
        file: &'a File,
        config: Config,
        (keys, part): (Keys, Switchboard),
        takes_over: bool,
    ) -> Result<Running<'a>> {
        keys.keep_ranges(&config.digest, config.peer_wait_ms());
        let known = takes_over.then_some([].as_slice());
        tags::are_usable(&keys, &config, known).await?;
        if let Some(order) = config.order() {
            keys.stand_for_order(order.clone());
        }
        ask_fed_servers(&config, &keys).await;
        see_what_tables_have(&config, &keys).await;
        let config = Arc::new(config);
        let counters = Arc::new(Counters::default());
        counters.reloaded(true, SystemTime::now());
        counters.certificates(config.certificate_expiries());
        let FirstStanding { standing, is_kept } =
            FirstStanding::read(&config, &keys, takes_over).await?;
        let known = standing.as_ref().map(in_force::key_spaces_of);
        let effective = Arc::new(in_force::effective(&config, known.as_ref()));
        raise_stale_tags(&effective, &keys).await;
        let board = Switchboard::new(&keys);
        // Before fences are set.
        try_to_forget_left(&config, &board).await;
        let schema_refresh =
            SchemaRefresh::begin(effective, Arc::clone(&counters), board.clone(), true).await?;
        let asker = Asker::begin(Arc::clone(&config), Arc::clone(&counters));
        let in_force = InForce::new(
            keys.clone(),
            Arc::clone(&counters),
            Arc::new(OwnKey::made_when_needed()),
            (Arc::clone(&config), schema_refresh.facts()),
            (
                standing.as_ref(),
                rules_that_may_have_keys(&config, &keys).await,
            ),
        )?;
        let mut running = Running {
            file,
            config,
            schema_refresh,
            asker,
            keys,
            board,
            part,
            counters,
            in_force: Arc::new(in_force),
            switching: None,
        };
        running.begin_feeding()?;
        running.begin_switching();
        running
            .settle_switch(standing.as_ref().filter(|_| is_kept), takes_over)
            .await;
        running.refresh_schema_now();
        look_for_rules_left_out(&running.config, &file.config, &running.keys);
        Ok(running)
    }

    fn begin_feeding(&self) -> Result<()> {
        for feed in &self.config.feeds {
            tracing::info!(server = feed.address(), "feeding");
            let fed = self.keys.feed(feed.clone());
            fed.map_err(|failure| anyhow::anyhow!("{failure}"))?;
        }
        Ok(())
    }

    /// So that whoever is served gets keys from the first statement on, if nothing is in the way. `kept`: where keys come from, if not the
    /// store says so.
    async fn settle_switch(&mut self, kept: Option<&Standing>, takes_over: bool) {
        let Some(switching) = &mut self.switching else {
            return;
        };
        if let Some(standing) = kept {
            switching.look_without_store(standing).await;
        }
        if takes_over {
            // The other program has another configuration perhaps, and would switch back.
            switching.begin_nothing();
        }
        switching.settle().await;
    }

    /// Where a rule is switched, and no other was before.
    fn begin_switching(&mut self) {
        if self.switching.is_none() && self.config.follows_the_switch() {
            self.switching = Some(Switching::new(
                self.part.clone(),
                Arc::clone(&self.config),
                &self.file.config,
                (Arc::clone(&self.in_force), Arc::clone(&self.counters)),
            ));
        }
    }

    /// Tables that come later get the fence where keys are in force.
    fn refresh_schema_now(&mut self) {
        let config = Arc::new(self.in_force.config());
        self.asker.follow(Arc::clone(&config));
        self.schema_refresh.follow(config);
    }

    /// Gives a new snapshot whenever the rules are read again, or the servers have changed; does not end. Dropped at any time it
    /// leaves nothing half done: a snapshot is given as a whole. With SIGHUP, whether a new program is starting that is to take over.
    pub(super) async fn follow(&mut self, mut hangup: Option<(&mut Signal, &Cell<bool>)>) {
        loop {
            let told = async {
                match &mut hangup {
                    Some((hangup, _)) => hangup.recv().await,
                    None => std::future::pending().await,
                }
            };
            let switching = self.switching.as_ref();
            let pause = async {
                match switching {
                    Some(switching) => switching.pause().await,
                    None => std::future::pending().await,
                }
            };
            let (changed, given) = tokio::select! {
                _ = told => {
                    let is_starting = hangup.as_ref().is_some_and(|(_, is)| is.get());
                    let reloaded = match is_starting {
                        // It has read the file before, and would bring back what it read there.
                        true => Err(anyhow!("a new program is taking over: send SIGHUP again once the log says how that has ended")),
                        false => self.reload().await,
                    };
                    self.counters.reloaded(reloaded.is_ok(), SystemTime::now());
                    if reloaded.is_ok() {
                        self.may_switch();
                    }
                    ("connections follow the rules as they are now", reloaded)
                }
                () = self.schema_refresh.changed() => (
                    "new connections follow the servers' tables and views as they are now",
                    self.in_force.see(self.schema_refresh.facts()),
                ),
                () = pause => {
                    if let Some(switching) = &mut self.switching {
                        let before = self.in_force.version();
                        switching.step().await;
                        if self.in_force.version() != before {
                            self.refresh_schema_now();
                        }
                    }
                    continue;
                }
            };
            match given {
                Ok(()) => tracing::info!("{changed}"),
                Err(error) => {
                    tracing::error!("reload failed, keeping the previous configuration: {error:#}")
                }
            }
        }
    }

    /// What the configuration wants anew is switched from now on.
    pub(super) fn may_switch(&mut self) {
        if let Some(switching) = &mut self.switching {
            switching.may_begin();
        }
    }

    /// Another program has taken over, and is the one that switches and notes what this place wants.
    pub(super) fn give_way_in_switches(&mut self) {
        if let Some(switching) = &mut self.switching {
            switching.give_way();
        }
    }

    /// The store is told that the program ends.
    pub(super) async fn leave(&mut self) {
        let Some(switching) = &mut self.switching else {
            return;
        };
        // Others need not wait for whoever starts next, unless that may find what was kept.
        if may_leave(&self.part, &self.keys).await {
            switching.leave().await;
        }
    }

    pub(super) fn config(&self) -> &Config {
        &self.config
    }

    pub(super) fn keys(&self) -> &Keys {
        &self.keys
    }

    pub(super) fn counters(&self) -> &Arc<Counters> {
        &self.counters
    }

    pub(super) fn in_force(&self) -> &InForce {
        &self.in_force
    }

    /// Clients finish what they are at: what waits for the switch goes on when that is over, and others' attempts do not wait for
    /// this program.
    pub(super) async fn drain(&mut self, has_ended: &mut oneshot::Receiver<()>) {
        let Some(switching) = &mut self.switching else {
            let _ = has_ended.await;
            return;
        };
        switching.begin_nothing();
        loop {
            // To its end: behind it the store is told that the program is gone.
            switching.step().await;
            tokio::select! {
                _ = &mut *has_ended => return,
                () = switching.pause() => {}
            }
        }
    }
}
