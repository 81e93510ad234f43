//! Figures of the benchmarks that stand in prose are those of `docs/benchmarks.md`, and targets that are not met are explained there.
//!
//! A mark stands behind a figure, where no reader sees it: `0.05<!-- benchmark: next_biz_id('t'), CPU per call × nextval, CACHE 1 -->`.
//! It names a target; or a cell of another table, as `section → row → column`; or a figure in the text of a section, as
//! `section → the words behind it`. Behind `0.92 to 0.96` it names several, `; ` between them: the two are their lowest and highest medians.
//! Several behind one figure all have that.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use keywright_testkit::{Result, workspace_root};

const BENCHMARKS: &str = "docs/benchmarks.md";
const SOURCES: &str = "xtask/src/bench";
const MARK: &str = "<!-- benchmark: ";
const MARK_END: &str = " -->";
/// The column of a target's figures.
const SEEN: &str = "seen (lowest … highest)";
const MISSES: &str = "\n## Targets that are not met\n";

fn benchmarks() -> Result<String> {
    Ok(fs::read_to_string(workspace_root().join(BENCHMARKS))?)
}

/// Adds the files below a directory that have that extension.
fn add_files(dir: &Path, extension: &str, found: &mut Vec<PathBuf>) -> Result<()> {
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        if path.is_dir() {
            add_files(&path, extension, found)?;
        } else if path.extension().is_some_and(|of| of == extension) {
            found.push(path);
        }
    }
    Ok(())
}

/// All pages but the one of the benchmarks, with their texts.
fn pages() -> Result<Vec<(PathBuf, String)>> {
    let root = workspace_root();
    let mut paths = vec![root.join("README.md"), root.join("ARCHITECTURE.md")];
    add_files(&root.join("docs"), "md", &mut paths)?;
    paths.retain(|path| !path.ends_with(BENCHMARKS));
    let mut pages = Vec::new();
    for path in paths {
        let text = fs::read_to_string(&path)?;
        pages.push((path, text));
    }
    Ok(pages)
}

/// A section of the page.
fn section<'a>(page: &'a str, title: &str) -> Result<&'a str> {
    let (_, rest) = page
        .split_once(&format!("\n## {title}\n"))
        .context("no such section")?;
    let ends = ["\n## ", "\n# "].into_iter().filter_map(|of| rest.find(of));
    let end = ends.min().unwrap_or(rest.len());
    rest.get(..end).context("no end")
}

fn cells(line: &str) -> Vec<&str> {
    let cells = line.trim_matches('|').split('|');
    cells.map(str::trim).collect()
}

/// A cell of the first table that has such a row and column.
fn cell<'a>(text: &'a str, row: &str, column: &str) -> Result<&'a str> {
    let mut head: Option<Vec<&str>> = None;
    for line in text.lines() {
        if !line.starts_with('|') {
            head = None;
            continue;
        }
        let cells = cells(line);
        let Some(head) = &head else {
            head = Some(cells);
            continue;
        };
        let at = head.iter().position(|name| *name == column);
        if let Some(at) = at.filter(|_| cells.first() == Some(&row)) {
            return cells.get(at).copied().context("a row is too short");
        }
    }
    bail!("no row {row:?} in a table with {column:?}")
}

/// The median that a mark names: of `41.1 (38.0 … 43.6)` the first figure.
fn median(page: &str, name: &str) -> Result<f64> {
    let parts: Vec<&str> = name.split(" → ").collect();
    let spread = match parts.as_slice() {
        [target] => cell(page, target, SEEN)?,
        [title, row, column] => cell(section(page, title)?, row, column)?,
        [title, behind] => {
            let (before, _) = section(page, title)?
                .split_once(&format!(" {behind}"))
                .with_context(|| format!("no {behind:?}"))?;
            let (before, _) = before.rsplit_once(" (").context("no spread")?;
            before.split_whitespace().next_back().unwrap_or_default()
        }
        _ => bail!("neither a target nor a place in a section"),
    };
    let figure = spread.split(" (").next().unwrap_or_default();
    figure.parse().with_context(|| spread.to_owned())
}

/// How many figures of a text are marked, and which of them the page does not have.
fn stale(text: &str, page: &str) -> Result<(usize, Vec<String>)> {
    let (mut marks, mut stale) = (0, Vec::new());
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once(MARK) {
        let (names, after) = behind.split_once(MARK_END).context("a mark does not end")?;
        let medians = names
            .split("; ")
            .map(|name| median(page, name).with_context(|| name.to_owned()))
            .collect::<Result<Vec<f64>>>()?;
        let highest = medians.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let lowest = medians.iter().copied().fold(f64::INFINITY, f64::min);
        let mut words = before.split_whitespace().rev();
        let last = words.next();
        let is_range = medians.len() > 1 && words.next() == Some("to");
        let first = if is_range { words.next() } else { last };
        for (word, median) in [(first, lowest), (last, highest)] {
            let word = word.unwrap_or_default();
            let figure = word.trim_start_matches(|char: char| !char.is_ascii_digit());
            let decimals = figure.split_once('.').map_or(0, |(_, of)| of.len());
            let now = format!("{median:.decimals$}");
            if figure != now {
                stale.push(format!("{word:?} is {now} by now: {names}"));
            }
        }
        marks += 1;
        rest = after;
    }
    stale.dedup();
    Ok((marks, stale))
}

