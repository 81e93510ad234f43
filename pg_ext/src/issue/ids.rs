//! The SQL functions that issue ids, apart from the two that run per row.

use keywright_core::cause::Cause;
use keywright_core::readable::{self, Biz};
use pgrx::iter::SetOfIterator;
use pgrx::pg_extern;

use crate::failure::{Failure, OrRaise};
use crate::issue::{snowflake, tag};
use crate::server::{clock, text};
use crate::settings;

const BIZ_HINT: &str = "A business code has 1 to 4 ASCII letters or digits.";

/// How many ids a call may have: at least one, at most what the setting allows.
fn count(n: Option<i32>, function: &str) -> Result<u64, Failure> {
    let n = n.ok_or_else(|| {
        Failure::new(
            Cause::ArgumentNull,
            format!("the number of ids of {function} must not be null"),
        )
        .hint("Say how many, from 1 to keywright.ids_per_call_max.")
    })?;
    let most = settings::ids_per_call_max();
    u64::try_from(n)
        .ok()
        .filter(|n| (1..=most).contains(n))
        .ok_or_else(|| {
            Failure::new(
                Cause::ArgumentOutOfRange,
                format!("{function} issues 1 to {most} ids in one call, not {n}"),
            )
            .hint(match n < 1 {
                true => "Ask for 1 or more, up to keywright.ids_per_call_max.",
                false => "Ask several times, or have keywright.ids_per_call_max raised.",
            })
        })
}

#[pg_extern(sql = false)]
fn keywright_snowflake_ids(n: Option<i32>) -> SetOfIterator<'static, i64> {
    let n = count(n, "snowflake_ids").or_raise();
    let taken = snowflake::take(n).or_raise();
    SetOfIterator::new((0..n).map(move |offset| taken.id(offset)))
}

#[pg_extern(sql = false)]
fn keywright_next_biz_ids(text: Option<&[u8]>, n: Option<i32>) -> SetOfIterator<'static, i64> {
    let n = count(n, "next_biz_ids").or_raise();
    let text = text
        .ok_or_else(|| {
            Failure::new(
                Cause::ArgumentNull,
                "the tag of next_biz_ids must not be null",
            )
            .hint("Name one, as in next_biz_ids('orders', 10).")
        })
        .or_raise();
    let taken = tag::take(text, n).or_raise();
    SetOfIterator::new((0..n).map(move |offset| taken.id(offset).or_raise()))
}

#[pg_extern(sql = false)]
fn keywright_readable_id(biz: Option<&[u8]>) -> String {
    let biz = biz
        .ok_or_else(|| {
            Failure::new(
                Cause::ArgumentNull,
                "the business code of readable_id must not be null",
            )
            .hint(BIZ_HINT)
        })
        .or_raise();
    let refused = |message: String| Failure::new(Cause::ArgumentOutOfRange, message).hint(BIZ_HINT);
    let biz = text::read(biz)
        .map_err(|error| refused(format!("not a business code: {error}")))
        .and_then(|biz| Biz::parse(biz).map_err(|error| refused(error.to_string())))
        .or_raise();
    let taken = snowflake::take_readable().or_raise();
    let (written_ms, sequence) = readable::parts_of_state(taken.first);
    readable::format(written_ms, &biz, taken.bucket(), sequence)
        .map_err(|error| {
            Failure::new(Cause::ArgumentOutOfRange, error.to_string())
                .hint(moment_hint(written_ms, taken.bucket()))
        })
        .or_raise()
}

/// What helps where an id's moment cannot be written. The clock may be right by now: ids do not follow it over so many years.
fn moment_hint(written_ms: i64, bucket: u8) -> String {
    let wall_ms = clock::wall_ms();
    if !readable::can_write(wall_ms) {
        "Set the server's clock right.".to_owned()
    } else if written_ms < wall_ms {
        format!(
            "Ids go on where a wrong clock led them. If the clock is right now, run SELECT keywright.set_readable_bucket({bucket}, above => now())."
        )
    } else {
        "A wrong clock, or a wrong moment for above, led ids so far. A superuser can bring them back: SELECT keywright.lower_bound(below), \
         with a moment after all ids that were kept."
            .to_owned()
    }
}
