//! Finds the sockets that listen on an address.

use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// The state of a listening socket in the kernel's tables.
const LISTENS: &str = "0A";

/// A listening socket.
#[derive(Debug, PartialEq, Eq)]
struct Listening {
    address: SocketAddr,
    user: u32,
    number: u64,
}

/// The sockets of this user that accept connections to this address, by inode; several only if they
/// share the port. Empty if another user has the address; `None` if the system does not tell.
pub(crate) fn own_listening_sockets(address: SocketAddr) -> Option<Vec<u64>> {
    let own = rustix::process::geteuid().as_raw();
    let found = listening(address)?;
    let found = sockets_of(&found, address);
    Some(match found.iter().all(|it| it.user == own) {
        true => found.iter().map(|it| it.number).collect(),
        false => vec![],
    })
}

/// As [`own_listening_sockets`], of any user.
pub(crate) fn listening_sockets(address: SocketAddr) -> Option<Vec<u64>> {
    let found = listening(address)?;
    Some(sockets_of(&found, address).iter().map(|it| it.number).collect())
}

/// The listening sockets of this network namespace that may accept connections to this address.
fn listening(address: SocketAddr) -> Option<Vec<Listening>> {
    if !cfg!(target_os = "linux") {
        return None;
    }
    let read = |table: &str| -> Vec<Listening> {
        let text = fs::read_to_string(table).unwrap_or_default();
        text.lines().filter_map(parse).collect()
    };
    let mut found = Vec::new();
    if address.is_ipv4() {
        found = read("/proc/self/net/tcp");
        // Reading a table takes milliseconds. A listener with the exact address takes precedence,
        // so the other table is not needed.
        if found.iter().any(|it| it.address == address) {
            return Some(found);
        }
    }
    found.extend(read("/proc/self/net/tcp6"));
    if address.is_ipv6() && sockets_of(&found, address).is_empty() {
        found.extend(read("/proc/self/net/tcp"));
    }
    Some(found)
}

fn sockets_of(all: &[Listening], address: SocketAddr) -> Vec<&Listening> {
    let at = |ip: IpAddr| -> Vec<&Listening> {
        let same = |it: &&Listening| {
            it.address.port() == address.port() && it.address.ip().to_canonical() == ip
        };
        all.iter().filter(same).collect()
    };
    // The kernel prefers the listener with the exact address to one for all addresses.
    let everywhere = [IpAddr::from(Ipv4Addr::UNSPECIFIED), IpAddr::from(Ipv6Addr::UNSPECIFIED)];
    let mut found = at(address.ip().to_canonical());
    if found.is_empty() {
        found = everywhere.into_iter().flat_map(at).collect();
    }
    found
}

/// Whether the process has this socket open. Only its own user can see that.
pub(crate) fn has_socket(pid: u32, number: u64) -> bool {
    let name = format!("socket:[{number}]");
    let files = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    files.into_iter().any(|file| {
        fs::read_link(file.path()).is_ok_and(|target| target.as_os_str() == name.as_str())
    })
}

/// Parses a line such as `0: 0100007F:1B9E 00000000:0000 0A … UID … INODE …`.
fn parse(line: &str) -> Option<Listening> {
    let fields: Vec<&str> = line.split_ascii_whitespace().collect();
    let [_, local, _, state, _, _, _, user, _, number, ..] = fields.as_slice() else { return None };
    if *state != LISTENS {
        return None;
    }
    let (ip, port) = local.split_once(':')?;
    let address = SocketAddr::new(parse_ip(ip)?, u16::from_str_radix(port, 16).ok()?);
    Some(Listening { address, user: user.parse().ok()?, number: number.parse().ok()? })
}

/// Parses an address that is written as four-byte numbers in this machine's byte order.
fn parse_ip(text: &str) -> Option<IpAddr> {
    let word = |index: usize| {
        let digits = text.get(index * 8..index * 8 + 8)?;
        Some(u32::from_str_radix(digits, 16).ok()?.to_ne_bytes())
    };
    match text.len() {
        8 => Some(IpAddr::from(word(0)?)),
        32 => {
            let mut bytes = [0; 16];
            for index in 0..4 {
                bytes[index * 4..index * 4 + 4].copy_from_slice(&word(index)?);
            }
            Some(IpAddr::from(bytes))
        }
        _ => None,
    }
}

#[cfg(test)]
#[cfg(target_endian = "little")]
mod tests {
    use super::*;

    const TABLE: &str = "\
  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:1B9E 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 111 1
   1: 00000000:1B9F 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 112 1
   2: 0100007F:1B9E 0100007F:C350 01 00000000:00000000 00:00000000 00000000  1001        0 113 1
   0: 00000000000000000000000001000000:1B9E 00000000000000000000000000000000:0000 0A 0:0 0:0 0 1001 0 114 1";

    #[test]
    fn the_listener_of_an_address_is_told_from_others() {
        let all: Vec<Listening> = TABLE.lines().filter_map(parse).collect();
        assert_eq!(all.len(), 3, "{all:?}");
        let sockets = |address: &str| -> Vec<(u64, u32)> {
            let found = sockets_of(&all, address.parse().unwrap());
            found.iter().map(|it| (it.number, it.user)).collect()
        };
        assert_eq!(sockets("127.0.0.1:7070"), [(111, 1000)]);
        // The same port of the other loopback address belongs to another user.
        assert_eq!(sockets("[::1]:7070"), [(114, 1001)]);
        assert_eq!(sockets("127.0.0.1:7071"), [(112, 0)]);
        assert!(sockets("127.0.0.1:7072").is_empty());
    }
}
