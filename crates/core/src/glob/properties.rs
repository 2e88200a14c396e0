//! What holds for all globs, shown on random ones against a naive reading of the same text.
//!
//! The naive reading expands braces as strings and backtracks over characters; it shares no code
//! with the module. Overlap is compared with a search through every path that could matter. Why
//! those are enough: in the shortest common path of two globs each character is taken by a
//! character, `?` or class of at least one of them (what two runs share can be left out), except
//! that a name which would shrink to nothing, `.` or `..` needs up to three characters. The same
//! goes for segments and `**`. Characters that no glob mentions are alike, so one stands for all.

use super::Glob;
use proptest::prelude::*;

/// `a`, `b` and `.` are what the random globs mention; `z` stands for every other character.
const ALPHABET: [char; 4] = ['a', 'b', '.', 'z'];

/// A glob as the naive reading sees it: segments of every expansion.
struct Naive(Vec<Vec<String>>);

impl Naive {
    fn new(glob: &str) -> Naive {
        let expansions = naive_expansions(glob).into_iter();
        Naive(expansions.map(|text| Self::segments(&text)).collect())
    }

    fn segments(text: &str) -> Vec<String> {
        let mut segments: Vec<&str> = text.split('/').collect();
        if ["", "."].contains(segments.last().unwrap()) {
            segments.push("**");
        }
        segments.retain(|segment| !["", "."].contains(segment));
        segments.into_iter().map(str::to_owned).collect()
    }

    fn matches(&self, path: &str) -> bool {
        let names: Vec<&str> = path.split('/').collect();
        let is_path = names.iter().all(|name| !["", ".", ".."].contains(name));
        is_path && self.0.iter().any(|segments| naive_segments(segments, &names))
    }
}

fn naive_segments(segments: &[String], names: &[&str]) -> bool {
    match (segments, names) {
        ([], _) => names.is_empty(),
        ([first, rest @ ..], _) if first == "**" => {
            (0..=names.len()).any(|taken| naive_segments(rest, &names[taken..]))
        }
        ([first, rest @ ..], [name, others @ ..]) => {
            let (symbols, characters) =
                (first.chars().collect::<Vec<_>>(), name.chars().collect::<Vec<_>>());
            naive_name(&symbols, &characters) && naive_segments(rest, others)
        }
        (_, []) => false,
    }
}

fn naive_name(symbols: &[char], name: &[char]) -> bool {
    match (symbols, name) {
        ([], _) => name.is_empty(),
        (['*', rest @ ..], _) => (0..=name.len()).any(|taken| naive_name(rest, &name[taken..])),
        (_, []) => false,
        (['?', rest @ ..], [_, others @ ..]) => naive_name(rest, others),
        (['[', rest @ ..], [character, others @ ..]) => {
            let end = rest.iter().position(|symbol| *symbol == ']').unwrap();
            naive_class(&rest[..end], *character) && naive_name(&rest[end + 1..], others)
        }
        (['\\', escaped, rest @ ..], [character, others @ ..]) => {
            escaped == character && naive_name(rest, others)
        }
        ([symbol, rest @ ..], [character, others @ ..]) => {
            symbol == character && naive_name(rest, others)
        }
    }
}

fn naive_class(members: &[char], character: char) -> bool {
    match members {
        ['!', members @ ..] => !naive_class(members, character),
        [first, '-', last, rest @ ..] => {
            (*first..=*last).contains(&character) || naive_class(rest, character)
        }
        [member, rest @ ..] => *member == character || naive_class(rest, character),
        [] => false,
    }
}

/// Replaces the first innermost braces by each of their choices until no braces are left.
fn naive_expansions(glob: &str) -> Vec<String> {
    let Some(close) = glob.find('}') else {
        return vec![glob.to_owned()];
    };
    let open = glob[..close].rfind('{').unwrap();
    let (before, inside, after) = (&glob[..open], &glob[open + 1..close], &glob[close + 1..]);
    inside
        .split(',')
        .flat_map(|choice| naive_expansions(&format!("{before}{choice}{after}")))
        .collect()
}

