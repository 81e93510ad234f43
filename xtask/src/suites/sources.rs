//! The source files of a target, and what tests they could have: known without building anything.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// A file that is compiled into a target.
pub(super) struct Source {
    #[cfg_attr(
        not(test),
        expect(dead_code, reason = "only tests ask which files there are")
    )]
    pub(super) path: PathBuf,
    /// The modules that lead to it from the root.
    pub(super) modules: Vec<String>,
    pub(super) text: String,
}

/// The file at a target's root and all modules below it, as the compiler finds them.
///
/// # Errors
/// A file cannot be read.
pub(super) fn of(root: &Path) -> Result<Vec<Source>> {
    let mut sources = Vec::new();
    let dir = root.parent().unwrap_or(root).to_path_buf();
    add(root.to_path_buf(), &dir, Vec::new(), &mut sources)?;
    Ok(sources)
}

/// Adds a file whose modules lie in the directory.
fn add(path: PathBuf, dir: &Path, modules: Vec<String>, sources: &mut Vec<Source>) -> Result<()> {
    let text = fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
    let mut declarations = Vec::new();
    let mut before = "";
    for line in text.lines().map(str::trim) {
        if let Some(name) = declared(line) {
            let elsewhere = before
                .strip_prefix("#[path = \"")
                .and_then(|rest| rest.strip_suffix("\"]"));
            declarations.push((name.to_owned(), elsewhere.map(str::to_owned)));
        }
        before = line;
    }
    let beside = path.parent().unwrap_or(dir).to_path_buf();
    sources.push(Source {
        path,
        modules: modules.clone(),
        text,
    });
    for (name, elsewhere) in declarations {
        let (file, below) = match elsewhere {
            Some(file) => {
                let file = beside.join(file);
                let file = fs::canonicalize(&file)
                    .with_context(|| format!("finding {}", file.display()))?;
                let below = file.parent().unwrap_or(dir).to_path_buf();
                (file, below)
            }
            None => {
                let below = dir.join(&name);
                let file = dir.join(format!("{name}.rs"));
                if file.is_file() {
                    (file, below)
                } else {
                    (below.join("mod.rs"), below)
                }
            }
        };
        let modules = modules.iter().cloned().chain([name]).collect();
        add(file, &below, modules, sources)?;
    }
    Ok(())
}

/// The module that a line declares to be in a file of its own.
fn declared(line: &str) -> Option<&str> {
    let line = match line.strip_prefix("pub") {
        Some(rest) => rest.trim_start_matches(|c: char| c != ' ').trim_start(),
        None => line,
    };
    let name = line.strip_prefix("mod ")?.strip_suffix(';')?;
    is_name(name).then_some(name)
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c == '_' || c.is_alphanumeric())
}

impl Source {
    /// Whether it says of a function that it is a test.
    pub(super) fn has_tests(&self) -> bool {
        let mut lines = self.text.lines().map(str::trim);
        lines.any(|line| line.starts_with("#[") && line.contains("test]"))
    }

    /// Whether it calls a macro, which may make tests, where a function could stand.
    pub(super) fn calls_macros(&self) -> bool {
        self.text.lines().any(|line| {
            let Some((name, rest)) = line.split_once('!') else {
                return false;
            };
            rest.starts_with(['(', '{', ' ']) && name.split("::").all(is_name)
        })
    }

    /// Whether its documentation has an example that is Rust.
    pub(super) fn has_examples(&self) -> bool {
        let mut inside = false;
        self.text.lines().any(|line| {
            let line = line.trim_start();
            let said = line
                .strip_prefix("///")
                .or_else(|| line.strip_prefix("//!"));
            let Some(kind) = said.and_then(|said| said.trim_start().strip_prefix("```")) else {
                return false;
            };
            inside = !inside;
            inside && kind != "text"
        })
    }

    /// The names of its functions and modules.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        names(&self.text)
    }

    /// The names of functions and modules that its macros make.
    pub(super) fn names_in_macros(&self) -> impl Iterator<Item = &str> {
        let macros = self.text.find("macro_rules!").map(|at| &self.text[at..]);
        names(macros.unwrap_or_default())
    }
}

fn names(text: &str) -> impl Iterator<Item = &str> {
    let mut words = text.split(|c: char| c != '_' && !c.is_alphanumeric());
    std::iter::from_fn(move || {
        words.find(|word| matches!(*word, "fn" | "mod"))?;
        words.next()
    })
    .filter(|name| !name.is_empty())
}
