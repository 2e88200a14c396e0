//! Tasks and sections: what was written is read, in the order of claims, by one worker each.

use crate::Harness;
use crate::kit::*;
use std::sync::Arc;
use std::time::Duration;
use tenure::core::rules::tasks::{
    self, AddAsk, AddNote, Added, ClaimAsk, Finish, FinishAsk, Finished, NewTask,
};
use tenure::core::sample::full_task;
use tenure::core::{
    GrantId, Holder, NoWitness, Pick, Proof, RECOVERIES_MAX, Revision, Scope, Section, Snapshot,
    Status, Task, TaskId, TaskScope, Token, TryOutcome, WallTime, Workspace, Write,
};
use tenure::store::{Store, TaskCounts, TaskFilter};

cases!("tasks":
    a_task_comes_back_as_it_was,
    a_section_comes_back_as_it_was,
    ready_tasks_are_shown_in_the_order_of_claims_and_per_section,
    what_waits_for_others_or_for_its_time_is_not_ready,
    those_that_wait_for_a_task_are_shown_with_it,
    what_a_task_waits_for_is_shown_with_it,
    a_key_adds_a_task_once,
    tallies_and_lists_follow_every_change,
    each_task_is_claimed_once_and_finished_once,
    no_claim_finds_nothing_while_tasks_are_ready,
    many_are_finished_in_one_change,
    a_finish_by_a_former_worker_changes_nothing,
    what_a_silent_worker_had_is_taken_back,
    a_file_named_twice_is_held_once,
    those_who_wait_for_a_task_have_places,
    those_who_wait_for_a_file_of_a_task_have_places,
    notes_and_tries_reach_the_next_worker,
    lists_leave_out_the_history_where_asked_to,
    tasks_survive_reopening,
);

pub(super) fn id(text: &str) -> TaskId {
    text.parse().expect("the suite's own ids are fine")
}

pub(super) fn new(name: &str) -> NewTask {
    NewTask::new(id(name), format!("the task {name}"))
}

pub(super) fn look_for(ids: &[&str]) -> Scope {
    Scope::Tasks(TaskScope { ids: ids.iter().map(|name| id(name)).collect(), ..Default::default() })
}

fn pick(section: Option<&str>, labels: &[&str], depth: usize) -> Scope {
    let pick = Pick {
        section: section.map(str::to_owned),
        labels: labels.iter().map(|label| (*label).to_owned()).collect(),
        depth,
        may_skip: false,
        runner: None,
    };
    Scope::Tasks(TaskScope { pick: Some(pick), ..TaskScope::default() })
}

fn ids(tasks: &[Task]) -> Vec<&str> {
    tasks.iter().map(|task| task.id.as_str()).collect()
}

pub(super) async fn put(store: &dyn Store, task: Task) -> Verdict {
    let mut change = noting("task");
    change.durable = true;
    change.writes.push(Write::Task(Box::new(task)));
    write_at(store, &adding(), change).await
}

/// The scope of a rule that adds tasks or describes sections.
fn adding() -> Scope {
    Scope::Tasks(TaskScope { adds: true, all_sections: true, ..TaskScope::default() })
}

async fn write_at(store: &dyn Store, scope: &Scope, change: tenure::core::Change) -> Verdict {
    apply(store, None, scope.clone(), move |_| (change.clone().decide(), ())).await
}

pub(super) async fn add(store: &dyn Store, tasks: Vec<NewTask>) -> Result<Vec<Added>, Failure> {
    let ask = AddAsk { tasks, by: "suite".to_owned() };
    let added = apply(store, None, ask.scope(), move |seen| tasks::add(seen, &ask)).await?;
    added.map_err(|refused| Failure(format!("adding was refused: {refused:?}")))
}

fn claim_ask(worker: &str, ttl: Duration) -> ClaimAsk {
    ClaimAsk {
        owner: Default::default(),
        grants: vec![GrantId::random()],
        runner: None,
        holder: Holder::chosen(worker).expect("the suite's own labels are fine"),
        ttl,
        section_ttl: ttl,
        task: None,
        section: None,
        labels: vec![],
        workspace: Workspace::default(),
        queue: None,
        presence: None,
        place_for: None,
    }
}

