//! Every setting of the extension, defined in one place. What a setting means for a user is in the
//! README; none of them can change who this database is (worker id, layout): that is recorded by SQL.

use std::ffi::CString;
use std::sync::OnceLock;

use keywright_core::cause::Cause;
use keywright_core::policy::ClockPolicy;
use keywright_core::source::SourceSetting;
use keywright_core::tag::Tag;
use pgrx::{GucContext, GucEnum, GucFlags, GucRegistry, GucSetting, PostgresGucEnum};

use crate::failure::Failure;
use crate::server::guc;

/// What to do while the clock reads earlier than it did: the setting's spelling of [`ClockPolicy`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PostgresGucEnum)]
pub enum PolicyChoice {
    #[name = c"carry"]
    Carry,
    #[name = c"wait"]
    Wait,
    #[name = c"refuse"]
    Refuse,
    #[name = c"spare_worker"]
    SpareWorker,
}

impl From<PolicyChoice> for ClockPolicy {
    fn from(choice: PolicyChoice) -> Self {
        match choice {
            PolicyChoice::Carry => Self::Carry,
            PolicyChoice::Wait => Self::Wait,
            PolicyChoice::Refuse => Self::Refuse,
            PolicyChoice::SpareWorker => Self::SpareWorker,
        }
    }
}

static CLOCK_POLICY: GucSetting<PolicyChoice> =
    GucSetting::<PolicyChoice>::new(PolicyChoice::Carry);
static CLOCK_WAIT_MS_MAX: GucSetting<i32> = GucSetting::<i32>::new(1_000);
static CLOCK_JUMP_MS_MAX: GucSetting<i32> = GucSetting::<i32>::new(600_000);
static START_JUMP_DAYS_MAX: GucSetting<i32> = GucSetting::<i32>::new(366);
static LEAD_MS_MAX: GucSetting<i32> = GucSetting::<i32>::new(10_000);
static BOUND_WINDOW_MS: GucSetting<i32> = GucSetting::<i32>::new(5_000);
static FAILOVER_SKEW_MS_MAX: GucSetting<i32> = GucSetting::<i32>::new(10_000);
static REFILL_THRESHOLD_PERCENT: GucSetting<i32> = GucSetting::<i32>::new(50);
static REFILL_WAIT_MS_MAX: GucSetting<i32> = GucSetting::<i32>::new(10_000);
static REFILL_COVER_S: GucSetting<i32> = GucSetting::<i32>::new(600);
static FED_COVER_S: GucSetting<i32> = GucSetting::<i32>::new(1_200);
static IDS_PER_CALL_MAX: GucSetting<i32> = GucSetting::<i32>::new(10_000);
static TAGS_MAX: GucSetting<i32> = GucSetting::<i32>::new(1_024);
static WORKERS_MAX: GucSetting<i32> = GucSetting::<i32>::new(64);
static SOURCE: GucSetting<Option<CString>> = GucSetting::<Option<CString>>::new(Some(c"native"));
/// What it says; read when the server starts, before it has other processes.
static SOURCES: OnceLock<SourceSetting> = OnceLock::new();

/// Whether this session's clock policy is `carry`, for the path that runs once per id.
#[inline]
pub fn carries() -> bool {
    guc::choice(&CLOCK_POLICY) == PolicyChoice::Carry.to_ordinal()
}

/// Clock policy of this session.
pub fn clock_policy() -> ClockPolicy {
    CLOCK_POLICY.get().into()
}

/// Longest wait of policy `wait` for the clock to catch up, in milliseconds.
pub fn clock_wait_ms_max() -> u64 {
    non_negative(&CLOCK_WAIT_MS_MAX)
}

/// Largest forward step of the running clock that is followed, in milliseconds.
pub fn clock_jump_ms_max() -> u64 {
    non_negative(&CLOCK_JUMP_MS_MAX)
}

/// How far past the recorded bound the clock is believed at the first use after a start, in milliseconds.
pub fn start_jump_ms_max() -> u64 {
    non_negative(&START_JUMP_DAYS_MAX).saturating_mul(86_400_000)
}

/// How far ids may run ahead of the clock, in milliseconds.
pub fn lead_ms_max() -> u64 {
    non_negative(&LEAD_MS_MAX)
}

/// How far ahead of need a time bound is made durable, in milliseconds.
pub fn bound_window_ms() -> u64 {
    non_negative(&BOUND_WINDOW_MS)
}

