//! Handles the requests of the protocol.

use super::answer::{self, Aside, Refused};
use super::call::Call;
use super::host_sessions::{HostSessions, SESSION_ARGUMENT};
use super::session::Session;
use super::sessions::Sessions;
use super::{agent_header, prompts, resources, tools};
use crate::caller::{Caller, Role};
use axum::http::request::Parts;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, GetPromptRequestParams,
    GetPromptResponse, Implementation, InitializeRequestParams, InitializeResult,
    ListPromptsResult, ListResourcesResult, ListToolsResult, PaginatedRequestParams,
    ReadResourceRequestParams, ReadResourceResponse, ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::RequestContext;
use rmcp::transport::streamable_http_server::session::SessionRestoreMarker;
use rmcp::{ErrorData, RoleServer, ServerHandler};
use serde_json::{Map, Value};
use std::sync::{Arc, OnceLock};
use tenure::Client;
use tenure::agent::Agent;
use tenure::core::GrantId;
use tokio::sync::OnceCell;

/// What an agent should know before it calls a tool.
const INSTRUCTIONS: &str = "\
Other agents work here too. Before you change something that others may change, hold it: claim_task \
for tasks, acquire_lock for anything else (path:GLOB for files). Release it as soon as you are \
done. If a result has success false, do what its `next` says; do not touch what another agent \
holds. Every call renews what you hold; `lost` in a result names what you no longer hold.";

/// The header with the session id of the protocol.
pub(super) const SESSION_ID: &str = "mcp-session-id";

/// One conversation with one agent, or over HTTP perhaps a single request.
pub(super) struct Server {
    client: Client,
    /// The owner of this conversation, unless it is a single request.
    opened: OnceLock<Opened>,
    /// Over HTTP, the session of this conversation, after the first call.
    own: OnceCell<Arc<Session>>,
    /// Over stdio, the sessions of the program at the other end.
    local: Option<Arc<HostSessions>>,
    /// Over HTTP, the sessions that are passed as arguments.
    sessions: Option<Arc<Sessions>>,
}

/// A conversation that was opened.
struct Opened {
    owner: Option<String>,
    /// Whether it was opened with an earlier server process.
    is_resumed: bool,
}

impl Server {
    /// A server for the agent that started this process.
    pub(super) fn over_stdio(client: Client, sessions: Arc<HostSessions>) -> Server {
        let opened = OnceLock::from(Opened { owner: None, is_resumed: false });
        Server { client, opened, own: OnceCell::new(), local: Some(sessions), sessions: None }
    }

    /// A server for agents that connect over HTTP.
    pub(super) fn over_http(sessions: Arc<Sessions>) -> Server {
        let client = sessions.client().clone();
        let (opened, own) = (OnceLock::new(), OnceCell::new());
        Server { client, opened, own, local: None, sessions: Some(sessions) }
    }

    /// The caller. Over HTTP the middleware identifies it; the user who started this process may do
    /// everything.
    fn caller(&self, context: &RequestContext<RoleServer>) -> Result<Caller, Refused> {
        if self.sessions.is_none() {
            return Ok(Caller::local());
        }
        let parts = context.extensions.get::<Parts>();
        parts.and_then(|parts| parts.extensions.get::<Caller>()).cloned().ok_or_else(|| {
            Refused::new("UNAUTHORIZED", "The caller is not authenticated", "Tell the user.")
        })
    }

