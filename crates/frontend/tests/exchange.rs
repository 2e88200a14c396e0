//! Task files: the samples of each format, what is wrong with others, and that what tenure writes
//! it reads again.

use proptest::prelude::*;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tenure::Client;
use tenure::core::rules::tasks::NewTask;
use tenure::core::{Claim, GrantId, Section, Status, Task, TaskId, Token, WallTime};
use tenure_frontend::exchange::{ExchangeError, Format, TaskFile, read, read_file, write};

fn sample(name: &str) -> TaskFile {
    let path: PathBuf = [env!("CARGO_MANIFEST_DIR"), "tests", "samples", name].iter().collect();
    read_file(&path, None).expect(name)
}

fn task<'a>(file: &'a TaskFile, id: &str) -> &'a NewTask {
    file.tasks.iter().find(|task| task.id.as_str() == id).expect(id)
}

fn titled<'a>(file: &'a TaskFile, title: &str) -> &'a NewTask {
    file.tasks.iter().find(|task| task.title == title).expect(title)
}

fn ids(task: &NewTask) -> Vec<&str> {
    task.depends_on.iter().map(TaskId::as_str).collect()
}

fn payload(task: &NewTask) -> serde_json::Value {
    serde_json::from_str(task.payload.as_deref().expect("a payload")).expect("JSON")
}

#[test]
fn our_own_files_say_the_same_in_json_and_yaml() {
    let (json, yaml) = (sample("own.json"), sample("own.yaml"));
    assert_eq!((json.format, yaml.format), (Format::Json, Format::Yaml));
    assert_eq!(format!("{:?}", json.tasks), format!("{:?}", yaml.tasks));
    assert_eq!((&json.sections, &json.notes), (&yaml.sections, &yaml.notes));

    let schema = task(&json, "schema");
    assert_eq!((schema.section.as_deref(), schema.priority), (Some("database"), 10));
    assert_eq!(payload(schema)["dialect"], "sqlite");
    let api = task(&json, "api");
    assert_eq!((api.title.as_str(), api.max_attempts), ("Build the API", 5));
    assert_eq!(api.timeout, Some(Duration::from_secs(5400)));
    assert_eq!(api.not_before, Some(WallTime(1_705_314_600_000)));
    assert_eq!(payload(api)["estimate"], 3);
    let announce = titled(&json, "Announce it");
    assert_eq!((ids(announce), announce.status), (vec!["api"], Status::Pending));
    assert_eq!(announce.key.as_deref(), Some(announce.id.as_str()));
    assert_eq!(json.sections[0].max_runners, None);
    assert_eq!(json.sections[1], Section::named("docs"));
    assert_eq!(json.notes.len(), 2, "{:?}", json.notes);
}

#[test]
fn who_finished_a_task_is_written_and_read() {
    let mut done = stored(&NewTask::new("a".parse().unwrap(), "A"), 1);
    done.status = Status::Completed;
    done.claim = None;
    done.finished_by = Some("alice".to_owned());
    for format in [Format::Json, Format::Yaml, Format::Markdown, Format::Coordination] {
        let text = write(&[done.clone()], &[], format).unwrap();
        let file = read(&text, format).unwrap();
        assert_eq!(file.tasks[0].finished_by.as_deref(), Some("alice"), "{text}");
    }
}

#[test]
fn a_checklist_is_read_with_its_sections_and_nesting() {
    let file = sample("TODO.md");
    assert_eq!(file.tasks.len(), 7);
    let sections: Vec<&str> = file.sections.iter().map(|section| section.name.as_str()).collect();
    assert_eq!(sections, ["Build", "Ship"]);
    assert_eq!(task(&file, "schema").status, Status::Completed);
    assert_eq!(task(&file, "schema").labels, ["sql"]);
    let api = task(&file, "api");
    assert_eq!(api.title, "Build the API (beta)");
    assert_eq!(ids(api), ["schema", "users", "orders"]);
    let description = "All endpoints, with tests.\n\n- plain points belong to the description";
    assert_eq!(api.description.as_deref(), Some(description));
    assert_eq!(ids(task(&file, "orders")), ["prices"]);
    assert_eq!(task(&file, "orders").files, ["src/{orders,carts}/**"]);
    assert_eq!(ids(titled(&file, "Announce it")), ["api"]);
    assert_eq!(titled(&file, "Print leaflets").status, Status::Cancelled);
    assert_eq!(file.notes, ["In progress elsewhere, pending here: 1 task (users)."]);
}

