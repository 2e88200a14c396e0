//! The surroundings of a command: settings, the store, the label, the environment.

use crate::args::{FOREVER, Global};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::{self, Output, WARN, styled};
use crate::telemetry;
use std::cell::OnceCell;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tenure::Secret;
use tenure::agent::{Agent, AgentSource, KnownSessions};
use tenure::core::{GrantId, Kind, Resource, Retention};
use tenure::locate::{self, LocateError, Located, NotCreated, Search, User};
pub(crate) use tenure::locate::{GRANT_VARIABLE, KEEPS_VARIABLE};
use tenure::locate::{Subject, Trust};
use tenure::place::{self, PlaceError, PlaceKind, StoreLocation, Surroundings};
use tenure::server_support::local_server::ServerFolder;
use tenure::store::{Dialect, StoreError};
use tenure::url::{RemoteOptions, StoreUrl};
use tenure::{Client, ClientBuilder, Wait};
use tenure_frontend::config::{Key, Origin, Settings, Sources};
use tenure_frontend::rescue::{RescueOptions, Rescuer};
use tenure_server::metrics::Metrics;

/// The surroundings of one command.
pub(crate) struct Context {
    pub(crate) output: Output,
    pub(crate) settings: Settings,
    pub(crate) sources: Sources,
    pub(crate) no_wait: bool,
    /// Which project settings the user trusts.
    pub(crate) trust: Trust,
    /// The per-user folder for stores, if the user has a home folder.
    pub(crate) user_folder: Option<PathBuf>,
    place: Result<StoreLocation, place::PlaceError>,
    /// Where this user's servers keep their tokens; `None` without a home folder.
    pub(crate) servers: Option<ServerFolder>,
    /// The store in use, found at the first call of [`Context::located`].
    located: OnceCell<Result<Located, Failure>>,
    /// The label from the environment variable of the `memory` dialect.
    session: Option<String>,
    /// The agent that this command acts for, found at the first call of [`Context::agent`].
    agent: OnceCell<Option<Agent>>,
}

/// The default label.
pub(crate) const AGENT_VARIABLE: &str = "TENURE_AGENT";

/// Whether the project's settings count.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Project {
    Counts,
    IsIgnored,
}

/// The folder in which the command was started.
pub(crate) fn current_folder() -> Result<PathBuf, Failure> {
    std::env::current_dir().map_err(|error| {
        let message = format!("cannot use the current folder: {error}");
        Failure::new(Exit::Configuration, "DIRECTORY", message)
    })
}

impl Context {
    /// The context of the current folder.
    pub(crate) fn new(global: &Global, output: Output) -> Result<Context, Failure> {
        Context::at(global, output, current_folder()?, Project::Counts)
    }

    /// The context of another folder.
    pub(crate) fn for_folder(
        global: &Global,
        output: Output,
        folder: &Path,
    ) -> Result<Context, Failure> {
        Context::at(global, output, folder.to_owned(), Project::Counts)
    }

    /// The context of a folder for what protects its files: hooks and guards. A project's settings that
    /// its user does not trust, or that cannot be read, must not turn that off, so they do not count.
    pub(crate) fn for_protection(
        global: &Global,
        output: Output,
        folder: &Path,
    ) -> Result<Context, Failure> {
        let context = Context::at(global, output.clone(), folder.to_owned(), Project::Counts);
        match context {
            Ok(context) if !context.has_untrusted_claims() => return Ok(context),
            Ok(_) => {}
            Err(failure) => {
                output.detail(&format!("{}; the project's settings are not used", failure.message));
            }
        }
        Context::at(global, output, folder.to_owned(), Project::IsIgnored)
    }

    /// The context of the folder that a file is in.
    pub(crate) fn for_file(
        global: &Global,
        output: Output,
        file: &Path,
    ) -> Result<Context, Failure> {
        let file = tenure::file::real_path(file)?;
        Context::at(global, output, file.parent().unwrap_or(&file).to_owned(), Project::Counts)
    }

