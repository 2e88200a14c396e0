//! Routes that declare who may call them and which limits they have.
//!
//! [`Routes`] takes a route only together with both, so a new route cannot forget them. Its role is
//! checked just before the handler; `http/request_checks.rs` applies the limits, and asks for a token where
//! one is needed, before anything else reads the request.

use crate::caller::{Caller, Role};
use crate::http::limits::Limits;
use crate::problem::Problem;
use axum::Router;
use axum::extract::{MatchedPath, Request};
use axum::handler::Handler;
use axum::http::StatusCode;
use axum::middleware::{Next, from_fn};
use axum::response::IntoResponse;
use axum::routing::{MethodRouter, Route};
use std::collections::BTreeMap;
use std::convert::Infallible;
use tower::{Layer, Service};
use utoipa::openapi::OpenApi;
use utoipa_axum::router::{OpenApiRouter, UtoipaMethodRouter};

/// Who may call a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Every caller, without a token: the answer holds no data of the store.
    Anyone,
    /// Every caller that has a token or needs none. The handler asks for a role by itself.
    Known,
    /// Callers with at least this role.
    Needs(Role),
}

impl Access {
    /// Callers that may look.
    pub const READ: Access = Access::Needs(Role::Read);
    /// Callers that may hold, add, claim and finish.
    pub const WORK: Access = Access::Needs(Role::Work);
    /// Callers that may end what others hold, and change what others are to do.
    pub const ADMIN: Access = Access::Needs(Role::Admin);
}

/// What the routes at one path declare.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Declaration {
    /// Whether no token is needed.
    pub(crate) is_open: bool,
    pub(crate) limits: Limits,
}

impl Declaration {
    fn new(access: Access, limits: Limits) -> Declaration {
        Declaration { is_open: access == Access::Anyone, limits }
    }
}

/// What all routes declare, by path.
#[derive(Default)]
pub(crate) struct Declarations(BTreeMap<String, Declaration>);

impl Declarations {
    /// What the route of a request declares. A request without a route needs a token too, so that
    /// strangers cannot tell which routes there are.
    pub(crate) fn of(&self, request: &Request) -> Declaration {
        let path = request.extensions().get::<MatchedPath>();
        let declared = path.and_then(|path| self.0.get(path.as_str())).copied();
        declared.unwrap_or(Declaration { is_open: false, limits: Limits::Quick })
    }

    /// Declares a path, which methods with different roles may share.
    fn declare(&mut self, path: &str, declaration: Declaration) {
        let before = self.0.insert(path.to_owned(), declaration);
        assert!(before.is_none_or(|it| it == declaration), "{path} is declared in two ways");
    }

    #[cfg(test)]
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, Declaration)> {
        self.0.iter().map(|(path, declaration)| (path.as_str(), *declaration))
    }
}

/// A router whose routes have all declared who may call them, and their limits.
pub struct Routes<S = ()> {
    router: OpenApiRouter<S>,
    declarations: Declarations,
}

impl<S: Clone + Send + Sync + 'static> Routes<S> {
    pub(crate) fn new() -> Routes<S> {
        Routes::with_document(OpenApi::default())
    }

    /// No routes yet, with the document that describes them.
    pub(crate) fn with_document(document: OpenApi) -> Routes<S> {
        let router = OpenApiRouter::with_openapi(document);
        Routes { router, declarations: Declarations::default() }
    }

    /// Adds a route that the OpenAPI document does not describe.
    pub(crate) fn route(
        mut self,
        path: &str,
        access: Access,
        limits: Limits,
        methods: MethodRouter<S>,
    ) -> Routes<S> {
        self.declarations.declare(path, Declaration::new(access, limits));
        self.router = self.router.route(path, guarded(methods, access));
        self
    }

    /// Adds what `routes!` makes: methods of one path, with their descriptions.
    pub(crate) fn documented(
        mut self,
        access: Access,
        limits: Limits,
        (schemas, paths, methods): UtoipaMethodRouter<S>,
    ) -> Routes<S> {
        for path in paths.paths.keys() {
            self.declarations.declare(path, Declaration::new(access, limits));
        }
        self.router = self.router.routes((schemas, paths, guarded(methods, access)));
        self
    }

    pub(crate) fn merge(mut self, other: Routes<S>) -> Routes<S> {
        self.router = self.router.merge(other.router);
        for (path, declaration) in other.declarations.0 {
            self.declarations.declare(&path, declaration);
        }
        self
    }

    /// Wraps all routes that were added so far.
    pub(crate) fn layer<L>(mut self, layer: L) -> Routes<S>
    where
        L: Layer<Route> + Clone + Send + Sync + 'static,
        L::Service: Service<Request> + Clone + Send + Sync + 'static,
        <L::Service as Service<Request>>::Response: IntoResponse + 'static,
        <L::Service as Service<Request>>::Error: Into<Infallible> + 'static,
        <L::Service as Service<Request>>::Future: Send + 'static,
    {
        self.router = self.router.layer(layer);
        self
    }

    /// Answers requests whose path has a route, but not with their method.
    pub(crate) fn wrong_method<H, T>(self, handler: H) -> Routes<S>
    where
        H: Handler<T, S>,
        T: 'static,
    {
        let (router, document) = self.router.split_for_parts();
        let mut router = OpenApiRouter::from(router.method_not_allowed_fallback(handler));
        *router.get_openapi_mut() = document;
        Routes { router, declarations: self.declarations }
    }

    pub(crate) fn with_state<S2>(self, state: S) -> Routes<S2> {
        Routes { router: self.router.with_state(state), declarations: self.declarations }
    }

    /// Takes out the description of the routes.
    pub(crate) fn take_document(&mut self) -> OpenApi {
        self.router.to_openapi()
    }

    pub(crate) fn into_parts(self) -> (Router<S>, Declarations) {
        (self.router.into(), self.declarations)
    }
}

impl Routes {
    /// Returns the routes without the checks of a server: each request must carry a [`Caller`] in
    /// its extensions, and no limits are applied.
    pub fn into_router(self) -> Router {
        self.router.into()
    }
}

/// Refuses callers without the role that a route needs.
fn guarded<S: Clone + Send + Sync + 'static>(
    methods: MethodRouter<S>,
    access: Access,
) -> MethodRouter<S> {
    let Access::Needs(role) = access else { return methods };
    methods.layer(from_fn(move |request: Request, next: Next| async move {
        let caller = request.extensions().get::<Caller>().ok_or_else(unknown_caller)?;
        caller.require(role)?;
        Ok::<_, Problem>(next.run(request).await)
    }))
}

/// The request was let in without a caller.
pub(crate) fn unknown_caller() -> Problem {
    Problem::new(StatusCode::UNAUTHORIZED, "UNAUTHORIZED", "the caller is not authenticated")
}
