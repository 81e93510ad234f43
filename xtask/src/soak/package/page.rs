//! Pages as instructions: their code blocks, each with a mark that says how it is carried out.
//!
//! A mark is a comment on the line before the block, which no reader sees: `<!-- walk: sql shard-1 -->`. Every block of a page
//! that is walked has one, so that no command can be added that nobody tries; what is only to be looked at is marked `shown`.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};
use keywright_testkit::workspace_root;

const MARK: &str = "<!-- walk: ";
const MARK_END: &str = " -->";
const FENCE: &str = "```";

/// A page, and how far it was walked.
pub(super) struct Page {
    path: String,
    blocks: std::vec::IntoIter<Block>,
    text: String,
}

/// A block of code in a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Block {
    /// The words of its mark.
    pub(super) mark: Vec<String>,
    pub(super) lines: Vec<String>,
    /// Page and line, for messages.
    pub(super) place: String,
}

impl Page {
    /// A page of the repository.
    pub(super) fn read(path: &str) -> Result<Page> {
        let text = fs::read_to_string(workspace_root().join(Path::new(path)))
            .with_context(|| format!("reading {path}"))?;
        Ok(Page {
            path: path.to_owned(),
            blocks: blocks(path, &text)?.into_iter(),
            text,
        })
    }

    /// The next block that is more than shown, which must have that mark.
    pub(super) fn next(&mut self, mark: &str) -> Result<Block> {
        let next = self.blocks.find(|block| block.mark != ["shown"]);
        let Some(block) = next else {
            bail!("{} has no block marked {mark:?} any more", self.path);
        };
        if block.mark.join(" ") != mark {
            bail!(
                "{}: the block here is marked {:?}, and the walk expects {mark:?}",
                block.place,
                block.mark.join(" ")
            );
        }
        Ok(block)
    }

    /// What is done by hand must be what the page says.
    pub(super) fn says(&self, sentence: &str) -> Result<()> {
        let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        if !words(&self.text).contains(&words(sentence)) {
            bail!("{} does not say {sentence:?} any more", self.path);
        }
        Ok(())
    }

    /// That nothing was left out.
    pub(super) fn end(mut self) -> Result<()> {
        match self.blocks.find(|block| block.mark != ["shown"]) {
            None => Ok(()),
            Some(block) => bail!("{}: nobody walks this block", block.place),
        }
    }
}

impl Block {
    /// Commands, each with what the page shows behind it: lines that begin with `$`, and those that follow.
    pub(super) fn exchanges(&self) -> Result<Vec<(String, Vec<String>)>> {
        let mut found: Vec<(String, Vec<String>)> = Vec::new();
        for line in &self.lines {
            match (line.strip_prefix("$ "), found.last_mut()) {
                (Some(command), _) => found.push((command.to_owned(), Vec::new())),
                (None, Some((_, shown))) => shown.push(line.clone()),
                (None, None) => bail!("{}: no command stands before {line:?}", self.place),
            }
        }
        Ok(found)
    }

    /// Its text with a newline at the end.
    pub(super) fn text(&self) -> String {
        self.lines.join("\n") + "\n"
    }
}

fn blocks(path: &str, text: &str) -> Result<Vec<Block>> {
    let mut found = Vec::new();
    let mut mark: Option<Vec<String>> = None;
    let mut open: Option<Block> = None;
    for (number, line) in (1..).zip(text.lines()) {
        let place = || format!("{path}:{number}");
        match &mut open {
            Some(_) if line.starts_with(FENCE) => found.extend(open.take()),
            Some(block) => block.lines.push(line.to_owned()),
            None if line.starts_with(FENCE) => {
                let mark = mark.take();
                let mark = mark.with_context(|| {
                    format!("{}: no mark says how this block is walked", place())
                })?;
                open = Some(Block {
                    mark,
                    lines: Vec::new(),
                    place: place(),
                });
            }
            None if mark.is_some() => bail!("{}: a mark, and no block behind it", place()),
            None => {
                let words = line
                    .strip_prefix(MARK)
                    .and_then(|line| line.strip_suffix(MARK_END));
                mark = words.map(|words| words.split_whitespace().map(str::to_owned).collect());
            }
        }
    }
    match open {
        None => Ok(found),
        Some(block) => bail!("{}: this block has no end", block.place),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_found_with_their_marks() {
        let text =
            "Type:\n\n<!-- walk: sql shard-1 -->\n```sql\nSELECT 1;\n\nSELECT 2;\n```\n\nMore.\n";
        let found = blocks("p.md", text).unwrap();
        let expected = Block {
            mark: vec!["sql".to_owned(), "shard-1".to_owned()],
            lines: ["SELECT 1;", "", "SELECT 2;"].map(str::to_owned).to_vec(),
            place: "p.md:4".to_owned(),
        };
        assert_eq!(found, [expected]);
        assert_eq!(found[0].text(), "SELECT 1;\n\nSELECT 2;\n");
    }

    #[test]
    fn block_without_mark_is_an_error() {
        let error = blocks("p.md", "```\nrm\n```\n").unwrap_err();
        assert!(error.to_string().contains("p.md:1: no mark"), "{error}");
        let error = blocks("p.md", "<!-- walk: shell -->\ntext\n").unwrap_err();
        assert!(error.to_string().contains("no block behind it"), "{error}");
    }

    #[test]
    fn commands_come_with_what_is_shown_behind_them() {
        let block = Block {
            mark: vec!["console".to_owned()],
            lines: ["$ one", "1", "$ two", "2", "3"]
                .map(str::to_owned)
                .to_vec(),
            place: "p.md:1".to_owned(),
        };
        let found = block.exchanges().unwrap();
        let expected = [("one", vec!["1"]), ("two", vec!["2", "3"])];
        assert!(
            found
                .iter()
                .map(|(command, _)| command.as_str())
                .eq(expected.iter().map(|(command, _)| *command))
        );
        assert_eq!(found[1].1, expected[1].1);
    }

    /// All that are walked can be read, which fails where a block has no mark.
    #[test]
    fn walked_pages_have_marks() {
        for path in crate::soak::package::PAGES {
            Page::read(path).unwrap();
        }
    }
}