fn words<T: Clone>(letters: &[T], longest: usize) -> Vec<Vec<T>> {
    let mut all: Vec<Vec<T>> = Vec::new();
    let mut latest: Vec<Vec<T>> = vec![Vec::new()];
    for _ in 0..longest {
        latest = latest
            .iter()
            .flat_map(|word| {
                letters
                    .iter()
                    .map(|letter| [word.as_slice(), std::slice::from_ref(letter)].concat())
            })
            .collect();
        all.extend(latest.iter().cloned());
    }
    all
}

fn names(longest: usize) -> Vec<String> {
    let names = words(&ALPHABET, longest).into_iter().map(String::from_iter);
    names.filter(|name| name != "." && name != "..").collect()
}

fn paths(names: &[String], deepest: usize) -> Vec<String> {
    words(names, deepest).iter().map(|path| path.join("/")).collect()
}

/// One symbol of a segment that takes exactly one character.
fn single() -> impl Strategy<Value = String> {
    const SINGLES: &[&str] =
        &["a", "b", ".", "?", "[ab]", "[!a]", "[!.]", "[.b]", "[a-z]", r"\a", "[!a-b]"];
    prop::sample::select(SINGLES).prop_map(str::to_owned)
}

/// A segment with at most this many symbols that take a character, and runs between them.
fn segment(singles: usize) -> impl Strategy<Value = String> {
    let piece = (single(), prop::bool::ANY)
        .prop_map(|(single, run)| if run { single + "*" } else { single });
    (prop::bool::ANY, prop::collection::vec(piece, 0..=singles))
        .prop_map(
            |(run, pieces)| if run { "*".to_owned() } else { String::new() } + &pieces.concat(),
        )
        .prop_filter("not a name", |text| !text.is_empty())
}

/// Up to this many segments beside any number of `**`.
fn path_glob(segments: usize, singles: usize) -> impl Strategy<Value = String> {
    let piece = (segment(singles), prop::bool::ANY)
        .prop_map(|(segment, deep)| if deep { segment + "/**" } else { segment });
    (prop::bool::ANY, prop::collection::vec(piece, 1..=segments))
        .prop_map(|(deep, pieces)| if deep { "**/" } else { "" }.to_owned() + &pieces.join("/"))
}

/// Braces around, before and between path globs, with nesting, `/` and empty alternatives.
fn braced_glob() -> impl Strategy<Value = String> {
    let inside = prop_oneof![
        (segment(1), path_glob(2, 1)).prop_map(|(a, b)| format!("{{{a},{b}}}")),
        (segment(1), segment(1)).prop_map(|(a, b)| format!("{{,/{a},{b}/}}")),
        (segment(1), segment(1), segment(1)).prop_map(|(a, b, c)| format!("{{{a},{{{b},{c}}}x}}")),
    ];
    (segment(1), inside, segment(1), 0..5).prop_map(|(start, group, end, shape)| match shape {
        0 => group,
        1 => format!("{start}{group}"),
        2 => format!("{start}/{group}"),
        3 => format!("{start}{group}{end}"),
        _ => format!("./{group}/{end}"),
    })
}

/// Text made of what means something to the parser.
fn syntax_soup() -> impl Strategy<Value = String> {
    const PIECES: &[&str] = &[
        "a", "b", "C", ":", ".", "..", "/", "*", "**", "?", "[", "]", "!", "^", "-", "{", "}", ",",
        "\\", "%", "2", "e", "f", "é", "\u{d7ff}", "\u{e000}", "[a-c]", "{a,b}", "./",
    ];
    prop::collection::vec(prop::sample::select(PIECES), 0..12).prop_map(|pieces| pieces.concat())
}

/// Compares both directions: what overlaps has a witness, and what has a witness overlaps.
fn check_overlap(left: &str, right: &str, paths: &[String]) -> Result<(), TestCaseError> {
    let (Ok(a), Ok(b)) = (Glob::parse(left), Glob::parse(right)) else {
        return Err(TestCaseError::reject("refused"));
    };
    let (naive_left, naive_right) = (Naive::new(left), Naive::new(right));
    let witness = paths.iter().find(|path| naive_left.matches(path) && naive_right.matches(path));
    prop_assert_eq!(a.overlaps(&b), witness.is_some(), "{} and {}: {:?}", left, right, witness);
    prop_assert_eq!(b.overlaps(&a), witness.is_some(), "{} and {}: {:?}", right, left, witness);
    Ok(())
}

