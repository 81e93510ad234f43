//! Writers past the programs: ids that tables of observing rules have made, and that no statement through a program asked for.
//!
//! Programs look at different moments. So ids are judged some looks later, when all programs have noted what went by them after the
//! ids were read.

use std::collections::{BTreeMap, BTreeSet};

use keywright_proxy::config::Config;
use keywright_proxy::metrics::{Counters, Metric};
use keywright_proxy::schema::{Count, Counting};
use keywright_proxy::switch::rule_name;
use keywright_store::switch::{NativeInserts, PeerReports, RuleName, Unseen};

/// A program that has noted nothing for so many looks has ended,
const GONE_LOOKS: u64 = 3;
/// and for at least so long, milliseconds.
const GONE_MS_MIN: u64 = 60_000;

/// What is known from earlier looks.
#[derive(Default)]
pub(super) struct UnseenIds {
    /// By server and table: the next id.
    next: BTreeMap<(String, String), u64>,
    /// By the rule's name.
    rules: BTreeMap<String, Known>,
}

/// What went by, by program.
type Figures = BTreeMap<String, NativeInserts>;

#[derive(Default)]
struct Known {
    /// When ids were judged last.
    last: Figures,
    /// When they were judged before that.
    before: Figures,
    /// Ids that statements may still make that have gone by before.
    under_way: u64,
    judged_next: Option<Read>,
    /// What was made after that.
    later: Made,
    ids: u64,
    first: String,
}

/// What is judged when all programs have noted what went by them after it was read.
struct Read {
    made: Made,
    /// By the store's clock, unix milliseconds.
    at_ms: u64,
}

/// Ids of one rule that were made between two looks.
#[derive(Default)]
struct Made {
    ids: u64,
    tables: BTreeSet<String>,
    at: String,
    accounts: Vec<String>,
    own_host: String,
}

/// Whether the programs have noted what went by them up to some moment.
enum Others {
    HaveNoted,
    WillNote,
    /// One has ended since, and what went by it last is not known.
    HaveEnded,
}

/// What went by this program on tables of rules that observe; `unread`: grows while connections are there that nobody reads.
pub(super) fn native_inserts(
    config: &Config,
    counters: &Counters,
    unread: u64,
) -> Vec<(RuleName, NativeInserts)> {
    let rules = config.observing();
    rules
        .map(|configured| {
            let native = counters.native(&configured.name());
            let native_inserts = NativeInserts {
                ids: native.ids_max,
                unknown: native.unknown.saturating_add(unread),
            };
            (rule_name(configured), native_inserts)
        })
        .collect()
}

impl UnseenIds {
    /// Forgets how far ids had come: tables may have gone over to keys meanwhile, and back.
    pub(super) fn forget(&mut self) {
        self.next.clear();
        self.rules.values_mut().for_each(Known::forget);
    }

    /// What has come otherwise, for people, and counted. `own`: what has gone by this program after the servers were read; `heard`:
    /// by the others.
    pub(super) fn learn(
        &mut self,
        config: &Config,
        looked: &[&Counting],
        own: &[(RuleName, NativeInserts)],
        peer_reports: &PeerReports,
        counters: &Counters,
    ) -> Vec<Unseen> {
        let gone_ms = config.schema_refresh_s.saturating_mul(GONE_LOOKS * 1_000);
        let gone_ms = gone_ms.max(GONE_MS_MIN);
        let mut reports = Vec::new();
        for (rule, made) in self.made(config, looked) {
            let Some(configured) = config.rules.get(rule) else {
                continue;
            };
            let (name, rule) = (configured.name(), rule_name(configured));
            let known = self.rules.entry(name.clone()).or_default();
            let now = figures(&rule, own, peer_reports);
            let at_ms = peer_reports.at_ms;
            let Some(read) = known.judged_next.take() else {
                known.begin(made, now, at_ms);
                continue;
            };
            known.later.add(made);
            match others(&rule, peer_reports, read.at_ms, gone_ms) {
                Others::HaveNoted => {
                    known.judged_next = Some(Read {
                        made: std::mem::take(&mut known.later),
                        at_ms,
                    });
                    let (unseen, report) = known.judge(read.made, now);
                    if unseen > 0 {
                        counters.add(Metric::IdsUnseen, [&name], unseen);
                    }
                    let ids = known.ids;
                    reports.extend(report.map(|report| Unseen { rule, ids, report }));
                }
                Others::WillNote => known.judged_next = Some(read),
                Others::HaveEnded => known.forget(),
            }
        }
        reports
    }

