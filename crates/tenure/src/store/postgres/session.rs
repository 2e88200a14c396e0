//! One connection, and the statements that it has prepared.

use super::error::PgError;
use super::literal;
use super::names::Names;
use super::row::Row;
use futures_util::future::{join, join_all};
use futures_util::{FutureExt, StreamExt, pin_mut};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, SimpleQueryMessage};

/// How long one answer may take. Far longer than a lock may be waited for in the server.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(20);

/// After so many changes over a connection its statements are prepared: that costs a round trip,
/// which a command that makes one change would not get back.
const PREPARE_AFTER: u32 = 3;

/// How every change runs. Statements are planned once for each connection and use indexes even where
/// a table is still small, because the plan stays when it has grown. What an index has in order is not
/// sorted: of a limit that is a value, the planner expects a tenth of all rows, and would rather read
/// and sort all of them. Bitmaps are off because only a plain scan of an index marks entries of rows that
/// are gone: the rows of a busy lock come and go, and each look would read all of them again until the
/// next vacuum.
pub(super) const SETTINGS: &str = " -c lock_timeout=10s -c statement_timeout=15s \
    -c idle_in_transaction_session_timeout=15s -c plan_cache_mode=force_generic_plan \
    -c enable_seqscan=off -c enable_sort=off -c enable_bitmapscan=off -c jit=off";

/// The same for one transaction, where a pooler keeps no settings. A committed change is on disk,
/// whatever the database's default is: numbers that were given out must not come again after a crash.
const SET_LOCAL: &str = "SELECT set_config('lock_timeout', '10s', true),
    set_config('idle_in_transaction_session_timeout', '15s', true),
    set_config('statement_timeout', '15s', true),
    set_config('plan_cache_mode', 'force_generic_plan', true),
    set_config('enable_seqscan', 'off', true), set_config('enable_sort', 'off', true),
    set_config('enable_bitmapscan', 'off', true), set_config('jit', 'off', true),
    set_config('synchronous_commit', CASE WHEN current_setting('synchronous_commit') = 'off'
        THEN 'on' ELSE current_setting('synchronous_commit') END, true)";

/// A value of a statement.
#[derive(Clone, Debug)]
pub(super) enum Value {
    Text(String),
    OptionalText(Option<String>),
    Texts(Vec<String>),
    Integer(i64),
    OptionalInteger(Option<i64>),
    Boolean(bool),
}

impl Value {
    fn kind(&self) -> Type {
        match self {
            Value::Text(_) | Value::OptionalText(_) => Type::TEXT,
            Value::Texts(_) => Type::TEXT_ARRAY,
            Value::Integer(_) | Value::OptionalInteger(_) => Type::INT8,
            Value::Boolean(_) => Type::BOOL,
        }
    }

    fn sql(&self) -> &(dyn ToSql + Sync) {
        match self {
            Value::Text(value) => value,
            Value::OptionalText(value) => value,
            Value::Texts(value) => value,
            Value::Integer(value) => value,
            Value::OptionalInteger(value) => value,
            Value::Boolean(value) => value,
        }
    }
}

