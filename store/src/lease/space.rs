//! The two kinds of worker ids.

/// Which worker ids are meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Space {
    /// Those of snowflake ids.
    Snowflake,
    /// Buckets of readable ids: what tells programs apart there.
    Readable,
}

impl Space {
    /// The column of `keywright_switch` that says from which moment on its ids begin.
    pub(crate) fn floor(self) -> &'static str {
        match self {
            Self::Snowflake => "snowflake_floor_ms",
            Self::Readable => "readable_floor_ms",
        }
    }

    /// As in the table.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Snowflake => "snowflake",
            Self::Readable => "readable",
        }
    }
}
