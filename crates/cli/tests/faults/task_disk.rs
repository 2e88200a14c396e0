//! Tasks on a disk that is full, or that cannot be written to: one sentence and exit 3, nothing that
//! was reported is lost, nothing is half done, and the same command works once it can.

use crate::faulty_disk::{FILL, with_disk};
use crate::support::{Running, StoreLocation};
use serde_json::{Value, json};

/// Tries a command and keeps what it said: `try NAME ARGUMENTS…`.
const TRY: &str = "try() {
    name=$1; shift
    $T \"$@\" >$D/$name.out 2>$D/$name.err; echo $? >$D/$name.code
}
";

/// Tasks to begin with: one that `w` has, one that is ready and of high priority.
const BEGIN: &str = "
    $T -q tasks add Held --id held --priority 1 || exit 1
    $T -q tasks claim held --as w >/dev/null || exit 1
    $T -q tasks add Ready --id ready --priority 1 || exit 1
";

fn code(place: &StoreLocation, name: &str) -> i32 {
    place.read(&format!("{name}.code")).trim().parse().unwrap_or(-1)
}

fn answer(place: &StoreLocation, name: &str) -> Value {
    let text = place.read(&format!("{name}.out"));
    let envelope: Value = serde_json::from_str(&text).unwrap_or_else(|error| {
        panic!("{name}: {error}: {text} {}", place.read(&format!("{name}.err")))
    });
    envelope["data"].clone()
}

/// Exit 3, one sentence with this in it, and one hint.
fn assert_refused(place: &StoreLocation, name: &str, words: &str, hint: &str) {
    let message = place.read(&format!("{name}.err"));
    assert_eq!(code(place, name), 3, "{name}: {message}");
    let lines: Vec<&str> = message.lines().collect();
    assert_eq!(lines.len(), 2, "{name}: {message}");
    assert!(lines[0].starts_with("Error: ") && lines[0].contains(words), "{name}: {message}");
    assert!(lines[1].starts_with("Hint: ") && lines[1].contains(hint), "{name}: {message}");
}

fn write_tasks(place: &StoreLocation, count: usize) {
    let task = |n| json!({ "id": format!("i{n}"), "title": format!("imported {n}") });
    let file = json!({ "tasks": (0..count).map(task).collect::<Value>() });
    std::fs::write(place.path("tasks.json"), file.to_string()).expect("a file of tasks");
}

fn count(stats: &Value) -> u64 {
    let total = stats["total"].as_object().expect("counts");
    total.values().filter_map(Value::as_u64).sum()
}

#[test]
fn a_full_disk_refuses_every_change_of_tasks_and_loses_none() {
    let place = StoreLocation::new();
    write_tasks(&place, 500);
    // The log may have room for a few more before the disk is needed.
    let script = format!(
        "{FILL}{TRY}{BEGIN}
        fill
        for n in $(seq 1000); do
            try add tasks add Added --id added-$n
            [ $(cat $D/add.code) = 0 ] || break
            echo added-$n >>$D/added
        done
        try import tasks import tasks.json
        try claim tasks claim --as v
        try complete tasks complete held --as w
        try cancel tasks cancel ready
        try list --json tasks list
        try stats-full --json tasks stats
        try why why held
        rm $D/disk/fill $D/disk/more
        try before --json tasks list
        try add-again tasks add Added --id added-$n
        try import-again tasks import tasks.json
        try claim-again --json tasks claim --as v
        try complete-again tasks complete held --as w
        try after --json tasks stats
        try check doctor"
    );
    let Some(ended) = with_disk(&place, "2m", &script) else { return };
    assert_eq!(ended.code, 0, "{ended:?}");
    for name in ["add", "import", "claim", "complete", "cancel"] {
        assert_refused(&place, name, "the disk is full", "Free some space");
    }
    for name in ["list", "stats-full", "why"] {
        assert_eq!(code(&place, name), 0, "one may look: {}", place.read(&format!("{name}.err")));
    }
    // What was reported is there as it was, and nothing else.
    let added = place.read("added").lines().count() as u64;
    let before = answer(&place, "before");
    let mut ids: Vec<&str> = before["tasks"]
        .as_array()
        .expect("tasks")
        .iter()
        .map(|task| task["id"].as_str().expect("an id"))
        .collect();
    ids.sort_unstable();
    let reported = place.read("added");
    let mut expected: Vec<&str> = reported.lines().chain(["held", "ready"]).collect();
    expected.sort_unstable();
    assert_eq!(ids, expected);
    let status = |id: &str| {
        let mut tasks = before["tasks"].as_array().expect("tasks").iter();
        tasks.find(|task| task["id"] == id).expect("a task")["status"].clone()
    };
    assert_eq!((status("held"), status("ready")), (json!("in_progress"), json!("pending")));
    for name in ["add-again", "import-again", "claim-again", "complete-again", "check"] {
        assert_eq!(code(&place, name), 0, "{name}: {}", place.read(&format!("{name}.err")));
    }
    assert_eq!(answer(&place, "claim-again")["tasks"][0]["id"], "ready");
    let after = answer(&place, "after");
    assert_eq!((count(&after), &after["total"]["completed"]), (added + 503, &json!(1)));
}

