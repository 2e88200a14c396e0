//! `tenure tasks log`: shows what the command of a task printed.

use crate::args;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use clap::Args;
use std::time::Duration;
use tenure::Client;
use tenure::core::Task;
use tenure_frontend::view::{self, TaskLog};

/// Show the last lines that a task's command printed, while it runs too
///
/// Workers of `work` and `swarm` keep the last 500 lines (at most 64 KiB) of each attempt, without
/// colours and other control sequences, as long as the attempt is remembered.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tenure tasks log build
  tenure tasks log build --attempt 1
  tenure tasks log build --follow          until the attempt ends")]
pub(super) struct LogArgs {
    /// Id, unique beginning of an id, or exact title
    #[arg(value_name = "TASK")]
    task: String,
    /// Which attempt, from 1; the newest by default
    #[arg(long, value_name = "N", value_parser = args::numbers::attempt)]
    attempt: Option<u32>,
    /// Print new lines until the attempt ends
    #[arg(short, long)]
    follow: bool,
}

/// How often a follower looks: a worker saves its output about every second, which wakes no one.
const LOOK_EVERY: Duration = Duration::from_millis(500);

pub(super) async fn run(context: &Context, args: LogArgs) -> Result<i32, Failure> {
    let client = context.reader().await?;
    let mut task = super::find(&client, &args.task).await?;
    let mut log = log_of(&client, &task, args.attempt).await?;
    if !args.follow {
        context.output.done(view::json(&log), || text(&log));
        return Ok(0);
    }
    let mut printed = String::new();
    loop {
        let new = news(&printed, &log.text);
        if !new.is_empty() {
            let line = serde_json::json!({ "attempt": log.attempt, "text": new });
            context.output.line(&line, || new.trim_end_matches('\n').to_owned());
        }
        // Of a line that is not complete yet, the rest is printed with it.
        printed = log.text.clone();
        if !log.running {
            return Ok(0);
        }
        tokio::time::sleep(LOOK_EVERY).await;
        let found = client.tasks().get(&task.id).await?;
        let Some(found) = found else { return Ok(0) };
        task = found;
        log = log_of(&client, &task, Some(log.attempt)).await?;
        if log.running {
            log.text.truncate(log.text.rfind('\n').map_or(0, |end| end + 1));
        }
    }
}

async fn log_of(client: &Client, task: &Task, attempt: Option<u32>) -> Result<TaskLog, Failure> {
    let log = TaskLog::of(client, task, attempt).await?;
    log.ok_or_else(|| {
        let message = match attempt {
            Some(number) => format!("{:?} has no attempt {number}", task.title),
            None => format!("{:?} was not attempted yet", task.title),
        };
        Failure::new(Exit::NotFound, "ATTEMPT_NOT_FOUND", message)
            .hint(format!("List its attempts with `tenure tasks show {}`.", task.id))
    })
}

fn text(log: &TaskLog) -> String {
    match (log.text.is_empty(), log.running) {
        (false, _) => log.text.trim_end_matches('\n').to_owned(),
        (true, true) => "Nothing printed yet".to_owned(),
        (true, false) => "Nothing was printed, or it is no longer kept".to_owned(),
    }
}

/// The lines of an output that were not printed before. Earlier lines may have been dropped since.
fn news<'a>(printed: &str, text: &'a str) -> &'a str {
    if let Some(new) = text.strip_prefix(printed) {
        return new;
    }
    // The last line that was printed and is still there; what follows it is new.
    let Some(last) = printed.lines().last().filter(|last| !last.is_empty()) else { return text };
    let line = format!("{last}\n");
    text.rfind(&line).map_or(text, |at| &text[at + line.len()..])
}

#[cfg(test)]
mod tests {
    use super::news;

    #[test]
    fn only_new_lines_are_printed_even_when_old_ones_were_dropped() {
        assert_eq!(news("", "a\n"), "a\n");
        assert_eq!(news("a\n", "a\nb\n"), "b\n");
        assert_eq!(news("a\nb\n", "a\nb\n"), "");
        assert_eq!(news("a\nb\n", "[dropped]\nb\nc\n"), "c\n");
        assert_eq!(news("a\nb\n", "[dropped]\nx\ny\n"), "[dropped]\nx\ny\n");
    }
}
