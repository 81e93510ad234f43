//! What is shown: the same tables on the terminal and in `docs/benchmarks.md`.

use std::fmt::Write;

use super::rounds::Spread;

/// Everything a run found.
pub(super) struct Report {
    /// What it ran on, name and value.
    pub(super) machine: Vec<(&'static str, String)>,
    pub(super) sections: Vec<Section>,
}

/// One comparison.
pub(super) struct Section {
    pub(super) title: &'static str,
    /// How it was measured, a paragraph each.
    pub(super) text: Vec<String>,
    pub(super) table: Table,
    pub(super) targets: Vec<Target>,
}

/// Cells of a table: names, then figures.
pub(super) struct Table {
    /// How many columns are names.
    names: usize,
    head: Vec<String>,
    rows: Vec<Vec<String>>,
}

/// A figure that is to be reached.
pub(super) struct Target {
    pub(super) what: String,
    pub(super) seen: Spread,
    pub(super) limit: Limit,
    /// Why it may be missed, where something beside the measured code is the cause: whole sentences.
    pub(super) why: Option<&'static str>,
}

/// Where a target lies.
#[derive(Debug, Clone, Copy)]
pub(super) enum Limit {
    AtMost(f64),
    AtLeast(f64),
}

impl Limit {
    fn is_met(self, seen: f64) -> bool {
        match self {
            Limit::AtMost(limit) => seen <= limit,
            Limit::AtLeast(limit) => seen >= limit,
        }
    }

    fn shown(self) -> String {
        match self {
            Limit::AtMost(limit) => format!("≤ {limit:.2}"),
            Limit::AtLeast(limit) => format!("≥ {limit:.2}"),
        }
    }
}

impl Target {
    fn is_met(&self) -> bool {
        self.limit.is_met(self.seen.median)
    }

    /// Whether a round met it.
    fn is_met_at_times(&self) -> bool {
        let extremes = self.seen.extremes();
        extremes.into_iter().any(|seen| self.limit.is_met(seen))
    }
}

impl Table {
    /// A table whose first column is a name.
    pub(super) fn new(head: &[&str]) -> Table {
        Table::with_names(1, head)
    }

    fn with_names(names: usize, head: &[&str]) -> Table {
        Table {
            names,
            head: head.iter().map(|&cell| cell.to_owned()).collect(),
            rows: Vec::new(),
        }
    }

    pub(super) fn row(&mut self, cells: Vec<String>) {
        self.rows.push(cells);
    }

    /// Markdown whose columns stand below each other, so that it can be read as it is.
    fn markdown(&self) -> String {
        let mut widths: Vec<usize> = self.head.iter().map(|cell| width(cell)).collect();
        for row in &self.rows {
            for (column, cell) in widths.iter_mut().zip(row) {
                *column = width(cell).max(*column);
            }
        }
        let line = |cells: &[String]| {
            let mut text = String::from("|");
            for (index, (cell, column)) in cells.iter().zip(&widths).enumerate() {
                let padding = " ".repeat(column - width(cell));
                text += &if index < self.names {
                    format!(" {cell}{padding} |")
                } else {
                    format!(" {padding}{cell} |")
                };
            }
            text + "\n"
        };
        let rule: Vec<String> = widths
            .iter()
            .enumerate()
            .map(|(index, &column)| {
                if index < self.names {
                    "-".repeat(column)
                } else {
                    "-".repeat(column - 1) + ":"
                }
            })
            .collect();
        let rows: String = self.rows.iter().map(|row| line(row)).collect();
        line(&self.head) + &line(&rule) + &rows
    }
}

fn width(cell: &str) -> usize {
    cell.chars().count()
}

impl Report {
    /// What is printed.
    pub(super) fn text(&self) -> String {
        let mut text = self.machine_table() + "\n";
        for section in &self.sections {
            text += &section.markdown();
        }
        text + &self.targets() + "\n" + &self.misses()
    }

    /// What is kept: `document` with this part of it replaced.
    pub(super) fn merged_into(&self, document: &str, part: Part) -> String {
        let mut text = String::from(HEAD);
        for each in Part::ALL {
            let kept = if each == part {
                Some(self.part(part))
            } else {
                each.found_in(document)
            };
            if let Some(kept) = kept {
                text += &format!("\n{}\n\n{}\n", each.heading(), kept.trim());
            }
        }
        text
    }

    fn part(&self, part: Part) -> String {
        let sections: String = self.sections.iter().map(Section::markdown).collect();
        format!(
            "{}\n{}\n{}\n{}{HOW_TO_READ}\n{sections}",
            part.written_by(),
            self.machine_table(),
            self.targets(),
            self.misses()
        )
    }

    fn machine_table(&self) -> String {
        let mut table = Table::with_names(2, &["run", "on"]);
        for (name, value) in &self.machine {
            table.row(vec![(*name).to_owned(), value.clone()]);
        }
        table.markdown()
    }

