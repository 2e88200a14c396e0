//! The URL of a database server that is used as a store.

use super::UrlError;
use crate::secret::Secret;
use std::fmt;

/// `SCHEME://[USER[:PASSWORD]@]HOST[:PORT][,HOST[:PORT]…]/PATH[?NAME=VALUE&…]`.
///
/// It is written without its password, wherever it is written: see [`EngineUrl::password`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EngineUrl {
    /// The word before the colon.
    pub scheme: String,
    /// The user, if one is named.
    pub user: Option<String>,
    /// The password, if there is one. `Display` leaves it out, so that it reaches no listing, event,
    /// log or environment of a child process.
    pub password: Option<Secret>,
    /// The servers as written; empty for the usual one.
    pub hosts: String,
    /// What stands behind the servers, without the first slash.
    pub path: String,
    /// The options, in the order in which they are written, without passwords.
    pub options: Vec<(String, String)>,
}

impl EngineUrl {
    pub(super) fn parse(url: &str) -> Result<EngineUrl, UrlError> {
        // An error must not show the password either.
        let wrong = || UrlError::Engine { url: without_password(url) };
        let (scheme, rest) = url.split_once("://").ok_or_else(wrong)?;
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        let (user, hosts) = match authority.rsplit_once('@') {
            Some((user, hosts)) => (Some(user), hosts),
            None => (None, authority),
        };
        let (user, mut password) = match user.map(|user| user.split_once(':').unwrap_or((user, "")))
        {
            Some((user, password)) => (
                Some(decoded(user).ok_or_else(wrong)?),
                Some(password).filter(|text| !text.is_empty()),
            ),
            None => (None, None),
        };
        let mut options = Vec::new();
        for option in query.split('&').filter(|option| !option.is_empty()) {
            match option.split_once('=').ok_or_else(wrong)? {
                ("password", text) => password = Some(text),
                (name, value) => options
                    .push((decoded(name).ok_or_else(wrong)?, decoded(value).ok_or_else(wrong)?)),
            }
        }
        if hosts.contains([' ', '#']) || path.contains(['#', '/']) {
            return Err(wrong());
        }
        Ok(EngineUrl {
            scheme: scheme.to_owned(),
            user: user.filter(|user| !user.is_empty()),
            password: match password {
                Some(text) => Some(Secret::new(decoded(text).ok_or_else(wrong)?)),
                None => None,
            },
            hosts: decoded(hosts).ok_or_else(wrong)?,
            path: decoded(path).ok_or_else(wrong)?,
            options,
        })
    }

    /// The value of an option, if it is there.
    pub fn option(&self, name: &str) -> Option<&str> {
        self.options.iter().find(|(one, _)| one == name).map(|(_, value)| value.as_str())
    }
}

impl fmt::Display for EngineUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://", self.scheme)?;
        if let Some(user) = &self.user {
            write!(f, "{}@", encoded(user))?;
        }
        f.write_str(&self.hosts.replace('/', "%2F"))?;
        if !self.path.is_empty() {
            write!(f, "/{}", encoded(&self.path).replace('/', "%2F"))?;
        }
        for (index, (name, value)) in self.options.iter().enumerate() {
            let before = if index == 0 { '?' } else { '&' };
            write!(f, "{before}{}={}", encoded(name), encoded(value))?;
        }
        Ok(())
    }
}

/// The URL of a store without the password in it, for showing; any other text as it is.
pub fn without_password(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return url.to_owned() };
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let rest = match rest.rsplit_once('@') {
        Some((user, host)) => {
            format!("{}@{host}", user.split(':').next().unwrap_or_default())
        }
        None => rest.to_owned(),
    };
    let options: Vec<&str> = query
        .split('&')
        .filter(|option| !option.is_empty() && !option.starts_with("password="))
        .collect();
    match options.is_empty() {
        true => format!("{scheme}://{rest}"),
        false => format!("{scheme}://{rest}?{}", options.join("&")),
    }
}

/// The text with each `%XX` as the character that it stands for; none if that is no text.
fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        rest = after;
        if *first != b'%' {
            bytes.push(*first);
            continue;
        }
        let digits = std::str::from_utf8(after.get(..2)?).ok()?;
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
        rest = &after[2..];
    }
    String::from_utf8(bytes).ok()
}

fn encoded(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~/,:".contains(&byte);
    text.bytes()
        .map(|byte| match plain(byte) {
            true => char::from(byte).to_string(),
            false => format!("%{byte:02X}"),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_parts_are_read_and_the_password_is_not_written() {
        let url = "postgres://al%40ice:s%3Acret@db1:5433,[::1]/jobs?sslmode=require&schema=a%20b";
        let parsed = EngineUrl::parse(url).unwrap();
        assert_eq!(parsed.user.as_deref(), Some("al@ice"));
        assert_eq!(parsed.password, Some(Secret::new("s:cret")));
        assert_eq!((parsed.hosts.as_str(), parsed.path.as_str()), ("db1:5433,[::1]", "jobs"));
        assert_eq!(parsed.option("schema"), Some("a b"));
        let written = "postgres://al%40ice@db1:5433,[::1]/jobs?sslmode=require&schema=a%20b";
        assert_eq!(parsed.to_string(), written);
        assert!(!format!("{parsed:?}").contains("s:cret"));
        let again = EngineUrl::parse(written).unwrap();
        assert_eq!(again, EngineUrl { password: None, ..parsed });
    }

    #[test]
    fn little_is_enough() {
        for text in [
            "postgres://",
            "postgres:///db",
            "postgres://%2Frun%2Fpg/db",
            "etcd://a:1,b:2",
            "etcd://a:1/x%2Fy",
        ] {
            assert_eq!(EngineUrl::parse(text).unwrap().to_string(), text);
        }
        let hidden = EngineUrl::parse("postgres:///db?password=abc&user=u").unwrap();
        assert_eq!(hidden.to_string(), "postgres:///db?user=u");
        assert_eq!(hidden.password, Some(Secret::new("abc")));
    }

    #[test]
    fn errors_do_not_show_passwords() {
        for text in ["postgres://u:abc@h/a%ZZ", "postgres://u:abc@h/a/b", "etcd://u:abc@h?x"] {
            let error = EngineUrl::parse(text).unwrap_err();
            assert!(!error.to_string().contains("abc"), "{error}");
        }
    }
}
