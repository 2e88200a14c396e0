//! The dashboard: static files in the binary. The page loads nothing from other servers.

use crate::http::limits::Limits;
use crate::routes::{Access, Routes};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get};
use sha2::{Digest, Sha256};
use tenure::Secret;

/// A file of the page.
struct Asset {
    path: &'static str,
    kind: &'static str,
    body: &'static [u8],
}

const HTML: &str = "text/html; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";
const SVG: &str = "image/svg+xml";

macro_rules! asset {
    ($path:literal, $kind:expr, $file:literal) => {
        Asset { path: $path, kind: $kind, body: include_bytes!(concat!("assets/", $file)) }
    };
}

const ASSETS: &[Asset] = &[
    asset!("/", HTML, "index.html"),
    asset!("/favicon.svg", SVG, "favicon.svg"),
    asset!("/assets/favicon.svg", SVG, "favicon.svg"),
    asset!("/assets/style.css", CSS, "style.css"),
    asset!("/assets/app.js", SCRIPT, "app.js"),
    asset!("/assets/actions.js", SCRIPT, "actions.js"),
    asset!("/assets/addresses.js", SCRIPT, "addresses.js"),
    asset!("/assets/board.js", SCRIPT, "board.js"),
    asset!("/assets/bulk.js", SCRIPT, "bulk.js"),
    asset!("/assets/chart.js", SCRIPT, "chart.js"),
    asset!("/assets/connection.js", SCRIPT, "connection.js"),
    asset!("/assets/copy.js", SCRIPT, "copy.js"),
    asset!("/assets/dialogs.js", SCRIPT, "dialogs.js"),
    asset!("/assets/dom.js", SCRIPT, "dom.js"),
    asset!("/assets/edit-task.js", SCRIPT, "edit-task.js"),
    asset!("/assets/event-list.js", SCRIPT, "event-list.js"),
    asset!("/assets/events.js", SCRIPT, "events.js"),
    asset!("/assets/graph.js", SCRIPT, "graph.js"),
    asset!("/assets/help.js", SCRIPT, "help.js"),
    asset!("/assets/lock.js", SCRIPT, "lock.js"),
    asset!("/assets/locks.js", SCRIPT, "locks.js"),
    asset!("/assets/model.js", SCRIPT, "model.js"),
    asset!("/assets/output.js", SCRIPT, "output.js"),
    asset!("/assets/past-holds.js", SCRIPT, "past-holds.js"),
    asset!("/assets/rates.js", SCRIPT, "rates.js"),
    asset!("/assets/spans.js", SCRIPT, "spans.js"),
    asset!("/assets/summary.js", SCRIPT, "summary.js"),
    asset!("/assets/task-actions.js", SCRIPT, "task-actions.js"),
    asset!("/assets/task-filter.js", SCRIPT, "task-filter.js"),
    asset!("/assets/task-list.js", SCRIPT, "task-list.js"),
    asset!("/assets/task-query.js", SCRIPT, "task-query.js"),
    asset!("/assets/task.js", SCRIPT, "task.js"),
    asset!("/assets/tasks.js", SCRIPT, "tasks.js"),
    asset!("/assets/timeline.js", SCRIPT, "timeline.js"),
    asset!("/assets/words.js", SCRIPT, "words.js"),
    asset!("/assets/worker.js", SCRIPT, "worker.js"),
    asset!("/assets/workers.js", SCRIPT, "workers.js"),
];

/// Titles and labels can be written by anyone, so the page may run only its own files and connect
/// only to this server.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; \
    connect-src 'self'; img-src 'self' data:; base-uri 'none'; frame-ancestors 'none'; \
    form-action 'none'";

/// The page and its files. They contain no data, so they need no token; nor does the answer that
/// there is no other file.
pub fn routes() -> Routes {
    let open = |routes: Routes, path: &str, methods| {
        routes.route(path, Access::Anyone, Limits::Quick, methods)
    };
    let page = ASSETS.iter().fold(Routes::new(), |routes, asset| {
        let tag = tag(asset.body);
        let answer = move |headers: HeaderMap| async move { serve(asset, &tag, &headers) };
        open(routes, asset.path, get(answer))
    });
    ["/favicon.ico", "/assets/{*path}"]
        .into_iter()
        .fold(page, |routes, path| open(routes, path, any(StatusCode::NOT_FOUND)))
}

/// An address of the page that signs its user in. The token is in the fragment, which browsers do
/// not send; the page removes it from the address at once.
pub fn address_with_token(server: &impl std::fmt::Display, token: &Secret) -> String {
    format!("{server}/#token={}", token.reveal())
}

/// A page that redirects a browser to this address.
pub fn leading_page(address: &str) -> String {
    format!(
        "<!doctype html><meta charset=\"utf-8\"><meta name=\"referrer\" content=\"no-referrer\">\
         <meta http-equiv=\"refresh\" content=\"0; url={address}\"><title>tenure</title>\n"
    )
}

/// The entity tag of a file.
fn tag(body: &[u8]) -> HeaderValue {
    let digest = Sha256::digest(body);
    let hex: String = digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    HeaderValue::from_str(&format!("\"{hex}\"")).expect("hexadecimal digits are fit for a header")
}

fn serve(asset: &'static Asset, tag: &HeaderValue, asked: &HeaderMap) -> Response {
    let has_it = asked.get(header::IF_NONE_MATCH) == Some(tag);
    let mut response = match has_it {
        true => StatusCode::NOT_MODIFIED.into_response(),
        false => asset.body.into_response(),
    };
    let fixed: [(HeaderName, &'static str); 5] = [
        (header::CONTENT_TYPE, asset.kind),
        (header::CACHE_CONTROL, "no-cache"),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
    ];
    let headers = response.headers_mut();
    for (name, value) in fixed {
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers.insert(header::ETAG, tag.clone());
    response
}
