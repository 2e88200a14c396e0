//! Who held when: the logs of all holders, merged and searched for two at once.

use std::path::Path;

/// One act of holding, from after it was acquired to before it was released.
#[derive(Clone, Debug)]
pub struct Interval {
    pub is_tenure: bool,
    pub enter_ns: u64,
    pub leave_ns: u64,
}

/// What the holders' logs say.
#[derive(Default)]
pub struct Logs {
    pub intervals: Vec<Interval>,
    /// All other lines: their log, word and rest.
    pub notes: Vec<(String, String, String)>,
}

impl Logs {
    /// Reads one holder's log.
    pub fn add(&mut self, path: &Path, is_tenure: bool) {
        let log = path.file_name().expect("a name").to_string_lossy().into_owned();
        let text = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{log}: {error}"));
        let mut enter = None;
        for line in text.lines() {
            let (word, rest) = line.split_once(' ').expect("a word and what it is about");
            let number = || rest.parse().unwrap_or_else(|error| panic!("{log}: {line}: {error}"));
            match word {
                "enter" => assert_eq!(enter.replace(number()), None, "{log}: entered twice"),
                "leave" => {
                    let enter_ns = enter.take().expect("an entry before a leave");
                    self.intervals.push(Interval { is_tenure, enter_ns, leave_ns: number() });
                }
                _ => self.notes.push((log.clone(), word.to_owned(), rest.to_owned())),
            }
        }
    }

    /// What the notes of this kind say.
    pub fn noted<'a>(&'a self, word: &'a str) -> impl Iterator<Item = &'a str> {
        self.notes.iter().filter(move |note| note.1 == word).map(|note| note.2.as_str())
    }

    /// All pairs that held at once.
    pub fn overlaps(&self) -> Overlaps {
        let mut sorted: Vec<&Interval> = self.intervals.iter().collect();
        sorted.sort_by_key(|interval| interval.enter_ns);
        let mut found = Overlaps::default();
        for (index, one) in sorted.iter().enumerate() {
            let later = sorted[index + 1..].iter();
            for other in later.take_while(|other| other.enter_ns < one.leave_ns) {
                match (one.is_tenure, other.is_tenure) {
                    (true, true) => found.tenure += 1,
                    (false, false) => found.foreign += 1,
                    _ => found.mixed += 1,
                }
            }
        }
        found
    }

    pub fn by_tenure(&self) -> usize {
        self.intervals.iter().filter(|interval| interval.is_tenure).count()
    }

    /// How often the lock went from one kind of program to the other.
    pub fn changes(&self) -> usize {
        let mut sorted: Vec<&Interval> = self.intervals.iter().collect();
        sorted.sort_by_key(|interval| interval.enter_ns);
        sorted.windows(2).filter(|pair| pair[0].is_tenure != pair[1].is_tenure).count()
    }
}

/// How often two held at once, by who they were.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Overlaps {
    pub tenure: usize,
    pub mixed: usize,
    pub foreign: usize,
}

#[test]
fn the_monitor_sees_two_at_once() {
    let interval = |is_tenure, enter_ns, leave_ns| Interval { is_tenure, enter_ns, leave_ns };
    let intervals = vec![
        interval(true, 0, 10),
        interval(true, 10, 20),
        interval(false, 15, 30),
        interval(false, 29, 40),
        interval(true, 16, 17),
    ];
    let logs = Logs { intervals, notes: vec![] };
    assert_eq!(logs.overlaps(), Overlaps { tenure: 1, mixed: 2, foreign: 1 });
}
