//! How to reach the server: the URL, then `PG*` variables, then a service file, as libpq reads them.

use super::error::PgError;
use crate::secret::Secret;
use crate::url::EngineUrl;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio_postgres::Config;
use tokio_postgres::config::{SslMode, TargetSessionAttrs};

/// All that a connection needs.
#[derive(Clone)]
pub(super) struct Settings {
    pub(super) config: Config,
    pub(super) tls: TlsSettings,
    pub(super) schema: String,
    pub(super) prefix: String,
    pub(super) pool: usize,
    /// Whether a pooler is known to stand between, which keeps neither statements nor listeners.
    pub(super) pooled: bool,
}

/// How the server is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TlsMode {
    Disable,
    Prefer,
    Require,
    VerifyCa,
    VerifyFull,
}

#[derive(Clone, Debug)]
pub(super) struct TlsSettings {
    pub(super) mode: TlsMode,
    pub(super) root: Option<PathBuf>,
    pub(super) certificate: Option<PathBuf>,
    pub(super) key: Option<PathBuf>,
}

/// Connections at most, of one process.
const POOL: usize = 8;

/// The schema, where none is named.
const SCHEMA: &str = "tenure";

/// The settings that libpq knows and that count here, with their variables.
const KNOWN: [(&str, &str); 14] = [
    ("host", "PGHOST"),
    ("port", "PGPORT"),
    ("dbname", "PGDATABASE"),
    ("user", "PGUSER"),
    ("sslmode", "PGSSLMODE"),
    ("sslrootcert", "PGSSLROOTCERT"),
    ("sslcert", "PGSSLCERT"),
    ("sslkey", "PGSSLKEY"),
    ("connect_timeout", "PGCONNECT_TIMEOUT"),
    ("application_name", "PGAPPNAME"),
    ("passfile", "PGPASSFILE"),
    ("target_session_attrs", "PGTARGETSESSIONATTRS"),
    ("password", "PGPASSWORD"),
    ("channel_binding", "PGCHANNELBINDING"),
];

/// What only tenure knows.
const OWN: [&str; 4] = ["schema", "prefix", "pool", "pgbouncer"];

fn wrong(what: impl Into<String>, hint: &str) -> PgError {
    PgError::Settings { what: what.into(), hint: hint.to_owned() }
}

impl Settings {
    /// Reads everything from this process's surroundings.
    #[expect(clippy::disallowed_methods, reason = "variables that all programs on PostgreSQL read")]
    pub(super) fn of(url: &EngineUrl) -> Result<Settings, PgError> {
        Settings::from(url, |name| std::env::var(name).ok().filter(|value| !value.is_empty()))
    }

