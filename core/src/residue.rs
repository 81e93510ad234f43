//! Which ids of a range may be used: all of them, or those of one residue class.
//!
//! `auto_increment_offset`/`auto_increment_increment` and tinyid's `delta`/`remainder` are the same thing. A segment word
//! counts *indices*: index `i` stands for the id `i × modulus + remainder`, so neighbouring indices are neighbouring
//! usable ids, and ranges that continue each other as ids do so as indices. The opposite is not true: between two ids of a
//! class there is room for a range of somebody else's.

use thiserror::Error;

/// Ids `remainder`, `remainder + modulus`, …: 0 ≤ remainder < modulus.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Residue {
    modulus: u64,
    remainder: u64,
}

/// Why two numbers are not a residue class.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum ResidueError {
    /// No modulus, or one larger than MySQL's largest increment.
    #[error(
        "an increment must be between 1 and {}, not {modulus}",
        Residue::MODULUS_MAX
    )]
    Modulus {
        /// The refused number.
        modulus: i64,
    },
    /// No id leaves such a remainder.
    #[error("a remainder must be between 0 and {}, not {remainder}", modulus.saturating_sub(1))]
    Remainder {
        /// The refused number.
        remainder: i64,
        /// The modulus it should be below.
        modulus: u64,
    },
}

impl Residue {
    /// MySQL's largest `auto_increment_increment`.
    pub const MODULUS_MAX: u64 = 65_535;
    /// Every id.
    pub const ALL: Self = Self {
        modulus: 1,
        remainder: 0,
    };

    /// The class of the ids that leave `remainder` when divided by `modulus`.
    ///
    /// # Errors
    /// [`ResidueError`] when there is no such class.
    pub fn new(modulus: i64, remainder: i64) -> Result<Self, ResidueError> {
        let checked = u64::try_from(modulus)
            .ok()
            .filter(|modulus| (1..=Self::MODULUS_MAX).contains(modulus))
            .ok_or(ResidueError::Modulus { modulus })?;
        u64::try_from(remainder)
            .ok()
            .filter(|remainder| *remainder < checked)
            .map(|remainder| Self {
                modulus: checked,
                remainder,
            })
            .ok_or(ResidueError::Remainder {
                remainder,
                modulus: checked,
            })
    }

    /// Distance of neighbouring ids of the class.
    pub fn modulus(&self) -> u64 {
        self.modulus
    }

    /// What its ids leave when divided by the modulus.
    pub fn remainder(&self) -> u64 {
        self.remainder
    }

    /// The first index whose id is at least `id`: maps a range's two ends to indices.
    pub fn index_from(&self, id: u64) -> u64 {
        id.saturating_sub(self.remainder).div_ceil(self.modulus)
    }

    /// The first id of the class that is at least `id`; `None` beyond 64 bits.
    #[inline]
    pub fn first_from(&self, id: u64) -> Option<u64> {
        let above = id % self.modulus;
        let missing = if above <= self.remainder {
            self.remainder - above
        } else {
            self.modulus - above + self.remainder
        };
        id.checked_add(missing)
    }

    /// The id of an index that came from [`Residue::index_from`] of a 64-bit id, or lies before one that did.
    pub fn id_of(&self, index: u64) -> u64 {
        index
            .saturating_mul(self.modulus)
            .saturating_add(self.remainder)
    }

    /// How many ids in a row hold at least `count` of the class, wherever they begin.
    pub fn width_of(&self, count: u64) -> u64 {
        count.saturating_mul(self.modulus)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::Residue;

    proptest! {
        #[test]
        fn a_range_holds_exactly_its_ids_of_the_class(
            modulus in 1..50_i64, remainder in 0..50_i64, start in 1..10_000_u64, len in 0..2_000_u64,
        ) {
            prop_assume!(remainder < modulus);
            let class = Residue::new(modulus, remainder).unwrap();
            let by_index: Vec<u64> = (class.index_from(start)..class.index_from(start + len))
                .map(|index| class.id_of(index))
                .collect();
            let by_search: Vec<u64> = (start..start + len)
                .filter(|id| id % class.modulus() == class.remainder())
                .collect();
            prop_assert_eq!(class.first_from(start).filter(|id| *id < start + len), by_search.first().copied());
            prop_assert_eq!(by_index, by_search);
        }

        #[test]
        fn a_width_is_wide_enough(modulus in 1..65_536_i64, remainder in 0..65_536_i64, start in 1..1_000_000_u64, count in 1..1_000_u64) {
            prop_assume!(remainder < modulus);
            let class = Residue::new(modulus, remainder).unwrap();
            let end = start + class.width_of(count);
            prop_assert!(class.index_from(end) - class.index_from(start) >= count);
        }
    }

    #[test]
    fn what_is_no_class_is_refused() {
        assert!(Residue::new(0, 0).is_err());
        assert!(Residue::new(65_536, 0).is_err());
        assert!(Residue::new(3, 3).is_err());
        assert!(Residue::new(3, -1).is_err());
        assert_eq!(Residue::new(1, 0), Ok(Residue::ALL));
        assert_eq!(Residue::new(7, 3).unwrap().first_from(u64::MAX), None);
    }
}
