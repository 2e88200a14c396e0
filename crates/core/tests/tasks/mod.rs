//! The rules of tasks, one file for each.

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
mod note;
mod one_fate;
mod order;
mod parts;
mod recover;
mod retire;
mod sections;
mod why_not;
