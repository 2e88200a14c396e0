//! The entries of tenure in a host's JSON file of hooks. They are recognised by their command.

use super::json::{self, Step};
use super::plan::Malformed;
use serde_json::{Value, json};

/// What tenure wants in a file of hooks.
#[derive(Clone, Debug)]
pub(crate) struct HookEntries {
    /// The host's word, as in `tenure hook HOST`.
    pub(crate) host: &'static str,
    pub(crate) shape: Shape,
    /// The events, each with the tools that it is limited to.
    pub(crate) events: &'static [(&'static str, Option<&'static str>)],
    /// Whether they are in the user's own settings.
    pub(crate) is_of_user: bool,
}

/// How a host writes its hooks below the key of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// A list of groups, each with a matcher and a list of hooks.
    Groups,
    /// A list of hooks, in a file that names its version.
    Versioned,
}

/// The key of all hooks.
const HOOKS: &str = "hooks";

/// The version of the format of [`Shape::Versioned`].
const VERSION: &str = "version";

/// The command of a hook. Hosts run it through a shell. Configuration files are committed, so the
/// command must do nothing where tenure is not installed, or is a version without this command: hosts
/// take some exit codes for a refusal, and `tenure hook` refuses by what it prints.
pub(crate) fn command(host: &str) -> String {
    format!("command -v tenure >/dev/null 2>&1 || exit 0; tenure hook {host} || exit 0")
}

/// The same in the user's own settings.
fn user_command(host: &str) -> String {
    command(&format!("{host} --user"))
}

impl HookEntries {
    /// The same entries for the user's own settings.
    pub(crate) fn of_user(&self) -> HookEntries {
        HookEntries { is_of_user: true, ..self.clone() }
    }

    /// The text with these entries.
    pub(crate) fn with(&self, text: Option<&str>) -> Result<String, Malformed> {
        if let Some(text) = text
            && self.is_complete(&json::value(text)?)
        {
            return Ok(text.to_owned());
        }
        let bare = match text {
            Some(text) => self.without(text)?,
            None => None,
        };
        let mut now = bare.clone();
        for (event, matcher) in self.events {
            let entry = self.entry(*matcher);
            now = Some(json::add(now.as_deref(), &[HOOKS, event], None, &entry)?);
        }
        if self.shape == Shape::Versioned && bare.is_none() {
            now = Some(json::add(now.as_deref(), &[], Some(VERSION), &json!(1))?);
        }
        Ok(now.unwrap_or_default())
    }

    /// The text without entries that run `tenure hook HOST`; `None` if the file was created for
    /// them.
    pub(crate) fn without(&self, text: &str) -> Result<Option<String>, Malformed> {
        let mut text = text.to_owned();
        loop {
            let value = json::value(&text)?;
            let Some(Place { event, group, hook }) = self.places(&value).pop() else { break };
            let steps = [Step::Key(HOOKS), Step::Key(&event), Step::Index(group)];
            let inner = hook.map(|hook| [Step::Key(HOOKS), Step::Index(hook)]);
            let steps = steps.into_iter().chain(inner.into_iter().flatten()).collect::<Vec<_>>();
            match json::remove(&text, &steps)? {
                Some(rest) if rest == text => break,
                Some(rest) if self.is_leftover(&value, &json::value(&rest)?) => return Ok(None),
                Some(rest) => text = rest,
                None => return Ok(None),
            }
        }
        Ok(Some(text))
    }

    /// Whether all entries are there as they are written now, and no others of tenure.
    pub(crate) fn is_complete(&self, value: &Value) -> bool {
        let wanted = self.events.iter().map(|(event, matcher)| (*event, self.entry(*matcher)));
        let mut missing: Vec<(&str, Value)> = wanted.collect();
        for Place { event, group, hook } in self.places(value) {
            let found = &value[HOOKS][&event][group];
            let known = missing.iter().position(|(name, entry)| *name == event && entry == found);
            match known {
                Some(index) if hook.is_none() => missing.swap_remove(index),
                _ => return false,
            };
        }
        missing.is_empty()
    }

    /// Whether there is an entry that runs `tenure hook HOST`.
    pub(crate) fn is_present(&self, value: &Value) -> bool {
        !self.places(value).is_empty()
    }

    fn entry(&self, matcher: Option<&str>) -> Value {
        let command = match self.is_of_user {
            true => user_command(self.host),
            false => command(self.host),
        };
        let mut entry = match self.shape {
            Shape::Groups => json!({}),
            Shape::Versioned => json!({ "command": command }),
        };
        if let Some(matcher) = matcher {
            entry["matcher"] = json!(matcher);
        }
        if self.shape == Shape::Groups {
            entry[HOOKS] = json!([{ "type": "command", "command": command }]);
        }
        entry
    }

    /// Where entries of tenure are, in the order of the file.
    fn places(&self, value: &Value) -> Vec<Place> {
        let mut places = Vec::new();
        let events = value[HOOKS].as_object().into_iter().flatten();
        for (event, entries) in events {
            for (group, entry) in entries.as_array().into_iter().flatten().enumerate() {
                let place = |hook| Place { event: event.clone(), group, hook };
                match entry[HOOKS].as_array() {
                    None if self.is_ours(entry) => places.push(place(None)),
                    Some(hooks) => {
                        let ours = (0..hooks.len()).filter(|index| self.is_ours(&hooks[*index]));
                        match hooks.len() {
                            1 => places.extend(ours.map(|_| place(None))),
                            _ => places.extend(ours.map(|index| place(Some(index)))),
                        }
                    }
                    None => {}
                }
            }
        }
        places
    }

    fn is_ours(&self, hook: &Value) -> bool {
        let marker = format!("tenure hook {}", self.host);
        let command = hook["command"].as_str().unwrap_or_default();
        let ends = |rest: &str| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '-');
        command.match_indices(&marker).any(|(at, _)| ends(&command[at + marker.len()..]))
    }

    /// Whether only the version is left of a file in which it follows the hooks. Setup writes it
    /// there in files that it creates; in others it adds the hooks after it.
    fn is_leftover(&self, before: &Value, after: &Value) -> bool {
        let keys = |value: &Value| -> Vec<String> {
            value.as_object().into_iter().flatten().map(|(key, _)| key.clone()).collect()
        };
        self.shape == Shape::Versioned
            && keys(before) == [HOOKS, VERSION]
            && *after == json!({ VERSION: 1 })
    }
}

/// Where an entry is: below an event's key, and inside a group if that has other hooks too.
struct Place {
    event: String,
    group: usize,
    hook: Option<usize>,
}

#[cfg(test)]
mod tests;
