//! Writes statements with their keys by their plans: the text as it was, with only the splices changed.

pub(crate) mod decimal;
pub(crate) mod error;
pub(crate) mod in_place;
pub(crate) mod insert;
pub(crate) mod load_data;
pub(crate) mod out_of_range;
pub(crate) mod prepared;
pub(crate) mod select;
pub(crate) mod writer;
