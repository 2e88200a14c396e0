//! A log that accepts a line only with the newest token, and a checker of what it accepted.

use crate::support::StoreLocation;
use std::collections::{HashMap, HashSet};

/// What a holder runs: three lines for the log, in the name of its task or of the lock. The log refuses
/// an old token, and notes that it did: a holder that was stopped in time is never refused.
pub const COMMAND: &str = r#"name=${TENURE_TASK_ID:-lock}
say() (
  flock 9
  highest=0
  [ ! -e "$D/fence-$name" ] || read -r highest < "$D/fence-$name"
  if [ "$TENURE_TOKEN" -lt "$highest" ]; then
    echo "$name $TENURE_TOKEN after $highest" >> "$D/refused"
    exit 1
  fi
  echo "$TENURE_TOKEN" > "$D/fence-$name"
  echo "$name $TENURE_TOKEN $1" >> "$D/log"
) 9> "$D/fence.lock"
say begin && sleep 0.05 && say middle && sleep 0.05 && say end
"#;

/// A line of the log.
struct Line<'a> {
    name: &'a str,
    token: u64,
    word: &'a str,
}

fn lines(log: &str) -> Vec<Line<'_>> {
    let line = |line| {
        let mut parts = str::split(line, ' ');
        let mut next = || parts.next().expect("three words");
        Line { name: next(), token: next().parse().expect("a token"), word: next() }
    };
    log.lines().map(line).collect()
}

/// How often a holder of this name began.
pub fn begun(place: &StoreLocation, name: &str) -> usize {
    let log = place.read("log");
    // The last line may be half written.
    let whole = &log[..log.rfind('\n').map_or(0, |end| end + 1)];
    lines(whole).iter().filter(|line| line.name == name && line.word == "begin").count()
}

/// No two held at once: no holder wrote after a newer one, and none had the token of another. Returns
/// who wrote to the end.
pub fn check(place: &StoreLocation) -> HashSet<String> {
    assert_eq!(place.read("refused"), "", "holders wrote after newer ones");
    let log = place.read("log");
    let mut newest: HashMap<&str, u64> = HashMap::new();
    let mut begun: HashSet<(&str, u64)> = HashSet::new();
    let mut ended = HashSet::new();
    for line in lines(&log) {
        let newest = newest.entry(line.name).or_default();
        assert!(line.token >= *newest, "{} {} after {newest}", line.name, line.token);
        *newest = line.token;
        match line.word {
            "begin" => {
                let is_first = begun.insert((line.name, line.token));
                assert!(is_first, "two holders of {} had the token {}", line.name, line.token);
            }
            "end" => drop(ended.insert(line.name.to_owned())),
            _ => {}
        }
    }
    ended
}
