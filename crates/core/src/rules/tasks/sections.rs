//! Describing sections.

use crate::decision::{Change, Decision, Write};
use crate::event::{EventKind, NewEvent};
use crate::resource::ResourceError;
use crate::rules::tasks::add::find_cycle;
use crate::snapshot::Snapshot;
use crate::task::{PRIORITY_MAX, Section};
use serde::{Deserialize, Deserializer, Serialize};

/// New values of a section's fields; none leaves a field as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SectionChange {
    /// How many runners may work in it at once; an inner none means any number.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub max_runners: Option<Option<u32>>,
    /// Lower goes first.
    pub priority: Option<u8>,
    /// Among equals of priority, lower goes first.
    pub position: Option<i64>,
    /// Sections that must be done before; each must be there.
    pub depends_on: Option<Vec<String>>,
    /// Whether nothing of it is handed out for now.
    pub paused: Option<bool>,
}

/// What is there was said, even if it is nothing.
fn present<'de, D: Deserializer<'de>>(source: D) -> Result<Option<Option<u32>>, D::Error> {
    Option::<u32>::deserialize(source).map(Some)
}

/// Why no section was changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum SectionError {
    /// A name is not acceptable.
    #[error(transparent)]
    Name(#[from] ResourceError),
    /// It is to wait for a section that is not there.
    #[error("section {name:?} depends on {missing:?}, which does not exist")]
    NoSuchDependency {
        /// Which.
        name: String,
        /// What it names.
        missing: String,
    },
    /// Sections would wait for each other.
    #[error("circular dependency of sections: {} → {}", .cycle.join(" → "), .cycle[0])]
    Cycle {
        /// Each waits for the next, the last for the first.
        cycle: Vec<String>,
    },
    /// The priority is out of bounds.
    #[error(
        "the priority of section {name:?} is {priority}; it must be between 0 and {PRIORITY_MAX}"
    )]
    Priority {
        /// Of which section.
        name: String,
        /// What was given.
        priority: u8,
    },
}

/// Describes a section, new or changed. It may wait for sections that are not there yet, but not
/// for itself.
pub fn put_section(seen: &Snapshot, section: &Section, by: &str) -> Result<Decision, SectionError> {
    put_all(seen, vec![section.clone()], by)
}

/// Changes sections, all or none, creating their records where needed. Returns them as they are
/// now.
pub fn change_sections(
    seen: &Snapshot,
    changes: &[(String, SectionChange)],
    by: &str,
) -> (Decision, Result<Vec<Section>, SectionError>) {
    let changed: Result<Vec<Section>, SectionError> =
        changes.iter().map(|(name, change)| changed(seen, changes, name, change)).collect();
    let decided = changed.and_then(|sections| Ok((put_all(seen, sections.clone(), by)?, sections)));
    match decided {
        Ok((decision, sections)) => (decision, Ok(sections)),
        Err(error) => (Decision::Nothing, Err(error)),
    }
}

fn changed(
    seen: &Snapshot,
    changes: &[(String, SectionChange)],
    name: &str,
    change: &SectionChange,
) -> Result<Section, SectionError> {
    let mut section = seen.section(name);
    let known = |name: &String| {
        seen.sections.iter().any(|seen| seen.section.name == *name)
            || changes.iter().any(|(other, _)| other == name)
    };
    if let Some(depends_on) = &change.depends_on {
        if let Some(missing) = depends_on.iter().find(|name| !known(name)) {
            let (name, missing) = (name.to_owned(), missing.clone());
            return Err(SectionError::NoSuchDependency { name, missing });
        }
        section.depends_on = depends_on.clone();
        section.depends_on.sort();
        section.depends_on.dedup();
    }
    section.max_runners = change.max_runners.unwrap_or(section.max_runners);
    section.priority = change.priority.unwrap_or(section.priority);
    section.position = change.position.unwrap_or(section.position);
    section.paused = change.paused.unwrap_or(section.paused);
    Ok(section)
}

pub(super) fn put_all(
    seen: &Snapshot,
    sections: Vec<Section>,
    by: &str,
) -> Result<Decision, SectionError> {
    for section in &sections {
        section.resource()?;
        if section.priority > PRIORITY_MAX {
            let (name, priority) = (section.name.clone(), section.priority);
            return Err(SectionError::Priority { name, priority });
        }
    }
    refuse_cycles(seen, &sections)?;
    let events = sections.iter().map(|section| NewEvent {
        resource: section.resource().ok(),
        label: by.to_owned(),
        token: None,
        kind: event(seen, section),
        actor: None,
        at: None,
    });
    let events = events.collect();
    let writes = sections.into_iter().map(Write::Section).collect();
    Ok(Change { writes, events, durable: true, ..Change::default() }.decide())
}

fn event(seen: &Snapshot, section: &Section) -> EventKind {
    match (seen.section(&section.name).paused, section.paused) {
        (false, true) => EventKind::Paused,
        (true, false) => EventKind::Resumed,
        _ => EventKind::Updated,
    }
}

fn refuse_cycles(seen: &Snapshot, sections: &[Section]) -> Result<(), SectionError> {
    let next = |name: &String| -> Vec<String> {
        let new = sections.iter().find(|section| section.name == *name);
        new.map_or_else(|| seen.section(name).depends_on, |section| section.depends_on.clone())
    };
    match find_cycle(sections.iter().map(|section| section.name.clone()), next) {
        Some(cycle) => Err(SectionError::Cycle { cycle }),
        None => Ok(()),
    }
}
