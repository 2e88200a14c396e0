//! Ready tasks in the order of claims: the first few of each section, without walking over the rest.
//!
//! The servers walk over all keys of a range, whatever the limit. So a handle remembers a key that lies
//! some hundred tasks behind the front of each section, and reads up to there; only where that does not
//! show enough, it reads the whole range and remembers a new one.

use super::base::decode;
use super::connection::{Ask, Page, Pages};
use super::error::Failure;
use super::handle::Handle;
use super::keys::task_at_end;
use crate::store::format::etcd::ReadyRecord;
use std::collections::HashMap;
use tenure_core::{Pick, TaskId};

/// How far behind the front the remembered key lies.
const WINDOW: usize = 256;

/// Among how many ready tasks a claimer chooses at random, once others were faster: all claimers at the
/// very front would go on being in each other's way.
const SPREAD: usize = 16;

/// The keys up to which sections are read first.
pub(super) type Windows = HashMap<Option<String>, String>;

/// The ready tasks of one section that a pick is shown.
#[derive(Default)]
pub(super) struct Picked {
    pub(super) ids: Vec<TaskId>,
    /// Whether there are more.
    pub(super) more: bool,
    /// Whether some were left out that others are taking.
    pub(super) skipped: bool,
}

/// What is picked from one section.
pub(super) struct ReadySection {
    pick: Pick,
    pub(super) section: Option<String>,
    tries: u32,
    is_window: bool,
}

impl ReadySection {
    /// `tries` says how often a claim that looked so was too late.
    pub(super) fn new(pick: &Pick, section: Option<String>, tries: u32) -> ReadySection {
        ReadySection { pick: pick.clone(), section, tries, is_window: false }
    }

    /// Asks for its front: up to the remembered key, if there is one.
    pub(super) fn ask(&mut self, handle: &Handle) -> Ask {
        let mut range = handle.keys.ready_in(self.section.as_deref());
        if let Some(end) = handle.windows.lock().get(&self.section).filter(|_| self.has_window()) {
            range.end.clone_from(end);
            self.is_window = true;
        }
        self.limited(Ask::all(range))
    }

    /// Asks for all of it.
    fn ask_whole(&self, handle: &Handle) -> Ask {
        self.limited(Ask::all(handle.keys.ready_in(self.section.as_deref())))
    }

    fn limited(&self, ask: Ask) -> Ask {
        match self.pick.labels.is_empty() {
            true => ask.keys_only().first(self.shown_at_most().max(WINDOW)),
            // Which of them have the labels is known only when they are read.
            false => ask,
        }
    }

    fn has_window(&self) -> bool {
        self.pick.labels.is_empty() && self.shown_at_most() < WINDOW
    }

    fn shown_at_most(&self) -> usize {
        self.pick.depth.saturating_add(1 + self.spread())
    }

    /// Among how many more than asked for it may be chosen.
    fn spread(&self) -> usize {
        if self.pick.may_skip && self.tries > 0 { SPREAD } else { 0 }
    }

    /// Takes what was found; nothing if the remembered key was too close to the front to tell.
    pub(super) fn take(&self, handle: &Handle, page: &Page) -> Result<Option<Picked>, Failure> {
        let mut fitting = Vec::new();
        for entry in &page.entries {
            if !self.pick.labels.is_empty() {
                let ready: ReadyRecord = decode(entry, handle.url())?;
                if !self.pick.labels.iter().all(|label| ready.labels.contains(label)) {
                    continue;
                }
            }
            fitting.extend(task_at_end(entry.key()));
        }
        if self.is_window && fitting.len() < self.shown_at_most() {
            return Ok(None);
        }
        let beyond = page.count > i64::try_from(page.entries.len()).unwrap_or(i64::MAX);
        if !self.is_window && self.has_window() {
            self.remember(handle, page, beyond);
        }
        let choices = self.spread().min(fitting.len().saturating_sub(self.pick.depth) + 1);
        let first = match choices {
            0 | 1 => 0,
            choices => super::random_below(choices as u64) as usize,
        };
        Ok(Some(Picked {
            more: beyond || fitting.len() > self.pick.depth,
            skipped: first > 0,
            ids: fitting.into_iter().skip(first).take(self.pick.depth).collect(),
        }))
    }

    fn remember(&self, handle: &Handle, page: &Page, beyond: bool) {
        let mut windows = handle.windows.lock();
        match page.entries.last().filter(|_| beyond) {
            Some(last) => {
                let end = String::from_utf8_lossy(last.key()).into_owned();
                windows.insert(self.section.clone(), end);
            }
            None => drop(windows.remove(&self.section)),
        }
    }

    /// Takes what was found, and reads the whole section where that was not enough.
    pub(super) async fn finish(
        &self,
        handle: &Handle,
        pages: &mut Pages,
        revision: i64,
    ) -> Result<Picked, Failure> {
        if let Some(picked) = self.take(handle, &pages.next())? {
            return Ok(picked);
        }
        let whole = ReadySection {
            is_window: false,
            ..ReadySection::new(&self.pick, self.section.clone(), self.tries)
        };
        let asks = [whole.ask_whole(handle)];
        let mut pages = handle.connection.read(&asks, Some(revision)).await?;
        Ok(whole.take(handle, &pages.next())?.unwrap_or_default())
    }
}
