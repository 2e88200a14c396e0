//! The MCP prompts: what a person can have an agent do with one choice.

use rmcp::model::{GetPromptResult, Prompt, PromptMessage, Role};

/// A prompt: its name, what it is for, and its text.
struct PromptText {
    name: &'static str,
    description: &'static str,
    text: &'static str,
}

const PROMPTS: [PromptText; 2] = [
    PromptText {
        name: "work-on-next-task",
        description: "Claim the next ready task, do it and report on it",
        text: "\
Work on the next task of the shared list.
1. Call claim_task. If success is false, do what `next` says and stop if no task is left.
2. Read the task, its notes and how earlier tries ended. If the answer has rescue_ref, the last worker \
left unfinished changes there: look at them with `git diff HEAD...REF` before you begin.
3. Change only files that the task names, or that you acquired with acquire_lock (path:GLOB). If something \
is held by another agent, leave it alone and do another part first.
4. During long work call heartbeat. If a result names something in `lost`, stop changing it.
5. Write down with add_note what the next worker would need to know.
6. Call complete_task with a short result, review_task if a person should look at it first, or fail_task \
with the reason.",
    },
    PromptText {
        name: "hand-over",
        description: "Stop here so that another agent can go on",
        text: "\
Hand your work over to another agent.
1. Call heartbeat to see what you hold.
2. Commit what is worth keeping.
3. For each of your tasks call add_note: what is done, what is left, which files you changed, what you tried \
that did not work, how to check the result.
4. Call review_task if the task is done and needs a look, complete_task if it is done, otherwise \
release_lock with task:ID, which returns it to the list.
5. Call release_lock for everything else that you hold.",
    },
];

/// All prompts. They take no arguments.
pub(super) fn all() -> Vec<Prompt> {
    PROMPTS.iter().map(|prompt| Prompt::new(prompt.name, Some(prompt.description), None)).collect()
}

/// The prompt of this name.
pub(super) fn get(name: &str) -> Option<GetPromptResult> {
    let prompt = PROMPTS.iter().find(|prompt| prompt.name == name)?;
    let messages = vec![PromptMessage::new_text(Role::User, prompt.text)];
    Some(GetPromptResult::new(messages).with_description(prompt.description))
}
