//! Which resources the arguments of a command name: paths from the current folder, tasks by their
//! names, names that look like a path only where they are in use.

use crate::args::ResourceArg;
use crate::context::Context;
use crate::failure::Failure;
use tenure::Client;
use tenure::core::{Kind, Resource};
use tenure::place::{PathError, Reach};
use tenure_frontend::naming::{accept_in_use, without_kind};

impl Context {
    /// The resource that the argument names, to look at it or to give it up. A task can be named by
    /// its id, the beginning of its id, or its title.
    pub(crate) async fn resource(
        &self,
        client: &Client,
        written: &ResourceArg,
    ) -> Result<Resource, Failure> {
        let named = accept_in_use(client, self.meant(written, Reach::AllWorktrees)).await?;
        Ok(client.resolve_one(self.allowed(named?)?).await?)
    }

    /// As [`Context::resource`], for several arguments.
    pub(crate) async fn resources(
        &self,
        client: &Client,
        written: &[ResourceArg],
    ) -> Result<Vec<Resource>, Failure> {
        let mut named = Vec::new();
        for written in written {
            let meant = accept_in_use(client, self.meant(written, Reach::AllWorktrees)).await?;
            named.push(self.allowed(meant?)?);
        }
        Ok(client.resolve(named).await?)
    }

    /// The resource that the argument names, unless the folder has a single lock and this is another.
    fn allowed(&self, resource: Resource) -> Result<Resource, Failure> {
        let only = self.dialect().only_resource();
        match only.filter(|only| resource != *only) {
            Some(only) => Err(Failure::usage(format!(
                "this folder has a single lock, {only}; there is no lock {:?}",
                resource.to_string()
            ))
            .hint(format!("Omit the name, or write {only}."))),
            None => Ok(resource),
        }
    }

    /// The resource as written, before the name of a task is resolved to its id. Names of other
    /// programs' locks are as those programs write them.
    pub(crate) fn meant(&self, written: &ResourceArg, reach: Reach) -> Result<Resource, PathError> {
        let (text, dialect) = (written.text.as_str(), self.dialect());
        if written.is_plain() && !dialect.is_native() {
            return match (dialect.kind_of_names(), self.place()) {
                (Some(Kind::Path), Ok(place)) => {
                    place.resource_from(&self.directory(), &format!("path:{text}"), reach)
                }
                (kind, _) => Ok(Resource::new(kind.unwrap_or(Kind::Lock), text)?),
            };
        }
        match self.place() {
            Ok(place) => place.resource_from(&self.directory(), text, reach),
            // Without a project there is no root that a path could leave.
            Err(_) => Ok(Resource::requested(text)?),
        }
    }

    /// A task's glob relative to the root, from one that was typed in the current folder.
    pub(crate) fn task_glob(&self, typed: &str) -> Result<String, Failure> {
        let written = ResourceArg { text: format!("{}:{}", Kind::Path, without_kind(typed)) };
        Ok(self.meant(&written, Reach::AllWorktrees)?.name().to_owned())
    }

    /// The path from the root to the current folder, in the syntax of globs; empty if paths are
    /// relative to the root.
    pub(crate) fn folder(&self) -> String {
        let place = self.place().ok();
        place.and_then(|place| place.folder_of(&self.directory())).unwrap_or_default()
    }

    /// The resources that the arguments name, to take them: a name that looks like a path is
    /// refused.
    pub(crate) async fn wanted(
        &self,
        client: &Client,
        written: &[ResourceArg],
        reach: Reach,
    ) -> Result<Vec<Resource>, Failure> {
        let named = written.iter().map(|written| self.allowed(self.meant(written, reach)?));
        Ok(client.resolve(named.collect::<Result<_, _>>()?).await?)
    }

    /// As [`Context::wanted`]. Without arguments it is the only lock of the folder, if the folder has
    /// a single one.
    pub(crate) async fn wanted_or_only(
        &self,
        client: &Client,
        written: &[ResourceArg],
        reach: Reach,
    ) -> Result<Vec<Resource>, Failure> {
        match self.only_resource() {
            Some(only) if written.is_empty() => Ok(vec![only]),
            _ if written.is_empty() => Err(no_resource()),
            _ => self.wanted(client, written, reach).await,
        }
    }
}

/// A resource must be named, but none was.
pub(crate) fn no_resource() -> Failure {
    Failure::usage("no resource given")
        .hint("A resource is NAME, section:NAME, task:ID or path:GLOB.")
}