#[test]
fn the_coordination_file_loses_nothing() {
    let file = sample(".coordination/tasks.json");
    assert_eq!(file.format, Format::Coordination);
    let first = task(&file, "task-1");
    assert_eq!((first.title.as_str(), first.priority), ("Create the user model", 0));
    assert_eq!(first.status, Status::Completed);
    assert!(first.description.as_deref().is_some_and(|text| text.ends_with("name and mail")));
    assert!(first.files.is_empty(), "what it reads is not held: {:?}", first.files);
    let kept = payload(first);
    assert_eq!(kept["context_files"], serde_json::json!(["src/models/user.py", "/etc/passwd"]));
    assert_eq!(kept["hints"], "use dataclasses");
    assert_eq!(first.finished_by.as_deref(), Some("terminal-2"));
    assert_eq!(kept["completed_at"], "2024-01-15T11:00:00");
    assert!(first.result.as_deref().is_some_and(|result| result.contains("files_created")));
    let second = task(&file, "task-2");
    assert_eq!((second.status, second.priority), (Status::Pending, 50));
    assert_eq!(task(&file, "task-3").priority, 100);
    assert_eq!(
        file.notes,
        [
            "In progress elsewhere, pending here: 1 task (task-2).",
            "Set to the nearest priority of the scale: 1 task (task-3).",
        ]
    );
}

#[test]
fn the_queue_is_turned_round() {
    let file = sample("queue.json");
    assert_eq!(file.format, Format::Queue);
    let build = task(&file, "build");
    assert_eq!((build.priority, ids(build)), (10, vec!["fetch"]));
    let test = task(&file, "test");
    assert_eq!((test.priority, ids(test)), (100, vec!["build", "fetch"]));
    assert_eq!(task(&file, "fetch").status, Status::Completed);
    assert_eq!(task(&file, "fetch").result.as_deref(), Some("\"ok\""));
    assert_eq!(task(&file, "setup").status, Status::Completed);
    let late = task(&file, "late");
    assert_eq!((late.title.as_str(), late.status, late.priority), ("Clean up", Status::Failed, 0));
    assert_eq!(file.tasks.len(), 5);
}