pub(super) async fn claim(
    store: &dyn Store,
    worker: &str,
    ttl: Duration,
) -> Result<Option<tasks::Claimed>, Failure> {
    let ask = claim_ask(worker, ttl);
    let scope = ask.scope();
    let rule = move |seen: &Snapshot| tasks::claim(seen, &ask, &NoWitness);
    let claimed = apply(store, None, scope, rule).await?;
    Ok(claimed.ok().and_then(|mut claimed| claimed.pop()))
}

fn complete_ask(claimed: &tasks::Claimed) -> FinishAsk {
    FinishAsk {
        task: claimed.task.id.clone(),
        proof: Proof::Grant(claimed.grant),
        token: Some(claimed.token),
        runner: None,
        finish: Finish::Complete { result: None },
    }
}

pub(super) async fn complete(store: &dyn Store, claimed: &tasks::Claimed) -> Result<bool, Failure> {
    let ask = complete_ask(claimed);
    let scope = ask.scope();
    let rule = move |seen: &Snapshot| tasks::finish(seen, &ask, &NoWitness);
    Ok(matches!(apply(store, None, scope, rule).await?, Finished::Done { repeated: false, .. }))
}

async fn a_task_comes_back_as_it_was(harness: &dyn Harness) -> Verdict {
    let store = harness.fresh().await;
    let other = harness.another(&store).await;
    let mut plain = Task::new(id("plain"), "plain", WallTime(1));
    plain.age = 100;
    for task in [full_task(), plain] {
        put(&*store, task.clone()).await?;
        let seen = other.read(&look_for(&[task.id.as_str()])).await?;
        ensure_eq!(seen.tasks, vec![task.clone()], "the task");
        let mut changed = task;
        changed.title = "changed".to_owned();
        put(&*other, changed.clone()).await?;
        let seen = store.read(&look_for(&[changed.id.as_str()])).await?;
        ensure_eq!(seen.tasks, vec![changed], "the task after a change");
    }
    Ok(())
}

async fn a_section_comes_back_as_it_was(harness: &dyn Harness) -> Verdict {
    let store = harness.fresh().await;
    let section = Section {
        name: "Back end 🚀".to_owned(),
        max_runners: None,
        priority: 3,
        position: -1,
        depends_on: vec!["Design".to_owned()],
        paused: true,
    };
    let mut change = noting("section");
    change.writes.push(Write::Section(section.clone()));
    write_at(&*store, &adding(), change).await?;
    add(&*store, vec![NewTask { section: Some(section.name.clone()), ..new("a") }]).await?;
    let seen = store.read(&adding()).await?;
    ensure_eq!(seen.section(&section.name), section, "the section");
    let open: Vec<u64> = seen.sections.iter().map(|seen| seen.open).collect();
    ensure_eq!(open, vec![1], "what is open in it");
    Ok(())
}

async fn ready_tasks_are_shown_in_the_order_of_claims_and_per_section(
    harness: &dyn Harness,
) -> Verdict {
    let store = harness.fresh().await;
    let in_section =
        |name: &str, section: &str| NewTask { section: Some(section.to_owned()), ..new(name) };
    add(
        &*store,
        vec![
            NewTask { priority: 90, ..new("late") },
            NewTask { position: 5, ..new("second") },
            NewTask { labels: vec!["fast".to_owned()], ..new("first") },
            in_section("s1", "S"),
            in_section("s2", "S"),
            in_section("s3", "S"),
        ],
    )
    .await?;
    let shown = |seen: Snapshot| {
        let mut tasks = seen.tasks;
        tasks.sort_by_key(|task| (task.section.clone(), task.order()));
        (ids(&tasks).join(" "), seen.more_to_pick)
    };
    let scope = async |scope: Scope| Ok::<_, Failure>(shown(store.read(&scope).await?));
    ensure_eq!(
        scope(pick(None, &[], 2)).await?,
        ("first second s1 s2".to_owned(), true),
        "two each"
    );
    ensure_eq!(scope(pick(Some("S"), &[], 9)).await?, ("s1 s2 s3".to_owned(), false), "a section");
    ensure_eq!(scope(pick(None, &["fast"], 9)).await?, ("first".to_owned(), false), "a label");
    ensure_eq!(scope(pick(None, &["fast", "x"], 9)).await?, (String::new(), false), "two labels");
    Ok(())
}

