//! Statements that are run natively and once more in another way, and must not be told apart.
//!
//! A corpus file holds scenarios:
//!
//! ```text
//! === name of the scenario
//! only: mariadb                        (optional)
//! columns known                        (optional: where nobody looks at tables before, it cannot be run)
//! CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT);
//! --- run
//! @params 1
//! INSERT INTO t (a) VALUES (?);
//! ```
//!
//! What stands before `--- run` is run on the server itself, in a schema of the scenario's own. A statement ends with a
//! `;` at the end of a line, or between the lines `<<` and `>>`; `{db}` in it is the schema, `{DB}` too but in capitals, `{xBF5C}`
//! are bytes. `#` begins a comment. Lines with `@` belong to the next statement:
//!
//! | | |
//! |---|---|
//! | `@params 1, 'x', x'00', NULL` | it is prepared, and executed with these; several lines: several times. `ahead 'x'` is sent before, by COM_STMT_SEND_LONG_DATA |
//! | `@local a\nb\n` | what the server gets for a local file |
//! | `@elsewhere` | it is run by somebody else, directly on the server |
//! | `@only mysql` | on that flavour only |
//! | `@text` | it is never prepared |
//! | `@command init_db {db}` | instead of a statement: `init_db`, `ping`, `reset_connection`, `change_user` |
//! | `@refused construct` | the proxy refuses it with error 1235 that names this; nothing is run natively |
//! | `@deviates reason` | the answers differ, which is known and documented; that they do is checked as well |
//! | `@deviates_after reason` | the answer is the same, but what the session says of it afterwards differs |
//!
//! The keys of [`KEY_SPACES`] may differ. They are numbers from [`KEY_FIRST`], each space's in a range of its own, and are
//! compared by their order: the smallest of `t` that is seen on either side is `#t.1`. Everything else must be the same, byte
//! by byte.

mod compare;
mod keys;
mod parse;
mod run;
mod scenario;
mod side;
pub(crate) mod transcript;

use std::path::Path;

use anyhow::Context;

use crate::Result;

pub use compare::{Report, compare, set_up};
pub use keys::{KEY_FIRST, KEY_SPACE_SIZE, KEY_SPACES};
pub use scenario::Scenario;
pub use side::{Side, TwinKeys};

/// Reads all files of a directory.
///
/// # Errors
/// A file cannot be read or understood, or two scenarios have the same name.
pub fn load(dir: &Path) -> Result<Vec<Scenario>> {
    let mut files: Vec<_> = std::fs::read_dir(dir)
        .with_context(|| format!("listing {}", dir.display()))?
        .flatten()
        .map(|entry| entry.path())
        .collect();
    files.sort();
    let mut scenarios: Vec<Scenario> = Vec::new();
    for file in files {
        let text = std::fs::read_to_string(&file)?;
        let found =
            parse::scenarios(&text).with_context(|| format!("reading {}", file.display()))?;
        for scenario in found {
            if scenarios.iter().any(|other| other.name == scenario.name) {
                anyhow::bail!("scenario {:?} is there twice", scenario.name);
            }
            scenarios.push(scenario);
        }
    }
    Ok(scenarios)
}
