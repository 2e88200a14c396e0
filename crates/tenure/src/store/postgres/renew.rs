//! Starting leases anew, in one round trip.

use super::error::PgError;
use super::first_flight::{begin_ask, keys_ask};
use super::limits::ANSWER;
use super::locks::LockSet;
use super::longest;
use super::moment::{MOMENT, Moment};
use super::session::{Ask, Value};
use super::transact::begun;
use super::{Inner, Retry};
use crate::store::format::columns as format;
use crate::store::store_time::milliseconds_up;
use crate::store::{Renewal, Renewed, StoreError};
use serde_json::{Value as Json, json};
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;
use tenure_core::Scope;
use tokio::time::timeout;

/// How long a renewal waits for its answer at least, however short the lease: a busy server needs a moment.
const ANSWER_MIN: Duration = Duration::from_secs(1);

/// Under the locks of the resources: a renewal that is not committed yet and a look that finds the
/// lease lapsed must not both succeed. Of what a renewal names all is held, or nothing changes. Nothing changes either
/// where one is longer than leases may be now; then the answer is [`TOO_LONG`].
const RENEW: &str = "WITH asked AS MATERIALIZED (SELECT * FROM json_to_recordset($1::json)
    AS r(number bigint, resource text, grant_id text, token bigint, ttl_ms bigint, evidence text)),
 moment AS MATERIALIZED (SELECT floor(extract(epoch FROM t) * 1000)::bigint AS now_ms,
    ceil(extract(epoch FROM t) * 1000)::bigint AS begin_ms FROM clock_timestamp() AS t),
 found AS MATERIALIZED (SELECT a.number, a.ttl_ms, a.evidence, h.ctid AS place FROM asked AS a
    LEFT JOIN LATERAL (SELECT ctid FROM @holds WHERE resource = a.resource
        AND grant_id = a.grant_id AND token = a.token
        AND deadline_ms > (SELECT now_ms FROM moment) OFFSET 0) AS h ON true),
 too_long AS MATERIALIZED (
    SELECT FROM @meta WHERE longest_ms < (SELECT max(ttl_ms) FROM asked)),
 held AS MATERIALIZED (
    SELECT number FROM found WHERE NOT EXISTS (SELECT FROM too_long)
    GROUP BY number HAVING count(*) = count(place)),
 renewed AS (UPDATE @holds AS h SET ttl_ms = f.ttl_ms, deadline_ms = m.begin_ms + f.ttl_ms,
        renewed_at_ms = m.now_ms, evidence = coalesce(f.evidence, h.evidence)
    FROM found AS f, moment AS m
    WHERE f.number IN (SELECT number FROM held) AND h.ctid = f.place)
 SELECT number FROM held UNION ALL SELECT -1 FROM too_long";

/// Stands for the number of a renewal.
const TOO_LONG: i64 = -1;

/// Carries out renewals; again where the connection was lost, which does no harm.
pub(super) async fn renew(
    inner: Arc<Inner>,
    renewals: Vec<Renewal>,
) -> Result<Vec<Renewed>, StoreError> {
    let shortest = renewals.iter().map(|renewal| renewal.ttl).min().unwrap_or(ANSWER);
    let mut retry = Retry::within(&inner, shortest);
    // Where no answer comes, another connection must be tried before the lease ends.
    let limit = (shortest / 4).clamp(ANSWER_MIN, ANSWER);
    let longest_ms = renewals.iter().map(|renewal| milliseconds_up(renewal.ttl)).max().unwrap_or(0);
    loop {
        let renewed = match timeout(limit, attempt(&inner, &renewals)).await {
            Ok(renewed) => renewed,
            Err(_) => Err(PgError::Timeout(limit)),
        };
        match renewed {
            Ok(Some(renewed)) => return Ok(renewed),
            Ok(None) => {
                if let Err(error) = longest::raise(&inner, longest_ms).await {
                    retry.after(error).await?;
                }
            }
            Err(error) => retry.after(error).await?,
        }
    }
}

/// Renews once; nothing if one is longer than leases may be now.
async fn attempt(inner: &Inner, renewals: &[Renewal]) -> Result<Option<Vec<Renewed>>, PgError> {
    let session = inner.pool.get().await?;
    let resources = renewals.iter().flat_map(|renewal| &renewal.resources).cloned().collect();
    let locks = LockSet::of_scope(&Scope::Queues(resources), None);
    let rows: Vec<Json> = renewals.iter().enumerate().flat_map(rows_of).collect();
    let asks = [
        begin_ask(&locks),
        keys_ask(&locks),
        Ask::Query(RENEW, vec![Value::Text(Json::Array(rows).to_string())]),
        Ask::Query(MOMENT, vec![]),
        Ask::Run("COMMIT"),
    ];
    let (session, rows) = begun(session, &asks).await?;
    session.set_in_transaction(false);
    session.prepare().await;
    Moment::read(inner, &rows[3])?;
    let held: HashSet<i64> = rows[2].iter().map(|row| row.get(0)).collect();
    if held.contains(&TOO_LONG) {
        return Ok(None);
    }
    let answer = |(number, renewal): (usize, &Renewal)| match renewal.resources.is_empty()
        || held.contains(&(number as i64))
    {
        true => Renewed::Renewed,
        false => Renewed::Lost,
    };
    Ok(Some(renewals.iter().enumerate().map(answer).collect()))
}

fn rows_of((number, renewal): (usize, &Renewal)) -> Vec<Json> {
    let row = |resource: &tenure_core::Resource| {
        json!({
            "number": number,
            "resource": resource.key(),
            "grant_id": renewal.grant.to_string(),
            "token": renewal.token.0 as i64,
            "ttl_ms": milliseconds_up(renewal.ttl),
            "evidence": renewal.bind.as_ref().map(format::evidence_to_json),
        })
    };
    renewal.resources.iter().map(row).collect()
}
