//! What a command needs from its surroundings: settings, the store, the label.

use crate::args::Global;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::Output;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tenure::config::{Key, Origin, Settings, Sources};
use tenure::core::{GrantId, Kind, Resource};
use tenure::place::{self, Place, Surroundings};
use tenure::{Client, ClientBuilder, Wait};

/// The surroundings of one command.
pub(crate) struct Context {
    pub(crate) output: Output,
    pub(crate) settings: Settings,
    pub(crate) sources: Sources,
    pub(crate) no_wait: bool,
    place: Result<Place, place::PlaceError>,
}

/// Whether there is a store, or what is left of one, which the library tells apart.
fn is_there(path: &str) -> bool {
    Path::new(path).exists() || Path::new(&format!("{path}-wal")).exists()
}

/// The folder that a database is in.
fn folder(database: &str) -> &Path {
    Path::new(database).parent().unwrap_or(Path::new("."))
}

/// Grants that commands around this one keep while it runs, separated by commas.
pub(crate) const KEEPS_VARIABLE: &str = "TENURE_KEEPS";

/// The grant under which this command was started.
pub(crate) const GRANT_VARIABLE: &str = "TENURE_GRANT";

impl Context {
    pub(crate) fn new(global: &Global, output: Output) -> Result<Context, Failure> {
        let place = std::env::current_dir()
            .map_err(|error| {
                Failure::new(
                    Exit::Configuration,
                    "DIRECTORY",
                    format!("the current folder cannot be used: {error}"),
                )
            })
            .map(|directory| place::find(&Surroundings::of_process(directory)))?;
        let mut sources = Sources::of_process()?;
        sources.explicit_file = global.config.clone();
        sources.project_file = place.as_ref().ok().map(Place::config_file);
        let mut flag = |key: Key, value: &Option<String>| {
            if let Some(value) = value {
                sources.flags.push((key.name().to_owned(), value.clone()));
            }
        };
        flag(Key::Store, &global.store);
        flag(Key::Agent, &global.label);
        let settings = Settings::load(&sources)?;
        Ok(Context { output, settings, sources, no_wait: global.no_wait, place })
    }

    /// Where the default store lives.
    pub(crate) fn place(&self) -> Result<&Place, Failure> {
        self.place.as_ref().map_err(|error| {
            let failure = Failure::new(Exit::Configuration, "STORE_PLACE", error.to_string());
            failure.hint(error.hint())
        })
    }

    /// The store's URL, with its path made absolute so that it can be handed to children.
    pub(crate) fn store_url(&self) -> Result<String, Failure> {
        let Some(url) = self.settings.text(Key::Store) else {
            return Ok(format!("sqlite:{}", self.place()?.database().display()));
        };
        match url.strip_prefix("sqlite:") {
            Some(path) if !path.is_empty() => {
                Ok(format!("sqlite:{}", self.absolute(Path::new(path)).display()))
            }
            _ => Ok(url.to_owned()),
        }
    }

    /// A path in a settings file is relative to that file's folder's parent for a project file in
    /// `.tenure/`, and elsewhere to the current folder: that is what its writer saw.
    fn absolute(&self, path: &Path) -> PathBuf {
        let base = match &self.settings.setting(Key::Store).origin {
            Origin::File(file) => file.parent().and_then(Path::parent).map(Path::to_owned),
            _ => None,
        };
        let base = base.or_else(|| std::env::current_dir().ok()).unwrap_or_default();
        base.join(path)
    }

    /// A client for commands that change something; makes the default store if there is none.
    pub(crate) async fn client(&self) -> Result<Client, Failure> {
        self.changing(true).await
    }

    /// The same, for commands that go on for long.
    pub(crate) async fn worker_client(&self) -> Result<Client, Failure> {
        self.changing(false).await
    }

    async fn changing(&self, one_shot: bool) -> Result<Client, Failure> {
        let url = self.store_url()?;
        if url.starts_with("memory:") {
            let message = "a store in memory ends with this command: nobody else could see it";
            return Err(Failure::new(Exit::Configuration, "STORE_URL", message)
                .hint("Use sqlite:PATH; memory: is for programs that use the library."));
        }
        if let Some(path) = url.strip_prefix("sqlite:") {
            if self.settings.text(Key::Store).is_none() {
                self.place()?.prepare()?;
            }
            place::check_file_system(folder(path))?;
        }
        let builder = self.builder();
        let builder = if one_shot { builder.one_shot() } else { builder };
        Ok(builder.open(&url).await?)
    }

