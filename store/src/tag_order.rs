//! In which order a tag's ids are issued, and what else programs tell each other of it.

use std::sync::Arc;

use keywright_core::hiding::HideBits;

/// What is known of a tag.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TagFacts {
    /// In which order its ids are issued; `None`: not known yet.
    pub order: Option<TagOrder>,
    /// Which of all tags of its name it is, as drawn when it was made; `None`: not known yet; empty where the store does not tell.
    pub key_space: Option<Arc<str>>,
    /// How wide its keys are, where they hide how many there are.
    pub hide_bits: Option<HideBits>,
}

/// The order of a tag. It is chosen when the tag is made, and stays: what programs have reserved is in that order.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum TagOrder {
    /// Each program issues from ranges of its own.
    #[default]
    Distinct,
    /// One program at a time issues: a request that was sent after a reply had been read gets a larger id, as long as clocks do not go apart.
    Monotonic,
    /// The same whatever clocks do: each reply waits for a commit of the store.
    Strict,
}

impl TagOrder {
    /// All that there are.
    pub const ALL: [Self; 3] = [Self::Distinct, Self::Monotonic, Self::Strict];

    /// What it is called, also in the store.
    pub fn name(self) -> &'static str {
        match self {
            Self::Distinct => "distinct",
            Self::Monotonic => "monotonic",
            Self::Strict => "strict",
        }
    }

    /// Whether one program at a time issues.
    pub fn is_ordered(self) -> bool {
        match self {
            Self::Distinct => false,
            Self::Monotonic | Self::Strict => true,
        }
    }

    /// The order of that name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|order| order.name() == name)
    }
}
