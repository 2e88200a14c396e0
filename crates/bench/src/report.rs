//! The results of measurements, as a table and as JSON.

use anstyle::{AnsiColor, Style};
use serde_json::{Value, json};

const GOOD: Style = AnsiColor::Green.on_default();
const DIM: Style = Style::new().dimmed();
const BAD: Style = AnsiColor::Red.on_default().bold();

/// All results, in order.
#[derive(Debug, Default)]
pub(crate) struct Report {
    pub(crate) figures: Vec<Figure>,
    /// What could not be measured, and why.
    pub(crate) notes: Vec<String>,
}

/// One figure.
#[derive(Clone, Debug)]
pub(crate) struct Figure {
    pub(crate) measurement: &'static str,
    pub(crate) case: String,
    pub(crate) statistic: &'static str,
    pub(crate) value: f64,
    pub(crate) unit: Unit,
    pub(crate) beside: Option<Beside>,
    pub(crate) wanted: Option<Wanted>,
}

/// The figure of the baseline in the same run.
#[derive(Clone, Debug)]
pub(crate) struct Beside {
    pub(crate) what: &'static str,
    pub(crate) value: f64,
    /// Our value divided by the baseline's.
    pub(crate) ratio: f64,
}

impl Beside {
    pub(crate) fn new(what: &'static str, ours: f64, theirs: f64) -> Beside {
        Beside { what, value: theirs, ratio: ours / theirs }
    }
}

/// The unit of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    PerSecond,
    Seconds,
    /// A part of a whole.
    Share,
    Times,
    Count,
}

impl Unit {
    fn word(self) -> &'static str {
        match self {
            Unit::PerSecond => "per second",
            Unit::Seconds => "seconds",
            Unit::Share => "share",
            Unit::Times => "times",
            Unit::Count => "count",
        }
    }

    fn show(self, value: f64) -> String {
        match self {
            Unit::PerSecond => format!("{value:.0}/s"),
            Unit::Seconds => seconds(value),
            Unit::Share => format!("{:.2} %", value * 100.0),
            Unit::Times => format!("{value:.1} x"),
            Unit::Count => format!("{value:.0}"),
        }
    }
}

fn seconds(value: f64) -> String {
    match value {
        value if value < 1e-3 => format!("{:.0} us", value * 1e6),
        value if value < 0.1 => format!("{:.2} ms", value * 1e3),
        value if value < 1.0 => format!("{:.0} ms", value * 1e3),
        value => format!("{value:.2} s"),
    }
}

/// The target of a figure. It is shown, not enforced.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Wanted {
    RatioAtLeast(f64),
    RatioAtMost(f64),
    AtMost(f64),
}

impl Figure {
    fn ratio(&self) -> Option<f64> {
        self.beside.as_ref().map(|beside| beside.ratio)
    }

    /// Whether the target is met; `None` without a target or without a baseline.
    pub(crate) fn met(&self) -> Option<bool> {
        match self.wanted? {
            Wanted::RatioAtLeast(least) => self.ratio().map(|ratio| ratio >= least),
            Wanted::RatioAtMost(most) => self.ratio().map(|ratio| ratio <= most),
            Wanted::AtMost(most) => Some(self.value <= most),
        }
    }

    fn wanted_words(&self) -> String {
        match self.wanted {
            None => String::new(),
            Some(Wanted::RatioAtLeast(least)) => format!("ratio >= {least:.2}"),
            Some(Wanted::RatioAtMost(most)) => format!("ratio <= {most}"),
            Some(Wanted::AtMost(most)) => format!("<= {}", self.unit.show(most)),
        }
    }

    fn json(&self) -> Value {
        let beside = self
            .beside
            .as_ref()
            .map(|beside| json!({ "what": beside.what, "value": beside.value }));
        let wanted = self.wanted.map(|wanted| match wanted {
            Wanted::RatioAtLeast(least) => json!({ "ratio_at_least": least }),
            Wanted::RatioAtMost(most) => json!({ "ratio_at_most": most }),
            Wanted::AtMost(most) => json!({ "at_most": most }),
        });
        json!({
            "measurement": self.measurement,
            "case": self.case,
            "statistic": self.statistic,
            "value": self.value,
            "unit": self.unit.word(),
            "beside": beside,
            "ratio": self.ratio(),
            "wanted": wanted,
            "met": self.met(),
        })
    }
}

