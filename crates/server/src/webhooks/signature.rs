//! Signs messages as <https://www.standardwebhooks.com> defines it, for which receivers find libraries.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ring::hmac;
use std::fmt;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The beginning of a secret that is written in base64.
const PREFIX: &str = "whsec_";

/// A shorter secret could be guessed.
const SECRET_BYTES_MIN: usize = 16;

/// What messages are signed with.
pub struct WebhookSecret(hmac::Key);

impl fmt::Debug for WebhookSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WebhookSecret(..)")
    }
}

/// Why a secret cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SecretError {
    /// The file cannot be read.
    #[error("cannot read {}: {source}", .file.display())]
    Unreadable {
        /// The file.
        file: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// Other users could read the secret.
    #[error("other users can read {}", .file.display())]
    Public {
        /// The file.
        file: PathBuf,
    },
    /// The secret is too short or not what it says.
    #[error("{} has no secret of at least {SECRET_BYTES_MIN} bytes", .file.display())]
    Short {
        /// The file.
        file: PathBuf,
    },
}

impl WebhookSecret {
    /// Reads the secret from a file that other users cannot read: `whsec_` and base64, or plain text.
    pub fn read(file: &Path) -> Result<WebhookSecret, SecretError> {
        let unreadable = |source| SecretError::Unreadable { file: file.to_owned(), source };
        let metadata = std::fs::metadata(file).map_err(unreadable)?;
        if metadata.mode() & 0o077 != 0 {
            return Err(SecretError::Public { file: file.to_owned() });
        }
        let text = std::fs::read_to_string(file).map_err(unreadable)?;
        WebhookSecret::parse(text.trim()).ok_or(SecretError::Short { file: file.to_owned() })
    }

    fn parse(text: &str) -> Option<WebhookSecret> {
        let bytes = match text.strip_prefix(PREFIX) {
            Some(encoded) => STANDARD.decode(encoded).ok()?,
            None => text.as_bytes().to_vec(),
        };
        let is_long = bytes.len() >= SECRET_BYTES_MIN;
        is_long.then(|| WebhookSecret(hmac::Key::new(hmac::HMAC_SHA256, &bytes)))
    }

    /// The signature of a message that is sent at this time, in seconds since 1970.
    pub(super) fn sign(&self, id: &str, seconds: i64, body: &str) -> String {
        let signed = hmac::sign(&self.0, format!("{id}.{seconds}.{body}").as_bytes());
        format!("v1,{}", STANDARD.encode(signed.as_ref()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_signature_is_that_of_the_standard() {
        // The example of the standard's own libraries.
        let secret = WebhookSecret::parse("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap();
        let signed =
            secret.sign("msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, r#"{"test": 2432232314}"#);
        assert_eq!(signed, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
        assert!(!format!("{secret:?}").contains("MfKQ"));
    }

    #[test]
    fn a_secret_is_private_and_long_enough() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("secret");
        assert!(matches!(WebhookSecret::read(&file), Err(SecretError::Unreadable { .. })));
        let write = |text: &str, mode: u32| {
            std::fs::write(&file, text).unwrap();
            std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).unwrap();
        };
        write("sixteen bytes or more\n", 0o644);
        assert!(matches!(WebhookSecret::read(&file), Err(SecretError::Public { .. })));
        write("short", 0o600);
        assert!(matches!(WebhookSecret::read(&file), Err(SecretError::Short { .. })));
        write("sixteen bytes or more\n", 0o600);
        assert!(WebhookSecret::read(&file).is_ok());
    }
}
