//! Opens the store that the command would use here.

use super::{LocateError, Located, Search, Trust, User, locate};
use crate::client::{Client, ClientBuilder};
use crate::error::Error;
use crate::local_server::ServerFolder;
use crate::place::{self, PlaceError, PlaceKind, StoreLocation, Surroundings};
use crate::secret::Secret;
use crate::url::{Address, RemoteOptions, StoreUrl};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use tenure_core::GrantId;
#[cfg(feature = "file-store")]
use tenure_core::Resource;
use tenure_text::config::{ConfigError, Key, Origin, Settings, Sources};

/// The variable with the token that shows a server who asks.
const SERVER_TOKEN_VARIABLE: &str = "TENURE_SERVER_TOKEN";

/// Tokens are far shorter; the limit keeps a wrong path from filling the memory.
const TOKEN_BYTES_MAX: u64 = 16 * 1024;

/// Why the store that is meant here was not opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DiscoverError {
    /// The current folder cannot be used.
    #[error("the current folder cannot be used: {0}")]
    Directory(#[source] io::Error),
    /// A settings file or a variable is wrong.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// There is no place for a store, or locks cannot be trusted there.
    #[error(transparent)]
    Place(#[from] PlaceError),
    /// The store that is set cannot be used.
    #[error(transparent)]
    Locate(#[from] LocateError),
    /// The token for a server cannot be used.
    #[error(transparent)]
    Token(#[from] TokenError),
    /// The store that is set does not exist: a wrong path must not become a store of its own.
    #[error("there is no store at {url}")]
    NoStore {
        /// The URL that is set.
        url: String,
    },
    /// The store cannot be opened.
    #[error(transparent)]
    Open(#[from] Error),
}

/// Why the token for a server cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TokenError {
    /// The setting `server.url` names no server.
    #[error("server.url: {text:?} is not a server address")]
    ServerUrl {
        /// The setting.
        text: String,
    },
    /// The file that the setting `server.tokenFile` names cannot be read.
    #[error("cannot read the token in {}: {source}", .file.display())]
    Unreadable {
        /// The file.
        file: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

impl Client {
    /// Opens the store that the `tenure` command would use in the current folder.
    ///
    /// That is the one that `TENURE_STORE` or a settings file names, else the one of the git
    /// repository, of the nearest `.tenure` folder upward, or of the user. The default store is made
    /// if there is none. A project's own settings count only after its user has trusted them.
    pub async fn discover() -> Result<Client, DiscoverError> {
        Client::builder().discover().await
    }
}

impl ClientBuilder {
    /// Opens the store that the `tenure` command would use in the current folder; see
    /// [`Client::discover`]. Label, poll interval, recoveries and server token are those of the
    /// settings, unless a label was given. Under `tenure run` and `tenure work`, a request that would wait
    /// without a limit for what these hold is refused.
    pub async fn discover(self) -> Result<Client, DiscoverError> {
        let directory = std::env::current_dir().map_err(DiscoverError::Directory)?;
        self.discover_in(directory).await
    }

    /// Opens the store that the `tenure` command would use in this folder.
    pub async fn discover_in(self, directory: PathBuf) -> Result<Client, DiscoverError> {
        let Found { surroundings, place, settings, trust } = Found::in_folder(directory.clone())?;
        let search = Search {
            settings: &settings,
            place: place.as_ref().ok(),
            directory: &directory,
            trust: &trust,
            user: User::of_process(),
        };
        let located = match (locate(&search), place) {
            (Err(LocateError::NoPlace), Err(error)) => return Err(error.into()),
            (located, place) => {
                let located = located?;
                prepare(&located, place, &settings)?;
                located
            }
        };
        let mut builder = self
            .poll_interval(settings.duration(Key::PollInterval))
            .recoveries_max(settings.integer(Key::MaxRecoveries))
            .retention(super::retention(&settings))
            .around(grants_around());
        #[cfg(feature = "file-store")]
        let of_dialect = located.url.dialect().defaults().label_variable;
        #[cfg(not(feature = "file-store"))]
        let of_dialect: Option<&str> = None;
        let of_dialect = of_dialect.and_then(|name| std::env::var_os(name)?.into_string().ok());
        let chosen = settings.text(Key::Agent).or(of_dialect.as_deref());
        if let Some(label) = chosen.filter(|label| !label.is_empty()) {
            builder = builder.label_unless_given(label);
        }
        if let StoreUrl::Remote(address) = &located.url {
            let token = token_for(address, &settings)?.map(Secret::new);
            builder = builder.remote(RemoteOptions {
                token,
                local_servers: ServerFolder::of(&surroundings),
                ca_file: path_setting(&settings, Key::CaFile),
                label: None,
                #[cfg(feature = "http")]
                observer: crate::remote::Observer::default(),
            });
        }
        Ok(builder.open_url(located.url).await?)
    }
}

/// What decides the store of a folder.
struct Found {
    surroundings: Surroundings,
    place: Result<StoreLocation, PlaceError>,
    settings: Settings,
    trust: Trust,
}

impl Found {
    fn in_folder(directory: PathBuf) -> Result<Found, DiscoverError> {
        let surroundings = Surroundings::of_process(directory);
        let place = place::find(&surroundings);
        let mut sources = Sources::of_process()?;
        sources.project_file = place.as_ref().ok().map(StoreLocation::config_file);
        sources.project_is_own = place.as_ref().is_ok_and(|place| place.kind == PlaceKind::User);
        let settings = Settings::load(&sources)?;
        let trust = Trust::of_process(surroundings.user_folder()).map_err(LocateError::from)?;
        Ok(Found { surroundings, place, settings, trust })
    }
}

/// The single lock that programs hold for every change of files in this folder, if the store that was chosen
/// for it has one. Opens no store.
#[cfg(feature = "file-store")]
pub fn single_lock_in(directory: &Path) -> Result<Option<Resource>, DiscoverError> {
    let Found { place, settings, trust, .. } = Found::in_folder(directory.to_owned())?;
    let Some(text) = settings.text(Key::Store) else { return Ok(None) };
    let url = text.parse::<StoreUrl>().map_err(LocateError::from)?;
    let Some(lock) = url.dialect().only_resource() else { return Ok(None) };
    // A store that its project may not choose is refused.
    let (place, user) = (place.as_ref().ok(), User::of_process());
    locate(&Search { settings: &settings, place, directory, trust: &trust, user })?;
    Ok(Some(lock))
}

/// The variable with the grant under which `tenure run` or `tenure work` started this process.
pub const GRANT_VARIABLE: &str = "TENURE_GRANT";

/// The variable with the grants that all commands around this process keep while it runs, separated by
/// commas.
pub const KEEPS_VARIABLE: &str = "TENURE_KEEPS";

/// The grants of the commands around this process: a wait for them would be a wait for itself.
pub fn grants_around() -> Vec<GrantId> {
    let text = |name| std::env::var_os(name).and_then(|value| value.into_string().ok());
    let mut grants: Vec<GrantId> = Vec::new();
    for list in [KEEPS_VARIABLE, GRANT_VARIABLE].into_iter().filter_map(text) {
        for grant in list.split(',').filter_map(|grant| grant.parse().ok()) {
            if !grants.contains(&grant) {
                grants.push(grant);
            }
        }
    }
    grants
}

/// Makes the folder of the default store, and refuses a place where locks cannot be trusted.
fn prepare(
    located: &Located,
    place: Result<StoreLocation, PlaceError>,
    settings: &Settings,
) -> Result<(), DiscoverError> {
    let is_default = settings.text(Key::Store).is_none();
    if is_default {
        place?.prepare()?;
    }
    located.url.check_place()?;
    match is_default || located.url.exists() || super::may_create(&located.url).is_ok() {
        true => Ok(()),
        false => Err(DiscoverError::NoStore { url: located.url.to_string() }),
    }
}

/// Gives the token for this server, from the environment or from the file that a setting names.
/// `None` if there is none, or if the setting `server.url` says that it is for another server.
pub fn token_for(address: &Address, settings: &Settings) -> Result<Option<String>, TokenError> {
    if let Some(text) = settings.text(Key::ServerUrl) {
        let Ok(StoreUrl::Remote(owner)) = text.parse::<StoreUrl>() else {
            return Err(TokenError::ServerUrl { text: text.to_owned() });
        };
        if !owner.is_same_server(address) {
            return Ok(None);
        }
    }
    let variable = std::env::var_os(SERVER_TOKEN_VARIABLE).and_then(|text| text.into_string().ok());
    match (variable.filter(|token| !token.is_empty()), path_setting(settings, Key::TokenFile)) {
        (None, Some(file)) => {
            read_token(&file).map(Some).map_err(|source| TokenError::Unreadable { file, source })
        }
        (token, _) => Ok(token),
    }
}

/// Gives the path in a setting. In a project's file it is relative to the project.
pub fn path_setting(settings: &Settings, key: Key) -> Option<PathBuf> {
    let path = settings.text(key)?;
    Some(match &settings.setting(key).origin {
        Origin::Project(file) => {
            file.parent().and_then(Path::parent).unwrap_or(Path::new("")).join(path)
        }
        _ => path.into(),
    })
}

fn read_token(file: &Path) -> io::Result<String> {
    let mut text = String::new();
    std::fs::File::open(file)?.take(TOKEN_BYTES_MAX + 1).read_to_string(&mut text)?;
    if text.len() as u64 > TOKEN_BYTES_MAX {
        return Err(io::Error::other("it is too long to be one"));
    }
    Ok(text.trim().to_owned())
}
