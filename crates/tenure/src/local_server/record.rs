//! What a running server announces about itself, and whether that is still true.

use crate::platform::{self, LocalWitness};
use crate::secret::Secret;
use crate::store::format::Form;
use crate::store::format::parts::EvidenceRecord;
use serde::{Deserialize, Serialize};
use std::fs;
use std::net::{IpAddr, SocketAddr};
#[cfg(feature = "http")]
use std::net::{Ipv4Addr, Ipv6Addr};
use std::path::{Path, PathBuf};
use tenure_core::{Evidence, Liveness, Witness};

/// The suffix of a record's file.
const SUFFIX: &str = "server";

/// A running server: its process, its addresses, and the file of its token.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Record {
    process: EvidenceRecord,
    addresses: Vec<SocketAddr>,
    /// The name of a file in the same folder.
    pub(super) token_file: String,
}

impl Record {
    /// A record of this process.
    pub fn of_this_process(addresses: Vec<SocketAddr>, token_file: &Path) -> Record {
        let name = token_file.file_name().unwrap_or_default();
        let token_file = name.to_string_lossy().into_owned();
        Record { process: EvidenceRecord::of(&platform::this_process()), addresses, token_file }
    }

    pub(super) fn file_name(&self) -> String {
        format!("{}.{SUFFIX}", uuid::Uuid::new_v4().simple())
    }

    pub(super) fn is_one(file: &Path) -> bool {
        file.extension().is_some_and(|suffix| suffix == SUFFIX)
    }

    pub(super) fn to_text(&self) -> String {
        serde_json::to_string(self).expect("a record of words and numbers has a JSON form") + "\n"
    }

    pub(super) fn parse(text: &str) -> Option<Record> {
        serde_json::from_str(text).ok()
    }

    /// Whether its process is known to have ended.
    pub(super) fn has_ended(&self) -> bool {
        LocalWitness::new().liveness(&self.process.clone().into_core()) == Liveness::Dead
    }

    /// Its listener for this host and port, if there is one.
    pub(super) fn listener(self, host: &str, port: u16) -> Option<Listener> {
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let asked: Option<IpAddr> = host.parse().ok();
        if asked.is_none() && !host.eq_ignore_ascii_case("localhost") {
            return None;
        }
        let fits = |address: &&SocketAddr| {
            address.port() == port
                && address.ip().is_loopback()
                && asked.is_none_or(|asked| asked == address.ip())
        };
        let address = *self.addresses.iter().find(fits)?;
        Some(Listener { process: self.process.into_core(), address })
    }
}

/// A listener as a record claims it.
pub(super) struct Listener {
    process: Evidence,
    address: SocketAddr,
}

/// A server of this user on this machine, found at its address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LocalServer {
    /// The address that it listens on.
    pub address: SocketAddr,
    /// Its token.
    pub token: Secret,
    process: Evidence,
    /// The inode of its listening socket; `None` if the system does not tell.
    socket: Option<u64>,
}

impl LocalServer {
    /// The server behind this listener, if it is the one that wrote the record.
    pub(super) fn verified(listener: Listener, token: Secret) -> Option<LocalServer> {
        let Listener { process, address } = listener;
        if LocalWitness::new().liveness(&process) != Liveness::Alive {
            return None;
        }
        let pid = process.process?.pid;
        let socket = match platform::own_listening_sockets(address) {
            Some(sockets) => Some(sockets.into_iter().find(|it| platform::has_socket(pid, *it))?),
            None => None,
        };
        Some(LocalServer { address, token, process, socket })
    }

    /// Whether it still listens, and has done so since it was found: then a connection that was
    /// made in between leads to it.
    ///
    /// A listening socket keeps its address until it is closed. So once it was seen at the address,
    /// it is enough that the same process still has it. If the system tells nothing about sockets,
    /// only the process itself is checked.
    pub fn still_listens(&self) -> bool {
        let has_socket = |socket| {
            self.process.process.is_some_and(|process| platform::has_socket(process.pid, socket))
        };
        LocalWitness::new().liveness(&self.process) == Liveness::Alive
            && self.socket.is_none_or(has_socket)
    }
}

