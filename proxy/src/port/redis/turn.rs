//! A turn of a connection: the requests that are answered at once, and how long that took.

use std::time::Instant;

use crate::port::redis::told::AskedKeys;

/// The clock is read when a turn begins, when it ends, and when requests for another name come: not for each of a pipeline.
pub(super) struct Turn {
    began: Instant,
    /// The last that was answered, and how many before it were for the same name, with it.
    answered: Option<(AskedKeys, u64)>,
}

impl Turn {
    pub(super) fn begin() -> Self {
        Self {
            began: Instant::now(),
            answered: None,
        }
    }

    /// When it began.
    pub(super) fn began(&self) -> Instant {
        self.began
    }

    /// The keys of a request were told.
    pub(super) fn answered(&mut self, asked: AskedKeys) {
        match &mut self.answered {
            Some((last, count)) if last.is_of_same_name(&asked) => {
                *count = count.saturating_add(1);
            }
            Some(_) | None => {
                self.note();
                self.answered = Some((asked, 1));
            }
        }
    }

    /// What was answered is noted as having taken until now.
    pub(super) fn note(&mut self) {
        if let Some((asked, count)) = self.answered.take() {
            asked.took(count, self.began.elapsed());
        }
    }
}
