//! Durable bounds in MySQL, MariaDB, PostgreSQL, etcd or a file, and the sources of keys that live on them.
//!
//! [`Keys`] talks to one store on a thread of its own; a [`Source`] is taken from by any thread, without a lock. Everything
//! that decides about ids is in `keywright-core` or in the pure modules here: [`reserve`], [`lease`].
//! The argument that no key is issued twice:
//! 1. A key is taken by compare-and-swap below a bound in memory (`keywright_core::buffer`, `keywright_core::SnowflakeWord`).
//! 2. The bound is raised only after the commit of the transaction that made it durable is known to have succeeded.
//!    Whatever else happens to that transaction, what it may have reserved counts as used.
//! 3. A transaction reads the row under its lock and writes it by compare-and-swap on what it read, so two issuers
//!    never reserve the same range, and a lease that was taken over cannot be extended by its last owner.
#![warn(missing_docs)]
// What a peer, a file or a server says is no reason to panic.
#![cfg_attr(
    not(test),
    warn(
        clippy::expect_used,
        clippy::indexing_slicing,
        clippy::panic,
        clippy::unwrap_used
    )
)]

pub mod assignment;
pub mod backoff;
pub mod home;
pub mod lease;
pub mod moving;
pub mod order;
pub mod reserve;

mod assign;
mod buckets;
mod clock;
mod database;
mod dialect;
mod elsewhere;
mod engine;
mod failure;
mod feed;
mod host;
mod kept;
mod keys;
mod losses;
mod mover;
mod seat;
mod settings;
mod sources;
mod spec;
mod store;
pub mod switch;
mod tag_order;
mod use_up;
pub mod users;
pub mod worker_ids;

pub use assign::{AssignError, AssignedId, Assigning, release as release_worker_id};
pub use clock::{Clock, SystemClock};
pub use database::{Database, DatabaseError, DatabaseSettings, RawDatabase};
pub use engine::innermost::innermost;
pub use engine::mysql::identity::server_identity;
pub use engine::redis::key_port::GIVES_KEYS;
pub use failure::Failure;
pub use feed::FeedStats;
pub use host::{holder, host};
pub use keys::{
    Finding, FollowedUsers, GroupStats, Keys, OrderNode, OrderStats, Severity, SlotGroupsRecorded,
    StoreBuckets, StoreUp,
};
pub use mover::{MoveError, MoveProgress, MovedTo, Moving, Relocating};
pub use seat::OrderSettings;
pub use seat::confirming::Confirmation;
pub use settings::{
    FeedSettings, FurtherStore, HiddenTags, PasswordFrom, RawFeed, RawHiddenTag,
    RawSnowflakeSettings, RawStoreSettings, RawStores, SettingsError, SettingsProblem,
    StoreSettings, URL_ESCAPES, has_login_in_path, tls_options_in,
};
pub use sources::demand::WAIT_BOUNDS_US;
pub use sources::ordered::{Ordered, Unconfirmed};
pub use sources::source::{NotNow, Source};
pub use sources::stats::{Remaining, SourceStats};
pub use spec::{KEY_SPECS, KeyKind, KeySpec, KeySpecError, Stride, UuidForm, UuidVersion};
pub use store::advance::Above;
pub use store::assigned_admin::ReleasedNumber;
pub use store::lease_list::WorkerRow;
pub use store::restored::{RestoredBuckets, RestoredStore, RestoredTag};
pub use store::schema::OWN_TABLES;
pub use store::tag_admin::{TagBound, TagListing, TagOptions};
pub use store::tag_change::TagChange;
pub use store::tag_hiding::TagHiding;
pub use store::worker_id_admin::WorkerIdsRecorded;
pub use tag_order::{TagFacts, TagOrder};
