//! What the row of a worker id says of a bound that it has gone back behind: it stands in the holder's name.

/// Stands between who has seen a bound, and that bound. No machine is called so.
const MARK: &str = ", gone back behind ";

pub(crate) fn mark(bound_ms: i64, holder: &str) -> String {
    format!("{holder}{MARK}{bound_ms}")
}

/// The bound that was seen, unix milliseconds, where a row says that it has gone back behind it.
pub(crate) fn marked_ms(holder: &str) -> Option<i64> {
    let (_, bound_ms) = holder.rsplit_once(MARK)?;
    bound_ms.parse().ok()
}

/// Who holds it, or has seen the bound, without that.
pub(crate) fn unmarked(holder: &str) -> &str {
    let marked = holder.rsplit_once(MARK);
    let marked = marked.filter(|_| marked_ms(holder).is_some());
    marked.map_or(holder, |(holder, _)| holder)
}

/// The highest bound that any holder's name says was seen, unix milliseconds; 0: none does.
pub(super) fn highest_ms<'h>(holders: impl Iterator<Item = &'h str>) -> i64 {
    holders.filter_map(marked_ms).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use std::slice;

    use keywright_core::{Layout, Preset};

    use super::{mark, marked_ms, unmarked};
    use crate::lease::tests::{LIMITS, NOW_MS, claimant, row, twitter};
    use crate::lease::{Era, LeaseRow, NoLease, plan_claim};

    /// Of the row's own worker id, or of another one.
    #[test]
    fn who_takes_a_worker_id_begins_above_what_a_row_says_was_seen() {
        let layout = Preset::Twitter.layout();
        let seen_ms = NOW_MS + 8_000;
        let marked = LeaseRow {
            holder: Some(mark(seen_ms, "you pid 1")),
            hi_ms: NOW_MS - 3_600_000,
            ..row(0, None)
        };
        let rows = slice::from_ref(&marked);
        for worker_id in [0, 1] {
            let claimant = twitter(Some(worker_id));
            let claim = plan_claim(rows, &claimant, &LIMITS, &Era::default()).unwrap();
            let first_tick = claim.plan.start_state >> layout.sequence_bits();
            assert!(layout.unix_ms_of(first_tick) >= seen_ms, "{worker_id}");
        }
    }

    /// The old layout's were issued up to what was seen, and are greater than the new one's of half a minute later.
    #[test]
    fn another_layout_gives_greater_ids_than_what_a_row_says_was_seen() {
        let later = Layout::parse("twitter,epoch=1288835004657").unwrap();
        let put_back = LeaseRow {
            hi_ms: NOW_MS - 60_000,
            ..row(1, None)
        };
        let marked = LeaseRow {
            holder: Some(mark(NOW_MS, "you pid 1")),
            ..put_back.clone()
        };
        let plan = |row: &LeaseRow| {
            let claimant = claimant(Some(2), later);
            plan_claim(slice::from_ref(row), &claimant, &LIMITS, &Era::default())
        };
        assert!(plan(&put_back).is_ok());
        let overlap = plan(&marked);
        assert!(
            matches!(overlap, Err(NoLease::LayoutOverlap { worker_id: 1, .. })),
            "{overlap:?}"
        );
    }

    #[test]
    fn a_mark_is_read_back_and_no_holder_is_one() {
        assert_eq!(
            marked_ms(&mark(1_795_219_200_000, "db, 1 pid 7")),
            Some(1_795_219_200_000)
        );
        assert_eq!(
            unmarked(&mark(1_795_219_200_000, "db, 1 pid 7")),
            "db, 1 pid 7"
        );
        for holder in ["host pid 7", "", "host, gone back behind by hand"] {
            assert_eq!(marked_ms(holder), None, "{holder}");
            assert_eq!(unmarked(holder), holder);
        }
    }
}
