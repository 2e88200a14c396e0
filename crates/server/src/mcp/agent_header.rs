//! The agent of a request over HTTP, as headers name it. A client that knows its session, or expands
//! variables in the headers of its configuration, is then the same owner as its shell and its hooks.

use axum::http::HeaderMap;
use tenure::agent::{Agent, Host};

/// The header with the label of the agent.
pub(super) const AGENT: &str = "tenure-agent";

/// The header with the program of the agent and the id of its session, and of its subagent if it is one:
/// `claude-code SESSION`.
pub(super) const SESSION: &str = "tenure-session";

/// The agent that the headers name. A variable that the client did not expand names none: all its agents
/// would be one.
pub(super) fn agent(headers: &HeaderMap) -> Option<Agent> {
    let text = |name: &str| {
        let value = headers.get(name)?.to_str().ok()?.trim();
        (!value.is_empty() && !value.contains('$')).then(|| value.to_owned())
    };
    if let Some(label) = text(AGENT) {
        return Some(Agent::labelled(label));
    }
    let session = text(SESSION)?;
    let mut words = session.split_whitespace();
    let (host, id) = (words.next()?.parse::<Host>().ok()?, words.next()?);
    // The process of the agent's program is not one of this server's ancestors.
    Some(Agent { process: None, ..Agent::of_session(host, id, words.next()) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(name: &'static str, value: &str) -> Option<String> {
        let mut headers = HeaderMap::new();
        headers.insert(name, value.parse().unwrap());
        agent(&headers).map(|agent| agent.label)
    }

    #[test]
    fn a_session_is_the_same_agent_as_in_its_shell() {
        let own = Agent::of_session(Host::ClaudeCode, "s-1", None).label;
        assert_eq!(found(SESSION, "claude-code s-1"), Some(own));
        let part = Agent::of_session(Host::Codex, "s-1", Some("t")).label;
        assert_eq!(found(SESSION, "codex s-1 t"), Some(part));
        assert_eq!(found(AGENT, "alice"), Some("alice".to_owned()));
    }

    #[test]
    fn what_names_no_agent_is_left_out() {
        for value in ["", "claude-code", "claude-code ${CLAUDE_CODE_SESSION_ID}", "emacs 1"] {
            assert_eq!(found(SESSION, value), None, "{value}");
        }
        assert_eq!(found(AGENT, "$TENURE_AGENT"), None);
    }
}
