//! Traces and metrics of `tenure run` over `tenure serve`, from the command to the store.
//!
//! A receiver of this test takes what both send, and decodes it with the official protobuf types.

#![cfg(target_os = "linux")]
#![expect(clippy::disallowed_methods, reason = "tests stand outside the layers")]
#![allow(clippy::print_stdout, reason = "what other tests share prints seeds")]

#[path = "support/mod.rs"]
#[allow(dead_code, unused_imports, reason = "each test binary uses a part of it")]
mod support;

use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value as Attribute;
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::sync::{Arc, Mutex};
use support::{Running, Signal, StoreLocation, TENURE, until};

/// A span, and the service that sent it.
#[derive(Clone, Debug)]
struct Received {
    service: String,
    span: Span,
}

#[derive(Default)]
struct Inbox {
    spans: Vec<Received>,
    metrics: Vec<String>,
    requests: usize,
}

/// A collector that keeps what it is sent.
struct Collector {
    address: String,
    inbox: Arc<Mutex<Inbox>>,
}

impl Collector {
    fn start() -> Collector {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let inbox = Arc::<Mutex<Inbox>>::default();
        let keep = inbox.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let keep = keep.clone();
                std::thread::spawn(move || while receive(&stream, &keep).is_some() {});
            }
        });
        Collector { address, inbox }
    }

    fn spans(&self) -> Vec<Received> {
        self.inbox.lock().unwrap().spans.clone()
    }

    /// A command that sends here.
    fn with(&self, mut command: Command, service: &str) -> Command {
        command.env("TENURE_TELEMETRY", "otlp").env("OTEL_SERVICE_NAME", service);
        command.env("OTEL_EXPORTER_OTLP_ENDPOINT", &self.address);
        command.env("OTEL_BSP_SCHEDULE_DELAY", "50").env("OTEL_METRIC_EXPORT_INTERVAL", "200");
        command
    }
}

/// Takes one request; none at the end of the connection.
fn receive(stream: &TcpStream, inbox: &Mutex<Inbox>) -> Option<()> {
    let mut reader = BufReader::new(stream);
    let mut first = String::new();
    if reader.read_line(&mut first).ok()? == 0 {
        return None;
    }
    let (mut length, mut kind) = (0, String::new());
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        match name.to_ascii_lowercase().as_str() {
            "content-length" => length = value.trim().parse().ok()?,
            "content-type" => kind = value.trim().to_owned(),
            _ => {}
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    assert_eq!(kind, "application/x-protobuf", "{first}");
    let mut inbox = inbox.lock().unwrap();
    inbox.requests += 1;
    match first.split_whitespace().nth(1)? {
        "/v1/traces" => inbox.spans.extend(spans(&body)),
        "/v1/metrics" => inbox.metrics.extend(metrics(&body)),
        other => panic!("{other}"),
    }
    drop(inbox);
    let mut stream = stream;
    stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").ok()
}

fn spans(body: &[u8]) -> Vec<Received> {
    let sent = ExportTraceServiceRequest::decode(body).expect("OTLP");
    let mut received = Vec::new();
    for resource in sent.resource_spans {
        let attributes = resource.resource.unwrap().attributes;
        let name = attributes.iter().find(|it| it.key == "service.name").unwrap();
        let service = match name.value.as_ref().unwrap().value.as_ref().unwrap() {
            Attribute::StringValue(name) => name.clone(),
            other => panic!("{other:?}"),
        };
        for span in resource.scope_spans.into_iter().flat_map(|scope| scope.spans) {
            received.push(Received { service: service.clone(), span });
        }
    }
    received
}

fn metrics(body: &[u8]) -> Vec<String> {
    let sent = ExportMetricsServiceRequest::decode(body).expect("OTLP");
    let scopes = sent.resource_metrics.into_iter().flat_map(|resource| resource.scope_metrics);
    scopes.flat_map(|scope| scope.metrics).map(|metric| metric.name).collect()
}

fn attribute(span: &Span, name: &str) -> Option<String> {
    let found = span.attributes.iter().find(|it| it.key == name)?;
    Some(match found.value.as_ref()?.value.as_ref()? {
        Attribute::StringValue(text) => text.clone(),
        Attribute::IntValue(number) => number.to_string(),
        other => panic!("{other:?}"),
    })
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn find<'a>(spans: &'a [Received], service: &str, name: &str) -> Option<&'a Span> {
    let found = spans.iter().find(|it| it.service == service && it.span.name == name);
    found.map(|it| &it.span)
}

/// A server that sends traces, and its address.
fn serve(place: &StoreLocation, collector: &Collector) -> (Running, String) {
    let command = place.tenure(&["serve", "--json", "--no-auth", "--listen", "127.0.0.1:0"]);
    let said = place.path("server.out");
    let end = std::fs::File::create(&said).unwrap();
    let server = Running::start_unheard(collector.with(command, "server"), end.into());
    let line: serde_json::Value = until("a server that listens", || {
        serde_json::from_str(std::fs::read_to_string(&said).ok()?.strip_suffix('\n')?).ok()
    });
    (server, line["listening"][0].as_str().unwrap().to_owned())
}