    /// A client for commands that only look: where there is no store yet, nothing is held.
    pub(crate) async fn reader(&self) -> Result<Client, Failure> {
        let default = self.settings.text(Key::Store).is_none();
        if default && !self.place()?.database().exists() {
            self.output.detail("There is no store here yet.");
            return Ok(self.builder().open("memory:").await?);
        }
        self.refuse_missing()?;
        let url = self.store_url()?;
        let Some(path) = url.strip_prefix("sqlite:") else { return self.client().await };
        match place::check_file_system(folder(path)) {
            // Who only looks needs no lock there.
            Ok(_) | Err(place::PlaceError::ReadOnly { .. }) => {}
            Err(error) => return Err(error.into()),
        }
        Ok(self.builder().one_shot().look_only().open(&url).await?)
    }

    /// Whoever only looks at a store that was named must not make one by a slip of the pen.
    fn refuse_missing(&self) -> Result<(), Failure> {
        let url = self.store_url()?;
        let named = self.settings.text(Key::Store).is_some();
        match url.strip_prefix("sqlite:") {
            Some(path) if !path.is_empty() && named && !is_there(path) => {
                let message = format!("there is no store at {url}");
                Err(Failure::new(Exit::Configuration, "NO_STORE", message)
                    .hint("Check the path; `tenure init` with the same --store makes it."))
            }
            _ => Ok(()),
        }
    }

    /// Opens clients with the settings and the label.
    fn builder(&self) -> ClientBuilder {
        let builder = Client::builder()
            .poll_interval(self.settings.duration(Key::PollInterval))
            .recoveries_max(self.settings.integer(Key::MaxRecoveries));
        match self.chosen_label() {
            Some(label) => builder.label(label),
            None => builder,
        }
    }

    /// The label that the caller chose, if any.
    pub(crate) fn chosen_label(&self) -> Option<&str> {
        self.settings.text(Key::Agent)
    }

    /// The grant under which this command runs, if it was started by `tenure run`.
    pub(crate) fn own_grant(&self) -> Option<GrantId> {
        self.variable(GRANT_VARIABLE)?.parse().ok()
    }

    /// The grants that those around this command keep while it runs.
    pub(crate) fn kept_grants(&self) -> Vec<GrantId> {
        let list = self.variable(KEEPS_VARIABLE).unwrap_or_default();
        list.split(',').filter_map(|grant| grant.parse().ok()).collect()
    }

    #[expect(clippy::disallowed_methods, reason = "set by an outer tenure, not settings")]
    fn variable(&self, name: &str) -> Option<String> {
        std::env::var(name).ok()
    }

    /// How long to wait: what was said, else for ever in front of a person, else the setting.
    pub(crate) fn wait(&self, no_wait: bool, limit: Option<Duration>) -> Wait {
        if no_wait || self.no_wait || limit.is_some_and(|limit| limit.is_zero()) {
            return Wait::No;
        }
        if let Some(limit) = limit {
            return Wait::UpTo(limit);
        }
        let untouched = self.settings.setting(Key::WaitTimeout).origin == Origin::BuiltIn;
        if untouched && std::io::IsTerminal::is_terminal(&std::io::stderr()) {
            return Wait::Forever;
        }
        Wait::UpTo(self.settings.duration(Key::WaitTimeout))
    }

    /// The usual lease of a detached hold of these resources: that of the shortest kind.
    pub(crate) fn detached_lease(&self, resources: &[Resource]) -> Duration {
        let lease = |resource: &Resource| {
            self.settings.duration(match resource.kind() {
                Kind::Task => Key::TaskTimeout,
                Kind::Section => Key::SectionTimeout,
                Kind::Lock | Kind::Path => Key::LockTimeout,
            })
        };
        resources.iter().map(lease).min().unwrap_or(Duration::from_secs(3600))
    }
}
