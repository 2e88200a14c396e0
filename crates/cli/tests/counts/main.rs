//! One judgement of what is held, lapsed, dead and waiting: one store with all of that in it, and
//! every face of tenure, the page in a real browser included, shows the same numbers.

#![cfg(target_os = "linux")]
#![allow(clippy::disallowed_methods, reason = "tests stand outside the layers")]
#![allow(clippy::print_stdout, reason = "what other tests share tells seeds")]

#[path = "../mcp/agent.rs"]
#[allow(dead_code, reason = "shared with other tests")]
mod agent;
#[path = "../serve/http.rs"]
#[allow(dead_code, reason = "shared with other tests")]
mod http;
#[path = "../serve/server.rs"]
#[allow(dead_code, reason = "shared with other tests")]
mod server;
#[path = "../support/mod.rs"]
#[allow(dead_code, unused_imports, reason = "shared with other tests")]
mod support;

mod faces;
mod scene;

use faces::Numbers;
use scene::Scene;
use tenure::core::{NoWitness, Overview};

/// What the scene has in it.
const EXPECTED: Numbers =
    Numbers { held: 9, lapsed: 2, dead: 1, waiting: 4, workers: 6, pending: 1, in_progress: 3 };

/// The claims in it that no longer count, with the reasons: a part is gone, and a lease ran out.
const LOST: [(&str, &str); 2] =
    [("forgotten", "lease lapsed"), ("swept", "claim lost: section:house is no longer held")];

#[test]
fn every_face_shows_the_same_numbers() {
    let scene = Scene::set_up();
    for (face, numbers) in faces::all(&scene) {
        assert_eq!(numbers, EXPECTED, "{face}");
    }
}

#[test]
fn every_face_shows_the_same_lost_claims() {
    let scene = Scene::set_up();
    for (face, lost) in faces::lost_claims(&scene) {
        let lost: Vec<(&str, &str)> =
            lost.iter().map(|(id, reason)| (id.as_str(), reason.as_str())).collect();
        assert_eq!(lost, LOST, "{face}");
    }
    for (face, number) in faces::how_many_lost_claims(&scene) {
        assert_eq!(number, LOST.len() as u64, "{face}");
    }
    let why = scene.place.run(&["why", "task:swept"]).stdout;
    assert!(why.contains("its worker sweeper lost section:house"), "{why}");
}

/// A client on another machine cannot see the processes of the server's: it goes by what the server
/// proved.
#[test]
fn a_client_that_sees_no_processes_counts_like_the_server() {
    let scene = Scene::set_up();
    let url = format!("http://{}", scene.server.address());
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let counts = runtime.block_on(async {
        let world = tenure::world::SystemWorld::new().with_witness(std::sync::Arc::new(NoWitness));
        let builder = tenure::Client::builder().world(world);
        let client = builder.open(&url).await.expect("a server");
        let seen = client.look_everywhere().await.expect("an answer");
        Overview::of(&seen, client.witness()).counts()
    });
    let expected = EXPECTED;
    assert_eq!((counts.held, counts.dead), (expected.held as usize, expected.dead as usize));
    assert_eq!(counts.waiting, expected.waiting as usize);
}

#[test]
fn the_queue_of_a_resource_is_the_same_wherever_it_is_shown() {
    let scene = Scene::set_up();
    for (resource, waiting) in [("gpu", 3), ("alpha", 1), ("beta", 1), ("lapsed", 0)] {
        for (face, numbers) in faces::queue(&scene, resource) {
            assert_eq!(numbers, waiting, "{resource}: {face}");
        }
    }
    let why = scene.place.run(&["why", "gone"]);
    assert_eq!(why.stdout.trim(), "gone is free", "its waiters died with their server");
}

#[test]
fn a_free_lock_with_a_waiter_says_whose_turn_it_is() {
    let scene = Scene::set_up();
    scene.stop_a_waiter_and_free_what_it_wants();
    let why = scene.place.run(&["why", "gpu"]).stdout;
    assert!(why.contains("is next and was woken; it loses its place in"), "{why}");
    let top = scene.place.run(&["top", "--once"]).stdout;
    assert!(top.contains("Free: gpu: ") && top.contains("is next and was woken"), "{top}");
}