    fn at(
        global: &Global,
        output: Output,
        directory: PathBuf,
        project: Project,
    ) -> Result<Context, Failure> {
        let surroundings = Surroundings::of_process(directory);
        let place = place::find(&surroundings);
        let servers = ServerFolder::of(&surroundings);
        let user_folder = surroundings.user_folder();
        let trust = Trust::of_process(user_folder.clone()).map_err(LocateError::from)?;
        let mut sources = Sources::of_process()?;
        sources.explicit_file = global.config.clone();
        if project == Project::Counts {
            sources.project_file = place.as_ref().ok().map(StoreLocation::config_file);
        }
        sources.project_is_own = place.as_ref().is_ok_and(|place| place.kind == PlaceKind::User);
        let mut flag = |key: Key, value: &Option<String>| {
            if let Some(value) = value {
                sources.flags.push((key.name().to_owned(), value.clone()));
            }
        };
        flag(Key::Store, &global.store);
        flag(Key::Agent, &global.label.last().cloned());
        let settings = Settings::load(&sources)?;
        let no_wait = global.no_wait;
        let mut context = Context {
            output,
            settings,
            sources,
            no_wait,
            trust,
            user_folder,
            place,
            servers,
            located: OnceCell::new(),
            session: None,
            agent: OnceCell::new(),
        };
        if let Some(variable) = context.dialect().defaults().label_variable {
            context.session = context.variable(variable).filter(|name| !name.is_empty());
        }
        Ok(context)
    }

    /// The location of the default store.
    pub(crate) fn place(&self) -> Result<&StoreLocation, Failure> {
        self.place.as_ref().map_err(Failure::from_place)
    }

    /// The dialect of the store's lock files.
    pub(crate) fn dialect(&self) -> Dialect {
        let url = self.settings.text(Key::Store).and_then(|url| url.parse::<StoreUrl>().ok());
        url.map_or(Dialect::NATIVE, |url| url.dialect())
    }

    /// The only lock of the folder, if the dialect has a single one.
    pub(crate) fn only_resource(&self) -> Option<Resource> {
        self.dialect().only_resource()
    }

    /// The URL of the store, with an absolute path so that child processes can use it.
    pub(crate) fn store_url(&self) -> Result<StoreUrl, Failure> {
        Ok(self.located()?.url.clone())
    }

    /// The store and why it was chosen. It is found once, and warnings about it are printed once.
    pub(crate) fn located(&self) -> Result<&Located, Failure> {
        let located = self.located.get_or_init(|| {
            let located = self.locate()?;
            self.output.detail(&format!("Store: {} ({})", located.url, located.reason));
            if let Some(foreign) = &located.foreign_owner {
                self.output.note(&format!(
                    "{}: {foreign}; its owner can change who holds what. `tenure trust` accepts \
                     it.",
                    styled(WARN, "Warning")
                ));
            }
            Ok(located)
        });
        located.as_ref().map_err(Clone::clone)
    }

    fn locate(&self) -> Result<Located, Failure> {
        let search = Search {
            settings: &self.settings,
            place: self.place.as_ref().ok(),
            directory: &self.directory(),
            trust: &self.trust,
            user: User::of_process(),
        };
        locate::locate(&search).map_err(|error| match error {
            LocateError::NoPlace => match self.place() {
                Err(failure) => failure,
                Ok(_) => error.into(),
            },
            error => error.into(),
        })
    }

