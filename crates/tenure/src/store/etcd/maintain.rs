//! Checks of the servers for `tenure doctor`, and removing what dead clients left.

use super::base::text;
use super::compares::COMPARES_MAX;
use super::connection::{Ask, Write};
use super::error::Failure;
use super::handle::Handle;
use super::keys::Family;
use super::records::StoredPlace;
use crate::store::{Finding, StoreError};
use etcd_client::{AlarmAction, AlarmType, Client, Compare, CompareOp, StatusResponse, TxnOp};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;
use tenure_core::GrantId;
use tokio::time::{Instant, timeout};

/// How long a server may take to say how it is.
const STATUS_TIMEOUT: Duration = Duration::from_secs(3);

/// So many guards of resources that are neither held nor waited for are kept. A store that locks many
/// different names, each once, would grow without end otherwise.
const GUARDS_KEPT: usize = 1000;

/// How many keys are removed at once: each of them is compared.
const AT_ONCE: usize = COMPARES_MAX - 10;

/// The first versions of each line in which a leader that was stuck does not end leases that were renewed
/// elsewhere.
const LEASES_FIXED: [(u64, u64, u64); 2] = [(3, 4, 31), (3, 5, 13)];

/// How often it is tried to raise the epoch, which only another operator changes.
const EPOCH_TRIES: u32 = 8;

fn finding(subject: &str, ok: bool, message: String) -> Finding {
    Finding { subject: subject.to_owned(), ok, message }
}

impl Handle {
    /// Checks the servers and the store.
    pub(super) async fn check(&self) -> Result<Vec<Finding>, StoreError> {
        let unwritten = |failure| self.connection.unwritten(failure);
        self.base().await.map_err(unwritten)?;
        let begun = Instant::now();
        self.base().await.map_err(unwritten)?;
        let latency = begun.elapsed();
        let mut findings = vec![finding(
            "latency",
            true,
            format!("a read took {:.1} ms", latency.as_secs_f64() * 1000.0),
        )];
        self.check_servers(&mut findings).await;
        self.check_alarms(&mut findings).await;
        if self.connection.address().has_user() {
            findings.push(finding(
                "user",
                true,
                "the user and the password are accepted".to_owned(),
            ));
        }
        let clock = "times are shown by the clock of each client, because etcd does not tell its own; \
                     leases are judged by etcd";
        findings.push(finding("clock", true, clock.to_owned()));
        let leftovers = self.leftovers().await.map_err(unwritten)?;
        findings.push(Finding::leftovers(leftovers.wakes.len()));
        Ok(findings)
    }

    /// Asks each server by itself.
    async fn check_servers(&self, findings: &mut Vec<Finding>) {
        let address = self.connection.address();
        let (mut answered, mut led) = (0, false);
        let mut versions = BTreeSet::new();
        let mut clusters = BTreeSet::new();
        let mut silent = Vec::new();
        let mut largest = 0;
        for endpoint in &address.endpoints {
            match self.status_of(endpoint).await {
                Ok(status) => {
                    answered += 1;
                    led |= status.leader() != 0;
                    largest = largest.max(status.db_size());
                    versions.insert(status.version().to_owned());
                    clusters.extend(status.header().map(|header| header.cluster_id()));
                }
                Err(Failure::Refused(StoreError::Refused { .. })) => {
                    let message = "this user may not ask the servers how they are".to_owned();
                    findings.push(finding("servers", true, message));
                    return;
                }
                Err(_) => silent.push(endpoint.clone()),
            }
        }
        let members = self.members().await;
        let members = members.map_or_else(String::new, |count| format!(" of a cluster of {count}"));
        let message = match silent.is_empty() {
            true => format!("{answered} answered{members}"),
            false => format!("{answered} answered{members}, not {}", silent.join(", ")),
        };
        findings.push(finding("servers", silent.is_empty(), message));
        if clusters.len() > 1 {
            let message = "the servers are of different clusters, of which each has locks of its own: name \
                           servers of one cluster";
            findings.push(finding("cluster", false, message.to_owned()));
        }
        let leader = if led { "there is one" } else { "there is none, so nothing can be changed" };
        findings.push(finding("leader", led, leader.to_owned()));
        findings.push(finding("space", true, format!("the database has {} KiB", largest / 1024)));
        for version in versions {
            self.saw_version(&version);
            let mut message = format!("etcd {version}");
            if !has_lease_fix(&version) {
                message += "; a leader whose disk is stuck may end leases that were renewed: \
                            3.4.31, 3.5.13 or newer does not";
            }
            findings.push(finding("version", true, message));
        }
    }

