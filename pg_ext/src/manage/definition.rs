//! A tag's numbers: where its ids begin and end, and how many are reserved at once.

use keywright_core::cause::Cause;
use keywright_core::hiding::HideBits;
use keywright_core::residue::Residue;
use keywright_core::step::Step;

use crate::failure::Failure;

/// Ids end below the largest bigint, so that the bound above the last one is a bigint too.
pub const ID_MAX: i64 = i64::MAX - 1;
/// A step may grow to this much by itself unless the tag says otherwise.
const STEP_MAX_DEFAULT: i64 = 10_000_000;

/// A tag's numbers, checked.
pub struct Definition {
    /// First id; `None`: 1, or above what was issued.
    pub start: Option<i64>,
    /// Reservation to begin with.
    pub step: Step,
    /// Smallest reservation.
    pub step_min: Step,
    /// Largest reservation.
    pub step_max: Step,
    /// Last id.
    pub max: i64,
    /// Which numbers are ids; `None`: all, or as before.
    pub class: Option<Residue>,
}

impl Definition {
    /// Checks all numbers and reports every problem at once.
    pub fn new(
        start: Option<i64>,
        step: i64,
        (step_min, step_max): (Option<i64>, Option<i64>),
        max: Option<i64>,
        bits: Option<HideBits>,
    ) -> Result<Self, Failure> {
        let mut problems = Vec::new();
        let (first, last) = range(bits);
        let max = max.unwrap_or(last);
        let mut step_of = |name: &str, number: i64| match Step::new(number) {
            Ok(step) => Some(step),
            Err(error) => {
                problems.push(format!("{name}: {error}"));
                None
            }
        };
        let min_default = (step / 10).max(1);
        let checked = (
            step_of("step", step),
            step_of("step_min", step_min.unwrap_or(min_default)),
            step_of(
                "step_max",
                step_max.unwrap_or_else(|| step.max(STEP_MAX_DEFAULT)),
            ),
        );
        if let (Some(step), Some(min), Some(most)) = checked
            && !(min.get() <= step.get() && step.get() <= most.get())
        {
            problems.push(format!(
                "step_min {} <= step {} <= step_max {} does not hold",
                min.get(),
                step.get(),
                most.get()
            ));
        }
        if !(first..=last).contains(&max) {
            problems.push(format!("max {max} is not between {first} and {last}"));
        }
        if let Some(start) = start
            && !(first..=max).contains(&start)
        {
            problems.push(format!(
                "start {start} is not between {first} and max {max}"
            ));
        }
        match checked {
            (Some(step), Some(step_min), Some(step_max)) if problems.is_empty() => Ok(Self {
                start,
                step,
                step_min,
                step_max,
                max,
                class: None,
            }),
            (_, _, _) => Err(Failure::new(
                Cause::ArgumentOutOfRange,
                "the tag cannot be defined like this",
            )
            .detail(problems.join("; "))
            .hint(format!(
                "Steps go from 1 to {}, ids from {first} to {last}.",
                Step::MAX
            ))),
        }
    }
}

impl Definition {
    /// The same, of which only the ids of a class are issued, if one is said.
    pub fn of_class(self, class: Option<Residue>) -> Self {
        Self { class, ..self }
    }

    /// The same, if a number of its class lies between its start and its end.
    ///
    /// # Errors
    /// None does.
    pub fn with_an_id(self) -> Result<Self, Failure> {
        let (class, start) = (self.class.unwrap_or(Residue::ALL), self.start.unwrap_or(1));
        let first = class.first_from(start.cast_unsigned());
        if first.is_some_and(|first| first <= self.max.cast_unsigned()) {
            return Ok(self);
        }
        Err(Failure::new(
            Cause::ArgumentOutOfRange,
            format!(
                "no number from {start} to {} leaves remainder {} when divided by {}",
                self.max,
                class.remainder(),
                class.modulus()
            ),
        )
        .hint("Choose a greater max, or another remainder."))
    }
}

/// The smallest and the largest number that a tag may have, with ids of that many hidden bits.
fn range(bits: Option<HideBits>) -> (i64, i64) {
    let last = bits.map_or(i64::MAX, |bits| bits.largest().cast_signed());
    (i64::from(bits.is_some()), last.min(ID_MAX))
}

/// A step as the tables keep it.
pub fn number(step: Step) -> i64 {
    step.get().cast_signed()
}

/// Which numbers are ids, out of the arguments of create_tag and alter_tag; `None` where neither is said.
///
/// # Errors
/// Only one is said, there is no such class, or ids hide their volume.
pub fn class(
    increment: Option<i32>,
    remainder: Option<i32>,
    is_hidden: bool,
) -> Result<Option<Residue>, Failure> {
    let (increment, remainder) = match (increment, remainder) {
        (None, None) => return Ok(None),
        (Some(increment), Some(remainder)) => (increment, remainder),
        (Some(increment), None) => {
            // One that cannot be needs no remainder.
            residue(increment, 0)?;
            return Err(missing("an increment needs a remainder"));
        }
        (None, Some(_)) => return Err(missing("a remainder needs an increment")),
    };
    let class = residue(increment, remainder)?;
    if is_hidden && class != Residue::ALL {
        return Err(Failure::new(
            Cause::ArgumentOutOfRange,
            "ids that hide their volume leave any remainder",
        )
        .hint("Leave increment and remainder out, or hide_bits."));
    }
    Ok(Some(class))
}

fn residue(increment: i32, remainder: i32) -> Result<Residue, Failure> {
    Residue::new(increment.into(), remainder.into()).map_err(|error| {
        Failure::new(Cause::ArgumentOutOfRange, error.to_string()).hint(CLASS_HINT)
    })
}

fn missing(message: &str) -> Failure {
    Failure::new(Cause::ArgumentNull, message).hint(CLASS_HINT)
}

const CLASS_HINT: &str = "The first of three databases has increment => 3, remainder => 1, the second remainder => 2, the third remainder => 0.";

/// A class as the tables keep it: increment and remainder.
pub fn numbers(class: Residue) -> [i32; 2] {
    // Both are below 65,536.
    [class.modulus(), class.remainder()].map(|number| i32::try_from(number).unwrap_or(1))
}
