//! Look, decide, compare and write; again where others were faster.

use super::base::decode;
use super::connection::{Ask, Pages, Write};
use super::error::Failure;
use super::handle::Handle;
use super::leases::LeaseBook;
use super::look::Look;
use super::plan::{Marker, Plan, newest_event};
use crate::store::format::etcd::LogRecord;
use crate::store::{Committed, StoreError, Transaction};
use etcd_client::{Compare, CompareOp, PutOptions, TxnOp};
use std::time::Duration;
use tenure_core::{Change, Scope};
use tokio::time::{Instant, sleep};

/// How often a change is tried. Long before that it stops the others, so that only trouble leads here.
const TRIES_MAX: u32 = 50;

/// For how long a change is tried.
const TIME_MAX: Duration = Duration::from_secs(30);

/// After so many tries in vain a change stops all others for a moment. One that compares all guards
/// loses against every other change, so it does so earlier.
const TRIES_UNTIL_STOP: u32 = 8;
const TRIES_UNTIL_STOP_WIDE: u32 = 2;

/// The lease of the key that stops all other changes, in seconds: if the process that put it ends there,
/// the others go on after that.
const STOP_SECONDS: i64 = 3;

/// The longest pause after a try in vain, in milliseconds.
const PAUSE_MAX_MS: u64 = 40;

/// What became of a change that was sent.
enum Sent {
    /// It was made, at this revision; with what was read at the same time.
    Made(Pages),
    /// Something that it is based on had changed: nothing was written.
    TooLate,
}

impl Handle {
    /// Carries a transaction out.
    pub(super) async fn transact(&self, transaction: Transaction) -> Result<Committed, StoreError> {
        let mut leases = LeaseBook::default();
        let mut tries = 0;
        let committed = self.tries(transaction, &mut leases, &mut tries).await;
        if !matches!(committed, Err(StoreError::Unknown { .. })) {
            // Tries in vain may have got leases that nothing was attached to.
            self.leases.end_unused(leases.left());
        }
        committed
    }

    /// Tries until it is done, and counts the tries in vain.
    async fn tries(
        &self,
        mut transaction: Transaction,
        leases: &mut LeaseBook,
        tries: &mut u32,
    ) -> Result<Committed, StoreError> {
        let end = Instant::now() + TIME_MAX;
        let mut turn = None;
        let mut stop: Option<Stop> = None;
        let mut may_remember = true;
        let outcome = loop {
            if *tries > 0 && turn.is_none() {
                turn = Some(self.late.lock().await);
            }
            let contended =
                || StoreError::Contended { store: self.url().to_owned(), tries: *tries };
            let remembered = std::mem::take(&mut may_remember);
            let trying = self.try_once(&mut transaction, leases, stop.as_ref(), *tries, remembered);
            match trying.await {
                Ok(Tried::Done(committed)) => break Ok(committed),
                Ok(Tried::LookAgain) => {}
                Ok(_) if *tries >= TRIES_MAX || Instant::now() > end => break Err(contended()),
                Ok(Tried::TooLate { wide }) => {
                    *tries += 1;
                    let most = if wide { TRIES_UNTIL_STOP_WIDE } else { TRIES_UNTIL_STOP };
                    if *tries >= most && stop.is_none() {
                        stop = self.stop_others().await;
                    } else {
                        pause(*tries).await;
                    }
                }
                Ok(Tried::StopEnded) => stop = None,
                // That is no try in vain.
                Ok(Tried::Stopped) => pause(3).await,
                Err(error) => break Err(error),
            }
        };
        if let Some(stop) = stop {
            // The change removed the key; the lease is left, or both if there was no change.
            let _ = self.connection.revoke_lease(stop.lease).await;
        }
        outcome
    }

