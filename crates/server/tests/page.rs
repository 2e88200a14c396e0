//! The files of the page as they are served.

use axum::body::Body;
use axum::http::{HeaderMap, Request, StatusCode};
use http_body_util::BodyExt;
use tenure_server::dashboard;
use tower::ServiceExt;

async fn get(path: &str, tag: Option<&str>) -> (StatusCode, HeaderMap, String) {
    let mut request = Request::get(path);
    if let Some(tag) = tag {
        request = request.header("if-none-match", tag);
    }
    let response = dashboard::routes()
        .into_router()
        .oneshot(request.body(Body::empty()).unwrap())
        .await
        .unwrap();
    let (parts, body) = response.into_parts();
    let bytes = body.collect().await.unwrap().to_bytes();
    (parts.status, parts.headers, String::from_utf8(bytes.to_vec()).unwrap())
}

/// Every file that the page asks for, found by following what each names.
async fn files() -> Vec<(String, HeaderMap, String)> {
    let mut paths = vec!["/".to_owned(), "/favicon.svg".to_owned()];
    let mut found: Vec<(String, HeaderMap, String)> = Vec::new();
    while let Some(path) = paths.pop() {
        let (status, headers, text) = get(&path, None).await;
        assert_eq!(status, StatusCode::OK, "{path}");
        for quoted in text.split(['"', '\'']) {
            let name = quoted.strip_prefix("./").filter(|name| name.ends_with(".js"));
            let named = name
                .map(|name| format!("/assets/{name}"))
                .or_else(|| quoted.starts_with("/assets/").then(|| quoted.to_owned()));
            let is_new = |named: &String| {
                !paths.contains(named) && !found.iter().any(|(path, ..)| path == named)
            };
            paths.extend(named.filter(|named| *named != path && is_new(named)));
        }
        found.push((path, headers, text));
    }
    found
}

#[tokio::test]
async fn every_file_comes_with_its_kind_and_a_strict_policy() {
    let files = files().await;
    assert!(files.len() > 15, "{}", files.len());
    for (path, headers, _) in files {
        let kind = match path.rsplit('.').next().unwrap() {
            "js" => "text/javascript; charset=utf-8",
            "css" => "text/css; charset=utf-8",
            "svg" => "image/svg+xml",
            _ => "text/html; charset=utf-8",
        };
        assert_eq!(headers["content-type"], kind, "{path}");
        assert_eq!(headers["cache-control"], "no-cache", "{path}");
        assert_eq!(headers["x-content-type-options"], "nosniff", "{path}");
        assert_eq!(headers["referrer-policy"], "no-referrer", "{path}");
        let policy = headers["content-security-policy"].to_str().unwrap();
        for rule in ["default-src 'none'", "script-src 'self'", "style-src 'self'"] {
            assert!(policy.contains(rule), "{path}: {policy}");
        }
        assert!(!policy.contains("unsafe"), "{path}: {policy}");
    }
}

#[tokio::test]
async fn a_file_that_is_known_already_is_not_sent_again() {
    let (_, headers, text) = get("/assets/app.js", None).await;
    assert!(!text.is_empty());
    let tag = headers["etag"].to_str().unwrap();
    let (status, headers, text) = get("/assets/app.js", Some(tag)).await;
    assert_eq!((status, text.as_str()), (StatusCode::NOT_MODIFIED, ""));
    assert_eq!(headers["etag"], tag);
    let (status, _, text) = get("/assets/app.js", Some("\"other\"")).await;
    assert!(status == StatusCode::OK && !text.is_empty());
}

#[tokio::test]
async fn nothing_that_others_wrote_can_become_markup() {
    for (path, _, text) in files().await {
        for way in ["innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("] {
            assert!(!text.contains(way), "{path} uses {way}");
        }
        let beyond = text.replace("http://www.w3.org/2000/svg", "");
        assert!(!beyond.contains("//www") && !beyond.contains("http:"), "{path} leads elsewhere");
        assert!(!beyond.contains("https:"), "{path} leads elsewhere");
    }
}

#[tokio::test]
async fn there_is_nothing_else() {
    for path in ["/assets/", "/assets/none.js", "/assets/../src/lib.rs", "/assets/%2e%2e/lib.rs"] {
        assert_eq!(get(path, None).await.0, StatusCode::NOT_FOUND, "{path}");
    }
}
