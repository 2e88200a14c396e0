//! One connection, and the statements that it has prepared.

use super::error::PgError;
use super::limits::{self, ANSWER, LARGE_ANSWER, LARGE_STATEMENTS};
use super::literal;
use super::names::Names;
use super::row::Row;
use futures_util::future::{join, join_all, join3};
use futures_util::{FutureExt, StreamExt, pin_mut};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, SimpleQueryMessage};

/// After so many changes over a connection its statements are prepared: that costs a round trip,
/// which a command that makes one change would not get back.
const PREPARE_AFTER: u32 = 3;

/// What a connection is made with: the settings, and the mark of this process.
pub(super) fn options(mark: &str) -> String {
    let set = |(name, value): (&str, String)| format!(" -c {name}={value}");
    let settings: String = limits::settings().into_iter().map(set).collect();
    format!("-c tenure.process={mark}{settings}")
}

/// The same settings for one transaction, where a pooler keeps none. A committed change is on disk, and on that
/// of a synchronous standby, whatever the database's default is: numbers that were given out must not come again
/// after a crash or a failover.
fn set_local() -> &'static str {
    static TEXT: OnceLock<String> = OnceLock::new();
    TEXT.get_or_init(|| {
        let set = |(name, value): (&str, String)| format!("SET LOCAL {name} = '{value}'; ");
        let settings: String = limits::settings().into_iter().map(set).collect();
        format!(
            "{settings}SELECT
                set_config('tenure.default_commit', current_setting('synchronous_commit'), true),
                set_config('synchronous_commit',
                CASE WHEN current_setting('synchronous_commit') IN ('on', 'remote_apply')
                    THEN current_setting('synchronous_commit') ELSE 'on' END, true)"
        )
    })
}

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
    /// Whether the settings of [`options`] hold.
    keeps_settings: AtomicBool,
    /// Whether the transaction that is open has [`LARGE_STATEMENTS`].
    is_large: AtomicBool,
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
            is_large: AtomicBool::new(false),
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
        if !open {
            self.is_large.store(false, Ordering::Relaxed);
        }
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
        for ask in asks {
            if let Ask::Begin(sql) = ask {
                self.is_large.store(sql.contains(LARGE_STATEMENTS), Ordering::Relaxed);
            }
        }
        // Outside of a transaction, each is one of its own.
        let begin = asks.iter().position(|ask| matches!(ask, Ask::Begin(_)));
        let is_inside = self.unclean.load(Ordering::Relaxed);
        let from = begin.unwrap_or(if is_inside { 0 } else { asks.len() });
        let (single, rest) = asks.split_at(from);
        let rest = async {
            match self.message(rest) {
                Some(message) => self.together(message).await,
                None => self.one_by_one(rest, true).await,
            }
        };
        // A statement is sent when it is polled for the first time, so all are polled in order.
        let (mut answers, rest) = join(self.one_by_one(single, false), rest).await;
        answers.extend(rest);
        answers
    }

    /// The same one by one, inside a transaction from the start or not.
    async fn one_by_one(&self, asks: &[Ask], mut is_inside: bool) -> Vec<Answered> {
        debug_assert!(asks.len() < 30, "join_all polls more than these in no order");
        join_all(asks.iter().map(|ask| {
            let is_alone = !is_inside;
            is_inside &= !matches!(ask, Ask::Run("COMMIT"));
            async move {
                match ask {
                    Ask::Begin(sql) => self.begin(sql).await.map(|()| vec![]),
                    Ask::Run(sql) => self.run(sql).await.map(|()| vec![]),
                    Ask::Query(sql, values) if is_alone => self.query(sql, values).await,
                    Ask::Query(sql, values) => self.query_inside(sql, values).await,
                }
            }
        }))
        .await
    }

    /// One statement alone. Where a pooler keeps no settings, it is put into a transaction with them, in
    /// the same round trip.
    pub(super) async fn query(&self, sql: &'static str, values: &[Value]) -> Answered {
        if self.keeps_settings.load(Ordering::Relaxed) {
            return self.query_inside(sql, values).await;
        }
        let statement = self.query_inside(sql, values);
        let (begun, rows, ended) = join3(self.begin("BEGIN"), statement, self.run("COMMIT")).await;
        begun?;
        let rows = rows?;
        ended.map(|()| rows)
    }

    /// One statement with the settings that hold already.
    async fn query_inside(&self, sql: &'static str, values: &[Value]) -> Answered {
        let mut message = Message::default();
        if self.push_prepared(&mut message, sql, values).is_some() {
            return self.together(message).await.pop().unwrap_or(Ok(vec![]));
        }
        let types = || (sql, values.iter().map(Value::kind).collect());
        self.seen.lock().entry(key(sql)).or_insert_with(types);
        let sql = self.names.fit(sql);
        let values: Vec<_> = values.iter().map(|value| (value.sql(), value.kind())).collect();
        let rows = self.answered(self.client.query_typed(&sql, &values)).await?;
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
        let failed = match tokio::time::timeout(self.limit(), received).await {
            Ok(received) => received.err(),
            Err(_) => Some(PgError::Timeout(self.limit())),
        };
        // A statement that was answered was carried out, whatever came of the rest.
        if let Some(error) = failed.filter(|_| answers.len() < message.counts.len()) {
            answers.push(Err(error));
        }
        answers
    }

    /// Notes that the settings of the connection stay.
    pub(super) async fn keep_settings(&self, commits_early: bool) -> Result<(), PgError> {
        if commits_early {
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
        let sql = format!("{begin}; {}; {rest}", set_local());
        self.answered(self.client.batch_execute(&self.names.fit_text(&sql))).await
    }

    /// Sends statements without values, separated by semicolons.
    pub(super) async fn run(&self, sql: &'static str) -> Result<(), PgError> {
        let sql = self.names.fit(sql);
        self.answered(self.client.batch_execute(&sql)).await
    }

    /// The same for a text that is made at run time.
    pub(super) async fn run_text(&self, sql: &str) -> Result<(), PgError> {
        self.answered(self.client.batch_execute(&self.names.fit_text(sql))).await
    }

    /// How long to wait for an answer.
    fn limit(&self) -> Duration {
        if self.is_large.load(Ordering::Relaxed) { LARGE_ANSWER } else { ANSWER }
    }

    async fn answered<T>(
        &self,
        request: impl Future<Output = Result<T, tokio_postgres::Error>>,
    ) -> Result<T, PgError> {
        let limit = self.limit();
        match tokio::time::timeout(limit, request).await {
            Ok(answer) => Ok(answer?),
            Err(_) => Err(PgError::Timeout(limit)),
        }
    }

    /// The first column of the first row, as text.
    pub(super) async fn text(&self, sql: &str) -> Result<Option<String>, PgError> {
        let rows = self.answered(self.client.simple_query(&self.names.fit_text(sql))).await?;
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
            (*key, name, self.answered(self.client.batch_execute(&text)).await)
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
