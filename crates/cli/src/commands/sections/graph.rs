//! `tenure sections graph`: shows which section waits for which.

use super::sections;
use crate::context::Context;
use crate::failure::Failure;
use clap::{Args, ValueEnum};
use serde_json::json;
use std::collections::BTreeMap;
use tenure::core::SectionSnapshot;

/// Show which section waits for which
#[derive(Debug, Args)]
pub(super) struct GraphArgs {
    /// For reading, or for a drawing program
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Format {
    #[default]
    Text,
    Mermaid,
    Dot,
}

pub(super) async fn run(context: &Context, args: GraphArgs) -> Result<i32, Failure> {
    let client = context.reader().await?;
    let all = sections(&client).await?;
    let graph = match args.format {
        Format::Text => text(&all),
        Format::Mermaid => mermaid(&all),
        Format::Dot => dot(&all),
    };
    let edges: Vec<_> = edges(&all).map(|(from, to)| json!({ "from": from, "to": to })).collect();
    let nodes: Vec<_> = all.iter().map(|seen| &seen.section.name).collect();
    let data = json!({ "sections": nodes, "edges": edges, "graph": graph });
    context.output.done(data, || graph.clone());
    Ok(0)
}

/// Pairs of sections: the first must be done before the second.
fn edges(all: &[SectionSnapshot]) -> impl Iterator<Item = (&str, &str)> {
    all.iter().flat_map(|seen| {
        let to = seen.section.name.as_str();
        seen.section.depends_on.iter().map(move |from| (from.as_str(), to))
    })
}

fn text(all: &[SectionSnapshot]) -> String {
    let lines = all.iter().map(|SectionSnapshot { section, open }| {
        let state = match (open, section.paused) {
            (0, false) => "done".to_owned(),
            (0, true) => "done, paused".to_owned(),
            (open, false) => format!("{open} open"),
            (open, true) => format!("{open} open, paused"),
        };
        let after = match section.depends_on.as_slice() {
            [] => String::new(),
            some => format!(" after {}", some.join(", ")),
        };
        format!("{} ({state}){after}", section.name)
    });
    let lines: Vec<String> = lines.collect();
    if lines.is_empty() { "No sections".to_owned() } else { lines.join("\n") }
}

fn mermaid(all: &[SectionSnapshot]) -> String {
    // A section name may contain any characters, but a Mermaid id may not; only labels may.
    let mut ids: BTreeMap<&str, String> = BTreeMap::new();
    let names = all.iter().map(|seen| seen.section.name.as_str());
    for name in names.chain(edges(all).map(|(from, _)| from)) {
        let next = format!("s{}", ids.len());
        ids.entry(name).or_insert(next);
    }
    let mut lines = vec!["graph LR".to_owned()];
    lines.extend(ids.iter().map(|(name, id)| {
        let name = name.replace('#', "#35;").replace('"', "#quot;");
        format!("  {id}[\"{name}\"]")
    }));
    lines.extend(edges(all).map(|(from, to)| format!("  {} --> {}", ids[from], ids[to])));
    lines.join("\n")
}

fn dot(all: &[SectionSnapshot]) -> String {
    let quote = |name: &str| format!("\"{}\"", name.replace('\\', "\\\\").replace('"', "\\\""));
    let mut lines = vec!["digraph sections {".to_owned()];
    lines.extend(all.iter().map(|seen| format!("  {};", quote(&seen.section.name))));
    lines.extend(edges(all).map(|(from, to)| format!("  {} -> {};", quote(from), quote(to))));
    lines.push("}".to_owned());
    lines.join("\n")
}
