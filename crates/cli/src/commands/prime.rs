//! `tenure prime`: the few rules and the present state, for an agent that knows neither yet.

use crate::context::Context;
use crate::failure::Failure;
use clap::Args;
use serde_json::{Value, json};
use tenure::core::{HoldSnapshot, Kind, Task, TaskId};
use tenure::{Client, place::PlaceKind};
use tenure_frontend::duration::format_duration;
use tenure_frontend::view::{self, one_line, spelling};

/// Print the rules and the present state for an agent
///
/// At most 1,500 characters: how files and tasks are shared here, what you hold, your task, and what
/// others hold. The hooks show it at the start of a session and after its context was compacted.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tenure prime
  tenure prime --json")]
pub(crate) struct PrimeArgs {}

/// The longest text. An agent reads it at each start, so it must cost little.
pub(crate) const CHARACTERS_MAX: usize = 1500;

/// How many characters the list of own holds may have, and that of the holds of others.
const OWN_MAX: usize = 200;
const OTHERS_MAX: usize = 300;

/// The longest text of a person or an agent that is repeated.
const TEXT_MAX: usize = 60;

/// What every agent is told first.
const INTRODUCTION: &str =
    "Several agents share this repository; tenure keeps them off each other's files.";

/// How files are taken where hooks run.
const WITH_HOOKS: &str = "\
- Editing a file takes it for you. If an edit is refused, another agent has the file: work on \
something else, or wait with `tenure wait path:FILE`. Never change it in another way.";

/// How files are taken where none was heard of.
const WITHOUT_HOOKS: &str = "\
- Take a file before you edit it: `tenure acquire path:FILE`; `tenure release path:FILE` when it is \
committed. If another agent has it, work on something else, or wait with `tenure wait path:FILE`. \
Never change it in another way.";

/// What every agent is told last.
const RULES: &str = "\
- Tasks: `tenure tasks claim` gives you one, `tenure tasks note` leaves a note for the next agent, \
`tenure tasks complete` finishes it.
- `tenure mine`: what you hold. `tenure locks`: what others hold. `tenure why path:FILE`: who has it.";

pub(crate) async fn run(context: &Context, _: PrimeArgs) -> Result<i32, Failure> {
    let client = context.reader().await?;
    let state =
        State { has_hooks: has_hooks(context), ..State::of(&client, context.own_label()).await? };
    context.output.done(state.json(&client), || state.text());
    Ok(0)
}

/// Whether a hook of the program around this command ran: then files are taken by themselves.
fn has_hooks(context: &Context) -> bool {
    let heard = context.known_sessions().zip(context.agent());
    heard.and_then(|(sessions, agent)| sessions.was_heard(agent)) == Some(true)
}

/// The text for an agent with this label, which a hook shows; `None` outside of projects.
pub(crate) async fn text_for(context: &Context, label: &str) -> Result<Option<String>, Failure> {
    if context.place()?.kind == PlaceKind::User {
        return Ok(None);
    }
    let client = context.reader().await?;
    Ok(Some(State::of(&client, Some(label)).await?.text()))
}

/// Who holds what, from where one agent stands.
struct State {
    label: Option<String>,
    own: Vec<HoldSnapshot>,
    others: Vec<HoldSnapshot>,
    tasks: Vec<Task>,
    /// Whether hooks take files.
    has_hooks: bool,
}

impl State {
    async fn of(client: &Client, label: Option<&str>) -> Result<State, Failure> {
        let seen = client.look_everywhere().await?;
        let live = seen.holds.into_iter().filter(|hold| !hold.gone(client.witness()));
        let is_own = |hold: &HoldSnapshot| Some(hold.hold.holder.label.as_str()) == label;
        let (own, others): (Vec<_>, Vec<_>) = live.partition(is_own);
        let ids = own.iter().filter_map(task_of).collect::<Vec<_>>();
        let tasks = match ids.is_empty() {
            true => vec![],
            false => client.tasks().get_all(ids).await?,
        };
        Ok(State { label: label.map(str::to_owned), own, others, tasks, has_hooks: true })
    }

    /// Rules and state in at most [`CHARACTERS_MAX`] characters: the rules always, of the rest as
    /// many lines as fit.
    fn text(&self) -> String {
        let files = if self.has_hooks { WITH_HOOKS } else { WITHOUT_HOOKS };
        let mut text = [INTRODUCTION, files, RULES].join("\n");
        let mut left = CHARACTERS_MAX.saturating_sub(text.chars().count());
        for line in self.lines() {
            let length = line.chars().count() + 1;
            if length > left {
                break;
            }
            left -= length;
            text += "\n";
            text += &line;
        }
        text
    }

    fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        if let Some(label) = &self.label {
            let held = match self.own.is_empty() {
                true => "nothing".to_owned(),
                false => listed(&self.own, OWN_MAX, |hold| {
                    format!("{} ({} left)", resource(hold), format_duration(hold.left))
                }),
            };
            lines.push(format!("You are {}. You hold {held}.", short(label)));
        }
        if let Some(task) = self.tasks.first() {
            lines.push(format!("Your task: {:?} ({}).", short(&task.title), task.id));
            lines.extend(task.notes.last().map(|note| {
                format!("The last note on it, by {}: {:?}.", short(&note.by), short(&note.text))
            }));
        }
        if self.others.is_empty() {
            lines.push("No other agent holds anything.".to_owned());
        } else {
            let others = listed(&self.others, OTHERS_MAX, |hold| {
                let purpose =
                    hold.hold.operation.as_deref().map(|text| format!(", {:?}", short(text)));
                let who = short(&hold.hold.holder.label);
                let left = if hold.has_no_limit() {
                    "no limit".to_owned()
                } else {
                    format!("{} left", format_duration(hold.left))
                };
                format!("{} ({who}{}, {left})", resource(hold), purpose.unwrap_or_default())
            });
            lines.push(format!("Others hold {others}."));
        }
        lines
    }

    fn json(&self, client: &Client) -> Value {
        let holds = |holds: &[HoldSnapshot]| {
            let shown = holds.iter().map(|hold| view::Hold::new(hold, client.witness(), 0));
            shown.map(|hold| view::json(&hold)).collect::<Vec<Value>>()
        };
        json!({
            "text": self.text(),
            "label": self.label,
            "holds": holds(&self.own),
            "tasks": self.tasks.iter().map(|task| json!({
                "id": task.id, "title": task.title, "section": task.section, "files": task.files,
            })).collect::<Vec<_>>(),
            "others": holds(&self.others),
        })
    }
}

fn task_of(hold: &HoldSnapshot) -> Option<TaskId> {
    let resource = &hold.hold.want.resource;
    (resource.kind() == Kind::Task).then(|| resource.name().parse().ok())?
}

/// A list of holds of about so many characters, and how many more there are.
fn listed(
    holds: &[HoldSnapshot],
    characters_max: usize,
    one: impl Fn(&HoldSnapshot) -> String,
) -> String {
    let (mut words, mut characters) = (Vec::new(), 0);
    for hold in holds {
        let word = one(hold);
        characters += word.chars().count() + 2;
        if characters > characters_max && !words.is_empty() {
            words.push(format!("{} more", holds.len() - words.len()));
            break;
        }
        words.push(word);
    }
    words.join(", ")
}

fn resource(hold: &HoldSnapshot) -> String {
    short(&spelling::name(&hold.hold.want.resource))
}

/// A text of others on one line, cut where it gets long.
fn short(text: &str) -> String {
    let text = one_line(text);
    match text.chars().count() <= TEXT_MAX {
        true => text,
        false => text.chars().take(TEXT_MAX).chain(['…']).collect(),
    }
}
