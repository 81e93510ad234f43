//! Every way to fail, in one table: what programs see of it, on PostgreSQL, on MySQL, over the Redis protocol, over HTTP and in metrics.

use std::borrow::Cow;

/// Why a call failed. The comment on each is what the documentation says of it; name and codes are in the table below.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Cause {
    /// Keywright is not in `shared_preload_libraries`. Add it there and restart the server.
    NotPreloaded,
    /// There is no such tag. Create it, or correct its name.
    TagUnknown,
    /// The tag already exists.
    TagExists,
    /// The text is not a valid tag name: a tag has 1 to 128 ASCII letters, digits or characters of `_ - . : / @ # $`.
    TagInvalid,
    /// The tag has reached the end of its range. If the column has room for larger ids, raise the tag's `max` (PostgreSQL) or `id_max` (in the store).
    TagExhausted,
    /// Shared memory has no room for another tag. Raise `keywright.tags_max`, which takes a restart.
    TagsFull,
    /// Shared memory has no room for another worker id or bucket. Raise `keywright.workers_max`, which takes a restart. In the program: all worker ids or
    /// buckets that may be leased are in use, or may still be in use. The message says when one is free.
    WorkersFull,
    /// The transaction is read-only, or the server is a standby. Functions that manage ids are refused there, too.
    ReadOnly,
    /// No id came in time. On PostgreSQL a lock, another refill or a synchronous standby took too long, or the holder of the lock waits for this transaction;
    /// the detail names the process. In the program the store is slow, or a refill took longer than `wait_ms_max`.
    RefillTimeout,
    /// The issuer has stopped, because its ownership is in doubt. On PostgreSQL the worker id or bucket was given to another database, the database is a
    /// copy, or a store that assigns worker ids found another database with the same mark. Set a worker id, or have one assigned
    /// (`keywright worker assign --new`). In the program the Redis that ranges come from was restarted, or another one has taken its place. Run
    /// `keywright advance`.
    Suspended,
    /// The database has no worker id or, for readable ids, no bucket. Call `keywright.set_worker_id`, or run `keywright worker assign`. On a key port:
    /// clients of Leaf get snowflake ids only if `[snowflake]` sets the worker id of the program.
    WorkerIdUnset,
    /// Another database of this server has the worker id or bucket, or nobody knows how far it was used. Take another one, or name with `above` a moment
    /// later than all its ids.
    WorkerIdInUse,
    /// There is no such layout, or its fields do not fit into an id.
    LayoutInvalid,
    /// The layout has no more time. Set a layout with a later epoch or more time bits.
    LayoutRanOut,
    /// New ids could repeat old ones: after a change of the layout or of the time zone, or after a dump was restored into the database. The hint says when
    /// they no longer can.
    LayoutOverlap,
    /// The time zone is not a fixed offset from UTC, or the offset is too large.
    ZoneInvalid,
    /// The clock reads earlier than before, and the clock policy is `wait` or `refuse`. Or it reads a moment before the layout's epoch (in the program, for
    /// readable ids, before 2000): set the clock, or give the layout an epoch in the past.
    ClockBehind,
    /// A burst ran further ahead of the clock than `lead_ms_max` allows.
    LeadExceeded,
    /// An argument is outside of its range. The message names both.
    ArgumentOutOfRange,
    /// An argument that must have a value is NULL.
    ArgumentNull,
    /// The number or text is not an id of this layout or form.
    IdForeign,
    /// The role may not use the tag. `keywright.grant_tag` allows it.
    Privilege,
    /// Another transaction changed the tag, layout or time zone after this REPEATABLE READ transaction began. Retry.
    Serialization,
    /// The library does not support the installed SQL, or the extension is not installed, or was dropped meanwhile. After an upgrade restart the server, then
    /// run `ALTER EXTENSION keywright UPDATE`.
    VersionMismatch,
    /// The column cannot be adopted or released. The message says why.
    AdoptRefused,
    /// A function that manages ids was called in the script of an extension.
    InExtensionScript,
    /// A function that issues or manages ids was called in a parallel query, by a function that is wrongly marked `PARALLEL SAFE` or `PARALLEL RESTRICTED`.
    /// Mark it `PARALLEL UNSAFE`.
    InParallelQuery,
    /// This database has no bound from before a promotion or from another server, so there is no promotion to report on.
    NotPromoted,
    /// The tables of keywright are damaged, or one of its sequences is lower than it was (`setval` by hand, `ALTER SUBSCRIPTION … REFRESH SEQUENCES`), or a
    /// tag was restored without its bound, or `pg_resetwal` lost it. A lower sequence is put back: run the statement again. For a tag without its bound say
    /// with `keywright.advance_tag` how far it was used.
    BoundDamaged,
    /// Something other than keywright's functions changes its tables or sequences: a statement by hand, a subscription, `SET UNLOGGED`, `ALTER SEQUENCE`, `RENAME`,
    /// `SET SCHEMA`. Ids would come twice. Use the functions in schema `keywright`. Publish your own tables only. Or a rule or trigger of somebody else's
    /// keeps the functions from changing a table. Drop it. Or `CREATE DATABASE … TEMPLATE` gives a copy an object id. Leave `OID` out.
    /// Or `DROP SCHEMA … CASCADE` by somebody else than the extension's owner would drop the extension.
    OwnTables,
    /// This transaction changed the worker id, the bucket, the layout, the time zone or the extension, and has not committed. Commit first.
    IdentityUncommitted,
    /// The ids of a fed tag, or the time of fed snowflake ids, are used up, and no program has handed over more. The detail says when a program last asked
    /// for the demand.
    NotFed,
    /// A program handed over ids, or time, that this server refuses: the server was restarted since it asked, it has others already, they are of another key
    /// space, or they lie below ids that were handed over before. Nobody gets them. Or a program reserves none for a database, which had them out of
    /// another store.
    HandOverRefused,
    /// The ids of the tag come from elsewhere. On PostgreSQL `keywright.source` says that the tag was moved to a store, and its row is older. In the program
    /// the store has closed the tag, because a database issues its ids, or another store does. Or a step of `keywright tag move` came out of order; the
    /// message names the next step.
    TagMoved,
    /// The key or the bits of a tag that hides its volume are missing, or differ from those with which it has issued ids. Ids could repeat.
    /// `keywright.set_hide_key` brings back a key that a dump left out. In the program a `[[hidden_tag]]` section names it.
    HideKeyMismatch,
    /// A statement on a rule's table cannot be rewritten exactly. The message names the construct.
    StatementUnsupported,
    /// The statement brings a key of its own, and the rule says `on_explicit = "refuse"`.
    KeyExplicit,
    /// No reserved key is left, and the store gives none: it is away, does not answer, or has gone back, or the source is suspended. The message says which.
    StoreUnavailable,
    /// Several stores are configured, and one of them does not say that the tag is closed there. If it were open in two stores, its ids would come twice.
    /// `keywright init` closes it. For tags in tables of other systems, in key ports and in Redis: the other stores have not answered yet.
    TagHomeUnknown,
    /// The table has ids of its own that the tag may still issue, and no fence, or one that it has brought. The switch could not be repeated within
    /// `switch_wait_ms_max`; the log names what is in the way. Or another rule in force gives the table other keys: the message names both rules.
    TableAhead,
    /// The listener's `admin` may not see the table. So the table has no fence, and the tag may issue ids that it has. Grant `admin` SELECT, ALTER and
    /// LOCK TABLES on the whole schema. The next schema refresh then sees the table.
    TableUnshown,
    /// No schema refresh has shown the table, and within 4 seconds its server has not said whether the listener's `admin` may see it: the server does not answer
    /// `admin`, or an ALTER TABLE has locked the table. Or too many such tables are remembered already. The log says why the server does not answer.
    TableUnanswered,
    /// The listener's server cannot be reached, or does not greet, within `connect_ms_max`. (The number is not 2003, because Connector/C takes 2003 from a
    /// server for a malformed packet.)
    UpstreamUnreachable,
    /// There are `connections_max` connections. The error comes before the greeting, where errors have no SQLSTATE.
    ConnectionsFull,
    /// There are more than `statements_max` prepared statements on rules' tables, or statements, texts of prepared ones, clients' files and long answers of
    /// key ports fill `memory_bytes_max`. A text statement that exceeds it ends the connection.
    MemoryFull,
    /// A statement on a rule's table, or its parameters, are longer than `rewrite_bytes_max`. Over HTTP the body of a request is longer than
    /// `body_bytes_max`.
    PacketTooLarge,
    /// The client or the server broke the protocol, or there is no PROXY header where the listener wants one. Or the client compresses although that is not
    /// offered: turn compression off in the client.
    PacketMalformed,
    /// The account's plugin may send a password in clear, and one leg is not protected; or the password is not encrypted for the right key.
    AuthUnsupported,
    /// The client came without TLS, and the listener says `tls = "required"`.
    TlsRequired,
    /// TLS with the server failed, or the server offers none and `upstream_tls = "required"`. The log says why.
    UpstreamTls,
    /// The account logs in by the user of its UNIX socket, and that would be the program's own user.
    SocketAccount,
    /// The client took longer than `answer_ms_max` for a packet of its login.
    LoginTimeout,
    /// The tag is ordered (`monotonic` or `strict`), and this place cannot keep its order. Only a listener of the Redis protocol with `cluster_address`
    /// issues its ids. Use a tag that is `distinct`. Or the slot of the name under which the listener issues it is in another group than the tag's: name it
    /// like the tag.
    TagOrdered,
    /// The program is stopping. The error comes before the greeting, or in place of the next command's answer. That command was not executed. On MySQL
    /// the connection ends so, too, if it cannot follow rules that have changed.
    Draining,
    /// A key port does not have the command, or not with these arguments. The message says which and why.
    CommandRefused,
    /// The keys of this name are not numbers. Only `KEYWRIGHT NEXT` issues them.
    KeyKind,
    /// The key port has a password or users, and the client has not logged in. Use `AUTH` or `HELLO`; over HTTP the header `Authorization`.
    PasswordMissing,
    /// The password is wrong, or there is no such user. Without `users` a key port has only the user `default`.
    PasswordWrong,
    /// The user may not do this with this name. The message says which right he needs. `keywright user grant` gives it.
    RightsMissing,
    /// The program does not know the users: the store has not answered since the program started, or for longer than `users_stale_s_max`.
    UsersUnknown,
    /// Too many passwords are being checked, or the check took longer than 5 seconds.
    LoginsFull,
    /// There is a user of this name already.
    UserExists,
    /// There is no user of this name.
    UserUnknown,
    /// A user's name, password, rights or pattern is invalid, or there are too many of them. The message says which and why.
    UserInvalid,
    /// A rule, a `[[feed]]` or a listener names the tag, so a key port does not create or drop it. If the store has lost the tag, its ids would come again.
    /// `keywright init` makes it, above the ids that tables have.
    TagInUse,
    /// Tables went over to these keys and left them again. Their native ids go on where the keys ended, so no more keys are issued, and the tag moves to no
    /// other store and no database. Use other keys for this name of the key port, and a tag of another name in the other store.
    KeysLeft,
    /// No program issues ids of ordered tags at the moment, or it is unknown which one does. The active program has just ended, and another takes over within
    /// one and a quarter times `order_ttl_ms`; or the store does not answer.
    NobodyActive,
    /// One command names keys of several slots, and one of them is of an ordered tag. Ask for each one by itself.
    SlotsCross,
    /// The store's number of slot groups differs from `slot_groups` of this program, so the program issues no ids of ordered tags. Set the same number in the
    /// `[store]` of all programs. `keywright init --change-slot-groups` changes the store's number.
    SlotGroupsDiffer,
    /// The tag is `strict`, or is to be, and the store may lose what it has acknowledged. On PostgreSQL commits wait for no standby
    /// (`synchronous_standby_names`). On MySQL and MariaDB they wait for no replica (semi-synchronous replication is off, or off at the moment), and there is
    /// no group. Or one of its settings gives up durability. Correct that, or use etcd, a file, or a tag that is `monotonic`.
    StoreMayLose,
    /// Nothing is served over HTTP at this path.
    PathUnknown,
    /// The path needs another method. The answer's `Allow` names it.
    MethodRefused,
    /// The body of a request over HTTP did not come within `request_ms_max`.
    RequestTimeout,
    /// The request comes from a page in a browser, as `Origin` or `Sec-Fetch-Site` show and, where keys are taken by GET, `Referer` or a `User-Agent` that
    /// begins with `Mozilla/`. Any page that somebody opens on this machine could take keys. Or `Host` is a name that `host_names` does not have.
    BrowserRefused,
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

