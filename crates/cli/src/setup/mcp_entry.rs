//! The entry of tenure's MCP server in a host's configuration.

use super::json::{self, Step};
use super::plan::Malformed;
use super::section::HASH;
use serde_json::{Value, json};
use std::path::Path;

/// The name of the server in all hosts.
const NAME: &str = "tenure";

/// The schema of opencode's configuration.
const SCHEMA: &str = "$schema";
const OPENCODE_SCHEMA: &str = "https://opencode.ai/config.json";

/// How a host writes its MCP servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum McpFormat {
    /// `{"mcpServers": {"NAME": {"command": …, "args": […]}}}`
    McpServers,
    /// As [`McpFormat::McpServers`], with the kind of each server.
    TypedMcpServers,
    /// As [`McpFormat::McpServers`], for Cursor, which starts servers in a folder of its own.
    CursorMcpServers,
    /// `{"mcp": {"NAME": {"type": "local", "command": […]}}}` of opencode, or its newer form with
    /// `servers` in between if the file has that.
    Opencode,
    /// `[mcp_servers.NAME]` in TOML.
    CodexToml,
}

/// The table in Codex's TOML.
const TOML_BODY: &str = "[mcp_servers.tenure]\ncommand = \"tenure\"\nargs = [\"mcp\"]\n";

impl McpFormat {
    /// The text with the entry. An entry that runs `tenure mcp` in another way is kept: its user
    /// chose it.
    pub(crate) fn with(self, text: Option<&str>) -> Result<String, Malformed> {
        if self == McpFormat::CodexToml {
            return with_toml(text);
        }
        let value = text.map(json::value).transpose()?.unwrap_or_default();
        let path = self.path(&value);
        match (text, entry(&value, &path)) {
            (Some(text), Some(found)) if is_ours(found) => Ok(text.to_owned()),
            (Some(text), Some(_)) => {
                let reason = "another MCP server already has the name \"tenure\"";
                Err(Malformed::at(text, text.find("\"tenure\"").unwrap_or(0), reason))
            }
            (None, _) if self == McpFormat::Opencode => {
                let text = json::add(None, &path, Some(NAME), &self.entry())?;
                // opencode would add it by itself, and change a file that is committed.
                json::add(Some(&text), &[], Some(SCHEMA), &json!(OPENCODE_SCHEMA))
            }
            _ => json::add(text, &path, Some(NAME), &self.entry()),
        }
    }

    /// The text without the entry; `None` if the file was created for it.
    pub(crate) fn without(self, text: &str) -> Result<Option<String>, Malformed> {
        if self == McpFormat::CodexToml {
            parse_toml(text)?;
            return HASH.without(text);
        }
        let value = json::value(text)?;
        let path = self.path(&value);
        match entry(&value, &path) {
            Some(found) if is_ours(found) => {
                let steps = path.iter().map(|key| Step::Key(key)).chain([Step::Key(NAME)]);
                let rest = json::remove(text, &steps.collect::<Vec<_>>())?;
                Ok(rest.filter(|rest| !self.is_leftover(&value, rest)))
            }
            _ => Ok(Some(text.to_owned())),
        }
    }

    /// Whether the user changed the entry since it was written.
    pub(crate) fn is_edited(self, text: &str) -> bool {
        if self == McpFormat::CodexToml {
            return HASH.body(text).is_ok_and(|body| body.is_some_and(|body| body != TOML_BODY));
        }
        let Ok(value) = json::value(text) else { return false };
        entry(&value, &self.path(&value))
            .is_some_and(|found| is_ours(found) && *found != self.entry())
    }

    /// Whether only the schema is left of a file in which it follows the servers. Setup writes it there
    /// in files that it creates.
    fn is_leftover(self, before: &Value, rest: &str) -> bool {
        let keys: Vec<&String> = before.as_object().into_iter().flat_map(|it| it.keys()).collect();
        self == McpFormat::Opencode
            && keys == ["mcp", SCHEMA]
            && json::value(rest).is_ok_and(|rest| rest == json!({ SCHEMA: OPENCODE_SCHEMA }))
    }

