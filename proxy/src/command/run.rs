//! What a program follows while it runs: its configuration, the servers, the switch.

mod reload;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use anyhow::{Result, bail};
use keywright_core::{Tag, nearest};
use keywright_proxy::config::Config;
use keywright_proxy::handshake::password::OwnKey;
use keywright_proxy::in_force::{self, InForce};
use keywright_proxy::metrics::Counters;
use keywright_proxy::schema::{self, Finding, Severity};
use keywright_proxy::switch::rule_name;
use keywright_store::Keys;
use keywright_store::switch::{RuleName, Standing, Switchboard};
use tokio::signal::unix::Signal;
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::new_tables::Asker;
use super::schema_refresh::SchemaRefresh;
use super::stale::raise_stale_tags;
use super::switching::{Switching, tell_end};
use super::{File, hidden, left_over, ordered};

/// How long a program that is to end while it starts may take to say so to the store and to hand back what it has of it, milliseconds: less than
/// the program that it was to take over from waits for its end.
const LEAVE_MS_MAX: u64 = 3_000;

/// Whether the store has the tags. One that does not answer holds nobody up: keys that are reserved need none, and those that are not
/// are waited for. But a tag that comes into force while others are must be known.
async fn are_there(keys: &Keys, tags: &[Tag], in_force: Option<&[Tag]>) -> Result<()> {
    match keys.missing(tags).await {
        Ok(missing) if missing.is_empty() => Ok(()),
        Ok(missing) => {
            let names: Vec<String> = missing.iter().map(|tag| format!("\"{tag}\"")).collect();
            let names = names.join(", ");
            if keys.gives_ranges_only() {
                bail!("the store has no tag {names}: keywright check says more");
            }
            bail!(
                "the store has no tag {names}: keywright init makes it{}",
                meant(keys, &missing).await
            )
        }
        Err(failure) if in_force.is_none_or(|known| tags.iter().all(|tag| known.contains(tag))) => {
            tracing::warn!(%failure, "whether the store has the configuration's tags is not known");
            Ok(())
        }
        Err(failure) => bail!("whether the store has the new rules' tags is not known: {failure}"),
    }
}

async fn are_not_ordered(keys: &Keys, config: &Config) -> Result<()> {
    match ordered::in_tables(config, keys).await {
        None => Ok(()),
        Some(problem) => bail!(problem),
    }
}

/// Whether each tag is open in its store and in no other, as far as the stores answer; those that do not refuse it later.
async fn are_at_home(keys: &Keys, tags: &[Tag]) -> Result<()> {
    let refused = keys.not_at_home(tags).await;
    let lines: Vec<String> = refused.iter().map(ToString::to_string).collect();
    match lines.is_empty() {
        true => Ok(()),
        false => bail!(lines.join("\n")),
    }
}

/// The tag of the store that was probably meant.
async fn meant(keys: &Keys, missing: &[Tag]) -> String {
    let listings = keys.tags().await.unwrap_or_default();
    let known = listings.iter().map(|listing| listing.tag.as_str());
    let near = missing.iter().find_map(|tag| {
        nearest::nearest(tag.as_str(), known.clone())
            .into_iter()
            .next()
    });
    near.map_or_else(String::new, |near| format!(". Did you mean \"{near}\"?"))
}

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

/// What the store says of rules that are switched; nothing if there are none, or it does not answer.
async fn standing(config: &Config, keys: &Keys) -> Option<Standing> {
    if !config.follows_the_switch() {
        return None;
    }
    match Switchboard::new(keys).standing().await {
        Ok(standing) => Some(standing),
        Err(failure) => {
            tracing::warn!(
                %failure,
                "where keys of tables that were switched come from is not known yet: inserts on these tables wait"
            );
            None
        }
    }
}

/// Servers that are fed know how far ids came, so that a store that has gone back is known for one before a key of it is given. One that does
/// not answer is told of when it is fed.
async fn ask_fed_servers(config: &Config, keys: &Keys) {
    let mut asking = JoinSet::new();
    for feed in config.feeds.clone() {
        let keys = keys.clone();
        asking.spawn(async move { keys.handed_over(&feed).await });
    }
    while asking.join_next().await.is_some() {}
}

