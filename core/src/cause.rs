//! Every way to fail, in one table: what programs see of it, on PostgreSQL, on MySQL and in metrics.

/// Why a call failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(
    missing_docs,
    reason = "each is its row of the table, where its name and codes are"
)]
pub enum Cause {
    NotPreloaded,
    TagUnknown,
    TagExists,
    TagInvalid,
    TagExhausted,
    TagsFull,
    WorkersFull,
    ReadOnly,
    RefillTimeout,
    Suspended,
    WorkerIdUnset,
    WorkerIdInUse,
    LayoutInvalid,
    LayoutRanOut,
    LayoutOverlap,
    ZoneInvalid,
    ClockBehind,
    LeadExceeded,
    ArgumentOutOfRange,
    ArgumentNull,
    IdForeign,
    Privilege,
    Serialization,
    VersionMismatch,
    AdoptRefused,
    InExtensionScript,
    NotPromoted,
    BoundDamaged,
    IdentityUncommitted,
    StatementUnsupported,
    KeyExplicit,
    StoreUnavailable,
    TableAhead,
    UpstreamUnreachable,
    ConnectionsFull,
    MemoryFull,
    PacketTooLarge,
    PacketMalformed,
    AuthUnsupported,
    TlsRequired,
    UpstreamTls,
    SocketAccount,
    LoginTimeout,
    Draining,
}

struct Row {
    name: &'static str,
    sqlstate: &'static str,
    mysql_errno: u16,
    retryable: bool,
    label: &'static str,
}

/// MySQL's "failed to read auto-increment value": what an application expects when no key can be issued.
const NO_KEY: u16 = 1467;
/// "Incorrect arguments".
const ARGUMENTS: u16 = 1210;
/// "Access denied for the operation".
const DENIED: u16 = 1227;

impl Cause {
    /// Those that a PostgreSQL client can meet.
    pub const OF_POSTGRES: [Self; 29] = [
        Self::NotPreloaded,
        Self::TagUnknown,
        Self::TagExists,
        Self::TagInvalid,
        Self::TagExhausted,
        Self::TagsFull,
        Self::WorkersFull,
        Self::ReadOnly,
        Self::RefillTimeout,
        Self::Suspended,
        Self::WorkerIdUnset,
        Self::WorkerIdInUse,
        Self::LayoutInvalid,
        Self::LayoutRanOut,
        Self::LayoutOverlap,
        Self::ZoneInvalid,
        Self::ClockBehind,
        Self::LeadExceeded,
        Self::ArgumentOutOfRange,
        Self::ArgumentNull,
        Self::IdForeign,
        Self::Privilege,
        Self::Serialization,
        Self::VersionMismatch,
        Self::AdoptRefused,
        Self::InExtensionScript,
        Self::NotPromoted,
        Self::BoundDamaged,
        Self::IdentityUncommitted,
    ];

    /// Those that only a client of the MySQL proxy can meet.
    pub const OF_PROXY: [Self; 15] = [
        Self::StatementUnsupported,
        Self::KeyExplicit,
        Self::StoreUnavailable,
        Self::TableAhead,
        Self::UpstreamUnreachable,
        Self::ConnectionsFull,
        Self::MemoryFull,
        Self::PacketTooLarge,
        Self::PacketMalformed,
        Self::AuthUnsupported,
        Self::TlsRequired,
        Self::UpstreamTls,
        Self::SocketAccount,
        Self::LoginTimeout,
        Self::Draining,
    ];

