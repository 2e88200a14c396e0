//! Nonsense in the form of JSON, and out of form: never the server's mistake, and it goes on.

use crate::http::ask;
use crate::routes::ROUTES;
use crate::server::Server;
use crate::support::{Dice, StoreLocation};
use serde_json::{Map, Value, json};

/// Requests per route.
const ROUNDS: usize = 40;

/// Names that mean something somewhere.
const NAMES: [&str; 24] = [
    "resources",
    "resource",
    "mode",
    "ttl_ms",
    "wait_ms",
    "operation",
    "as",
    "grant",
    "keeps",
    "token",
    "reason",
    "tasks",
    "title",
    "count",
    "task",
    "section",
    "labels",
    "id",
    "depends_on",
    "priority",
    "payload",
    "max_runners",
    "retry",
    "result",
];

fn value(dice: &mut Dice, depth: usize) -> Value {
    match dice.below(if depth == 0 { 9 } else { 11 }) {
        0 => Value::Null,
        1 => json!(true),
        2 => json!(0),
        3 => json!(-1),
        4 => json!(u64::MAX),
        5 => json!(1e308),
        6 => json!("deploy"),
        7 => json!("x".repeat(dice.below(3000))),
        8 => json!("\u{0}\n../../\u{202e}\u{1F600}%00' OR 1=1 --"),
        9 => (0..dice.below(4)).map(|_| value(dice, depth - 1)).collect(),
        _ => object(dice, depth - 1),
    }
}

fn object(dice: &mut Dice, depth: usize) -> Value {
    let mut fields = Map::new();
    for _ in 0..dice.below(8) {
        let name = NAMES[dice.below(NAMES.len())];
        let value = value(dice, depth);
        fields.insert(name.to_owned(), value);
    }
    Value::Object(fields)
}

/// What is sent: mostly JSON, sometimes cut short or with a byte changed.
fn text(dice: &mut Dice) -> String {
    let text = object(dice, 3).to_string();
    let at = dice.below(text.len());
    match dice.below(8) {
        0 => text.chars().take(at).collect(),
        1 => text.chars().enumerate().map(|(n, c)| if n == at { '}' } else { c }).collect(),
        2 => "[".repeat(10_000),
        _ => text,
    }
}

#[test]
fn nonsense_is_the_callers_mistake() {
    let place = StoreLocation::new();
    let server = Server::start(&place, &[]);
    let mut dice = Dice::seeded(0x7e17);
    for route in ROUTES.iter().filter(|route| route.method != "GET") {
        for _ in 0..ROUNDS {
            let body = text(&mut dice);
            // Nobody is to wait here.
            let body = body.replace("\"wait_ms\"", "\"wait\"");
            let answer = server.ask(ask(route.method, route.path).body(body.clone()));
            let what = format!("{} {} {body}: {answer:?}", route.method, route.path);
            assert!(answer.status < 500, "{what}");
            if answer.status >= 400 && route.path != "/mcp" {
                answer.code();
            }
        }
    }
    server.is_alive();
    server.stop();
}