/// Rules of whose tables nothing says that they were native, or switched: they may have had keys without the fence.
async fn rules_that_may_have_keys(config: &Config, keys: &Keys) -> BTreeSet<RuleName> {
    if !config.rules.iter().any(|rule| rule.is_switched) {
        return BTreeSet::new();
    }
    // Where the store does not say, none is sure.
    let all_wanted = Switchboard::new(keys)
        .all_wanted()
        .await
        .unwrap_or_default();
    let is_told = |rule: &RuleName| all_wanted.iter().any(|(_, wanted)| wanted.rule == *rule);
    let rules = config.rules.iter().filter(|rule| rule.is_switched);
    rules.map(rule_name).filter(|rule| !is_told(rule)).collect()
}

/// Rules of this program's servers that it does not have. Nobody waits for that.
fn look_for_rules_left_out(config: &Arc<Config>, file: &File, keys: &Keys) {
    let (config, keys, file) = (Arc::clone(config), keys.clone(), file.config.clone());
    tokio::spawn(async move {
        for Finding {
            severity, message, ..
        } in left_over::rules((config.as_ref(), file.as_path()), &keys).await
        {
            match severity {
                Severity::Error | Severity::LeftOut | Severity::Warning => {
                    tracing::warn!("{message}");
                }
                Severity::Note => tracing::info!("{message}"),
            }
        }
    });
}

/// A store that gives ranges only does not know what tables have, nor does one that holds some tags: ranges that lie among their ids are refused
/// then.
async fn see_what_tables_have(config: &Config, keys: &Keys) {
    let concerns =
        |tag: &Tag| keys.gives_ranges_only() || config.store.further_store_of(tag).is_some();
    let mut tags = config.rules.iter().filter_map(|rule| rule.spec.tag());
    if !tags.any(concerns) {
        return;
    }
    let (highest, unknown) = schema::read_highest_ids(config).await;
    for found in highest.into_iter().filter(|found| concerns(&found.tag)) {
        keys.note_taken(&found.tag, found.id);
    }
    for unknown in unknown {
        tracing::warn!(
            "whether tables have ids that a tag is still to give is not known of {}",
            unknown.what
        );
    }
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
        are_there(&keys, &config.tags(), known).await?;
        are_at_home(&keys, &config.tags()).await?;
        are_not_ordered(&keys, &config).await?;
        hidden::are_alike(&keys, &config).await?;
        if let Some(order) = config.order() {
            keys.stand_for_order(order.clone());
        }
        ask_fed_servers(&config, &keys).await;
        see_what_tables_have(&config, &keys).await;
        let config = Arc::new(config);
        let counters = Arc::new(Counters::default());
        counters.reloaded(true, SystemTime::now());
        let standing = standing(&config, &keys).await;
        if takes_over && config.follows_the_switch() && standing.is_none() {
            bail!("the store does not say where keys come from now");
        }
        let kept = match standing.is_none() && config.follows_the_switch() {
            true => keys.start_on_kept_ranges(),
            false => {
                keys.drop_kept_ranges();
                None
            }
        };
        let is_on_kept_ranges = kept.is_some();
        let standing = standing.or(kept);
        let known = standing.as_ref().map(in_force::key_spaces_of);
        let effective = Arc::new(in_force::effective(&config, known.as_ref()));
        raise_stale_tags(&effective, &keys).await;
        let board = Switchboard::new(&keys);
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
        for feed in &running.config.feeds {
            tracing::info!(server = feed.address(), "feeding");
            let fed = running.keys.feed(feed.clone());
            fed.map_err(|failure| anyhow::anyhow!("{failure}"))?;
        }
        running.begin_switching();
        if let Some(switching) = &mut running.switching {
            if let Some(standing) = standing.filter(|_| is_on_kept_ranges) {
                switching.look_without_store(&standing).await;
            }
            if takes_over {
                // The other program has another configuration perhaps, and would switch back.
                switching.begin_nothing();
            }
            // So that whoever is served gets keys from the first statement on, if nothing is in the way.
            switching.settle().await;
        }
        running.refresh_schema_now();
        look_for_rules_left_out(&running.config, file, &running.keys);
        Ok(running)
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
    /// leaves nothing half done: a snapshot is given as a whole.
    pub(super) async fn follow(&mut self, mut hangup: Option<&mut Signal>) {
        loop {
            let told = async {
                match &mut hangup {
                    Some(hangup) => hangup.recv().await,
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
                    let reloaded = self.reload().await;
                    self.counters.reloaded(reloaded.is_ok(), SystemTime::now());
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
