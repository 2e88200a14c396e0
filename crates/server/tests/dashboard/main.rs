//! The page in a real browser: Debian's Chromium, driven by Playwright for Python. Each test serves
//! the page over a store of its own and runs one scenario of `scenarios.py`, which asks this side
//! by HTTP to hold, add and end things. `scripts/test` installs what this needs.

mod control;
mod page;

use control::Control;
use page::Page;
use std::path::Path;
use std::process::{Command, Stdio};
use tenure::Client;

/// Runs one scenario; it must end well.
async fn play(scenario: &str) {
    let folder = tempfile::tempdir().expect("a folder for the store");
    let url = format!("sqlite:{}", folder.path().join("tenure.db").display());
    let client = Client::builder().label("test").open(&url).await.expect("a store");
    let page = Page::start(client.clone()).await;
    let control = Control::start(client, page.clone()).await;
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let python = root.join("target/needs/venv/bin/python");
    assert!(python.exists(), "{} is missing: run scripts/test", python.display());
    let mut command = Command::new(python);
    command
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/dashboard/scenarios.py"))
        .args([scenario, &page.url(), &control.url()])
        .stdin(Stdio::null());
    let ended = tokio::task::spawn_blocking(move || command.status());
    let status = ended.await.expect("no panic").expect("python runs");
    assert!(status.success(), "the scenario {scenario} failed, as told above");
}

macro_rules! scenarios {
    ($($name:ident)*) => {
        $(#[tokio::test(flavor = "multi_thread")]
        async fn $name() {
            play(stringify!($name)).await;
        })*
    };
}

/// Makes the pictures of the documents anew, in `target/dashboard`.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "shows nothing: it makes pictures"]
async fn pictures() {
    play("pictures").await;
}

scenarios! {
    a_lock_appears_and_runs_down
    an_admin_breaks_with_a_reason
    an_admin_retries_cancels_and_pauses
    others_only_look
    many_tasks_stay_smooth
    hostile_titles_are_text
    it_comes_back_after_a_restart
    a_token_is_asked_for
    an_address_with_a_token_signs_in
    all_by_keyboard
    a_takeover_is_marked
    a_lapsed_lease_ends_in_the_timeline
    a_waiter_for_slots_is_counted_once
    who_finished_a_task_is_shown
    nothing_there_says_what_to_run
    every_address_opens_the_same_and_back_works
    filters_find_and_say_when_nothing_matches
    a_task_has_a_page_with_attempts_notes_and_graph
    a_reviewer_decides_and_an_admin_edits
    many_tasks_are_changed_at_once
    slots_are_one_card
    the_timeline_zooms_and_moves
    rates_are_drawn_over_an_hour_and_a_day
    axe_finds_nothing
    the_server_has_history_that_the_page_does_not_know
    a_running_task_shows_its_output
    idle_workers_are_shown
}
