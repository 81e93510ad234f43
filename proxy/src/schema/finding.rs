//! What the operator should know.

/// One thing to be known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// How bad it is.
    pub severity: Severity,
    /// What it is. Where it is of many tables, it names some of them.
    pub message: String,
    /// All that it is of, where those are many.
    pub tables: Vec<String>,
}

/// Tables of which the same is to be said each have a finding of their own, up to so many.
const LINES_MAX: usize = 3;
/// Names that a finding of many tables has at most.
const NAMES_MAX: usize = 3;

/// How bad something is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// It forbids starting.
    Error,
    /// A table gets no keys, or not all that a rule gives.
    LeftOut,
    /// It should be known.
    Warning,
    /// It should be known before the rules are in force.
    Note,
}

impl Severity {
    /// A finding that is so bad.
    pub fn of(self, message: String) -> Finding {
        Finding {
            severity: self,
            message,
            tables: Vec::new(),
        }
    }

    /// Findings that are so bad: one for each table, or one for all where the same is to be said of many.
    pub(super) fn of_each(self, tables: impl Iterator<Item = OfTable>) -> Vec<Finding> {
        // In the order in which they came.
        let mut alike: Vec<(String, Vec<OfTable>)> = Vec::new();
        for table in tables {
            match alike.iter_mut().find(|(key, _)| *key == table.key) {
                Some((_, tables)) => tables.push(table),
                None => alike.push((table.key.clone(), vec![table])),
            }
        }
        let findings = alike.into_iter().map(|(_, tables)| self.of_alike(tables));
        findings.flatten().collect()
    }

    fn of_alike(self, tables: Vec<OfTable>) -> Vec<Finding> {
        if tables.len() <= LINES_MAX {
            let tables = tables.into_iter();
            return tables.map(|table| self.of(table.message)).collect();
        }
        let names: Vec<String> = tables.iter().map(|table| table.name.clone()).collect();
        let Some(first) = tables.into_iter().next() else {
            return Vec::new();
        };
        let others = some(names.get(1..).unwrap_or_default());
        let message = format!("{}. The same of {others}", first.message);
        vec![Finding {
            tables: names,
            ..self.of(message)
        }]
    }

    /// A finding that is so bad, and of all these tables.
    pub(super) fn of_all(self, what: &str, tables: Vec<String>) -> Finding {
        let message = format!("{what}: {}", some(&tables));
        let is_many = tables.len() > NAMES_MAX;
        Finding {
            tables: if is_many { tables } else { Vec::new() },
            ..self.of(message)
        }
    }
}

/// The first few names, and how many more there are.
fn some(names: &[String]) -> String {
    let more = names.len().saturating_sub(NAMES_MAX);
    let shown = names
        .get(..names.len() - more)
        .unwrap_or_default()
        .join(", ");
    match more {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

/// What is to be said of one table, or of something else that has a name.
pub(super) struct OfTable {
    name: String,
    message: String,
    /// Alike where the same is to be said.
    key: String,
}

impl OfTable {
    /// A message with the name in it.
    pub(super) fn new(name: &str, message: String) -> OfTable {
        OfTable {
            name: name.to_owned(),
            key: message.replace(name, ""),
            message,
        }
    }

    /// A message in which not only the name is the table's own.
    pub(super) fn alike(key: &str, name: &str, message: String) -> OfTable {
        OfTable {
            name: name.to_owned(),
            message,
            key: key.to_owned(),
        }
    }
}
