//! A chart with a dot for each median and a line for the range of its rounds, as SVG. It is small enough to be drawn by hand, and so
//! has the colours of light and dark pages in itself, which no crate for plots gives.

use std::fmt::Write as _;

/// How values lie on the scale.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Axis {
    /// Evenly, from zero.
    FromZero,
    /// Evenly, around one.
    Around,
    /// By powers of ten.
    Log,
}

pub(crate) struct Row {
    pub(crate) name: String,
    /// The median as the page has it.
    pub(crate) shown: String,
    pub(crate) median: f64,
    pub(crate) low: f64,
    pub(crate) high: f64,
    pub(crate) is_ours: bool,
}

pub(crate) struct Chart {
    pub(crate) title: &'static str,
    pub(crate) subtitle: &'static str,
    pub(crate) axis: Axis,
    /// What 1 stands for.
    pub(crate) beside: Option<&'static str>,
    pub(crate) rows: Vec<Row>,
}

const WIDTH: f64 = 760.0;
/// Where names end, and the scale begins.
const LEFT: f64 = 282.0;
/// Where the scale ends; figures stand behind it.
const RIGHT: f64 = 676.0;
/// Where rows begin.
const TOP: f64 = 78.0;
const ROW: f64 = 26.0;
/// Lines of the scale at most.
const TICKS_MAX: f64 = 8.0;

/// Colours are those of text on a card, which is light or dark as the reader's system is.
const STYLE: &str = "\
svg { color-scheme: light dark; font-family: system-ui, sans-serif; font-size: 13px }
.card { fill: #fff; stroke: #d9dde3 } .text { fill: #1d232b } .soft { fill: #626b78 } .line { stroke: #e3e6ea } .one { stroke: #8b93a0 }
.ours { fill: #2563b8; stroke: #2563b8 } .other { fill: #8b93a0; stroke: #8b93a0 }
@media (prefers-color-scheme: dark) {
.card { fill: #1d2128; stroke: #353c48 } .text { fill: #e4e8ee } .soft { fill: #98a2b0 } .line { stroke: #2f3641 } .one { stroke: #77808e }
.ours { fill: #74aaf0; stroke: #74aaf0 } .other { fill: #77808e; stroke: #77808e }
}";

impl Chart {
    pub(crate) fn svg(&self) -> String {
        let bottom = TOP + ROW * self.rows.len() as f64;
        let height = bottom + 34.0;
        let scale = self.scale();
        let mut out = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" height=\"{height}\" role=\"img\" \
             aria-label=\"{}\">\n<!-- drawn by `cargo xtask docs` from docs/benchmarks.md -->\n<style>\n{STYLE}\n</style>\n\
             <rect class=\"card\" x=\"0.5\" y=\"0.5\" width=\"{}\" height=\"{}\" rx=\"8\"/>\n",
            escaped(self.title),
            WIDTH - 1.0,
            height - 1.0
        );
        text(
            &mut out,
            (20.0, 29.0),
            "text",
            "font-size=\"16\" font-weight=\"600\"",
            self.title,
        );
        let note = format!("{}. Dot: median; line: all rounds", self.subtitle);
        text(&mut out, (20.0, 49.0), "soft", "", &note);
        for tick in &scale.ticks {
            let x = scale.x(*tick);
            let is_one = self.beside.is_some() && (*tick - 1.0).abs() < 1e-9;
            let class = if is_one { "one" } else { "line" };
            line(&mut out, class, (x, TOP - 4.0), (x, bottom + 2.0), 1.0);
            let label = match self.beside {
                Some(beside) if is_one => format!("= {beside}"),
                Some(_) | None => shown(*tick),
            };
            text(
                &mut out,
                (x, bottom + 20.0),
                "soft",
                "text-anchor=\"middle\" font-size=\"12\"",
                &label,
            );
        }
        for (index, row) in self.rows.iter().enumerate() {
            let y = TOP + ROW * (index as f64 + 0.5);
            let class = if row.is_ours { "ours" } else { "other" };
            text(
                &mut out,
                (LEFT - 14.0, y + 4.5),
                "text",
                "text-anchor=\"end\"",
                &row.name,
            );
            line(
                &mut out,
                class,
                (scale.x(row.low), y),
                (scale.x(row.high), y),
                2.5,
            );
            let _ = writeln!(
                out,
                "<circle class=\"{class}\" cx=\"{:.1}\" cy=\"{y:.1}\" r=\"5\"/>",
                scale.x(row.median)
            );
            text(
                &mut out,
                (WIDTH - 20.0, y + 4.5),
                "text",
                "text-anchor=\"end\"",
                &row.shown,
            );
        }
        out + "</svg>\n"
    }

    fn scale(&self) -> Scale {
        let lows = self.rows.iter().map(|row| row.low);
        let low = lows.fold(f64::INFINITY, f64::min);
        let highs = self.rows.iter().map(|row| row.high);
        let high = highs.fold(f64::NEG_INFINITY, f64::max);
        match self.axis {
            Axis::FromZero => Scale::even(0.0, high),
            Axis::Around => Scale::even(low.min(1.0), high.max(1.0)),
            Axis::Log => Scale::of_tens(low, high),
        }
    }
}

struct Scale {
    ticks: Vec<f64>,
    is_log: bool,
}

impl Scale {
    /// From the multiple of a round number below to the one above.
    fn even(low: f64, high: f64) -> Scale {
        let wanted = (high - low) / TICKS_MAX;
        let ten = 10_f64.powf(wanted.log10().floor());
        let steps = [1.0, 2.0, 5.0, 10.0].map(|factor| factor * ten);
        let step = steps
            .into_iter()
            .find(|step| *step >= wanted)
            .unwrap_or(wanted);
        let (first, last) = ((low / step).floor() as i32, (high / step).ceil() as i32);
        Scale {
            ticks: (first..=last).map(|of| f64::from(of) * step).collect(),
            is_log: false,
        }
    }

    fn of_tens(low: f64, high: f64) -> Scale {
        let (first, last) = (low.log10().floor() as i32, high.log10().ceil() as i32);
        Scale {
            ticks: (first..=last).map(|of| 10_f64.powi(of)).collect(),
            is_log: true,
        }
    }

    fn x(&self, value: f64) -> f64 {
        let place = |value: f64| if self.is_log { value.log10() } else { value };
        let ends = (self.ticks.first(), self.ticks.last());
        let (Some(first), Some(last)) = ends else {
            return LEFT;
        };
        let part = (place(value) - place(*first)) / (place(*last) - place(*first));
        LEFT + part * (RIGHT - LEFT)
    }
}

/// A round number without what computing has added to it.
fn shown(value: f64) -> String {
    let text = format!("{value:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn line(out: &mut String, class: &str, (x1, y1): (f64, f64), (x2, y2): (f64, f64), width: f64) {
    // Writing to a string cannot fail.
    let _ = writeln!(
        out,
        "<line class=\"{class}\" x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\" stroke-width=\"{width}\" stroke-linecap=\"round\"/>"
    );
}

fn text(out: &mut String, (x, y): (f64, f64), class: &str, more: &str, text: &str) {
    let more = if more.is_empty() {
        String::new()
    } else {
        format!(" {more}")
    };
    let _ = writeln!(
        out,
        "<text class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\"{more}>{}</text>",
        escaped(text)
    );
}

fn escaped(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;");
    text.replace('>', "&gt;").replace('"', "&quot;")
}
