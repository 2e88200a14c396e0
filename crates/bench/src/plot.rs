//! Draws the results as an SVG.

use crate::report::{Figure, Report};
use std::fmt::Write;

const WIDTH: f64 = 460.0;
const HEIGHT: f64 = 300.0;
/// Room for titles and labels on each side of the bars.
const MARGIN: f64 = 60.0;
const COLOURS: [&str; 2] = ["#3465a4", "#c17d11"];

/// Groups of bars side by side.
struct Chart {
    title: &'static str,
    legend: [&'static str; 2],
    groups: Vec<(String, [f64; 2])>,
    /// Whether the height is logarithmic, for small and large values side by side.
    logarithmic: bool,
    show: fn(f64) -> String,
}

/// Hand-offs by waiters, pairs, and tasks, if they were measured.
pub(crate) fn svg(report: &Report) -> String {
    let charts = [handoffs(report), pairs(report), claims(report), tasks(report)];
    let charts: Vec<Chart> = charts.into_iter().filter(|c| !c.groups.is_empty()).collect();
    let width = WIDTH * charts.len().max(1) as f64;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{HEIGHT}\" \
         font-family=\"sans-serif\" font-size=\"10\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
    );
    for (index, chart) in charts.iter().enumerate() {
        chart.draw(&mut svg, WIDTH * index as f64);
    }
    svg + "</svg>\n"
}

fn of<'a>(report: &'a Report, measurement: &'a str) -> impl Iterator<Item = &'a Figure> {
    report.figures.iter().filter(move |figure| figure.measurement == measurement)
}

fn handoffs(report: &Report) -> Chart {
    latencies(report, "handoff", "Hand-off in microseconds (logarithmic)")
}

fn claims(report: &Report) -> Chart {
    latencies(report, "tasks", "Claim in microseconds (logarithmic)")
}

fn latencies(report: &Report, measurement: &str, title: &'static str) -> Chart {
    let p99 = |case: &str| {
        of(report, measurement).find(|figure| figure.case == case && figure.statistic == "p99")
    };
    let p50 = of(report, measurement).filter(|figure| figure.statistic == "p50");
    let groups = p50.filter_map(|figure| {
        Some((figure.case.clone(), [figure.value * 1e6, p99(&figure.case)?.value * 1e6]))
    });
    Chart {
        title,
        legend: ["p50", "p99"],
        groups: groups.collect(),
        logarithmic: true,
        show: |value| format!("{value:.0}"),
    }
}

fn pairs(report: &Report) -> Chart {
    let groups = of(report, "pair").filter_map(|figure| {
        Some((figure.case.clone(), [figure.value, figure.beside.as_ref()?.value]))
    });
    Chart {
        title: "Acquire and release, thousands per second",
        legend: ["tenure", "bare SQLite"],
        groups: groups.collect(),
        logarithmic: false,
        show: |value| format!("{:.1}", value / 1000.0),
    }
}

fn tasks(report: &Report) -> Chart {
    let rates = of(report, "tasks").filter(|figure| figure.statistic == "claim+complete");
    let groups = rates.filter_map(|figure| {
        Some((figure.case.clone(), [figure.value, figure.beside.as_ref()?.value]))
    });
    Chart {
        title: "Claim and complete per second (logarithmic)",
        legend: ["tenure", "baseline"],
        groups: groups.collect(),
        logarithmic: true,
        show: |value| format!("{value:.0}"),
    }
}

impl Chart {
    fn draw(&self, svg: &mut String, left: f64) {
        let scaled = |value: f64| if self.logarithmic { value.max(1.0).log10() } else { value };
        let largest = self.groups.iter().flat_map(|(_, bars)| bars).copied().fold(0.0, f64::max);
        let tallest = scaled(largest).max(f64::MIN_POSITIVE);
        let bottom = HEIGHT - MARGIN;
        let step = (WIDTH - 2.0 * MARGIN) / self.groups.len() as f64;
        let bar = step * 0.35;
        text(svg, left + WIDTH / 2.0, 20.0, self.title);
        for (index, (label, values)) in self.groups.iter().enumerate() {
            let x = left + MARGIN + step * index as f64;
            for (which, value) in values.iter().enumerate() {
                let height = (bottom - MARGIN) * scaled(*value) / tallest;
                let (x, y) = (x + step * 0.15 + bar * which as f64, bottom - height);
                let colour = COLOURS[which];
                let _ = writeln!(
                    svg,
                    "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{bar:.1}\" height=\"{height:.1}\" fill=\"{colour}\"/>"
                );
                text(svg, x + bar / 2.0, y - 4.0, &(self.show)(*value));
            }
            text(svg, x + step / 2.0, bottom + 16.0, label);
        }
        for (which, name) in self.legend.iter().enumerate() {
            let x = left + MARGIN + 110.0 * which as f64;
            let (y, colour) = (HEIGHT - 26.0, COLOURS[which]);
            let _ = writeln!(
                svg,
                "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"10\" height=\"10\" fill=\"{colour}\"/>"
            );
            text(svg, x + 45.0, y + 9.0, name);
        }
    }
}

/// Adds a centred text. The texts are constants without special characters of XML.
fn text(svg: &mut String, x: f64, y: f64, words: &str) {
    let _ = writeln!(svg, "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"middle\">{words}</text>");
}
