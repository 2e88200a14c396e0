//! `tenure sections list` and `tenure sections show`: prints sections.

use super::{not_found, sections};
use crate::context::Context;
use crate::failure::Failure;
use crate::output::{NAME, WARN, styled};
use crate::show::{hold_text, table};
use serde_json::json;
use tenure::Client;
use tenure::core::rules::tasks::EVERYTHING;
use tenure::core::{HoldSnapshot, Section, SectionSnapshot};
use tenure_frontend::view;

pub(super) async fn list(context: &Context) -> Result<i32, Failure> {
    let client = context.reader().await?;
    let all = sections(&client).await?;
    let everything_paused = client
        .tasks()
        .sections()
        .await?
        .iter()
        .any(|seen| seen.section.name == EVERYTHING && seen.section.paused);
    let holds = client.look_everywhere().await?.holds;
    let one = |seen| view::OpenSection::among(seen, &holds, client.witness());
    let data = json!({
        "sections": all.iter().map(one).collect::<Vec<_>>(),
        "paused": everything_paused,
    });
    context.output.done(data, || {
        let mut text = match all.is_empty() {
            true => "No sections".to_owned(),
            false => section_table(&client, &all, &holds),
        };
        if everything_paused {
            text += &format!("\n{}", styled(WARN, "Everything is paused"));
        }
        text
    });
    Ok(0)
}

fn section_table(client: &Client, all: &[SectionSnapshot], holds: &[HoldSnapshot]) -> String {
    let header = ["SECTION", "OPEN", "MAX", "PRIO", "POS", "PAUSED", "AFTER", "RUNNERS"];
    let rows = all.iter().map(|SectionSnapshot { section, open }| {
        let runners = view::runners_of(section, holds, client.witness());
        let runners: Vec<&str> =
            runners.iter().map(|seen| seen.hold.holder.label.as_str()).collect();
        [
            section.name.clone(),
            open.to_string(),
            max_runners(section),
            section.priority.to_string(),
            section.position.to_string(),
            if section.paused { "yes".to_owned() } else { String::new() },
            section.depends_on.join(", "),
            runners.join(", "),
        ]
    });
    table(&std::iter::once(header.map(str::to_owned)).chain(rows).collect::<Vec<_>>())
}

fn max_runners(section: &Section) -> String {
    section.max_runners.map_or("any".to_owned(), |number| number.to_string())
}

pub(super) async fn one(context: &Context, name: &str) -> Result<i32, Failure> {
    let client = context.reader().await?;
    let all = sections(&client).await?;
    let found = all.iter().find(|seen| seen.section.name == name);
    let Some(seen) = found else { return Err(not_found(name)) };
    let SectionSnapshot { section, open } = seen;
    let holds = client.look_everywhere().await?.holds;
    let runners = view::runners_of(section, &holds, client.witness());
    let shown = view::OpenSection::among(seen, &holds, client.witness());
    let data = json!({ "section": shown });
    context.output.done(data, || {
        let paused = if section.paused { styled(WARN, "  paused") } else { String::new() };
        let mut lines = vec![format!("{}{paused}", styled(NAME, &section.name))];
        lines.push(format!("  open         {open}"));
        lines.push(format!("  max runners  {}", max_runners(section)));
        lines.push(format!("  priority     {}", section.priority));
        lines.push(format!("  position     {}", section.position));
        if !section.depends_on.is_empty() {
            lines.push(format!("  after        {}", section.depends_on.join(", ")));
        }
        lines.extend(runners.iter().map(|seen| hold_text(seen, client.witness())));
        lines.join("\n")
    });
    Ok(0)
}