#[test]
fn what_is_wrong_is_said_in_one_sentence() {
    let long = format!(r#"[{{"id":"{}","title":"a"}}]"#, "x".repeat(10_000));
    let newer = r#"{"version":2,"tasks":[]}"#;
    for (format, text, expected) in [
        (Format::Json, "{\"tasks\": [\n  {\"title\": }\n]}", "line 2, column 13: expected value"),
        (Format::Json, "{\"tasks\":[],\n\"tasks\":[]}", "line 2, column 7: the key \"tasks\""),
        (Format::Json, "3", "the file is a number; expected a list of tasks"),
        (Format::Json, "{}", "the file is an object without `tasks`"),
        (Format::Json, r#"{"tasks":{}}"#, "`tasks` is an object; expected a list"),
        (Format::Json, r#"["a",[]]"#, "task 2 is a list; expected an object or a title"),
        (Format::Json, r#"[{"id":"x"}]"#, "task 1 (\"x\"): title: is missing"),
        (Format::Json, &long, "task 1: id: the name \"xxxxxxxxxx"),
        (Format::Json, r#"[{"title":"a","priority":"high"}]"#, "task 1: priority: \"high\" is not"),
        (Format::Json, r#"[{"title":"a","priority":101}]"#, "task 1: priority: 101 is not"),
        (Format::Json, r#"[{"title":"a","status":"odd"}]"#, "task 1: status: \"odd\" is not"),
        (Format::Json, r#"[{"title":"a","timeout":"5 parsecs"}]"#, "task 1: timeout: "),
        (Format::Json, r#"[{"title":"a","not_before":"soon"}]"#, "task 1: not_before: \"soon\""),
        (Format::Json, r#"[{"title":"a","after":["a\u0000"]}]"#, "task 1: depends_on: the name"),
        (Format::Json, newer, "the file has version 2; this tenure supports version 1"),
        (Format::Yaml, "tasks:\n- title: a\n  title: b\n", "line 3, column 3: duplicate"),
        (Format::Yaml, "", "the file is nothing; expected a list"),
        (Format::Markdown, "\n- [?] a\n", "line 2, column 1: [?] is not a status"),
        (Format::Markdown, "\n  - [ ] (id: a)\n", "line 2, column 3: a task needs a title"),
        (Format::Markdown, "- [ ] a (priority: no)", "line 1, column 1: priority: \"no\""),
        (Format::Markdown, "## a\u{7}b", "line 1, column 1: the name"),
        (Format::Queue, r#"{"completed":3}"#, "`completed` is a number; expected a list"),
    ] {
        let error = read(text, format).expect_err(text).to_string();
        assert!(error.starts_with(expected), "{text:.60}:\n{error}\n{expected}");
        assert!(error.len() < 300 && !error.contains('\n'), "{error}");
    }
}

#[test]
fn files_that_cannot_be_read_are_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let binary = folder.path().join("a.json");
    std::fs::write(&binary, b"[\n\xff]").expect("written");
    let error = read_file(&binary, None).expect_err("not text");
    assert!(matches!(error, ExchangeError::NotUtf8 { line: 2 }), "{error}");
    let error = read_file(folder.path(), None).expect_err("a folder").to_string();
    assert!(error.contains(&folder.path().display().to_string()), "{error}");
    assert!(read_file(Path::new("no such file"), None).is_err());
}

#[tokio::test]
async fn importing_twice_adds_nothing_and_mistakes_add_nothing() {
    for name in ["own.json", "TODO.md", ".coordination/tasks.json", "queue.json"] {
        let client = Client::open("memory:").await.expect("a store");
        let file = sample(name);
        let would =
            client.tasks().try_import(file.tasks.clone(), file.sections.clone()).await.expect(name);
        assert!(client.tasks().list(&Default::default()).await.expect("a list").is_empty());
        let first =
            client.tasks().import(file.tasks.clone(), file.sections.clone()).await.expect(name);
        assert_eq!(first, would);
        assert_eq!((first.added.len(), first.existing.len()), (file.tasks.len(), 0));
        let second =
            client.tasks().import(file.tasks.clone(), file.sections.clone()).await.expect(name);
        assert_eq!((second.added.len(), second.existing.len()), (0, file.tasks.len()));
    }
    let client = Client::open("memory:").await.expect("a store");
    for (text, expected) in [
        (
            "- [ ] good\n- [ ] a (id: a, after: b)\n- [ ] b (id: b, after: a)",
            "circular dependency of tasks: a → b → a",
        ),
        ("- [ ] good\n- [ ] a (id: a, after: zz)", "task a depends on zz, which does not exist"),
        ("- [ ] good\n- [ ] a (id: a)\n- [ ] b (id: a)", "task a is given twice"),
        ("- [ ] good\n- [ ] a (id: a, file: ../x)", "files of task a: "),
    ] {
        let file = read(text, Format::Markdown).expect(text);
        let error =
            client.tasks().import(file.tasks, file.sections).await.expect_err(text).to_string();
        assert!(error.contains(expected), "{error}");
    }
    assert!(client.tasks().list(&Default::default()).await.expect("a list").is_empty());
}

const GRANT: u128 = 0x5ec2_e75e_c2e7_4ec2_a75e_c2e7_5ec2_e75e;
const TOKEN: Token = Token(4_711_471_147_114_711);

/// Grants and tokens prove ownership: they are for nobody else.
fn shows_grant(text: &str) -> bool {
    text.contains(&GrantId::from_bits(GRANT).to_string()) || text.contains(&TOKEN.to_string())
}

/// The task that a store would keep of a new one.
fn stored(new: &NewTask, age: u64) -> Task {
    let mut task = new.clone().into_task(age, WallTime(1_705_314_600_000));
    task.attempts = 2;
    task.recoveries = 1;
    task.claim = Some(Claim::new("somebody", GrantId::from_bits(GRANT), TOKEN));
    task.feedback = Some("well done".into());
    task.claimed_at = Some(WallTime(1_705_314_600_001));
    task.finished_by = None;
    task.notes = vec![];
    task
}

fn any_text() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<String>(),
        "[ -~]{0,20}",
        proptest::sample::select(vec![
            "",
            " ",
            "no",
            "~",
            "null",
            "1",
            "1.0",
            "0x1f",
            "1e3",
            "-",
            "- a",
            "? a",
            "# a",
            "a: b",
            "a #b",
            "'",
            "\"",
            "|",
            ">",
            "%",
            "@a",
            "!a",
            "&a",
            "*a",
            "{",
            "[",
            "a\n",
            "\na",
            "a\n\n",
            "  a\n b\n",
            "\t",
            "a\tb",
            "\u{85}",
            "\u{2028}",
            "\u{feff}",
            "\r\n",
            "---",
            "...",
            "<<",
            "=",
            ".inf",
            "2024-01-15",
            "12:30:45",
            "0o17",
            "1_000",
            "\u{0}",
            "\u{7f}",
            "true",
            "Yes",
        ])
        .prop_map(str::to_owned),
    ]
}

fn any_json() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just(serde_json::Value::Null),
        any::<bool>().prop_map(Into::into),
        any::<i64>().prop_map(Into::into),
        any::<u64>().prop_map(Into::into),
        any::<f64>().prop_map(Into::into),
        any_text().prop_map(Into::into),
    ];
    let value = leaf.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Into::into),
            proptest::collection::vec((any_text(), inner), 0..4)
                .prop_map(|pairs| serde_json::Value::Object(pairs.into_iter().collect())),
        ]
    });
    prop_oneof![
        4 => value.prop_map(|value| value.to_string()),
        1 => proptest::sample::select(vec!["not json", "1e999", "99999999999999999999", "{\"a\":1,\"a\":1}"])
            .prop_map(str::to_owned),
    ]
}

fn any_id() -> impl Strategy<Value = TaskId> {
    any_text().prop_filter_map("an id", |text| text.parse().ok())
}

fn any_task() -> impl Strategy<Value = NewTask> {
    let option = proptest::option::of::<BoxedStrategy<String>>;
    let texts = || proptest::collection::vec(any_text(), 0..3);
    let statuses: Vec<Status> =
        Status::ALL.into_iter().filter(|status| *status != Status::InProgress).collect();
    let name = (any_id(), any_text(), option(any_text().boxed()), option("[a-z]{1,5}".boxed()));
    let order = (proptest::sample::select(statuses), 0..=100_u8, any::<i64>(), 1..=u32::MAX);
    let lists = (proptest::collection::vec(any_id(), 0..3), texts(), texts());
    let times =
        (proptest::option::of(0..1_u64 << 50), proptest::option::of(-(1_i64 << 52)..1 << 52));
    let ends = (
        option(any_json().boxed()),
        option(any_json().boxed()),
        option(any_text().boxed()),
        option(any_text().boxed()),
    );
    (name, order, lists, times, ends).prop_map(
        |(
            (id, title, description, section),
            (status, priority, position, max_attempts),
            (depends_on, labels, files),
            (timeout_ms, not_before),
            (payload, result, error, key),
        )| NewTask {
            description,
            section,
            status,
            priority,
            position,
            depends_on,
            labels,
            files,
            payload,
            max_attempts,
            timeout: timeout_ms.map(Duration::from_millis),
            not_before: not_before.map(WallTime),
            key,
            result,
            error,
            ..NewTask::new(id, title)
        },
    )
}

fn any_section() -> impl Strategy<Value = Section> {
    let names = || proptest::collection::vec("[a-z ]{0,5}", 0..3);
    let most = proptest::option::of(1..=u32::MAX);
    ("[a-z]{1,9}", most, 0..=100_u8, any::<i64>(), names(), any::<bool>()).prop_map(
        |(name, max_runners, priority, position, depends_on, paused)| Section {
            name,
            max_runners,
            priority,
            position,
            depends_on,
            paused,
        },
    )
}

proptest! {
    #[test]
    fn what_was_written_is_read_again(
        mut new in proptest::collection::vec(any_task(), 0..4),
        sections in proptest::collection::vec(any_section(), 0..3),
    ) {
        // Titles only stand in for ids that are unknown: here all are known.
        let known: Vec<TaskId> = new.iter().map(|task| task.id.clone()).collect();
        for task in &mut new {
            task.depends_on.retain(|id| known.contains(id));
        }
        let tasks: Vec<Task> =
            new.iter().enumerate().map(|(age, task)| stored(task, age as u64)).collect();
        for format in [Format::Json, Format::Yaml] {
            let text = write(&tasks, &sections, format).expect("writable");
            prop_assert!(!shows_grant(&text), "a grant in {text}");
            let file = read(&text, format).map_err(|error| {
                TestCaseError::fail(format!("{format}: {error}\n{text}"))
            })?;
            prop_assert_eq!(format!("{:?}", file.tasks), format!("{:?}", new), "{}:\n{}", format, text);
            prop_assert_eq!(&file.sections, &sections);
        }
    }

    #[test]
    fn checklists_keep_what_they_can_express(
        titles in proptest::collection::vec("[ -~]{0,30}[a-z]", 1..5),
        labels in proptest::collection::vec("[ -~]{1,12}", 0..3),
        description in "([ -~]{0,12}\n){0,4}[a-z]",
        section in proptest::option::of("[a-z]{1,5}"),
    ) {
        let mut new: Vec<NewTask> = Vec::new();
        for (index, title) in titles.iter().enumerate() {
            let id: TaskId = format!("id{index}").parse().expect("an id");
            let words: Vec<&str> = title.split_whitespace().collect();
            new.push(NewTask {
                section: section.clone(),
                labels: labels.clone(),
                description: Some(description.clone()),
                priority: index as u8,
                status: Status::ALL[index % 8],
                depends_on: new.last().map(|task| task.id.clone()).into_iter().collect(),
                ..NewTask::new(id, words.join(" "))
            });
        }
        let tasks: Vec<Task> =
            new.iter().enumerate().map(|(age, task)| stored(task, age as u64)).collect();
        let text = write(&tasks, &[], Format::Markdown).expect("writable");
        let file = read(&text, Format::Markdown).map_err(|error| {
            TestCaseError::fail(format!("{error}\n{text}"))
        })?;
        prop_assert_eq!(file.tasks.len(), new.len(), "{}", text);
        for (read, new) in file.tasks.iter().zip(&new) {
            let status =
                if new.status == Status::InProgress { Status::Pending } else { new.status };
            prop_assert_eq!(&read.title, &new.title, "{}", text);
            prop_assert_eq!(&read.labels, &new.labels, "{}", text);
            prop_assert_eq!(&read.section, &new.section, "{}", text);
            prop_assert_eq!(&read.depends_on, &new.depends_on, "{}", text);
            prop_assert_eq!((read.priority, read.status), (new.priority, status), "{}", text);
            let lines = |text: &str| -> Vec<String> {
                text.trim().lines().map(|line| line.trim().to_owned()).collect()
            };
            let description = read.description.as_deref().unwrap_or_default();
            prop_assert_eq!(lines(description), lines(new.description.as_deref().unwrap_or_default()), "{}", text);
        }
    }

    #[test]
    fn foreign_files_come_back_in_meaning(
        new in proptest::collection::vec(("[a-z]{1,9}", "[a-zA-Z ]{1,40}[a-z]", 0..=100_u8), 0..5),
    ) {
        let tasks: Vec<Task> = new.iter().enumerate().map(|(index, (id, title, priority))| {
            let id = format!("{id}{index}").parse().expect("an id");
            let task = NewTask { priority: *priority, ..NewTask::new(id, title.trim()) };
            stored(&task, index as u64)
        }).collect();
        for format in [Format::Coordination, Format::Queue] {
            let text = write(&tasks, &[], format).expect("writable");
            prop_assert!(!shows_grant(&text));
            prop_assert_eq!(Format::detect(Path::new("tasks.json"), &text), format);
            let file = read(&text, format).expect("readable");
            for (read, task) in file.tasks.iter().zip(&tasks) {
                prop_assert_eq!(&read.id, &task.id);
                prop_assert_eq!(&read.title, &task.title);
                prop_assert_eq!(read.priority, task.priority);
                prop_assert_eq!(read.status, Status::Pending);
            }
        }
    }

    #[test]
    fn no_text_stops_the_reader(text in any_text(), lines in proptest::collection::vec("[-*#>`~ \\t\\[\\](){}:,\"x1a]{0,20}", 0..8)) {
        for text in [text, lines.join("\n")] {
            for format in Format::ALL {
                let _ = read(&text, format);
            }
            let _ = Format::detect(Path::new("x"), &text);
        }
    }
}
