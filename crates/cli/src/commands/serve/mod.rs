//! `tenure serve`: the store, for others than this machine's commands.

mod browser;

use crate::args;
use crate::context::Context;
use crate::failure::Failure;
use crate::output::{NAME, styled};
use clap::{Args, ValueHint};
use serde_json::json;
use std::io::IsTerminal;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tenure_server::app::App;
use tenure_server::http::{
    self, Address, Auth, CONNECTIONS_MAX, LARGE_BODY_BYTES_MAX, Listening, Options, TlsFiles,
    WithoutTokens,
};
use tenure_server::metrics::Metrics;

/// Serve the store over HTTP: the API, MCP, metrics and a dashboard
///
/// On this machine alone, for this user alone, unless told otherwise. The server makes a token, which
/// this user's commands find by themselves; other programs send what `tenure token show` prints. To
/// let in other users, or other machines, make tokens with `tenure token create`: then only those
/// count. It ends with Ctrl-C or SIGTERM, when the requests in flight are answered; a second one ends
/// it at once.
///
/// Also over `--store memory:`, which then lives as long as the server.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tenure serve                            on http://127.0.0.1:7070, for this user
  tenure serve --open                     the same, and shows it in a browser
  tenure serve --unix /run/tenure.sock    on a socket, for this user
  tenure token create ci --role work      makes a token, and shows it once
  tenure serve --listen 0.0.0.0:7070 --host locks.example.org \\
      --tls-cert cert.pem --tls-key key.pem")]
pub(crate) struct ServeArgs {
    /// Listen here, on port 0 for any that is free; may be repeated [default: 127.0.0.1:7070]
    #[arg(long, value_name = "HOST:PORT")]
    listen: Vec<String>,
    /// Listen on a socket in the file system, for this user alone; without --listen, only there
    #[arg(long, value_name = "PATH", value_hint = ValueHint::FilePath)]
    unix: Vec<PathBuf>,
    /// The file of tokens [default: beside the store]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    tokens: Option<PathBuf>,
    /// Make a new token for this user, in place of the one that earlier servers of this store made
    #[arg(long, conflicts_with_all = ["tokens", "no_auth"])]
    new_token: bool,
    /// Ask for no token: every user and program on this machine may do everything with this store
    #[arg(long, conflicts_with = "tokens")]
    no_auth: bool,
    /// Show the dashboard in a browser, signed in
    #[arg(long)]
    open: bool,
    /// Encrypt, with this certificate and those that vouch for it, in PEM form
    #[arg(long, value_name = "FILE", requires = "tls_key", value_hint = ValueHint::FilePath)]
    tls_cert: Option<PathBuf>,
    /// The certificate's private key, in PEM form
    #[arg(long, value_name = "FILE", requires = "tls_cert", value_hint = ValueHint::FilePath)]
    tls_key: Option<PathBuf>,
    /// A name by which clients call this server, beside its addresses; may be repeated
    #[arg(long, value_name = "NAME")]
    host: Vec<String>,
    /// At most so many requests per second of one token or address, twice as many at once
    /// [default: 5000; none for this user without a file of tokens]
    #[arg(long, value_name = "N", value_parser = args::numbers::rate)]
    rate: Option<NonZeroU32>,
    /// The longest body that carries tasks, in bytes; others have at most 1 MiB
    #[arg(long, value_name = "BYTES", default_value_t = LARGE_BODY_BYTES_MAX, value_parser = args::numbers::body_bytes)]
    max_body: u64,
    /// At most so many connections at once; when there is no place for another, an idle one is closed
    #[arg(long, value_name = "N", default_value_t = CONNECTIONS_MAX as u32, value_parser = args::numbers::connections)]
    max_connections: u32,
    /// What requests in flight are given to end
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = args::span)]
    grace: Duration,
    /// Say each request on stderr: method, path, status, duration, name of the token
    #[arg(long)]
    log: bool,
}

/// Where to listen unless told.
const DEFAULT_ADDRESS: &str = "127.0.0.1:7070";

pub(crate) async fn run(context: &Context, args: ServeArgs) -> Result<i32, Failure> {
    let metrics = Metrics::new();
    let client = context.server_client(&metrics).await?;
    let store = client.info().url;
    let open = args.open;
    let options = options(context, args)?;
    let app = App::counting(client, metrics);
    // Removed when the server ends.
    let mut page = None;
    http::serve(app, options, |listening| {
        tell(context, listening, &store);
        if open {
            page = browser::show(context, listening);
        }
    })
    .await?;
    drop(page);
    Ok(0)
}

fn options(context: &Context, args: ServeArgs) -> Result<Options, Failure> {
    let mut listen = args.listen;
    if listen.is_empty() && args.unix.is_empty() {
        listen.push(DEFAULT_ADDRESS.to_owned());
    }
    let tls = args.tls_cert.zip(args.tls_key);
    let needs_tokens = args.tokens.is_some();
    let without_tokens = match args.no_auth {
        true => WithoutTokens::NoAuth,
        false => WithoutTokens::OwnToken {
            folder: context.servers.clone(),
            store: context.store_url()?,
            renew: args.new_token,
        },
    };
    let output = context.output.clone();
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
        log: args.log,
        note: Arc::new(move |text| output.note(text)),
    })
}

/// Descriptors that a server needs beside those of its connections: the store, listeners, output.
const OWN_DESCRIPTORS: u64 = 256;

/// Makes room for so many connections, and says for how many there is some: a process may have fewer
/// open than that by default, and a store that cannot open its files is of no use to anybody.
#[cfg(unix)]
fn room(most: u32) -> usize {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let wanted = u64::from(most) + OWN_DESCRIPTORS;
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_some_and(|current| current < wanted) {
        let current = limit.maximum.map_or(wanted, |maximum| maximum.min(wanted));
        let raised = Rlimit { current: Some(current), maximum: limit.maximum };
        // If that is not allowed there is less room, which is looked at below.
        let _ = setrlimit(Resource::Nofile, raised);
    }
    let allowed = getrlimit(Resource::Nofile).current.unwrap_or(wanted).min(wanted);
    usize::try_from(allowed.saturating_sub(OWN_DESCRIPTORS).max(1)).unwrap_or(1)
}

#[cfg(not(unix))]
fn room(most: u32) -> usize {
    most as usize
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

/// What `--no-auth` means.
const NO_AUTH: &str = "Warning: this server asks for no token (--no-auth). Every user, container and \
    program that can reach this machine's loopback address may do everything with this store, \
    including ending what others hold.";

/// Lines for a person. The address with the token is shown on a terminal alone: elsewhere output is
/// often kept in logs that others read.
fn how_to_get_in(listening: &Listening<'_>) -> Vec<String> {
    let Auth::Own { file, .. } = &listening.auth else { return vec![] };
    let kept = format!(
        "Commands of this user find its token by themselves; other programs send the one in {}",
        file.display()
    );
    let page = std::io::stdout().is_terminal().then(|| browser::address(listening)).flatten();
    let page = page
        .map(|page| format!("Open {page} in a browser: it signs you in, so keep it to yourself"));
    page.into_iter().chain([kept]).collect()
}
