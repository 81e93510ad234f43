//! What each version of the rules lets begin on the tables of a rule.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use memchr::memmem::Finder;

use crate::rules::traffic::Traffic;

/// How one version of the rules takes part in it.
pub(crate) struct Admissions {
    pub(super) traffic: Arc<Traffic>,
    pub(super) version: u64,
    /// By configured rule.
    pub(super) admissions: Vec<CountedAdmission>,
}

/// A configured rule, as one version of the rules has it.
pub(super) struct CountedAdmission {
    pub(super) is_held: bool,
    pub(super) waits_for_store: bool,
    pub(super) is_switched: bool,
    pub(super) servers: Option<BTreeSet<Vec<u8>>>,
    pub(super) under_way: Arc<AtomicU64>,
    /// What a statement that names one of its tables has in its text; `None`: no single name.
    pub(super) table: Option<Finder<'static>>,
}

/// A configured rule, as it takes part in a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleAdmission {
    /// Its name.
    pub name: String,
    /// New statements on its tables wait.
    pub is_held: bool,
    /// INSERTs on its tables wait.
    pub waits_for_store: bool,
    /// Its tables may go over to keys and back.
    pub is_switched: bool,
    /// The servers on which its keys are in force; `None`: on any.
    pub servers: Option<BTreeSet<String>>,
}

impl Admissions {
    pub(crate) fn new<'a>(
        traffic: &Arc<Traffic>,
        version: u64,
        rules: impl Iterator<Item = (&'a RuleAdmission, Option<&'a [u8]>)>,
    ) -> Self {
        let admissions = rules.map(|(admission, table)| CountedAdmission {
            is_held: admission.is_held,
            waits_for_store: admission.waits_for_store,
            is_switched: admission.is_switched,
            servers: admission.servers.as_ref().map(|servers| {
                let servers = servers.iter().map(|server| server.as_bytes().to_vec());
                servers.collect()
            }),
            under_way: traffic.count(&admission.name),
            table: table.map(|table| Finder::new(table).into_owned()),
        });
        Self {
            version,
            admissions: admissions.collect(),
            traffic: Arc::clone(traffic),
        }
    }
}
