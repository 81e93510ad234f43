//! The snowflake bound: how far ahead to make it durable, and where to go on after a takeover.
//!
//! Durable is a moment, unix milliseconds, independent of the layout; it always lies on a tick of the layout that
//! wrote it. March persists `timestamp + lead` on a timer; here it is written before it is reached, and only while
//! ids are used.

use thiserror::Error;

use crate::layout::{BeforeEpoch, Layout};
use crate::writer::{Note, Writer};

/// What is known when states past the bound are needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BoundRequest {
    /// The layout of the states.
    pub layout: Layout,
    /// First state after those needed: [`crate::BoundReached::end`].
    pub need_state_end: u64,
    /// Virtual time, unix milliseconds.
    pub now_ms: i64,
    /// The bound that is durable today, unix milliseconds.
    pub bound_ms: Option<i64>,
    /// How much time to reserve past what is needed, milliseconds.
    pub window_ms: u64,
    /// How far ids may run ahead of virtual time, milliseconds.
    pub lead_ms_max: u64,
}

/// The bound to make durable, then to publish.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BoundPlan {
    /// To be made durable, unix milliseconds; never below the present one.
    pub bound_ms: i64,
    /// The same as a state: states below may be issued once it is durable.
    pub hi_state: u64,
}

/// Why the bound may not be moved so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum BoundRefusal {
    /// Ids would run too far ahead of the clock.
    #[error("ids would run {lead_ms} ms ahead of the clock; again in {retry_after_ms} ms")]
    TooFarAhead {
        /// How far ahead, milliseconds.
        lead_ms: u64,
        /// When the clock will have caught up enough, milliseconds from now.
        retry_after_ms: u64,
    },
    /// The layout has no time bits for it.
    #[error("the layout's time bits have run out")]
    LayoutRanOut,
    /// The clock reads a moment that no id is of.
    #[error(transparent)]
    BeforeEpoch(#[from] BeforeEpoch),
}

/// Plans the next bound: `window_ms` past the last tick needed, but no further than ids may run ahead.
///
/// Not past virtual time: after the wall clock was set back, virtual time stays ahead for good, and a bound drawn
/// from it would carry that lead over every restart. What is needed already includes the wall clock's reading.
///
/// So no tick is ever issued that begins later than `virtual time + lead_ms_max`: what a takeover without our record
/// relies on.
///
/// # Errors
/// [`BoundRefusal`]; nothing may be issued then.
pub fn plan_bound(request: &BoundRequest) -> Result<BoundPlan, BoundRefusal> {
    let layout = &request.layout;
    layout.check_begun(request.now_ms)?;
    let need_tick = request.need_state_end.saturating_sub(1) >> layout.sequence_bits();
    if need_tick > layout.ticks_max() {
        return Err(BoundRefusal::LayoutRanOut);
    }
    let lead_ms = layout.unix_ms_of(need_tick).saturating_sub(request.now_ms);
    let lead_ms = u64::try_from(lead_ms).unwrap_or(0);
    if lead_ms > request.lead_ms_max {
        let retry_after_ms = lead_ms - request.lead_ms_max;
        return Err(BoundRefusal::TooFarAhead {
            lead_ms,
            retry_after_ms,
        });
    }
    let today_ticks = request
        .bound_ms
        .map_or(0, |bound_ms| whole_ticks_before(layout, bound_ms));
    let lead_end_ms = add_ms(request.now_ms, request.lead_ms_max);
    let hi_ticks = window_end(layout, need_tick, request.window_ms, lead_end_ms).max(today_ticks);
    Ok(BoundPlan {
        bound_ms: layout
            .unix_ms_of(hi_ticks)
            .max(request.bound_ms.unwrap_or(i64::MIN)),
        hi_state: hi_ticks << layout.sequence_bits(),
    })
}

/// What was found in the store at a takeover.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Recorded {
    /// The durable bound, unix milliseconds. Databases of one server that share a worker id share one word: then
    /// this must be the highest bound that *any* of them made durable, or a crash makes one of them issue again
    /// what another had issued.
    pub bound_ms: i64,
    /// What stood beside it.
    pub note: Option<Note>,
}

impl Recorded {
    /// What to take for now at a start: the wall clock, unless it reads more than `jump_ms_max` past a bound of this very
    /// writer. Then nothing tells whether the server was off, or idle, for so long or the clock is wrong; a bound that
    /// followed it would stay there, so it is the bound.
    pub fn believe(&self, writer: &Writer, wall_ms: i64, jump_ms_max: u64) -> i64 {
        let is_ours = self.note.is_some_and(|note| note.is_of(writer));
        let latest_ms = add_ms(self.bound_ms, jump_ms_max);
        if is_ours && wall_ms > latest_ms {
            self.bound_ms
        } else {
            wall_ms
        }
    }
}

/// What is known at the first use since the server started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Takeover {
    /// The layout of the states.
    pub layout: Layout,
    /// The store's record; `None` when there is none.
    pub recorded: Option<Recorded>,
    /// Whether nothing was issued before, for certain, when there is no record: the number is the owner's word for it, or
    /// was registered for this very bound. Else it is taken that something was.
    pub is_vouched: bool,
    /// Who takes over.
    pub writer: Writer,
    /// The wall clock, unix milliseconds.
    pub now_ms: i64,
    /// How far ids may run ahead of time, milliseconds.
    pub lead_ms_max: u64,
    /// How far the clock of a lost original may have been ahead of ours, milliseconds.
    pub skew_ms_max: u64,
    /// How much time to reserve, milliseconds.
    pub window_ms: u64,
    /// [`crate::SnowflakeWord::next`] after [`crate::SnowflakeWord::drain`]: 0 after a crash; otherwise another database
    /// of the server used the word, and what lies below its bound is not covered by our record.
    pub word_next_state: u64,
}