async fn what_waits_for_others_or_for_its_time_is_not_ready(harness: &dyn Harness) -> Verdict {
    let store = harness.fresh().await;
    let wall = store.read(&look_for(&[])).await?.wall;
    let hour = 3_600_000;
    add(
        &*store,
        vec![
            new("a"),
            NewTask { depends_on: vec![id("a")], ..new("b") },
            NewTask { not_before: Some(WallTime(wall.0 + hour)), ..new("later") },
            NewTask { not_before: Some(WallTime(wall.0 - hour)), ..new("due") },
        ],
    )
    .await?;
    let ready = |seen: &Snapshot| {
        let mut ready: Vec<String> = seen
            .tasks
            .iter()
            .filter(|task| task.is_ready(seen.wall))
            .map(|task| task.id.to_string())
            .collect();
        ready.sort();
        ready
    };
    ensure_eq!(ready(&store.read(&pick(None, &[], 9)).await?), vec!["a", "due"], "what is ready");
    let first = claim(&*store, "w", LONG).await?;
    let Some(first) = first else { return Err(Failure("nothing was claimed".to_owned())) };
    ensure_eq!(first.task.id, id("a"), "the first");
    ensure!(complete(&*store, &first).await?, "it was not completed");
    ensure_eq!(
        ready(&store.read(&pick(None, &[], 9)).await?),
        vec!["b", "due"],
        "what is ready now"
    );
    Ok(())
}

async fn those_that_wait_for_a_task_are_shown_with_it(harness: &dyn Harness) -> Verdict {
    let store = harness.fresh().await;
    let waiting = |name: &str| NewTask { depends_on: vec![id("a")], ..new(name) };
    add(&*store, vec![new("a"), waiting("b"), waiting("c"), new("d")]).await?;
    let scope =
        Scope::Tasks(TaskScope { ids: vec![id("a")], dependents: true, ..Default::default() });
    let mut seen = store.read(&scope).await?;
    seen.tasks.sort_by_key(|task| task.age);
    ensure_eq!(ids(&seen.tasks), vec!["a", "b", "c"], "the task and its dependents");
    Ok(())
}

async fn what_a_task_waits_for_is_shown_with_it(harness: &dyn Harness) -> Verdict {
    let store = harness.fresh().await;
    let after = |name: &str, before: &[&str]| NewTask {
        depends_on: before.iter().map(|name| id(name)).collect(),
        ..new(name)
    };
    let tasks = vec![new("a"), new("b"), after("c", &["a", "b"]), after("d", &["c"]), new("e")];
    add(&*store, tasks).await?;
    let mut done = store.read(&look_for(&["a"])).await?.tasks.remove(0);
    done.status = Status::Completed;
    put(&*store, done).await?;
    for (asked, shown) in
        [("c", &["a", "b", "c"][..]), ("d", &["c", "d"]), ("a", &["a"]), ("none", &[])]
    {
        let scope = TaskScope { ids: vec![id(asked)], dependencies: true, ..TaskScope::default() };
        let seen = store.read(&Scope::Tasks(scope)).await?;
        ensure_eq!(ids(&seen.tasks), shown.to_vec(), "the task and what it waits for");
    }
    Ok(())
}

async fn a_key_adds_a_task_once(harness: &dyn Harness) -> Verdict {
    let store = harness.fresh().await;
    let other = harness.another(&store).await;
    let keyed = |name: &str| NewTask { key: Some("k".to_owned()), ..new(name) };
    let first = add(&*store, vec![keyed("a")]).await?;
    let second = add(&*other, vec![keyed("b")]).await?;
    ensure_eq!(first, vec![Added::New(id("a"))], "the first");
    ensure_eq!(second, vec![Added::Existing(id("a"))], "the second");
    Ok(())
}

