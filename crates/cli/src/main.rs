//! The `tenure` command. It parses the command line, calls the library, and prints the result.

mod args;
mod backup;
mod child;
mod commands;
mod completion;
mod context;
mod exit;
mod failure;
mod help;
mod migrate;
mod missing_double_dash;
mod naming;
mod open_file_limit;
mod output;
mod parse;
mod run_under_lock;
mod selftest;
mod setup;
mod show;
mod shutdown;
mod swarm;
mod telemetry;
mod top;
mod wait_display;
mod worker;

use args::{Cli, Command};
use clap::error::ErrorKind;
use context::Context;
use exit::Exit;
use failure::Failure;
use output::Output;
use parse::Parsed;
use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;
use tenure_frontend::view::spelling::show_relative_to;

fn main() {
    let line: Vec<OsString> = std::env::args_os().collect();
    if completion::answer(&line) {
        output::end(Exit::Ok.code());
    }
    if let Some(code) = worker_process(&line) {
        output::end(code);
    }
    output::end(match parse::parse(&line) {
        Ok(parsed) => start(parsed),
        Err(error) => report_parse_error(&line, &error),
    })
}

/// Runs this process as a worker of `selftest`, which starts the program again with JSON instructions, or as
/// the check of what workers of `scripts/soak` recorded. These are no commands for users.
fn worker_process(line: &[OsString]) -> Option<i32> {
    let [_, name, work] = line else { return None };
    let (name, work) = (name.to_str()?, work.to_str()?);
    let result = match name {
        "selftest-worker" => commands::selftest::work(work),
        "selftest-check" => commands::selftest::check(Path::new(work)),
        _ => return None,
    };
    Some(result.unwrap_or_else(|failure| {
        let command = name.to_owned();
        let output =
            Output { json: false, quiet: false, verbose: false, command, subcommand: None };
        output.fail(&failure);
        failure.exit
    }))
}

/// Reports a command line that cannot be parsed. Help and version are not errors; clap prints most
/// of the rest itself.
fn report_parse_error(line: &[OsString], error: &clap::Error) -> i32 {
    let informative = matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion);
    let words: Vec<_> = line.iter().skip(1).take_while(|arg| *arg != "--").collect();
    let json = words.iter().any(|arg| *arg == "--json");
    let missing_double_dash = missing_double_dash::failure(line, error);
    let is_ours =
        json || missing_double_dash.is_some() || error.kind() == ErrorKind::ValueValidation;
    if informative || !is_ours {
        let _ = error.print();
    } else {
        let root = help::described();
        let command = words.iter().find_map(|word| root.find_subcommand(word));
        let subcommand = words.iter().find_map(|word| command?.find_subcommand(word));
        let name = |command: &clap::Command| command.get_name().to_owned();
        let command = command.map(name).unwrap_or_default();
        let subcommand = subcommand.map(name);
        Output { json, quiet: false, verbose: false, command, subcommand }
            .fail(&missing_double_dash.unwrap_or_else(|| Failure::from(error)));
    }
    // To the hosts of agents, exit code 2 of a hook means that a tool must not run: a wrong or a newer
    // configuration must not stop an agent.
    let is_hook = words.iter().find(|word| !word.to_string_lossy().starts_with('-'));
    match is_hook.is_some_and(|word| **word == "hook") {
        _ if informative => Exit::Ok.code(),
        true => Exit::Error.code(),
        false => Exit::Usage.code(),
    }
}

fn start(Parsed { cli, command, subcommand }: Parsed) -> i32 {
    if cli.global.no_color {
        anstream::ColorChoice::Never.write_global();
    }
    let output = Output {
        json: cli.global.json,
        quiet: cli.global.quiet,
        verbose: cli.global.verbose,
        command,
        subcommand,
    };
    let result = change_directory(&cli).and_then(|()| match &cli.command {
        // It never fails: a fault of its own must not stop an agent.
        Command::Hook(args) => Ok(commands::hook::run(&output, &cli.global, args)),
        // It uses a kernel lock and needs no store.
        Command::Append(args) => commands::append::run(&output, &cli.global, args),
        // Settings and stores that it cannot read must not stop a commit.
        Command::Guard(args) => Ok(commands::guard::run(&output, &cli.global, args)),
        _ => run_command(cli, output.clone()),
    });
    result.unwrap_or_else(|failure| {
        output.fail(&failure);
        failure.exit
    })
}

fn change_directory(cli: &Cli) -> Result<(), Failure> {
    let Some(folder) = &cli.global.directory else { return Ok(()) };
    std::env::set_current_dir(folder).map_err(|error| {
        let message = format!("cannot change to the folder {}: {error}", folder.display());
        Failure::new(Exit::Configuration, "DIRECTORY", message)
    })
}