    fn from(
        url: &EngineUrl,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Settings, PgError> {
        let mut values: BTreeMap<String, String> = BTreeMap::new();
        for (name, value) in &url.options {
            let known = KNOWN.iter().any(|(known, _)| known == name) || name == "service";
            if !known && !OWN.contains(&name.as_str()) {
                let known: Vec<&str> = KNOWN.iter().map(|(name, _)| *name).chain(OWN).collect();
                let hint = format!("Options are {}.", known.join(", "));
                return Err(wrong(
                    format!("{name:?} is not an option of a postgres:// URL"),
                    &hint,
                ));
            }
            values.insert(name.clone(), value.clone());
        }
        let mut put = |name: &str, value: Option<String>| {
            if let Some(value) = value.filter(|value| !value.is_empty()) {
                values.insert(name.to_owned(), value);
            }
        };
        put("user", url.user.clone());
        put("dbname", Some(url.path.clone()));
        put("password", url.password.as_ref().map(|secret| secret.reveal().to_owned()));
        if !url.hosts.is_empty() {
            let (hosts, ports) = hosts_and_ports(&url.hosts);
            put("host", Some(hosts));
            put("port", Some(ports));
        }
        let service = values.remove("service").or_else(|| variable("PGSERVICE"));
        for (name, from) in KNOWN {
            if !values.contains_key(name)
                && let Some(value) = variable(from)
            {
                values.insert(name.to_owned(), value);
            }
        }
        if let Some(service) = service {
            for (name, value) in service_values(&service, &variable)? {
                values.entry(name).or_insert(value);
            }
        }
        Settings::build(values, &variable)
    }

    fn build(
        mut values: BTreeMap<String, String>,
        variable: &impl Fn(&str) -> Option<String>,
    ) -> Result<Settings, PgError> {
        let mut config = Config::new();
        let user = values
            .remove("user")
            .or_else(|| variable("USER"))
            .unwrap_or_else(|| "postgres".to_owned());
        let database = values.remove("dbname").unwrap_or_else(|| user.clone());
        config.user(&user).dbname(&database);
        let hosts = values.remove("host").unwrap_or_default();
        let ports = values.remove("port").unwrap_or_else(|| "5432".to_owned());
        for host in hosts.split(',') {
            match host {
                "" => default_host(&mut config),
                path if path.starts_with('/') => drop(config.host_path(path)),
                host => drop(config.host(host.trim_start_matches('[').trim_end_matches(']'))),
            }
        }
        for port in ports.split(',') {
            let port = if port.is_empty() { "5432" } else { port };
            let number = port.parse().map_err(|_| {
                wrong(format!("{port:?} is not a port"), "Write postgres://HOST:PORT/DATABASE.")
            })?;
            config.port(number);
        }
        let first_host = hosts.split(',').next().unwrap_or_default().to_owned();
        let first_port = ports.split(',').next().unwrap_or("5432").to_owned();
        let password = values.remove("password").map(Secret::new).or_else(|| {
            let file = values
                .get("passfile")
                .map(PathBuf::from)
                .or_else(|| Some(Path::new(&variable("HOME")?).join(".pgpass")))?;
            let host = if first_host.is_empty() { "localhost" } else { &first_host };
            password_from(&file, [host, &first_port, &database, &user])
        });
        if let Some(password) = password {
            config.password(password.reveal());
        }
        let application = values.remove("application_name").unwrap_or_else(|| "tenure".to_owned());
        config.application_name(&application);
        let seconds = match values.remove("connect_timeout") {
            Some(text) => text.parse().map_err(|_| {
                wrong(format!("{text:?} is not a number of seconds"), "Write connect_timeout=5.")
            })?,
            None => 5,
        };
        // A server that does not answer is noticed while a lease can still be given up in time.
        config
            .connect_timeout(Duration::from_secs(seconds.max(1)))
            .tcp_user_timeout(Duration::from_secs(10))
            .keepalives_idle(Duration::from_secs(10))
            .target_session_attrs(TargetSessionAttrs::ReadWrite);
        let mode = tls_mode(values.remove("sslmode").as_deref())?;
        config.ssl_mode(match mode {
            TlsMode::Disable => SslMode::Disable,
            TlsMode::Prefer => SslMode::Prefer,
            TlsMode::Require | TlsMode::VerifyCa | TlsMode::VerifyFull => SslMode::Require,
        });
        let tls = TlsSettings {
            mode,
            root: values.remove("sslrootcert").map(PathBuf::from),
            certificate: values.remove("sslcert").map(PathBuf::from),
            key: values.remove("sslkey").map(PathBuf::from),
        };
        let pool = match values.remove("pool") {
            Some(text) => {
                text.parse().ok().filter(|pool| (1..=1000).contains(pool)).ok_or_else(|| {
                    wrong(format!("{text:?} is not a number of connections"), "Write pool=8.")
                })?
            }
            None => POOL,
        };
        let pooled = match values.remove("pgbouncer").as_deref() {
            None | Some("no" | "false") => false,
            Some("yes" | "true") => true,
            Some(text) => {
                return Err(wrong(format!("pgbouncer={text} is unclear"), "Write pgbouncer=true."));
            }
        };
        let schema = values.remove("schema").unwrap_or_else(|| SCHEMA.to_owned());
        let prefix = values.remove("prefix").unwrap_or_default();
        for name in [&schema, &prefix] {
            // They become part of statements.
            let plain = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
            if name.len() > 40 || !name.chars().all(plain) {
                let hint = "Use up to 40 letters, digits and underscores.";
                return Err(wrong(format!("{name:?} cannot name a schema or a prefix"), hint));
            }
        }
        Ok(Settings { config, tls, schema, prefix, pool, pooled })
    }
}

fn default_host(config: &mut Config) {
    match Path::new("/var/run/postgresql").is_dir() {
        true => config.host_path("/var/run/postgresql"),
        false => config.host("localhost"),
    };
}

/// `a:1,b,[::1]:2` as `a,b,[::1]` and `1,,2`.
fn hosts_and_ports(text: &str) -> (String, String) {
    let parts = text.split(',').map(|one| match one.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => (host, port),
        _ => (one, ""),
    });
    let (hosts, ports): (Vec<&str>, Vec<&str>) = parts.unzip();
    // One port may count for all hosts.
    let ports =
        if ports.iter().all(|port| port.is_empty()) { String::new() } else { ports.join(",") };
    (hosts.join(","), ports)
}

