//! Text that must not be shown.

use std::fmt;

/// A secret, such as a server's token. `Debug` does not print it, so that it stays out of logs.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Keeps this text secret.
    pub fn new(text: impl Into<String>) -> Secret {
        Secret(text.into())
    }

    /// The text itself, for the one place that needs it.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(hidden)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_does_not_print_it() {
        let shown = format!("{:?}", Some(Secret::new("tnr_abc")));
        assert_eq!(shown, "Some(Secret(hidden))");
    }
}