/// Whether a paragraph has a figure such as 0.95.
fn has_ratio(paragraph: &str) -> bool {
    paragraph.match_indices("0.").any(|(at, _)| {
        let (before, behind) = (&paragraph[..at], &paragraph[at + 2..]);
        let is_whole = !before.ends_with(|char: char| char.is_ascii_digit() || char == '.');
        let digits = behind.chars().take_while(char::is_ascii_digit).count();
        is_whole && digits == 2
    })
}

#[test]
fn figures_in_prose_are_those_of_the_benchmarks() -> Result<()> {
    let page = benchmarks()?;
    let (mut count, mut wrong) = (0, Vec::new());
    for (path, text) in pages()? {
        let (marks, stale) = stale(&text, &page).with_context(|| path.display().to_string())?;
        count += marks;
        let of_page = |stale: String| format!("{}: {stale}", path.display());
        wrong.extend(stale.into_iter().map(of_page));
        for paragraph in text.split("\n\n") {
            let is_of_benchmarks = paragraph.contains("benchmarks.md") && has_ratio(paragraph);
            if is_of_benchmarks && !paragraph.contains(MARK) {
                wrong.push(format!("{}: no mark: {paragraph}", path.display()));
            }
        }
    }
    assert!(count > 10, "only {count} marks");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    Ok(())
}

#[test]
fn a_stale_figure_is_found() -> Result<()> {
    let page = "\n## Targets\n\n| target | seen (lowest … highest) |\n| --- | --- |\n| a: CPU | 0.958 (0.9 … 1.0) |\n| b: CPU | 0.923 (0.9 … 1.0) |\n\
        \n## Load\n\nAn insert runs at 0.925 (0.8 … 0.97) (text).\n\n| way | × x | kB |\n| --- | --- | --- |\n| a | 1.000 (1.0 … 1.0) | 4.3 (4.3 … 4.3) |\n";
    let good = "It takes (0.96<!-- benchmark: a: CPU -->), 0.92 to\n0.96<!-- benchmark: a: CPU; b: CPU --> and 0.93<!-- benchmark: Load → (text) -->, \
        with 4<!-- benchmark: Load → a → kB --> kB.";
    assert_eq!(stale(good, page)?, (4, Vec::new()));
    for (is, was) in [
        ("(0.96", "(0.95"),
        ("0.92 to", "0.91 to"),
        ("with 4", "with 5"),
        ("0.92 to", "0.92 and"),
    ] {
        let (marks, stale) = stale(&good.replace(is, was), page)?;
        assert_eq!((marks, stale.len()), (4, 1), "{was}: {stale:?}");
    }
    assert!(stale("1<!-- benchmark: c: CPU -->", page).is_err());
    assert!(has_ratio("costs 0.05 of") && !has_ratio("10.05, 127.0.0.1:80 and 0.1"));
    Ok(())
}

/// The targets that a line names, and the reason behind them: `` - `a`; `b` (in no round). Because. ``
fn explained(line: &str) -> Option<(Vec<&str>, &str)> {
    let mut rest = line.strip_prefix("- ")?;
    let mut names = Vec::new();
    loop {
        let (name, behind) = rest.strip_prefix('`')?.split_once('`')?;
        names.push(name);
        let behind = behind.strip_prefix(" (in no round)").unwrap_or(behind);
        match behind.strip_prefix("; ") {
            Some(more) => rest = more,
            None => return Some((names, behind.strip_prefix(". ")?)),
        }
    }
}

/// The texts of the benchmarks' sources, strings that go over several lines in one.
fn sources() -> Result<String> {
    let mut files = vec![workspace_root().join(SOURCES).with_extension("rs")];
    add_files(&workspace_root().join(SOURCES), "rs", &mut files)?;
    let mut texts = String::new();
    for file in files {
        let text = fs::read_to_string(file)?;
        let mut lines = text.split("\\\n");
        texts += lines.next().unwrap_or_default();
        texts.extend(lines.map(str::trim_start));
    }
    Ok(texts)
}

#[test]
fn targets_that_are_not_met_are_explained_as_the_benchmarks_do() -> Result<()> {
    let (page, sources) = (benchmarks()?, sources()?);
    let is_missed = |line: &&str| line.ends_with(" | not met |");
    let missed = page.lines().filter(is_missed).map(cells);
    let mut missed: Vec<&str> = missed.filter_map(|of| of.first().copied()).collect();
    let mut named = Vec::new();
    for part in page.split(MISSES).skip(1) {
        let (list, _) = part.split_once("\n## ").context("no section behind it")?;
        for line in list.lines().filter(|line| line.starts_with("- ")) {
            let (names, why) = explained(line).with_context(|| line.to_owned())?;
            assert!(sources.contains(why), "no benchmark says: {why}");
            named.extend(names);
        }
    }
    missed.sort_unstable();
    named.sort_unstable();
    assert_eq!(missed, named);
    Ok(())
}