async fn tallies_and_lists_follow_every_change(harness: &dyn Harness) -> Verdict {
    let store = harness.fresh().await;
    add(&*store, vec![new("a"), NewTask { section: Some("S".to_owned()), ..new("ab") }, new("c")])
        .await?;
    let claimed = claim(&*store, "w", LONG).await?;
    ensure!(claimed.is_some(), "nothing was claimed");
    let mut change = noting("gone");
    change.writes.push(Write::DropTask(id("c")));
    write_at(&*store, &look_for(&["c"]), change).await?;
    let mut tallies: Vec<String> = store
        .read(TaskCounts)
        .await?
        .into_iter()
        .map(|tally| format!("{:?} {} {}", tally.section, tally.status, tally.count))
        .collect();
    tallies.sort();
    let expected = vec!["None in_progress 1".to_owned(), "Some(\"S\") pending 1".to_owned()];
    ensure_eq!(tallies, expected, "the tallies");
    let list = |filter: TaskFilter| {
        let store = store.clone();
        async move { Ok::<_, Failure>(ids(&store.read(&filter).await?).join(" ")) }
    };
    ensure_eq!(list(TaskFilter::default()).await?, "a ab", "all");
    let by = TaskFilter { status: Some(Status::Pending), ..TaskFilter::default() };
    ensure_eq!(list(by).await?, "ab", "by status");
    let by = TaskFilter { id_prefix: Some("a".to_owned()), ..TaskFilter::default() };
    ensure_eq!(list(by).await?, "a ab", "by the beginning of the id");
    let by = TaskFilter { title: Some("the task ab".to_owned()), ..TaskFilter::default() };
    ensure_eq!(list(by).await?, "ab", "by title");
    let by = TaskFilter { section: Some("S".to_owned()), limit: 1, ..TaskFilter::default() };
    ensure_eq!(list(by).await?, "ab", "by section");
    Ok(())
}

async fn each_task_is_claimed_once_and_finished_once(harness: &dyn Harness) -> Verdict {
    const TASKS: usize = 40;
    let store = harness.fresh().await;
    let handles = four_handles(harness, &store).await;
    add(&*store, (0..TASKS).map(|number| new(&format!("t{number}"))).collect()).await?;
    let workers = (0..8).map(|worker| {
        let store: Arc<dyn Store> = handles[worker % handles.len()].clone();
        tokio::spawn(async move {
            let mut done = Vec::new();
            while let Some(claimed) = claim(&*store, &format!("w{worker}"), LONG).await? {
                if complete(&*store, &claimed).await? {
                    done.push(claimed.task.id.to_string());
                }
            }
            Ok::<_, Failure>(done)
        })
    });
    let mut done = Vec::new();
    for worker in workers.collect::<Vec<_>>() {
        done.extend(worker.await.map_err(|error| Failure(error.to_string()))??);
    }
    done.sort();
    let mut expected: Vec<String> = (0..TASKS).map(|number| format!("t{number}")).collect();
    expected.sort();
    ensure_eq!(done, expected, "what was done");
    let events = store.events(Revision(0), u32::MAX).await?;
    let completed = events.iter().filter(|event| event.event.kind.word() == "completed").count();
    ensure_eq!(completed, TASKS, "completions in the history");
    Ok(())
}

/// As many claims as there are tasks, many at once: whichever task others take meanwhile, one is left for each.
async fn no_claim_finds_nothing_while_tasks_are_ready(harness: &dyn Harness) -> Verdict {
    const WORKERS: usize = 8;
    const CLAIMS: usize = 12;
    for sections in [0, 3] {
        let store = harness.fresh().await;
        let handles = four_handles(harness, &store).await;
        let task = |number: usize| {
            let mut task = new(&format!("t{number}"));
            task.section = (sections > 0).then(|| format!("s{}", number % sections));
            task
        };
        let mut change = noting("sections");
        change.writes.extend((0..sections).map(|number| {
            let section = Section::named(&format!("s{number}"));
            Write::Section(Section { max_runners: None, ..section })
        }));
        write_at(&*store, &adding(), change).await?;
        add(&*store, (0..WORKERS * CLAIMS).map(task).collect()).await?;
        let work = |store: Arc<dyn Store>, worker: usize| async move {
            for round in 0..CLAIMS {
                let Some(claimed) = claim(&*store, &format!("w{worker}"), LONG).await? else {
                    return Err(Failure(format!("claim {round} of worker {worker} found nothing")));
                };
                ensure!(
                    complete(&*store, &claimed).await?,
                    "{} was not completed",
                    claimed.task.id
                );
            }
            Ok(())
        };
        at_once(&handles, WORKERS, work).await?;
    }
    Ok(())
}

