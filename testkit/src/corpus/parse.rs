//! Reading corpus files.

use anyhow::{Context, bail};

use super::scenario::{Action, Bound, Expect, How, Scenario, Step};
use crate::wire::Param;
use crate::{Flavour, Result};

pub(super) fn scenarios(text: &str) -> Result<Vec<Scenario>> {
    let mut parser = Parser::default();
    let mut lines = text.lines().zip(1..);
    while let Some((line, number)) = lines.next() {
        let block = if line == "<<" {
            let body: Vec<&str> = lines
                .by_ref()
                .map(|(line, _)| line)
                .take_while(|&line| line != ">>")
                .collect();
            Some(body.join("\n"))
        } else {
            None
        };
        parser
            .line(line, block, number)
            .with_context(|| format!("line {number}: {line}"))?;
    }
    parser.end_scenario()?;
    Ok(parser.done)
}

#[derive(Default)]
struct Parser {
    done: Vec<Scenario>,
    current: Option<Scenario>,
    running: bool,
    /// The lines so far of a statement that has not ended.
    partial: String,
    marks: Marks,
}

/// What was said of the next statement.
#[derive(Default)]
struct Marks {
    params: Vec<Vec<Bound>>,
    local_file: Vec<u8>,
    elsewhere: bool,
    text: bool,
    only: Option<Flavour>,
    refused: Option<String>,
    deviates: Option<Expect>,
}

impl Parser {
    fn line(&mut self, line: &str, block: Option<String>, number: usize) -> Result<()> {
        if let Some(body) = block {
            return self.statement(&body, number);
        }
        if self.partial.is_empty() {
            if line.trim().is_empty() || line.starts_with('#') {
                return Ok(());
            }
            if let Some(name) = line.strip_prefix("=== ") {
                self.end_scenario()?;
                self.current = Some(Scenario {
                    name: name.to_owned(),
                    only: None,
                    needs_columns: false,
                    setup: Vec::new(),
                    steps: Vec::new(),
                });
                self.running = false;
                return Ok(());
            }
            if line == "--- run" {
                self.running = true;
                return Ok(());
            }
            if let Some(name) = line.strip_prefix("only: ") {
                let only = Flavour::parse(name).context("no flavour")?;
                self.scenario()?.only = Some(only);
                return Ok(());
            }
            if line == "columns known" {
                self.scenario()?.needs_columns = true;
                return Ok(());
            }
            if let Some(mark) = line.strip_prefix('@') {
                return self.mark(mark, number);
            }
        } else {
            self.partial.push('\n');
        }
        self.partial.push_str(line);
        if let Some(sql) = self.partial.strip_suffix(';') {
            let sql = sql.to_owned();
            self.partial.clear();
            self.statement(&sql, number)?;
        }
        Ok(())
    }

    fn scenario(&mut self) -> Result<&mut Scenario> {
        self.current.as_mut().context("no scenario was begun")
    }

    fn mark(&mut self, mark: &str, number: usize) -> Result<()> {
        let (word, rest) = mark.split_once(' ').unwrap_or((mark, ""));
        match word {
            "params" => self.marks.params.push(params(rest)?),
            "local" => self.marks.local_file = bytes(&rest.replace("\\n", "\n"))?,
            "elsewhere" => self.marks.elsewhere = true,
            "text" => self.marks.text = true,
            "only" => self.marks.only = Some(Flavour::parse(rest).context("no flavour")?),
            "refused" => self.marks.refused = Some(rest.to_owned()),
            "deviates" => self.marks.deviates = Some(Expect::Deviates(rest.to_owned())),
            "deviates_after" => self.marks.deviates = Some(Expect::DeviatesAfter(rest.to_owned())),
            "command" => {
                let action = command(rest)?;
                self.push(action, number)?;
            }
            _ => bail!("no such mark"),
        }
        Ok(())
    }

    fn statement(&mut self, sql: &str, number: usize) -> Result<()> {
        let text = bytes(sql)?;
        if !self.running {
            self.scenario()?.setup.push(text);
            return Ok(());
        }
        let action = if self.marks.elsewhere {
            Action::Elsewhere(text)
        } else {
            let how = match std::mem::take(&mut self.marks.params) {
                params if !params.is_empty() => How::Params(params),
                _ if self.marks.text => How::Text,
                _ => How::Both,
            };
            let local_file = std::mem::take(&mut self.marks.local_file);
            Action::Sql {
                text,
                how,
                local_file,
            }
        };
        self.push(action, number)
    }

    fn push(&mut self, action: Action, line: usize) -> Result<()> {
        let marks = std::mem::take(&mut self.marks);
        let expect = match (marks.refused, marks.deviates) {
            (None, None) => Expect::Same,
            (Some(construct), None) => Expect::Refused(construct),
            (None, Some(deviates)) => deviates,
            (Some(_), Some(_)) => bail!("refused and deviating"),
        };
        let only = marks.only;
        self.scenario()?.steps.push(Step {
            line,
            action,
            only,
            expect,
        });
        Ok(())
    }