/// Where to go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TakeoverPlan {
    /// The first state that may be issued. When it is not below `hi_state`, the layout has run out.
    pub start_state: u64,
    /// States below may be issued once `bound_ms` is durable.
    pub hi_state: u64,
    /// To be made durable before anything is published, unix milliseconds.
    pub bound_ms: i64,
    /// The first moment that may be issued, unix milliseconds: the floor of [`crate::VirtualClock::start_at`].
    pub start_ms: i64,
    /// How far it lies past the later of the recorded bound and now, milliseconds.
    pub gap_ms: u64,
    /// Why it starts there.
    pub reason: TakeoverReason,
}

/// Why a takeover starts where it does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TakeoverReason {
    /// There is no record. That does not mean nothing was issued: starts where the maximum lead ends.
    Fresh,
    /// There is no record, and it is certain that nothing was issued: starts now.
    Vouched,
    /// The record is our own: starts at the bound.
    SameWriter,
    /// The record is another's, who may have gone on after it reached us: starts past both the bound and the maximum
    /// lead, and the maximum skew further.
    ChangedWriter,
}

/// Plans a takeover.
///
/// Every database that begins to use a word takes it over, also while the server runs. Never below what the word in
/// memory has issued or may yet issue. Within one writer, never below the durable bound, so the
/// windows of two owners are disjoint whatever the clocks say. After another writer whose last bounds did not
/// reach us (asynchronous replication), what it issued lies below `its virtual time + lead_ms_max`; that is below our
/// start as long as its virtual time was at most `skew_ms_max` ahead of our wall clock.
///
/// All that by a clock that may be wrong, but not as wrong as one before the layout's epoch: by such a one every takeover without a record would begin at
/// the first tick.
///
/// # Errors
/// [`BeforeEpoch`]; nothing may be issued then.
pub fn plan_takeover(takeover: &Takeover) -> Result<TakeoverPlan, BeforeEpoch> {
    let layout = &takeover.layout;
    layout.check_begun(takeover.now_ms)?;
    // The tick that begins exactly where the lead ends may have been issued.
    let past_lead_ms = add_ms(takeover.now_ms, takeover.lead_ms_max).saturating_add(1);
    let (floor_ms, reason) = match takeover.recorded {
        None if takeover.is_vouched => (takeover.now_ms, TakeoverReason::Vouched),
        None => (past_lead_ms, TakeoverReason::Fresh),
        Some(Recorded {
            bound_ms,
            note: Some(note),
        }) if note.is_of(&takeover.writer) => (bound_ms, TakeoverReason::SameWriter),
        Some(Recorded {
            bound_ms,
            note: Some(_) | None,
        }) => {
            let past_both_ms = bound_ms.max(past_lead_ms);
            (
                add_ms(past_both_ms, takeover.skew_ms_max),
                TakeoverReason::ChangedWriter,
            )
        }
    };
    let start_state =
        (layout.ticks_from(floor_ms) << layout.sequence_bits()).max(takeover.word_next_state);
    let start_tick = start_state >> layout.sequence_bits();
    let now_tick = layout.state_at(takeover.now_ms) >> layout.sequence_bits();
    let start_ms = layout.unix_ms_of(start_tick);
    let lead_end_ms = add_ms(start_ms.max(takeover.now_ms), takeover.lead_ms_max);
    let hi_ticks = window_end(
        layout,
        start_tick.max(now_tick),
        takeover.window_ms,
        lead_end_ms,
    );
    let recorded_ms = takeover
        .recorded
        .map_or(i64::MIN, |recorded| recorded.bound_ms);
    let gap_ms = floor_ms.saturating_sub(recorded_ms.max(takeover.now_ms));
    Ok(TakeoverPlan {
        start_state,
        hi_state: hi_ticks << layout.sequence_bits(),
        bound_ms: layout.unix_ms_of(hi_ticks).max(recorded_ms),
        start_ms,
        gap_ms: u64::try_from(gap_ms).unwrap_or(0),
        reason,
    })
}

/// The tick at which a window past `tick` ends: no tick before it but `tick` itself begins after `lead_end_ms`, and
/// none is past the layout's last.
fn window_end(layout: &Layout, tick: u64, window_ms: u64, lead_end_ms: i64) -> u64 {
    let window_ticks = window_ms.div_ceil(u64::from(layout.tick_ms().max(1)));
    let last_tick = tick.max(whole_ticks_before(layout, lead_end_ms));
    tick.saturating_add(window_ticks)
        .min(last_tick)
        .min(layout.ticks_max())
        .saturating_add(1)
}

/// How many ticks end before a moment: those whose states lie below it for certain.
fn whole_ticks_before(layout: &Layout, unix_ms: i64) -> u64 {
    layout.state_at(unix_ms) >> layout.sequence_bits()
}

fn add_ms(unix_ms: i64, ms: u64) -> i64 {
    unix_ms.saturating_add(i64::try_from(ms).unwrap_or(i64::MAX))
}
