//! `tenure tasks note`: writes something down about a task, for its next worker.

use super::{find, show};
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use clap::Args;
use serde_json::json;
use std::io::Read as _;
use tenure::core::Note;
use tenure::core::handover::NOTE_MAX_BYTES;
use tenure_frontend::view;

/// Write a note about a task, for its next worker
///
/// Notes are kept with the task, with your label and the time. Every worker that claims the task gets
/// them, together with how the earlier tries ended; `tenure tasks show` and `tenure events` show them
/// too. Any task can be noted, also one that no worker has. A note has at most 8 KiB; a task keeps the
/// newest 200, and 64 KiB in all.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tenure tasks note 'Fix bug' 'The test fails only with --release; see src/cache.rs'
  git diff --stat | tenure tasks note 'Fix bug' -")]
pub(super) struct NoteArgs {
    /// Id, unique beginning of an id, or exact title
    #[arg(value_name = "TASK")]
    task: String,
    /// The note; - reads it from stdin
    #[arg(value_name = "TEXT", allow_hyphen_values = true)]
    text: String,
}

pub(super) async fn run(context: &Context, args: NoteArgs) -> Result<i32, Failure> {
    let text = match args.text.as_str() {
        "-" => standard_input()?,
        _ => args.text,
    };
    // Before the store is opened: a wrong note is not the store's business.
    Note::check(&text).map_err(|error| Failure::usage(error.to_string()))?;
    let client = context.client().await?;
    let task = find(&client, &args.task).await?;
    let task = client.tasks().add_note(&task.id, &text).await?;
    let data = json!({ "task": view::Task::new(&task, None) });
    context.output.confirm(data, || format!("Noted on {}", show::name(&task)));
    Ok(0)
}

/// All of standard input, without the line end at its end. Little more is read than a note may have.
fn standard_input() -> Result<String, Failure> {
    let mut bytes = Vec::new();
    let most = NOTE_MAX_BYTES as u64 + 64;
    let failed = |what: String| Failure::new(Exit::Error, "INPUT", what);
    std::io::stdin()
        .take(most)
        .read_to_end(&mut bytes)
        .map_err(|error| failed(format!("cannot read the note from stdin: {error}")))?;
    if bytes.len() as u64 == most {
        return Err(Failure::usage(format!(
            "the note from stdin has more than {NOTE_MAX_BYTES} bytes"
        )));
    }
    let text = String::from_utf8(bytes);
    let text = text.map_err(|_| Failure::usage("the note from stdin is not UTF-8 text"))?;
    Ok(text.trim_end().to_owned())
}
