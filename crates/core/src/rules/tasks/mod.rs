//! The rules of tasks: adding, claiming, finishing, recovering, changing by hand.

mod add;
mod call_off;
mod claim;
mod claim_place;
mod edit;
mod finish;
mod finish_all;
mod heartbeat;
mod idle;
mod import;
mod judged_claims;
mod note;
mod parts;
mod recover;
mod retire;
mod sections;

pub use add::{AddAsk, AddError, Added, NewTask, add};
pub use call_off::call_off_claim;
pub use claim::{ClaimAsk, Claimed, NoClaim, claim, why_not};
pub use claim_place::TaskWait;
pub use edit::{EditAsk, EditError, ManualChange, TaskChange, delete, edit};
pub use finish::{Finish, FinishAsk, Finished, finish, start};
pub use finish_all::{finish_all, finish_all_look};
pub use heartbeat::{Heartbeat, HeartbeatAsk, heartbeat};
pub use idle::{idle_look, leave_idle_sections};
pub use import::{ImportAsk, Imported, import};
pub use judged_claims::JudgedClaims;
pub use note::{AddNote, DescribeTry, add_note, describe_try};
pub use parts::{ClaimState, belongs_to_lost_claim, claim_state, claims_look, hold_of};
pub use recover::recover;
pub use retire::{RetireAsk, retire};
pub use sections::{SectionChange, SectionError, change_sections, put_section};

use crate::snapshot::Snapshot;
use crate::task::{Task, TaskId};

/// The name of the section that stands for all of them, when everything is paused.
pub const EVERYTHING: &str = "*";

/// Those that wait for `task`, with one thing less, or more, to wait for.
fn dependents_after(seen: &Snapshot, task: &TaskId, satisfied: bool) -> Vec<Task> {
    let waiting = seen.tasks.iter().filter(|other| other.depends_on.contains(task));
    waiting
        .map(|other| {
            let mut other = other.clone();
            other.unmet = match satisfied {
                true => other.unmet.saturating_sub(1),
                false => other.unmet + 1,
            };
            other
        })
        .collect()
}
