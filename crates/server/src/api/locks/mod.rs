//! `/v1/locks`: holding, and looking at what is held.

mod acquire;
mod breaking;
mod look;
mod own;

use super::Api;
use crate::http::limits::Limits;
use crate::routes::{Access, Routes};
use utoipa_axum::routes;

pub(super) fn routes() -> Routes<Api> {
    let (read, work, admin) = (Access::READ, Access::WORK, Access::ADMIN);
    Routes::new()
        .documented(read, Limits::Quick, routes!(look::locks))
        .documented(read, Limits::Quick, routes!(look::show))
        .documented(read, Limits::Quick, routes!(look::verify))
        .documented(read, Limits::Waits, routes!(look::wait))
        .documented(work, Limits::Waits, routes!(acquire::acquire))
        .documented(work, Limits::Quick, routes!(own::renew))
        .documented(work, Limits::Quick, routes!(own::release))
        .documented(admin, Limits::Quick, routes!(breaking::break_hold))
        .documented(admin, Limits::Quick, routes!(breaking::clean_up))
}
