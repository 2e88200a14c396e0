//! `tenure hook`: answers an event of an agent's host, such as an edit that is about to happen.
//!
//! It refuses only on a clear conflict. Whatever else goes wrong (no store, unreadable input, a
//! store that does not answer in time, a panic) lets the host go on, with one sentence on stderr:
//! a fault here must never stop an agent.

mod caller;
mod changed_files;
mod claude_code;
mod codex;
mod cursor;
mod edit;
mod event;
mod gemini;
pub(crate) mod opencode;
mod patch;
mod refusal;
mod shell;
mod targets;
mod turn_end;

use crate::args::Global;
use crate::commands::prime;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::Output;
use crate::setup;
use caller::Caller;
use clap::{Args, ValueEnum};
use event::{Event, Verdict, What};
use serde_json::Value;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};
use targets::Targets;

/// Answer an event of an agent's host (used by its hooks)
///
/// Reads one event as JSON from standard input and answers in the host's own format. Before an edit
/// it takes the file for this agent if it is free, and refuses the edit if another agent has it. A
/// shell command that clearly writes is judged by the files that it names. Every event renews what
/// the agent holds. At the end of a turn, files without uncommitted changes are released; at the
/// end of the session, everything.
///
/// `tenure setup` writes the configuration that calls it. It never stops an agent because of a
/// fault of its own: it then lets the host go on, and says so on stderr.
#[derive(Debug, Args)]
#[command(after_help = "\
Settings: hooks.policy (claim, check, warn), hooks.scope (repository, worktree),
hooks.lease.

Examples:
  tenure setup claude-code                    set up the hooks
  tenure hook claude-code < event.json        what a hook does
  tenure config set hooks.policy check        refuse, but take nothing")]
pub(crate) struct HookArgs {
    /// The program that the agent runs in
    #[arg(value_name = "HOST")]
    host: HostArg,
    /// Act only where the project is set up and its own hook does not run (in the user's settings)
    #[arg(long)]
    user: bool,
}

/// The hosts that have hooks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum HostArg {
    ClaudeCode,
    Codex,
    Cursor,
    Gemini,
    Opencode,
}

impl HostArg {
    fn event(self, input: &Value) -> Event {
        match self {
            HostArg::ClaudeCode => claude_code::event(input),
            HostArg::Codex => codex::event(input),
            HostArg::Cursor => cursor::event(input),
            HostArg::Gemini => gemini::event(input),
            HostArg::Opencode => opencode::event(input),
        }
    }

    /// Whether a hook in the user's settings is to act on this event.
    fn user_hook_acts(self, event: &Event) -> bool {
        let (hooks, variable) = match self {
            HostArg::ClaudeCode => (&setup::CLAUDE_CODE_USER, "CLAUDE_PROJECT_DIR"),
            HostArg::Gemini => (&setup::GEMINI_USER, "GEMINI_PROJECT_DIR"),
            HostArg::Codex | HostArg::Cursor | HostArg::Opencode => return false,
        };
        let folder = event.folder.clone().unwrap_or_default();
        let started_in = std::env::var_os(variable).map_or_else(|| folder.clone(), PathBuf::from);
        hooks.acts(existing(&folder), &started_in)
    }

    fn answer(self, event: &Event, verdict: &Verdict) -> Option<Value> {
        match self {
            HostArg::ClaudeCode => claude_code::answer(event, verdict),
            HostArg::Codex => codex::answer(event, verdict),
            HostArg::Cursor => cursor::answer(event, verdict),
            HostArg::Gemini => gemini::answer(event, verdict),
            HostArg::Opencode => opencode::answer(event, verdict),
        }
    }
}

/// The largest event: an edit contains the whole new content of its file.
const INPUT_BYTES_MAX: u64 = 32 * 1024 * 1024;

/// How long an agent waits for an answer before it may go on without one.
const PATIENCE: Duration = Duration::from_secs(2);

/// The same at the end of a turn, where git looks for changes and the agent waits for nothing.
const PATIENCE_AT_END: Duration = Duration::from_secs(10);

/// What the thread that does the work reports.
enum Report {
    /// The event was read.
    Read(Event),
    /// It was judged, or something failed.
    Judged(Result<Verdict, Failure>),
}

/// Runs the command. The work is done by a thread of its own, so that neither a store that does not
/// answer nor a panic can keep the host from going on.
pub(crate) fn run(output: &Output, global: &Global, args: &HookArgs) -> i32 {
    let (host, is_of_user) = (args.host, args.user);
    let (sender, reports) = mpsc::channel();
    // The sentence below says enough.
    std::panic::set_hook(Box::new(|_| {}));
    let (thread_global, thread_output) = (global.clone(), output.clone());
    let work = move || work(host, is_of_user, &thread_global, &thread_output, &sender);
    let begun = Instant::now();
    let started = std::thread::Builder::new().name("hook".to_owned()).spawn(work);
    let (mut event, mut patience) = (None, PATIENCE);
    let problem = loop {
        if let Err(error) = &started {
            break error.to_string();
        }
        match reports.recv_timeout(patience.saturating_sub(begun.elapsed())) {
            Ok(Report::Read(read)) => {
                if matches!(read.what, What::TurnEnd | What::SubagentEnd | What::SessionEnd) {
                    patience = PATIENCE_AT_END;
                }
                event = Some(read);
            }
            Ok(Report::Judged(Ok(verdict))) => {
                print(output, event.as_ref().and_then(|event| host.answer(event, &verdict)));
                return Exit::Ok.code();
            }
            Ok(Report::Judged(Err(failure))) => break failure.message,
            Err(RecvTimeoutError::Timeout) => {
                break format!("no answer within {} s", patience.as_secs());
            }
            Err(RecvTimeoutError::Disconnected) => break "it failed unexpectedly".to_owned(),
        }
    };
    output.note(&format!("tenure: not checked, so allowed: {}", one_line(&problem)));
    print(output, event.and_then(|event| host.answer(&event, &Verdict::Allow)));
    Exit::Ok.code()
}

