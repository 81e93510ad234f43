//! Reads what is known of the servers' tables: once before rules come into force, and again every `schema_refresh_s` while they are.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, bail};
use keywright_proxy::config::Config;
use keywright_proxy::metrics::{Counters, Metric};
use keywright_proxy::schema::{self, Counting, Extent, Finding, Severity, Snapshot, TableFacts};
use keywright_session::ListedTables;
use keywright_store::switch::{PeerReports, Standing, Switchboard};
use tokio::task::JoinSet;
use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at};

use super::check::{self, Inspected};
use super::forgotten::try_to_forget_left;
use super::left_over;
use super::new_tables::ask_about;
use super::unseen_ids::{self, UnseenIds};

/// How much later than the rules the fence comes where clients are connected, milliseconds: by then what they sent by the old rules
/// has reached the server.
const FENCE_LATER_MS: u64 = 1_000;

/// What is known of the servers behind all listeners, and the refresh that is under way.
pub(super) struct SchemaRefresh {
    config: Arc<Config>,
    counters: Arc<Counters>,
    board: Switchboard,
    /// By listener.
    known: Vec<Known>,
    unseen_ids: UnseenIds,
    /// Refreshes at which there were connections that nobody reads.
    passthrough: u64,
    ticks: Interval,
    under_way: JoinSet<Refreshed>,
    /// How often tables had been changed when that began.
    began_at: u64,
}

/// What a refresh has read.
struct Refreshed {
    /// By listener; `None` where the server could not be asked.
    servers: Vec<Option<Server>>,
    /// What went by the other programs; `None` where no rule observes, or not all is known.
    peer_reports: Option<PeerReports>,
}

/// What one server says by the rules of the moment.
#[derive(Default)]
struct Server {
    facts: TableFacts,
    listed: Arc<ListedTables>,
    findings: Vec<Finding>,
    unfenced: u64,
    counting: Counting,
}

impl Server {
    fn of(config: &Config, inspected: Inspected) -> Server {
        let findings = inspected.findings;
        match inspected.snapshot {
            Some(snapshot) => Server {
                facts: schema::facts(&snapshot, config),
                listed: Arc::new(schema::listed(&snapshot, config)),
                findings,
                unfenced: schema::unfenced(&snapshot, config),
                counting: schema::counting(&snapshot, config),
            },
            None => Server {
                findings,
                ..Server::default()
            },
        }
    }
}

#[derive(Default)]
struct Known {
    facts: TableFacts,
    listed: Arc<ListedTables>,
    /// What was logged and still holds.
    reported: Vec<String>,
}

impl SchemaRefresh {
    /// Reads the tables of every listener, fails with all that forbids to go on, and applies fences if nothing does: `now`, or a
    /// little later, when clients that are connected go by the rules.
    pub(super) async fn begin(
        config: Arc<Config>,
        counters: Arc<Counters>,
        board: Switchboard,
        now: bool,
    ) -> Result<SchemaRefresh> {
        let began_at = counters.schema.defined();
        let mut servers = inspect_all(&config, &board, false).await?;
        // A fence without the proxy's rule in force would only stop inserts.
        let lacks_fence = servers.iter().any(|server| server.unfenced > 0);
        if lacks_fence && now {
            servers = inspect_all(&config, &board, true).await?;
        }
        // Before anybody is served the others know that there is one more.
        peer_reports(&config, &counters, &board, 0).await;
        let listeners = config.listeners.iter().zip(servers);
        let known = listeners
            .map(|(listener, server)| {
                let mut known = Known::default();
                known.learn(&listener.bind, server, &counters);
                known
            })
            .collect::<Vec<Known>>();
        note_known(&known, &counters);
        counters.schema.note_schema_refresh(began_at, true);
        let period = Duration::from_secs(config.schema_refresh_s);
        let first = match lacks_fence && !now {
            true => Duration::from_millis(FENCE_LATER_MS),
            false => period,
        };
        let mut ticks = interval_at(Instant::now() + first, period);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Ok(SchemaRefresh {
            config,
            counters,
            board,
            known,
            unseen_ids: UnseenIds::default(),
            passthrough: 0,
            ticks,
            under_way: JoinSet::new(),
            began_at,
        })
    }

