//! Adds tasks, and writes notes by requests that may be repeated.

use super::Context;
use crate::plan::Pace;
use tenure::core::Section;
use tenure::core::rules::tasks::AddNote;
use tenure::store::{RequestId, StoreError};
use tenure::{Error, NewTask, TaskId};

/// How often it adds tasks.
fn batches(pace: Pace) -> u32 {
    match pace {
        Pace::Steady => 8,
        Pace::Busy => 80,
    }
}

pub(super) async fn run(context: &Context) {
    sections(context).await;
    let journal = format!("journal-{}-{}", context.number, context.start);
    add(context, vec![NewTask::new(id(&journal), "a journal")], true).await;
    let mut numbers = [0; 2];
    for batch in 0..batches(context.pace) {
        if !context.goes_on() {
            return;
        }
        let tasks = batch_of_tasks(context, batch);
        add(context, tasks, false).await;
        for _ in 0..2 {
            note(context, &journal, &mut numbers).await;
        }
        let pause = context.roll(|dice| match context.pace {
            Pace::Steady => dice.time(200, 5000),
            Pace::Busy => dice.time(20, 500),
        });
        context.sleep(pause).await;
    }
}

fn id(name: &str) -> TaskId {
    name.parse().expect("names of tasks are valid")
}

async fn sections(context: &Context) {
    let narrow = Section { max_runners: Some(1), ..Section::named("narrow") };
    let wide = Section { max_runners: Some(2), ..Section::named("wide") };
    for section in [narrow, wide] {
        while let Err(error) = context.client.tasks().put_section(&section).await {
            context.wait_out(&error).await;
        }
    }
}

fn batch_of_tasks(context: &Context, batch: u32) -> Vec<NewTask> {
    let names: Vec<String> = (0..3)
        .map(|index| format!("t{}-{}-{batch}-{index}", context.number, context.start))
        .collect();
    let new = |(index, name): (usize, &String)| {
        let mut task = NewTask::new(id(name), name);
        context.roll(|dice| {
            let section = dice.pick(&[None, Some("narrow"), Some("wide")]);
            task.section = section.map(str::to_owned);
            task.max_attempts = 3;
            if index > 0 && dice.percent(50) {
                task.depends_on = vec![id(&names[index - 1])];
            }
            if dice.percent(25) {
                task.files =
                    vec![(*dice.pick(&["src/a.rs", "docs/x.md", "src/deep/**"])).to_owned()];
            }
        });
        task
    };
    names.iter().enumerate().map(new).collect()
}

/// Adds these tasks; a task with the same key is added once, so that trying again is safe.
async fn add(context: &Context, mut tasks: Vec<NewTask>, is_journal: bool) {
    let names: Vec<String> = tasks.iter().map(|task| task.id.to_string()).collect();
    for task in &mut tasks {
        task.key = Some(format!("key-{}", task.id));
        if is_journal {
            // No worker has it.
            task.section = Some("journals".to_owned());
            task.status = tenure::Status::Blocked;
        }
        let needs = task.depends_on.iter().map(ToString::to_string).collect();
        context.observer.adds(task.id.as_str(), needs);
    }
    loop {
        match context.client.tasks().add(tasks.clone()).await {
            Ok(_) => {
                context.say(format_args!("added {}", names.join(" ")));
                return context.observer.added(&names);
            }
            Err(error) => context.wait_out(&error).await,
        }
    }
}

/// Writes one note by a request of one of two slots, which is sent again while its outcome is not
/// known, as a client of a server does.
async fn note(context: &Context, journal: &str, numbers: &mut [u64; 2]) {
    let line = context.roll(|dice| dice.below(2)) as usize;
    let number = &mut numbers[line];
    *number += 1;
    let text = format!("{journal}-note-{line}-{number}");
    let act = AddNote { task: id(journal), by: context.who.clone(), text: text.clone() };
    context.observer.notes(&text);
    context.say(format_args!("writes the note {text}"));
    let mut is_unknown = false;
    loop {
        let request = RequestId { slot: format!("{journal}-{line}"), number: *number };
        match context.client.backend().perform_once(&request, &act).await {
            Ok(Ok(_)) => return context.observer.noted(&text),
            Ok(Err(error)) => return context.say(format_args!("the note is refused: {error}")),
            Err(error) => {
                // Nothing was written, says the store: it may be asked anew. Once an outcome is unknown,
                // only the very same request is safe.
                is_unknown |= matches!(error, StoreError::Unknown { .. });
                if !is_unknown {
                    *number += 1;
                }
                context.wait_out(&Error::Store(error)).await;
            }
        }
    }
}