    fn end_scenario(&mut self) -> Result<()> {
        if !self.partial.is_empty() {
            bail!("a statement does not end: {}", self.partial);
        }
        if let Some(scenario) = self.current.take() {
            if scenario.steps.is_empty() {
                bail!("scenario {:?} runs nothing", scenario.name);
            }
            self.done.push(scenario);
        }
        Ok(())
    }
}

fn command(text: &str) -> Result<Action> {
    match text.split_once(' ').unwrap_or((text, "")) {
        ("init_db", schema) => Ok(Action::InitDb(bytes(schema)?)),
        ("ping", "") => Ok(Action::Ping),
        ("reset_connection", "") => Ok(Action::ResetConnection),
        ("change_user", "") => Ok(Action::ChangeUser),
        _ => bail!("no such command"),
    }
}

/// `{x41}` becomes `A`; everything else stays.
fn bytes(text: &str) -> Result<Vec<u8>> {
    let mut parts = text.split("{x");
    let mut found = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        let (digits, rest) = part.split_once('}').context("`{x` without `}`")?;
        found.extend(hex(digits)?);
        found.extend(rest.as_bytes());
    }
    Ok(found)
}

fn hex(digits: &str) -> Result<Vec<u8>> {
    let starts = (0..digits.len()).step_by(2);
    starts
        .map(|i| {
            let pair = digits.get(i..i + 2).context("half a byte")?;
            u8::from_str_radix(pair, 16).context("no hexadecimal digits")
        })
        .collect()
}

/// `1, 'text', x'00ff', 1.5, NULL`; a text holds neither `'` nor `, `.
fn params(text: &str) -> Result<Vec<Bound>> {
    text.split(", ").map(bound).collect()
}

fn bound(text: &str) -> Result<Bound> {
    match text.strip_prefix("ahead ").map(param).transpose()? {
        Some(Param::Text(value) | Param::Blob(value)) => Ok(Bound::LongData(value)),
        Some(_) => bail!("only texts and bytes can be long data: {text}"),
        None => param(text).map(Bound::Now),
    }
}

fn param(text: &str) -> Result<Param> {
    let quoted = |prefix: &str| text.strip_prefix(prefix)?.strip_suffix('\'');
    if text == "NULL" {
        return Ok(Param::Null);
    }
    if let Some(digits) = quoted("x'") {
        return Ok(Param::Blob(hex(digits)?));
    }
    if let Some(text) = quoted("'") {
        return Ok(Param::Text(bytes(text)?));
    }
    if let Ok(number) = text.parse() {
        return Ok(Param::Signed(number));
    }
    if let Ok(number) = text.parse() {
        return Ok(Param::Unsigned(number));
    }
    text.parse()
        .map(Param::Real)
        .with_context(|| format!("no parameter: {text}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scenarios_are_read() -> Result<()> {
        let text = "# about\n=== one\nonly: mysql\nCREATE TABLE t\n (a INT);\n--- run\n@params 1, ahead 'x', NULL\n@deviates why\n\
            INSERT {x00};\n<<\nSELECT 1;\nSELECT 2;\n>>\n@command ping\n";
        let found = scenarios(text)?;
        let [scenario] = found.as_slice() else {
            panic!("{found:#?}");
        };
        assert_eq!(scenario.name, "one");
        assert_eq!(scenario.only, Some(Flavour::MySql));
        assert_eq!(scenario.setup, [b"CREATE TABLE t\n (a INT)".to_vec()]);
        let [first, second, third] = scenario.steps.as_slice() else {
            panic!("{scenario:#?}");
        };
        let params = vec![
            Bound::Now(Param::Signed(1)),
            Bound::LongData(b"x".to_vec()),
            Bound::Now(Param::Null),
        ];
        let Action::Sql { text, how, .. } = &first.action else {
            panic!("{first:#?}");
        };
        assert_eq!(text, b"INSERT \0");
        assert_eq!(*how, How::Params(vec![params]));
        assert_eq!(first.expect, Expect::Deviates("why".to_owned()));
        assert!(
            matches!(&second.action, Action::Sql { text, .. } if text == b"SELECT 1;\nSELECT 2;")
        );
        assert_eq!(third.action, Action::Ping);
        Ok(())
    }

    #[test]
    fn what_is_not_understood_is_an_error() {
        for text in [
            "SELECT 1;",
            "=== a\n--- run\n@nothing\nSELECT 1;",
            "=== a\n--- run\nSELECT 1",
            "=== a\n--- run\n",
            "=== a\n--- run\n@params x\nSELECT ?;",
            "=== a\n--- run\n@params ahead 1\nSELECT ?;",
        ] {
            assert!(scenarios(text).is_err(), "{text}");
        }
    }
}
