//! Statements that are kept back for a server that `admin` does not lead to: nothing brings keys into force there.

/// How often servers are looked at in vain before that is said: in a failover `admin` may be behind `upstream` for a moment.
const LOOKS_IN_VAIN: u32 = 2;

/// What was seen of that so far.
#[derive(Debug, Default)]
pub(super) struct KeptBack {
    /// How many statements had been kept back at the last look.
    met: u64,
    /// How many looks in a row found more of them, and no server on which keys are not in force.
    looks: u32,
}

impl KeptBack {
    /// After a look at the servers that `admin` leads to: so many statements were kept back until then (`met`), and keys are in force on all of
    /// the servers (`are_known`). True: that is to be said, once.
    pub(super) fn look(&mut self, met: u64, are_known: bool) -> bool {
        let is_more = met > self.met;
        self.met = met;
        match (are_known, is_more) {
            (false, _) => self.looks = 0,
            (true, true) => self.looks = self.looks.saturating_add(1),
            (true, false) => {}
        }
        are_known && is_more && self.looks == LOOKS_IN_VAIN
    }
}

#[cfg(test)]
mod tests {
    use super::KeptBack;

    #[test]
    fn it_is_said_once_and_not_of_a_failover() {
        let mut kept_back = KeptBack::default();
        // Nothing, one statement, nothing more, another.
        let told: Vec<bool> = [(0, true), (1, true), (1, true), (2, true), (3, true)]
            .into_iter()
            .map(|(met, are_known)| kept_back.look(met, are_known))
            .collect();
        assert_eq!(told, [false, false, false, true, false]);
        let mut kept_back = KeptBack::default();
        // `admin` leads to the new server a moment later.
        for (met, are_known) in [(1, true), (2, false), (2, true), (3, true)] {
            assert!(!kept_back.look(met, are_known), "{met}");
        }
    }
}