fn tls_mode(text: Option<&str>) -> Result<TlsMode, PgError> {
    Ok(match text {
        None | Some("prefer" | "allow") => TlsMode::Prefer,
        Some("disable") => TlsMode::Disable,
        Some("require") => TlsMode::Require,
        Some("verify-ca") => TlsMode::VerifyCa,
        Some("verify-full") => TlsMode::VerifyFull,
        Some(other) => {
            let hint = "Modes are disable, prefer, require, verify-ca and verify-full.";
            return Err(wrong(format!("{other:?} is not an sslmode"), hint));
        }
    })
}

/// The lines `name=value` under `[service]`, in the user's file or in the system's.
fn service_values(
    service: &str,
    variable: &impl Fn(&str) -> Option<String>,
) -> Result<Vec<(String, String)>, PgError> {
    let own = variable("PGSERVICEFILE")
        .map(PathBuf::from)
        .or_else(|| Some(Path::new(&variable("HOME")?).join(".pg_service.conf")));
    let system = variable("PGSYSCONFDIR").unwrap_or_else(|| "/etc/postgresql-common".to_owned());
    let files = own.into_iter().chain([Path::new(&system).join("pg_service.conf")]);
    for file in files {
        let Ok(text) = std::fs::read_to_string(&file) else { continue };
        let mut lines = text.lines().map(str::trim).skip_while(|line| {
            line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) != Some(service)
        });
        if lines.next().is_none() {
            continue;
        }
        let values = lines.take_while(|line| !line.starts_with('['));
        let values = values.filter(|line| !line.starts_with('#')).filter_map(|line| {
            let (name, value) = line.split_once('=')?;
            Some((name.trim().to_owned(), value.trim().to_owned()))
        });
        return Ok(values.collect());
    }
    let hint = "Describe it in ~/.pg_service.conf, or in the file that PGSERVICEFILE names.";
    Err(wrong(format!("there is no PostgreSQL service {service:?}"), hint))
}

/// The password in a file of lines `host:port:database:user:password`, of which the first that fits
/// counts. A file that others can read is not used, as libpq does it.
fn password_from(file: &Path, wanted: [&str; 4]) -> Option<Secret> {
    use std::os::unix::fs::PermissionsExt;
    let open = std::fs::metadata(file).ok()?.permissions().mode() & 0o077 != 0;
    let text = std::fs::read_to_string(file).ok().filter(|_| !open)?;
    text.lines().filter(|line| !line.starts_with('#')).find_map(|line| {
        let fields = pass_fields(line);
        let [named @ .., password] = fields.as_slice() else { return None };
        let fits = named.len() == 4
            && named.iter().zip(wanted).all(|(named, wanted)| named == "*" || named == wanted);
        fits.then(|| Secret::new(password.clone()))
    })
}

