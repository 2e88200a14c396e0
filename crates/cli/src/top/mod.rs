//! What `tenure top` shows, live: gathered (`model.rs`) whenever something changed (`watch.rs`),
//! drawn (`view.rs`) on a terminal that is given back whatever happens (`screen.rs`). Only reads.

mod columns;
mod keys;
mod model;
mod once;
mod panes;
mod screen;
#[cfg(test)]
mod tests;
mod text;
mod timeline;
mod view;
mod watch;

use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use keys::{Flow, State};
use model::Board;
use ratatui::crossterm::event::Event;
use screen::Screen;
use std::time::Duration;
use text::Theme;
use tokio::sync::watch as channel;
use tokio::time::{Instant, sleep_until};
use watch::Sight;

/// Between two drawings: nobody reads faster.
const BETWEEN: Duration = Duration::from_millis(100);

/// How often countdowns move when nothing happens.
const TICK: Duration = Duration::from_secs(1);

/// Prints one snapshot.
pub(crate) async fn snapshot(context: &Context) -> Result<i32, Failure> {
    let client = context.reader().await?;
    let board = Board::look(&client, &Board::default()).await?;
    context.output.done(board.to_json(&client), || once::words(&board, &client));
    Ok(0)
}

/// Shows everything until somebody has seen enough.
pub(crate) async fn live(context: &Context) -> Result<i32, Failure> {
    // Before the terminal changes: what is wrong with the settings is said in plain words.
    let client = context.watcher().await?;
    let no_terminal = |error: std::io::Error| {
        let message = format!("the terminal cannot be used: {error}");
        Failure::new(Exit::Error, "TERMINAL", message)
            .hint("`tenure top --once` prints one snapshot.")
    };
    let colours = anstream::AutoStream::choice(&std::io::stdout()) != anstream::ColorChoice::Never;
    let told_to_end = crate::ending::told_to_end();
    let mut screen = Screen::take().map_err(no_terminal)?;
    let (send, sights) = channel::channel(Sight::nothing());
    tokio::select! {
        () = watch::follow(context, client, send) => Ok(0),
        code = show(&mut screen, sights, Theme { colours }) => code.map_err(no_terminal),
        code = told_to_end => Ok(code),
    }
}

/// Draws what is seen, and does what keys say.
async fn show(
    screen: &mut Screen,
    mut sights: channel::Receiver<Sight>,
    theme: Theme,
) -> std::io::Result<i32> {
    let mut state = State::default();
    let mut input = screen::input();
    let mut next = Instant::now();
    loop {
        sleep_until(next).await;
        let sight = sights.borrow_and_update().clone();
        let ago = sight.looked_at.elapsed();
        screen.terminal.draw(|frame| view::draw(frame, &sight, &mut state, theme, ago))?;
        let drawn = Instant::now();
        next = drawn + BETWEEN;
        tokio::select! {
            _ = sights.changed() => {}
            () = sleep_until(drawn + TICK) => {}
            event = input.recv() => {
                // Without one, the terminal is gone. Of many keys at once all count before the
                // next drawing.
                let Some(event) = event else { return Ok(0) };
                let more = std::iter::from_fn(|| input.try_recv().ok());
                for event in std::iter::once(event).chain(more) {
                    if let Event::Key(key) = event && state.press(key) == Flow::End {
                        return Ok(0);
                    }
                }
            }
        }
    }
}
