//! The splits in use elsewhere, by name.

use std::fmt;

use super::FieldName::{Datacenter, Sequence, Time, Worker};
use super::{FieldName, Layout};

/// A layout with a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Preset {
    /// Twitter's Snowflake: 41 bits of milliseconds, 5 datacenter, 5 worker, 12 sequence; epoch 2010-11-04.
    Twitter,
    /// Meituan's Leaf-snowflake: 41, 10 worker, 12; Twitter's epoch.
    Leaf,
    /// Baidu's UidGenerator as shipped: 28 bits of seconds, 22 worker, 13 sequence; epoch 2016-05-20 in China
    /// (1463673600000). **Ran out on 2024-11-20**: give another epoch.
    Baidu,
    /// Apache ShardingSphere: 41, 10 worker, 12; epoch 2016-11-01 UTC.
    ShardingSphere,
    /// Sony's Sonyflake: 39 bits of 10 ms, 8 sequence, then 16 machine; epoch 2014-09-01.
    Sonyflake,
    /// Instagram's: milliseconds, 13 shard, 10 sequence; epoch 1314220021721. Their 41st time bit is the sign of a
    /// bigint, so 40 are usable (until 2046); every id up to then is the same.
    Instagram,
    /// At most 53 bits, for clients that read numbers as doubles (JavaScript): 41, 5 worker, 7; epoch 2025-01-01.
    Js53,
}

/// A row of the table of presets.
type Row = (&'static str, &'static [(FieldName, u8)], i64, u32);

impl Preset {
    /// All presets.
    pub const ALL: [Self; 7] = [
        Self::Twitter,
        Self::Leaf,
        Self::Baidu,
        Self::ShardingSphere,
        Self::Sonyflake,
        Self::Instagram,
        Self::Js53,
    ];

    /// The table: name, fields from high to low, epoch in unix milliseconds, milliseconds per tick.
    const fn row(self) -> Row {
        const TWITTER_EPOCH_MS: i64 = 1_288_834_974_657;
        match self {
            Self::Twitter => (
                "twitter",
                &[(Time, 41), (Datacenter, 5), (Worker, 5), (Sequence, 12)],
                TWITTER_EPOCH_MS,
                1,
            ),
            Self::Leaf => (
                "leaf",
                &[(Time, 41), (Worker, 10), (Sequence, 12)],
                TWITTER_EPOCH_MS,
                1,
            ),
            Self::Baidu => (
                "baidu",
                &[(Time, 28), (Worker, 22), (Sequence, 13)],
                1_463_673_600_000,
                1000,
            ),
            Self::ShardingSphere => (
                "shardingsphere",
                &[(Time, 41), (Worker, 10), (Sequence, 12)],
                1_477_958_400_000,
                1,
            ),
            Self::Sonyflake => (
                "sonyflake",
                &[(Time, 39), (Sequence, 8), (Worker, 16)],
                1_409_529_600_000,
                10,
            ),
            Self::Instagram => (
                "instagram",
                &[(Time, 40), (Worker, 13), (Sequence, 10)],
                1_314_220_021_721,
                1,
            ),
            Self::Js53 => (
                "js53",
                &[(Time, 41), (Worker, 5), (Sequence, 7)],
                1_735_689_600_000,
                1,
            ),
        }
    }

    /// The name used in a layout's text.
    pub const fn name(self) -> &'static str {
        self.row().0
    }

    /// The layout.
    pub const fn layout(self) -> Layout {
        let (_, fields, epoch_ms, tick_ms) = self.row();
        Layout::from_fields(fields, epoch_ms, tick_ms)
    }

    pub(super) fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|preset| preset.name() == name)
    }
}

/// The canonical text, which [`Layout::parse`] takes back: a preset's name, or all fields, epoch and tick.
impl fmt::Display for Layout {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(preset) = Preset::ALL
            .into_iter()
            .find(|preset| preset.layout() == *self)
        {
            return formatter.write_str(preset.name());
        }
        for (name, bits) in self.fields() {
            write!(formatter, "{}={bits},", name.name())?;
        }
        write!(formatter, "epoch={},tick=", self.epoch_ms)?;
        if self.tick_ms.is_multiple_of(1000) {
            write!(formatter, "{}s", self.tick_ms / 1000)
        } else {
            write!(formatter, "{}ms", self.tick_ms)
        }
    }
}
