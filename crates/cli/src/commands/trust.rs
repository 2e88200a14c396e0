//! `tenure trust`: decides whether a project's settings take effect.

use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::{NAME, WARN, styled};
use crate::show;
use clap::{Args, ValueHint};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use tenure::locate::{self, LocateError};
use tenure::locate::{Subject, Trust};
use tenure::place::PlaceKind;
use tenure::url::without_password;
use tenure::world::SystemClock;

/// Let a project's settings choose the store, server and label
///
/// A repository may come from a stranger. Its .tenure/config.yaml can set timeouts; its settings
/// `store`, `server` and `agent` take effect only after you trusted the file, unless the store is
/// inside the project. The same holds for links in it that lead elsewhere, and for a .tenure folder
/// of another user. This command shows what would take effect, and remembers the file as it is:
/// after a change you have to trust it again.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tenure trust --show                     what this project asks for
  tenure trust                            accept it, until it changes
  tenure trust --list
  tenure trust --revoke")]
pub(crate) struct TrustArgs {
    /// The project's folder, or a folder in it [default: the current one]
    #[arg(value_name = "PATH", value_hint = ValueHint::DirPath)]
    pub(crate) path: Option<PathBuf>,
    /// Show what would take effect, and remember nothing; exit 3 if it is not in effect yet
    #[arg(long, conflicts_with_all = ["list", "revoke"])]
    show: bool,
    /// List what you trust
    #[arg(long, conflicts_with_all = ["path", "revoke"])]
    list: bool,
    /// Stop trusting it
    #[arg(long)]
    pub(crate) revoke: bool,
}

pub(crate) fn run(context: &Context, args: TrustArgs) -> Result<i32, Failure> {
    if args.list {
        return list(context);
    }
    if args.revoke {
        return revoke(context, args.path);
    }
    let place = context.place()?;
    if place.kind == PlaceKind::User {
        let message = "no project here: no git repository and no .tenure folder";
        return Err(Failure::new(Exit::NotFound, "NO_PROJECT", message)
            .hint("Your own settings need no trust."));
    }
    let subject = locate::subject(place, &context.settings);
    if args.show {
        let counts = context.is_project_in_effect();
        let trusted = covers(&context.trust, &subject)?;
        let data = json(&subject, trusted, counts);
        context.output.done(data, || {
            let state = match (trusted, counts) {
                (true, _) => "It is trusted.",
                (false, true) => "It needs no trust.",
                (false, false) => "It is not trusted, and has no effect.",
            };
            format!("{}\n{state}", lines(&subject))
        });
        let exit = if counts { Exit::Ok } else { Exit::Configuration };
        return Ok(exit.code());
    }
    context.trust.remember(&subject, &SystemClock).map_err(LocateError::from)?;
    if context.output.quiet && !context.output.json {
        return Ok(0);
    }
    context.output.done(json(&subject, true, true), || {
        format!("{}\nTrusted, until it changes.", lines(&subject))
    });
    Ok(0)
}

/// The path of a project must be right: another project is never trusted instead.
pub(crate) fn no_folder(path: &Path) -> Failure {
    let message = format!("{} is not a folder", path.display());
    Failure::new(Exit::NotFound, "NO_PROJECT", message)
        .hint("Name a project's folder, or none for the project that you are in.")
}

fn covers(trust: &Trust, subject: &Subject) -> Result<bool, Failure> {
    Ok(trust.covers(subject).map_err(LocateError::from)?)
}

fn json(subject: &Subject, trusted: bool, counts: bool) -> Value {
    let settings = subject
        .claims
        .iter()
        .map(|(key, value)| (key.name().to_owned(), json!(without_password(value))));
    let links = subject.links.iter();
    json!({
        "path": subject.folder,
        "sha256": subject.sha256,
        "trusted": trusted,
        "counts": counts,
        "settings": settings.collect::<serde_json::Map<_, _>>(),
        "links": links
            .map(|link| json!({ "path": link.path, "target": link.target }))
            .collect::<Vec<_>>(),
    })
}

/// What to show to a person before it takes effect.
fn lines(subject: &Subject) -> String {
    let mut lines = vec![styled(NAME, subject.folder.display())];
    for (key, value) in &subject.claims {
        lines.push(format!("  {:<18} {}", key.name(), without_password(value)));
    }
    for link in &subject.links {
        let leads = styled(WARN, "points to");
        lines.push(format!("  {} {leads} {}", link.path.display(), link.target.display()));
    }
    if subject.claims.is_empty() && subject.links.is_empty() {
        lines.push("  sets nothing that needs trust".to_owned());
    }
    lines.push(format!("  {:<18} {}", "sha256", subject.sha256));
    lines.join("\n")
}

fn list(context: &Context) -> Result<i32, Failure> {
    let records = context.trust.list().map_err(LocateError::from)?;
    context.output.done(json!({ "trusted": records }), || {
        if records.is_empty() {
            return "You trust no project's settings.".to_owned();
        }
        let header = ["PATH", "SINCE", "SHA256"].map(str::to_owned);
        let rows = records.iter().map(|record| {
            let short = record.sha256.chars().take(12).collect();
            [record.path.display().to_string(), record.at.clone(), short]
        });
        show::table(&std::iter::once(header).chain(rows).collect::<Vec<_>>())
    });
    Ok(0)
}

/// Works also for a deleted project: then the path names what was trusted.
fn revoke(context: &Context, path: Option<PathBuf>) -> Result<i32, Failure> {
    let named = path.map(|path| context.directory().join(path));
    // The context is that of the named folder, or of the current one if none is named.
    let is_here = named.as_ref().is_none_or(|path| path.is_dir());
    let project = context.place().ok().filter(|_| is_here).map(|place| place.folder.clone());
    let paths: Vec<PathBuf> = named.into_iter().chain(project).collect();
    let mut forgotten = 0;
    for path in paths.iter().flat_map(|path| [path.clone(), path.join(".tenure")]) {
        forgotten += context.trust.forget(&path).map_err(LocateError::from)?;
    }
    let shown = paths.first().map(|path| path.display().to_string()).unwrap_or_default();
    if forgotten == 0 {
        let message = format!("{shown} is not trusted");
        return Err(Failure::new(Exit::NotFound, "NOT_TRUSTED", message)
            .hint("List what is trusted with `tenure trust --list`."));
    }
    context.output.done(json!({ "path": shown, "revoked": forgotten }), || {
        format!("{shown} is no longer trusted")
    });
    Ok(0)
}
