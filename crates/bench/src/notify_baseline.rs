//! A synced commit and a message, until another connection has heard it: what a hand-off over PostgreSQL
//! must take at least.

use crate::BenchError;
use crate::sample::now;
use std::future::poll_fn;
use std::sync::mpsc;
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};
use tokio_postgres::{AsyncMessage, Client, Connection, NoTls, Socket, tls::NoTlsStream};

const CHANNEL: &str = "tenure_bench";

/// How long a message may take.
const LIMIT: Duration = Duration::from_secs(10);

/// Seconds from the beginning of a commit to the message about it, over this time, with this pause before
/// each. The table has one row with a number `n`.
pub(crate) fn latencies(
    server: &str,
    table: &str,
    pause: Duration,
    span: Duration,
) -> Result<Vec<f64>, BenchError> {
    let heard = listen(server)?;
    let runtime = runtime()?;
    runtime.block_on(async {
        let (client, connection) = connect(server).await?;
        tokio::spawn(connection);
        let update = client.prepare(&format!("UPDATE {table} SET n = n + 1")).await?;
        let notify = client.prepare(&format!("SELECT pg_notify('{CHANNEL}', '')")).await?;
        let (mut latencies, begun) = (Vec::new(), now());
        while now().saturating_sub(begun) < span {
            if !pause.is_zero() {
                tokio::time::sleep(pause).await;
            }
            let started = now();
            client.execute(&update, &[]).await?;
            client.execute(&notify, &[]).await?;
            let seconds = LIMIT.as_secs();
            let missing = |_| BenchError::TooSlow { what: "a message of PostgreSQL", seconds };
            let at = heard.recv_timeout(LIMIT).map_err(missing)?;
            latencies.push(at.saturating_sub(started).as_secs_f64());
        }
        Ok(latencies)
    })
}

/// Hears messages on a thread of its own, as another process would; sends the time of each.
fn listen(server: &str) -> Result<mpsc::Receiver<Duration>, BenchError> {
    let runtime = runtime()?;
    let (client, mut connection) = runtime.block_on(connect(server))?;
    let (sender, heard) = mpsc::channel();
    let (ready, is_ready) = mpsc::channel();
    std::thread::spawn(move || {
        runtime.block_on(async move {
            let sql = format!("LISTEN {CHANNEL}");
            let listening = client.batch_execute(&sql);
            let hear = async {
                while let Some(Ok(message)) =
                    poll_fn(|context| connection.poll_message(context)).await
                {
                    // The measurement has ended if its receiver is gone.
                    if matches!(message, AsyncMessage::Notification(_))
                        && sender.send(now()).is_err()
                    {
                        return;
                    }
                }
            };
            let listen = async {
                let _ = ready.send(listening.await);
                std::future::pending::<()>().await
            };
            tokio::select! {
                () = hear => {}
                () = listen => {}
            }
        });
    });
    let seconds = LIMIT.as_secs();
    let missing = |_| BenchError::TooSlow { what: "LISTEN", seconds };
    is_ready.recv_timeout(LIMIT).map_err(missing)??;
    Ok(heard)
}

async fn connect(
    server: &str,
) -> Result<(Client, Connection<Socket, NoTlsStream>), tokio_postgres::Error> {
    tokio_postgres::connect(server, NoTls).await
}

fn runtime() -> Result<Runtime, BenchError> {
    let runtime = Builder::new_current_thread().enable_all().build();
    runtime.map_err(|source| BenchError::Process { program: "a runtime".to_owned(), source })
}
