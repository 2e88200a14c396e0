//! The proof that a claimed task is the caller's, and the grant under which its section is kept.

use crate::commands::ProofArgs;
use crate::context::Context;
use crate::failure::Failure;
use clap::Args;
use tenure::Client;
use tenure::agent::runner_grant;
use tenure::core::{GrantId, HoldSnapshot, Proof, Task, Token};
use tenure_frontend::refusal::Refusal;

/// Arguments that name a task of the caller.
#[derive(Debug, Args)]
pub(super) struct OwnTaskArgs {
    /// Id, unique beginning of an id, or exact title
    #[arg(value_name = "TASK")]
    pub(super) task: String,
    #[command(flatten)]
    pub(super) proof: ProofArgs,
    /// The token of your claim: refused if the task was claimed again since
    #[arg(long, value_name = "N", value_parser = crate::args::numbers::token)]
    token: Option<u64>,
}

impl OwnTaskArgs {
    /// This task, proved by the grant, else by the environment of the command.
    pub(super) fn new(task: &Task, grant: Option<GrantId>) -> OwnTaskArgs {
        OwnTaskArgs { task: task.id.to_string(), proof: ProofArgs { grant }, token: None }
    }

    pub(super) fn token(&self) -> Option<Token> {
        self.token.map(Token)
    }
}

/// The caller's proof for a task.
pub(super) struct TaskProof {
    /// The proof; the rules decide whether it holds.
    pub(super) proof: Proof,
    /// The grant under which the worker keeps its section.
    pub(super) runner: Option<GrantId>,
}

/// The current hold of this task, if any.
pub(super) async fn hold_of(client: &Client, task: &Task) -> Result<Option<HoldSnapshot>, Failure> {
    let seen = client.look(&[task.id.resource()]).await?;
    Ok(super::show::hold_of(task, &seen.holds).cloned())
}

/// The caller's proof for a task: the first that matches the task's hold.
pub(super) fn proof_of(
    context: &Context,
    hold: Option<&HoldSnapshot>,
    args: &ProofArgs,
) -> Result<TaskProof, Failure> {
    let own_grant = context.enclosing_grant().filter(|_| args.grant.is_none()).map(Proof::Grant);
    let fits = |proof: &Proof| hold.is_some_and(|seen| proof.recognises(seen));
    // A command inside a worker has the worker's grant and perhaps another label.
    let proof = match own_grant.filter(fits) {
        Some(proof) => proof,
        None => args.proof(context).map_err(|failure| {
            failure.hint(
                "`tenure tasks claim` printed the grant; --as takes the label that you claimed \
                 it under.",
            )
        })?,
    };
    let chosen = hold.filter(|seen| seen.hold.holder.chosen);
    let runner = chosen.map(|seen| runner_grant(&seen.hold.holder.label));
    Ok(TaskProof { proof, runner })
}

/// The caller no longer has the task. Nothing was changed.
pub(super) fn late(task: &Task, token: Option<Token>) -> Failure {
    Refusal::late(task, token).into()
}
