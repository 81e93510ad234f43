//! Who may issue with which worker id: pure rules, the same in the service and in the simulation.
//!
//! A lease is a row with an owner, an epoch and a bound. Taking it is one transaction: epoch + 1, start at the old bound,
//! write a new one. Extending it is a compare-and-swap on (owner, epoch, bound). The windows of two owners are therefore
//! disjoint whatever clocks and pauses do; the time at which a lease expires only decides who may try to take it.
//! A process that takes a lease after it has lost one starts above what it has issued itself, too. And where the store has
//! gone back behind a bound that the process knows to be committed, it takes none: others may have issued above what the rows say.
//! Whoever knows of no such bound starts above all that anybody may have been granted before the store's server was started: an older state may
//! have been put back then, and who was granted more goes on below that until he finds it out. And above all that a row says somebody has seen.

pub mod fed;
pub(crate) mod marks;
mod no_lease;
mod reach;
pub(crate) mod space;
mod words;

use keywright_core::{
    BeforeEpoch, Layout, Note, Recorded, Takeover, TakeoverPlan, TakeoverReason, Writer,
    plan_takeover,
};
pub(crate) use no_lease::BEFORE_EPOCH_HINT;
pub use no_lease::NoLease;
pub(crate) use reach::{first_above, first_above_foreign, first_above_granted};
pub use words::{PartedWord, Words};

use crate::worker_ids::Leasable;

/// The row of a worker id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaseRow {
    /// The worker id.
    pub worker_id: u32,
    /// Who holds it; `None` after it was released.
    pub owner: Option<String>,
    /// Which machine and process that is, or was last, for people.
    pub holder: Option<String>,
    /// Counts owners.
    pub epoch: u64,
    /// The bound, unix milliseconds: states before it may have been issued.
    pub hi_ms: i64,
    /// The layout in which they were.
    pub layout: Layout,
    /// The server on which the bound was written.
    pub server: String,
    /// Whether others may try to take it, by the store's clock.
    pub expired: bool,
}

/// Who asks for a lease, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claimant {
    /// Unique to this process.
    pub owner: String,
    /// Only this worker id will do.
    pub wanted: Option<u32>,
    /// Largest worker id it may have.
    pub worker_id_max: u32,
    /// Others are set by hand, or assigned to databases.
    pub leasable: Leasable,
    /// The layout it will issue with.
    pub layout: Layout,
    /// The server we talk to.
    pub server: String,
    /// First state above all that this process may have issued so far, whatever a row says: 0 before its first lease.
    pub floor_state: u64,
    /// The lease that this process had last.
    pub last: Option<HeldLease>,
    /// The bound that the store was found to have gone back behind, until every row is at least there.
    pub gone_back_from_ms: Option<i64>,
    /// The generation of all leases that this process follows; `None`: whatever it is.
    pub generation: Option<u64>,
}

/// What the store says of all leases of a space at once.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Era {
    /// Counts how often tables went over to these keys, or left them.
    pub generation: u64,
    /// Keys begin at this moment or later, unix milliseconds.
    pub floor_ms: i64,
    /// The last moment at which the store's server may have been started, by the asker's clock, unless its own was set forward since, unix
    /// milliseconds; `None`: it has none that says so.
    pub started_ms: Option<i64>,
}

/// Limits and clocks of a takeover.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TakeoverLimits {
    /// The wall clock, unix milliseconds.
    pub now_ms: i64,
    /// How far ids may run ahead of time, milliseconds.
    pub lead_ms_max: u64,
    /// How far a lost original's clock may have been ahead of ours, milliseconds.
    pub skew_ms_max: u64,
    /// How much time to reserve, milliseconds.
    pub window_ms: u64,
}

impl TakeoverLimits {
    /// How far ahead of the clock somebody else may have been granted ids, milliseconds: what is left out where no bound says how far.
    pub fn gap_ms_max(&self) -> u64 {
        let past_lead_ms = self.lead_ms_max.saturating_add(1);
        past_lead_ms.saturating_add(self.skew_ms_max)
    }
}

