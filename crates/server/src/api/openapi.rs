//! The description of the API. The routes say what is theirs; this says what holds for all.

use super::schema;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use utoipa::openapi::path::{Operation, Parameter, ParameterBuilder, ParameterIn, PathItem};
use utoipa::openapi::schema::{
    AllOfBuilder, AnyOfBuilder, Components, ObjectBuilder, SchemaType, Type,
};
use utoipa::openapi::security::{Http, HttpAuthScheme, SecurityRequirement, SecurityScheme};
use utoipa::openapi::{
    ComponentsBuilder, ContentBuilder, InfoBuilder, OpenApi, OpenApiBuilder, Ref, RefOr, Required,
    ResponseBuilder,
};

const PROBLEM_JSON: &str = "application/problem+json";

/// The document before the routes are in it.
pub(super) fn frame() -> OpenApi {
    let info = InfoBuilder::new()
        .title("tenure")
        .version(env!("CARGO_PKG_VERSION"))
        .description(Some(
            "Locks, leases and task claims for fleets of agents and workers. Times are RFC 3339, \
             spans are milliseconds. Fields may be added: ignore those that you do not know.",
        ))
        .build();
    let bearer = SecurityScheme::Http(Http::new(HttpAuthScheme::Bearer));
    let components = ComponentsBuilder::new()
        .schema_from::<schema::Problem>()
        .security_scheme("token", bearer)
        .build();
    OpenApiBuilder::new()
        .info(info)
        .components(Some(components))
        // Over a socket, and with --no-auth, no token is needed.
        .security(Some([
            SecurityRequirement::new("token", Vec::<String>::new()),
            SecurityRequirement::default(),
        ]))
        .build()
}

/// Adds what all routes have in common: how the checks on requests refuse, how an invalid request is
/// refused, and the idempotency key of requests that change something.
pub(super) fn complete(mut document: OpenApi) -> OpenApi {
    if let Some(components) = &mut document.components {
        describe_choices(components);
    }
    for item in document.paths.paths.values_mut() {
        for (operation, changes) in operations(item) {
            if changes {
                operation.parameters.get_or_insert_default().push(idempotency_key().into());
                add(operation, "422", "The idempotency key was used for another request");
            }
            if operation.request_body.is_some() {
                add(operation, "413", "The body is too large");
                add(operation, "415", "The body is not JSON");
            }
            add(operation, "400", "The request is invalid");
            add(operation, "401", "No token, or an invalid one");
            add(operation, "403", "The token's role does not allow it, or it is not the caller's");
            add(operation, "408", "The request took too long to arrive");
            add(operation, "429", "Too many requests");
            add(operation, "503", "The store is unavailable, or the server is shutting down");
            add(operation, "504", "It took too long; whether it took effect is not known");
            describe_problems(operation);
        }
    }
    document
}

/// Bodies that need at least one of several fields, or sets of them.
const ONE_OF: [(&str, &[&[&str]]); 8] = [
    ("RenewBody", &[&["grant"], &["as"]]),
    ("ReleaseBody", &[&["grant"], &["as", "resources"]]),
    ("OwnBody", &[&["grant"], &["as"]]),
    ("HeartbeatBody", &[&["grant"], &["as"]]),
    ("ResultBody", &[&["grant"], &["as"]]),
    ("FailBody", &[&["grant"], &["as"]]),
    ("SnoozeBody", &[&["grant"], &["as"]]),
    (
        "UpdateBody",
        &[
            &["title"],
            &["description"],
            &["section"],
            &["priority"],
            &["position"],
            &["payload"],
            &["max_attempts"],
            &["not_before"],
        ],
    ),
];

/// Says in the document which fields a body must have one of: types cannot.
fn describe_choices(components: &mut Components) {
    for (body, choices) in ONE_OF {
        let Some(whole) = components.schemas.remove(body) else { continue };
        let choices = choices.iter().map(|fields| {
            let object = ObjectBuilder::new().schema_type(SchemaType::AnyValue);
            fields.iter().fold(object, |object, field| object.required(*field)).build()
        });
        let choice = choices.fold(AnyOfBuilder::new(), AnyOfBuilder::item);
        let both = AllOfBuilder::new().item(whole).item(choice);
        components.schemas.insert(body.to_owned(), both.into());
    }
}

/// The operations of a path, each with whether it changes something.
fn operations(item: &mut PathItem) -> Vec<(&mut Operation, bool)> {
    let looks = item.get.iter_mut().map(|operation| (operation, false));
    let changes = [&mut item.post, &mut item.put, &mut item.patch, &mut item.delete];
    let changes = changes.into_iter().flat_map(|one| one.iter_mut());
    looks.chain(changes.map(|operation| (operation, true))).collect()
}

fn idempotency_key() -> Parameter {
    let schema = ObjectBuilder::new()
        .schema_type(Type::String)
        .min_length(Some(1))
        .max_length(Some(255))
        .pattern(Some("^[!-~]+$"));
    ParameterBuilder::new()
        .name("Idempotency-Key")
        .parameter_in(ParameterIn::Header)
        .required(Required::False)
        .description(Some(
            "The same request with the same key is done once within ten minutes, and gets the same \
             answer again.",
        ))
        .schema(Some(schema))
        .build()
}

fn add(operation: &mut Operation, status: &str, description: &str) {
    let response = ResponseBuilder::new().description(description).build();
    let responses = &mut operation.responses.responses;
    responses.entry(status.to_owned()).or_insert(RefOr::T(response));
}

/// All that is refused is refused in the same form.
fn describe_problems(operation: &mut Operation) {
    for (status, response) in &mut operation.responses.responses {
        let RefOr::T(response) = response else { continue };
        if status.as_str() < "400" {
            continue;
        }
        let problem = ContentBuilder::new().schema(Some(Ref::from_schema_name("Problem"))).build();
        response.content = [(PROBLEM_JSON.to_owned(), problem.into())].into_iter().collect();
    }
}

/// The document as an answer.
pub(super) async fn answer(document: OpenApi) -> Response {
    let json = HeaderValue::from_static("application/json");
    let text = document.to_json().unwrap_or_default();
    ([(header::CONTENT_TYPE, json)], text).into_response()
}