    fn path(self, value: &Value) -> Vec<&'static str> {
        match self {
            McpFormat::Opencode => {
                let servers = &value["mcp"]["servers"];
                // A server of that name has a type; the newer form's table has none.
                match servers.is_object() && servers.get("type").is_none() {
                    true => vec!["mcp", "servers"],
                    false => vec!["mcp"],
                }
            }
            _ => vec!["mcpServers"],
        }
    }

    fn entry(self) -> Value {
        match self {
            McpFormat::TypedMcpServers => {
                json!({ "type": "stdio", "command": "tenure", "args": ["mcp"] })
            }
            McpFormat::CursorMcpServers => {
                json!({ "command": "tenure", "args": ["-C", "${workspaceFolder}", "mcp"] })
            }
            McpFormat::Opencode => {
                json!({ "type": "local", "command": ["tenure", "mcp"], "enabled": true })
            }
            _ => json!({ "command": "tenure", "args": ["mcp"] }),
        }
    }
}

fn entry<'v>(value: &'v Value, path: &[&str]) -> Option<&'v Value> {
    path.iter().try_fold(value, |inner, key| inner.get(key))?.get(NAME)
}

/// Whether an entry starts `tenure mcp`.
fn is_ours(entry: &Value) -> bool {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let words: Vec<String> = match &entry["command"] {
        Value::Array(words) => words.iter().filter_map(text).collect(),
        command => {
            let arguments = entry["args"].as_array().into_iter().flatten();
            text(command).into_iter().chain(arguments.filter_map(text)).collect()
        }
    };
    is_tenure_mcp(&words)
}

fn is_tenure_mcp(words: &[String]) -> bool {
    let program = words.first().and_then(|word| Path::new(word).file_name());
    program.is_some_and(|name| name == NAME) && words.iter().any(|word| word == "mcp")
}

fn with_toml(text: Option<&str>) -> Result<String, Malformed> {
    let Some(text) = text else { return HASH.with(None, TOML_BODY) };
    let table = parse_toml(text)?;
    let is_marked = HASH.body(text)?.is_some();
    let server = table.get("mcp_servers").and_then(|servers| servers.get(NAME));
    if let Some(server) = server
        && !is_marked
    {
        let words = |key| server.get(key).map(toml_words).unwrap_or_default();
        let words: Vec<String> = words("command").into_iter().chain(words("args")).collect();
        return match is_tenure_mcp(&words) {
            true => Ok(text.to_owned()),
            false => {
                let reason = "another MCP server already has the name \"tenure\"";
                Err(Malformed::at(text, text.find("tenure").unwrap_or(0), reason))
            }
        };
    }
    let with = HASH.with(Some(text), TOML_BODY)?;
    match parse_toml(&with) {
        Ok(_) => Ok(with),
        Err(_) => {
            let at = text.find("mcp_servers").unwrap_or(0);
            let reason = "mcp_servers is written in a form that a table cannot be added to: write \
                          it as tables, [mcp_servers.NAME]";
            Err(Malformed::at(text, at, reason))
        }
    }
}

fn toml_words(item: &toml_edit::Item) -> Vec<String> {
    match item.as_array() {
        Some(array) => array.iter().filter_map(|word| word.as_str()).map(str::to_owned).collect(),
        None => item.as_str().map(str::to_owned).into_iter().collect(),
    }
}

fn parse_toml(text: &str) -> Result<toml_edit::Table, Malformed> {
    let text = text.trim_start_matches('\u{feff}');
    let parsed = text.parse::<toml_edit::Document<String>>();
    parsed.map(|document| document.as_table().clone()).map_err(|error| {
        let at = error.span().map_or(0, |span| span.start);
        let reason = error.message().lines().next().unwrap_or_default().to_owned();
        Malformed::at(text, at, format!("not valid TOML: {reason}"))
    })
}

#[cfg(test)]
mod tests;
