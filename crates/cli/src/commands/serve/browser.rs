//! Showing the dashboard in a browser.

use crate::context::Context;
use std::process::{Command, Stdio};
use tenure::local_server::Announcement;
use tenure_server::dashboard;
use tenure_server::http::{Address, Auth, Listening};

/// The address of the dashboard, which signs its user in.
pub(super) fn address(listening: &Listening<'_>) -> Option<String> {
    let is_tcp = |address: &&Address| matches!(address, Address::Tcp { .. });
    let address = listening.addresses.iter().find(is_tcp)?;
    Some(match &listening.auth {
        Auth::Own { secret, .. } => dashboard::address_with_token(address, secret),
        Auth::Tokens(_) | Auth::None => format!("{address}/"),
    })
}

/// Shows the dashboard. The browser is given the name of a file that leads to the address, since the
/// arguments of its process can be read by every user; the file goes with the result.
pub(super) fn show(context: &Context, listening: &Listening<'_>) -> Option<Announcement> {
    let Some(address) = address(listening) else {
        context.output.note("A browser cannot open a socket in the file system: use --listen too.");
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
        context.output.note(&format!("No browser was opened: {error}"));
    }
    page
}

/// The program that opens a file or an address with what the user chose for it.
const OPENER: &str = if cfg!(target_os = "macos") {
    "open"
} else if cfg!(windows) {
    "explorer.exe"
} else {
    "xdg-open"
};

/// Starts the user's browser, and does not wait for it.
fn open(what: &str) -> std::io::Result<()> {
    let mut command = Command::new(OPENER);
    command.arg(what).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut started = command
        .spawn()
        .map_err(|error| std::io::Error::new(error.kind(), format!("{OPENER}: {error}")))?;
    // Collected when it ends, so that nothing is left of it.
    std::thread::spawn(move || started.wait());
    Ok(())
}
