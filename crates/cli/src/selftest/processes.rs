//! The worker processes of a trial: started together, some of them killed and replaced.

use super::contender::LIMIT;
use super::exclusion_check::Turn;
use super::file_replacement;
use super::scratch::Scratch;
use super::trial::Trial;
use super::worker::{GO, KEEP, Work, WorkerMessage, ticks};
use super::{SelftestError, TestSize};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};
use tenure::core::Retention;

/// The interval between kills: alternately a process that holds and any process.
const KILL_EVERY: Duration = Duration::from_millis(150);

/// The most rounds of all processes together, so that their reports fit into memory.
const ROUNDS_MAX: u64 = 400_000;

/// The most processes that are killed.
const KILLS_MAX: u64 = 1000;

/// What all processes of a trial reported.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    pub(super) turns: Vec<Turn>,
    /// Rounds of a trial without turns.
    pub(super) rounds: u64,
    /// Rounds in which a file was missing.
    pub(super) gaps: u64,
    pub(super) kills: u64,
    /// Why the file system does not support the trial.
    pub(super) missing: Option<String>,
    /// A failure in one sentence.
    pub(super) wrong: Option<String>,
    pub(super) took: Duration,
}

/// Runs a trial in all processes.
pub(super) fn run(
    trial: Trial,
    scratch: &Scratch,
    size: &TestSize,
) -> Result<Outcome, SelftestError> {
    let folder = scratch.sub_folder(trial.word())?;
    file_replacement::prepare(trial, &folder)
        .map_err(|source| SelftestError::Folder { folder: folder.clone(), source })?;
    let span = size.span * trial.share() / Trial::SHARES;
    let work = Work {
        trial,
        folder: folder.clone(),
        url: scratch.store(),
        rounds_max: ROUNDS_MAX / size.processes as u64,
        without_lock: size.without_lock,
        pause_ms: 0,
        retention: Retention::default(),
    };
    let begun = Instant::now();
    let mut crew = Processes::start(work, size.processes)?;
    crew.listen(span)?;
    let mut outcome = std::mem::take(&mut crew.outcome);
    drop(crew);
    outcome.took = begun.elapsed();
    if outcome.missing.is_none() && outcome.wrong.is_none() {
        outcome.wrong = file_replacement::leftover(trial, &folder, outcome.rounds);
    }
    Ok(outcome)
}

/// The worker processes; they are killed on drop.
struct Processes {
    work: Work,
    members: Vec<Member>,
    /// Reports of the members; `None` when a member ended.
    words: Receiver<(usize, Option<WorkerMessage>)>,
    speaker: Sender<(usize, Option<WorkerMessage>)>,
    outcome: Outcome,
    /// When the trial ends, in nanoseconds on the shared clock; `None` until all are ready.
    ends_at: Option<u64>,
}

struct Member {
    process: Child,
    orders: ChildStdin,
    /// Since when it holds, and its token.
    holds: Option<(u64, Option<u64>)>,
    killed_at: Option<u64>,
    state: State,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Starting,
    Trying,
    Done,
    Gone,
}

impl Processes {
    fn start(work: Work, processes: usize) -> Result<Processes, SelftestError> {
        let (speaker, words) = channel();
        let (members, outcome) = (vec![], Outcome::default());
        let mut crew = Processes { work, members, words, speaker, outcome, ends_at: None };
        for _ in 0..processes {
            crew.add()?;
        }
        Ok(crew)
    }

    /// Starts one more process.
    fn add(&mut self) -> Result<(), SelftestError> {
        let failed = |source| SelftestError::Process { source };
        let work = serde_json::to_string(&self.work).expect("plain records always serialise");
        let mut command = this_program().map_err(failed)?;
        command.arg("selftest-worker").arg(work).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = command.spawn().map_err(failed)?;
        let orders = process.stdin.take().expect("it was piped just above");
        let answers = process.stdout.take().expect("it was piped just above");
        let (number, speaker) = (self.members.len(), self.speaker.clone());
        std::thread::spawn(move || {
            for line in BufReader::new(answers).lines().map_while(Result::ok) {
                // A killed process may leave half a line.
                let Ok(word) = serde_json::from_str(&line) else { break };
                // It fails only when the receiver is gone.
                let _ = speaker.send((number, Some(word)));
            }
            let _ = speaker.send((number, None));
        });
        let state = State::Starting;
        self.members.push(Member { process, orders, holds: None, killed_at: None, state });
        Ok(())
    }

    /// Receives reports and kills processes until all have ended.
    fn listen(&mut self, span: Duration) -> Result<(), SelftestError> {
        let (span, limit) = (span.as_nanos() as u64, LIMIT.as_nanos() as u64);
        let (begun, mut last_kill) = (ticks(), ticks());
        while self.members.iter().any(|member| member.state != State::Gone) {
            let now = ticks();
            let ends_at = self.ends_at.unwrap_or(begun + span);
            if now >= ends_at + limit {
                self.outcome.wrong = Some(self.stuck());
                return Ok(());
            }
            let is_time = now >= last_kill + KILL_EVERY.as_nanos() as u64 && now < ends_at;
            if is_time && self.may_kill() {
                last_kill = now;
                self.choose_victim();
            }
            match self.words.recv_timeout(KILL_EVERY / 4) {
                Ok((number, Some(word))) => self.hear(number, word, now + span),
                Ok((number, None)) => self.bury(number, now < ends_at)?,
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Ok(()),
            }
            if self.outcome.wrong.is_some() || self.outcome.missing.is_some() {
                return Ok(());
            }
        }
        Ok(())
    }

