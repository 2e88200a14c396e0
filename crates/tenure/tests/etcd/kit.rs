//! Certificates, and handles of stores at real servers.

use etcd_client::Client;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;
use tenure::core::Revision;
use tenure::store::{EtcdOptions, EtcdStore, Store, StoreExt};
use tenure::url::{EngineUrl, StoreUrl};
use tenure_testkit::Etcd;
use tenure_testkit::etcd::Place;

/// Certificates for a test, which the program openssl makes.
pub struct Certificates {
    folder: TempDir,
}

impl Certificates {
    pub fn new() -> Certificates {
        let folder = tempfile::tempdir().unwrap();
        let certificates = Certificates { folder };
        certificates.openssl(
            "req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=test-ca \
             -keyout ca.key -out ca.pem",
        );
        for name in ["server", "client"] {
            certificates.openssl(&format!(
                "req -newkey rsa:2048 -nodes -subj /CN={name} -keyout {name}.key -out {name}.csr"
            ));
            let extensions = "subjectAltName=IP:127.0.0.1,DNS:localhost\n\
                              extendedKeyUsage=serverAuth,clientAuth\n";
            std::fs::write(certificates.file("ext"), extensions).unwrap();
            certificates.openssl(&format!(
                "x509 -req -in {name}.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 \
                 -extfile ext -out {name}.pem"
            ));
        }
        certificates
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn openssl(&self, arguments: &str) {
        let made = Command::new("openssl")
            .args(arguments.split_whitespace())
            .current_dir(self.folder.path())
            .output();
        match made {
            Ok(output) => assert!(output.status.success(), "{output:?}"),
            Err(error) => {
                panic!("this test needs the program openssl, which does not start: {error}")
            }
        }
    }
}

/// Starts one server that talks to its clients over TLS only.
pub fn start_tls(certificates: &Certificates) -> Etcd {
    let file = |name: &str| certificates.file(name).display().to_string();
    let (authority, server, key) = (file("ca.pem"), file("server.pem"), file("server.key"));
    let arguments = [
        "--cert-file",
        &server,
        "--key-file",
        &key,
        "--trusted-ca-file",
        &authority,
        "--client-cert-auth",
    ];
    let mut cluster = Etcd::at(vec![Place::here()], &arguments, "https");
    cluster.run(0);
    cluster
}

/// A client of etcd itself.
pub async fn client_of(cluster: &Etcd) -> Client {
    Client::connect(cluster.endpoints(), None).await.unwrap()
}

/// A name that nothing else has.
pub fn unique(word: &str) -> String {
    format!("{word}-{:x}", tenure::core::GrantId::random().to_bits())
}

pub fn engine_url(url: &str) -> EngineUrl {
    match url.parse() {
        Ok(StoreUrl::Etcd(url)) => url,
        other => panic!("{url} is {other:?}"),
    }
}

/// Opens the store, without using it yet.
pub fn open(url: &str) -> Arc<dyn Store> {
    // So seldom that only a wake can be what woke.
    let poll_interval = Duration::from_secs(3600);
    let options = EtcdOptions { poll_interval, ..EtcdOptions::default() };
    Arc::new(EtcdStore::open_with(&engine_url(url), options).unwrap())
}

/// Opens the store and uses it once, so that it exists and this handle knows it.
pub async fn open_used(url: &str) -> Arc<dyn Store> {
    let store = open(url);
    store.changed(Revision(0), Duration::ZERO).await.unwrap();
    store
}

/// A client of the servers of this URL, and the prefix of its keys.
pub async fn raw(url: &str) -> (Client, String) {
    let url = engine_url(url);
    let endpoints: Vec<&str> = url.hosts.split(',').collect();
    (Client::connect(endpoints, None).await.unwrap(), format!("{}/", url.path))
}
