//! `/v1/sections`: parts of the task list.

use super::input::{Body, ByBody, MaybeBody, usage};
use super::values::{Label, Position, Priority, Runners, SectionName, given, given_list};
use super::{Api, schema};
use crate::caller::Caller;
use crate::http::limits::Limits;
use crate::problem::Problem;
use crate::routes::{Access, Routes};
use axum::Json;
use serde::{Deserialize, Deserializer};
use tenure::Client;
use tenure::core::Section;
use tenure::core::rules::tasks::{EVERYTHING, SectionChange};
use tenure_frontend::refusal::Refusal;
use tenure_frontend::view::OpenSection;
use utoipa::ToSchema;
use utoipa_axum::routes;

pub(super) fn routes() -> Routes<Api> {
    Routes::new()
        .documented(Access::READ, Limits::Quick, routes!(sections))
        .documented(Access::ADMIN, Limits::Quick, routes!(put_section))
        .documented(Access::ADMIN, Limits::Quick, routes!(pause))
        .documented(Access::ADMIN, Limits::Quick, routes!(resume))
}

/// All sections, in the order of claims.
#[utoipa::path(
    get, path = "/v1/sections", operation_id = "list_sections", tag = "sections",
    responses((status = 200, description = "All sections", body = schema::Sections)),
)]
async fn sections(api: Api) -> Result<Json<schema::Sections>, Problem> {
    let client = api.client();
    let mut all = client.tasks().sections().await?;
    let paused = all.iter().any(|seen| seen.section.name == EVERYTHING && seen.section.paused);
    all.retain(|seen| seen.section.name != EVERYTHING);
    all.sort_by(|a, b| order(&a.section).cmp(&order(&b.section)));
    let holds = client.look_everywhere().await?.holds;
    let one = |seen| OpenSection::among(seen, &holds, client.witness());
    Ok(Json(schema::Sections { sections: all.iter().map(one).collect(), paused }))
}

fn order(section: &Section) -> (u8, i64, &str) {
    (section.priority, section.position, &section.name)
}

/// New values of a section's fields. A field that is left out stays as it is; in a section without a
/// description it has its default.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct SectionBody {
    /// How many runners may work in it at once; null means any number.
    #[serde(default, deserialize_with = "any_or_number")]
    #[schema(value_type = Option<Runners>)]
    max_runners: Option<Option<Runners>>,
    /// Lower goes first.
    #[serde(default, deserialize_with = "given")]
    #[schema(nullable = false)]
    priority: Option<Priority>,
    /// Among equals of priority, lower goes first.
    #[serde(default, deserialize_with = "given")]
    #[schema(nullable = false)]
    position: Option<Position>,
    /// Sections that must be done before; each must be there.
    #[serde(default, deserialize_with = "given_list::<_, _, 0, 1000>")]
    #[schema(nullable = false, max_items = 1000)]
    depends_on: Option<Vec<SectionName>>,
    /// Whether nothing of it is handed out for now.
    #[serde(default, deserialize_with = "given")]
    #[schema(nullable = false)]
    paused: Option<bool>,
    /// Who changes it, for the audit log.
    #[serde(rename = "as")]
    label: Option<Label>,
}

fn any_or_number<'de, D: Deserializer<'de>>(input: D) -> Result<Option<Option<Runners>>, D::Error> {
    Option::<Runners>::deserialize(input).map(Some)
}

/// Describes a section, new or changed. For `admin`.
#[utoipa::path(
    put, path = "/v1/sections/{name}", operation_id = "put_section", tag = "sections",
    params(("name" = inline(SectionName), Path, description = "Which section")),
    request_body = SectionBody,
    responses(
        (status = 200, description = "The section as it is now", body = schema::OneSection),
        (status = 404, description = "A section that it depends on does not exist"),
        (status = 409, description = "SECTION_REFUSED: circular dependency of sections"),
    ),
)]
async fn put_section(
    api: Api,
    caller: Caller,
    name: SectionName,
    Body(asked): Body<SectionBody>,
) -> Result<Json<schema::OneSection>, Problem> {
    if name.0 == EVERYTHING {
        return Err(usage(format!(
            "{EVERYTHING:?} is reserved and cannot be the name of a section"
        )));
    }
    let change = SectionChange {
        max_runners: asked.max_runners.map(|runners| runners.map(|runners| runners.0 as u32)),
        priority: asked.priority.map(Priority::byte),
        position: asked.position.map(|position| position.0),
        depends_on: asked.depends_on.map(|names| names.into_iter().map(String::from).collect()),
        paused: asked.paused,
    };
    let client = api.actor(&caller, asked.label.as_ref())?;
    let section = client.tasks().change_sections(&[(name.0, change)]).await?.remove(0);
    Ok(Json(schema::OneSection { section: (&section).into() }))
}

/// Declares whether tasks of a section are handed out.
macro_rules! pausing {
    ($(#[$about:meta])* $name:ident, $id:literal, $path:literal, $now:literal, $paused:literal) => {
        $(#[$about])*
        #[utoipa::path(
            post, path = $path, operation_id = $id, tag = "sections",
            params(("name" = inline(SectionName), Path, description = "Which section; `*` for everything")),
            request_body = Option<ByBody>,
            responses(
                (status = 200, description = $now, body = schema::Paused),
                (status = 404, description = "No such section"),
            ),
        )]
        async fn $name(
            api: Api,
            caller: Caller,
            name: SectionName,
            MaybeBody(asked): MaybeBody<ByBody>,
        ) -> Result<Json<schema::Paused>, Problem> {
            set_paused(&api.actor(&caller, asked.label.as_ref())?, name, $paused).await
        }
    };
}

pausing! {
    /// Hands out nothing of a section, or nothing at all (`*`), for now. For `admin`.
    pause, "pause_section", "/v1/sections/{name}/pause", "It is paused", true
}

pausing! {
    /// Hands out tasks again. For `admin`.
    resume, "resume_section", "/v1/sections/{name}/resume", "It is not paused", false
}

async fn set_paused(
    client: &Client,
    SectionName(name): SectionName,
    paused: bool,
) -> Result<Json<schema::Paused>, Problem> {
    let known = client.tasks().sections().await?;
    if name != EVERYTHING && !known.iter().any(|seen| seen.section.name == name) {
        return Err(Refusal::no_such_section(&name).into());
    }
    let change = SectionChange { paused: Some(paused), ..SectionChange::default() };
    client.tasks().change_sections(&[(name.clone(), change)]).await?;
    Ok(Json(schema::Paused { section: name, paused }))
}