/// Safety gap of snowflake ids after a changed writer, in milliseconds.
pub fn failover_skew_ms_max() -> u64 {
    non_negative(&FAILOVER_SKEW_MS_MAX)
}

/// Part of a reservation, in percent, that is left when the next refill starts.
pub fn refill_threshold_percent() -> u32 {
    u32::try_from(REFILL_THRESHOLD_PERCENT.get()).unwrap_or(0)
}

/// Longest wait for a refill, in milliseconds.
pub fn refill_wait_ms_max() -> u64 {
    non_negative(&REFILL_WAIT_MS_MAX)
}

/// How long one reservation should last under the present load, in milliseconds.
pub fn refill_cover_ms() -> u64 {
    non_negative(&REFILL_COVER_S).saturating_mul(1_000)
}

/// How long one range of a fed tag should last under the present load, in milliseconds.
pub fn fed_cover_ms() -> u64 {
    non_negative(&FED_COVER_S).saturating_mul(1_000)
}

/// Most ids one call may ask for.
pub fn ids_per_call_max() -> u64 {
    non_negative(&IDS_PER_CALL_MAX)
}

/// Tags that shared memory has room for.
pub fn tags_max() -> usize {
    usize::try_from(TAGS_MAX.get()).unwrap_or(1)
}

/// Snowflake and readable words that shared memory has room for.
pub fn workers_max() -> usize {
    usize::try_from(WORKERS_MAX.get()).unwrap_or(1)
}

/// How often tags of this name were moved to a store, as the server was told; 0: never.
pub fn moves_of(tag: &Tag) -> u32 {
    // Without it nothing was preloaded, and nothing issues.
    let sources = SOURCES.get();
    sources.map_or(u32::MAX, |sources| sources.number_of(tag))
}

/// What `keywright.source` says, for messages.
pub fn source() -> String {
    let text = SOURCE.get();
    text.map_or(String::new(), |text| text.to_string_lossy().into_owned())
}

/// The server refuses values below a setting's minimum, none of which is negative.
fn non_negative(setting: &'static GucSetting<i32>) -> u64 {
    u64::try_from(setting.get()).unwrap_or(0)
}

/// One whole-number setting as it is handed to the server.
struct Number {
    name: &'static std::ffi::CStr,
    short: &'static std::ffi::CStr,
    long: &'static std::ffi::CStr,
    setting: &'static GucSetting<i32>,
    range: (i32, i32),
    context: GucContext,
    unit: GucFlags,
}

impl Number {
    fn define(self) {
        GucRegistry::define_int_guc(
            self.name,
            self.short,
            self.long,
            self.setting,
            self.range.0,
            self.range.1,
            self.context,
            self.unit,
        );
    }
}

/// Defines the settings that any backend may define.
pub fn define() {
    GucRegistry::define_enum_guc(
        c"keywright.clock_policy",
        c"What snowflake ids do while the clock reads earlier than it did.",
        c"carry: go on from the last id. wait: wait up to clock_wait_ms_max, then refuse. refuse: an error. \
          spare_worker: use the layout's spare bit for the first step back, then carry.",
        &CLOCK_POLICY,
        GucContext::Suset,
        GucFlags::default(),
    );
    for number in clock_numbers().into_iter().chain(refill_numbers()) {
        number.define();
    }
}

fn clock_numbers() -> [Number; 6] {
    let ms = |name, short, long, setting, range| Number {
        name,
        short,
        long,
        setting,
        range,
        context: GucContext::Suset,
        unit: GucFlags::UNIT_MS,
    };
    [
        ms(
            c"keywright.clock_wait_ms_max",
            c"Longest wait of clock policy wait for the clock to catch up.",
            c"A clock that is further behind is refused at once.",
            &CLOCK_WAIT_MS_MAX,
            (0, 3_600_000),
        ),
        ms(
            c"keywright.clock_jump_ms_max",
            c"Largest forward step of the running clock that ids follow.",
            c"A larger step is reported and not followed, so that it cannot push the bound into the far future.",
            &CLOCK_JUMP_MS_MAX,
            (1_000, i32::MAX),
        ),
        Number {
            name: c"keywright.start_jump_days_max",
            short: c"How far past its recorded bound the clock is believed at the first use after a start.",
            long: c"A clock that reads later is reported and not followed; ids go on from the bound.",
            setting: &START_JUMP_DAYS_MAX,
            range: (1, 1_000_000),
            context: GucContext::Suset,
            unit: GucFlags::default(),
        },
        ms(
            c"keywright.lead_ms_max",
            c"How far snowflake ids may run ahead of the clock during a burst.",
            c"At this lead calls wait for the clock; a call that waits too long fails and can be retried.",
            &LEAD_MS_MAX,
            (100, 3_600_000),
        ),
        ms(
            c"keywright.bound_window_ms",
            c"How far ahead the time bound of snowflake ids is made durable.",
            c"One write-ahead log flush buys this much time; a crash may skip this much.",
            &BOUND_WINDOW_MS,
            (100, 600_000),
        ),
        ms(
            c"keywright.failover_skew_ms_max",
            c"Gap left in snowflake ids when another writer wrote the bound (promotion, restored copy).",
            c"Should cover replication lag and clock difference between the servers.",
            &FAILOVER_SKEW_MS_MAX,
            (0, i32::MAX),
        ),
    ]
}

