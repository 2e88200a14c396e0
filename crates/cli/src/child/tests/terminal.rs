//! Job control, in a real pseudo-terminal with an interactive shell in it.

use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

use super::role::{heed_interrupts, tenure_running, words};
use super::*;

/// A terminal with a session in it, and all that was printed there so far.
struct Screen {
    leader: std::process::Child,
    keyboard: fs::File,
    printed: Arc<Mutex<Vec<u8>>>,
    /// How much of that has been expected already.
    seen: usize,
    scratch: Scratch,
}

impl Screen {
    /// A new terminal; `command` leads its session.
    fn new(command: &mut Command, scratch: Scratch) -> Self {
        let main = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        grantpt(&main).unwrap();
        unlockpt(&main).unwrap();
        let name = ptsname(&main, Vec::new()).unwrap();
        let mut options = fs::File::options();
        options.read(true).write(true).custom_flags(libc::O_NOCTTY);
        let side = options.open(name.to_str().unwrap()).unwrap();
        command.stdin(side.try_clone().unwrap());
        command.stdout(side.try_clone().unwrap());
        command.stderr(side);
        lead_session(command);
        let leader = command.spawn().unwrap();
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());

        let keyboard = fs::File::from(main);
        let mut display = keyboard.try_clone().unwrap();
        let printed = Arc::new(Mutex::new(Vec::new()));
        let sink = Arc::clone(&printed);
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(length @ 1..) = display.read(&mut buffer) {
                sink.lock().unwrap().extend_from_slice(&buffer[..length]);
            }
        });
        Self { leader, keyboard, printed, seen: 0, scratch }
    }

    /// An interactive shell. In it, `tenure` runs the script in `$S` as a command of tenure's.
    fn shell(shell: &[&str]) -> Self {
        let scratch = Scratch::new();
        let words: Vec<String> =
            words().iter().map(|word| format!("'{}'", word.to_str().unwrap())).collect();
        let program = format!("#!/bin/sh\nTENURE_TEST_SCRIPT=$S exec {}\n", words.join(" "));
        fs::write(scratch.path("tenure"), program).unwrap();
        let mut command = Command::new(shell[0]);
        command.args(&shell[1..]).env("D", scratch.folder.path());
        command.env("PS1", "$ ").env_remove("ENV").env("TERM", "dumb");
        let mut screen = Self::new(&mut command, scratch);
        screen.keys("set -m; tenure() { sh $D/tenure; }; export S\n");
        screen.keys("echo ready$((1))\n").shows("ready1");
        screen
    }

    fn keys(&mut self, keys: &str) -> &mut Self {
        self.keyboard.write_all(keys.as_bytes()).unwrap();
        self
    }

    /// Waits until `text` is printed, after what was expected before.
    fn shows(&mut self, text: &str) -> &mut Self {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let printed = self.printed.lock().unwrap().clone();
            let new = &printed[self.seen..];
            if let Some(at) = new.windows(text.len()).position(|w| w == text.as_bytes()) {
                self.seen += at + text.len();
                return self;
            }
            let all = String::from_utf8_lossy(&printed);
            assert!(Instant::now() < deadline, "no {text:?} on screen:\n{all}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Everything printed so far.
    fn text(&self) -> String {
        String::from_utf8_lossy(&self.printed.lock().unwrap()).into_owned()
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // The kernel signals the process group that has the terminal.
        let _ = self.leader.kill();
        let _ = self.leader.wait();
    }
}

/// Makes the command lead a session with its standard input as the terminal.
#[expect(unsafe_code, reason = "code between fork and exec is unsafe by nature")]
fn lead_session(command: &mut Command) {
    heed_interrupts(command);
    // SAFETY: two system calls, no allocation, no lock.
    unsafe {
        command.pre_exec(|| {
            rustix::process::setsid()?;
            Ok(rustix::process::ioctl_tiocsctty(std::io::stdin())?)
        });
    }
}

/// Every shell with job control that is at hand.
fn each_shell(test: impl Fn(&mut Screen)) {
    test(&mut Screen::shell(&["sh", "-i"]));
    if Command::new("bash").arg("--version").output().is_ok() {
        test(&mut Screen::shell(&["bash", "--norc", "--noprofile", "--noediting", "-i"]));
    }
}

#[test]
fn the_command_reads_the_keyboard() {
    each_shell(|screen| {
        screen.keys("S='echo a$((1)); read x; echo got:$x; exit 5'; tenure; echo code:$?\n");
        screen.shows("a1").keys("hello\n").shows("got:hello").shows("code:5");
        screen.keys("read y; echo back:$y\n").keys("again\n").shows("back:again");
    });
}

#[test]
fn the_command_has_the_terminal_from_the_start_and_no_signal_blocked() {
    each_shell(|screen| {
        screen.keys("S='set -- $(cat /proc/$$/stat); [ $8 = $$ ] && echo front$((1))'; tenure\n");
        screen.shows("front1");
        screen.keys("S='echo mask:$(sed -n s/SigBlk:.//p /proc/$$/status)'; tenure\n");
        screen.shows("mask:0000000000000000");
    });
}

#[test]
fn ctrl_z_stops_both_and_fg_continues_both() {
    each_shell(|screen| {
        screen
            .keys("S='echo a$((1)); while read x; do echo got:$x; done; echo end$((1))'; tenure\n");
        screen.shows("a1");
        for round in ["one", "two"] {
            screen.keys("\x1a").shows("Stopped");
            screen.keys("echo shell$((1))\n").shows("shell1");
            screen.keys("fg\n").shows("tenure");
            screen.keys(&format!("{round}\n")).shows(&format!("got:{round}"));
        }
        screen.keys("\x04").shows("end1");
        screen.keys("echo shell$((2))\n").shows("shell2");
    });
}

#[test]
fn fg_gives_the_terminal_back_to_a_command_that_had_it() {
    each_shell(|screen| {
        screen.keys("S='echo $$ >$D/a; exec sleep 1000'; tenure\n");
        let command = screen.scratch.pid("a");
        screen.keys("\x1a").shows("Stopped").keys("fg\n");
        until("being in front", || {
            let stat = fs::read_to_string(format!("/proc/{command}/stat")).ok()?;
            (stat.split(' ').nth(7) == Some(&command.to_string())).then_some(())
        });
    });
}

#[test]
fn ctrl_c_ends_the_command_and_the_script_around_it() {
    each_shell(|screen| {
        screen.keys("S='echo a$((1)); exec sleep 1000'; export S\n");
        for script in [
            "sh -c 'sh $D/tenure; echo went on$((1))'\n",
            "bash -c 'for i in 1 2; do sh $D/tenure; echo went on$((1)); done'\n",
            "for i in 1 2; do tenure; echo went on$((1)); done\n",
        ] {
            screen.keys(script).shows("a1").keys("\x03").shows("^C");
            screen.keys("echo code:$?\n").shows("code:130");
        }
        assert!(!screen.text().contains("went on1"), "{}", screen.text());
    });
}

#[test]
fn ctrl_c_that_the_command_survives_leaves_tenure_alone() {
    each_shell(|screen| {
        screen.keys("S='trap \"echo caught\\$((1))\" INT; echo a$((1)); read x; read x; exit 3'\n");
        screen.keys("tenure; echo code:$?\n").shows("a1");
        screen.keys("\x03").shows("caught1").keys("\n\n").shows("code:3");
    });
}

#[test]
fn in_a_pipeline_the_command_gets_the_terminal_when_it_asks() {
    each_shell(|screen| {
        screen.keys("S='echo a$((1)); read x </dev/tty; echo got:$x'; tenure | cat\n");
        screen.shows("a1").keys("hello\n").shows("got:hello");
        screen.keys("echo shell$((1))\n").shows("shell1");
    });
}

#[test]
fn in_a_pipeline_the_reader_at_its_end_keeps_the_terminal() {
    each_shell(|screen| {
        screen.keys(
            "S='echo $PPID >$D/parent; echo $$ >$D/command; echo a$((1)); exec sleep 1000'\n",
        );
        let reader =
            "until [ \"$x\" = a1 ]; do read x; done; echo $x; read y </dev/tty; echo got:$y";
        screen.keys(&format!("tenure | sh -c '{reader}'\n"));
        screen.shows("a1").keys("hello\n").shows("got:hello");
        let both = [screen.scratch.pid("parent"), screen.scratch.pid("command")];
        screen.keys("\x1a").shows("Stopped");
        for pid in both {
            until("a stop", || (state(pid) == Some('T')).then_some(()));
        }
        screen.keys("fg\n");
        for pid in both {
            until("going on", || (state(pid) == Some('S')).then_some(()));
        }
        screen.keys("\x03").shows("^C");
        for pid in both {
            until("its end", || (!is_alive(pid)).then_some(()));
        }
        screen.keys("echo shell$((1))\n").shows("shell1");
    });
}

#[test]
fn a_background_command_that_wants_the_terminal_stops_until_fg() {
    each_shell(|screen| {
        screen.keys("S='echo a$((1)); read x; echo got:$x'; tenure &\n").shows("a1");
        screen.keys("echo shell$((1))\n").shows("shell1");
        until("a stop", || {
            screen.keys("\njobs\n");
            std::thread::sleep(Duration::from_millis(50));
            screen.text().contains("Stopped").then_some(())
        });
        screen.keys("fg\n").keys("hello\n").shows("got:hello");
        screen.keys("echo shell$((2))\n").shows("shell2");
    });
}

#[test]
fn without_a_shell_ctrl_z_does_nothing() {
    let scratch = Scratch::new();
    let script = "echo a$((1)); while read x; do echo got:$x; done";
    let mut command = tenure_running(script, &scratch);
    let mut screen = Screen::new(&mut command, scratch);
    screen.shows("a1").keys("\x1a").keys("hello\n").shows("got:hello");
}

#[test]
fn a_killed_command_leaves_the_terminal_usable() {
    each_shell(|screen| {
        screen.keys("S='stty raw -echo; kill -9 $$'; tenure; echo code:$?\n").shows("code:137");
        screen.keys("stty -a | grep -e ' -echo ' -e -icanon && echo raw$((1)); echo end$((1))\n");
        screen.shows("end1");
        assert!(!screen.text().contains("raw1"), "{}", screen.text());
    });
}

#[test]
fn a_command_that_cannot_be_started_does_not_take_the_terminal_away() {
    each_shell(|screen| {
        screen
            .keys("S=/no/such/program; sh -c 'sh $D/tenure; echo code:$?; read x; echo got:$x'\n");
        screen.shows("code:127").keys("hello\n").shows("got:hello");
    });
}