/// The fields of a line, in which a backslash stands before a colon that is meant.
fn pass_fields(line: &str) -> Vec<String> {
    let mut fields = vec![String::new()];
    let mut characters = line.chars();
    while let Some(character) = characters.next() {
        let count = fields.len();
        let last = fields.last_mut().expect("there is always one");
        match character {
            '\\' => last.extend(characters.next()),
            ':' if count < 5 => fields.push(String::new()),
            other => last.push(other),
        }
    }
    fields
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::url::StoreUrl;
    use std::os::unix::fs::PermissionsExt;
    use tokio_postgres::config::Host;

    fn read(url: &str, variables: &[(&str, &str)]) -> Result<Settings, PgError> {
        let StoreUrl::Postgres(url) = url.parse().unwrap() else { panic!("{url}") };
        Settings::from(&url, |name| {
            let found = variables.iter().find(|(variable, _)| *variable == name);
            found.map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn the_url_counts_before_variables_before_a_service() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("services");
        std::fs::write(&file, "[other]\nhost=x\n[mine]\nhost=from-service\nport=7\ndbname=s\n")
            .unwrap();
        let service = file.to_str().unwrap();
        let variables =
            [("PGSERVICEFILE", service), ("PGSERVICE", "mine"), ("PGPORT", "6"), ("PGUSER", "v")];
        let settings = read("postgres:///d?sslmode=disable", &variables).unwrap();
        assert_eq!(settings.config.get_hosts(), [Host::Tcp("from-service".to_owned())]);
        assert_eq!(settings.config.get_ports(), [6]);
        assert_eq!(settings.config.get_dbname(), Some("d"));
        assert_eq!(settings.config.get_user(), Some("v"));
        assert!(read("postgres:///?service=none", &variables).is_err());
    }

    #[test]
    fn several_hosts_and_options() {
        let url = "postgres://u:p@a:1,[::1]:2/d?sslmode=verify-full&sslrootcert=/ca&schema=s&prefix=t_&pool=3";
        let settings = read(url, &[]).unwrap();
        assert_eq!(settings.config.get_ports(), [1, 2]);
        assert_eq!(settings.config.get_hosts()[1], Host::Tcp("::1".to_owned()));
        assert_eq!(settings.config.get_password(), Some(&b"p"[..]));
        assert_eq!((settings.tls.mode, settings.pool), (TlsMode::VerifyFull, 3));
        assert_eq!((settings.schema.as_str(), settings.prefix.as_str()), ("s", "t_"));
        for url in [
            "postgres://h/d?sslmode=maybe",
            "postgres://h/d?colour=red",
            "postgres://h:x/d",
            "postgres://h/d?schema=a'b",
        ] {
            assert!(read(url, &[]).is_err(), "{url}");
        }
    }

    #[test]
    fn a_password_file_counts_only_if_it_is_private() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("pass");
        std::fs::write(&file, "# one\nh:5432:d:u:wrong\\:one\n*:*:*:w:any\n").unwrap();
        let path = file.to_str().unwrap();
        let password = |url: &str| {
            let settings = read(url, &[("PGPASSFILE", path)]).unwrap();
            settings.config.get_password().map(|bytes| String::from_utf8_lossy(bytes).into_owned())
        };
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
        assert_eq!(password("postgres://u@h/d"), None);
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
        assert_eq!(password("postgres://u@h/d").as_deref(), Some("wrong:one"));
        assert_eq!(password("postgres://w@x/y").as_deref(), Some("any"));
        assert_eq!(password("postgres://v@x/y"), None);
        assert_eq!(password("postgres://v:p@x/y").as_deref(), Some("p"));
    }
}