fn run_command(cli: Cli, output: Output) -> Result<i32, Failure> {
    open_file_limit::check(&cli.command)?;
    let labels = cli.global.label.clone();
    if labels.len() > 1 && !matches!(cli.command, Command::Token(_)) {
        return Err(Failure::usage("--as can be given only once"));
    }
    let mut builder = match &cli.command {
        // A server handles many requests at once.
        Command::Serve(_) => tokio::runtime::Builder::new_multi_thread(),
        _ => tokio::runtime::Builder::new_current_thread(),
    };
    let runtime = builder.enable_all().build().map_err(|error| {
        Failure::new(Exit::Error, "RUNTIME", format!("cannot start the async runtime: {error}"))
    })?;
    let context = match &cli.command {
        // All who change a file must use the same store, so the store is found from the file's
        // folder.
        Command::Update(args) => Context::for_file(&cli.global, output, &args.file)?,
        Command::Trust(args) => match &args.path {
            Some(path) if path.is_dir() => Context::for_folder(&cli.global, output, path)?,
            // The project may be deleted: only what is trusted under this name is forgotten.
            Some(_) if args.revoke => Context::new(&cli.global, output)?,
            Some(path) => return Err(commands::trust::no_folder(path)),
            None => Context::new(&cli.global, output)?,
        },
        _ => Context::new(&cli.global, output)?,
    };
    // A server answers many, wherever they are, and JSON is for programs.
    if !cli.global.json && !matches!(cli.command, Command::Serve(_) | Command::Mcp(_)) {
        show_relative_to(context.folder());
    }
    // A server starts its log at the same time.
    if !matches!(cli.command, Command::Serve(_)) {
        telemetry::start(None, context.sends_telemetry())?;
    }
    let result = runtime.block_on(async {
        match cli.command {
            Command::Run(args) => commands::run::run(&context, args).await,
            Command::Update(args) => commands::update::run(&context, args).await,
            Command::Work(args) => commands::work::run(&context, args).await,
            Command::Swarm(args) => commands::swarm::run(&context, args).await,
            Command::Acquire(args) => commands::acquire::run(&context, args).await,
            Command::Renew(args) => commands::renew::run(&context, args).await,
            Command::Release(args) => commands::release::run(&context, args).await,
            Command::Break(args) => commands::break_hold::run(&context, args).await,
            Command::Verify(args) => commands::verify::run(&context, args).await,
            Command::Wait(args) => commands::wait::run(&context, args).await,
            Command::Status(args) => commands::status::run(&context, args).await,
            Command::Locks(args) => commands::locks::run(&context, args).await,
            Command::Tasks(args) => commands::tasks::run(&context, args).await,
            Command::Sections(args) => commands::sections::run(&context, args).await,
            Command::Workers(args) => commands::workers::run(&context, args).await,
            Command::Top(args) => commands::top::run(&context, args).await,
            Command::Why(args) => commands::why::run(&context, args).await,
            Command::Events(args) => commands::events::run(&context, args).await,
            Command::Serve(args) => commands::serve::run(&context, args).await,
            Command::Token(args) => commands::token::run(&context, args, labels),
            Command::Mine(args) => commands::mine::run(&context, args).await,
            Command::Prime(args) => commands::prime::run(&context, args).await,
            Command::Mcp(args) => commands::mcp::run(&context, args).await,
            Command::Backup(args) => commands::backup::run(&context, args).await,
            Command::Restore(args) => commands::restore::run(&context, args).await,
            Command::Migrate(args) => commands::migrate::run(&context, args).await,
            Command::Init(args) => commands::init::run(&context, args).await,
            Command::Config(args) => commands::config::run(&context, args),
            Command::Trust(args) => commands::trust::run(&context, args),
            Command::Whoami(args) => commands::whoami::run(&context, args),
            Command::Setup(args) => commands::setup::run(&context, &args),
            Command::Doctor(args) => commands::doctor::run(&context, args).await,
            Command::Gc(args) => commands::gc::run(&context, args).await,
            Command::Store(args) => commands::store::run(&context, args).await,
            Command::Selftest(args) => commands::selftest::run(&context, &args),
            Command::Completions(args) => commands::completions::run(&context, args),
            Command::Man(args) => commands::man::run(&context, args),
            Command::Append(_) | Command::Guard(_) | Command::Hook(_) => {
                unreachable!("they run without a context")
            }
        }
    });
    telemetry::end();
    // A thread may still wait to write, behind a process that is stopped.
    runtime.shutdown_timeout(LAST_THREADS);
    result
}

/// How long to wait at exit for threads that still write.
const LAST_THREADS: Duration = Duration::from_secs(1);