/// Words that clients of Redis know.
const REDIS_WORDS: [(Cause, &str); 8] = [
    (Cause::CommandRefused, "ERR"),
    (Cause::PacketMalformed, "ERR"),
    (Cause::KeyKind, "WRONGTYPE"),
    (Cause::PasswordMissing, "NOAUTH"),
    (Cause::PasswordWrong, "WRONGPASS"),
    (Cause::RightsMissing, "NOPERM"),
    (Cause::NobodyActive, "CLUSTERDOWN"),
    (Cause::SlotsCross, "CROSSSLOT"),
];

/// Where HTTP has a status of its own.
const HTTP_STATUSES: [(Cause, u16); 10] = [
    (Cause::PasswordMissing, 401),
    (Cause::PasswordWrong, 401),
    (Cause::TagUnknown, 404),
    (Cause::UserUnknown, 404),
    (Cause::PathUnknown, 404),
    (Cause::MethodRefused, 405),
    (Cause::RequestTimeout, 408),
    (Cause::KeysLeft, 410),
    (Cause::PacketTooLarge, 413),
    // Who asks too fast.
    (Cause::LeadExceeded, 429),
];

impl Cause {
    /// Those that a PostgreSQL client can meet.
    pub const OF_POSTGRES: [Self; 35] = [
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
        Self::InParallelQuery,
        Self::NotPromoted,
        Self::BoundDamaged,
        Self::OwnTables,
        Self::IdentityUncommitted,
        Self::NotFed,
        Self::HandOverRefused,
        Self::TagMoved,
        Self::HideKeyMismatch,
    ];

