//! `tenure sections`: describes the parts of the task list; by default one runner at a time works
//! in each.

mod graph;
mod show;

use crate::commands::tasks::values;
use crate::context::Context;
use crate::failure::Failure;
use crate::output::{NAME, styled};
use clap::{Args, Subcommand};
use serde_json::json;
use tenure::Client;
use tenure::core::rules::tasks::{EVERYTHING, SectionChange};
use tenure::core::{Section, SectionSnapshot};
use tenure_frontend::refusal::Refusal;
use tenure_frontend::view;

/// Describe, order, pause and show sections of the task list
///
/// A section needs no description: a section that a task names exists, for one runner at a time.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tenure sections                          all sections, in order
  tenure sections add Backend --max-runners 2
  tenure sections add Release --after Backend --after Frontend
  tenure sections pause                    stop all claims for now
  tenure sections graph --format mermaid")]
pub(crate) struct SectionsArgs {
    #[command(subcommand)]
    command: Option<SectionsCommand>,
}

#[derive(Debug, Subcommand)]
enum SectionsCommand {
    /// Describe a section, new or existing
    Add(DescribeArgs),
    /// List all sections, in order (the default)
    List,
    /// Show one section in full
    Show(NameArg),
    /// Change an existing section
    Update(DescribeArgs),
    /// Put sections in this order
    Reorder(ReorderArgs),
    /// Stop claims in a section, or all claims
    Pause(PauseArgs),
    /// Allow claims again
    Resume(PauseArgs),
    Graph(graph::GraphArgs),
}

#[derive(Debug, Args)]
struct NameArg {
    /// The section
    #[arg(value_name = "NAME")]
    name: String,
}

#[derive(Debug, Args)]
struct DescribeArgs {
    /// The section
    #[arg(value_name = "NAME")]
    name: String,
    /// How many runners may work in it at once: a number, or `any`
    #[arg(long, value_name = "N|any", value_parser = max_runners)]
    max_runners: Option<MaxRunners>,
    /// Priority from 0 (first) to 100 (last)
    #[arg(long, value_name = "N", value_parser = values::priority)]
    priority: Option<u8>,
    /// Order among sections of equal priority: lower goes first
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = crate::args::numbers::position)]
    position: Option<i64>,
    /// Start only when this section is done; can be repeated; empty for none
    #[arg(long, value_name = "SECTION")]
    after: Option<Vec<String>>,
}

#[derive(Debug, Args)]
struct ReorderArgs {
    /// The sections, first to last
    #[arg(value_name = "NAME", required = true)]
    names: Vec<String>,
}

#[derive(Debug, Args)]
struct PauseArgs {
    /// The section; by default everything
    #[arg(value_name = "NAME")]
    name: Option<String>,
}

/// How many runners may work in a section at once; `None` means any number.
#[derive(Clone, Copy, Debug)]
struct MaxRunners(Option<u32>);

fn max_runners(text: &str) -> Result<MaxRunners, String> {
    if text == "any" {
        return Ok(MaxRunners(None));
    }
    let number = text.parse().ok().filter(|number| *number > 0);
    let number = number.ok_or("the number of runners is a whole number from 1, or any")?;
    Ok(MaxRunners(Some(number)))
}

pub(crate) async fn run(context: &Context, args: SectionsArgs) -> Result<i32, Failure> {
    match args.command.unwrap_or(SectionsCommand::List) {
        SectionsCommand::Add(args) => describe(context, args, "Described").await,
        SectionsCommand::List => show::list(context).await,
        SectionsCommand::Show(args) => show::one(context, &args.name).await,
        SectionsCommand::Update(args) => update(context, args).await,
        SectionsCommand::Reorder(args) => reorder(context, args.names).await,
        SectionsCommand::Pause(args) => pause(context, args.name, true).await,
        SectionsCommand::Resume(args) => pause(context, args.name, false).await,
        SectionsCommand::Graph(args) => graph::run(context, args).await,
    }
}