/// A lease to be written, and what may be published once that is committed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Claim {
    /// The worker id.
    pub worker_id: u32,
    /// Epoch of the row found; `None` when a row must be made.
    pub epoch_found: Option<u64>,
    /// The new owner's epoch.
    pub epoch: u64,
    /// Bound of the row found, for the compare-and-swap.
    pub hi_found_ms: Option<i64>,
    /// Where to start and how far to go.
    pub plan: TakeoverPlan,
}

/// Decides which worker id to take over, from all rows, which are locked.
///
/// # Errors
/// [`NoLease`].
pub fn plan_claim(
    rows: &[LeaseRow],
    claimant: &Claimant,
    limits: &TakeoverLimits,
    era: &Era,
) -> Result<Claim, NoLease> {
    if let Some(followed) = claimant.generation.filter(|of| *of != era.generation) {
        return Err(NoLease::Superseded {
            followed,
            generation: era.generation,
        });
    }
    check_age(rows, claimant, era)?;
    let worker_id = choose(rows, claimant)?;
    let found = rows.iter().find(|row| row.worker_id == worker_id);
    // Also what somebody has seen of it.
    let granted_ms = granted_before_start_ms(era.started_ms, limits).max(seen_ms(rows));
    let floor_ms = era.floor_ms.max(granted_ms);
    let next_state = above_other_layouts(rows, &claimant.layout)
        .max(state_from(&claimant.layout, floor_ms))
        .max(claimant.floor_state);
    let recorded = recorded(found, claimant, limits.now_ms);
    let plan = plan_from(&claimant.layout, recorded, limits, next_state)?;
    if plan.start_state >= plan.hi_state {
        return Err(NoLease::LayoutRanOut {
            layout: claimant.layout.to_string(),
        });
    }
    check_layouts(rows, claimant, (plan.start_state, granted_ms))?;
    Ok(Claim {
        worker_id,
        epoch_found: found.map(|row| row.epoch),
        epoch: found.map_or(1, |row| row.epoch.saturating_add(1)),
        hi_found_ms: found.map(|row| row.hi_ms),
        plan,
    })
}

/// What was granted before the store's server was started lies before this moment, as what a bound of another server may lack does: if all have
/// these limits, and nobody had begun ahead of the clock just before. Since then nobody is granted anything but by what the rows say. 0: it has no
/// server that says when that was.
fn granted_before_start_ms(started_ms: Option<i64>, limits: &TakeoverLimits) -> i64 {
    let reach = |started_ms: i64| started_ms.saturating_add_unsigned(limits.gap_ms_max());
    started_ms.map_or(0, reach)
}

/// The highest bound that any row says was seen, unix milliseconds; 0: none does. The row may be that of another worker id, which nobody held then.
fn seen_ms(rows: &[LeaseRow]) -> i64 {
    marks::highest_ms(rows.iter().filter_map(|row| row.holder.as_deref()))
}

/// Where whoever takes a worker id over goes on, by what is recorded of it; never below `next_state`.
fn plan_from(
    layout: &Layout,
    recorded: Recorded,
    limits: &TakeoverLimits,
    next_state: u64,
) -> Result<TakeoverPlan, BeforeEpoch> {
    plan_takeover(&Takeover {
        layout: *layout,
        recorded: Some(recorded),
        is_vouched: false,
        writer: ANYONE,
        now_ms: limits.now_ms,
        lead_ms_max: limits.lead_ms_max,
        skew_ms_max: limits.skew_ms_max,
        window_ms: limits.window_ms,
        word_next_state: next_state,
    })
}

/// Servers are told apart by their full names, so the short mark of a note only says "the same one" or is absent.
const ANYONE: Writer = Writer {
    system_identifier: 0,
    timeline: 0,
    database_oid: 0,
    resets: 0,
};