    /// Refreshes by another configuration from now on, with the same listeners and rules.
    pub(super) fn follow(&mut self, config: Arc<Config>) {
        self.config = config;
        self.unseen_ids.forget();
    }

    /// What sessions must know, by listener.
    pub(super) fn facts(&self) -> Vec<TableFacts> {
        self.known.iter().map(|known| known.facts.clone()).collect()
    }

    /// Refreshes when it is time; returns when something has changed that sessions must know. May be dropped while it waits.
    pub(super) async fn changed(&mut self) {
        loop {
            tokio::select! {
                _ = self.ticks.tick() => {
                    if self.under_way.is_empty() && !self.config.rules.is_empty() {
                        self.began_at = self.counters.schema.defined();
                        self.refresh();
                    }
                }
                Some(done) = self.under_way.join_next() => {
                    let before = self.facts();
                    match done {
                        Ok(refreshed) => self.learn(refreshed),
                        // Who panicked has said so.
                        Err(_) => self.unseen_ids.forget(),
                    }
                    let is_other = self.facts() != before;
                    note_known(&self.known, &self.counters);
                    self.counters.schema.note_schema_refresh(self.began_at, is_other);
                    if is_other {
                        return;
                    }
                }
            }
        }
    }

    fn refresh(&mut self) {
        let has_passthrough = self.counters.traffic.passthrough() > 0;
        self.passthrough = self.passthrough.saturating_add(u64::from(has_passthrough));
        let (config, counters) = (Arc::clone(&self.config), Arc::clone(&self.counters));
        let refresh = refresh(config, counters, self.board.clone(), self.passthrough);
        self.under_way.spawn(refresh);
    }

    fn learn(&mut self, refreshed: Refreshed) {
        let Refreshed {
            servers,
            peer_reports,
        } = refreshed;
        match peer_reports {
            Some(peer_reports) => self.learn_of_unseen_ids(&servers, &peer_reports),
            None => self.unseen_ids.forget(),
        }
        let listeners = self.config.listeners.iter().zip(&mut self.known);
        for ((listener, known), server) in listeners.zip(servers) {
            if let Some(server) = server {
                known.learn(&listener.bind, server, &self.counters);
            }
        }
    }

    fn learn_of_unseen_ids(&mut self, servers: &[Option<Server>], peer_reports: &PeerReports) {
        let servers = servers.iter().flatten();
        let countings: Vec<&Counting> = servers.map(|server| &server.counting).collect();
        let (config, counters) = (&self.config, &self.counters);
        let own = unseen_ids::native_inserts(config, counters, self.passthrough);
        let output = self
            .unseen_ids
            .learn(config, &countings, &own, peer_reports, counters);
        for unseen in output {
            tracing::warn!("{}", unseen.report);
            let board = self.board.clone();
            tokio::spawn(async move {
                if let Err(failure) = board.note_unseen(unseen).await {
                    tracing::warn!(%failure, "check will not know of these ids");
                }
            });
        }
    }
}

/// Tells connections whose rules are older which tables there are by now, and which have triggers that may read LAST_INSERT_ID().
fn note_known(known: &[Known], counters: &Counters) {
    let listed = known.iter().map(|known| Arc::clone(&known.listed));
    counters.schema.note_listed(listed.collect());
    let watched = known.iter().flat_map(|known| known.facts.watched());
    counters.schema.note_watched(watched);
}

impl Known {
    fn learn(&mut self, listener: &str, server: Server, counters: &Counters) {
        let mut reported = Vec::new();
        for Finding {
            severity, message, ..
        } in server.findings
        {
            let is_new = !self.reported.contains(&message);
            match severity {
                Severity::LeftOut if is_new => tracing::error!(listener, "{message}"),
                // While the proxy runs, what would forbid its start forbids nothing.
                Severity::Error | Severity::Warning if is_new => {
                    tracing::warn!(listener, "{message}");
                }
                Severity::LeftOut | Severity::Error | Severity::Warning => {}
                Severity::Note => continue,
            }
            reported.push(message);
        }
        self.reported = reported;
        self.facts = server.facts;
        self.listed = server.listed;
        let identity = self.listed.server();
        if !identity.is_empty() {
            counters.new_tables.note_server(listener, identity);
        }
        counters.set(Metric::FenceMissing, [listener], server.unfenced);
    }
}

