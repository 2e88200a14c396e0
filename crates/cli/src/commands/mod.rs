//! One file per command, named like it.

pub(crate) mod acquire;
pub(crate) mod append;
pub(crate) mod bench;
pub(crate) mod breaking;
pub(crate) mod completions;
pub(crate) mod config;
pub(crate) mod doctor;
pub(crate) mod events;
pub(crate) mod init;
pub(crate) mod locks;
pub(crate) mod man;
pub(crate) mod mcp;
pub(crate) mod release;
pub(crate) mod renew;
pub(crate) mod run;
pub(crate) mod sections;
pub(crate) mod selftest;
pub(crate) mod serve;
pub(crate) mod status;
pub(crate) mod swarm;
pub(crate) mod task_files;
pub(crate) mod tasks;
pub(crate) mod token;
pub(crate) mod top;
pub(crate) mod update;
pub(crate) mod verify;
pub(crate) mod wait;
pub(crate) mod why;
pub(crate) mod work;

use crate::context::Context;
use crate::failure::Failure;
use clap::Args;
use tenure::core::{GrantId, Proof};

/// What shows that a hold is the caller's.
#[derive(Debug, Args)]
pub(crate) struct ProofArgs {
    /// The grant that `acquire` printed; by default the one this command runs under, else what
    /// you hold under the label given by --as
    #[arg(long, value_name = "GRANT")]
    pub(crate) grant: Option<GrantId>,
}

impl ProofArgs {
    pub(crate) fn proof(&self, context: &Context) -> Result<Proof, Failure> {
        if let Some(grant) = self.grant {
            return Ok(Proof::Grant(grant));
        }
        if let Some(label) = context.chosen_label() {
            return Ok(Proof::Label(label.to_owned()));
        }
        if let Some(grant) = context.own_grant() {
            return Ok(Proof::Grant(grant));
        }
        Err(Failure::usage("nothing shows that it is yours").hint(
            "Give the grant that `tenure acquire` printed with --grant, or your label with --as.",
        ))
    }
}
