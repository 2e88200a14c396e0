//! How to reach the server: the URL, then `PG*` variables, then a service file, as libpq reads them.

use super::error::PgError;
use super::limits::{CONNECT_SECONDS, CONNECT_SECONDS_MIN};
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
    /// One for each host, in the order in which they are tried.
    pub(super) hosts: Vec<Config>,
    /// How long it may take to reach one address of a host, until the tables were looked at.
    pub(super) connect_timeout: Duration,
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
        let application = values.remove("application_name").unwrap_or_else(|| "tenure".to_owned());
        config.application_name(&application);
        let hosts = values.remove("host").unwrap_or_default();
        let ports = values.remove("port").unwrap_or_default();
        let password = values.remove("password").map(Secret::new);
        let pass_file = values
            .remove("passfile")
            .map(PathBuf::from)
            .or_else(|| Some(Path::new(&variable("HOME")?).join(".pgpass")));
        let seconds = match values.remove("connect_timeout") {
            Some(text) => text.parse().map_err(|_| {
                wrong(format!("{text:?} is not a number of seconds"), "Write connect_timeout=5.")
            })?,
            None => CONNECT_SECONDS,
        };
        // A server that does not answer is noticed while a lease can still be given up in time.
        let connect_timeout = Duration::from_secs(seconds.max(CONNECT_SECONDS_MIN));
        config
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
        let hosts = each_host(&hosts, &ports, |host, port| {
            let mut config = config.clone();
            match host {
                "" => default_host(&mut config),
                path if path.starts_with('/') => drop(config.host_path(path)),
                host => drop(config.host(host.trim_start_matches('[').trim_end_matches(']'))),
            }
            config.port(port);
            let host = if host.is_empty() { "localhost" } else { host };
            let wanted = [host, &port.to_string(), &database, &user];
            let found = || password_from(pass_file.as_ref()?, wanted);
            if let Some(password) = password.clone().or_else(found) {
                config.password(password.reveal());
            }
            config
        })?;
        Ok(Settings { hosts, connect_timeout, tls, schema, prefix, pool, pooled })
    }
}

/// A configuration for each host of a list, with its port from the other list: one port may count for all.
fn each_host(
    hosts: &str,
    ports: &str,
    config: impl Fn(&str, u16) -> Config,
) -> Result<Vec<Config>, PgError> {
    let hosts: Vec<&str> = hosts.split(',').collect();
    let ports: Vec<u16> = ports.split(',').map(port_number).collect::<Result<_, _>>()?;
    if ports.len() != 1 && ports.len() != hosts.len() {
        let hint = "Write one port for all hosts, or one for each: postgres://A:1,B:2/DATABASE.";
        return Err(wrong(format!("{} hosts and {} ports", hosts.len(), ports.len()), hint));
    }
    let at = |(index, host): (usize, &&str)| config(host, *ports.get(index).unwrap_or(&ports[0]));
    Ok(hosts.iter().enumerate().map(at).collect())
}

fn port_number(text: &str) -> Result<u16, PgError> {
    let text = if text.is_empty() { "5432" } else { text };
    let hint = "Write postgres://HOST:PORT/DATABASE.";
    text.parse().map_err(|_| wrong(format!("{text:?} is not a port"), hint))
}

fn default_host(config: &mut Config) {
    if Path::new("/var/run/postgresql").is_dir() {
        config.host_path("/var/run/postgresql");
    } else {
        config.host("localhost");
    }
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
        let [host] = settings.hosts.as_slice() else { panic!("one host is named") };
        assert_eq!(host.get_hosts(), [Host::Tcp("from-service".to_owned())]);
        assert_eq!(host.get_ports(), [6]);
        assert_eq!(host.get_dbname(), Some("d"));
        assert_eq!(host.get_user(), Some("v"));
        assert!(read("postgres:///?service=none", &variables).is_err());
    }

    #[test]
    fn several_hosts_and_options() {
        let url = "postgres://u:p@a:1,[::1]:2/d?sslmode=verify-full&sslrootcert=/ca&schema=s&prefix=t_&pool=3";
        let settings = read(url, &[]).unwrap();
        let [one, other] = settings.hosts.as_slice() else { panic!("two hosts are named") };
        assert_eq!((one.get_ports(), other.get_ports()), (&[1][..], &[2][..]));
        assert_eq!(other.get_hosts(), [Host::Tcp("::1".to_owned())]);
        assert_eq!(other.get_password(), Some(&b"p"[..]));
        assert_eq!((settings.tls.mode, settings.pool), (TlsMode::VerifyFull, 3));
        assert_eq!((settings.schema.as_str(), settings.prefix.as_str()), ("s", "t_"));
        for url in [
            "postgres://h/d?sslmode=maybe",
            "postgres://h/d?colour=red",
            "postgres://h:x/d",
            "postgres://a,b,c/d?port=1,2",
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
            let last = settings.hosts.last().unwrap();
            last.get_password().map(|bytes| String::from_utf8_lossy(bytes).into_owned())
        };
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
        assert_eq!(password("postgres://u@h/d"), None);
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
        assert_eq!(password("postgres://u@h/d").as_deref(), Some("wrong:one"));
        assert_eq!(password("postgres://w@x/y").as_deref(), Some("any"));
        assert_eq!(password("postgres://v@x/y"), None);
        assert_eq!(password("postgres://v:p@x/y").as_deref(), Some("p"));
        // Each host has its own line.
        assert_eq!(password("postgres://u@other:1,h:5432/d").as_deref(), Some("wrong:one"));
    }
}