/// What the servers say, by listener.
///
/// # Errors
/// All that forbids to go on.
async fn inspect_all(
    config: &Config,
    board: &Switchboard,
    apply_fence: bool,
) -> Result<Vec<Server>> {
    let board = board.apart();
    let before = left_over::before(config, &board).await;
    let mut inspected = Vec::new();
    let mut errors = Vec::new();
    for listener in &config.listeners {
        let of_listener = check::inspect(config, listener, apply_fence).await;
        let findings = of_listener.findings.iter();
        errors.extend(
            findings
                .filter(|finding| finding.severity == Severity::Error)
                .map(|error| format!("{}: {}", listener.bind, error.message)),
        );
        inspected.push(of_listener);
    }
    errors.extend(check::unmatched(config, &inspected));
    if !errors.is_empty() {
        bail!(
            "{} problem(s) on the servers must be solved first:\n    {}",
            errors.len(),
            errors.join("\n    ")
        );
    }
    let inspected = inspected.into_iter().map(Some).collect();
    let servers = servers(config, (&board, before), inspected).await;
    Ok(servers.into_iter().flatten().collect())
}

/// With what is to be said of fences that are left.
async fn servers(
    config: &Config,
    (board, before): (&Switchboard, Option<Standing>),
    inspected: Vec<Option<Inspected>>,
) -> Vec<Option<Server>> {
    let snapshots: Vec<Option<&Snapshot>> = inspected
        .iter()
        .map(|of| of.as_ref().and_then(|of| of.snapshot.as_ref()))
        .collect();
    let left = left_over::fences(config, (board, before), &snapshots).await;
    let servers = inspected.into_iter().zip(left);
    let servers = servers.map(|(of, left)| {
        let mut server = Server::of(config, of?);
        server.findings.extend(left);
        Some(server)
    });
    servers.collect()
}

async fn refresh(
    config: Arc<Config>,
    counters: Arc<Counters>,
    board: Switchboard,
    passthrough: u64,
) -> Refreshed {
    // Before the tables are read: those that may be seen by now are read, too. To its end, also where a reload ends the refresh: statements may wait
    // for the answer.
    let tables = counters.schema.tables_to_ask(true);
    let asking = ask_about(Arc::clone(&config), Arc::clone(&counters), tables.into());
    // Who panicked has said so.
    let _ = tokio::spawn(asking).await;
    let apart = board.apart();
    // Before fences are set.
    try_to_forget_left(&config, &apart).await;
    let before = left_over::before(&config, &apart).await;
    let mut inspected = Vec::new();
    let mut is_all = true;
    for listener in &config.listeners {
        if listener.admin.is_none() {
            inspected.push(None);
            continue;
        }
        let read = check::read(&config, listener, Extent::Statements, true).await;
        inspected.push(match read {
            Ok(of_listener) => Some(of_listener),
            Err(error) => {
                counters.add(Metric::SchemaRefreshFailures, [], 1);
                is_all = false;
                let listener = &listener.bind;
                tracing::warn!(
                    listener,
                    "the tables could not be looked at again: {error:#}"
                );
                None
            }
        });
    }
    let servers = servers(&config, (&apart, before), inspected).await;
    // After the servers were read: what they have made has gone by before.
    let peer_reports = peer_reports(&config, &counters, &board, passthrough).await;
    Refreshed {
        servers,
        peer_reports: peer_reports.filter(|_| is_all),
    }
}

/// Notes in the store what went by this program, and reads what went by the others.
async fn peer_reports(
    config: &Arc<Config>,
    counters: &Arc<Counters>,
    board: &Switchboard,
    passthrough: u64,
) -> Option<PeerReports> {
    config.observing().next()?;
    let (config, counters) = (Arc::clone(config), Arc::clone(counters));
    let figures = move || unseen_ids::native_inserts(&config, &counters, passthrough);
    match board.note_native(figures).await {
        Ok(peer_reports) => Some(peer_reports),
        Err(failure) => {
            tracing::warn!(
                %failure,
                "what went by other programs is not known: nothing is said of ids that came by none"
            );
            None
        }
    }
}