#[test]
fn a_worker_waits_for_room_on_a_full_disk_and_then_goes_on() {
    let place = StoreLocation::new();
    let script = format!(
        "{FILL}
        $T -q tasks add First --id first && $T -q tasks add Second --id second || exit 1
        export D FILLED=$D/disk/fill
        await() {{ for _ in $(seq 3000); do grep -q \"$1\" $D/work.err && return; sleep 0.02; done; exit 4; }}
        # The command of the first fills the disk, so that its finish cannot be written.
        $T work --until-empty -- sh -c '
            echo $TENURE_TASK_ID >>$D/ran
            [ $TENURE_TASK_ID != first ] || dd if=/dev/zero of=$FILLED bs=4k 2>/dev/null
            [ $TENURE_TASK_ID != first ] || dd if=/dev/zero of=$D/disk/more bs=1 2>/dev/null
            true' 2>$D/work.err &
        worker=$!
        await 'the disk is full'
        rm $D/disk/fill $D/disk/more
        wait $worker || exit 2
        $T --json tasks list >$D/list"
    );
    let Some(ended) = with_disk(&place, "1m", &script) else { return };
    assert_eq!(ended.code, 0, "{ended:?} {}", place.read("work.err"));
    assert_eq!(place.read("ran"), "first\nsecond\n", "each command ran once");
    let list: Value = serde_json::from_str(&place.read("list")).expect("a list");
    for task in list["data"]["tasks"].as_array().expect("tasks") {
        assert_eq!((&task["status"], &task["attempts"]), (&json!("completed"), &json!(1)));
    }
}

#[test]
fn tasks_on_a_read_only_disk_can_be_looked_at_and_not_changed() {
    let place = StoreLocation::new();
    write_tasks(&place, 3);
    let script = format!(
        "{TRY}{BEGIN}
        mount -o remount,ro $D/disk || exit 99
        try add tasks add Other
        try import tasks import tasks.json
        try claim tasks claim --as v
        try complete tasks complete held --as w
        try work work --once -- touch $D/ran
        try swarm swarm -- touch $D/ran
        try list --json tasks list
        try show --json tasks show held
        try stats --json tasks stats
        try why why held
        try locks locks
        try events events
        try export tasks export
        mount -o remount,rw $D/disk
        try complete-again tasks complete held --as w
        try work-again work --until-empty -- touch $D/ran-again"
    );
    let Some(ended) = with_disk(&place, "2m", &script) else { return };
    assert_eq!(ended.code, 0, "{ended:?}");
    for name in ["add", "import", "claim", "complete", "work", "swarm"] {
        assert_refused(&place, name, "is on a read-only file system", "writable");
    }
    assert!(!place.path("ran").exists(), "a command ran without a claim");
    let looks = ["list", "show", "stats", "why", "locks", "events", "export"];
    for name in looks.into_iter().chain(["complete-again", "work-again"]) {
        assert_eq!(code(&place, name), 0, "{name}: {}", place.read(&format!("{name}.err")));
    }
    assert_eq!(answer(&place, "show")["task"]["claimed_by"], "w");
    assert_eq!(count(&answer(&place, "stats")), 2);
    assert!(place.path("ran-again").exists());
}

#[test]
fn tasks_of_a_store_without_write_permission_can_be_looked_at_and_not_changed() {
    without_permission("sqlite:$D/store/tenure.db", "writable");
}

#[test]
fn tasks_of_a_file_store_without_write_permission_can_be_looked_at_and_not_changed() {
    without_permission("file:$D/store", "write permission");
}

/// Permissions do not concern root, so root gives up that privilege first.
fn without_permission(store: &str, hint: &str) {
    let place = StoreLocation::new();
    let script = format!(
        "export TENURE_STORE={store}; mkdir $D/store
        {TRY}{BEGIN}
        chmod -R a-w $D/store
        tenure=$T
        if touch $D/store/x 2>/dev/null; then
            drop='setpriv --bounding-set=-dac_override --inh-caps=-dac_override'
            $drop touch $D/store/y 2>/dev/null && exit 99
            $drop true || exit 99
            T=\"$drop $T\"
        fi
        try add tasks add Other
        try claim tasks claim --as v
        try complete tasks complete held --as w
        try work work --once -- touch $D/ran
        try list --json tasks list
        try stats --json tasks stats
        try why why held
        try events events
        chmod -R u+w $D/store
        T=$tenure
        try complete-again tasks complete held --as w"
    );
    let mut command = place.command("sh");
    command.args(["-c", &script]);
    let ended = Running::start(command).end();
    if ended.code == 99 {
        crate::support::skip(&format!("permissions cannot be tried here: {}", ended.stderr));
        return;
    }
    assert_eq!(ended.code, 0, "{ended:?}");
    for name in ["add", "claim", "complete", "work"] {
        assert_refused(&place, name, "no write permission", hint);
    }
    assert!(!place.path("ran").exists(), "a command ran without a claim");
    for name in ["list", "stats", "why", "events", "complete-again"] {
        assert_eq!(code(&place, name), 0, "{name}: {}", place.read(&format!("{name}.err")));
    }
    assert_eq!(count(&answer(&place, "stats")), 2);
}
