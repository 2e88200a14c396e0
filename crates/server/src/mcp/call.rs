//! One call of a tool: its session, and how it waits.

use super::answer::Refused;
use super::session::Session;
use rmcp::RoleServer;
use rmcp::model::ProgressNotificationParam;
use rmcp::service::RequestContext;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tenure::core::Resource;
use tenure::place::PathError;
use tenure::{Client, Wait};
use tenure_frontend::naming;
use tokio::sync::watch;

/// The longest wait; an agent that needs more calls again.
const WAIT_MAX: Duration = Duration::from_secs(3600);

/// A call of a tool.
pub(super) struct Call {
    pub(super) session: Arc<Session>,
    /// The client with the agent's label.
    pub(super) client: Client,
    pub(super) context: RequestContext<RoleServer>,
}

/// What a waiting call knows, as text, and since when it waits.
#[derive(Clone, Debug, Default)]
pub(super) struct Progress {
    pub(super) waited: Duration,
    pub(super) words: String,
}

impl Call {
    /// Waits for `future`, reports progress to the agent and renews what it holds. `None` if the
    /// agent cancelled: then the caller cleans up after the future.
    pub(super) async fn wait<T>(
        &self,
        future: &mut Pin<Box<dyn Future<Output = T> + Send>>,
        mut told: watch::Receiver<Progress>,
        limit: Duration,
    ) -> Option<T> {
        let mut renewals = tokio::time::interval(self.session.options.renewal_interval());
        renewals.tick().await;
        let mut telling = true;
        loop {
            tokio::select! {
                biased;
                output = &mut *future => return Some(output),
                () = self.context.ct.cancelled() => return None,
                () = self.session.ended() => return None,
                changed = told.changed(), if telling => match changed {
                    Ok(()) => {
                        let progress = told.borrow_and_update().clone();
                        self.tell(progress, limit).await;
                    }
                    Err(_) => telling = false,
                },
                // If the store fails now, the wait itself will report it.
                _ = renewals.tick() => drop(self.session.renew().await),
            }
        }
    }

    /// Whether the agent no longer waits for the result.
    pub(super) fn is_cancelled(&self) -> bool {
        self.context.ct.is_cancelled()
    }

    /// Reports the progress of a wait to the agent, if it asked for that.
    async fn tell(&self, progress: Progress, limit: Duration) {
        let Some(token) = self.context.meta.get_progress_token() else { return };
        let param = ProgressNotificationParam::new(token, progress.waited.as_secs_f64())
            .with_total(limit.as_secs_f64())
            .with_message(progress.words);
        // An agent that is gone needs no progress.
        let _ = self.context.peer.notify_progress(param).await;
    }

    fn resource(&self, written: &str) -> Result<Resource, PathError> {
        let options = &self.session.options;
        naming::requested(options.place.as_ref(), options.files, self.client.dialect(), written)
    }

    /// The resources that an agent asks for; a task can be named by the beginning of its id or by
    /// its title.
    pub(super) async fn wanted(&self, written: &[String]) -> Result<Vec<Resource>, Refused> {
        let named = written.iter().map(|written| self.resource(written).map_err(unclear));
        Ok(self.client.resolve(named.collect::<Result<_, _>>()?).await?)
    }

    /// The resources that an agent looks at or gives up: also a lock that was taken under a name
    /// that looks like a path.
    pub(super) async fn resources(&self, written: &[String]) -> Result<Vec<Resource>, Refused> {
        let mut named = Vec::new();
        for written in written {
            let meant = naming::accept_in_use(&self.client, self.resource(written)).await?;
            named.push(meant.map_err(unclear)?);
        }
        Ok(self.client.resolve(named).await?)
    }

    /// The globs of a new task's files, relative to the root.
    pub(super) fn task_globs(&self, written: &[String]) -> Result<Vec<String>, Refused> {
        let options = &self.session.options;
        let glob = |text: &String| naming::task_glob(options.place.as_ref(), options.files, text);
        written.iter().map(|text| glob(text).map_err(unclear)).collect()
    }
}

fn unclear(error: PathError) -> Refused {
    Refused::usage(error.to_string())
}

/// The longest wait that an agent asked for.
pub(super) fn limit(seconds: Option<f64>) -> Result<Duration, Refused> {
    let seconds = seconds.unwrap_or(0.0);
    Duration::try_from_secs_f64(seconds).map(|limit| limit.min(WAIT_MAX)).map_err(|_| {
        Refused::usage(format!("wait_seconds must be between 0 and {}", WAIT_MAX.as_secs()))
    })
}

/// The wait limit for a request.
pub(super) fn patience(limit: Duration) -> Wait {
    if limit.is_zero() { Wait::No } else { Wait::UpTo(limit) }
}
