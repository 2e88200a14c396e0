//! The implementation of `tenure top`: `model` reads the store whenever `watch` reports a change,
//! `view` draws it, `screen` owns the terminal and restores it. It is read-only.

mod columns;
mod keys;
mod model;
mod panes;
mod print_once;
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
use model::ViewData;
use ratatui::crossterm::event::Event;
use screen::Screen;
use std::time::Duration;
use text::Theme;
use tokio::sync::watch as channel;
use tokio::time::{Instant, sleep_until};
use watch::LatestData;

/// The shortest time between two drawings.
const BETWEEN: Duration = Duration::from_millis(100);

/// How often countdowns are redrawn without a change.
const TICK: Duration = Duration::from_secs(1);

/// Prints one snapshot.
pub(crate) async fn snapshot(context: &Context) -> Result<i32, Failure> {
    let client = context.reader().await?;
    let data = ViewData::look(&client, &ViewData::default()).await?;
    context.output.done(data.to_json(&client), || print_once::text(&data, &client));
    Ok(0)
}

/// Shows the live view until the user quits.
pub(crate) async fn live(context: &Context) -> Result<i32, Failure> {
    // Before the terminal changes, so that errors in the settings are readable.
    let client = context.watcher().await?;
    let no_terminal = |error: std::io::Error| {
        let message = format!("cannot use the terminal: {error}");
        Failure::new(Exit::Error, "TERMINAL", message)
            .hint("Print one snapshot with `tenure top --once`.")
    };
    let colours = anstream::AutoStream::choice(&std::io::stdout()) != anstream::ColorChoice::Never;
    let shutdown_signal = crate::shutdown::shutdown_signal();
    let mut screen = Screen::take().map_err(no_terminal)?;
    let (send, updates) = channel::channel(LatestData::nothing());
    tokio::select! {
        () = watch::follow(context, client, send) => Ok(0),
        code = show(&mut screen, updates, Theme { colours }) => code.map_err(no_terminal),
        code = shutdown_signal => Ok(code),
    }
}

/// Draws the view and handles keys.
async fn show(
    screen: &mut Screen,
    mut updates: channel::Receiver<LatestData>,
    theme: Theme,
) -> std::io::Result<i32> {
    let mut state = State::default();
    let mut input = screen::input();
    let mut next = Instant::now();
    loop {
        sleep_until(next).await;
        let latest = updates.borrow_and_update().clone();
        let ago = latest.looked_at.elapsed();
        screen.terminal.draw(|frame| view::draw(frame, &latest, &mut state, theme, ago))?;
        let drawn = Instant::now();
        next = drawn + BETWEEN;
        tokio::select! {
            _ = updates.changed() => {}
            () = sleep_until(drawn + TICK) => {}
            event = input.recv() => {
                // `None` means that the terminal is gone. All pending keys are handled before the
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