/// A row that is not there may have been lost with the server that had it, and whoever issued by it may have a clock ahead
/// of ours: it counts as one of another server.
fn recorded(row: Option<&LeaseRow>, claimant: &Claimant, now_ms: i64) -> Recorded {
    let bound_ms = row.map_or(now_ms, |row| row.hi_ms);
    let same = row.is_some_and(|row| row.server == claimant.server);
    Recorded {
        bound_ms,
        note: same.then(|| Note::new(ANYONE, bound_ms, 1, 0)),
    }
}

/// Bounds only grow, so a lower one is of a store that was brought back from the past, with the bounds of all worker ids. One row
/// that is high again says nothing of the others: whoever takes a lease without having seen more raises only his own. On another
/// server commits may be missing, which the gap of a takeover covers. Where there is no row, ids begin where all do that have none.
fn check_age(rows: &[LeaseRow], claimant: &Claimant, era: &Era) -> Result<(), NoLease> {
    let Some(last) = claimant.last.as_ref() else {
        return Ok(());
    };
    let bound_ms = claimant.gone_back_from_ms.unwrap_or(last.published_ms);
    let row = rows.iter().find(|row| row.worker_id == last.worker_id);
    let is_its_behind = is_behind(row, bound_ms, era);
    let has_gone_back = match claimant.gone_back_from_ms {
        Some(_) => is_its_behind || rows.iter().any(|row| row.hi_ms < bound_ms),
        None => is_its_behind && last.server == claimant.server,
    };
    if has_gone_back {
        return Err(NoLease::GoneBack {
            worker_id: last.worker_id,
            bound_ms,
        });
    }
    Ok(())
}

/// Whether the store says less of a worker id than that its bound was committed. Where there is no row, ids begin where all do that have none.
pub(crate) fn is_behind(row: Option<&LeaseRow>, bound_ms: i64, era: &Era) -> bool {
    row.map_or(era.floor_ms, |row| row.hi_ms) < bound_ms
}

/// Whether somebody holds it, and has renewed it in time.
pub(crate) fn is_held(row: &LeaseRow) -> bool {
    row.owner.is_some() && !row.expired
}

fn may_take(row: &LeaseRow, claimant: &Claimant) -> bool {
    !is_held(row) || row.owner.as_ref() == Some(&claimant.owner)
}

fn choose(rows: &[LeaseRow], claimant: &Claimant) -> Result<u32, NoLease> {
    let row_of = |worker_id| rows.iter().find(|row| row.worker_id == worker_id);
    if let Some(request) = claimant.wanted {
        return match row_of(request) {
            Some(row) if !may_take(row, claimant) => Err(NoLease::InUse {
                worker_id: request,
                holder: row
                    .holder
                    .as_ref()
                    .or(row.owner.as_ref())
                    .cloned()
                    .unwrap_or_default(),
            }),
            Some(_) | None => Ok(request),
        };
    }
    let may_be =
        |worker_id: u32| worker_id <= claimant.worker_id_max && claimant.leasable.has(worker_id);
    let in_range = |row: &&LeaseRow| may_be(row.worker_id);
    let mine = rows
        .iter()
        .filter(in_range)
        .find(|row| row.owner.as_ref() == Some(&claimant.owner));
    let free = rows
        .iter()
        .filter(in_range)
        .filter(|row| may_take(row, claimant))
        .min_by_key(|row| row.worker_id);
    if let Some(row) = mine.or(free) {
        return Ok(row.worker_id);
    }
    (0..=claimant.worker_id_max)
        .find(|worker_id| may_be(*worker_id) && row_of(*worker_id).is_none())
        .ok_or(NoLease::NoneFree {
            worker_id_max: claimant.worker_id_max,
        })
}

/// The first state at or after the bounds of all rows in another layout: below it no id of ours can be above theirs.
fn above_other_layouts(rows: &[LeaseRow], layout: &Layout) -> u64 {
    rows.iter()
        .filter(|row| row.layout != *layout)
        .map(|row| state_from(layout, row.hi_ms))
        .max()
        .unwrap_or(0)
}

