//! One loop that follows the store for all who watch: a hundred open pages cost about as much as
//! one. It begins with the first and ends with the last of them.

use super::snapshot::{self, PageState};
use crate::app::App;
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use tenure::core::{Event, Revision};
use tenure::{Client, Error};
use tenure_frontend::view;
use tokio::sync::{Mutex, broadcast};
use tokio::time::Instant;

/// The shortest time between two messages: people cannot follow more.
const PACE: Duration = Duration::from_millis(250);

/// How long after the store could not be read it is tried again.
const TRY_AGAIN: Duration = Duration::from_secs(1);

/// How many events one message carries at most: of more, the newest. The page then loads its tasks
/// again.
pub(super) const EVENTS_MAX: u32 = 1000;

/// How many messages a slow page may be behind before it has to look for itself what it missed.
const BEHIND_MAX: usize = 16;

/// What is sent to all who watch.
pub(super) struct News {
    /// Up to which change this tells.
    pub revision: Revision,
    /// That some events are missing before those of this message.
    pub gap: Option<String>,
    /// All messages, in order; the snapshot is the last, and without its role.
    pub tasks: Option<String>,
    pub events: Option<String>,
    pub snapshot: String,
}

/// The way to the loop, whether it runs or not.
#[derive(Clone)]
pub(super) struct Tail {
    app: App,
    running: Arc<Mutex<Option<broadcast::Sender<Arc<News>>>>>,
}

impl Tail {
    pub(super) fn new(app: App) -> Tail {
        Tail { app, running: Arc::default() }
    }

    /// Hears of every change after this call returned, and perhaps of some before.
    pub(super) async fn listen(&self) -> Result<broadcast::Receiver<Arc<News>>, Error> {
        let mut running = self.running.lock().await;
        if let Some(sender) = &*running {
            return Ok(sender.subscribe());
        }
        // Before the caller takes its own first look: what comes in between is then told twice,
        // and never missed.
        let from = self.app.client.changed(Revision::default(), Duration::ZERO).await?;
        let (sender, receiver) = broadcast::channel(BEHIND_MAX);
        *running = Some(sender.clone());
        tokio::spawn(self.clone().follow(sender, from));
        Ok(receiver)
    }

    async fn follow(self, sender: broadcast::Sender<Arc<News>>, mut from: Revision) {
        let mut last: Option<PageState> = None;
        let mut due = Instant::now();
        while !self.is_over(&sender).await {
            let patience = due.saturating_duration_since(Instant::now());
            let begun = Instant::now();
            match self.next(from, patience).await {
                Ok((news, snapshot)) => {
                    from = news.revision;
                    due = Instant::now() + snapshot.fresh_for;
                    last = Some(snapshot);
                    // Without listeners this fails, and the loop ends above.
                    let _ = sender.send(Arc::new(news));
                }
                Err(error) => {
                    if let Some(news) = trouble(last.as_mut(), from, &error) {
                        let _ = sender.send(Arc::new(news));
                    }
                    tokio::time::sleep(TRY_AGAIN).await;
                }
            }
            let rest = PACE.saturating_sub(begun.elapsed().saturating_sub(patience));
            tokio::time::sleep(rest).await;
        }
    }

    /// Whether the last listener has gone. None can join meanwhile: listening takes the same lock.
    async fn is_over(&self, sender: &broadcast::Sender<Arc<News>>) -> bool {
        let mut running = self.running.lock().await;
        let is_over = sender.receiver_count() == 0;
        if is_over {
            *running = None;
        }
        is_over
    }

    /// What there is to tell as soon as something changed, or when patience ends.
    async fn next(&self, from: Revision, patience: Duration) -> Result<(News, PageState), Error> {
        let reached = self.app.client.changed(from, patience).await?;
        let recent = Recent::after(&self.app.client, from).await?;
        let events = &recent.events;
        let snapshot = snapshot::take(&self.app).await?;
        let tasks = snapshot::touched(&self.app, events).await?;
        let news = News {
            // All events up to there have been read, and there may be none.
            revision: events.last().map_or(reached, |event| event.revision.max(reached)),
            gap: recent.gap.as_ref().map(Gap::text),
            tasks: tasks.map(|tasks| tasks.to_string()),
            events: recent.text(),
            snapshot: snapshot.body.to_string(),
        };
        Ok((news, snapshot))
    }
}