    async fn try_once(
        &self,
        transaction: &mut Transaction,
        leases: &mut LeaseBook,
        stop: Option<&Stop>,
        tries: u32,
        may_remember: bool,
    ) -> Result<Tried, StoreError> {
        let (mut look, change) = match self.choose(transaction, tries, may_remember).await {
            Ok(chosen) => chosen,
            Err(Failure::Compacted) => return Ok(Tried::TooLate { wide: false }),
            Err(failure) => return Err(self.connection.unwritten(failure)),
        };
        let is_remembered = look.is_remembered;
        let Some(change) = change else {
            return Ok(match is_remembered {
                // Nothing would compare what it was based on.
                true => Tried::LookAgain,
                false => Tried::Done(Committed { revision: None }),
            });
        };
        super::LIMITS.check(&change)?;
        let own_stop = stop.map(|stop| stop.revision);
        let found = look.base.revision("stop");
        if found != own_stop.unwrap_or(0) {
            return match (found, own_stop) {
                (0, Some(_)) => Ok(Tried::StopEnded),
                _ => Ok(Tried::Stopped),
            };
        }
        let asks = look.asks.clone();
        let wide = look.snapshot.whole || look.snapshot.shows_waits;
        let plan = match self.plan(&mut look, &change, leases, own_stop).await {
            Ok(plan) => plan,
            Err(Failure::Compacted | Failure::NoLease) => return Ok(Tried::TooLate { wide }),
            Err(failure) => return Err(self.connection.unwritten(failure)),
        };
        let spares = leases.spares(&plan.attached);
        let since = Instant::now();
        let (sent, started) = tokio::join!(self.send(&plan), self.connection.keep_leases(&spares));
        match &started {
            Ok(()) => leases.started(&spares, since),
            Err(_) => leases.forget_all(),
        }
        match sent {
            Ok(Sent::Made(pages)) => {
                self.made(&plan, leases);
                let revision = newest_event(pages.revision, plan.events);
                if let Err(failure) = started {
                    // What was made may lapse too early, so it must not be trusted.
                    let reason = self.connection.unwritten(failure).to_string();
                    return Err(StoreError::Unknown { store: self.url().to_owned(), reason });
                }
                if !plan.write.reads.is_empty() && pages.has_more() {
                    self.remembered.put(asks, pages);
                }
                Ok(Tried::Done(Committed { revision }))
            }
            Ok(Sent::TooLate) if is_remembered => {
                self.remembered.distrust();
                Ok(Tried::LookAgain)
            }
            Ok(Sent::TooLate) => Ok(Tried::TooLate { wide: wide || plan.is_wide }),
            Err(Failure::NoLease) => {
                leases.forget_all();
                self.reply_lease.forget().await;
                Ok(Tried::TooLate { wide })
            }
            Err(Failure::NoAnswer(reason)) => {
                Err(StoreError::Unknown { store: self.url().to_owned(), reason })
            }
            Err(failure) => Err(self.connection.unwritten(failure)),
        }
    }

    /// Looks and lets the rule decide; looks wider where the rule asks for it. Only the last look counts.
    async fn choose(
        &self,
        transaction: &mut Transaction,
        tries: u32,
        may_remember: bool,
    ) -> Result<(Look, Option<Change>), Failure> {
        let slot = transaction.slot().map(str::to_owned);
        let mut looks: Vec<(Scope, Look)> = Vec::new();
        loop {
            let chosen = transaction.choose(|scope| {
                let index = looks.iter().position(|(looked, _)| looked == scope);
                let index = index.ok_or_else(|| scope.clone())?;
                Ok::<_, Scope>((looks[index].1.snapshot.clone(), index))
            });
            match chosen {
                Ok(chosen) => {
                    let (_, look) = looks.swap_remove(chosen.beside);
                    return Ok((look, chosen.change));
                }
                Err(scope) => {
                    let remembered = match may_remember && slot.is_none() && looks.is_empty() {
                        true => self.remembered_look(&scope),
                        false => None,
                    };
                    let look = match remembered {
                        Some(look) => look,
                        None => self.look(&scope, slot.as_deref(), tries).await?,
                    };
                    looks.push((scope, look));
                }
            }
        }
    }

