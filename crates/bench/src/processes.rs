//! Starts several worker processes together.

use crate::BenchError;
use crate::program::this_program;
use crate::worker::{GO, READY, WORKER, Work};
use serde::de::DeserializeOwned;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

/// Worker processes; they are killed on drop.
pub(crate) struct Processes {
    members: Vec<Member>,
}

struct Member {
    process: Child,
    orders: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Processes {
    /// Starts a process for each piece of work; returns when all are ready.
    pub(crate) fn start(works: impl IntoIterator<Item = Work>) -> Result<Processes, BenchError> {
        let members = works.into_iter().map(|work| Member::start(&work));
        let mut processes = Processes { members: members.collect::<Result<_, _>>()? };
        processes.hear(READY)?;
        Ok(processes)
    }

    /// Starts the processes, lets them run, and collects their results.
    pub(crate) fn run<T: DeserializeOwned>(
        works: impl IntoIterator<Item = Work>,
    ) -> Result<Vec<T>, BenchError> {
        let mut processes = Processes::start(works)?;
        processes.go()?;
        processes.results()
    }

    /// Lets all processes begin.
    pub(crate) fn go(&mut self) -> Result<(), BenchError> {
        self.members.iter_mut().try_for_each(|member| {
            let order = member.orders.write_all(format!("{GO}\n").as_bytes());
            order.map_err(|source| BenchError::Process { program: "a worker".to_owned(), source })
        })
    }

    /// Waits until each process has printed this word.
    pub(crate) fn hear(&mut self, word: &'static str) -> Result<(), BenchError> {
        self.members.iter_mut().try_for_each(|member| {
            let said = member.line()?;
            if said != word {
                return Err(BenchError::Worker { said, expected: word });
            }
            Ok(())
        })
    }

    /// Waits for the result of each process.
    pub(crate) fn results<T: DeserializeOwned>(mut self) -> Result<Vec<T>, BenchError> {
        let results = self.members.iter_mut().map(|member| {
            let said = member.line()?;
            let found = serde_json::from_str(&said);
            found.map_err(|_| BenchError::Worker { said, expected: "a result" })
        });
        results.collect()
    }
}

impl Member {
    fn start(work: &Work) -> Result<Member, BenchError> {
        let failed = |source| BenchError::Process { program: "a worker".to_owned(), source };
        let work = serde_json::to_string(work).expect("plain records always serialise");
        let mut command = this_program().map_err(failed)?;
        command.arg(WORKER).arg(work).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = command.spawn().map_err(failed)?;
        let orders = process.stdin.take().expect("it was piped just above");
        let answers = process.stdout.take().expect("it was piped just above");
        Ok(Member { process, orders, answers: BufReader::new(answers) })
    }

    fn line(&mut self) -> Result<String, BenchError> {
        let mut line = String::new();
        let read = self.answers.read_line(&mut line);
        read.map_err(|source| BenchError::Process { program: "a worker".to_owned(), source })?;
        Ok(line.trim_end().to_owned())
    }
}

impl Drop for Processes {
    fn drop(&mut self) {
        for member in &mut self.members {
            let _ = member.process.kill();
            let _ = member.process.wait();
        }
    }
}
