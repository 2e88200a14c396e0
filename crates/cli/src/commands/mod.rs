//! One file per command, named after it.

pub(crate) mod acquire;
pub(crate) mod append;
pub(crate) mod backup;
pub(crate) mod break_hold;
pub(crate) mod completions;
pub(crate) mod config;
pub(crate) mod doctor;
pub(crate) mod events;
pub(crate) mod gc;
pub(crate) mod guard;
pub(crate) mod hook;
pub(crate) mod init;
pub(crate) mod locks;
pub(crate) mod man;
pub(crate) mod mcp;
pub(crate) mod migrate;
pub(crate) mod mine;
pub(crate) mod prime;
pub(crate) mod release;
pub(crate) mod renew;
pub(crate) mod restore;
pub(crate) mod run;
pub(crate) mod sections;
pub(crate) mod selftest;
pub(crate) mod serve;
pub(crate) mod setup;
pub(crate) mod status;
pub(crate) mod store;
pub(crate) mod swarm;
pub(crate) mod task_files;
pub(crate) mod tasks;
pub(crate) mod token;
pub(crate) mod top;
pub(crate) mod trust;
pub(crate) mod update;
pub(crate) mod verify;
pub(crate) mod wait;
pub(crate) mod whoami;
pub(crate) mod why;
pub(crate) mod work;
pub(crate) mod workers;

use crate::context::Context;
use crate::failure::Failure;
use clap::Args;
use tenure::Client;
use tenure::core::{GrantId, Proof, Resource};

/// Options that prove ownership of a hold.
#[derive(Debug, Args)]
pub(crate) struct ProofArgs {
    /// The grant that proves ownership; by default the grant of the enclosing `tenure run`, else
    /// your label (see `tenure whoami`)
    #[arg(long, value_name = "GRANT")]
    pub(crate) grant: Option<GrantId>,
}

impl ProofArgs {
    pub(crate) fn proof(&self, context: &Context) -> Result<Proof, Failure> {
        self.candidates(context).into_iter().next().ok_or_else(unproved)
    }

    /// The proof that matches a hold of these resources, or else the first one.
    pub(crate) async fn proof_for(
        &self,
        context: &Context,
        client: &Client,
        resources: &[Resource],
    ) -> Result<Proof, Failure> {
        let mut candidates = self.candidates(context);
        if candidates.len() > 1 && !resources.is_empty() {
            let holds = client.look(resources).await?.holds;
            candidates.sort_by_key(|proof| !holds.iter().any(|seen| proof.recognises(seen)));
        }
        candidates.into_iter().next().ok_or_else(unproved)
    }

    /// All proofs of the caller in order of precedence: the options, the grant of the enclosing
    /// command, the label.
    fn candidates(&self, context: &Context) -> Vec<Proof> {
        let label = || context.own_label().map(|label| Proof::Label(label.to_owned()));
        if let Some(grant) = self.grant {
            return vec![Proof::Grant(grant)];
        }
        if context.is_label_explicit() {
            return label().into_iter().collect();
        }
        context.enclosing_grant().map(Proof::Grant).into_iter().chain(label()).collect()
    }
}

fn unproved() -> Failure {
    Failure::usage("No proof of ownership: pass `--grant` or `--as`").hint(
        "`tenure acquire` printed the grant; --as takes the label that you acquired it under. \
         `tenure whoami` shows yours.",
    )
}
