//! `/v1/locks`: holding, and looking at what is held.

mod acquire;
mod breaking;
mod look;
mod own;

use super::Api;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(super) fn routes() -> OpenApiRouter<Api> {
    OpenApiRouter::new()
        .routes(routes!(look::locks))
        .routes(routes!(look::show))
        .routes(routes!(look::verify))
        .routes(routes!(look::wait))
        .routes(routes!(acquire::acquire))
        .routes(routes!(own::renew))
        .routes(routes!(own::release))
        .routes(routes!(breaking::break_hold))
        .routes(routes!(breaking::clean_up))
}