    /// Those that only a client of the MySQL proxy can meet.
    pub const OF_PROXY: [Self; 19] = [
        Self::StatementUnsupported,
        Self::KeyExplicit,
        Self::StoreUnavailable,
        Self::TableAhead,
        Self::TableUnshown,
        Self::TableUnanswered,
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
        Self::TagOrdered,
        Self::TagHomeUnknown,
        Self::Draining,
    ];

    /// Those that only a client of a key port can meet.
    pub const OF_PORT: [Self; 20] = [
        Self::CommandRefused,
        Self::KeyKind,
        Self::PasswordMissing,
        Self::PasswordWrong,
        Self::RightsMissing,
        Self::UsersUnknown,
        Self::LoginsFull,
        Self::UserExists,
        Self::UserUnknown,
        Self::UserInvalid,
        Self::TagInUse,
        Self::KeysLeft,
        Self::NobodyActive,
        Self::SlotsCross,
        Self::SlotGroupsDiffer,
        Self::StoreMayLose,
        Self::PathUnknown,
        Self::MethodRefused,
        Self::RequestTimeout,
        Self::BrowserRefused,
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
            Self::InParallelQuery    => Row::of("in_parallel_query", "25000", 1235, false, "setup"),
            Self::NotPromoted        => Row::of("not_promoted", "55000", ARGUMENTS, false, "input"),
            Self::BoundDamaged       => Row::of("bound_damaged", "XX001", NO_KEY, false, "damage"),
            Self::OwnTables          => Row::of("own_tables", "55000", ARGUMENTS, false, "access"),
            Self::IdentityUncommitted => Row::of("identity_uncommitted", "55000", NO_KEY, false, "state"),
            Self::NotFed             => Row::of("not_fed", "55P03", NO_KEY, true, "store"),
            Self::HandOverRefused    => Row::of("hand_over_refused", "55000", ARGUMENTS, false, "state"),
            Self::TagMoved           => Row::of("tag_moved", "55000", NO_KEY, false, "state"),
            Self::HideKeyMismatch    => Row::of("hide_key_mismatch", "55000", NO_KEY, false, "setup"),
            Self::StatementUnsupported => Row::of("statement_unsupported", "42000", 1235, false, "input"),
            Self::KeyExplicit          => Row::of("key_explicit", "HY000", 3105, false, "input"),
            Self::StoreUnavailable     => Row::of("store_unavailable", "HY000", NO_KEY, true, "store"),
            Self::TagHomeUnknown       => Row::of("tag_home_unknown", "55000", NO_KEY, false, "setup"),
            Self::TableAhead           => Row::of("table_ahead", "HY000", NO_KEY, false, "state"),
            Self::TableUnshown         => Row::of("table_unshown", "HY000", NO_KEY, false, "setup"),
            Self::TableUnanswered      => Row::of("table_unanswered", "HY000", 1205, true, "upstream"),
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
            Self::TagOrdered           => Row::of("tag_ordered", "55000", NO_KEY, false, "setup"),
            Self::Draining             => Row::of("draining", "08S01", 1053, true, "state"),
            Self::CommandRefused       => Row::of("command_refused", "42000", 1235, false, "input"),
            Self::KeyKind              => Row::of("key_kind", "42804", ARGUMENTS, false, "input"),
            Self::PasswordMissing      => Row::of("password_missing", "28000", 1045, false, "access"),
            Self::PasswordWrong        => Row::of("password_wrong", "28P01", 1045, false, "access"),
            Self::RightsMissing        => Row::of("rights_missing", "42501", DENIED, false, "access"),
            Self::UsersUnknown         => Row::of("users_unknown", "55000", NO_KEY, true, "store"),
            Self::LoginsFull           => Row::of("logins_full", "53400", 1040, true, "access"),
            Self::UserExists           => Row::of("user_exists", "42710", ARGUMENTS, false, "input"),
            Self::UserUnknown          => Row::of("user_unknown", "42704", ARGUMENTS, false, "input"),
            Self::UserInvalid          => Row::of("user_invalid", "22023", ARGUMENTS, false, "input"),
            Self::TagInUse             => Row::of("tag_in_use", "55006", ARGUMENTS, false, "state"),
            Self::KeysLeft             => Row::of("keys_left", "55000", NO_KEY, false, "state"),
            Self::NobodyActive         => Row::of("nobody_active", "55000", NO_KEY, true, "state"),
            Self::SlotsCross           => Row::of("slots_cross", "42000", ARGUMENTS, false, "input"),
            Self::SlotGroupsDiffer     => Row::of("slot_groups_differ", "55000", NO_KEY, false, "setup"),
            Self::StoreMayLose         => Row::of("store_may_lose", "55000", NO_KEY, false, "setup"),
            Self::PathUnknown          => Row::of("path_unknown", "42704", 1235, false, "input"),
            Self::MethodRefused        => Row::of("method_refused", "42000", 1235, false, "input"),
            Self::RequestTimeout       => Row::of("request_timeout", "08S01", 1159, true, "access"),
            Self::BrowserRefused       => Row::of("browser_refused", "42501", DENIED, false, "access"),
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

    /// The first word of the error that clients of a key port get: Redis's own where it has one that they know, else the cause's name.
    pub fn redis_code(self) -> Cow<'static, str> {
        let mut words = REDIS_WORDS.iter();
        match words.find(|(cause, _)| *cause == self) {
            Some((_, word)) => Cow::Borrowed(word),
            None => Cow::Owned(self.name().to_ascii_uppercase()),
        }
    }

    /// The status that clients get over HTTP: what came is wrong (4xx), the same may succeed later (503), or it may not (500).
    pub fn http_status(self) -> u16 {
        let mut statuses = HTTP_STATUSES.iter();
        match statuses.find(|(cause, _)| *cause == self) {
            Some((_, status)) => *status,
            None if self.label() == "input" => 400,
            None if self.retryable() => 503,
            None if self.label() == "access" => 403,
            None => 500,
        }
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