async fn many_are_finished_in_one_change(harness: &dyn Harness) -> Verdict {
    let store = harness.fresh().await;
    let last = NewTask { depends_on: vec![id("a"), id("b"), id("c")], ..new("last") };
    add(&*store, vec![new("a"), new("b"), new("c"), last]).await?;
    let mut asks = Vec::new();
    while let Some(claimed) = claim(&*store, "w", LONG).await? {
        asks.push(complete_ask(&claimed));
    }
    ensure_eq!(asks.len(), 3, "claimed");
    asks[1].token = Some(Token(0));
    let scope = tasks::finish_all_look(&asks);
    let rule = move |seen: &Snapshot| tasks::finish_all(seen, &asks, &NoWitness);
    let answers = apply(&*store, None, scope, rule).await?;
    let done: Vec<bool> =
        answers.iter().map(|answer| matches!(answer, Finished::Done { .. })).collect();
    ensure_eq!(done, [true, false, true], "which were finished");
    let seen = store.read(&look_for(&["a", "b", "c", "last"])).await?;
    let left = seen.tasks.iter().filter(|task| task.status == Status::InProgress);
    ensure_eq!(left.map(|task| task.id.as_str()).collect::<Vec<_>>(), ["b"], "still worked on");
    ensure_eq!(seen.holds.len(), 1, "holds left");
    let unmet = seen.task(&id("last")).map(|task| task.unmet);
    ensure_eq!(unmet, Some(1), "what the last one waits for");
    Ok(())
}

async fn a_finish_by_a_former_worker_changes_nothing(harness: &dyn Harness) -> Verdict {
    let short = harness.short_lease();
    let store = harness.fresh().await;
    add(&*store, vec![new("a")]).await?;
    let Some(slow) = claim(&*store, "slow", short).await? else {
        return Err(Failure("nothing was claimed".to_owned()));
    };
    harness.pass(short * 2).await;
    recover(&*store).await?;
    let Some(quick) = claim(&*store, "quick", LONG).await? else {
        return Err(Failure("it was not handed out again".to_owned()));
    };
    ensure!(quick.token > slow.token, "the token did not rise");
    ensure!(!complete(&*store, &slow).await?, "a late finish was accepted");
    let task = store.read(&look_for(&["a"])).await?.tasks.remove(0);
    ensure_eq!(task.status, Status::InProgress, "the status");
    ensure!(complete(&*store, &quick).await?, "the successor's finish was refused");
    ensure!(!complete(&*store, &quick).await?, "a second finish was accepted");
    Ok(())
}

async fn recover(store: &dyn Store) -> Result<usize, Failure> {
    let scope = Scope::Tasks(TaskScope { in_progress: true, ..TaskScope::default() });
    let rule = |seen: &Snapshot| tasks::recover(seen, RECOVERIES_MAX, None, &NoWitness);
    Ok(apply(store, None, scope, rule).await?.len())
}

async fn what_a_silent_worker_had_is_taken_back(harness: &dyn Harness) -> Verdict {
    let short = harness.short_lease();
    let store = harness.fresh().await;
    let files = vec!["src/**".to_owned()];
    add(&*store, vec![NewTask { files, section: Some("S".to_owned()), ..new("a") }]).await?;
    for attempt in 1..=3 {
        let claimed = claim(&*store, "w", short).await?;
        ensure_eq!(claimed.map(|claimed| claimed.task.attempts), Some(attempt), "the attempt");
        ensure_eq!(recover(&*store).await?, 0, "taken back before its time");
        harness.pass(short * 2).await;
        ensure_eq!(recover(&*store).await?, 1, "taken back");
        ensure_eq!(everything(&*store).await?.holds.len(), 0, "holds left");
    }
    let task = store.read(&look_for(&["a"])).await?.tasks.remove(0);
    ensure_eq!(task.status, Status::Blocked, "after the last recovery");
    Ok(())
}

/// A task may name a file twice, and in different ways.
async fn a_file_named_twice_is_held_once(harness: &dyn Harness) -> Verdict {
    let store = harness.fresh().await;
    let files = ["src/**", "src/**", "src//**"].map(str::to_owned).to_vec();
    add(&*store, vec![NewTask { files, ..new("a") }]).await?;
    let Some(claimed) = claim(&*store, "w", LONG).await? else {
        return Err(Failure("nothing was claimed".to_owned()));
    };
    ensure_eq!(claimed.resources.len(), 2, "the task and its files");
    ensure_eq!(everything(&*store).await?.holds.len(), 2, "holds");
    ensure!(complete(&*store, &claimed).await?, "it is done");
    ensure_eq!(everything(&*store).await?.holds.len(), 0, "holds left");
    Ok(())
}

