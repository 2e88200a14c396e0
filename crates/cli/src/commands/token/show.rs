//! `tenure token show`: prints the token that this store's servers created for this user.

use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use clap::Args;
use serde_json::json;
use tenure_server::http::tokens::TokenFile;

/// Print the token that servers of this store created for you
///
/// For programs that cannot find it automatically, such as agents that reach a server over HTTP. It
/// stays the same when the server restarts, until `tenure serve --new-token`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tenure token show
  export TENURE_SERVER_TOKEN=$(tenure token show)
  echo \"Authorization: Bearer $(tenure token show)\" | curl -H @- http://127.0.0.1:7070/v1/locks")]
pub(crate) struct ShowArgs {}

pub(super) fn run(context: &Context, file: &TokenFile, _: ShowArgs) -> Result<i32, Failure> {
    if file.read()?.is_some() {
        let message = format!(
            "servers of this store require a token of {}, which keeps only hashes",
            file.path().display()
        );
        return Err(Failure::new(Exit::NotFound, "NO_OWN_TOKEN", message)
            .hint("Create one with `tenure token create NAME --role work`."));
    }
    let store = context.store_url()?;
    let kept = match &context.servers {
        Some(servers) => servers.token(&store)?.map(|token| (token, servers.token_file(&store))),
        None => None,
    };
    let Some((token, file)) = kept else {
        let message = format!("no server of {store} has created a token for this user yet");
        return Err(Failure::new(Exit::NotFound, "NO_OWN_TOKEN", message)
            .hint("Start one with `tenure serve`."));
    };
    context
        .output
        .done(json!({ "secret": token.reveal(), "file": file }), || token.reveal().to_owned());
    Ok(0)
}
