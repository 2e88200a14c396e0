//! `tenure whoami`: shows which store is used and why, and for which agent or under which label.

use crate::context::Context;
use crate::failure::Failure;
use crate::output::{BAD, DIM, NAME, styled};
use clap::Args;
use serde_json::{Value, json};
use std::path::Path;
use tenure::agent::Agent;
use tenure::locate;
use tenure::place::PlaceKind;
use tenure_frontend::config::Key;

/// Show which store is used and why, and your label
///
/// All commands, hooks and tools of one agent hold under one label: the one that you choose with --as or
/// TENURE_AGENT, else that of the agent's session or program around the command, else that of the
/// process that started it. Also shows which settings files are in effect. It opens and creates nothing.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tenure whoami
  tenure where --json
  tenure -v run deploy -- ./deploy.sh     prints the store on stderr, and runs")]
pub(crate) struct WhoamiArgs {}

pub(crate) fn run(context: &Context, _: WhoamiArgs) -> Result<i32, Failure> {
    let located = context.located();
    let files = files(context);
    let others = context.other_stores();
    let (label, label_origin) = label(context);
    let agent = context.agent();
    let store = match &located {
        Ok(located) => json!({
            "url": located.url.to_string(),
            "reason": located.reason.word(),
            "explanation": located.reason.to_string(),
            "exists": located.url.exists(),
        }),
        Err(_) => Value::Null,
    };
    let problem = located.as_ref().err().map(
        |failure| json!({ "code": failure.code, "message": failure.message, "hint": failure.hint }),
    );
    let data = json!({
        "store": store,
        "problem": problem,
        "label": label,
        "label_chosen_by": label_origin,
        "agent": agent.map(agent_json),
        "config": files.iter().map(File::json).collect::<Vec<_>>(),
        "other_stores": others.iter().map(|(url, what)| {
            json!({ "url": url.to_string(), "what": what })
        }).collect::<Vec<_>>(),
    });
    context.output.done(data, || {
        let mut lines = Vec::new();
        match &located {
            Ok(located) => {
                let missing = if located.url.exists() { "" } else { " (not created yet)" };
                lines.push(field("store", &format!("{}{missing}", styled(NAME, &located.url))));
                lines.push(field("why", &located.reason.to_string()));
            }
            Err(failure) => {
                lines
                    .push(field("store", &format!("{}: {}", styled(BAD, "none"), failure.message)));
                lines.extend(failure.hint.iter().map(|hint| field("hint", hint)));
            }
        }
        lines.push(field(
            "label",
            &match (&label, &label_origin, agent) {
                (Some(label), Some(origin), _) => format!("{} ({origin})", styled(NAME, label)),
                (None, _, Some(agent)) => format!(
                    "{} ({}); choose another with --as or TENURE_AGENT",
                    styled(NAME, &agent.label),
                    agent.source
                ),
                _ => "a new one for each command; choose one with --as or TENURE_AGENT".to_owned(),
            },
        ));
        if let Some(agent) = agent {
            lines.extend(agent.parent.iter().map(|parent| field("parent", parent)));
            lines.push(field("ends with", &ends_with(agent)));
        }
        lines.extend(files.iter().map(|file| field("settings", &file.line())));
        lines.extend(others.iter().map(|(url, what)| {
            field("not used", &format!("{url} {}", styled(DIM, format!("({what})"))))
        }));
        lines.join("\n")
    });
    Ok(0)
}

fn field(name: &str, value: &str) -> String {
    format!("{name:<9} {value}")
}

fn agent_json(agent: &Agent) -> Value {
    json!({
        "label": agent.label,
        "parent": agent.parent,
        "source": agent.source.word(),
        "explanation": agent.source.to_string(),
        "pid": agent.process,
    })
}

/// What ends the leases of this agent early.
fn ends_with(agent: &Agent) -> String {
    let elsewhere = agent.seen_elsewhere.as_ref().and_then(|seen| seen.process);
    match agent.process.or(elsewhere.map(|process| process.pid)) {
        Some(pid) => format!("process {pid}: what you hold is free when it dies"),
        None => "no process: what you hold ends when it is released or its lease lapses".to_owned(),
    }
}

fn label(context: &Context) -> (Option<String>, Option<String>) {
    let label = context.chosen_label().map(str::to_owned);
    let setting = context.settings.setting(Key::Agent);
    let origin = match context.settings.text(Key::Agent) {
        Some(_) => setting.origin.to_string(),
        None => context.dialect().defaults().label_variable.unwrap_or_default().to_owned(),
    };
    (label.clone(), label.map(|_| origin))
}

/// A settings file.
struct File {
    path: String,
    kind: &'static str,
    exists: bool,
    /// For a project's file: whether it is in effect, and why.
    state: Option<&'static str>,
}

impl File {
    fn new(path: &Path, kind: &'static str) -> File {
        File { path: path.display().to_string(), kind, exists: path.exists(), state: None }
    }

    fn json(&self) -> Value {
        json!({ "file": self.path, "kind": self.kind, "exists": self.exists, "trust": self.state })
    }

    fn line(&self) -> String {
        let state = if self.exists { self.state.unwrap_or_default() } else { "missing" };
        let state = if state.is_empty() { String::new() } else { format!(": {state}") };
        format!("{} ({}{state})", self.path, self.kind)
    }
}

fn files(context: &Context) -> Vec<File> {
    if let Some(named) = &context.sources.explicit_file {
        return vec![File::new(named, "named by --config")];
    }
    let mut files = Vec::new();
    files.extend(context.sources.user_file.iter().map(|path| File::new(path, "yours")));
    let Ok(place) = context.place() else { return files };
    let own = place.kind == PlaceKind::User;
    let mut project = File::new(&place.config_file(), if own { "yours" } else { "the project's" });
    if !own && project.exists {
        project.state = Some(context.project_trust(|| locate::subject(place, &context.settings)));
    }
    files.push(project);
    files
}