/// A claim that waits for a named task has a place in the queue of the task.
async fn those_who_wait_for_a_task_have_places(harness: &dyn Harness) -> Verdict {
    let store = harness.fresh().await;
    let task = NewTask {
        section: Some("S".to_owned()),
        files: vec!["src/**".to_owned(), "docs/a.md".to_owned()],
        ..new("a")
    };
    add(&*store, vec![task]).await?;
    let waiting = |worker: &str| ClaimAsk {
        task: Some(id("a")),
        queue: Some(LONG),
        ..claim_ask(worker, LONG)
    };
    let (first, second, third) = (waiting("w"), waiting("v"), waiting("u"));
    ensure!(try_claim(&*store, &first).await?.is_ok(), "the first gets it");
    for ask in [&second, &third, &second] {
        ensure!(try_claim(&*store, ask).await?.is_err(), "it is held");
    }
    let places = store.read(&look_for(&["a"])).await?.waiters;
    let who: Vec<&str> = places.iter().map(|seen| seen.waiter.holder.label.as_str()).collect();
    ensure_eq!(who, vec!["v", "u"], "who waits, in order");
    ensure_eq!(places[0].waiter.wants.len(), 1, "what it waits for: the task");
    let finish = FinishAsk {
        task: id("a"),
        proof: Proof::Grant(first.grants[0]),
        token: None,
        runner: None,
        finish: Finish::Release,
    };
    let scope = finish.scope();
    let rule = move |seen: &Snapshot| tasks::finish(seen, &finish, &NoWitness);
    apply(&*store, None, scope, rule).await?;
    ensure!(try_claim(&*store, &third).await?.is_err(), "an earlier waiter goes first");
    ensure!(try_claim(&*store, &second).await?.is_ok(), "the one whose turn it is gets it");
    let left = store.read(&look_for(&["a"])).await?.waiters;
    let who: Vec<&str> = left.iter().map(|seen| seen.waiter.holder.label.as_str()).collect();
    ensure_eq!(who, vec!["u"], "who waits still");
    Ok(())
}

/// Another task has one of the files: the claims of the named task wait in order.
async fn those_who_wait_for_a_file_of_a_task_have_places(harness: &dyn Harness) -> Verdict {
    let store = harness.fresh().await;
    let with_files = |name: &str, file: &str| NewTask { files: vec![file.to_owned()], ..new(name) };
    add(&*store, vec![with_files("a", "src/**"), with_files("b", "src/x")]).await?;
    let ask = |worker: &str, task: &str| ClaimAsk {
        task: Some(id(task)),
        queue: Some(LONG),
        ..claim_ask(worker, LONG)
    };
    let (first, second, third) = (ask("w", "b"), ask("v", "a"), ask("u", "a"));
    ensure!(try_claim(&*store, &first).await?.is_ok(), "the file is free");
    for ask in [&second, &third, &second] {
        ensure!(try_claim(&*store, ask).await?.is_err(), "the file is held");
    }
    let places = store.read(&look_for(&["a"])).await?.waiters;
    let who: Vec<&str> = places.iter().map(|seen| seen.waiter.holder.label.as_str()).collect();
    ensure_eq!(who, vec!["v", "u"], "who waits, in order");
    let finish = FinishAsk {
        task: id("b"),
        proof: Proof::Grant(first.grants[0]),
        token: None,
        runner: None,
        finish: Finish::Complete { result: None },
    };
    let scope = finish.scope();
    let rule = move |seen: &Snapshot| tasks::finish(seen, &finish, &NoWitness);
    apply(&*store, None, scope, rule).await?;
    ensure!(try_claim(&*store, &third).await?.is_err(), "an earlier waiter goes first");
    ensure!(try_claim(&*store, &second).await?.is_ok(), "the one whose turn it is gets it");
    Ok(())
}

async fn try_claim(
    store: &dyn Store,
    ask: &ClaimAsk,
) -> Result<Result<Vec<tasks::Claimed>, tasks::NoClaim>, Failure> {
    let (scope, ask) = (ask.scope(), ask.clone());
    apply(store, None, scope, move |seen: &Snapshot| tasks::claim(seen, &ask, &NoWitness)).await
}