fn refill_numbers() -> [Number; 5] {
    [
        Number {
            name: c"keywright.refill_threshold_percent",
            short: c"Part of a reservation still left when the next refill starts.",
            long: c"A higher value refills earlier and leaves more time for a slow flush or standby.",
            setting: &REFILL_THRESHOLD_PERCENT,
            range: (1, 99),
            context: GucContext::Suset,
            unit: GucFlags::default(),
        },
        Number {
            name: c"keywright.refill_wait_ms_max",
            short: c"Longest wait for a refill before a call fails.",
            long: c"The wait can be cancelled, and statement_timeout applies to it.",
            setting: &REFILL_WAIT_MS_MAX,
            range: (1, 3_600_000),
            context: GucContext::Userset,
            unit: GucFlags::UNIT_MS,
        },
        Number {
            name: c"keywright.refill_cover_s",
            short: c"How long one reservation should last under the present load.",
            long: c"The step of a tag doubles while reservations last less than half of this and halves when they last more than twice as long.",
            setting: &REFILL_COVER_S,
            range: (1, 86_400),
            context: GucContext::Suset,
            unit: GucFlags::UNIT_S,
        },
        Number {
            name: c"keywright.fed_cover_s",
            short: c"How long one range of a fed tag should last under the present load.",
            long: c"Feeder and store may be away for half of this at least. A range of a restarted server is lost.",
            setting: &FED_COVER_S,
            range: (1, 86_400),
            context: GucContext::Suset,
            unit: GucFlags::UNIT_S,
        },
        Number {
            name: c"keywright.ids_per_call_max",
            short: c"Most ids that one call of snowflake_ids or next_biz_ids may ask for.",
            long: c"",
            setting: &IDS_PER_CALL_MAX,
            range: (1, 1_000_000),
            context: GucContext::Suset,
            unit: GucFlags::default(),
        },
    ]
}

/// Defines the settings that need a restart; only while the server preloads libraries, because
/// defining them later ends the connection.
///
/// # Errors
/// What the server was told of tags that were moved cannot be read: it must not start with less.
pub fn define_for_life() -> Result<(), Failure> {
    define_sizes();
    guc::define_source(
        [
            c"keywright.source",
            c"Tags that are fed from a store, whatever an old catalogue says, and how often they were moved.",
            c"native; fed:1 for all tags of the server; orders=fed:1, parcels=fed:2 for those that are named. Set it on every standby first, and keep it; \
              changing it needs a restart of the server.",
        ],
        &SOURCE,
    );
    // Only where all are defined, or these would count as misspelt.
    guc::refuse_unknown_settings();
    let parsed = SourceSetting::parse(&source()).map_err(|error| {
        Failure::new(
            Cause::ArgumentOutOfRange,
            format!("keywright.source cannot be read: {error}"),
        )
        .hint("For instance keywright.source = 'orders=fed:1'; a server that does not know which tags were moved must not issue.")
    })?;
    SOURCES.get_or_init(|| parsed);
    Ok(())
}

fn define_sizes() {
    let size = |name, short, setting, range| Number {
        name,
        short,
        long: c"Changing it needs a restart of the server.",
        setting,
        range,
        context: GucContext::Postmaster,
        unit: GucFlags::default(),
    };
    size(
        c"keywright.tags_max",
        c"Tags of all databases together that shared memory has room for.",
        &TAGS_MAX,
        (1, 65_536),
    )
    .define();
    size(
        c"keywright.workers_max",
        c"Worker ids and readable key spaces of all databases together that shared memory has room for.",
        &WORKERS_MAX,
        (1, 4_096),
    )
    .define();
}
