//! What shows that a claimed task is the caller's, and under which grant its section is kept.

use crate::commands::ProofArgs;
use crate::context::Context;
use crate::failure::Failure;
use clap::Args;
use tenure::Client;
use tenure::core::{GrantId, HoldSnapshot, Proof, Task, Token};
use tenure_frontend::refusal::Refusal;

/// A task that the caller claimed.
#[derive(Debug, Args)]
pub(super) struct OwnArgs {
    /// Id, unique beginning of an id, or exact title
    #[arg(value_name = "TASK")]
    pub(super) task: String,
    #[command(flatten)]
    pub(super) proof: ProofArgs,
    /// The token of your claim: refused if the task was claimed again since
    #[arg(long, value_name = "N", value_parser = crate::args::numbers::token)]
    token: Option<u64>,
}

impl OwnArgs {
    /// This task, proved by the grant or else by what surrounds the command.
    pub(super) fn new(task: &Task, grant: Option<GrantId>) -> OwnArgs {
        OwnArgs { task: task.id.to_string(), proof: ProofArgs { grant }, token: None }
    }

    pub(super) fn token(&self) -> Option<Token> {
        self.token.map(Token)
    }
}

/// What the caller can show for a task.
pub(super) struct Own {
    /// Shows that it is the caller's; whether that is so, the rules decide.
    pub(super) proof: Proof,
    /// Under which grant its worker keeps its section.
    pub(super) runner: Option<GrantId>,
}

/// The grant under which a worker keeps its section from one command to the next. It is made of
/// the label because nothing else lasts from command to command, and it needs to be no secret: a
/// label that was chosen may stand in for a grant everywhere.
pub(crate) fn runner_grant(label: &str) -> GrantId {
    // FNV-1a, twice from different starts. It must be the same in every version and on every
    // machine, which the hashes of the standard library do not promise.
    let hash = |start: u64| {
        label
            .bytes()
            .fold(start, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
    };
    let (high, low) = (hash(0xcbf2_9ce4_8422_2325), hash(0x7465_6e75_7265_0001));
    GrantId::from_bits(u128::from(high) << 64 | u128::from(low))
}

/// The hold by which somebody has this task now.
pub(super) async fn hold_of(client: &Client, task: &Task) -> Result<Option<HoldSnapshot>, Failure> {
    let seen = client.look(&[task.id.resource()]).await?;
    Ok(super::show::hold_of(task, &seen.holds).cloned())
}

/// What the caller can show for this task: of all that it has, what fits the task's hold.
pub(super) async fn own(
    context: &Context,
    client: &Client,
    task: &Task,
    args: &ProofArgs,
) -> Result<Own, Failure> {
    let hold = hold_of(client, task).await?;
    let own_grant = context.own_grant().filter(|_| args.grant.is_none()).map(Proof::Grant);
    let fits = |proof: &Proof| hold.as_ref().is_some_and(|seen| proof.recognises(seen));
    // A command inside a worker has both the worker's grant and perhaps another label.
    let proof = match own_grant.filter(fits) {
        Some(proof) => proof,
        None => args.proof(context).map_err(|failure| {
            failure.hint(
                "Give the grant that `tenure tasks claim` printed with --grant, or your label \
                 with --as.",
            )
        })?,
    };
    let chosen = hold.filter(|seen| seen.hold.holder.chosen);
    let runner = chosen.map(|seen| runner_grant(&seen.hold.holder.label));
    Ok(Own { proof, runner })
}

/// The caller does not have the task any more. Nothing was changed.
pub(super) fn late(task: &Task, token: Option<Token>) -> Failure {
    Refusal::late(task, token).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_has_the_same_runner_grant_in_every_version() {
        let grant = runner_grant("alice").to_string();
        assert_eq!(grant, "508b2abb-65a0-3907-68fa-5652a6d5cd5b");
        assert_ne!(runner_grant("alice"), runner_grant("bob"));
    }
}
