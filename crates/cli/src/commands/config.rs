//! `tenure config`: shows settings with their origin, and changes them.

use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::show;
use clap::{Args, Subcommand};
use serde_json::{Value, json};
use std::path::PathBuf;
use tenure::locate::{self, LocateError};
use tenure::place::PlaceKind;
use tenure::url::without_password;
use tenure::world::SystemClock;
use tenure_frontend::config::{Setting, Settings, edit};

/// Show and change settings
///
/// Later layers win: built-in defaults, the user's file, the project's file, TENURE_* variables,
/// options.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tenure config show
  tenure config set locking.waitTimeout 10m
  tenure config set --user agent alice    in your own file, for all projects")]
pub(crate) struct ConfigArgs {
    #[command(subcommand)]
    command: ConfigCommand,
}

#[derive(Debug, Subcommand)]
enum ConfigCommand {
    /// Show all settings with their origin
    Show,
    /// Print the value of one setting
    Get {
        /// For example locking.waitTimeout
        key: String,
    },
    /// Change a setting in the project's file, or with --user in your own
    Set {
        /// For example locking.waitTimeout
        key: String,
        /// The new value
        value: String,
        /// Change your own file
        #[arg(long)]
        user: bool,
    },
    /// Show which files are read
    Path,
}

pub(crate) fn run(context: &Context, args: ConfigArgs) -> Result<i32, Failure> {
    match args.command {
        ConfigCommand::Show => show_all(context),
        ConfigCommand::Get { key } => get(context, &key),
        ConfigCommand::Set { key, value, user } => set(context, &key, &value, user),
        ConfigCommand::Path => path(context),
    }
}

/// Whether the setting is in effect: a project's file may need trust.
fn is_in_effect(context: &Context, setting: &Setting) -> bool {
    let settings = &context.settings;
    let waits = setting.key.needs_trust() && settings.is_from_project(setting.key);
    let is_in_effect = || match setting.key.decides_hooks() {
        true => context.is_project_in_effect(),
        false => context.located().is_ok(),
    };
    !waits || is_in_effect()
}

/// The value, without the password of a store's URL.
fn shown(setting: &Setting) -> String {
    without_password(&setting.value)
}

fn setting_json(context: &Context, setting: &Setting) -> Value {
    json!({
        "key": setting.key.name(),
        "value": shown(setting),
        "origin": setting.origin.to_string(),
        "default": setting.key.info().default,
        "description": setting.key.info().description,
        "counts": is_in_effect(context, setting),
    })
}

fn show_all(context: &Context) -> Result<i32, Failure> {
    let settings = context.settings.all();
    let data: Vec<Value> = settings.iter().map(|setting| setting_json(context, setting)).collect();
    context.output.done(json!({ "settings": data }), || {
        let header = ["KEY", "VALUE", "FROM", "WHAT"].map(str::to_owned);
        let rows = settings.iter().map(|setting| {
            [
                setting.key.name().to_owned(),
                shown(setting),
                match is_in_effect(context, setting) {
                    true => setting.origin.to_string(),
                    false => format!("{} (not trusted)", setting.origin),
                },
                setting.key.info().description.to_owned(),
            ]
        });
        show::table(&std::iter::once(header).chain(rows).collect::<Vec<_>>())
    });
    if let Some(untrusted) = settings.iter().find(|setting| !is_in_effect(context, setting)) {
        context.output.note(&format!(
            "{} is not trusted, so some of it is ignored; see `tenure trust --show`.",
            untrusted.origin
        ));
    }
    Ok(0)
}

fn get(context: &Context, key: &str) -> Result<i32, Failure> {
    let setting = context.settings.get(key).ok_or_else(|| unknown(key))?;
    context.output.done(setting_json(context, setting), || shown(setting));
    Ok(0)
}

fn unknown(key: &str) -> Failure {
    Failure::new(Exit::NotFound, "NO_SUCH_KEY", format!("Unknown setting {key:?}"))
        .hint("List all settings with `tenure config show`.")
}

fn project_file(context: &Context) -> Result<PathBuf, Failure> {
    match &context.sources.explicit_file {
        Some(file) => Ok(file.clone()),
        None => Ok(context.place()?.config_file()),
    }
}

fn set(context: &Context, key: &str, value: &str, user: bool) -> Result<i32, Failure> {
    if context.settings.get(key).is_none() {
        return Err(unknown(key));
    }
    let file = match (user, &context.sources.user_file) {
        (true, Some(file)) => file.clone(),
        (true, None) => {
            let message = "No home folder for your settings";
            return Err(Failure::new(Exit::Configuration, "NO_HOME", message));
        }
        (false, _) => project_file(context)?,
    };
    let is_project = !user && context.sources.explicit_file.is_none();
    if is_project {
        context.place()?.prepare()?;
    }
    let relied_on = !is_project || is_relied_on(context)?;
    edit::set(&file, key, value)?;
    if is_project && relied_on {
        trust_anew(context)?;
    }
    let data = json!({ "key": key, "value": value, "file": file });
    context.output.done(data, || format!("Set {key} to {value} in {}", file.display()));
    Ok(0)
}

/// Whether everything in the project's file is in effect, so that a change by its user is too.
fn is_relied_on(context: &Context) -> Result<bool, Failure> {
    let subject = locate::subject(context.place()?, &context.settings);
    let asks = !subject.claims.is_empty() || !subject.links.is_empty();
    Ok(!asks || context.trust.covers(&subject).map_err(LocateError::from)?)
}

/// Trusts the file again after its user changed it here.
fn trust_anew(context: &Context) -> Result<(), Failure> {
    let place = context.place()?;
    if place.kind == PlaceKind::User {
        return Ok(());
    }
    let subject = locate::subject(place, &Settings::load(&context.sources)?);
    if !subject.claims.is_empty() {
        context.trust.remember(&subject, &SystemClock).map_err(LocateError::from)?;
    }
    Ok(())
}

fn path(context: &Context) -> Result<i32, Failure> {
    let project = project_file(context).ok();
    let user =
        context.sources.user_file.clone().filter(|_| context.sources.explicit_file.is_none());
    let data = json!({ "user": user, "project": project });
    context.output.done(data, || {
        let line = |name: &str, file: &Option<PathBuf>| {
            let file = file.as_ref()?;
            let absent = if file.exists() { "" } else { "  (missing)" };
            Some(format!("{name:<8} {}{absent}", file.display()))
        };
        let lines = [line("user", &user), line("project", &project)];
        lines.into_iter().flatten().collect::<Vec<_>>().join("\n")
    });
    Ok(0)
}
