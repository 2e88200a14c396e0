//! Connections to one server, and the token that goes over them.

use super::connections::{Answer, Connections, SendError, Unusable};
use crate::local_server::{self, LocalServer};
use crate::secret::Secret;
use crate::url::{Address, RemoteOptions};
use http_body_util::Full;
use hyper::body::Bytes;
use hyper::header::{AUTHORIZATION, HeaderValue};
use hyper::{Request, Uri};
use parking_lot::Mutex;
use std::sync::Arc;

/// Connections, and the one token that is sent over them. A server's own token goes over
/// connections to that server only, so a link is never given another token.
pub(super) struct Link {
    connections: Connections,
    authorization: Option<HeaderValue>,
    server: Option<LocalServer>,
}

impl Link {
    /// Whether it leads to a server of this user that was seen at its address.
    pub(super) fn is_to_known_server(&self) -> bool {
        self.server.is_some()
    }

    /// Sends a request, with the token.
    pub(super) async fn send(
        &self,
        mut request: Request<Full<Bytes>>,
    ) -> Result<Answer, SendError> {
        if let Some(value) = &self.authorization {
            request.headers_mut().insert(AUTHORIZATION, value.clone());
        }
        self.connections.send(request).await
    }
}

/// The link that is used now, and how to find a better one.
pub(super) struct Links {
    address: Address,
    options: RemoteOptions,
    current: Mutex<Arc<Link>>,
}

impl Links {
    pub(super) fn new(address: &Address, options: &RemoteOptions) -> Result<Links, Unusable> {
        let link = link(address, options, find(address, options))?;
        let (address, options) = (address.clone(), options.clone());
        Ok(Links { address, options, current: Mutex::new(Arc::new(link)) })
    }

    /// The link to use.
    pub(super) fn current(&self) -> Arc<Link> {
        self.current.lock().clone()
    }

    /// Looks whether a server of this user is at the address that is not the one of this link, such
    /// as the next one after a restart, and uses it from now on. Says whether another link is used.
    ///
    /// Once such a server was there, others that take its port are not spoken to.
    pub(super) fn use_newer(&self, tried: &Arc<Link>) -> bool {
        let found = find(&self.address, &self.options);
        let mut current = self.current.lock();
        if !Arc::ptr_eq(&current, tried) {
            return true;
        }
        if found.is_some() && found != tried.server {
            let Ok(link) = link(&self.address, &self.options, found) else { return false };
            *current = Arc::new(link);
            return true;
        }
        false
    }

    /// The same, and says what is at the address if it is no newer one. Dearer: it reads the
    /// system's tables of sockets.
    pub(super) fn look_again(&self, tried: &Arc<Link>) -> Looked {
        let before = self.listeners();
        if self.use_newer(tried) {
            return Looked::Changed;
        }
        // A server announces itself before it listens: one that listened before and after no record
        // named it is none of this user's. The other way round it could have been killed meanwhile, and
        // its record removed by the next one. The socket of one that was killed may still be seen when
        // its process is not.
        let is_announced = self.is_announced();
        let is_same = before.as_ref().is_none_or(|before| !before.is_empty())
            && self.listeners() == before
            && !is_announced;
        if is_same { Looked::Same } else { Looked::Gone }
    }

    fn is_announced(&self) -> bool {
        let folder = self.options.local_servers.as_ref().filter(|_| self.options.token.is_none());
        let place = host_and_port(&self.address).zip(folder);
        place.is_some_and(|((host, port), folder)| folder.is_announced(&host, port))
    }

    /// The sockets that listen at the address; none where the system does not tell.
    fn listeners(&self) -> Option<Vec<u64>> {
        let (host, port) = host_and_port(&self.address)?;
        local_server::listeners(&host, port)
    }
}

/// What is at an address.
pub(super) enum Looked {
    /// Another server of this user, which is used from now on.
    Changed,
    /// What was there before, as far as can be seen.
    Same,
    /// Nothing for now.
    Gone,
}

fn link(
    address: &Address,
    options: &RemoteOptions,
    server: Option<LocalServer>,
) -> Result<Link, Unusable> {
    let token = options.token.as_ref().or(server.as_ref().map(|server| &server.token));
    let authorization = token.map(bearer).transpose()?;
    let connections = Connections::new(address, options.ca_file.as_deref(), server.clone())?;
    Ok(Link { connections, authorization, server })
}

/// The server of this user at this address, where no token was given.
fn find(address: &Address, options: &RemoteOptions) -> Option<LocalServer> {
    let folder = options.local_servers.as_ref().filter(|_| options.token.is_none())?;
    let (host, port) = host_and_port(address)?;
    folder.find(&host, port)
}

/// Over TCP; a socket in the file system shows by itself whose process is at the other end.
fn host_and_port(address: &Address) -> Option<(String, u16)> {
    let Address::Url(url) = address else { return None };
    let url: Uri = url.parse().ok()?;
    let port = url.port_u16().unwrap_or(if url.scheme_str() == Some("https") { 443 } else { 80 });
    Some((url.host()?.to_owned(), port))
}

fn bearer(token: &Secret) -> Result<HeaderValue, Unusable> {
    let unusable = |_| {
        (
            "the token has characters that none has".to_owned(),
            "Put a token into TENURE_SERVER_TOKEN.",
        )
    };
    let mut value =
        HeaderValue::from_str(&format!("Bearer {}", token.reveal())).map_err(unusable)?;
    value.set_sensitive(true);
    Ok(value)
}
