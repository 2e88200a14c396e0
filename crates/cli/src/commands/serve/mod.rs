//! `tenure serve`: serves the store over HTTP.

mod browser;

use crate::args;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::aside;
use crate::output::{NAME, styled};
use crate::telemetry::{self, LogFormat, LogOptions};
use clap::{Args, ValueHint};
use serde_json::json;
use std::io::IsTerminal;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;
use tenure_server::app::{AdoptParent, App};
use tenure_server::http::{
    self, Address, Auth, CONNECTIONS_MAX, LARGE_BODY_BYTES_MAX, Listening, Options, PassedSockets,
    TlsFiles, WithoutTokens,
};
use tenure_server::metrics::Metrics;
use tenure_server::webhooks::{
    EventSelection, WebhookSecret, WebhookUrl, WebhookUrlError, Webhooks,
};

/// Serve the store over HTTP: API, MCP, metrics and a dashboard
///
/// By default only for this user on this machine. The server creates a token, which this user's
/// commands find automatically; other programs send what `tenure token show` prints. To admit other
/// users or machines, create tokens with `tenure token create`: then only those are valid. Ctrl-C
/// or SIGTERM stops it after the requests in flight are answered; a second one stops it at once.
/// It also listens on sockets that systemd passes on, and tells systemd when it is ready.
///
/// With `--store memory:` the store lives as long as the server.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tenure serve                            on http://127.0.0.1:7070, for this user
  tenure serve --open                     the same, and open it in a browser
  tenure serve --unix /run/tenure.sock    on a socket, for this user
  tenure token create ci --role work      create a token; shown once
  tenure serve --listen 0.0.0.0:7070 --host locks.example.org \\
      --tls-cert cert.pem --tls-key key.pem")]
pub(crate) struct ServeArgs {
    /// Listen here; port 0 takes any free port; can be repeated [default: 127.0.0.1:7070]
    #[arg(long, value_name = "HOST:PORT")]
    listen: Vec<String>,
    /// Listen on a Unix socket, for this user only; without --listen, only there
    #[arg(long, value_name = "PATH", value_hint = ValueHint::FilePath)]
    unix: Vec<PathBuf>,
    /// The token file [default: beside the store]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    tokens: Option<PathBuf>,
    /// Create a new token for this user; the one of earlier servers of this store becomes invalid
    #[arg(long, conflicts_with_all = ["tokens", "no_auth"])]
    new_token: bool,
    /// Require no token: every user and program on this machine can do everything with this store
    #[arg(long, conflicts_with = "tokens")]
    no_auth: bool,
    /// Open the dashboard in a browser, signed in
    #[arg(long)]
    open: bool,
    /// Use TLS with this certificate chain, in PEM format
    #[arg(long, value_name = "FILE", requires = "tls_key", value_hint = ValueHint::FilePath)]
    tls_cert: Option<PathBuf>,
    /// The private key of the certificate, in PEM format
    #[arg(long, value_name = "FILE", requires = "tls_cert", value_hint = ValueHint::FilePath)]
    tls_key: Option<PathBuf>,
    /// A host name by which clients call this server, besides its addresses; can be repeated
    #[arg(long, value_name = "NAME")]
    host: Vec<String>,
    /// Limit of requests per second for each token or address; bursts may be twice as large
    /// [default: 5000; none for this user without a token file]
    #[arg(long, value_name = "N", value_parser = args::numbers::rate)]
    rate: Option<NonZeroU32>,
    /// Largest request body that carries tasks, in bytes; other bodies have at most 1 MiB
    #[arg(long, value_name = "BYTES", default_value_t = LARGE_BODY_BYTES_MAX, value_parser = args::numbers::body_bytes)]
    max_body: u64,
    /// Largest number of connections; when it is reached, an idle one is closed for a new one
    #[arg(long, value_name = "N", default_value_t = CONNECTIONS_MAX as u32, value_parser = args::numbers::connections)]
    max_connections: u32,
    /// How long to wait for requests in flight at shutdown
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = args::span)]
    grace: Duration,
    /// How long to go on serving at shutdown while /readyz already answers 503, so that load
    /// balancers notice before the port closes
    #[arg(long, value_name = "DURATION", default_value = "0s", value_parser = args::span)]
    drain: Duration,
    /// Log each request on stderr: method, path, status, duration, name of the token, request id
    #[arg(long)]
    log: bool,
    /// Send events to this address as they happen, signed; can be repeated
    #[arg(long, value_name = "URL", requires = "webhook_secret_file", value_parser = webhook_url)]
    webhook: Vec<WebhookUrl>,
    /// The events to send, separated by commas, or all
    /// [default: failed,blocked,review,broken,deadlock]
    #[arg(long, value_name = "EVENTS", requires = "webhook", value_parser = EventSelection::parse)]
    webhook_events: Option<EventSelection>,
    /// The file with the secret that messages are signed with; only its owner may read it
    #[arg(long, value_name = "FILE", requires = "webhook", value_hint = ValueHint::FilePath)]
    webhook_secret_file: Option<PathBuf>,
    /// The format of the log; also logs each request, as --log does [default: text]
    #[arg(long, value_name = "FORMAT", value_enum)]
    log_format: Option<LogFormat>,
}

/// The default address.
const DEFAULT_ADDRESS: &str = "127.0.0.1:7070";