async fn note(store: &dyn Store, task: &str, text: &str) -> Result<Task, Failure> {
    let ask = AddNote { task: id(task), by: "noter".to_owned(), text: text.to_owned() };
    let scope = ask.scope();
    let rule = move |seen: &Snapshot| tasks::add_note(seen, &ask, &NoWitness);
    let noted = apply(store, None, scope, rule).await?;
    noted.map_err(|refused| Failure(format!("the note was refused: {refused:?}")))
}

/// What one worker left is seen by the next, through another handle, at the claim and afterwards.
async fn notes_and_tries_reach_the_next_worker(harness: &dyn Harness) -> Verdict {
    let store = harness.fresh().await;
    let other = harness.another(&store).await;
    add(&*store, vec![new("a")]).await?;
    let claimed = claim(&*store, "v", LONG).await?;
    let Some(claimed) = claimed else { return Err(Failure("nothing was claimed".to_owned())) };
    note(&*other, "a", "while it is worked on").await?;
    let ask = FinishAsk { finish: Finish::Release, ..complete_ask(&claimed) };
    let scope = ask.scope();
    apply(&*store, None, scope, move |seen| tasks::finish(seen, &ask, &NoWitness)).await?;
    note(&*store, "a", "while no worker has it").await?;
    let again = claim(&*other, "w", LONG).await?;
    let Some(again) = again else { return Err(Failure("nothing was claimed again".to_owned())) };
    complete(&*other, &again).await?;
    note(&*other, "a", "after its end").await?;
    let seen = store.read(&look_for(&["a"])).await?;
    let Some(task) = seen.task(&id("a")) else { return Err(Failure("it is gone".to_owned())) };
    let texts: Vec<&str> = task.notes.iter().map(|note| note.text.as_str()).collect();
    let expected = vec!["while it is worked on", "while no worker has it", "after its end"];
    ensure_eq!(texts, expected, "the notes");
    ensure_eq!(again.task.notes, task.notes[..2].to_vec(), "the notes that the worker got");
    let tries: Vec<_> = task.tries.iter().map(|one| (one.by.as_str(), one.outcome)).collect();
    let expected = vec![("v", Some(TryOutcome::Released)), ("w", Some(TryOutcome::Completed))];
    ensure_eq!(tries, expected, "the tries");
    ensure_eq!(task.status, Status::Completed, "the status");
    let events = store.events(Revision(0), 100).await?;
    let noted = events.iter().filter(|event| event.event.kind.word() == "noted").count();
    ensure_eq!(noted, 3, "the events");
    Ok(())
}

async fn lists_leave_out_the_history_where_asked_to(harness: &dyn Harness) -> Verdict {
    let store = harness.fresh().await;
    let task = full_task();
    put(&*store, task.clone()).await?;
    let whole = TaskFilter::default();
    let mut plain = task.clone();
    (plain.notes, plain.tries) = (vec![], vec![]);
    for filter in [
        whole.clone(),
        TaskFilter { id_prefix: Some(task.id.to_string()), ..whole.clone() },
        TaskFilter { title: Some(task.title.clone()), ..whole },
    ] {
        ensure_eq!(store.read(&filter).await?, vec![task.clone()], "the whole task");
        let filter = TaskFilter { without_history: true, ..filter };
        ensure_eq!(store.read(&filter).await?, vec![plain.clone()], "without its history");
    }
    Ok(())
}

async fn tasks_survive_reopening(harness: &dyn Harness) -> Verdict {
    let store = harness.fresh().await;
    add(&*store, vec![new("a"), NewTask { depends_on: vec![id("a")], ..new("b") }]).await?;
    let Some(claimed) = claim(&*store, "w", LONG).await? else {
        return Err(Failure("nothing was claimed".to_owned()));
    };
    let store = harness.reopen(store).await;
    ensure!(complete(&*store, &claimed).await?, "the claim did not survive");
    let seen = store.read(&look_for(&["a", "b"])).await?;
    let unmet: Vec<u32> = seen.tasks.iter().map(|task| task.unmet).collect();
    ensure_eq!(unmet, vec![0, 0], "what is waited for");
    Ok(())
}