/// Why events are missing after the one that a watcher heard of last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WhyGap {
    /// More happened than one message carries; `/v1/events` has the rest.
    TooMany,
    /// The store keeps no events that are so old.
    Trimmed,
    /// The store has no event that is so new: it is another one, or was restored from a backup.
    UnknownId,
}

/// That events are missing after the one that a watcher heard of last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Gap {
    after: Revision,
    why: WhyGap,
}

impl Gap {
    /// The gap as a message.
    pub(super) fn text(&self) -> String {
        let why = match self.why {
            WhyGap::TooMany => "too_many",
            WhyGap::Trimmed => "trimmed",
            WhyGap::UnknownId => "unknown_id",
        };
        json!({ "after": self.after.0, "why": why }).to_string()
    }
}

/// What happened since a revision; of very much, the newest.
pub(super) struct Recent {
    pub(super) events: Vec<Event>,
    /// That older ones were left out.
    pub(super) gap: Option<Gap>,
}

impl Recent {
    pub(super) async fn after(client: &Client, from: Revision) -> Result<Recent, Error> {
        let mut events = client.events(from, EVENTS_MAX).await?;
        let mut gap = None;
        if events.len() >= EVENTS_MAX as usize {
            events = client.newest_events(EVENTS_MAX).await?;
            let is_whole = events.first().is_none_or(|first| first.revision <= from);
            gap = (!is_whole).then_some(Gap { after: from, why: WhyGap::TooMany });
            events.retain(|event| event.revision > from);
        }
        if !events.is_empty() && client.may_lack_events_after(from).await? {
            gap = Some(Gap { after: from, why: WhyGap::Trimmed });
        }
        Ok(Recent { events, gap })
    }

    /// As [`Recent::after`], for a watcher that comes back and may have been away for long. `newest` is
    /// the newest revision of the store.
    pub(super) async fn resumed(
        client: &Client,
        from: Revision,
        newest: Revision,
    ) -> Result<Recent, Error> {
        if from > newest && from > client.changed(Revision::default(), Duration::ZERO).await? {
            let events = client.newest_events(EVENTS_MAX).await?;
            return Ok(Recent { events, gap: Some(Gap { after: from, why: WhyGap::UnknownId }) });
        }
        Recent::after(client, from).await
    }

    /// The events as a message; none if there are none.
    pub(super) fn text(&self) -> Option<String> {
        let shown: Vec<view::Event> = self.events.iter().map(view::Event::from).collect();
        let message = json!({ "events": shown, "skipped": self.gap.is_some() });
        (!self.events.is_empty()).then(|| message.to_string())
    }
}

/// What was last seen, marked as out of order.
fn trouble(last: Option<&mut PageState>, from: Revision, error: &Error) -> Option<News> {
    let last = last?;
    last.body["health"]["ok"] = json!(false);
    last.body["health"]["problem"] = json!(error.to_string());
    let snapshot = last.body.to_string();
    Some(News { revision: from, gap: None, tasks: None, events: None, snapshot })
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn runs(tail: &Tail) -> bool {
        tail.running.lock().await.is_some()
    }

    #[tokio::test]
    async fn all_who_watch_share_one_loop_which_ends_with_the_last() {
        let client = Client::open("memory:").await.unwrap();
        let tail = Tail::new(App::new(client.clone()));
        assert!(!runs(&tail).await);
        let first = tail.listen().await.unwrap();
        let mut second = tail.listen().await.unwrap();
        assert!(first.same_channel(&second));
        second.recv().await.unwrap();
        drop(first);
        let held = client.acquire("deploy").await.unwrap();
        second.recv().await.unwrap();
        drop(second);
        held.release().await.unwrap();
        while runs(&tail).await {
            tokio::time::sleep(PACE).await;
        }
        tail.listen().await.unwrap().recv().await.unwrap();
    }
}
