//! Parts and files of the documentation that are made from the sources: tests compare them, and write them when `KEYWRIGHT_DOCS` is `write`.

use std::fs::{self, File};
use std::path::Path;

use anyhow::{Context, bail};

use crate::{Result, workspace_root};

/// Compares a part of a page with what it should be, or writes it. The part lies between `<!-- begin NAME: … -->` and
/// `<!-- end NAME -->`, in SQL between the lines `-- begin NAME: …` and `-- end NAME`.
///
/// # Errors
/// The page lacks the part, or holds another one.
pub fn generated_part(page: &str, name: &str, text: &str) -> Result<()> {
    let path = workspace_root().join(page);
    // Suites that run at the same time write parts of one page.
    let target = workspace_root().join("target");
    fs::create_dir_all(&target)?;
    let lock = File::create(target.join("docs.lock"))?;
    lock.lock()?;
    let before = fs::read_to_string(&path).with_context(|| format!("reading {page}"))?;
    let marks = if page.ends_with(".sql") {
        &SQL
    } else {
        &MARKDOWN
    };
    let after = with_part(&before, name, text, marks)
        .with_context(|| format!("{page} has no place for the part {name}"))?;
    if before == after {
        return Ok(());
    }
    if is_written() {
        return write_whole(&path, &after);
    }
    bail!(
        "{page}: the part {name} is stale; `cargo xtask docs` writes it\n{}",
        first_difference(&before, &after)
    )
}

/// Compares a file that is made as a whole with what it should be, or writes it.
///
/// # Errors
/// The file is not there, or holds something else.
pub fn generated_file(file: &str, text: &str) -> Result<()> {
    let path = workspace_root().join(file);
    let before = fs::read_to_string(&path).unwrap_or_default();
    if before == text {
        return Ok(());
    }
    if is_written() {
        return write_whole(&path, text);
    }
    bail!(
        "{file} is stale; `cargo xtask docs` writes it\n{}",
        first_difference(&before, text)
    )
}

/// Whether parts are written in place of compared.
fn is_written() -> bool {
    std::env::var("KEYWRIGHT_DOCS").is_ok_and(|what| what == "write")
}

/// In one step, so that nobody reads half a page.
fn write_whole(path: &Path, text: &str) -> Result<()> {
    let written = path.with_extension("written");
    fs::write(&written, text)?;
    fs::rename(written, path)?;
    Ok(())
}

/// How the beginning and the end of a part are marked.
struct Marks {
    /// Before the words of a mark.
    open: &'static str,
    /// Behind them.
    close: &'static str,
    /// Between a mark and the part.
    blank: &'static str,
}

const MARKDOWN: Marks = Marks {
    open: "<!-- ",
    close: " -->",
    blank: "\n",
};
const SQL: Marks = Marks {
    open: "-- ",
    close: "",
    blank: "",
};

/// The page with this text as that part.
fn with_part(page: &str, name: &str, text: &str, marks: &Marks) -> Option<String> {
    let Marks { open, close, blank } = marks;
    let begin = format!("{open}begin {name}:");
    let end = format!("{open}end {name}{close}");
    let (before, rest) = page.split_once(&begin)?;
    let (opening, rest) = rest.split_once(&format!("{close}\n"))?;
    let (_, after) = rest.split_once(&end)?;
    let text = text.trim_end();
    Some(format!(
        "{before}{begin}{opening}{close}\n{blank}{text}\n{blank}{end}{after}"
    ))
}

fn first_difference(before: &str, after: &str) -> String {
    let differ = before.lines().zip(after.lines()).find(|(is, be)| is != be);
    match differ {
        Some((is, be)) => format!("it is:     {is}\nit should: {be}"),
        None => "one of them is longer".to_owned(),
    }
}

/// A Markdown table. Bars in cells are escaped.
#[must_use]
pub fn table<const N: usize>(
    head: [&str; N],
    rows: impl IntoIterator<Item = [String; N]>,
) -> String {
    let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
    let mut text = line(&head.map(str::to_owned));
    text += &line(&head.map(|_| "---".to_owned()));
    for row in rows {
        text += &line(&row.map(|cell| cell.replace('|', "\\|").replace('\n', " ")));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_replaced_and_what_is_around_it_stays() {
        let page = "a\n<!-- begin x: made -->\nold\n<!-- end x -->\nb\n";
        let after = "a\n<!-- begin x: made -->\n\nnew\n\n<!-- end x -->\nb\n";
        let with = |page, name, text| with_part(page, name, text, &MARKDOWN);
        assert_eq!(with(page, "x", "new\n").as_deref(), Some(after));
        assert_eq!(with(after, "x", "new").as_deref(), Some(after));
        assert_eq!(with(page, "y", "new"), None);
    }

    #[test]
    fn a_part_of_sql_lies_between_comments() {
        let before = "CASE\n-- begin x: made\nold\n-- end x\nEND\n";
        let after = "CASE\n-- begin x: made\n    new\n-- end x\nEND\n";
        assert_eq!(
            with_part(before, "x", "    new\n", &SQL).as_deref(),
            Some(after)
        );
        assert_eq!(
            with_part(after, "x", "    new", &SQL).as_deref(),
            Some(after)
        );
    }

    #[test]
    fn bars_in_cells_do_not_end_them() {
        let row = ["a|b".to_owned(), "c".to_owned()];
        assert_eq!(
            table(["x", "y"], [row]),
            "| x | y |\n| --- | --- |\n| a\\|b | c |\n"
        );
    }
}
