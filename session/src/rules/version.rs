//! What one version of the rules lets begin.

use std::sync::Arc;

use crate::rules::Rules;
use crate::rules::admissions::CountedAdmission;
use crate::rules::traffic::UnderWay;

impl Rules {
    /// Which version they are; without traffic there is one only.
    pub fn version(&self) -> u64 {
        self.admissions().map_or(0, |admissions| admissions.version)
    }

    /// The identity of a server on which keys are in force, as all connections share it.
    pub(crate) fn server(&self, identity: &[u8]) -> Option<Arc<[u8]>> {
        let mut admissions = self.admissions()?.admissions.iter();
        admissions.find_map(|admission| admission.servers.as_ref()?.get(identity).cloned())
    }

    /// Whether new statements on those tables wait.
    pub(crate) fn holds(&self, under_way: &UnderWay) -> bool {
        let admissions = self
            .admissions()
            .map_or(&[][..], |admissions| &admissions.admissions);
        admissions
            .iter()
            .any(|admission| admission.is_held && under_way.is_of(&admission.under_way))
    }

    /// Whether a rule's tables may go over to keys and back.
    pub(crate) fn is_switched(&self, rule: usize) -> bool {
        let rule = self.configured(rule);
        let admission = self
            .admissions()
            .and_then(|admissions| admissions.admissions.get(rule));
        admission.is_some_and(|admission| admission.is_switched)
    }

    /// The configured rules whose tables a text may name.
    pub(super) fn named_in(&self, text: &[u8]) -> Vec<usize> {
        let admissions = self
            .admissions()
            .map_or(&[][..], |admissions| &admissions.admissions);
        let names = |admission: &CountedAdmission| {
            let table = admission.table.as_ref();
            admission.is_switched && table.is_none_or(|table| table.find(text).is_some())
        };
        let admissions = admissions.iter().enumerate();
        admissions
            .filter(|(_, admission)| names(admission))
            .map(|(rule, _)| rule)
            .collect()
    }
}