    fn targets(&self) -> String {
        if self
            .sections
            .iter()
            .all(|section| section.targets.is_empty())
        {
            return String::new();
        }
        let mut table = Table::new(&["target", "wanted", "seen (lowest … highest)", "verdict"]);
        for target in self.sections.iter().flat_map(|section| &section.targets) {
            let verdict = if target.is_met() { "met" } else { "not met" };
            table.row(vec![
                target.what.clone(),
                target.limit.shown(),
                target.seen.to_string(),
                verdict.to_owned(),
            ]);
        }
        format!("## Targets\n\n{}", table.markdown())
    }

    /// Why targets are not met, those with one reason together; nothing where all are.
    fn misses(&self) -> String {
        let targets = self.sections.iter().flat_map(|section| &section.targets);
        let mut reasons: Vec<(&str, Vec<String>)> = Vec::new();
        for target in targets.filter(|target| !target.is_met()) {
            let why = target.why.unwrap_or(NO_REASON);
            let times = if target.is_met_at_times() {
                ""
            } else {
                " (in no round)"
            };
            let name = format!("`{}`{times}", target.what);
            match reasons.iter_mut().find(|(reason, _)| *reason == why) {
                Some((_, names)) => names.push(name),
                None => reasons.push((why, vec![name])),
            }
        }
        if reasons.is_empty() {
            return String::new();
        }
        let mut text = format!("## Targets that are not met\n\n{MISSED}\n\n");
        for (why, names) in reasons {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "- {}. {why}", names.join("; "));
        }
        text + "\n"
    }
}

impl Section {
    fn markdown(&self) -> String {
        let mut text = format!("## {}\n\n", self.title);
        for paragraph in &self.text {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{paragraph}\n");
        }
        text + &self.table.markdown() + "\n"
    }
}

/// The parts of the document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    Pg,
    Proxy,
    Port,
    Store,
}

impl Part {
    const ALL: [Part; 4] = [Part::Pg, Part::Proxy, Part::Port, Part::Store];

    fn heading(self) -> &'static str {
        match self {
            Part::Pg => "# Benchmark of the PostgreSQL extension",
            Part::Proxy => "# Benchmark of the MySQL proxy",
            Part::Port => "# Benchmark of the key ports",
            Part::Store => "# Benchmark of the stores",
        }
    }

    fn written_by(self) -> &'static str {
        match self {
            Part::Pg => {
                "Written by `cargo xtask bench pg --write`; without `--write` it is only shown. It takes about twenty minutes; `--only calls` or \
                 another part, less.\n"
            }
            Part::Proxy => {
                "Written by `cargo xtask bench proxy --write`; without `--write` it is only shown. It takes about ten minutes.\n"
            }
            Part::Port => {
                "Written by `cargo xtask bench port --write`; without `--write` it is only shown. It takes about eight minutes.\n"
            }
            Part::Store => {
                "Written by `cargo xtask bench store --write`; without `--write` it is only shown. It takes about four minutes.\n"
            }
        }
    }

    /// What the document says under this heading.
    fn found_in(self, document: &str) -> Option<String> {
        let (_, rest) = document.split_once(&format!("{}\n", self.heading()))?;
        Some(rest.split("\n# ").next().unwrap_or_default().to_owned())
    }
}

const HEAD: &str = "\
# Benchmarks

What ids and keys cost, beside the usual ways to make them. Each table of targets says which targets were not met, and what follows it says why.

| part | compared with |
| --- | --- |
| [PostgreSQL extension](#benchmark-of-the-postgresql-extension) | `nextval`, `bigserial`, UUIDs, a PL/pgSQL function |
| [MySQL proxy](#benchmark-of-the-mysql-proxy) | HAProxy in TCP mode, and no proxy |
| [key ports](#benchmark-of-the-key-ports) | `redis-server` |
| [stores](#benchmark-of-the-stores) | each other |

Each part is measured by its command in one run on private servers of its own. The plots are drawn from the tables (`cargo xtask docs`).
";

/// What is to be known of targets that are not met.
const MISSED: &str = "By the median of the rounds. Where no round met a target, it says so.";

/// Of a target whose miss only the code explains.
const NO_REASON: &str = "No cause beside the measured code is known.";

const HOW_TO_READ: &str = "\
## How to read it

- Compare within this part only: absolute figures are this machine's, on that day.
- A figure is the median over the rounds, the numbers in brackets are its lowest and highest round. In a round every
  contender is measured once, each round begins with another one, and a ratio is computed within a round before the
  median is taken. So what slows the machine for a while slows both sides of a ratio.
- Where the brackets of two contenders overlap widely, this run does not tell which is faster. Inserts and the last per
  mille of latencies depend on the disk and on how client and server share the cores; a hundredth there is noise.
- Client and server share the machine: figures of throughput and latency include the client.
";
