//! Serves one agent over the standard streams of this process.

use super::Options;
use super::host_sessions::HostSessions;
use super::server::Server;
use rmcp::service::ServerInitializeError;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tenure::Client;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// The conversation failed.
#[derive(Debug, thiserror::Error)]
pub enum StdioError {
    /// The other end does not speak the protocol.
    #[error("the client does not speak the Model Context Protocol: {0}")]
    Protocol(#[from] Box<ServerInitializeError>),
    /// What was held could not be released; it ends with this process.
    #[error(transparent)]
    Store(#[from] tenure::Error),
}

/// How long a session that is told to stop waits for its host to read.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// Serves the agent at the other end of standard input and output until it disconnects, or until
/// `stop` resolves; then releases what the agent holds. If the process is killed, what it holds is
/// free at once.
pub async fn serve_stdio(
    client: Client,
    options: Options,
    stop: impl Future<Output = ()>,
) -> Result<(), StdioError> {
    let (input, output) = rmcp::transport::stdio_pipes();
    serve(client, options, input, output, stop).await
}

pub(super) async fn serve(
    client: Client,
    options: Options,
    input: impl AsyncRead + Send + Unpin + 'static,
    output: impl AsyncWrite + Send + Unpin + 'static,
    stop: impl Future<Output = ()>,
) -> Result<(), StdioError> {
    let sessions = Arc::new(HostSessions::new(client.clone(), options));
    let input = Watched { input, sessions: sessions.clone() };
    let server = Server::over_stdio(client, sessions.clone());
    let mut stop = std::pin::pin!(stop);
    let begun = tokio::select! {
        begun = rmcp::serve_server(server, (input, output)) => begun,
        () = &mut stop => return Ok(()),
    };
    let running = match begun {
        Ok(running) => running,
        // A client that starts this and disconnects at once is not an error.
        Err(ServerInitializeError::ConnectionClosed(_)) => return Ok(()),
        Err(error) => return Err(Box::new(error).into()),
    };
    let cancellation = running.cancellation_token();
    let mut conversation = std::pin::pin!(running.waiting());
    // However the conversation ends, what is held is released.
    tokio::select! {
        _ = &mut conversation => {}
        () = stop => {
            sessions.call_off();
            cancellation.cancel();
            // A host that does not read must not keep what is held from being released.
            let _ = tokio::time::timeout(LAST_WORDS, conversation).await;
        }
    }
    sessions.end().await?;
    Ok(())
}

/// Notices that the agent has disconnected, so that no call keeps waiting.
struct Watched<R> {
    input: R,
    sessions: Arc<HostSessions>,
}

impl<R: AsyncRead + Unpin> AsyncRead for Watched<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let polled = Pin::new(&mut self.input).poll_read(context, buffer);
        if matches!(polled, Poll::Ready(_)) && buffer.filled().len() == before {
            self.sessions.call_off();
        }
        polled
    }
}
