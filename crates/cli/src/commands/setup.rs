//! `tenure setup`: writes the configuration of agents' programs, checks it, removes it.

use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::{BAD, DIM, GOOD, NAME, styled};
use crate::setup::{Fate, Plan, PlannedFile, Project, Removal, TARGETS, Target, USER_TARGETS};
use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser};
use serde_json::{Value, json};
use similar::TextDiff;
use std::path::PathBuf;

/// Set up agents' programs so that no two agents edit one file
///
/// Writes hooks, which take each file before an agent edits it and refuse what another agent
/// holds; the entry of the MCP server; and a short section of instructions in AGENTS.md, CLAUDE.md
/// or GEMINI.md. Everything else in these files stays as it is, comments and order included. The
/// files can be committed: they do nothing where tenure is not installed. `git` adds the commit guard
/// to the hooks of this repository; hooks that are there still run. Without names it sets up what is
/// used here.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tenure setup                      what is used here
  tenure setup claude-code codex    these
  tenure setup git                  refuse commits of files that others hold
  tenure setup --user claude-code   also where claude is started in a subfolder
  tenure setup --print              show the changes, write nothing
  tenure setup --check              exit 7 if something is missing or outdated
  tenure setup --remove             leave all files as they were")]
pub(crate) struct SetupArgs {
    /// What to set up; by default what is used here
    #[arg(value_name = "PROGRAM", value_parser = words())]
    targets: Vec<String>,
    /// Write your own settings: hooks for programs that find a project's only in its first folder
    /// (claude-code, gemini). They do nothing where the project is not set up
    #[arg(long)]
    user: bool,
    /// Only check: exit 7 if something is missing or outdated
    #[arg(long, conflicts_with_all = ["remove", "print"])]
    check: bool,
    /// Remove what was set up, and nothing else
    #[arg(long)]
    remove: bool,
    /// Print the changes as a diff, and write nothing
    #[arg(long)]
    print: bool,
}

fn words() -> PossibleValuesParser {
    PossibleValuesParser::new(TARGETS.map(|target| PossibleValue::new(target.word())))
}

pub(crate) fn run(context: &Context, args: &SetupArgs) -> Result<i32, Failure> {
    let project = if args.user { Project::home()? } else { Project::of(context)? };
    let chosen = chosen(&project, args)?;
    let mut plan = Plan::new(&project.root);
    for (target, _) in &chosen {
        match args.remove {
            true => target.remove(&removal(&project, &chosen), &mut plan)?,
            false => target.add(&project, &mut plan)?,
        }
    }
    if !args.check && !args.print {
        plan.apply()?;
        if args.remove {
            plan.remove_empty_folders(&folders(&project, &chosen));
        }
    }
    let report = Report { project: &project, chosen: &chosen, plan: &plan, args };
    report.tell(context)
}

/// A target, and the sign by which it was found if it was not named.
type Chosen = (&'static dyn Target, Option<String>);

/// The targets that were named; else those that are used here or, to remove, all.
fn chosen(project: &Project, args: &SetupArgs) -> Result<Vec<Chosen>, Failure> {
    let all: &[&'static dyn Target] = if args.user { &USER_TARGETS } else { &TARGETS };
    if !args.targets.is_empty() {
        let named = |word: &String| all.iter().find(|target| target.word() == *word).copied();
        if let Some(other) = args.targets.iter().find(|word| named(word).is_none()) {
            let names: Vec<&str> = all.iter().map(|target| target.word()).collect();
            let message = format!("{other} has no hooks in the user's settings");
            return Err(Failure::new(Exit::Usage, "USAGE", message).hint(format!(
                "It needs none: `tenure setup {other}` is enough. --user is for {}.",
                names.join(" and ")
            )));
        }
        let known = args.targets.iter().filter_map(named);
        let mut chosen: Vec<Chosen> = Vec::new();
        for target in known {
            if !chosen.iter().any(|(other, _)| other.word() == target.word()) {
                chosen.push((target, None));
            }
        }
        return Ok(chosen);
    }
    if args.remove {
        return Ok(all.iter().map(|target| (*target, None)).collect());
    }
    let found = all.iter().copied().filter_map(|target| {
        let sign = target.found(project)?;
        Some((target, Some(sign)))
    });
    let found: Vec<Chosen> = found.collect();
    if found.is_empty() {
        let names: Vec<&str> = all.iter().map(|target| target.word()).collect();
        let names = names.join(", ");
        let message = "found no program of agents that is used here";
        return Err(Failure::new(Exit::NotFound, "NOTHING_FOUND", message)
            .hint(format!("Name what to set up: {names}.")));
    }
    Ok(found)
}

fn removal<'a>(project: &'a Project, chosen: &[Chosen]) -> Removal<'a> {
    let is_chosen =
        |target: &&dyn Target| chosen.iter().any(|(chosen, _)| chosen.word() == target.word());
    let staying = TARGETS.into_iter().filter(|target| !is_chosen(target)).collect();
    Removal { project, staying }
}

fn folders(project: &Project, chosen: &[Chosen]) -> Vec<PathBuf> {
    let folders = chosen.iter().flat_map(|(target, _)| target.folders());
    folders.map(|folder| project.root.join(folder)).collect()
}

/// What is said afterwards.
struct Report<'a> {
    project: &'a Project,
    chosen: &'a [Chosen],
    plan: &'a Plan,
    args: &'a SetupArgs,
}

