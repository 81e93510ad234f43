//! Unit and property tests of core's public interface.

mod ages;
mod bounds;
mod buffers;
mod clocks;
mod evidence;
mod generations;
mod hidden_keys;
mod hints;
mod layouts;
mod names;
mod notes;
mod readable_ids;
mod registers;
mod segments;
mod sources;
mod uuids;
mod words;
mod zones;
