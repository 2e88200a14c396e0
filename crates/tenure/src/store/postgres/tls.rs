//! Connections over TLS, as `sslmode` says.

use super::error::PgError;
use super::settings::{TlsMode, TlsSettings};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_cert_signed_by_trust_anchor};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};
use std::path::Path;
use std::sync::Arc;
use tokio_postgres_rustls::MakeRustlsConnect;

/// What makes TLS connections.
pub(super) fn connector(settings: &TlsSettings) -> Result<MakeRustlsConnect, PgError> {
    let provider = Arc::new(ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(|error| wrong("TLS cannot be used", &error))?;
    let verifier: Arc<dyn ServerCertVerifier> = match (settings.mode, &settings.root) {
        (TlsMode::VerifyFull, _) => {
            let roots = Arc::new(roots(settings)?);
            let built = WebPkiServerVerifier::builder_with_provider(roots, provider).build();
            built.map_err(|error| wrong("the certificate authorities cannot be used", &error))?
        }
        (TlsMode::VerifyCa, _) => {
            Arc::new(Unnamed { roots: Some(roots(settings)?), provider: provider.clone() })
        }
        // As libpq: with a file of authorities, `require` also checks who signed.
        (TlsMode::Require, Some(_)) => {
            Arc::new(Unnamed { roots: Some(roots(settings)?), provider: provider.clone() })
        }
        _ => Arc::new(Unnamed { roots: None, provider: provider.clone() }),
    };
    let builder = builder.dangerous().with_custom_certificate_verifier(verifier);
    let config = match (&settings.certificate, &settings.key) {
        (Some(certificate), Some(key)) => {
            let chain = certificates(certificate)?;
            let key = PrivateKeyDer::from_pem_file(key).map_err(|error| unreadable(key, &error))?;
            let built = builder.with_client_auth_cert(chain, key);
            built.map_err(|error| wrong("the client's certificate cannot be used", &error))?
        }
        _ => builder.with_no_client_auth(),
    };
    Ok(MakeRustlsConnect::new(config))
}

fn wrong(what: &str, error: &dyn std::fmt::Display) -> PgError {
    PgError::Settings {
        what: format!("{what}: {error}"),
        hint: "Check sslrootcert, sslcert and sslkey.".to_owned(),
    }
}

fn unreadable(file: &Path, error: &dyn std::fmt::Display) -> PgError {
    wrong(&format!("{} cannot be read", file.display()), error)
}

fn certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>, PgError> {
    let certificates =
        CertificateDer::pem_file_iter(file).map_err(|error| unreadable(file, &error))?;
    certificates.collect::<Result<_, _>>().map_err(|error| unreadable(file, &error))
}

fn roots(settings: &TlsSettings) -> Result<RootCertStore, PgError> {
    let Some(file) = &settings.root else {
        return Err(PgError::Settings {
            what: "this sslmode needs the certificate authority that signed the server".to_owned(),
            hint: "Name its file: ?sslmode=verify-full&sslrootcert=FILE.".to_owned(),
        });
    };
    let mut roots = RootCertStore::empty();
    for certificate in certificates(file)? {
        roots.add(certificate).map_err(|error| unreadable(file, &error))?;
    }
    Ok(roots)
}

/// Checks who signed the server's certificate, or nothing, but not its name.
#[derive(Debug)]
struct Unnamed {
    roots: Option<RootCertStore>,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Unnamed {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        if let Some(roots) = &self.roots {
            let certificate = ParsedCertificate::try_from(end_entity)?;
            let algorithms = self.provider.signature_verification_algorithms.all;
            verify_server_cert_signed_by_trust_anchor(
                &certificate,
                roots,
                intermediates,
                now,
                algorithms,
            )?;
        }
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
