//! Checks the Host and Origin headers of requests.
//!
//! A web page can make a browser send requests to this server: under a host name that the page's
//! owner points here (DNS rebinding), or from its own origin. Both show in the headers.

use super::peer::Peer;
use crate::problem::Problem;
use axum::http::{HeaderMap, Method, StatusCode, Uri, header};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The host names that were configured in addition to the addresses.
#[derive(Clone, Debug, Default)]
pub(crate) struct Hosts {
    given: Vec<Host>,
}

/// A host with a port, as clients write it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Host {
    name: Name,
    port: Option<u16>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Name {
    Address(IpAddr),
    Domain(String),
}

impl Host {
    /// Parses `NAME`, `NAME:PORT`, `[V6]` or `[V6]:PORT`.
    pub(crate) fn parse(text: &str) -> Option<Host> {
        let (name, port) = match text.strip_prefix('[') {
            Some(rest) => {
                let (name, rest) = rest.split_once(']')?;
                let address = Name::Address(name.parse::<Ipv6Addr>().ok()?.into());
                (address, rest.strip_prefix(':').map_or((!rest.is_empty()).then_some(""), Some))
            }
            None => {
                let (name, port) = match text.split_once(':') {
                    Some((name, port)) => (name, Some(port)),
                    None => (text, None),
                };
                (domain(name)?, port)
            }
        };
        let port = port.map(|port| port.parse()).transpose().ok()?;
        Some(Host { name, port })
    }
}

fn domain(name: &str) -> Option<Name> {
    if let Ok(address) = name.parse::<Ipv4Addr>() {
        return Some(Name::Address(address.into()));
    }
    let fits = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let name = name.strip_suffix('.').unwrap_or(name);
    (!name.is_empty() && name.chars().all(fits)).then(|| Name::Domain(name.to_ascii_lowercase()))
}

impl Hosts {
    /// Accepts these names, each with any port unless it has one.
    pub(crate) fn new(given: Vec<Host>) -> Hosts {
        Hosts { given }
    }

    /// Refuses a request for another host, or from a page of another site.
    pub(crate) fn check(
        &self,
        peer: &Peer,
        method: &Method,
        uri: &Uri,
        headers: &HeaderMap,
    ) -> Result<(), Problem> {
        if let Peer::Tcp { .. } = peer {
            self.check_host(peer, uri, headers)?;
            self.check_origin(peer, headers)?;
        }
        // Another port of the same machine is the same site, but not the same server.
        let is_foreign = ["cross-site", "same-site"]
            .into_iter()
            .any(|site| is_of("sec-fetch-site", site, headers));
        if is_foreign {
            // A user who follows a link opens the page itself.
            let follows_link = is_of("sec-fetch-mode", "navigate", headers);
            if !(method.is_safe() && follows_link) {
                return Err(foreign_origin("another site"));
            }
        }
        Ok(())
    }

    fn check_host(&self, peer: &Peer, uri: &Uri, headers: &HeaderMap) -> Result<(), Problem> {
        let mut hosts = headers.get_all(header::HOST).iter();
        let host = hosts.next().and_then(|host| host.to_str().ok());
        let only = hosts.next().is_none();
        let authority = uri.authority().map(|authority| authority.as_str());
        let is_own = |text: &str| Host::parse(text).is_some_and(|host| self.allows(peer, &host));
        match host {
            Some(host) if only && is_own(host) && authority.is_none_or(is_own) => Ok(()),
            _ => Err(wrong_host(host)),
        }
    }

    fn check_origin(&self, peer: &Peer, headers: &HeaderMap) -> Result<(), Problem> {
        for origin in headers.get_all(header::ORIGIN) {
            let origin = origin.to_str().unwrap_or_default();
            let host = origin.split_once("://").and_then(|(scheme, host)| {
                let default = default_port(scheme == "https");
                let known = scheme == "http" || scheme == "https";
                let host = Host::parse(host).filter(|_| known)?;
                Some(Host { port: host.port.or(Some(default)), ..host })
            });
            if !host.is_some_and(|host| self.allows(peer, &host)) {
                return Err(foreign_origin(origin));
            }
        }
        Ok(())
    }

    fn allows(&self, peer: &Peer, host: &Host) -> bool {
        let given = |given: &Host| {
            given.name == host.name && (given.port.is_none() || given.port == host.port)
        };
        self.given.iter().any(given) || is_own(peer, host)
    }
}

fn is_of(name: &str, value: &str, headers: &HeaderMap) -> bool {
    headers.get(name).is_some_and(|found| found == value)
}

/// Whether the host is the address at which this connection came in.
fn is_own(peer: &Peer, host: &Host) -> bool {
    let Peer::Tcp { local, tls, .. } = peer else { return true };
    let name = match &host.name {
        Name::Address(address) => {
            address.to_canonical() == local.ip().to_canonical() || address.is_loopback()
        }
        Name::Domain(name) => name == "localhost",
    };
    name && host.port.unwrap_or(default_port(*tls)) == local.port()
}

fn default_port(tls: bool) -> u16 {
    if tls { 443 } else { 80 }
}

fn wrong_host(host: Option<&str>) -> Problem {
    let message = match host.map(shortened) {
        Some(host) => format!("this server has no host name {host:?}"),
        None => "the request has no Host header".to_owned(),
    };
    Problem::new(StatusCode::MISDIRECTED_REQUEST, "HOST", message)
        .hint("Use the address that it listens on, or start it with --host NAME.")
}

fn foreign_origin(origin: &str) -> Problem {
    let message = format!("requests from a page of {:?} are not allowed", shortened(origin));
    Problem::new(StatusCode::FORBIDDEN, "ORIGIN", message)
}

fn shortened(text: &str) -> String {
    text.chars().take(80).collect()
}