/// The first state whose tick begins at or after a moment.
fn state_from(layout: &Layout, unix_ms: i64) -> u64 {
    let state = layout.state_at(unix_ms);
    let begins_ms = layout.unix_ms_of(state >> layout.sequence_bits());
    if begins_ms < unix_ms {
        state.saturating_add(1 << layout.sequence_bits())
    } else {
        state
    }
}

/// Two layouts divide an id differently, so what is one worker's time may be another's worker id: ids of a new layout must
/// all be greater than every id of an old one, of any worker, also of one that was granted more than the rows say, up to `granted_ms`: but not where
/// programs have gone over to the new layout since.
fn check_layouts(
    rows: &[LeaseRow],
    claimant: &Claimant,
    (start_state, granted_ms): (u64, i64),
) -> Result<(), NoLease> {
    let new = &claimant.layout;
    let smallest = new.smallest_id_from(start_state >> new.sequence_bits());
    for row in rows.iter().filter(|row| row.layout != *new) {
        if !may_take(row, claimant) {
            return Err(NoLease::OtherLayout {
                worker_id: row.worker_id,
                layout: row.layout.to_string(),
            });
        }
        let used_ms = match is_left(row, rows, new) {
            true => row.hi_ms,
            false => row.hi_ms.max(granted_ms),
        };
        let used = state_from(&row.layout, used_ms) >> row.layout.sequence_bits();
        if smallest <= row.layout.largest_id_below(used) {
            return Err(NoLease::LayoutOverlap {
                worker_id: row.worker_id,
                old: row.layout.to_string(),
                new: new.to_string(),
            });
        }
    }
    Ok(())
}

/// Whether nobody has the row's worker id, and the new layout was leased above its bound. Otherwise a layout that was left long ago, whose ids grow faster,
/// would be in the way behind each start of the store's server.
fn is_left(row: &LeaseRow, rows: &[LeaseRow], new: &Layout) -> bool {
    row.owner.is_none()
        && rows
            .iter()
            .any(|of| of.layout == *new && of.hi_ms > row.hi_ms)
}

/// What this process knows of its lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldLease {
    /// The worker id.
    pub worker_id: u32,
    /// Who we are.
    pub owner: String,
    /// Our epoch.
    pub epoch: u64,
    /// The last bound whose commit is known, unix milliseconds.
    pub published_ms: i64,
    /// The last bound that was sent, whatever became of it.
    pub attempted_ms: i64,
    /// The server on which it was taken.
    pub server: String,
    /// The generation of all leases then.
    pub generation: u64,
}

/// Whether a lease is still ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// It is, with this bound: the one published, or the one sent last, whose outcome was not known until now.
    Ours {
        /// Unix milliseconds.
        hi_ms: i64,
    },
    /// It is not, or cannot be told from one that is not: stop.
    Lost,
}

/// Compares the row found, which is locked, with what we know.
///
/// Another server than the one that granted the lease may have lost what was written since, and may have granted it to
/// somebody else: it is taken over anew.
pub fn standing(row: Option<&LeaseRow>, held: &HeldLease, server: &str) -> Standing {
    match row {
        Some(row)
            if row.owner.as_deref() == Some(held.owner.as_str())
                && row.epoch == held.epoch
                && held.server == server
                && row.server == server
                && (row.hi_ms == held.published_ms || row.hi_ms == held.attempted_ms) =>
        {
            Standing::Ours { hi_ms: row.hi_ms }
        }
        Some(_) | None => Standing::Lost,
    }
}

impl Claim {
    /// Why it starts where it does, in words, for the log.
    pub fn reason(&self) -> &'static str {
        match (self.epoch_found, self.plan.reason) {
            (None, _) | (Some(_), TakeoverReason::Fresh | TakeoverReason::Vouched) => {
                "never leased before"
            }
            (Some(_), TakeoverReason::SameWriter) => "leased before on this server",
            (Some(_), TakeoverReason::ChangedWriter) => "leased before on another server",
        }
    }
}

#[cfg(test)]
mod tests;