    /// The table: name, SQLSTATE, MySQL error number, whether the same call may succeed later by itself, label.
    #[rustfmt::skip]
    const fn row(self) -> Row {
        match self {
            Self::NotPreloaded       => Row::of("not_preloaded", "55000", NO_KEY, false, "setup"),
            Self::TagUnknown         => Row::of("tag_unknown", "42704", NO_KEY, false, "input"),
            Self::TagExists          => Row::of("tag_exists", "42710", ARGUMENTS, false, "input"),
            Self::TagInvalid         => Row::of("tag_invalid", "22023", ARGUMENTS, false, "input"),
            Self::TagExhausted       => Row::of("tag_exhausted", "2200H", NO_KEY, false, "capacity"),
            Self::TagsFull           => Row::of("tags_full", "53400", NO_KEY, false, "capacity"),
            Self::WorkersFull        => Row::of("workers_full", "53400", NO_KEY, false, "capacity"),
            Self::ReadOnly           => Row::of("read_only", "25006", 1792, false, "state"),
            Self::RefillTimeout      => Row::of("refill_timeout", "55P03", 1205, true, "store"),
            Self::Suspended             => Row::of("suspended", "55000", NO_KEY, false, "state"),
            Self::WorkerIdUnset      => Row::of("worker_id_unset", "55000", NO_KEY, false, "setup"),
            Self::WorkerIdInUse      => Row::of("worker_id_in_use", "55006", NO_KEY, false, "setup"),
            Self::LayoutInvalid      => Row::of("layout_invalid", "22023", ARGUMENTS, false, "input"),
            Self::LayoutRanOut       => Row::of("layout_ran_out", "2200H", NO_KEY, false, "capacity"),
            Self::LayoutOverlap      => Row::of("layout_overlap", "55000", ARGUMENTS, false, "input"),
            Self::ZoneInvalid        => Row::of("zone_invalid", "22023", ARGUMENTS, false, "input"),
            Self::ClockBehind        => Row::of("clock_behind", "55000", NO_KEY, true, "clock"),
            Self::LeadExceeded       => Row::of("lead_exceeded", "53400", NO_KEY, true, "clock"),
            Self::ArgumentOutOfRange => Row::of("argument_out_of_range", "22003", 1690, false, "input"),
            Self::ArgumentNull       => Row::of("argument_null", "22004", 1048, false, "input"),
            Self::IdForeign          => Row::of("id_foreign", "22003", 1690, false, "input"),
            Self::Privilege          => Row::of("privilege", "42501", DENIED, false, "access"),
            Self::Serialization      => Row::of("serialization", "40001", 1213, true, "state"),
            Self::VersionMismatch    => Row::of("version_mismatch", "55000", NO_KEY, false, "setup"),
            Self::AdoptRefused       => Row::of("adopt_refused", "55000", ARGUMENTS, false, "input"),
            Self::InExtensionScript  => Row::of("in_extension_script", "0A000", 1235, false, "setup"),
            Self::NotPromoted        => Row::of("not_promoted", "55000", ARGUMENTS, false, "input"),
            Self::BoundDamaged       => Row::of("bound_damaged", "XX001", NO_KEY, false, "damage"),
            Self::IdentityUncommitted => Row::of("identity_uncommitted", "55000", NO_KEY, false, "state"),
            Self::StatementUnsupported => Row::of("statement_unsupported", "42000", 1235, false, "input"),
            Self::KeyExplicit          => Row::of("key_explicit", "HY000", 3105, false, "input"),
            Self::StoreUnavailable     => Row::of("store_unavailable", "HY000", NO_KEY, true, "store"),
            Self::TableAhead           => Row::of("table_ahead", "HY000", NO_KEY, false, "state"),
            Self::UpstreamUnreachable  => Row::of("upstream_unreachable", "08S01", 1158, true, "upstream"),
            Self::ConnectionsFull      => Row::of("connections_full", "08004", 1040, true, "capacity"),
            Self::MemoryFull           => Row::of("memory_full", "HY000", 1041, true, "capacity"),
            Self::PacketTooLarge       => Row::of("packet_too_large", "08S01", 1153, false, "input"),
            Self::PacketMalformed      => Row::of("packet_malformed", "08S01", 1156, false, "input"),
            Self::AuthUnsupported      => Row::of("auth_unsupported", "08004", 1251, false, "access"),
            Self::TlsRequired          => Row::of("tls_required", "HY000", 3159, false, "access"),
            Self::UpstreamTls          => Row::of("upstream_tls", "08S01", 1043, false, "access"),
            Self::SocketAccount        => Row::of("socket_account", "28000", 1698, false, "access"),
            Self::LoginTimeout         => Row::of("login_timeout", "08S01", 1159, true, "access"),
            Self::Draining             => Row::of("draining", "08S01", 1053, true, "state"),
        }
    }

    /// The cause's name, as in documentation and logs.
    pub const fn name(self) -> &'static str {
        self.row().name
    }

    /// What PostgreSQL clients get: five characters of `[0-9A-Z]`.
    pub const fn sqlstate(self) -> &'static str {
        self.row().sqlstate
    }

    /// What MySQL clients get.
    pub const fn mysql_errno(self) -> u16 {
        self.row().mysql_errno
    }

    /// Whether the same call may succeed later without anybody doing anything.
    pub const fn retryable(self) -> bool {
        self.row().retryable
    }

    /// The kind of cause, for metrics: few values, so that a time series per label stays cheap.
    pub const fn label(self) -> &'static str {
        self.row().label
    }
}

impl Row {
    const fn of(
        name: &'static str,
        sqlstate: &'static str,
        mysql_errno: u16,
        retryable: bool,
        label: &'static str,
    ) -> Self {
        Self {
            name,
            sqlstate,
            mysql_errno,
            retryable,
            label,
        }
    }
}