/// All sections except the one that stands for everything, in the order of claims.
async fn sections(client: &Client) -> Result<Vec<SectionSnapshot>, Failure> {
    let mut sections = client.tasks().sections().await?;
    sections.retain(|seen| seen.section.name != EVERYTHING);
    sections.sort_by(|a, b| order(&a.section).cmp(&order(&b.section)));
    Ok(sections)
}

fn order(section: &Section) -> (u8, i64, &str) {
    (section.priority, section.position, &section.name)
}

async fn require(client: &Client, names: &[String]) -> Result<(), Failure> {
    let known = sections(client).await?;
    let missing = |name: &&String| !known.iter().any(|seen| seen.section.name == **name);
    match names.iter().find(missing) {
        None => Ok(()),
        Some(name) => Err(not_found(name)),
    }
}

fn not_found(name: &str) -> Failure {
    Refusal::no_such_section(name).into()
}

/// The section that stands for everything can only be paused and resumed.
fn refuse_everything(name: &str) -> Result<(), Failure> {
    match name {
        EVERYTHING => Err(Failure::usage(format!(
            "{EVERYTHING:?} is reserved and cannot be the name of a section"
        ))),
        _ => Ok(()),
    }
}

async fn update(context: &Context, args: DescribeArgs) -> Result<i32, Failure> {
    let client = context.client().await?;
    require(&client, std::slice::from_ref(&args.name)).await?;
    describe(context, args, "Changed").await
}

async fn describe(context: &Context, args: DescribeArgs, done: &str) -> Result<i32, Failure> {
    refuse_everything(&args.name)?;
    let client = context.client().await?;
    let change = SectionChange {
        max_runners: args.max_runners.map(|MaxRunners(number)| number),
        priority: args.priority,
        position: args.position,
        depends_on: args.after.map(|names| names.into_iter().filter(|n| !n.is_empty()).collect()),
        paused: None,
    };
    let section = client.tasks().change_sections(&[(args.name, change)]).await?.remove(0);
    let data = json!({ "section": view::Section::from(&section) });
    context.output.done(data, || match context.output.quiet {
        true => String::new(),
        false => format!("{done} section {}", styled(NAME, &section.name)),
    });
    Ok(0)
}

async fn reorder(context: &Context, names: Vec<String>) -> Result<i32, Failure> {
    let client = context.client().await?;
    require(&client, &names).await?;
    if let Some(twice) = names.iter().enumerate().find(|(at, name)| names[..*at].contains(name)) {
        return Err(Failure::usage(format!("the section {:?} is given twice", twice.1)));
    }
    let changes = names.into_iter().zip(1..).map(|(name, position)| {
        (name, SectionChange { position: Some(position), ..SectionChange::default() })
    });
    let changed = client.tasks().change_sections(&changes.collect::<Vec<_>>()).await?;
    let data: Vec<_> = changed.iter().map(view::Section::from).collect();
    context.output.done(json!({ "sections": data }), || match context.output.quiet {
        true => String::new(),
        false => {
            let names: Vec<&str> = changed.iter().map(|section| section.name.as_str()).collect();
            format!("Sections in order: {}", names.join(", "))
        }
    });
    Ok(0)
}

async fn pause(context: &Context, name: Option<String>, paused: bool) -> Result<i32, Failure> {
    let client = context.client().await?;
    if let Some(name) = &name {
        refuse_everything(name)?;
        require(&client, std::slice::from_ref(name)).await?;
    }
    let change = SectionChange { paused: Some(paused), ..SectionChange::default() };
    let section = name.clone().unwrap_or_else(|| EVERYTHING.to_owned());
    client.tasks().change_sections(&[(section.clone(), change)]).await?;
    let data = json!({ "section": section, "paused": paused });
    context.output.done(data, || {
        let done = if paused { "Paused" } else { "Resumed" };
        match (context.output.quiet, &name) {
            (true, _) => String::new(),
            (false, Some(name)) => format!("{done} section {}", styled(NAME, name)),
            (false, None) => format!("{done} everything"),
        }
    });
    Ok(0)
}