    /// Whether the project's settings are trusted, or need no trust.
    pub(crate) fn project_trust(&self, subject: impl FnOnce() -> Subject) -> &'static str {
        match (self.trust.covers(&subject()), self.is_project_in_effect()) {
            (Ok(true), _) => "trusted",
            (Ok(false), true) => "needs no trust",
            _ => "not trusted",
        }
    }

    /// Whether all settings of the project's file are in effect.
    pub(crate) fn is_project_in_effect(&self) -> bool {
        let decides_hooks = || {
            let claims = self.settings.project().map(|project| project.claims.as_slice());
            claims.unwrap_or_default().iter().any(|(key, _)| key.decides_hooks())
        };
        self.located().is_ok() && (!decides_hooks() || self.trusts_project())
    }

    /// Whether the user trusts the project's settings as they are now.
    fn trusts_project(&self) -> bool {
        let place = self.place.as_ref().ok().filter(|place| place.kind != PlaceKind::User);
        place.is_some_and(|place| {
            matches!(self.trust.covers(&locate::subject(place, &self.settings)), Ok(true))
        })
    }

    /// Whether the project's file says something that needs trust, which it does not have.
    fn has_untrusted_claims(&self) -> bool {
        let project = self.settings.project();
        project.is_some_and(|project| !project.claims.is_empty()) && !self.trusts_project()
    }

    /// Other stores of this machine that exist and may have been meant, with a name for each.
    pub(crate) fn other_stores(&self) -> Vec<(StoreUrl, &'static str)> {
        let used = self.located().ok().map(|located| located.url.clone());
        let sqlite = |path| StoreUrl::Sqlite { path };
        let places = [
            (self.user_folder.as_ref().map(|folder| folder.join("tenure.db")), "your own"),
            (self.place.as_ref().ok().map(StoreLocation::database), "the project's"),
            (Some(place::machine_folder().join("tenure.db")), "the machine's"),
        ];
        let stores = places.into_iter().filter_map(|(path, what)| Some((sqlite(path?), what)));
        let mut others: Vec<(StoreUrl, &'static str)> = Vec::new();
        for (url, what) in stores {
            let known =
                Some(&url) == used.as_ref() || others.iter().any(|(other, _)| *other == url);
            if !known && url.exists() {
                others.push((url, what));
            }
        }
        others
    }

    /// Takes over the unfinished work of others, as the settings say.
    pub(crate) fn rescuer(&self) -> Rescuer {
        let options = RescueOptions {
            enabled: self.settings.is_on(Key::RescueEnabled),
            bytes_max: self.settings.integer(Key::RescueMaxBytes).into(),
            keep: self.settings.duration(Key::RescueKeep),
        };
        Rescuer::new(options, self.place.as_ref().ok())
    }

    /// The folder that paths on the command line are relative to.
    pub(crate) fn directory(&self) -> PathBuf {
        std::env::current_dir().unwrap_or_default()
    }

    /// A client for commands that change something. It creates the default store if there is none.
    pub(crate) async fn client(&self) -> Result<Client, Failure> {
        self.changing(self.builder()?.one_shot()).await
    }

    /// A client for this agent. `None` if there is no store yet and none is to be made.
    pub(crate) async fn client_of(
        &self,
        agent: &Agent,
        may_create: bool,
    ) -> Result<Option<Client>, Failure> {
        if !may_create && !self.store_exists()? {
            return Ok(None);
        }
        self.changing(self.plain_builder()?.one_shot().agent(agent.clone())).await.map(Some)
    }

    /// Whether there is a store already. A server counts as there.
    fn store_exists(&self) -> Result<bool, Failure> {
        match self.settings.text(Key::Store).is_none() {
            true => Ok(self.place()?.database().exists()),
            false => Ok(self.store_url()?.exists()),
        }
    }

    /// As [`Context::client`], for a worker: an agent of its own, unless the label was chosen.
    pub(crate) async fn worker_client(&self) -> Result<Client, Failure> {
        self.changing(self.labelled(self.plain_builder()?)).await
    }

    /// As [`Context::client`], for the tools of one agent. A label of the command line or of settings is
    /// given to many sessions, so it names a session but is no owner. A process that is no known agent's
    /// program may serve several agents, each with tools of its own: such sessions stay apart.
    pub(crate) async fn mcp_client(&self) -> Result<Client, Failure> {
        let origin = &self.settings.setting(Key::Agent).origin;
        let names_one = matches!(origin, Origin::BuiltIn | Origin::Environment(_));
        let builder = self.plain_builder()?;
        let is_agents = |agent: &&Agent| !matches!(agent.source, AgentSource::Parent(_));
        let builder = match self.agent().filter(is_agents).filter(|_| names_one) {
            // Without the agent's program, what the agent holds ends with this process.
            Some(agent) => {
                let process = agent.process.or(Some(std::process::id()));
                builder.agent(Agent { process, ..agent.clone() })
            }
            None => builder,
        };
        self.changing(builder).await
    }

    /// As [`Context::client`], for a server. It accepts a memory store, which others reach through
    /// the server.
    pub(crate) async fn server_client(&self, metrics: &Arc<Metrics>) -> Result<Client, Failure> {
        let metrics = metrics.clone();
        let wrap = move |store| metrics.meter(telemetry::traced(store));
        let builder = self.labelled(self.plain_builder()?).wrap(wrap);
        match self.store_url()? {
            StoreUrl::Memory => Ok(builder.open("memory:").await?),
            _ => self.changing(builder).await,
        }
    }

    /// The default path of the token file of this store's server: beside the store.
    pub(crate) fn token_file(&self) -> Result<PathBuf, Failure> {
        const NAME: &str = "tokens";
        Ok(match self.store_url()? {
            StoreUrl::Sqlite { path } if self.settings.text(Key::Store).is_some() => {
                let mut name = path.file_name().unwrap_or_default().to_owned();
                name.push(format!(".{NAME}"));
                path.with_file_name(name)
            }
            StoreUrl::File { folder, dialect, .. } if dialect.is_native() => folder.join(NAME),
            _ => self.place()?.folder.join(NAME),
        })
    }

    async fn changing(&self, builder: ClientBuilder) -> Result<Client, Failure> {
        let url = self.store_url()?;
        refuse_memory(&url)?;
        if self.settings.text(Key::Store).is_none() {
            self.place()?.prepare()?;
        }
        url.check_place()?;
        if self.settings.text(Key::Store).is_some() {
            self.allow_new(&url)?;
        }
        Ok(builder.open_url(url).await?)
    }

    /// Creates the named store and its parent folders.
    pub(crate) async fn make_store(&self) -> Result<Client, Failure> {
        let url = self.store_url()?;
        refuse_memory(&url)?;
        if let Some(folder) = url.folder() {
            place::create_folder(folder).map_err(|error| {
                let message = format!("cannot create {}: {error}", folder.display());
                Failure::new(Exit::Configuration, "STORE_PLACE", message)
            })?;
        }
        url.check_place()?;
        Ok(self.builder()?.one_shot().open_url(url).await?)
    }

    /// Refuses to create a named store by accident: a mistyped path must not become a separate
    /// store that excludes no other process. It is created only if its folder exists and has no
    /// other store; a note says so.
    fn allow_new(&self, url: &StoreUrl) -> Result<(), Failure> {
        refuse_closed(url)?;
        if url.exists() {
            return Ok(());
        }
        match locate::may_create(url) {
            Err(NotCreated::Missing) => Err(no_store(url)),
            Err(NotCreated::OtherStore(other)) => {
                let path = url.paths().into_iter().next().unwrap_or_default();
                let name = path.file_name().unwrap_or_default().to_string_lossy();
                let folder = url.folder().unwrap_or(Path::new(""));
                let message = format!(
                    "there is no store {name} in {}, but there is {other}",
                    folder.display()
                );
                Err(Failure::new(Exit::Configuration, "NO_STORE", message).hint(NO_STORE_HINT))
            }
            Ok(()) => {
                let new = format!("Creating the new store {url}");
                match std::io::IsTerminal::is_terminal(&std::io::stderr()) {
                    true => self.output.note(&new),
                    false => self.output.detail(&new),
                }
                Ok(())
            }
        }
    }

    /// A client for read-only commands. If there is no store yet, nothing is held.
    pub(crate) async fn reader(&self) -> Result<Client, Failure> {
        match self.looking(true).await? {
            Some(client) => Ok(client),
            None => {
                self.output.detail("No store exists here yet.");
                Ok(self.builder()?.open("memory:").await?)
            }
        }
    }

    /// As [`Context::reader`]; `None` if there is no store yet.
    pub(crate) async fn reader_of_existing(&self) -> Result<Option<Client>, Failure> {
        self.looking(true).await
    }

    /// As [`Context::reader`], for commands that keep watching; `None` if there is no store yet.
    pub(crate) async fn watcher(&self) -> Result<Option<Client>, Failure> {
        self.looking(false).await
    }

    async fn looking(&self, one_shot: bool) -> Result<Option<Client>, Failure> {
        let default = self.settings.text(Key::Store).is_none();
        if default && !self.place()?.database().exists() {
            return Ok(None);
        }
        self.refuse_missing()?;
        let url = self.store_url()?;
        match url.check_place() {
            // Reading needs no write access.
            Ok(_) | Err(PlaceError::ReadOnly { .. }) => {}
            Err(error) => return Err(error.into()),
        }
        let builder = || -> Result<ClientBuilder, Failure> {
            let builder = self.builder()?.look_only();
            Ok(if one_shot { builder.one_shot() } else { builder })
        };
        match builder()?.open_url(url.clone()).await {
            // A look does not bring a store of an older version up to date.
            Err(tenure::Error::Store(StoreError::Unsupported { .. })) => {
                drop(self.client().await?);
                Ok(Some(builder()?.open_url(url).await?))
            }
            opened => Ok(Some(opened?)),
        }
    }

    /// A read-only command must not create a named store by a mistyped path.
    fn refuse_missing(&self) -> Result<(), Failure> {
        let url = self.store_url()?;
        refuse_closed(&url)?;
        if self.settings.text(Key::Store).is_none() || url.exists() {
            return Ok(());
        }
        Err(no_store(&url))
    }

    /// A client builder with the settings, for the agent or under the label of this command.
    fn builder(&self) -> Result<ClientBuilder, Failure> {
        let builder = self.plain_builder()?;
        Ok(match self.agent() {
            Some(agent) => builder.agent(agent.clone()),
            None => self.labelled(builder),
        })
    }

    fn plain_builder(&self) -> Result<ClientBuilder, Failure> {
        Ok(Client::builder()
            .on_warning(output::warning)
            .wrap(telemetry::traced)
            .remote(self.remote()?)
            .poll_interval(self.settings.duration(Key::PollInterval))
            .recoveries_max(self.settings.integer(Key::MaxRecoveries))
            .retention(locate::retention(&self.settings)))
    }

    /// A builder for a store that is not the one that settings name, under this label. Nothing of its
    /// history is removed.
    pub(crate) fn other_builder(&self, label: &str) -> ClientBuilder {
        Client::builder()
            .on_warning(output::warning)
            .label(label)
            .poll_interval(self.settings.duration(Key::PollInterval))
            .recoveries_max(self.settings.integer(Key::MaxRecoveries))
            .retention(Retention::ALL)
    }

    /// The builder with the label that the caller chose, if any.
    fn labelled(&self, builder: ClientBuilder) -> ClientBuilder {
        match self.chosen_label() {
            Some(label) => builder.label(label),
            None => builder,
        }
    }

    /// The options for reaching a server, if the store is one.
    fn remote(&self) -> Result<RemoteOptions, Failure> {
        let StoreUrl::Remote(address) = self.store_url()? else {
            return Ok(RemoteOptions::default());
        };
        let ca_file = locate::path_setting(&self.settings, Key::CaFile);
        if let Some(text) = self.settings.text(Key::ServerUrl)
            && let Ok(StoreUrl::Remote(owner)) = text.parse()
            && !owner.is_same_server(&address)
        {
            self.output.detail(&format!("The token is for {text}; it is not sent."));
        }
        let token = locate::token_for(&address, &self.settings)?.map(Secret::new);
        let observer = telemetry::request_observer();
        Ok(RemoteOptions {
            token,
            local_servers: self.servers.clone(),
            ca_file,
            label: None,
            observer,
        })
    }

    /// Whether traces and metrics are sent to a collector.
    pub(crate) fn sends_telemetry(&self) -> bool {
        self.settings.text(Key::Telemetry) == Some("otlp")
    }

    /// Whether the label was given on this command line.
    pub(crate) fn is_label_explicit(&self) -> bool {
        self.settings.setting(Key::Agent).origin == Origin::Flag
    }

    /// The label that the caller chose, if any.
    pub(crate) fn chosen_label(&self) -> Option<&str> {
        self.settings.text(Key::Agent).or(self.session.as_deref())
    }

    /// The agent that this command acts for: under the chosen label, else the one that is found around
    /// it; none if the setting `identity` is off, or if nothing says whose command it is.
    pub(crate) fn agent(&self) -> Option<&Agent> {
        let find = || {
            if self.settings.text(Key::Identity) == Some("off") {
                return None;
            }
            match self.chosen_label() {
                Some(label) => Some(Agent::chosen(label)),
                None => match self.known_sessions() {
                    Some(sessions) => {
                        Agent::of_process_among(&sessions, &|name| self.variable(name))
                    }
                    None => Agent::of_process(&|name| self.variable(name)),
                },
            }
        };
        self.agent.get_or_init(find).as_ref()
    }

    /// The sessions of agents that hooks and commands of this user recorded.
    pub(crate) fn known_sessions(&self) -> Option<KnownSessions> {
        self.user_folder.as_deref().map(KnownSessions::of)
    }

    /// The label under which this command takes leases, and which proves that they are its own: chosen,
    /// or that of the agent.
    pub(crate) fn own_label(&self) -> Option<&str> {
        self.chosen_label().or_else(|| self.agent().map(|agent| agent.label.as_str()))
    }

    /// The grant of the enclosing `tenure run` or `tenure work`, if any.
    pub(crate) fn enclosing_grant(&self) -> Option<GrantId> {
        self.variable(GRANT_VARIABLE)?.parse().ok()
    }

    /// The grants of all enclosing commands, which cover what this command asks for.
    pub(crate) fn enclosing_grants(&self) -> Vec<GrantId> {
        locate::grants_around()
    }

    /// The grants that enclosing commands keep while this command runs.
    pub(crate) fn kept_grants(&self) -> Vec<GrantId> {
        let list = self.variable(KEEPS_VARIABLE).unwrap_or_default();
        list.split(',').filter_map(|grant| grant.parse().ok()).collect()
    }

    #[expect(clippy::disallowed_methods, reason = "set by an outer tenure, not settings")]
    fn variable(&self, name: &str) -> Option<String> {
        std::env::var(name).ok()
    }

    /// How long to wait: as the options say, else forever on a terminal, else as the setting says.
    pub(crate) fn wait(&self, no_wait: bool, limit: Option<Duration>) -> Wait {
        if no_wait || self.no_wait || limit.is_some_and(|limit| limit.is_zero()) {
            return Wait::No;
        }
        match limit {
            Some(FOREVER) => return Wait::Forever,
            Some(limit) => return Wait::UpTo(limit),
            None => {}
        }
        let untouched = self.settings.setting(Key::WaitTimeout).origin == Origin::BuiltIn;
        if let Some(wait) = self.dialect().defaults().wait.filter(|_| untouched) {
            return Wait::UpTo(wait);
        }
        if untouched && std::io::IsTerminal::is_terminal(&std::io::stderr()) {
            return Wait::Forever;
        }
        Wait::UpTo(self.settings.duration(Key::WaitTimeout))
    }

    /// The default lease of a detached hold of these resources: the shortest of their kinds, or the
    /// dialect's own unless the user set one.
    pub(crate) fn detached_lease(&self, resources: &[Resource]) -> Duration {
        let untouched = self.settings.setting(Key::LockTimeout).origin == Origin::BuiltIn;
        let of_dialect = self.dialect().defaults().detached_lease;
        if let Some(lease) = of_dialect.filter(|_| untouched) {
            return lease;
        }
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

const NO_STORE_HINT: &str = "Check the path, or create it: `tenure init` with the same --store.";

fn refuse_memory(url: &StoreUrl) -> Result<(), Failure> {
    if *url != StoreUrl::Memory {
        return Ok(());
    }
    let message = "a memory store ends with this command: no other process can see it";
    Err(Failure::new(Exit::Configuration, "STORE_URL", message)
        .hint("Use sqlite:PATH. memory: is for programs that use the library."))
}

/// Reports a store that exists but that this user cannot open, instead of calling it missing.
fn refuse_closed(url: &StoreUrl) -> Result<(), Failure> {
    let StoreUrl::Sqlite { path } = url else { return Ok(()) };
    match std::fs::metadata(path) {
        Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
            let message = format!("no permission to use the store {url}: {error}");
            let failure = Failure::new(Exit::Configuration, "STORE_UNAVAILABLE", message);
            Err(match *url == StoreUrl::machine() {
                true => failure.hint("Only members of its group can use it: ask an administrator."),
                false => failure.hint("Check the owner and permissions of its folders."),
            })
        }
        _ => Ok(()),
    }
}

fn no_store(url: &StoreUrl) -> Failure {
    if *url == StoreUrl::machine() {
        let message = format!("this machine has no shared store ({url})");
        return Failure::new(Exit::Configuration, "NO_STORE", message).hint(
            "An administrator can create it: `sudo tenure init --store machine: --group GROUP`.",
        );
    }
    let message = format!("no store at {url}");
    Failure::new(Exit::Configuration, "NO_STORE", message).hint(NO_STORE_HINT)
}
