//! Refilling: what must be known before more ids may be issued, worked out under the gate by the one backend that needs it.

pub mod fed;
pub mod fed_mark;
pub mod fed_time;
pub mod room;
pub mod segment;
pub mod segment_plan;
pub mod siblings;
pub mod tag_siblings;
pub mod takeover;
pub mod time_bound;
