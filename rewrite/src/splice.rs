//! Writes statements with their keys by their plans: the text as it was, with only the splices changed.

pub(crate) mod decimal;
pub(crate) mod in_place;
pub(crate) mod insert;
pub(crate) mod prepared;
