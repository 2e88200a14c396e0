//! Describing and pausing sections.

use crate::kit::Server;
use serde_json::{Value, json};

#[tokio::test]
async fn sections_are_described_and_changed() {
    let server = Server::new().await;
    let put =
        server.put("/v1/sections/Back%20end", json!({ "max_runners": 3, "priority": 9 })).await;
    let section = &put.good()["section"];
    assert_eq!((&section["name"], &section["max_runners"]), (&json!("Back end"), &json!(3)));
    let any = server.put("/v1/sections/Back%20end", json!({ "max_runners": null })).await.good();
    assert_eq!(any["section"]["max_runners"], Value::Null, "any number");
    assert_eq!(any["section"]["priority"], 9, "what is left out stays");

    server.put("/v1/sections/Release", json!({ "depends_on": ["Back end"] })).await.good();
    let ring = server.put("/v1/sections/Back%20end", json!({ "depends_on": ["Release"] })).await;
    ring.refused(409, "SECTION_REFUSED");
    let ghost = server.put("/v1/sections/Release", json!({ "depends_on": ["Ghost"] })).await;
    ghost.refused(404, "SECTION_NOT_FOUND");
    server.put("/v1/sections/*", json!({ "priority": 1 })).await.refused(400, "USAGE");
    server.put("/v1/sections/S", json!({ "priority": null })).await.refused(400, "USAGE");

    server.add(json!({ "id": "a", "title": "A", "section": "Back end" })).await;
    server.claim(json!({ "as": "alice" })).await;
    let all = server.get("/v1/sections").await.good();
    let names: Vec<&Value> =
        all["sections"].as_array().unwrap().iter().map(|section| &section["name"]).collect();
    assert_eq!(names, [&json!("Back end"), &json!("Release")]);
    assert_eq!(all["sections"][0]["open"], 1);
}

#[tokio::test]
async fn nothing_of_a_paused_section_is_handed_out() {
    let server = Server::new().await;
    server.add(json!({ "id": "a", "title": "A", "section": "S" })).await;
    let claim = async || server.post("/v1/tasks/claim", json!({ "as": "alice" })).await.good();
    for (pause, resume) in [
        ("/v1/sections/S/pause", "/v1/sections/S/resume"),
        ("/v1/sections/*/pause", "/v1/sections/%2A/resume"),
    ] {
        assert_eq!(server.post(pause, json!({ "as": "boss" })).await.good()["paused"], true);
        assert_eq!(claim().await["tasks"], json!([]), "{pause}");
        assert_eq!(server.post(resume, json!({})).await.good()["paused"], false);
    }
    assert_eq!(claim().await["tasks"][0]["id"], "a");
    let runners = &server.get("/v1/sections").await.good()["sections"][0]["runners"];
    assert_eq!(runners[0]["runner_id"], "alice");
    let ghost = server.post("/v1/sections/Ghost/pause", json!({})).await;
    ghost.refused(404, "SECTION_NOT_FOUND");
}
