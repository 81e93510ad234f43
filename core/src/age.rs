//! How old a transaction of PostgreSQL is. Its number has 64 bits; the server itself tells transactions apart by the low 32, which come again.

/// From this age on, in transactions, a transaction is taken for ended. A number of 32 bits compares rightly with those less than 2^31 away, and the server
/// gives none that is 2^31 - 3,000,000 or more above the oldest that is open. The million in between may be given while somebody looks.
pub const AGE_MAX: u64 = (1 << 31) - 1_000_000;

/// What its age alone says of a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Age {
    /// Its number is given after the next one that was read: it is open.
    Coming,
    /// Its low 32 bits mean no other transaction: the server knows what became of it, unless it has cut off that part of its log of commits.
    Known,
    /// It has ended. What its low 32 bits mean to the server is another transaction, or one to come.
    Past,
}

impl Age {
    /// That of the transaction with the number `transaction`, when the server gives `next` next.
    pub fn of(transaction: u64, next: u64) -> Self {
        match next.checked_sub(transaction) {
            None | Some(0) => Self::Coming,
            Some(age) if age < AGE_MAX => Self::Known,
            Some(_) => Self::Past,
        }
    }
}