    fn may_kill(&self) -> bool {
        let begun = self.ends_at.is_some();
        begun && self.work.trial.survives_kills() && self.outcome.kills < KILLS_MAX
    }

    /// Chooses the next process to kill: alternately one that will hold and any, in turn.
    fn choose_victim(&mut self) {
        let trying = |(_, member): &(usize, &Member)| {
            member.state == State::Trying && member.killed_at.is_none()
        };
        let victims: Vec<usize> =
            self.members.iter().enumerate().filter(trying).map(|(number, _)| number).collect();
        let Some(victim) = victims.get(self.outcome.kills as usize % victims.len().max(1)) else {
            return;
        };
        match self.outcome.kills.is_multiple_of(2) {
            true => self.members[*victim].order(KEEP),
            false => self.kill(*victim),
        }
    }

    fn kill(&mut self, number: usize) {
        let member = &mut self.members[number];
        // It may still hold at this moment, but not much longer.
        member.killed_at = Some(ticks());
        let _ = member.process.kill();
        self.outcome.kills += 1;
    }

    fn hear(&mut self, number: usize, word: WorkerMessage, ends_at: u64) {
        let member = &mut self.members[number];
        match word {
            WorkerMessage::Ready => {
                member.state = State::Trying;
                self.let_begin(number, ends_at);
            }
            WorkerMessage::Entered { token, at, keeps } => {
                member.holds = Some((at, token));
                if keeps && member.killed_at.is_none() {
                    self.kill(number);
                }
            }
            WorkerMessage::Left { at } => {
                let turn = member.turn(|entered| at.unwrap_or(entered), false);
                self.outcome.turns.extend(turn);
            }
            WorkerMessage::Done(tally) => {
                member.state = State::Done;
                self.outcome.rounds += tally.rounds;
                self.outcome.gaps += tally.gaps;
            }
            WorkerMessage::Missing { why } => self.outcome.missing = Some(why),
            WorkerMessage::Wrong { sentence } => self.outcome.wrong = Some(sentence),
        }
    }

    /// Lets the first processes start together, and replacements at once.
    fn let_begin(&mut self, number: usize, ends_at: u64) {
        let all_ready = self.members.iter().all(|member| member.state != State::Starting);
        match self.ends_at {
            Some(ends_at) => self.members[number].order(&format!("{GO} {ends_at}")),
            None if all_ready => {
                self.ends_at = Some(ends_at);
                if self.work.trial.survives_kills() {
                    // However short the trial, a process that holds is killed.
                    self.members[number].order(KEEP);
                }
                let order = format!("{GO} {ends_at}");
                self.members.iter_mut().for_each(|member| member.order(&order));
            }
            None => {}
        }
    }

    /// Records the last turn of an ended process, and replaces it if it was killed.
    fn bury(&mut self, number: usize, before_end: bool) -> Result<(), SelftestError> {
        let member = &mut self.members[number];
        let _ = member.process.wait();
        let state = std::mem::replace(&mut member.state, State::Gone);
        let Some(killed_at) = member.killed_at else {
            return if state == State::Done { Ok(()) } else { Err(SelftestError::Ended) };
        };
        let turn = member.turn(|entered| killed_at.max(entered), true);
        self.outcome.turns.extend(turn);
        let others_try = self.members.iter().any(|member| member.state == State::Trying);
        // After the end, one process must still take over.
        if before_end || !others_try { self.add() } else { Ok(()) }
    }

    /// Explains why the processes do not end.
    fn stuck(&self) -> String {
        let seconds = LIMIT.as_secs();
        match self.outcome.turns.iter().max_by_key(|turn| turn.entered) {
            Some(last) if last.killed => format!(
                "no process could take over within {seconds} seconds from process {}, which \
                 was killed",
                last.process
            ),
            _ => format!("no progress for {seconds} seconds"),
        }
    }
}

/// A command for this program, without the settings of the user.
fn this_program() -> std::io::Result<Command> {
    let mut command = Command::new(std::env::current_exe()?);
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("TENURE_") {
            command.env_remove(name);
        }
    }
    Ok(command)
}

impl Member {
    fn order(&mut self, word: &str) {
        // A dead process needs no orders.
        let _ = self.orders.write_all(format!("{word}\n").as_bytes());
    }

    /// Ends the turn, if there is one.
    fn turn(&mut self, left: impl Fn(u64) -> u64, killed: bool) -> Option<Turn> {
        let (entered, token) = self.holds.take()?;
        Some(Turn { process: self.process.id(), token, entered, left: left(entered), killed })
    }
}

impl Drop for Processes {
    fn drop(&mut self) {
        for member in &mut self.members {
            let _ = member.process.kill();
        }
        // A process that hangs in a file system cannot be killed, and is not waited for.
        let deadline = Instant::now() + Duration::from_secs(1);
        for member in &mut self.members {
            while matches!(member.process.try_wait(), Ok(None)) && Instant::now() < deadline {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
    }
}
