//! Unit and property tests of core's public interface.

mod bounds;
mod clocks;
mod layouts;
mod names;
mod notes;
mod readable_ids;
mod segments;
mod words;
