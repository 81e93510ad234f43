//! What keeps a configuration from being in force: the log is told when it changes, metrics show it until it is over.

/// How far a program is with what its configuration wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Progress {
    /// Something is under way.
    Busy,
    /// Nothing can be done now about what is still to be switched.
    Waits,
    /// Another program must switch what is to be switched.
    LeftToOthers,
    /// Nothing is to be switched.
    Settled,
}

/// What there is of it.
#[derive(Debug, Default)]
pub(super) struct Trouble {
    /// What was logged last, and has not changed. Each attempt that was given up is logged again.
    reported: Option<String>,
    /// As metrics and the status page show it. Attempts follow each other later and later: in between it is no less there.
    shown: Option<String>,
}

impl Trouble {
    /// After a step. `given_up`: why an attempt was, as the log has it already. With what is to be logged.
    pub(super) fn note(
        &mut self,
        stepped: Result<Progress, String>,
        given_up: Option<String>,
    ) -> Option<String> {
        let given_up_now = given_up.is_some();
        if given_up_now {
            self.shown = given_up;
        }
        match stepped {
            // No attempt of this program's own comes that would be logged again.
            Ok(Progress::Busy | Progress::LeftToOthers) => None,
            Ok(Progress::Waits) => {
                self.reported = None;
                None
            }
            Ok(Progress::Settled) => {
                self.reported = None;
                if !given_up_now {
                    self.shown = None;
                }
                None
            }
            Err(trouble) => {
                let before = self.reported.replace(trouble.clone());
                self.shown = Some(trouble.clone());
                (before.as_ref() != Some(&trouble)).then_some(trouble)
            }
        }
    }

    /// Another configuration: what is in its way is logged, also if it was in the way of the one before.
    pub(super) fn tell_again(&mut self) {
        self.reported = None;
    }

    /// Whether something was logged since the last moment at which nothing could be done.
    pub(super) fn is_reported(&self) -> bool {
        self.reported.is_some()
    }

    /// What metrics show.
    pub(super) fn shown(&self) -> Option<String> {
        self.shown.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::{Progress, Trouble};

    fn failed(why: &str) -> Result<Progress, String> {
        Err(why.to_owned())
    }

    #[test]
    fn it_is_shown_until_nothing_is_to_be_switched() {
        let mut trouble = Trouble::default();
        let locked = || failed("locked");
        for _ in 0..2 {
            // Each attempt is logged, and its failure is no less there until the next.
            assert_eq!(trouble.note(locked(), None).as_deref(), Some("locked"));
            assert_eq!(trouble.note(locked(), None), None);
            for progress in [Progress::Busy, Progress::Waits, Progress::Waits] {
                assert_eq!(trouble.note(Ok(progress), None), None);
                assert_eq!(trouble.shown().as_deref(), Some("locked"));
            }
            assert!(!trouble.is_reported());
        }
        assert_eq!(trouble.note(Ok(Progress::Settled), None), None);
        assert_eq!(trouble.shown(), None);
    }

    #[test]
    fn what_is_left_to_others_is_logged_once_for_each_configuration() {
        let mut trouble = Trouble::default();
        let left = || failed("this program switches no tables");
        for _ in 0..2 {
            assert!(trouble.note(left(), None).is_some());
            for progress in [Progress::LeftToOthers, Progress::Busy] {
                assert_eq!(trouble.note(Ok(progress), None), None);
                assert!(trouble.shown().is_some());
                // Looked at again.
                assert_eq!(trouble.note(left(), None), None);
            }
            trouble.tell_again();
        }
        assert_eq!(trouble.note(Ok(Progress::Settled), None), None);
        assert_eq!(trouble.shown(), None);
    }

    #[test]
    fn an_attempt_that_took_too_long_is_shown_too() {
        let mut trouble = Trouble::default();
        let late = Some("too long".to_owned());
        assert_eq!(trouble.note(Ok(Progress::Busy), late), None);
        assert!(!trouble.is_reported(), "the log has it already");
        for progress in [Progress::Busy, Progress::Waits] {
            trouble.note(Ok(progress), None);
            assert_eq!(trouble.shown().as_deref(), Some("too long"));
        }
        trouble.note(failed("the store is away"), None);
        assert_eq!(trouble.shown().as_deref(), Some("the store is away"));
        trouble.note(Ok(Progress::Settled), None);
        assert_eq!(trouble.shown(), None);
    }
}
