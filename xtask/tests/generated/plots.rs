//! The plots of the benchmarks are drawn from the figures of the page: medians, and the range of the rounds.

use std::fs;

use anyhow::Context as _;
use keywright_testkit::docs::generated_file;
use keywright_testkit::{Result, workspace_root};

use crate::chart::{Axis, Chart, Row};

const PG: &str = "# Benchmark of the PostgreSQL extension\n";
const PROXY: &str = "# Benchmark of the MySQL proxy\n";

/// Which figures of the page a plot shows.
struct Plot {
    file: &'static str,
    part: &'static str,
    section: &'static str,
    /// The head of the column.
    column: &'static str,
    /// Of columns with the same head, which one, from 0.
    which: usize,
    title: &'static str,
    subtitle: &'static str,
    axis: Axis,
    /// What all are compared with, if anything.
    beside: Option<&'static str>,
    wants: fn(&str) -> bool,
}

const PLOTS: [Plot; 5] = [
    Plot {
        file: "calls",
        part: PG,
        section: "CPU per call",
        column: "ns per call",
        which: 0,
        title: "PostgreSQL: CPU per id, nanoseconds",
        subtitle: "less is better; each line of the scale is ten times the one before",
        axis: Axis::Log,
        beside: None,
        wants: |name| !name.starts_with("the loop"),
    },
    Plot {
        file: "generation",
        part: PG,
        section: "Ids per second, generation alone",
        column: "8 connections",
        which: 0,
        title: "PostgreSQL: million ids per second, 8 connections",
        subtitle: "more is better",
        axis: Axis::FromZero,
        beside: None,
        wants: |_| true,
    },
    Plot {
        file: "inserts",
        part: PG,
        section: "Inserts of single rows",
        column: "× bigserial",
        which: 0,
        title: "PostgreSQL: inserts per second beside bigserial",
        subtitle: "more is better; the number before each name is that of clients",
        axis: Axis::Around,
        beside: Some("bigserial"),
        wants: |name| !name.ends_with("bigserial"),
    },
    Plot {
        file: "proxy-throughput",
        part: PROXY,
        section: "Statements through proxies",
        column: "× HAProxy",
        which: 0,
        title: "MySQL: statements per second beside HAProxy",
        subtitle: "more is better",
        axis: Axis::Around,
        beside: Some("HAProxy"),
        wants: |name| name.contains("keywright"),
    },
    Plot {
        file: "proxy-cpu",
        part: PROXY,
        section: "Statements through proxies",
        column: "× HAProxy",
        which: 1,
        title: "MySQL: the proxy's CPU per statement beside HAProxy's",
        subtitle: "less is better",
        axis: Axis::Around,
        beside: Some("HAProxy"),
        wants: |name| name.contains("keywright"),
    },
];

#[test]
fn plots_show_the_figures_of_the_benchmarks() -> Result<()> {
    let page = fs::read_to_string(workspace_root().join("docs/benchmarks.md"))?;
    for plot in PLOTS {
        let chart = plot.chart(&page).context(plot.file)?;
        let file = format!("plots/{}.svg", plot.file);
        generated_file(&format!("docs/{file}"), &chart.svg())?;
        assert!(page.contains(&format!("({file})")), "no page shows {file}");
    }
    Ok(())
}

impl Plot {
    fn chart(&self, page: &str) -> Result<Chart> {
        let (_, part) = page.split_once(self.part).context("no such part")?;
        let heading = format!("\n## {}\n", self.section);
        let (_, section) = part.split_once(&heading).context("no such section")?;
        let mut table = section
            .lines()
            .skip_while(|line| !line.starts_with('|'))
            .take_while(|line| line.starts_with('|'))
            .map(cells);
        let head = table.next().context("no table")?;
        let columns = head.iter().enumerate();
        let mut columns = columns.filter(|(_, name)| **name == self.column);
        let (column, _) = columns.nth(self.which).context("no such column")?;
        let rows: Vec<Row> = table
            .skip(1)
            .filter(|row| row.first().is_some_and(|name| (self.wants)(name)))
            .map(|row| row_of(&row, column))
            .collect::<Result<_>>()?;
        Ok(Chart {
            title: self.title,
            subtitle: self.subtitle,
            axis: self.axis,
            beside: self.beside,
            rows,
        })
    }
}

fn cells(line: &str) -> Vec<&str> {
    let cells = line.trim_matches('|').split('|');
    cells.map(str::trim).collect()
}

/// `41.1 (38.0 … 43.6)`: the median, the lowest and the highest round.
fn row_of(row: &[&str], column: usize) -> Result<Row> {
    let name = row.first().context("no name")?;
    let figures = row.get(column).context("no figures")?;
    let spread = figures.trim_end_matches(')').split_once(" (");
    let (median, range) = spread.with_context(|| format!("{name}: {figures}"))?;
    let (low, high) = range
        .split_once(" … ")
        .with_context(|| format!("{name}: {figures}"))?;
    let is_ours = ["snowflake_id", "next_biz_id", "keywright"]
        .iter()
        .any(|ours| name.contains(ours));
    Ok(Row {
        name: name.replace(", keywright", ""),
        shown: median.to_owned(),
        median: median.parse()?,
        low: low.parse()?,
        high: high.parse()?,
        is_ours,
    })
}
