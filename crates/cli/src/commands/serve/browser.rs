//! Opens the dashboard in a browser.

use crate::context::Context;
use std::process::{Command, Stdio};
use tenure::server_support::local_server::Announcement;
use tenure_server::dashboard;
use tenure_server::http::{Address, Auth, Listening};

/// The address of the dashboard, with a token that signs the user in.
pub(super) fn address(listening: &Listening<'_>) -> Option<String> {
    let is_tcp = |address: &&Address| matches!(address, Address::Tcp { .. });
    let address = listening.addresses.iter().find(is_tcp)?;
    Some(match &listening.auth {
        Auth::Own { secret, .. } => dashboard::address_with_token(address, secret),
        Auth::Tokens(_) | Auth::None => format!("{address}/"),
    })
}

/// Opens the dashboard. The browser gets the name of a file that redirects to the address, because
/// the arguments of a process can be read by every user. The file is removed when the result is
/// dropped.
pub(super) fn show(context: &Context, listening: &Listening<'_>) -> Option<Announcement> {
    let Some(address) = address(listening) else {
        context.output.note("A browser cannot open a Unix socket: pass --listen too.");
        return None;
    };
    let (page, opened) = match &listening.auth {
        Auth::Own { folder, .. } => {
            let name = format!("open-{}.html", std::process::id());
            match folder.write_page(&name, &dashboard::leading_page(&address)) {
                Ok(page) => {
                    let opened = open(&page.path().display().to_string());
                    (Some(page), opened)
                }
                Err(error) => (None, Err(std::io::Error::other(error))),
            }
        }
        Auth::Tokens(_) | Auth::None => (None, open(&address)),
    };
    if let Err(error) = opened {
        context.output.note(&format!("Cannot open a browser: {error}"));
    }
    page
}

/// The program that opens a file or an address in the user's preferred application.
const OPENER: &str = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };

/// Starts the user's browser and does not wait for it.
fn open(what: &str) -> std::io::Result<()> {
    let mut command = Command::new(OPENER);
    command.arg(what).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut started = command
        .spawn()
        .map_err(|error| std::io::Error::new(error.kind(), format!("{OPENER}: {error}")))?;
    // Waits for the child in a thread, so that no zombie process is left.
    std::thread::spawn(move || started.wait());
    Ok(())
}