    /// Sends a change. If no answer comes, finds out whether it was made, and sends it again if not: as
    /// long as all that it compares is unchanged, it is made once at most. If something changed, an
    /// earlier copy cannot be made any more either.
    async fn send(&self, plan: &Plan) -> Result<Sent, Failure> {
        let mut retry = self.connection.retry();
        let mut unanswered = false;
        loop {
            match self.connection.write(plan.write.clone()).await {
                Ok(Some(pages)) => return Ok(Sent::Made(pages)),
                Ok(None) if !unanswered => return Ok(Sent::TooLate),
                // An earlier copy was made, or others were faster. A change without events can be
                // decided again in both cases: it starts leases anew, or keeps a place.
                Ok(None) => return self.settle(plan).await,
                Err(Failure::NoAnswer(reason)) => {
                    unanswered = true;
                    retry.pause(reason).await?;
                }
                // Also after a copy without answer: what the server refuses now it may have made before.
                Err(failure) if unanswered => match self.settle(plan).await? {
                    Sent::TooLate => return Err(failure),
                    made => return Ok(made),
                },
                Err(failure) => return Err(failure),
            }
        }
    }

    /// Whether a change was made that nothing can change any more. Its key may have been removed since, with the
    /// segment of the history that it was in: then this is not known.
    async fn settle(&self, plan: &Plan) -> Result<Sent, Failure> {
        let Some(Marker { key, segment }) = &plan.marker else { return Ok(Sent::TooLate) };
        let others = Ask::all(self.keys.segment(*segment)).first(1).keys_only();
        let log = Ask::one(self.keys.store("log"));
        let mut pages = self.connection.read(&[Ask::one(key.clone()), others, log], None).await?;
        let (own, others, log) = (pages.next(), pages.next(), pages.next());
        if let Some(entry) = own.first() {
            return Ok(Sent::Made(Pages::none(entry.mod_revision())));
        }
        let log: Option<LogRecord> =
            log.first().map(|entry| decode(entry, self.url())).transpose()?;
        // Whole segments are removed, never the one that is written now.
        if others.count > 0 || log.is_some_and(|log| log.segment == *segment) {
            return Ok(Sent::TooLate);
        }
        let reason =
            "the history of that time was removed before it was known whether the change was made";
        Err(Failure::NoAnswer(reason.to_owned()))
    }

    /// Wakes waiters of this handle, and ends leases that are not needed any more.
    fn made(&self, plan: &Plan, leases: &mut LeaseBook) {
        for grant in &plan.left {
            self.wakes.forget(*grant);
        }
        for grant in &plan.wakes_here {
            self.wakes.wake(*grant);
        }
        self.leases.attach(&leases.use_up(&plan.attached), &plan.attached);
        self.leases.detach(&plan.detached);
    }

    /// Makes all other changes wait, if no other change does so already.
    async fn stop_others(&self) -> Option<Stop> {
        let lease = self.connection.grant_lease(STOP_SECONDS).await.ok()?;
        let key = self.keys.store("stop");
        let is_free = Compare::create_revision(key.clone(), CompareOp::Equal, 0);
        let is_there = Compare::create_revision(self.keys.store("meta"), CompareOp::Greater, 0);
        let put = TxnOp::put(key, vec![], Some(PutOptions::new().with_lease(lease)));
        let compares = vec![is_free, is_there];
        let write = Write { compares, operations: vec![put], ..Write::default() };
        match self.connection.write(write).await {
            Ok(Some(made)) => Some(Stop { lease, revision: made.revision }),
            _ => {
                let _ = self.connection.revoke_lease(lease).await;
                pause(3).await;
                None
            }
        }
    }
}

/// The key that makes all other changes wait.
struct Stop {
    lease: i64,
    revision: i64,
}

/// What became of one try.
enum Tried {
    Done(Committed),
    TooLate {
        /// Whether it compares so much that it loses against most other changes.
        wide: bool,
    },
    /// What was remembered does not do: the servers must be asked.
    LookAgain,
    /// Another change makes all others wait.
    Stopped,
    /// The key with which this change made others wait ended before its time.
    StopEnded,
}

/// Waits a little, longer after many tries, and never as long as another that began at the same time.
async fn pause(tries: u32) {
    let most = (1_u64 << tries.min(6)).min(PAUSE_MAX_MS);
    sleep(Duration::from_micros(super::random_below(most * 1000))).await;
}