pub(crate) async fn run(context: &Context, args: ServeArgs) -> Result<i32, Failure> {
    // Before any file is opened: the sockets are known by their numbers.
    let passed = PassedSockets::take()?;
    let log = LogOptions {
        format: args.log_format.unwrap_or(LogFormat::Text),
        requests: args.log || args.log_format.is_some(),
        quiet: context.output.quiet,
    };
    // A reader that does not read must keep the server neither from answering nor from ending.
    aside::begin();
    telemetry::start(Some(&log), context.sends_telemetry())?;
    let metrics = Metrics::new();
    let client = context.server_client(&metrics).await?;
    let store = client.info().url;
    let open = args.open;
    let options = options(context, args, passed)?;
    let rescuer = context.rescuer().without_workspace();
    let place = context.place().ok().cloned();
    let adopt: Option<AdoptParent> = match context.sends_telemetry() {
        true => Some(telemetry::adopt_from_headers),
        false => None,
    };
    let app = App::counting(client, metrics).in_place(place).rescuing(rescuer).adopting(adopt);
    // The file is removed when the server ends.
    let mut page = None;
    let served = http::serve(app, options, |listening| {
        tell(context, listening, &store);
        if open {
            page = browser::show(context, listening);
        }
    })
    .await;
    aside::hurry();
    drop(page);
    served?;
    Ok(0)
}

fn options(context: &Context, args: ServeArgs, passed: PassedSockets) -> Result<Options, Failure> {
    let mut listen = args.listen;
    if listen.is_empty() && args.unix.is_empty() && passed.is_empty() {
        listen.push(DEFAULT_ADDRESS.to_owned());
    }
    let tls = args.tls_cert.zip(args.tls_key);
    let webhooks = webhooks(args.webhook, args.webhook_events, args.webhook_secret_file)?;
    let needs_tokens = args.tokens.is_some();
    let without_tokens = match args.no_auth {
        true => WithoutTokens::NoAuth,
        false => WithoutTokens::OwnToken {
            folder: context.servers.clone(),
            store: context.store_url()?,
            renew: args.new_token,
        },
    };
    Ok(Options {
        listen,
        unix: args.unix,
        tokens: args.tokens.map_or_else(|| context.token_file(), Ok)?,
        needs_tokens,
        without_tokens,
        tls: tls.map(|(certificate, key)| TlsFiles { certificate, key }),
        hosts: args.host,
        rate: args.rate,
        body_bytes_max: args.max_body,
        connections_max: room(args.max_connections),
        grace: args.grace,
        drain: args.drain,
        passed,
        webhooks,
    })
}

fn webhook_url(text: &str) -> Result<WebhookUrl, WebhookUrlError> {
    WebhookUrl::parse(text)
}

fn webhooks(
    urls: Vec<WebhookUrl>,
    events: Option<EventSelection>,
    secret: Option<PathBuf>,
) -> Result<Option<Webhooks>, Failure> {
    // Without an address clap accepts no secret.
    let Some(file) = secret else { return Ok(None) };
    let secret = WebhookSecret::read(&file).map_err(|error| {
        let failure = Failure::new(Exit::Configuration, "WEBHOOK_SECRET", error.to_string());
        failure.hint("Create one: (umask 077; openssl rand -base64 32 > FILE)")
    })?;
    Ok(Some(Webhooks { urls, events: events.unwrap_or_default(), secret }))
}

/// File descriptors that a server needs besides those of its connections: the store, listeners,
/// output.
const OWN_DESCRIPTORS: u64 = 256;

/// Raises the limit of open files for this many connections, and returns for how many it is enough.
/// Too low a limit would keep the store from opening its files.
fn room(most: u32) -> usize {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let wanted = u64::from(most) + OWN_DESCRIPTORS;
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_some_and(|current| current < wanted) {
        let current = limit.maximum.map_or(wanted, |maximum| maximum.min(wanted));
        let raised = Rlimit { current: Some(current), maximum: limit.maximum };
        // If the system refuses, the limit stays lower, which is checked below.
        let _ = setrlimit(Resource::Nofile, raised);
    }
    let allowed = getrlimit(Resource::Nofile).current.unwrap_or(wanted).min(wanted);
    usize::try_from(allowed.saturating_sub(OWN_DESCRIPTORS).max(1)).unwrap_or(1)
}

fn tell(context: &Context, listening: &Listening<'_>, store: &str) {
    let shown: Vec<String> = listening.addresses.iter().map(Address::to_string).collect();
    let (auth, file) = match &listening.auth {
        Auth::Tokens(file) => ("tokens", Some(file.as_path())),
        Auth::Own { file, .. } => ("own_token", Some(*file)),
        Auth::None => ("none", None),
    };
    let data = json!({ "listening": shown, "store": store, "auth": auth, "token_file": file });
    context.output.line(&data, || {
        let shown: Vec<String> = shown.iter().map(|address| styled(NAME, address)).collect();
        let first = format!("Listening on {} (store {store})", shown.join(" and "));
        [first].into_iter().chain(how_to_get_in(listening)).collect::<Vec<_>>().join("\n")
    });
    if let Auth::None = listening.auth {
        context.output.note(NO_AUTH);
    }
}

/// The warning for `--no-auth`.
const NO_AUTH: &str = "Warning: this server requires no token (--no-auth). Every user, container and \
    program that can reach this machine's loopback address can do everything with this store, \
    including ending what others hold.";

/// Lines for a person. The address with the token is shown only on a terminal: other output often
/// ends in logs that others can read.
fn how_to_get_in(listening: &Listening<'_>) -> Vec<String> {
    let Auth::Own { file, .. } = &listening.auth else { return vec![] };
    let kept = format!(
        "This user's commands find its token automatically; other programs send the one in {}",
        file.display()
    );
    let page = std::io::stdout().is_terminal().then(|| browser::address(listening)).flatten();
    let page =
        page.map(|page| format!("Dashboard: {page} (this address signs you in: keep it secret)"));
    page.into_iter().chain([kept]).collect()
}
