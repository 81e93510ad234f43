//! The one judge: no id twice, and every issuer's ids strictly increasing.

use std::collections::{HashMap, HashSet};

/// Where ids come from: one atomic word, over all crashes and servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Source {
    /// States of one worker id.
    Worker { worker: u32, spare: bool },
    /// Ids of one tag of one store.
    Tag { store: u8, database: u8, tag: usize },
}

/// Within which ids must be distinct.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Space {
    Snowflake,
    Tag { store: u8, database: u8, tag: usize },
}

impl Source {
    fn space(self) -> Space {
        match self {
            Self::Worker { .. } => Space::Snowflake,
            Self::Tag {
                store,
                database,
                tag,
            } => Space::Tag {
                store,
                database,
                tag,
            },
        }
    }
}

/// Everything that was issued in one run.
#[derive(Debug, Default)]
pub struct Checker {
    issued: HashMap<(Space, i64), (u32, u32)>,
    last: HashMap<(u32, Source), i64>,
    ends: HashMap<Source, u64>,
    void: HashSet<Source>,
    /// Takeovers that would have repeated ids without their gap.
    pub saved_by_gap: usize,
    /// What went wrong first.
    pub violation: Option<String>,
}

impl Checker {
    /// Takes note of an id. `number` is the state or tag id behind it.
    pub fn issue(&mut self, source: Source, number: u64, id: i64, backend: u32, step: u32) {
        if self.void.contains(&source) {
            return;
        }
        if let Some((by, at)) = self.issued.insert((source.space(), id), (backend, step)) {
            self.fail(format!("id {id} of {source:?} issued by backend {by} in step {at} and by backend {backend} in step {step}"));
        }
        if let Some(last) = self.last.insert((backend, source), id)
            && last >= id
        {
            self.fail(format!(
                "backend {backend} got {id} of {source:?} after {last}, in step {step}"
            ));
        }
        let end = self.ends.entry(source).or_default();
        *end = (*end).max(number + 1);
    }

    /// Reports what the run itself found wrong.
    pub fn fail(&mut self, what: String) {
        self.violation.get_or_insert(what);
    }

    /// The first state or tag id above all that were issued.
    pub fn end_of(&self, source: Source) -> u64 {
        self.ends.get(&source).copied().unwrap_or(0)
    }

    /// No promise holds for the source any more: more was lost than any gap is made for.
    pub fn give_up(&mut self, source: Source) {
        self.void.insert(source);
    }

    /// Whether the promise still holds.
    pub fn is_void(&self, source: Source) -> bool {
        self.void.contains(&source)
    }

    /// Sources without a promise.
    pub fn voids(&self) -> usize {
        self.void.len()
    }

    /// Ids issued.
    pub fn count(&self) -> usize {
        self.issued.len()
    }

    /// A copy of store `from` begins as store `to`: it holds the rows with all ids issued so far.
    pub fn copy_store(&mut self, from: u8, to: u8) {
        let copied: Vec<_> = self
            .issued
            .iter()
            .filter_map(|((space, id), by)| match space {
                Space::Tag {
                    store,
                    database,
                    tag,
                } if *store == from => Some((
                    (
                        Space::Tag {
                            store: to,
                            database: *database,
                            tag: *tag,
                        },
                        *id,
                    ),
                    *by,
                )),
                Space::Tag { .. } | Space::Snowflake => None,
            })
            .collect();
        self.issued.extend(copied);
        let ends: Vec<_> = self
            .ends
            .iter()
            .filter_map(|(source, end)| match source {
                Source::Tag {
                    store,
                    database,
                    tag,
                } if *store == from => Some((
                    Source::Tag {
                        store: to,
                        database: *database,
                        tag: *tag,
                    },
                    *end,
                )),
                Source::Tag { .. } | Source::Worker { .. } => None,
            })
            .collect();
        self.ends.extend(ends);
        let void: Vec<_> = self
            .void
            .iter()
            .filter_map(|source| match source {
                Source::Tag {
                    store,
                    database,
                    tag,
                } if *store == from => Some(Source::Tag {
                    store: to,
                    database: *database,
                    tag: *tag,
                }),
                Source::Tag { .. } | Source::Worker { .. } => None,
            })
            .collect();
        self.void.extend(void);
    }
}