/// One statement of a flight.
#[derive(Clone, Debug)]
pub(super) enum Ask {
    /// Begins a transaction with these statements, which set what differs from the usual settings.
    Begin(&'static str),
    /// Statements without values and without answers that count.
    Run(&'static str),
    /// One statement with values.
    Query(&'static str, Vec<Value>),
}

/// What came of a statement.
pub(super) type Answered = Result<Vec<Row>, PgError>;

/// One connection.
pub(super) struct Session {
    client: Client,
    names: Arc<Names>,
    /// Whether statements may be prepared: not behind a pooler that changes the server connection.
    may_prepare: Arc<AtomicBool>,
    /// The names of prepared statements, which no other connection uses.
    prepared: Mutex<HashMap<StatementKey, Arc<str>>>,
    seen: Mutex<HashMap<StatementKey, (&'static str, Vec<Type>)>>,
    uses: AtomicU32,
    /// Whether [`SETTINGS`] hold.
    keeps_settings: AtomicBool,
    /// Whether it was left inside a transaction, so that it must not be used again.
    unclean: AtomicBool,
}

impl Session {
    pub(super) fn new(client: Client, names: Arc<Names>, may_prepare: Arc<AtomicBool>) -> Session {
        Session {
            client,
            names,
            may_prepare,
            prepared: Mutex::default(),
            seen: Mutex::default(),
            uses: AtomicU32::new(0),
            keeps_settings: AtomicBool::new(false),
            unclean: AtomicBool::new(false),
        }
    }

    /// Whether it can be used for another transaction.
    pub(super) fn is_usable(&self) -> bool {
        !self.client.is_closed() && !self.unclean.load(Ordering::Relaxed)
    }

    /// Says whether a transaction is open.
    pub(super) fn set_in_transaction(&self, open: bool) {
        self.unclean.store(open, Ordering::Relaxed);
    }

    /// Ends a transaction that wrote nothing, without waiting for the answer: what is sent over this
    /// connection next is carried out after it, and so does not meet its locks.
    pub(super) fn leave_transaction(&self) {
        // It is sent when it is polled for the first time. It fails only with the connection.
        let _ = self.run("ROLLBACK").now_or_never();
        self.set_in_transaction(false);
    }

    /// Sends all statements at once and waits for all answers: one round trip. They are carried out
    /// in their order. Once one has failed inside a transaction, the rest of it fail too, or are
    /// not carried out and have no answers.
    pub(super) async fn flight(&self, asks: &[Ask]) -> Vec<Answered> {
        // Outside of a transaction, each is one of its own.
        let begin = asks.iter().position(|ask| matches!(ask, Ask::Begin(_)));
        let from = begin.unwrap_or(match self.unclean.load(Ordering::Relaxed) {
            true => 0,
            false => asks.len(),
        });
        let (single, rest) = asks.split_at(from);
        let rest = async {
            match self.message(rest) {
                Some(message) => self.together(message).await,
                None => self.one_by_one(rest).await,
            }
        };
        // A statement is sent when it is polled for the first time, so all are polled in order.
        let (mut answers, rest) = join(self.one_by_one(single), rest).await;
        answers.extend(rest);
        answers
    }

    async fn one_by_one(&self, asks: &[Ask]) -> Vec<Answered> {
        debug_assert!(asks.len() < 30, "join_all polls more than these in no order");
        join_all(asks.iter().map(|ask| async move {
            match ask {
                Ask::Begin(sql) => self.begin(sql).await.map(|()| vec![]),
                Ask::Run(sql) => self.run(sql).await.map(|()| vec![]),
                Ask::Query(sql, values) => self.query(sql, values).await,
            }
        }))
        .await
    }

    /// One statement alone.
    pub(super) async fn query(&self, sql: &'static str, values: &[Value]) -> Answered {
        let mut message = Message::default();
        if self.push_prepared(&mut message, sql, values).is_some() {
            return self.together(message).await.pop().unwrap_or(Ok(vec![]));
        }
        let types = || (sql, values.iter().map(Value::kind).collect());
        self.seen.lock().entry(key(sql)).or_insert_with(types);
        let sql = self.names.fit(sql);
        let values: Vec<_> = values.iter().map(|value| (value.sql(), value.kind())).collect();
        let rows = answered(self.client.query_typed(&sql, &values)).await?;
        Ok(rows.into_iter().map(Row::Binary).collect())
    }

    /// The statements as one message, if all are prepared: the server then answers all at once. It
    /// would send the answer to each by itself otherwise, at a switch of processes in both directions.
    fn message(&self, asks: &[Ask]) -> Option<Message> {
        if asks.is_empty() || !self.keeps_settings.load(Ordering::Relaxed) {
            return None;
        }
        let mut message = Message::default();
        for ask in asks {
            match ask {
                Ask::Begin(sql) | Ask::Run(sql) => message.push(&self.names.fit(sql)),
                Ask::Query(sql, values) => self.push_prepared(&mut message, sql, values)?,
            }
        }
        Some(message)
    }

    fn push_prepared(
        &self,
        message: &mut Message,
        sql: &'static str,
        values: &[Value],
    ) -> Option<()> {
        if !self.may_prepare.load(Ordering::Relaxed) {
            return None;
        }
        let name = self.prepared.lock().get(&key(sql))?.clone();
        literal::push_execute(&mut message.text, &name, values)?;
        message.end(1);
        Some(())
    }

    /// Sends a message and takes the answers apart. After an error the rest was not carried out.
    async fn together(&self, message: Message) -> Vec<Answered> {
        let mut answers = Vec::with_capacity(message.counts.len());
        let received = async {
            let stream = self.client.simple_query_raw(&message.text).await?;
            pin_mut!(stream);
            for count in &message.counts {
                let mut rows = Vec::new();
                let mut left = *count;
                while left > 0 {
                    match stream.next().await {
                        Some(Ok(SimpleQueryMessage::Row(row))) => rows.push(Row::Text(row)),
                        Some(Ok(SimpleQueryMessage::CommandComplete(_))) => left -= 1,
                        Some(Ok(_)) => {}
                        Some(Err(error)) => return Err(PgError::from(error)),
                        None => return Err(PgError::Replaced),
                    }
                }
                answers.push(Ok(rows));
            }
            // The end of the answer; only after it the server has done all.
            while let Some(message) = stream.next().await {
                message?;
            }
            Ok(())
        };
        let failed = match tokio::time::timeout(ANSWER_TIMEOUT, received).await {
            Ok(received) => received.err(),
            Err(_) => Some(PgError::Timeout(ANSWER_TIMEOUT)),
        };
        // A statement that was answered was carried out, whatever came of the rest.
        if let Some(error) = failed.filter(|_| answers.len() < message.counts.len()) {
            answers.push(Err(error));
        }
        answers
    }

    /// Notes that the settings of the connection stay.
    pub(super) async fn keep_settings(&self, commits_without_flush: bool) -> Result<(), PgError> {
        if commits_without_flush {
            self.run("SET synchronous_commit = on").await?;
        }
        self.keeps_settings.store(true, Ordering::Relaxed);
        Ok(())
    }

    async fn begin(&self, sql: &'static str) -> Result<(), PgError> {
        if self.keeps_settings.load(Ordering::Relaxed) {
            return self.run(sql).await;
        }
        let (begin, rest) = sql.split_once(';').unwrap_or((sql, "SELECT 1"));
        let sql = format!("{begin}; {SET_LOCAL}; {rest}");
        answered(self.client.batch_execute(&self.names.fit_text(&sql))).await
    }

    /// Sends statements without values, separated by semicolons.
    pub(super) async fn run(&self, sql: &'static str) -> Result<(), PgError> {
        let sql = self.names.fit(sql);
        answered(self.client.batch_execute(&sql)).await
    }

    /// The same for a text that is made at run time.
    pub(super) async fn run_text(&self, sql: &str) -> Result<(), PgError> {
        answered(self.client.batch_execute(&self.names.fit_text(sql))).await
    }

    /// The first column of the first row, as text.
    pub(super) async fn text(&self, sql: &str) -> Result<Option<String>, PgError> {
        let rows = answered(self.client.simple_query(&self.names.fit_text(sql))).await?;
        Ok(rows.iter().find_map(|message| match message {
            SimpleQueryMessage::Row(row) => row.get(0).map(str::to_owned),
            _ => None,
        }))
    }

    /// Prepares the statements that were used so far, once the connection has been used often
    /// enough. What cannot be prepared is sent as text again.
    pub(super) async fn prepare(&self) {
        if self.has_to_prepare() {
            self.prepare_seen().await;
        }
    }

    /// Notes that it was used; whether it now has statements to prepare.
    pub(super) fn has_to_prepare(&self) -> bool {
        self.may_prepare.load(Ordering::Relaxed)
            && self.uses.fetch_add(1, Ordering::Relaxed) >= PREPARE_AFTER
            && !self.seen.lock().is_empty()
    }

    pub(super) async fn prepare_seen(&self) {
        let seen: Vec<_> = self.seen.lock().drain().collect();
        let prepared = seen.iter().map(|(key, (sql, types))| async move {
            let name = format!("tenure_{}", uuid::Uuid::new_v4().simple());
            let types: Vec<&str> = types.iter().map(Type::name).collect();
            let types = match types.is_empty() {
                true => String::new(),
                false => format!("({})", types.join(",")),
            };
            let text = format!("PREPARE {name}{types} AS {}", self.names.fit(sql));
            (*key, name, answered(self.client.batch_execute(&text)).await)
        });
        for (key, name, outcome) in join_all(prepared).await {
            if outcome.is_ok() {
                self.prepared.lock().insert(key, name.into());
            }
        }
    }
}

/// By what a statement is found: where its text lies, which costs less than to hash the text.
type StatementKey = (usize, usize);

fn key(sql: &'static str) -> StatementKey {
    (sql.as_ptr() as usize, sql.len())
}

/// Statements that are sent as one.
#[derive(Default)]
struct Message {
    text: String,
    /// How many statements of the text belong to each that was asked.
    counts: Vec<usize>,
}

impl Message {
    /// Adds statements without values, which are separated by semicolons.
    fn push(&mut self, sql: &str) {
        self.text.push_str(sql);
        self.end(sql.split(';').count());
    }

    fn end(&mut self, count: usize) {
        self.text.push(';');
        self.counts.push(count);
    }
}

async fn answered<T>(
    request: impl Future<Output = Result<T, tokio_postgres::Error>>,
) -> Result<T, PgError> {
    match tokio::time::timeout(ANSWER_TIMEOUT, request).await {
        Ok(answer) => Ok(answer?),
        Err(_) => Err(PgError::Timeout(ANSWER_TIMEOUT)),
    }
}
