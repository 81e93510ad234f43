//! Commands that the documentation shows as code exist, with the options that they are shown with.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use keywright_testkit::{ProxyProcess, Result, workspace_root};

/// What a command's help lists: its subcommands, and its options.
#[derive(Default)]
struct Help {
    text: String,
}

impl Help {
    fn of(program: &Path, words: &[&str]) -> Result<Help> {
        let output = Command::new(program)
            .args(words)
            .arg("--help")
            .current_dir(workspace_root())
            .output()?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        Ok(Help { text })
    }

    fn has_option(&self, option: &str) -> bool {
        let words = self
            .text
            .split(|char: char| char.is_whitespace() || char == ',' || char == '=');
        words.into_iter().any(|word| word == option)
    }

    fn has_command(&self, name: &str) -> bool {
        let lines = self.text.lines().map(str::trim_start);
        lines
            .into_iter()
            .any(|line| line.split_whitespace().next() == Some(name))
    }
}

fn pages(dir: &Path, found: &mut Vec<PathBuf>) -> Result<()> {
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        if path.is_dir() {
            pages(&path, found)?;
        } else if path.extension().is_some_and(|extension| extension == "md") {
            found.push(path);
        }
    }
    Ok(())
}

/// Lines in fenced blocks and code within lines, with their page; a line that ends with a backslash goes on in the next.
fn code_lines() -> Result<Vec<(PathBuf, String)>> {
    let root = workspace_root();
    let mut found = Vec::new();
    for entry in fs::read_dir(&root)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "md") {
            found.push(path);
        }
    }
    pages(&root.join("docs"), &mut found)?;
    let mut lines = Vec::new();
    for page in found {
        let text = fs::read_to_string(&page)?.replace("\\\n", " ");
        let mut is_code = false;
        for line in text.lines() {
            let line = line.trim();
            if line.starts_with("```") {
                is_code = !is_code;
            } else if is_code {
                lines.push((page.clone(), line.to_owned()));
            } else if !line.contains("``") {
                let spans = line.split('`').skip(1).step_by(2);
                lines.extend(spans.map(|span| (page.clone(), span.to_owned())));
            }
        }
    }
    Ok(lines)
}

/// The words behind a program's name, up to a comment or another command.
fn words_behind<'a>(line: &'a str, program: &str) -> Option<Vec<&'a str>> {
    let line = line.trim_start_matches("$ ").trim_start_matches("sudo ");
    let rest = line.strip_prefix(program)?;
    if !rest.starts_with(' ') {
        return None;
    }
    let ends = ["#", "|", "&&", ";", ">", "2>"];
    let words = rest.split_whitespace();
    Some(words.take_while(|word| !ends.contains(word)).collect())
}

/// What is wrong with the commands of one program.
fn wrong(program: &str, by: &Path) -> Result<(usize, Vec<String>)> {
    let mut helps: BTreeMap<String, Help> = BTreeMap::new();
    helps.insert(String::new(), Help::of(by, &[])?);
    let (mut seen, mut wrong) = (0, Vec::new());
    for (page, line) in code_lines()? {
        let Some(words) = words_behind(&line, program) else {
            continue;
        };
        seen += 1;
        // Subcommands of subcommands, such as `soak mysql`, are told by the help of what they belong to.
        let mut command: Vec<&str> = Vec::new();
        for word in words
            .iter()
            .take_while(|word| !word.starts_with('-'))
            .take(2)
        {
            let known = &helps[&command.join(" ")];
            if !known.has_command(word) {
                break;
            }
            command.push(word);
            let key = command.join(" ");
            if let Entry::Vacant(unseen) = helps.entry(key) {
                unseen.insert(Help::of(by, &command)?);
            }
        }
        let first = words.first().filter(|word| !word.starts_with('-'));
        if command.is_empty() && first.is_some_and(|word| *word != "help") {
            wrong.push(format!("{}: no such command: {line}", page.display()));
        }
        let help = &helps[&command.join(" ")];
        for word in words
            .iter()
            .filter(|word| word.starts_with("--") && word.len() > 2)
        {
            let option = word.split('=').next().unwrap_or_default();
            let option = option.trim_end_matches([']', '…']);
            let is_general = matches!(option, "--help" | "--version");
            if !is_general && !help.has_option(option) {
                wrong.push(format!("{}: no option {option}: {line}", page.display()));
            }
        }
    }
    Ok((seen, wrong))
}

#[test]
fn commands_of_xtask_exist() -> Result<()> {
    let (seen, wrong) = wrong("cargo xtask", Path::new(env!("CARGO_BIN_EXE_xtask")))?;
    assert!(seen > 10, "only {seen} commands");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    Ok(())
}

#[test]
fn commands_of_the_program_exist() -> Result<()> {
    let program = ProxyProcess::program()?;
    let (seen, wrong) = wrong("keywright", &program)?;
    assert!(seen > 10, "only {seen} commands");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    Ok(())
}

/// A wrong option and a wrong command are found.
#[test]
fn what_does_not_exist_is_found() -> Result<()> {
    let by = Path::new(env!("CARGO_BIN_EXE_xtask"));
    let top = Help::of(by, &[])?;
    assert!(top.has_command("soak") && !top.has_command("soaks"));
    let soak = Help::of(by, &["test"])?;
    assert!(soak.has_option("--list") && !soak.has_option("--lists"));
    assert_eq!(
        words_behind("$ cargo xtask test --list # x", "cargo xtask"),
        Some(vec!["test", "--list"])
    );
    Ok(())
}