    /// By rule, what was made since the last look.
    fn made(&mut self, config: &Config, looked: &[&Counting]) -> BTreeMap<usize, Made> {
        let mut made: BTreeMap<usize, Made> = BTreeMap::new();
        let mut seen = BTreeSet::new();
        for counting in looked
            .iter()
            .filter(|counting| seen.insert(&counting.server))
        {
            for Count { rule, table, next } in &counting.counts {
                let its = made.entry(*rule).or_default();
                its.at.clone_from(&counting.at);
                let key = (counting.server.clone(), table.clone());
                let name = config.rules.get(*rule).map(|rule| rule.name());
                let known = name.and_then(|name| self.rules.get(&name));
                if known.is_none_or(|known| known.judged_next.is_none()) {
                    // What is under way now has gone by before anything is known.
                    self.next.remove(&key);
                    continue;
                }
                let before = self.next.insert(key, *next);
                let ids = before.map_or(0, |before| next.saturating_sub(before));
                if ids > 0 {
                    its.ids = its.ids.saturating_add(ids);
                    its.tables.insert(table.clone());
                    its.accounts.clone_from(&counting.accounts);
                    its.own_host.clone_from(&counting.own_host);
                }
            }
        }
        made
    }
}

fn figures(
    rule: &RuleName,
    own: &[(RuleName, NativeInserts)],
    peer_reports: &PeerReports,
) -> Figures {
    let own = own.iter().filter(|(of, _)| of == rule);
    let others = peer_reports
        .reports
        .iter()
        .filter(|report| report.rule == *rule);
    let others = others.map(|report| (report.program.clone(), report.native_inserts));
    // No program that the store knows has this name.
    own.map(|(_, native_inserts)| (String::new(), *native_inserts))
        .chain(others)
        .collect()
}

/// Up to the moment `read_ms`.
fn others(rule: &RuleName, peer_reports: &PeerReports, read_ms: u64, gone_ms: u64) -> Others {
    let mut found = Others::HaveNoted;
    let of_rule = peer_reports
        .reports
        .iter()
        .filter(|report| report.rule == *rule);
    for noted in of_rule.filter(|noted| noted.at_ms <= read_ms) {
        if peer_reports.at_ms.saturating_sub(noted.at_ms) < gone_ms {
            return Others::WillNote;
        }
        if read_ms.saturating_sub(noted.at_ms) < gone_ms {
            found = Others::HaveEnded;
        }
    }
    found
}

/// By all programs together.
fn ids_since(now: &Figures, then: &Figures) -> u64 {
    let ids = now.iter().map(|(program, now)| {
        let before = then.get(program).map_or(0, |then| then.ids);
        now.ids.saturating_sub(before)
    });
    ids.fold(0, u64::saturating_add)
}

/// Whether of all statements since it is known how many ids they made.
fn is_known_since(now: &Figures, then: &Figures) -> bool {
    now.iter().all(|(program, now)| {
        let before = then.get(program).map_or(0, |then| then.unknown);
        now.unknown == before
    })
}

impl Made {
    fn add(&mut self, made: Made) {
        let Made {
            ids,
            tables,
            at,
            accounts,
            own_host,
        } = made;
        self.at = at;
        if ids > 0 {
            self.ids = self.ids.saturating_add(ids);
            self.tables.extend(tables);
            self.accounts = accounts;
            self.own_host = own_host;
        }
    }
}

impl Known {
    fn forget(&mut self) {
        self.judged_next = None;
        self.later = Made::default();
        self.under_way = 0;
    }

    fn begin(&mut self, made: Made, now: Figures, at_ms: u64) {
        self.before.clone_from(&now);
        self.last = now;
        self.judged_next = Some(Read { made, at_ms });
    }

    /// How many ids came otherwise, and what is said of them.
    fn judge(&mut self, made: Made, now: Figures) -> (u64, Option<String>) {
        let may_be = ids_since(&now, &self.last).saturating_add(self.under_way);
        // What was counted before the last judgement may have made ids that were read after it.
        let unseen = match is_known_since(&now, &self.before) {
            true => made.ids.saturating_sub(may_be),
            false => 0,
        };
        // Of those that went by long ago none is under way.
        let rest = may_be.saturating_sub(made.ids);
        self.under_way = ids_since(&now, &self.before).min(rest);
        self.before = std::mem::replace(&mut self.last, now);
        if unseen == 0 {
            if self.ids == 0 {
                self.first = made.at;
            }
            return (0, None);
        }
        self.ids = self.ids.saturating_add(unseen);
        let Made {
            tables,
            at,
            accounts,
            own_host,
            ..
        } = made;
        let text = format!(
            "about {} ids of {} since {} UTC, the last before {at}, came by no INSERT through a program that knows the rule (those of procedures and triggers count as none): behind the fence such an INSERT fails. Accounts that the server \
             knows, with their connections: {}; the program comes from {own_host}",
            self.ids,
            tables.into_iter().collect::<Vec<_>>().join(", "),
            self.first,
            accounts.join(", "),
        );
        (unseen, Some(text))
    }
}

#[cfg(test)]
mod tests;