#[test]
fn overlap_of_segments_is_exact() {
    let names = names(6);
    proptest!(|(left in segment(3), right in segment(3))| check_overlap(&left, &right, &names)?);
}

/// Up to three names beside any number of `**`, perhaps in braces.
fn deep_glob() -> impl Strategy<Value = String> {
    const NAMES: &[&str] = &["a", "b", "?", "*", "[ab]", "[!a]", "a*", "*b"];
    let name = || prop::sample::select(NAMES);
    let list = prop::collection::vec(prop_oneof![3 => name(), 2 => Just("**")], 1..=7)
        .prop_filter("at most three names", |pieces| {
            pieces.iter().filter(|piece| **piece != "**").count() <= 3
        })
        .prop_map(|pieces| pieces.join("/"));
    let braces =
        (name(), name(), name(), name(), 0..5).prop_map(|(a, b, c, d, shape)| match shape {
            0 => format!("{{{a},{b}/{c}}}/{d}"),
            1 => format!("{a}/{{{b},{c}}}/{d}"),
            2 => format!("{a}{{,/{b},/{c}/}}"),
            3 => format!("{{{a}/{b},{a}/{c}/**}}"),
            _ => format!("{{{a},{{{b},{c}/**}}/{d}}}"),
        });
    prop_oneof![2 => list, 1 => braces]
}

#[test]
fn overlap_of_depths_is_exact() {
    // Any two names above that meet do so in one of these.
    let shortest = ["a", "b", "z", "ab"].map(str::to_owned);
    let paths = paths(&shortest, 6);
    proptest!(|(left in deep_glob(), right in deep_glob())| check_overlap(&left, &right, &paths)?);
}

#[test]
fn overlap_of_names_and_depths_is_exact() {
    let paths = paths(&names(3), 2);
    proptest!(|(left in path_glob(1, 1), right in path_glob(1, 1))| check_overlap(&left, &right, &paths)?);
}

proptest! {
    #[test]
    fn matching_agrees_with_the_naive_reading(
        text in prop_oneof![path_glob(3, 3), braced_glob()],
        path in prop::collection::vec("[abz.x]{1,4}", 1..5),
    ) {
        let path = path.join("/");
        if let Ok(glob) = Glob::parse(&text) {
            prop_assert_eq!(glob.matches(&path), Naive::new(&text).matches(&path), "{} on {}", text, path);
        }
    }

    #[test]
    fn a_common_path_means_overlap_and_overlap_is_symmetric(
        left in prop_oneof![path_glob(3, 3), braced_glob()],
        right in prop_oneof![path_glob(3, 3), braced_glob()],
        path in prop::collection::vec("[abz.x]{1,3}", 1..4),
    ) {
        if let (Ok(a), Ok(b)) = (Glob::parse(&left), Glob::parse(&right)) {
            let path = path.join("/");
            prop_assert_eq!(a.overlaps(&b), b.overlaps(&a), "{} and {}", left, right);
            prop_assert!(a.overlaps(&a), "{}", left);
            prop_assert!(a.overlaps(&b) || !(a.matches(&path) && b.matches(&path)), "{} and {} at {}", left, right, path);
        }
    }

    #[test]
    fn the_short_way_of_reading_leads_where_the_long_one_does(
        text in prop_oneof![syntax_soup(), "([ab.,!-]{1,3}|\\*\\*|)(/([ab.,!-]{1,3}|\\*\\*|)){0,4}"],
    ) {
        if let Some(glob) = Glob::parse_plain(&text) {
            prop_assert_eq!(Ok(glob), Glob::parse_any(&text), "{}", text);
        }
    }

    #[test]
    fn any_text_is_parsed_or_refused_in_one_line(text in prop_oneof![any::<String>(), syntax_soup(), "[a-c/*?!{},\\[\\]\\\\.-]{0,30}"]) {
        match Glob::parse(&text) {
            Ok(glob) => {
                let again = Glob::parse(glob.as_str());
                prop_assert_eq!(again.as_ref(), Ok(&glob), "{}", text);
                prop_assert!(glob.overlaps(&glob), "{}", text);
            }
            Err(error) => prop_assert!(!error.to_string().chars().any(char::is_control), "{}", error),
        }
    }
}
