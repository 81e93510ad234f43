//! The keys that may differ between two sides.

/// Where keys begin; all of them fit INT.
pub const KEY_FIRST: u64 = 1_000_000_000;

/// How many keys each of [`KEY_SPACES`] has.
pub const KEY_SPACE_SIZE: u64 = 100_000_000;

/// The tables whose keys may differ: what the schema's name ends with, and the table's name. The keys of the `i`th are
/// from [`KEY_FIRST`] + `i` × [`KEY_SPACE_SIZE`].
pub const KEY_SPACES: [(&str, &str); 9] = [
    ("", "t"),
    ("", "t_parent"),
    ("", "t_child"),
    ("", "t_int"),
    ("", "t_uint"),
    ("", "t_ubig"),
    ("", "t-1"),
    ("", "t`q"),
    ("_2", "t"),
];
