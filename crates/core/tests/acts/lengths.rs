//! Texts are bounded where every way to ask passes: in the acts and the rules that they carry out.

use crate::support::tasks::{finish_ask, id, plain, review};
use crate::support::{World, ask, exclusive};
use tenure_core::act::{Acquire, Act, DeleteTasks, FinishTask, FinishTasks, check};
use tenure_core::rules::tasks::{
    AddAsk, AddError, Added, EditAsk, EditError, Finish, Finished, ManualChange, NewTask,
    TaskChange,
};
use tenure_core::text::{
    AUTHOR_MAX, DESCRIPTION_MAX, KEY_MAX, LIST_MAX, OPERATION_MAX, PAYLOAD_MAX, REASON_MAX,
    TASK_LABEL_MAX, TITLE_MAX,
};
use tenure_core::{Ask, BreakAsk, EventKind, Token};

fn long(max: usize) -> String {
    "ü".repeat(max + 1)
}

fn add(task: NewTask) -> Result<Vec<Added>, AddError> {
    World::with(vec![]).act(&AddAsk { tasks: vec![task], by: "me".to_owned() })
}

/// Each text of a new task by itself, one character too long, and just short enough.
#[test]
fn a_new_task_with_a_long_text_is_refused() {
    type Put = fn(&mut NewTask, String);
    let texts: [(&str, usize, Put); 5] = [
        ("title", TITLE_MAX, |task, text| task.title = text),
        ("description", DESCRIPTION_MAX, |task, text| task.description = Some(text)),
        ("key", KEY_MAX, |task, text| task.key = Some(text)),
        ("label", TASK_LABEL_MAX, |task, text| task.labels = vec![text]),
        ("payload", PAYLOAD_MAX, |task, text| task.payload = Some(text)),
    ];
    for (what, max, put) in texts {
        let with = |length: usize| {
            let mut task = plain("a");
            let is_json = what == "payload";
            let text = "ü".repeat(length - if is_json { 2 } else { 0 });
            put(&mut task, if is_json { format!("\"{text}\"") } else { text });
            add(task)
        };
        let error = with(max + 1).expect_err(what);
        assert!(matches!(error, AddError::Text { .. }), "{what}: {error}");
        assert!(error.to_string().contains(what), "{error}");
        with(max).unwrap_or_else(|error| panic!("{what}: {error}"));
    }
    let labels = NewTask { labels: vec!["x".to_owned(); LIST_MAX + 1], ..plain("a") };
    assert!(matches!(add(labels), Err(AddError::Text { .. })));
    let files = NewTask { files: vec!["x".to_owned(); LIST_MAX + 1], ..plain("a") };
    assert!(matches!(add(files), Err(AddError::Text { .. })));
    let depends_on = (0..=LIST_MAX).map(|number| id(&number.to_string())).collect();
    let dependent = NewTask { depends_on, ..plain("a") };
    assert!(matches!(add(dependent), Err(AddError::Text { .. })));
}

#[test]
fn a_change_to_a_long_text_is_refused() {
    let mut world = World::with(vec![plain("a"), plain("b")]);
    let changes = [
        TaskChange { title: Some(long(TITLE_MAX)), ..TaskChange::default() },
        TaskChange { description: Some(long(DESCRIPTION_MAX)), ..TaskChange::default() },
        TaskChange { payload: Some(long(PAYLOAD_MAX)), ..TaskChange::default() },
    ];
    for change in changes {
        let changed = world.edit("a", ManualChange::Update(Box::new(change)));
        assert!(matches!(changed, Err(EditError::Text(_))), "{changed:?}");
    }
    world.claim("w", "b");
    world.finish("w", "b", review());
    let rejected = world.edit("b", ManualChange::Reject { feedback: long(DESCRIPTION_MAX) });
    assert!(matches!(rejected, Err(EditError::Text(_))), "{rejected:?}");
}

#[test]
fn what_something_is_held_for_and_why_it_is_broken_are_bounded() {
    let operation = |text: String| {
        let ask = Ask { operation: Some(text), ..ask(1, &[exclusive("x")]) };
        Acquire { ask, ticket: None, whole_queues: false }.check()
    };
    assert!(operation(long(OPERATION_MAX)).is_err());
    assert!(operation("ü".repeat(OPERATION_MAX)).is_ok());
    let reason = |reason: String| {
        let resource = "x".parse().unwrap();
        BreakAsk { resource, token: Token(1), by: "operator".to_owned(), reason }.check()
    };
    assert!(reason(long(REASON_MAX)).is_err());
    assert!(reason("ü".repeat(REASON_MAX)).is_ok());
}

#[test]
fn a_long_result_is_refused_and_a_long_reason_of_a_failure_is_cut_everywhere() {
    let long_result = Finish::Complete { result: Some(long(PAYLOAD_MAX)) };
    let ask = finish_ask("w", "a", long_result);
    assert!(FinishTask { ask: ask.clone(), output: None }.check().is_err());
    assert!(FinishTasks { asks: vec![ask] }.check().is_err());
    let mut world = World::with(vec![plain("a")]);
    world.claim("w", "a");
    let fail = Finish::Fail { reason: long(REASON_MAX), retry: false };
    let Finished::Done { task, .. } = world.finish("w", "a", fail) else {
        panic!("it was claimed")
    };
    let cut = |text: &str| text.chars().count() == REASON_MAX && text.ends_with('…');
    assert!(cut(task.error.as_deref().unwrap_or_default()));
    let told = world.events.iter().find_map(|event| match &event.kind {
        EventKind::Failed { reason, .. } => Some(reason.clone()),
        _ => None,
    });
    assert!(cut(&told.expect("an event")));
}

/// Labels of authors are names of holders, but no rule looks at them.
#[test]
fn labels_in_whose_name_something_is_done_are_bounded() {
    let bounds = |by: String, expected: bool| {
        let edit = EditAsk { task: id("a"), verb: ManualChange::Cancel, by: by.clone() };
        let delete = DeleteTasks { task: id("a"), by: by.clone() };
        let resource = "x".parse().unwrap();
        let breaks = BreakAsk { resource, token: Token(1), by: by.clone(), reason: "r".to_owned() };
        let finished = NewTask { finished_by: Some(by.clone()), ..plain("a") };
        let adds = AddAsk { tasks: vec![finished], by: "me".to_owned() };
        let added_by = AddAsk { tasks: vec![], by };
        let checked =
            [check(&edit), check(&delete), check(&breaks), check(&adds), check(&added_by)];
        assert_eq!(checked.map(|checked| checked.is_ok()), [expected; 5]);
    };
    bounds("ü".repeat(AUTHOR_MAX), true);
    bounds(long(AUTHOR_MAX), false);
}