    async fn status_of(&self, endpoint: &str) -> Result<StatusResponse, Failure> {
        let address = self.connection.address();
        let options = address.options().map_err(Failure::Refused)?;
        let asking = async {
            let client = Client::connect([endpoint], Some(options)).await?;
            client.maintenance_client().status().await
        };
        match timeout(STATUS_TIMEOUT, asking).await {
            Ok(status) => status.map_err(|error| Failure::of(error, &address.url)),
            Err(_) => Err(Failure::NoAnswer("no answer".to_owned())),
        }
    }

    async fn members(&self) -> Option<usize> {
        let call = |client: Client| {
            let mut cluster = client.cluster_client();
            async move { cluster.member_list().await }
        };
        let list = self.connection.call(STATUS_TIMEOUT, call).await.ok()?;
        Some(list.members().len())
    }

    async fn check_alarms(&self, findings: &mut Vec<Finding>) {
        let call = |client: Client| {
            let mut maintenance = client.maintenance_client();
            async move { maintenance.alarm(AlarmAction::Get, AlarmType::None, None).await }
        };
        let message = match self.connection.call(STATUS_TIMEOUT, call).await {
            Ok(alarms) if alarms.alarms().is_empty() => (true, "none".to_owned()),
            Ok(alarms) => {
                let alarms = alarms.alarms().iter().map(|alarm| match alarm.alarm() {
                    AlarmType::Nospace => "the space is used up: compact, defragment and disarm",
                    AlarmType::Corrupt => "the data of a member is damaged",
                    AlarmType::None => "unknown",
                });
                (false, alarms.collect::<Vec<_>>().join("; "))
            }
            Err(_) => (true, "this user may not ask for them".to_owned()),
        };
        findings.push(finding("alarms", message.0, message.1));
    }

    /// Removes wakes for handles that are gone, and guards of resources that were not used for long.
    pub(super) async fn tidy(&self) -> Result<usize, StoreError> {
        let unwritten = |failure| self.connection.unwritten(failure);
        let leftovers = self.leftovers().await.map_err(unwritten)?;
        let mut tidied = 0;
        for wakes in leftovers.wakes.chunks(AT_ONCE) {
            let unchanged = wakes.iter().map(|(key, revision)| {
                Compare::mod_revision(key.clone(), CompareOp::Equal, *revision)
            });
            let deletes = wakes.iter().map(|(key, _)| TxnOp::delete(key.clone(), None));
            let (compares, operations) = (unchanged.collect(), deletes.collect());
            let write = Write { compares, operations, ..Write::default() };
            if self.connection.write(write).await.map_err(unwritten)?.is_some() {
                tidied += wakes.len();
            }
        }
        for guards in leftovers.guards.chunks(AT_ONCE) {
            if !self.remove_guards(guards).await.map_err(unwritten)? {
                break;
            }
            tidied += guards.len();
        }
        tidied += self.remove_surplus_records().await.map_err(unwritten)?;
        Ok(tidied)
    }

    /// Raises the epoch, so that all numbers from now on are higher than those that were given out before.
    pub(super) async fn raise_epoch(&self) -> Result<(), StoreError> {
        let unwritten = |failure| self.connection.unwritten(failure);
        for _ in 0..EPOCH_TRIES {
            let base = self.base().await.map_err(unwritten)?;
            let epoch = (base.epoch + 1).to_string();
            let write = Write {
                compares: vec![base.same_store(&self.keys), base.unchanged(&self.keys, "epoch")],
                operations: vec![TxnOp::put(self.keys.store("epoch"), epoch, None)],
                ..Write::default()
            };
            if self.connection.write(write).await.map_err(unwritten)?.is_some() {
                return Ok(());
            }
        }
        Err(StoreError::Contended { store: self.url().to_owned(), tries: EPOCH_TRIES })
    }

    /// Counts the wakes and guards that [`Handle::tidy`] would remove.
    pub(super) async fn count_leftovers(&self) -> Result<usize, StoreError> {
        let leftovers = self.leftovers().await;
        let leftovers = leftovers.map_err(|failure| self.connection.unwritten(failure))?;
        Ok(leftovers.wakes.len() + leftovers.guards.len())
    }

