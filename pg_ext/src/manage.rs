//! SQL that changes things. `guard` is asked first by each.

pub mod alter;
pub mod assignment;
pub mod begin_at;
pub mod bucket;
pub mod closing;
pub mod definition;
pub mod feed;
pub mod feed_time;
pub mod grant;
pub mod hand_over;
pub mod hide;
pub mod layout;
pub mod lower_bound;
pub mod moving;
pub mod own_tables;
pub mod promoted;
pub mod restored;
pub mod row;
pub mod tags;
pub mod worker_id;
pub mod zone;