/// The sockets that listen at this host and port, of any user; `None` if the system does not tell.
/// Only for hosts that are this machine: `localhost` and loopback addresses.
#[cfg(feature = "http")]
pub(crate) fn listeners(host: &str, port: u16) -> Option<Vec<u64>> {
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let addresses: Vec<IpAddr> = match host.parse::<IpAddr>() {
        Ok(address) if address.is_loopback() => vec![address],
        Err(_) if host.eq_ignore_ascii_case("localhost") => {
            vec![Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()]
        }
        _ => return None,
    };
    let mut sockets = Vec::new();
    for address in addresses {
        sockets.extend(platform::listening_sockets(SocketAddr::new(address, port))?);
    }
    Some(sockets)
}

/// A file that is removed on drop.
#[derive(Debug)]
pub struct Announcement {
    file: PathBuf,
}

impl Announcement {
    pub(super) fn of(file: PathBuf) -> Announcement {
        Announcement { file }
    }

    /// The path of the file.
    pub fn path(&self) -> &Path {
        &self.file
    }
}

impl Drop for Announcement {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.file);
    }
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use super::*;
    use crate::local_server::ServerFolder;
    use crate::url::StoreUrl;
    use std::net::TcpListener;

    /// A server of another version finds the records of this one.
    #[test]
    fn a_record_is_read_and_written_as_it_was() {
        let sample = include_str!("../../tests/samples/local-server-1.json");
        assert_eq!(Record::parse(sample).unwrap().to_text(), sample);
    }

    fn scene() -> (tempfile::TempDir, ServerFolder, PathBuf) {
        let home = tempfile::tempdir().unwrap();
        let folder = ServerFolder::at(home.path().join("servers"));
        let store: StoreUrl = "memory:".parse().unwrap();
        folder.keep_token(&store, Secret::new("tnr_1")).unwrap();
        let file = folder.token_file(&store);
        (home, folder, file)
    }

    #[test]
    fn a_listener_of_this_process_is_found_while_it_listens() {
        let (_home, folder, token) = scene();
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let listener = TcpListener::bind(address).unwrap();
            let address = listener.local_addr().unwrap();
            let record = Record::of_this_process(vec![address], &token);
            let announcement = folder.announce(&record).unwrap();
            let host = address.ip().to_string();
            let found = folder.find(&host, address.port()).expect("the server");
            assert_eq!((found.token.reveal(), found.address), ("tnr_1", address));
            assert!(found.still_listens());
            assert!(folder.find("localhost", address.port()).is_some());
            assert!(folder.find("127.0.0.2", address.port()).is_none());
            assert!(folder.find("example.org", address.port()).is_none());
            assert!(folder.find(&host, address.port() ^ 1).is_none());
            drop(listener);
            assert!(!found.still_listens());
            assert!(folder.find(&host, address.port()).is_none());
            drop(announcement);
            assert!(folder.files_ending("server").is_empty());
        }
    }

    #[test]
    fn another_process_at_the_port_is_not_the_server() {
        let (_home, folder, token) = scene();
        // The record names a process that lives and has no such socket: this one listens.
        let mut other = std::process::Command::new("sleep").arg("1000").spawn().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let process = platform::process_evidence(other.id()).unwrap();
        let process = EvidenceRecord::of(&process);
        let record = Record { process, ..Record::of_this_process(vec![address], &token) };
        let _announcement = folder.announce(&record).unwrap();
        assert!(folder.find("127.0.0.1", address.port()).is_none());
        other.kill().unwrap();
        other.wait().unwrap();
        // What a server left that was killed is removed by the next.
        let next = folder.announce(&Record::of_this_process(vec![], &token)).unwrap();
        assert_eq!(folder.files_ending("server"), [next.path()]);
        assert!(token.exists());
    }
}