#[test]
fn one_run_over_a_server_is_one_trace_from_the_command_to_the_store() {
    let place = StoreLocation::new();
    let collector = Collector::start();
    let (server, address) = serve(&place, &collector);
    let mut command = collector.with(place.command(TENURE), "client");
    command.args(["--store", &address, "run", "deploy", "--"]);
    command.args(["sh", "-c", "echo $TRACEPARENT > $D/seen; exit 3"]);
    let (trace, caller) = ("4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7");
    command.env("TRACEPARENT", format!("00-{trace}-{caller}-01"));
    let ended = Running::start(command).end();
    assert_eq!(ended.code, 3, "{ended:?}");

    let acquire = "POST /v1/store/act/acquire";
    let answered = "POST /v1/store/act/{verb}";
    let received = until("all spans of both", || {
        let spans = collector.spans();
        let store = spans.iter().any(|it| it.span.name == "store transact");
        let there = find(&spans, "server", answered).is_some() && store;
        (there && find(&spans, "client", "tenure run").is_some()).then_some(spans)
    });
    for it in &received {
        // The server also does things on its own, such as following events.
        let is_ours = it.service == "client" || it.span.name.starts_with("POST");
        assert!(!is_ours || hex(&it.span.trace_id) == trace, "another trace: {it:?}");
    }
    let client =
        |name: &str| find(&received, "client", name).unwrap_or_else(|| panic!("no {name}"));
    let run = client("tenure run");
    assert_eq!(hex(&run.parent_span_id), caller, "the caller's span is the parent");
    assert_eq!(attribute(run, "tenure.resource").as_deref(), Some("deploy"));
    assert_eq!(attribute(run, "process.exit.code").as_deref(), Some("3"));
    for (name, parent) in [("wait", run), ("hold", run), ("command", client("hold"))] {
        assert_eq!(client(name).parent_span_id, parent.span_id, "the parent of {name}");
    }
    let command = client("command");
    assert_eq!(attribute(command, "process.executable.name").as_deref(), Some("sh"));
    let seen = place.read("seen");
    assert_eq!(seen.trim(), format!("00-{trace}-{}-01", hex(&command.span_id)));

    // A request of the client, which the server goes on with, down to its store.
    let is_in_wait = |it: &&Received| {
        it.service == "client"
            && it.span.name == acquire
            && it.span.parent_span_id == client("wait").span_id
    };
    let asked = &received.iter().find(is_in_wait).expect("the request that acquires").span;
    assert_eq!(attribute(asked, "http.request.method").as_deref(), Some("POST"));
    let answers = |it: &&Received| {
        it.service == "server"
            && it.span.name == answered
            && it.span.parent_span_id == asked.span_id
    };
    let answer = &received.iter().find(answers).expect("the server's span").span;
    assert_eq!(attribute(answer, "http.route").as_deref(), Some("/v1/store/act/{verb}"));
    assert_eq!(attribute(answer, "http.response.status_code").as_deref(), Some("200"));
    let writes = |it: &&Received| it.span.parent_span_id == answer.span_id;
    let store = &received.iter().find(writes).expect("the store's span").span;
    assert_eq!(store.name, "store transact");
    assert!(attribute(store, "db.system.name").unwrap().to_lowercase().contains("sqlite"));

    until("measurements of the server", || {
        let inbox = collector.inbox.lock().unwrap();
        let has = |name: &str| inbox.metrics.iter().any(|it| it == name);
        (has("http.server.request.duration") && has("tenure.store.call.duration")).then_some(())
    });
    server.signal(Signal::TERM);
    assert_eq!(server.end().code, 0);
}

#[test]
fn a_workers_command_goes_on_the_trace_of_its_task() {
    let place = StoreLocation::new();
    let collector = Collector::start();
    place.json(&["tasks", "add", "one", "--section", "api"]);
    let script = "echo $TRACEPARENT > $D/seen";
    let command = place.tenure(&["work", "--once", "--", "sh", "-c", script]);
    let ended = Running::start(collector.with(command, "worker")).end();
    assert_eq!(ended.code, 0, "{ended:?}");
    let received = collector.spans();
    let task = find(&received, "worker", "tenure work").expect("a span of the task");
    assert_eq!(attribute(task, "tenure.section").as_deref(), Some("api"));
    assert_eq!(attribute(task, "tenure.outcome").as_deref(), Some("complete"));
    let seen = place.read("seen");
    assert_eq!(seen.trim(), format!("00-{}-{}-01", hex(&task.trace_id), hex(&task.span_id)));
}

#[test]
fn nothing_is_sent_unless_the_setting_says_so() {
    let place = StoreLocation::new();
    let collector = Collector::start();
    let script = "echo \"[$TRACEPARENT]\" > $D/seen";
    let mut command =
        collector.with(place.tenure(&["run", "x", "--", "sh", "-c", script]), "client");
    command.env_remove("TENURE_TELEMETRY");
    assert_eq!(Running::start(command).end().code, 0);
    assert_eq!(place.read("seen").trim(), "[]");
    assert_eq!(collector.inbox.lock().unwrap().requests, 0);
}

#[test]
fn a_collector_that_is_gone_does_not_fail_a_command() {
    let place = StoreLocation::new();
    let collector = Collector { address: "http://127.0.0.1:9".to_owned(), inbox: Arc::default() };
    let command = collector.with(place.tenure(&["run", "x", "--", "true"]), "client");
    let ended = Running::start(command).end();
    assert_eq!((ended.code, ended.stderr.as_str()), (0, ""), "{ended:?}");
}