impl Report {
    pub(crate) fn add(&mut self, figure: Figure) {
        self.figures.push(figure);
    }

    pub(crate) fn note(&mut self, note: &str) {
        self.notes.push(note.to_owned());
    }

    /// The figure as JSON.
    pub(crate) fn json(&self) -> Value {
        json!({
            "figures": self.figures.iter().map(Figure::json).collect::<Vec<_>>(),
            "notes": self.notes,
        })
    }
}

/// The results as a table.
pub(crate) fn table(report: &Report) -> String {
    let header = ["MEASUREMENT", "CASE", "WHAT", "VALUE", "BESIDE", "RATIO", "WANTED", "MET"];
    let rows = report.figures.iter().map(|figure| {
        let beside = figure.beside.as_ref();
        [
            figure.measurement.to_owned(),
            figure.case.clone(),
            figure.statistic.to_owned(),
            figure.unit.show(figure.value),
            beside.map_or(String::new(), |beside| {
                format!("{} {}", figure.unit.show(beside.value), beside.what)
            }),
            beside.map_or(String::new(), |beside| format!("{:.2}", beside.ratio)),
            figure.wanted_words(),
            match figure.met() {
                // It is the last column, so that escape codes do not shift others.
                Some(true) => format!("{GOOD}yes{GOOD:#}"),
                Some(false) => format!("{BAD}no{BAD:#}"),
                None => String::new(),
            },
        ]
    });
    let rows: Vec<_> = std::iter::once(header.map(str::to_owned)).chain(rows).collect();
    let lines = columns(&rows).into_iter().chain(report.notes.iter().cloned());
    lines.collect::<Vec<_>>().join("\n")
}

/// The rows as lines, with each column as wide as its widest cell. The first row is the header.
fn columns<const N: usize>(rows: &[[String; N]]) -> Vec<String> {
    let length = |cell: &String| cell.chars().count();
    let width = |column: usize| rows.iter().map(|row| length(&row[column])).max();
    let widths: [usize; N] = std::array::from_fn(|column| width(column).unwrap_or(0));
    let line = |row: &[String; N]| {
        let cells = row.iter().zip(widths).map(|(cell, width)| format!("{cell:width$}"));
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    let mut lines: Vec<String> = rows.iter().map(line).collect();
    if let Some(header) = lines.first_mut() {
        *header = format!("{DIM}{header}{DIM:#}");
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figure(value: f64, beside: Option<f64>, wanted: Wanted) -> Figure {
        Figure {
            measurement: "pair",
            case: String::new(),
            statistic: "p50",
            value,
            unit: Unit::Seconds,
            beside: beside.map(|theirs| Beside::new("bare", value, theirs)),
            wanted: Some(wanted),
        }
    }

    #[test]
    fn a_target_is_met_or_not_or_cannot_be_told() {
        assert_eq!(figure(1.0, Some(2.0), Wanted::RatioAtLeast(0.5)).met(), Some(true));
        assert_eq!(figure(1.0, Some(2.1), Wanted::RatioAtLeast(0.5)).met(), Some(false));
        assert_eq!(figure(3.1, Some(1.0), Wanted::RatioAtMost(3.0)).met(), Some(false));
        assert_eq!(figure(3.1, None, Wanted::RatioAtMost(3.0)).met(), None);
        assert_eq!(figure(0.1, None, Wanted::AtMost(0.1)).met(), Some(true));
    }

    #[test]
    fn times_are_shown_in_a_unit_that_fits() {
        assert_eq!(seconds(0.000_028), "28 us");
        assert_eq!(seconds(0.0034), "3.40 ms");
        assert_eq!(seconds(0.25), "250 ms");
        assert_eq!(seconds(5.1), "5.10 s");
    }
}
