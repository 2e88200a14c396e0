//! `tenure token list`: lists tokens without their secrets.

use crate::context::Context;
use crate::failure::Failure;
use crate::show;
use clap::Args;
use serde_json::{Value, json};
use tenure::world::{Clock, SystemClock};
use tenure_server::http::tokens::{Token, TokenFile};

/// List all tokens, without their secrets
#[derive(Debug, Args)]
pub(crate) struct ListArgs {}

pub(super) fn run(context: &Context, file: &TokenFile, _: ListArgs) -> Result<i32, Failure> {
    let tokens = file.read()?.unwrap_or_default();
    let now = SystemClock.wall();
    let data: Vec<Value> = tokens
        .iter()
        .map(|token| {
            json!({
                "name": token.name,
                "role": token.role,
                "created_at": show::time(token.created_at),
                "expires_at": token.expires_at.map(show::time),
                "expired": token.is_expired(now),
                "as": token.labels,
            })
        })
        .collect();
    context.output.done(json!({ "tokens": data, "file": file.path() }), || {
        if tokens.is_empty() {
            return "No tokens".to_owned();
        }
        let header = ["NAME", "ROLE", "MADE", "EXPIRES", "AS"].map(str::to_owned);
        let expires = |token: &Token| match token.expires_at {
            Some(_) if token.is_expired(now) => "expired".to_owned(),
            Some(at) => show::time(at),
            None => "never".to_owned(),
        };
        let rows = tokens.iter().map(|token| {
            let made = show::time(token.created_at);
            let labels = match token.labels.admit_all() {
                true => "any label".to_owned(),
                false => token.labels.to_string(),
            };
            [token.name.clone(), token.role.to_string(), made, expires(token), labels]
        });
        show::table(&std::iter::once(header).chain(rows).collect::<Vec<_>>())
    });
    Ok(0)
}
