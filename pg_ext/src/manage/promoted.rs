//! keywright.promoted and acknowledge_promotion: the owner corrects what a promotion is taken to have cost, or lets it stand.

use keywright_core::cause::Cause;
use keywright_core::evidence::{Loss, Promotion, Word};
use pgrx::datum::Interval;
use pgrx::pg_extern;

use crate::arguments::required;
use crate::failure::{Failure, OrRaise};
use crate::identity::promotion::{self, Kept};

#[pg_extern(sql = false)]
fn keywright_promoted(lost: Option<Interval>) {
    promoted(lost).or_raise();
}

fn promoted(lost: Option<Interval>) -> Result<(), Failure> {
    let ms = ms_of(&required(lost, "the loss")?)?;
    promotion::change("promoted", |kept| Kept {
        promotion: Promotion {
            word: Word::Owner,
            is_acknowledged: true,
            ..kept.promotion
        },
        loss: Loss { ms, ..kept.loss },
    })
}

#[pg_extern(sql = false)]
fn keywright_acknowledge_promotion() {
    promotion::change("acknowledge_promotion", |kept| Kept {
        promotion: Promotion {
            is_acknowledged: true,
            ..kept.promotion
        },
        ..kept
    })
    .or_raise();
}

/// An interval in milliseconds, rounded up; a month has 30 days.
fn ms_of(lost: &Interval) -> Result<u64, Failure> {
    const DAY_US: i128 = 86_400_000_000;
    let days = i128::from(lost.months()) * 30 + i128::from(lost.days());
    let us = days * DAY_US + i128::from(lost.micros());
    u64::try_from(us)
        .ok()
        .map(|us| us.div_ceil(1_000))
        .filter(|ms| *ms <= Loss::MS_MAX)
        .ok_or_else(|| {
            Failure::new(
                Cause::ArgumentOutOfRange,
                "the loss must not be negative, nor longer than eight years",
            )
            .hint(promotion::HINT)
        })
}