    async fn call(
        &self,
        request: CallToolRequestParams,
        role: Role,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResult, Refused> {
        let caller = self.caller(&context)?;
        caller.require(role).map_err(Refused::from)?;
        let mut arguments = request.arguments.unwrap_or_default();
        let (session, new_name) = self.session(&caller, &mut arguments, &context).await?;
        let agent = text(&mut arguments, "agent_id")?;
        // A token that may use exactly one label acts under it.
        let agent = agent.or_else(|| caller.labels.only().map(str::to_owned));
        let program = context.client_info().map(|info| info.name);
        let client = session.client(agent.as_deref(), program.as_deref()).await?;
        // Reading with a read-only token must not change anything.
        if caller.role >= Role::Work {
            session.renew().await?;
        }
        let call = Call { session: session.clone(), client, context };
        let answer = tools::run(&call, &request.name, Value::Object(arguments)).await;
        let name = match (&self.sessions, new_name) {
            (Some(sessions), Some(name)) if !session.is_idle().await => {
                // If it cannot be remembered, it must not hold anything.
                if let Err(refused) = sessions.remember(name, &session) {
                    session.end().await?;
                    return Err(refused);
                }
                Some(name.to_string())
            }
            _ => None,
        };
        let (lost, found) = (session.take_lost().await, session.take_found().await);
        let hooks = self.local.as_ref().and_then(|local| local.hooks_note(&session));
        Ok(answer::result(answer, &Aside { lost: &lost, found: &found, session: name, hooks }))
    }

    /// The session of a call, and the name that it gets if it is new and comes to hold something.
    async fn session(
        &self,
        caller: &Caller,
        arguments: &mut Map<String, Value>,
        context: &RequestContext<RoleServer>,
    ) -> Result<(Arc<Session>, Option<GrantId>), Refused> {
        let of_plugin = text(arguments, SESSION_ARGUMENT)?;
        if let Some(local) = &self.local {
            return Ok((local.of_call(&context.meta, of_plugin.as_deref()).await?, None));
        }
        let name = text(arguments, "session")?;
        if let Some(opened) = self.opened.get() {
            if opened.owner != caller.name {
                let message = "This session was opened with another token";
                return Err(Refused::new("FORBIDDEN", message, "Connect again."));
            }
            let begin = || self.begin(opened, caller, context);
            return Ok((self.own.get_or_try_init(begin).await?.clone(), None));
        }
        let agent = agent_of(context);
        match (&self.sessions, name) {
            (Some(sessions), Some(name)) => Ok((sessions.find(&name, caller, agent).await?, None)),
            (Some(sessions), None) => {
                let (name, session) = sessions.begin_named(caller, agent)?;
                Ok((session, Some(name)))
            }
            (None, _) => unreachable!("without sessions to choose from there is one of its own"),
        }
    }

    /// The session of this conversation, with what it held before if it was resumed.
    async fn begin(
        &self,
        opened: &Opened,
        caller: &Caller,
        context: &RequestContext<RoleServer>,
    ) -> Result<Arc<Session>, Refused> {
        let sessions = self.sessions.as_ref().expect("over stdio it is there from the start");
        let parts = context.extensions.get::<Parts>();
        let id = parts.and_then(|parts| parts.headers.get(SESSION_ID)?.to_str().ok());
        let id = id.map_or_else(|| GrantId::random().to_string(), str::to_owned);
        let session = sessions.begin(&id, caller, agent_of(context))?;
        if opened.is_resumed {
            session.take_up().await?;
        }
        sessions.open.hold(&id, &session);
        Ok(session)
    }
}

/// The agent that the headers of a request name.
fn agent_of(context: &RequestContext<RoleServer>) -> Option<Agent> {
    agent_header::agent(&context.extensions.get::<Parts>()?.headers)
}

/// Takes a text out of the arguments; an empty one counts as missing.
fn text(arguments: &mut Map<String, Value>, name: &str) -> Result<Option<String>, Refused> {
    match arguments.remove(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text).filter(|text| !text.trim().is_empty())),
        Some(_) => Err(Refused::usage(format!("{name} must be a string"))),
    }
}

impl Drop for Server {
    /// Over HTTP a session ends with its conversation; if the server shuts down too, the session is
    /// left to the next server. The sessions of a process are ended by that process.
    fn drop(&mut self) {
        let session = self.own.take();
        if let (Some(session), Ok(runtime)) = (session, tokio::runtime::Handle::try_current()) {
            session.call_off();
            // If the store fails now, the leases lapse.
            runtime.spawn(async move { session.end().await });
        }
    }
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_resources()
            .enable_prompts()
            .build();
        ServerConfig::new(capabilities)
            .with_server_info(Implementation::new("tenure", env!("CARGO_PKG_VERSION")))
            .with_instructions(INSTRUCTIONS)
    }

    async fn initialize(
        &self,
        request: InitializeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<InitializeResult, ErrorData> {
        if self.sessions.is_some() {
            let owner = self.caller(&context).map_err(protocol_error)?.name;
            let is_resumed = context.extensions.get::<SessionRestoreMarker>().is_some();
            self.opened.get_or_init(|| Opened { owner, is_resumed });
        }
        context.peer.set_peer_info(request.clone());
        self.negotiate_initialize(&request)
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let tools = match self.opened.get() {
            Some(_) => &*tools::IN_SESSION,
            None => &*tools::SESSIONLESS,
        };
        Ok(ListToolsResult::with_all_items(tools.clone()))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        tools::IN_SESSION.iter().find(|tool| tool.name == name).cloned()
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let Some(role) = tools::role(&request.name) else {
            let message = format!("no tool {:?}", request.name);
            return Err(ErrorData::invalid_params(message, None));
        };
        let result = self.call(request, role, context).await;
        Ok(result.unwrap_or_else(|refused| answer::result(Err(refused), &Aside::default())).into())
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        Ok(ListPromptsResult::with_all_items(prompts::all()))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        self.caller(&context).map_err(protocol_error)?;
        let prompt = prompts::get(&request.name).ok_or_else(|| {
            ErrorData::invalid_params(format!("no prompt {:?}", request.name), None)
        })?;
        Ok(prompt.into())
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        Ok(ListResourcesResult::with_all_items(resources::all()))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        self.caller(&context).map_err(protocol_error)?;
        let read = resources::read(&self.client, &request.uri).await;
        match read.map_err(|error| protocol_error(error.into()))? {
            Some(result) => Ok(result.into()),
            None => {
                let message = format!("no resource {:?}", request.uri);
                Err(ErrorData::resource_not_found(message, None))
            }
        }
    }
}

fn protocol_error(refused: Refused) -> ErrorData {
    let value = refused.value();
    let message = value["message"].as_str().unwrap_or_default().to_owned();
    ErrorData::internal_error(message, Some(value))
}
