//! What engines spell differently. Everything else that the store says is the same for all.
//!
//! A moment is a column of type DATETIME(3) in UTC on MySQL, and unix milliseconds elsewhere.

/// How an engine spells it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Words {
    MySql,
    Postgres,
    Sqlite,
}

/// SQLite's clock, unix milliseconds; the same throughout a statement.
const SQLITE_NOW: &str = "CAST(ROUND(unixepoch('subsec') * 1000) AS INTEGER)";

/// PostgreSQL's clock, unix milliseconds; the same throughout a statement, as MySQL's is.
const POSTGRES_NOW: &str =
    "CAST(FLOOR(EXTRACT(EPOCH FROM statement_timestamp()) * 1000) AS bigint)";

impl Words {
    /// The store's clock, as a moment.
    pub(crate) fn now(self) -> &'static str {
        match self {
            Self::MySql => "UTC_TIMESTAMP(3)",
            Self::Postgres => POSTGRES_NOW,
            Self::Sqlite => SQLITE_NOW,
        }
    }

    /// The store's clock, unix milliseconds.
    pub(crate) fn now_ms(self) -> &'static str {
        match self {
            // Not by local time, of which there is an hour twice a year.
            Self::MySql => "TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(3)) DIV 1000",
            Self::Postgres => POSTGRES_NOW,
            Self::Sqlite => SQLITE_NOW,
        }
    }

    /// A query for how long the server has run, whole seconds, as a text in column `Value`; nothing where there is none.
    pub(crate) fn uptime_s(self) -> Option<&'static str> {
        match self {
            Self::MySql => Some("SHOW GLOBAL STATUS LIKE 'Uptime'"),
            Self::Postgres => Some(
                "SELECT CAST(CAST(FLOOR(EXTRACT(EPOCH FROM clock_timestamp() - pg_postmaster_start_time())) AS bigint) AS text) AS \"Value\"",
            ),
            Self::Sqlite => None,
        }
    }

    /// The moment that is so many milliseconds from now: one place.
    pub(crate) fn in_ms(self) -> String {
        match self {
            Self::MySql => "UTC_TIMESTAMP(3) + INTERVAL (? * 1000) MICROSECOND".to_owned(),
            Self::Postgres => format!("({POSTGRES_NOW} + CAST(? AS bigint))"),
            Self::Sqlite => format!("({SQLITE_NOW} + ?)"),
        }
    }

    /// The moment so many hours ago.
    pub(crate) fn hours_ago(self, hours: u64) -> String {
        match self {
            Self::MySql => format!("UTC_TIMESTAMP(3) - INTERVAL {hours} HOUR"),
            Self::Postgres => format!("({POSTGRES_NOW} - {hours} * 3600000)"),
            Self::Sqlite => format!("({SQLITE_NOW} - {hours} * 3600000)"),
        }
    }

    /// Milliseconds since a moment, at least 0; 0 for NULL.
    pub(crate) fn since_ms(self, moment: &str) -> String {
        match self {
            Self::MySql => format!(
                "CAST(COALESCE(GREATEST(TIMESTAMPDIFF(MICROSECOND, {moment}, UTC_TIMESTAMP(3)), 0), 0) DIV 1000 AS UNSIGNED)"
            ),
            Self::Postgres => format!("COALESCE(GREATEST({POSTGRES_NOW} - {moment}, 0), 0)"),
            Self::Sqlite => format!("COALESCE(MAX({SQLITE_NOW} - {moment}, 0), 0)"),
        }
    }

    /// A moment as unix milliseconds.
    pub(crate) fn unix_ms(self, moment: &str) -> String {
        match self {
            Self::MySql => format!(
                "CAST(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', {moment}) DIV 1000 AS UNSIGNED)"
            ),
            Self::Postgres | Self::Sqlite => moment.to_owned(),
        }
    }

    /// A moment as a value that can be written to another column.
    pub(crate) fn moment(self, moment: &str) -> String {
        match self {
            Self::MySql => format!("CAST({moment} AS CHAR)"),
            Self::Postgres | Self::Sqlite => moment.to_owned(),
        }
    }

    /// A moment for people, to the second.
    pub(crate) fn readable(self, moment: &str) -> String {
        match self {
            Self::MySql => format!("DATE_FORMAT({moment}, '%Y-%m-%d %H:%i:%s')"),
            Self::Postgres => format!(
                "to_char(to_timestamp({moment} / 1000.0) AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS')"
            ),
            Self::Sqlite => {
                format!("strftime('%Y-%m-%d %H:%M:%S', {moment} / 1000, 'unixepoch')")
            }
        }
    }

    /// Rows that are read stay as they are until the transaction ends. In a file a transaction has the whole of it.
    pub(crate) fn for_update(self) -> &'static str {
        match self {
            Self::MySql | Self::Postgres => " FOR UPDATE",
            Self::Sqlite => "",
        }
    }

    /// The same, shared with others who do so.
    pub(crate) fn in_share_mode(self) -> &'static str {
        match self {
            Self::MySql => " LOCK IN SHARE MODE",
            Self::Postgres => " FOR SHARE",
            Self::Sqlite => "",
        }
    }

    /// The greater of two, neither of them NULL.
    pub(crate) fn greater(self, one: &str, other: &str) -> String {
        match self {
            Self::MySql | Self::Postgres => format!("GREATEST({one}, {other})"),
            Self::Sqlite => format!("MAX({one}, {other})"),
        }
    }

    /// Behind the values of an INSERT: what is set instead where the key is there already.
    pub(crate) fn or_update(self, key: &str) -> String {
        match self {
            Self::MySql => "ON DUPLICATE KEY UPDATE".to_owned(),
            Self::Postgres | Self::Sqlite => format!("ON CONFLICT ({key}) DO UPDATE SET"),
        }
    }

    /// An INSERT, given without its first two words, that leaves rows as they are whose key is there already.
    pub(crate) fn insert_new(self, into: &str) -> String {
        match self {
            Self::MySql => format!("INSERT IGNORE INTO {into}"),
            Self::Postgres => format!("INSERT INTO {into} ON CONFLICT DO NOTHING"),
            Self::Sqlite => format!("INSERT OR IGNORE INTO {into}"),
        }
    }

    /// Whether a locking read that finds no row keeps others from making one until the transaction ends: in MySQL it locks the gap, in a
    /// file the transaction has the whole of it.
    pub(crate) fn locks_what_is_missing(self) -> bool {
        match self {
            Self::MySql | Self::Sqlite => true,
            Self::Postgres => false,
        }
    }

    /// What keeps others from making tables until the transaction ends, where CREATE TABLE IF NOT EXISTS fails for whoever comes second, and is part
    /// of a transaction.
    pub(crate) fn lock_to_make_tables(self) -> Option<&'static str> {
        match self {
            Self::MySql | Self::Sqlite => None,
            Self::Postgres => Some("SELECT pg_advisory_xact_lock(hashtext('keywright_store'))"),
        }
    }

    /// How names are quoted.
    pub(crate) fn name_quote(self) -> char {
        match self {
            Self::MySql => '`',
            Self::Postgres | Self::Sqlite => '"',
        }
    }
}
