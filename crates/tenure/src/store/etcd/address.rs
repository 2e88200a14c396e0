//! Where the servers are, and how to talk to them.

use crate::store::StoreError;
use crate::url::EngineUrl;
use etcd_client::{Certificate, ConnectOptions, Identity, TlsOptions};
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// The port of etcd for clients.
const PORT: u16 = 2379;

/// The prefix of all keys, where the URL names none.
const PREFIX: &str = "tenure";

/// How long it may take to connect: on a network that works it takes milliseconds.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);

/// How often a connection is tried with a ping, and how long the answer may take: a server that stopped
/// without closing its connections is noticed after both. Servers refuse pings more often than every
/// 5 seconds.
const PING: (Duration, Duration) = (Duration::from_secs(6), Duration::from_secs(3));

/// What the URL of a store says.
#[derive(Clone)]
pub(super) struct Address {
    /// The URL without its password.
    pub(super) url: String,
    /// The prefix of all keys.
    pub(super) prefix: String,
    /// The URL of each server.
    pub(super) endpoints: Vec<String>,
    user: Option<(String, String)>,
    tls: Option<Files>,
}

/// Files with the certificates to use. What is not named is taken from etcdctl's variables.
#[derive(Clone, Default)]
struct Files {
    authority: Option<PathBuf>,
    certificate: Option<PathBuf>,
    key: Option<PathBuf>,
}

/// Without the password.
impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Address").field(&self.url).finish()
    }
}

impl Address {
    pub(super) fn of(url: &EngineUrl) -> Result<Address, StoreError> {
        let secure = url.scheme == "etcds";
        let mut files = Files::of_environment();
        for (name, value) in &url.options {
            let path = Some(PathBuf::from(value));
            match name.as_str() {
                "cacert" if secure => files.authority = path,
                "cert" if secure => files.certificate = path,
                "key" if secure => files.key = path,
                _ => {
                    return Err(StoreError::Unsupported {
                        what: format!("{name:?} is not an option of {}", url.scheme),
                        instead: "Options of etcds: are cacert=FILE, cert=FILE and key=FILE."
                            .to_owned(),
                    });
                }
            }
        }
        let user = url.user.as_ref().map(|user| {
            let password = url.password.as_ref().map_or("", |secret| secret.reveal());
            (user.clone(), password.to_owned())
        });
        let hosts = if url.hosts.is_empty() { "localhost" } else { &url.hosts };
        let scheme = if secure { "https" } else { "http" };
        let endpoints = hosts.split(',').filter(|host| !host.is_empty());
        let endpoints = endpoints.map(|host| format!("{scheme}://{}", with_port(host))).collect();
        let prefix = if url.path.is_empty() { PREFIX } else { &url.path };
        Ok(Address {
            url: url.to_string(),
            prefix: prefix.to_owned(),
            endpoints,
            user,
            tls: secure.then_some(files),
        })
    }

    /// One of the servers, as people write it.
    pub(super) fn host(&self, server: usize) -> &str {
        self.endpoints[server].split_once("//").map_or("", |(_, host)| host)
    }

    /// Whether the URL names a user.
    pub(super) fn has_user(&self) -> bool {
        self.user.is_some()
    }

    /// The options of a connection. Reads the files with certificates, which may change while the
    /// process runs.
    pub(super) fn options(&self) -> Result<ConnectOptions, StoreError> {
        let mut options = ConnectOptions::new()
            .with_connect_timeout(CONNECT_TIMEOUT)
            .with_keep_alive(PING.0, PING.1)
            .with_keep_alive_while_idle(false)
            // A server that lost touch with the others says so instead of letting its callers wait.
            .with_require_leader(true)
            .with_auto_token_refresh(true);
        if let Some((user, password)) = &self.user {
            options = options.with_user(user, password);
        }
        if let Some(files) = &self.tls {
            options = options.with_tls(files.read(&self.url)?);
        }
        Ok(options)
    }
}

impl Files {
    #[expect(
        clippy::disallowed_methods,
        reason = "the variables are etcdctl's, not settings of ours"
    )]
    fn of_environment() -> Files {
        let file =
            |name: &str| std::env::var(name).ok().filter(|v| !v.is_empty()).map(PathBuf::from);
        Files {
            authority: file("ETCDCTL_CACERT"),
            certificate: file("ETCDCTL_CERT"),
            key: file("ETCDCTL_KEY"),
        }
    }

    fn read(&self, url: &str) -> Result<TlsOptions, StoreError> {
        let read = |path: &PathBuf| {
            std::fs::read(path).map_err(|error| StoreError::Unavailable {
                store: url.to_owned(),
                reason: format!("the file {} cannot be read: {error}", path.display()),
                hint: Some("Check cacert=, cert= and key= in the URL.".to_owned()),
            })
        };
        let mut options = TlsOptions::new();
        match &self.authority {
            Some(path) => options = options.ca_certificate(Certificate::from_pem(read(path)?)),
            None => {
                return Err(StoreError::Unsupported {
                    what: "a connection over TLS needs the certificate of its authority".to_owned(),
                    instead: "Write etcds://HOST:PORT/PREFIX?cacert=FILE.".to_owned(),
                });
            }
        }
        match (&self.certificate, &self.key) {
            (Some(certificate), Some(key)) => {
                options = options.identity(Identity::from_pem(read(certificate)?, read(key)?));
            }
            (None, None) => {}
            _ => {
                return Err(StoreError::Unsupported {
                    what: "a client certificate needs its key, and a key its certificate"
                        .to_owned(),
                    instead: "Write both cert=FILE and key=FILE.".to_owned(),
                });
            }
        }
        Ok(options)
    }
}

/// The host with the usual port, if it names none. The last colon is no port inside the brackets of an
/// IPv6 address.
fn with_port(host: &str) -> String {
    match host.rsplit_once(':').filter(|(_, port)| !port.contains(']')) {
        Some(_) => host.to_owned(),
        None => format!("{host}:{PORT}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::url::StoreUrl;

    fn address(text: &str) -> Result<Address, StoreError> {
        match text.parse() {
            Ok(StoreUrl::Etcd(url)) => Address::of(&url),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn servers_prefix_and_user_are_read() {
        let read = address("etcd://alice:s3cret@a:1,b,[::1]/team").unwrap();
        assert_eq!(read.endpoints, ["http://a:1", "http://b:2379", "http://[::1]:2379"]);
        assert_eq!(read.prefix, "team");
        assert!(!format!("{read:?} {}", read.url).contains("s3cret"));
        assert!(read.has_user());
        let plain = address("etcd://").unwrap();
        assert_eq!(
            (plain.endpoints[0].as_str(), plain.prefix.as_str()),
            ("http://localhost:2379", "tenure")
        );
    }

    #[test]
    fn options_belong_to_tls() {
        assert!(address("etcds://a/x?cacert=/ca.pem&cert=/c.pem&key=/k.pem").is_ok());
        assert!(address("etcd://a/x?cacert=/ca.pem").is_err());
        assert!(address("etcds://a/x?other=1").is_err());
    }
}