    /// Removes guards that did not change since, and raises the floor above all their numbers. Every
    /// change compares the floor, so none can miss that a guard is gone.
    async fn remove_guards(&self, guards: &[IdleGuard]) -> Result<bool, Failure> {
        let base = self.base().await?;
        let highest = guards.iter().map(|guard| guard.number).max().unwrap_or(0);
        let floor = base.numbers_floor.max(highest);
        let unchanged = guards.iter().map(|guard| {
            Compare::mod_revision(guard.key.clone(), CompareOp::Equal, guard.revision)
        });
        let common = [
            base.same_store(&self.keys),
            base.unchanged(&self.keys, "floor"),
            base.unchanged(&self.keys, "epoch"),
            base.unchanged(&self.keys, "stop"),
        ];
        let put = TxnOp::put(self.keys.store("floor"), floor.to_string(), None);
        let deletes = guards.iter().map(|guard| TxnOp::delete(guard.key.clone(), None));
        let write = Write {
            compares: common.into_iter().chain(unchanged).collect(),
            operations: deletes.chain([put]).collect(),
            ..Write::default()
        };
        Ok(self.connection.write(write).await?.is_some())
    }

    async fn leftovers(&self) -> Result<Leftovers, Failure> {
        self.base().await?;
        let asks = [
            Ask::all(self.keys.wakes()).keys_only(),
            Ask::all(self.keys.family(Family::Places)),
            Ask::all(self.keys.family(Family::Holds)).keys_only(),
            Ask::all(self.keys.guards()),
        ];
        let mut pages = self.connection.read(&asks, None).await?;
        let (wakes, places, holds, guards) =
            (pages.next(), pages.next(), pages.next(), pages.next());
        let mut waiting: HashMap<GrantId, String> = HashMap::new();
        for entry in &places.entries {
            let place = StoredPlace::of(entry, self.url())?;
            waiting.insert(place.waiter.grant, place.mailbox);
        }
        let lost = wakes.entries.iter().filter(|entry| {
            let rest = self.keys.rest("w", entry.key()).and_then(|rest| rest.split_once('/'));
            let Some((mailbox, grant)) = rest else { return false };
            let grant = grant.parse::<GrantId>().ok();
            grant.and_then(|grant| waiting.get(&grant)).is_none_or(|where_to| where_to != mailbox)
        });
        let wakes = lost
            .map(|entry| (String::from_utf8_lossy(entry.key()).into_owned(), entry.mod_revision()))
            .collect();
        let spot = |word: &str, key: &[u8]| {
            let rest = self.keys.rest(word, key)?;
            rest.split('\0').next().map(str::to_owned)
        };
        let used = holds.entries.iter().filter_map(|entry| spot("h", entry.key()));
        let queued = places.entries.iter().filter_map(|entry| spot("q", entry.key()));
        let used: BTreeSet<String> = used.chain(queued).collect();
        let mut idle: BTreeMap<(i64, String), u64> = BTreeMap::new();
        for entry in &guards.entries {
            let number = text(entry).and_then(|text| text.parse().ok()).unwrap_or(u64::MAX);
            if spot("g", entry.key()).is_some_and(|spot| !used.contains(&spot)) && number < u64::MAX
            {
                let key = String::from_utf8_lossy(entry.key()).into_owned();
                idle.insert((entry.mod_revision(), key), number);
            }
        }
        let surplus = idle.len().saturating_sub(GUARDS_KEPT);
        let guards = idle
            .into_iter()
            .take(surplus)
            .map(|((revision, key), number)| IdleGuard { key, revision, number })
            .collect();
        Ok(Leftovers { wakes, guards })
    }
}

/// What can be removed.
struct Leftovers {
    /// Wakes for waiters that are gone or have moved to another handle.
    wakes: Vec<(String, i64)>,
    /// The guards that were not put for longest.
    guards: Vec<IdleGuard>,
}

/// The guard of a resource that is neither held nor waited for.
struct IdleGuard {
    key: String,
    revision: i64,
    number: u64,
}

/// Whether this version keeps leases that were renewed when a former leader wakes up.
fn has_lease_fix(version: &str) -> bool {
    let mut parts = version.split(['.', '-', '+']).map(|part| part.parse::<u64>().unwrap_or(0));
    let mut part = || parts.next().unwrap_or(0);
    let version = (part(), part(), part());
    let line =
        LEASES_FIXED.iter().find(|(major, minor, _)| (version.0, version.1) == (*major, *minor));
    line.map_or(version >= (3, 6, 0), |fixed| version >= *fixed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_that_keep_renewed_leases_are_known() {
        for version in ["3.4.31", "3.5.13", "3.5.20", "3.6.0", "3.6.0-rc.1", "4.0.0"] {
            assert!(has_lease_fix(version), "{version}");
        }
        for version in ["3.4.23", "3.5.0", "3.5.12", "3.3.9", ""] {
            assert!(!has_lease_fix(version), "{version}");
        }
    }
}