fn one_line(text: &str) -> String {
    text.lines().map(str::trim).collect::<Vec<_>>().join(" ")
}

fn print(output: &Output, answer: Option<Value>) {
    if let Some(answer) = answer {
        output.raw(format!("{answer}\n").as_bytes());
    }
}

/// Reads the event, and judges it.
fn work(
    host: HostArg,
    is_of_user: bool,
    global: &Global,
    output: &Output,
    reports: &Sender<Report>,
) {
    let judged = read_input().and_then(|input| {
        let event = host.event(&input);
        let _ = reports.send(Report::Read(event.clone()));
        if is_of_user && !host.user_hook_acts(&event) {
            return Ok(Verdict::Allow);
        }
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| fault(format!("no async runtime: {error}")))?;
        runtime.block_on(judge(&event, global, output))
    });
    let _ = reports.send(Report::Judged(judged));
}

fn fault(message: String) -> Failure {
    Failure::new(Exit::Error, "HOOK", message)
}

fn read_input() -> Result<Value, Failure> {
    let mut input = Vec::new();
    let read = std::io::stdin().lock().take(INPUT_BYTES_MAX + 1).read_to_end(&mut input);
    read.map_err(|error| fault(format!("the event cannot be read: {error}")))?;
    if input.len() as u64 > INPUT_BYTES_MAX {
        let limit = INPUT_BYTES_MAX / (1024 * 1024);
        return Err(fault(format!("the event is larger than {limit} MiB")));
    }
    serde_json::from_slice(&input).map_err(|error| fault(format!("the event is no JSON: {error}")))
}

async fn judge(event: &Event, global: &Global, output: &Output) -> Result<Verdict, Failure> {
    let here = std::env::current_dir().unwrap_or_default();
    let folder = event.folder.as_ref().map_or_else(|| here.clone(), |folder| here.join(folder));
    let context = Context::for_protection(global, output.clone(), existing(&folder))?;
    let Some(caller) = Caller::of(event, &context) else {
        return Err(fault("the event names no session".to_owned()));
    };
    let mut targets = Targets::new(global, output, &folder);
    let purpose = event.host.word();
    match &event.what {
        What::BeforeEdit { paths } => {
            for path in paths {
                targets.add_file(path)?;
            }
            edit::before(&caller, &targets.groups, purpose).await
        }
        What::BeforeShell { command, folder: other } => {
            let folder = other.as_ref().map_or_else(|| folder.clone(), |other| folder.join(other));
            before_shell(&caller, &context, command, &folder, targets, purpose).await
        }
        What::SessionStart => {
            caller.sign_of_life(&context).await?;
            let text = prime::text_for(&context, &caller.agent.label).await?;
            Ok(text.map_or(Verdict::Allow, |text| Verdict::Context { text }))
        }
        What::TurnEnd | What::SubagentEnd => {
            // The end of a subagent that is not named says nothing about the session's own files.
            if event.what == What::TurnEnd || caller.agent.parent.is_some() {
                turn_end::turn(&caller, &context).await?;
            }
            Ok(Verdict::Allow)
        }
        What::SessionEnd => turn_end::session(&caller, &context).await.map(|()| Verdict::Allow),
        What::Other => caller.sign_of_life(&context).await.map(|()| Verdict::Allow),
    }
}

/// Judges a shell command by what it clearly writes.
async fn before_shell(
    caller: &Caller,
    context: &Context,
    command: &str,
    folder: &Path,
    mut targets: Targets<'_>,
    purpose: &str,
) -> Result<Verdict, Failure> {
    let writes = shell::writes(command, folder, &shell::Disk);
    // Some agents send patches through the shell.
    let patched: Vec<PathBuf> = match patch::is_in(command) {
        true => patch::files(command).into_iter().map(|file| folder.join(file)).collect(),
        false => Vec::new(),
    };
    if writes.is_empty() && patched.is_empty() {
        caller.sign_of_life(context).await?;
        return Ok(Verdict::Allow);
    }
    for path in writes.files.iter().chain(&patched) {
        targets.add_file(path)?;
    }
    for path in &writes.trees {
        targets.add_tree(path)?;
    }
    for (folder, pattern) in &writes.patterns {
        targets.add_pattern(folder, pattern)?;
    }
    edit::before_writes(caller, &writes, &mut targets, purpose).await
}

/// The nearest folder upward that exists.
fn existing(folder: &Path) -> &Path {
    folder.ancestors().find(|folder| folder.is_dir()).unwrap_or(Path::new("/"))
}
