//! A page's code: blocks behind a line `<!-- file: NAME -->`, which no reader of the page sees.

use std::fs;

use anyhow::{Context, bail, ensure};

use crate::{Result, workspace_root};

const MARK: &str = "<!-- file: ";
const FENCE: &str = "```";

/// A page of `docs/recipes/`.
#[derive(Debug)]
pub struct Page {
    name: String,
    text: String,
    /// In the order of the page.
    blocks: Vec<Block>,
}

/// A block of code.
#[derive(Debug, PartialEq, Eq)]
struct Block {
    /// The file that it is, or part of; none if nothing runs it.
    file: Option<String>,
    /// Of the page, from 1.
    line: usize,
    text: String,
}

impl Page {
    /// Reads the page of that name.
    ///
    /// # Errors
    /// There is none, or a block has no end.
    pub fn read(name: &str) -> Result<Page> {
        let path = workspace_root().join(format!("docs/recipes/{name}.md"));
        let text =
            fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
        let blocks = blocks(&text).with_context(|| format!("{}", path.display()))?;
        Ok(Page {
            name: name.to_owned(),
            text,
            blocks,
        })
    }

    /// Its name, without ending.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// All of it.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The files of a part, those named `PART/…`, and the files of no part, each whole: blocks of one name are one file.
    #[must_use]
    pub fn files(&self, part: &str) -> Vec<(&str, String)> {
        let mut files: Vec<(&str, String)> = Vec::new();
        for block in &self.blocks {
            let Some(file) = block.file.as_deref() else {
                continue;
            };
            let name = match file.split_once('/') {
                Some((of, name)) if of == part => name,
                Some((of, _)) if PARTS.contains(&of) => continue,
                Some(_) | None => file,
            };
            match files.iter_mut().find(|(other, _)| *other == name) {
                Some((_, text)) => text.push_str(&block.text),
                None => files.push((name, block.text.clone())),
            }
        }
        files
    }

    /// One of these files.
    ///
    /// # Errors
    /// The page has no block of that name.
    pub fn file(&self, part: &str, name: &str) -> Result<String> {
        let files = self.files(part);
        let found = files.into_iter().find(|(other, _)| *other == name);
        let (_, text) = found.with_context(|| format!("{} has no {part}/{name}", self.name))?;
        Ok(text)
    }

    /// The lines at which blocks begin that nothing runs.
    #[must_use]
    pub fn not_run(&self) -> Vec<usize> {
        let not_run = self.blocks.iter().filter(|block| block.file.is_none());
        not_run.map(|block| block.line).collect()
    }
}

/// What a page may have for one kind of server only.
const PARTS: [&str; 2] = ["postgres", "mysql"];

fn blocks(text: &str) -> Result<Vec<Block>> {
    let mut blocks = Vec::new();
    let mut mark = None;
    let mut open: Option<Block> = None;
    for (line, number) in text.lines().zip(1..) {
        if let Some(mut block) = open.take() {
            if line == FENCE {
                blocks.push(block);
            } else {
                block.text.push_str(line);
                block.text.push('\n');
                open = Some(block);
            }
        } else if line.starts_with(FENCE) {
            open = Some(Block {
                file: mark.take(),
                line: number,
                text: String::new(),
            });
        } else if let Some(rest) = line.strip_prefix(MARK) {
            let name = rest.strip_suffix(" -->");
            let name = name.with_context(|| format!("line {number}: a mark without its end"))?;
            mark = Some(name.to_owned());
        } else {
            ensure!(
                mark.is_none(),
                "line {number}: no block follows the mark before it"
            );
        }
    }
    if let Some(block) = open {
        bail!("line {}: a block without end", block.line);
    }
    Ok(blocks)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "# A\n<!-- file: postgres/a.py -->\n```python\none\n```\ntext\n```\nshown\n```\n\
        <!-- file: postgres/a.py -->\n```\ntwo\n```\n<!-- file: mysql/a.py -->\n```\nthree\n```\n\
        <!-- file: events/b.py -->\n```\nfour\n```\n";

    fn page(text: &str) -> Result<Page> {
        Ok(Page {
            name: "a".to_owned(),
            text: text.to_owned(),
            blocks: blocks(text)?,
        })
    }

    #[test]
    fn blocks_of_one_name_are_one_file() -> Result<()> {
        let page = page(PAGE)?;
        let b = ("events/b.py", "four\n".to_owned());
        let a = ("a.py", "one\ntwo\n".to_owned());
        assert_eq!(page.files("postgres"), [a, b.clone()]);
        assert_eq!(page.files("mysql"), [("a.py", "three\n".to_owned()), b]);
        assert!(page.file("mysql", "c.py").is_err());
        assert_eq!(page.not_run(), [7]);
        Ok(())
    }

    #[test]
    fn a_mark_or_block_that_leads_nowhere_is_an_error() {
        assert!(page("<!-- file: a -->\ntext\n").is_err());
        assert!(page("<!-- file: a\n").is_err());
        assert!(page("```\ntext\n").is_err());
    }
}