impl Report<'_> {
    fn tell(&self, context: &Context) -> Result<i32, Failure> {
        if self.args.check && self.plan.changes() {
            return Err(self.incomplete());
        }
        for note in self.notes() {
            context.output.note(&note);
        }
        let output = &context.output;
        match self.args.print {
            true => output.done(self.data(), || self.diff().trim_end().to_owned()),
            false => output.confirm(self.data(), || self.lines().join("\n")),
        }
        Ok(Exit::Ok.code())
    }

    /// The failure of a check: each line names a file and what is missing in it.
    fn incomplete(&self) -> Failure {
        let mut missing = Vec::new();
        for file in self.plan.files() {
            let parts = file.parts.iter().filter(|part| part.changes);
            for part in parts {
                let state = if file.before.is_none() { "missing" } else { "missing or outdated" };
                let shown = file.shown.display().to_string();
                missing.push(format!(
                    "  {:<12} {shown}: {} {state}",
                    part.target,
                    styled(BAD, part.what)
                ));
            }
        }
        missing.dedup();
        let names: Vec<&str> = self.chosen.iter().map(|(target, _)| target.word()).collect();
        let mut failure = Failure::new(Exit::CheckFailed, "NOT_SET_UP", "not everything is set up")
            .hint(format!(
                "Set it up: tenure setup {}{}",
                if self.args.user { "--user " } else { "" },
                names.join(" ")
            ))
            .details(self.data());
        failure.more = missing;
        failure
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = self.plan.notes.clone();
        let changed = |word: &str| {
            let parts = self.plan.files().flat_map(|file| &file.parts);
            parts.into_iter().any(|part| part.target == word && part.changes)
        };
        if !self.args.remove && !self.args.check {
            let advice = self.chosen.iter().filter(|(target, _)| changed(target.word()));
            notes.extend(advice.filter_map(|(target, _)| target.advice()).map(str::to_owned));
        }
        notes
    }

    fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        let found = self.chosen.iter().filter_map(|(target, sign)| {
            sign.as_ref().map(|sign| format!("{} ({sign})", styled(NAME, target.word())))
        });
        let found: Vec<String> = found.collect();
        if !found.is_empty() {
            lines.push(format!("Found {}", found.join(", ")));
        }
        let shown: Vec<&PlannedFile> =
            self.plan.files().filter(|file| self.is_shown(file)).collect();
        let width = shown.iter().map(|file| file.shown.display().to_string().len()).max();
        for file in shown {
            let fate = file.fate();
            let word = format!("{:<9}", fate.word());
            let word = match fate {
                Fate::Unchanged => styled(DIM, word),
                _ => styled(GOOD, word),
            };
            let path = file.shown.display().to_string();
            let parts = parts(file).join(", ");
            lines.push(format!("{word}  {path:<width$}  {parts}", width = width.unwrap_or(0)));
        }
        for rename in self.plan.renames() {
            let word = styled(GOOD, format!("{:<9}", "renamed"));
            let (from, to) = (self.project.shown(&rename.from), self.project.shown(&rename.to));
            lines.push(format!("{word}  {from} to {to}"));
        }
        if lines.is_empty() || (self.args.remove && !self.plan.changes()) {
            lines = vec!["Nothing to remove".to_owned()];
        }
        lines
    }

    /// Removing looks at many files that never had anything of tenure.
    fn is_shown(&self, file: &PlannedFile) -> bool {
        !self.args.remove || file.fate() != Fate::Unchanged
    }

    fn diff(&self) -> String {
        let renames = self.plan.renames().iter().map(|rename| {
            let (from, to) = (self.project.shown(&rename.from), self.project.shown(&rename.to));
            format!("rename from {from}\nrename to {to}\n")
        });
        renames.chain(self.plan.files().map(|file| self.file_diff(file))).collect()
    }

    fn file_diff(&self, file: &PlannedFile) -> String {
        let name = file.shown.display().to_string();
        let side = |text: &Option<String>, prefix: &str| match text {
            Some(_) => format!("{prefix}/{name}"),
            None => "/dev/null".to_owned(),
        };
        let (before, after) = (side(&file.before, "a"), side(&file.after, "b"));
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        let (old, new) = (text(&file.before), text(&file.after));
        let diff = TextDiff::from_lines(&old, &new);
        diff.unified_diff().context_radius(3).header(&before, &after).to_string()
    }

    fn data(&self) -> Value {
        let targets = self
            .chosen
            .iter()
            .map(|(target, sign)| json!({ "name": target.word(), "found_by": sign }));
        let files = self.plan.files().filter(|file| self.is_shown(file)).map(|file| {
            let parts = file.parts.iter().map(
                |part| json!({ "what": part.what, "target": part.target, "changes": part.changes }),
            );
            let mut data = json!({
                "path": file.shown.display().to_string(),
                "fate": file.fate().word(),
                "parts": parts.collect::<Vec<_>>(),
            });
            if self.args.print {
                data["diff"] = json!(self.file_diff(file));
            }
            data
        });
        let renames = self.plan.renames().iter().map(|rename| {
            let (from, to) = (self.project.shown(&rename.from), self.project.shown(&rename.to));
            json!({ "from": from, "to": to })
        });
        json!({
            "root": self.project.root,
            "targets": targets.collect::<Vec<_>>(),
            "files": files.collect::<Vec<_>>(),
            "renamed": renames.collect::<Vec<_>>(),
            "complete": !self.plan.changes(),
            "notes": self.notes(),
        })
    }
}

/// What a file is for, each part once.
fn parts(file: &PlannedFile) -> Vec<&'static str> {
    let mut parts: Vec<&str> = Vec::new();
    for part in &file.parts {
        if !parts.contains(&part.what) {
            parts.push(part.what);
        }
    }
    parts
}
