//! Figures as Prometheus reads them.

use std::fmt::Write as _;

use keywright_store::SourceStats;

/// Microseconds of a second.
const US_PER_S: u64 = 1_000_000;

/// Appends the figures of all sources of keys.
pub(super) fn render_sources(text: &mut String, sources: &[SourceStats]) {
    type Figure = (
        &'static str,
        &'static str,
        &'static str,
        fn(&SourceStats) -> u64,
    );
    let figures: [Figure; 8] = [
        ("keys_issued_total", "counter", "Keys issued.", |of| {
            of.issued
        }),
        (
            "keys_remaining",
            "gauge",
            "Keys left in memory; milliseconds of bound for keys made of time.",
            |of| of.remaining,
        ),
        (
            "keys_per_second",
            "gauge",
            "Rate over the last reservation.",
            |of| of.rate_per_s,
        ),
        ("step", "gauge", "Size of the next reservation.", |of| {
            of.step
        }),
        (
            "refills_total",
            "counter",
            "Reservations made in the store.",
            |of| of.refills,
        ),
        (
            "refill_failures_total",
            "counter",
            "Reservations that failed.",
            |of| of.refill_failures,
        ),
        (
            "waits_total",
            "counter",
            "Statements that waited for a reservation.",
            |of| of.waits,
        ),
        (
            "keys_refused_total",
            "counter",
            "Requests for keys that failed.",
            |of| of.refused,
        ),
    ];
    for (name, kind, help, figure) in figures {
        head(text, name, kind, help);
        for source in sources {
            line(
                text,
                name,
                &[("source", source.name.as_str())],
                figure(source),
            );
        }
    }
    let name = "wait_seconds_total";
    head(text, name, "counter", "How long they waited in total.");
    for source in sources {
        let (s, us) = (source.wait_us / US_PER_S, source.wait_us % US_PER_S);
        line(
            text,
            name,
            &[("source", source.name.as_str())],
            format_args!("{s}.{us:06}"),
        );
    }
}

/// Appends what a figure is.
pub(super) fn head(text: &mut String, name: &str, kind: &str, help: &str) {
    // Writing to a String cannot fail.
    let _ = writeln!(
        text,
        "# HELP keywright_{name} {help}\n# TYPE keywright_{name} {kind}"
    );
}

/// Appends a figure with its labels.
pub(super) fn line(
    text: &mut String,
    name: &str,
    labels: &[(&str, &str)],
    value: impl std::fmt::Display,
) {
    // As above.
    let _ = write!(text, "keywright_{name}");
    for (index, (label, of)) in labels.iter().enumerate() {
        let of = of
            .replace('\\', "\\\\")
            .replace('"', "\\\"")
            .replace('\n', "\\n");
        let before = if index == 0 { '{' } else { ',' };
        let _ = write!(text, "{before}{label}=\"{of}\"");
    }
    let end = if labels.is_empty() { "" } else { "}" };
    let _ = writeln!(text, "{end} {value}");
}
