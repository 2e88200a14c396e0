//! Which task is meant where a resource is named `task:…`.

use super::Client;
use crate::error::Error;
use tenure_core::{Kind, Resource, Scope, TaskId, TaskScope};

impl Client {
    /// Replaces each task resource that is named by the beginning of an id or by a title with the
    /// task that is meant. All other resources stay as they are.
    ///
    /// In a store that has tasks, a name that means no task is an error: to hold it would exclude
    /// no worker. What is held under exactly this name is meant in any case. Full ids cost one look
    /// for all of them together, and where no task is named there is no look.
    pub async fn resolve(&self, resources: Vec<Resource>) -> Result<Vec<Resource>, Error> {
        let ids: Vec<TaskId> = resources
            .iter()
            .filter(|resource| resource.kind() == Kind::Task)
            .filter_map(|resource| resource.name().parse().ok())
            .collect();
        if ids.is_empty() {
            return Ok(resources);
        }
        let look = Scope::Tasks(TaskScope { ids, ..TaskScope::default() });
        let tasks = self.inner.backend.read(&look).await?.tasks;
        let mut meant = Vec::with_capacity(resources.len());
        for resource in resources {
            let is_known = tasks.iter().any(|task| task.id.resource() == resource);
            meant.push(match resource.kind() == Kind::Task && !is_known {
                true => self.task_meant(resource).await?,
                false => resource,
            });
        }
        Ok(meant)
    }

    /// The same for one resource.
    pub async fn resolve_one(&self, resource: Resource) -> Result<Resource, Error> {
        Ok(self.resolve(vec![resource]).await?.remove(0))
    }

    /// The task that is meant by something else than its full id.
    async fn task_meant(&self, resource: Resource) -> Result<Resource, Error> {
        let seen = self.look(std::slice::from_ref(&resource)).await?;
        if !seen.holds.is_empty() || !seen.waiters.is_empty() {
            return Ok(resource);
        }
        match self.tasks().find_unlike_id(resource.name()).await {
            Ok(task) => Ok(task.id.resource()),
            Err(Error::NoSuchTask { .. }) if !self.has_tasks().await? => Ok(resource),
            Err(error) => Err(error),
        }
    }

    async fn has_tasks(&self) -> Result<bool, Error> {
        Ok(self.tasks().tallies().await?.iter().any(|tally| tally.count > 0))
    }
}
