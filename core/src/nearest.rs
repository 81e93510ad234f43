//! What was probably meant: the known name nearest to one that is not known.

/// Most edits between a name and what is proposed for it, as in the server's own hints for columns.
const EDITS_MAX: usize = 3;

/// The known names near `wanted`, nearest first; of equally near ones the first that was named. A name of which more than
/// half would have to change is not near. Case is no edit. Names are expected to be short: the work for one is the product
/// of both lengths.
///
/// ```
/// use keywright_core::nearest::nearest;
///
/// let tables = ["shop.orders", "shop.order_line", "shop.customer"];
/// assert_eq!(nearest("shop.ordes", tables).first(), Some(&"shop.orders"));
/// assert!(nearest("shop.invoice", tables).is_empty());
/// ```
pub fn nearest<'a>(wanted: &str, known: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    let edits_max = EDITS_MAX.min(wanted.chars().count() / 2);
    let wanted = wanted.to_ascii_lowercase();
    let mut near: Vec<(usize, &str)> = known
        .into_iter()
        .filter(|name| name.len().abs_diff(wanted.len()) <= 4 * edits_max)
        .map(|name| {
            let edits = strsim::osa_distance(&wanted, &name.to_ascii_lowercase());
            (edits, name)
        })
        .filter(|(edits, _)| *edits <= edits_max)
        .collect();
    near.sort_by_key(|(edits, _)| *edits);
    near.into_iter().map(|(_, name)| name).collect()
}
