//! A small reader of OpenMetrics text, which refuses what Prometheus would.

use std::collections::{BTreeMap, HashMap, HashSet};

/// Every series with its value; fails where the text is not well formed.
pub(super) fn read(text: &str) -> BTreeMap<String, f64> {
    let body = text.strip_suffix("# EOF\n").expect("the text ends with its mark");
    let mut series = BTreeMap::new();
    let mut families = HashSet::new();
    let (mut family, mut kind) = (String::new(), String::new());
    for line in body.lines() {
        if let Some(meta) = line.strip_prefix("# ") {
            let (word, rest) = meta.split_once(' ').unwrap();
            let (name, value) = rest.split_once(' ').unwrap();
            match word {
                "HELP" => {
                    assert!(families.insert(name.to_owned()), "{name} comes twice");
                    let is_ours = name.starts_with("tenure_") || name.starts_with("process_");
                    assert!(is_ours && value.len() > 10, "{line}");
                    family = name.to_owned();
                }
                "TYPE" => kind = value.to_owned(),
                "UNIT" => assert!(name.ends_with(&format!("_{value}")), "{line}"),
                _ => panic!("{line}"),
            }
            assert_eq!(name, family, "{line}");
            continue;
        }
        let (name, labels, value) = sample(line);
        let suffix = name.strip_prefix(family.as_str()).unwrap_or_else(|| panic!("{line}"));
        let fits = match kind.as_str() {
            "counter" => suffix == "_total",
            "gauge" => suffix.is_empty(),
            "info" => suffix == "_info",
            "histogram" => ["_bucket", "_sum", "_count"].contains(&suffix),
            _ => false,
        };
        assert!(fits, "{line} is no {kind}");
        let key = format!("{name}{}", written(&labels));
        assert!(series.insert(key, value).is_none(), "{line} comes twice");
    }
    check_buckets(body);
    series
}

/// Name, labels in the order of their names, and value.
fn sample(line: &str) -> (String, Vec<(String, String)>, f64) {
    let name_ends = line.find(['{', ' ']).unwrap_or_else(|| panic!("{line}"));
    let (name, rest) = line.split_at(name_ends);
    assert!(name.chars().all(|c| c.is_ascii_lowercase() || c == '_'), "{line}");
    let (labels, rest) = match rest.strip_prefix('{') {
        Some(rest) => labels(rest),
        None => (vec![], rest),
    };
    let value = rest.strip_prefix(' ').unwrap_or_else(|| panic!("{line}"));
    (name.to_owned(), labels, value.parse().unwrap_or_else(|_| panic!("{line}")))
}

/// Labels up to the closing brace, and what comes after it.
fn labels(mut rest: &str) -> (Vec<(String, String)>, &str) {
    let mut labels = Vec::new();
    loop {
        if let Some(after) = rest.strip_prefix('}') {
            labels.sort();
            return (labels, after);
        }
        let (name, quoted) = rest.trim_start_matches(',').split_once("=\"").unwrap();
        let mut value = String::new();
        let mut characters = quoted.char_indices();
        let end = loop {
            match characters.next().expect("the quote is closed") {
                (at, '"') => break at,
                (_, '\\') => match characters.next().unwrap().1 {
                    'n' => value.push('\n'),
                    c @ ('"' | '\\') => value.push(c),
                    c => panic!("\\{c} means nothing"),
                },
                (_, c) => value.push(c),
            }
        };
        labels.push((name.to_owned(), value));
        rest = &quoted[end + 1..];
    }
}

fn written(labels: &[(String, String)]) -> String {
    let labels: Vec<String> =
        labels.iter().map(|(name, value)| format!("{name}={value:?}")).collect();
    if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) }
}

/// Buckets only grow, and the last has all.
fn check_buckets(body: &str) {
    let mut last: HashMap<String, f64> = HashMap::new();
    for line in body.lines().filter(|line| !line.starts_with('#')) {
        let (name, mut labels, value) = sample(line);
        if let Some(histogram) = name.strip_suffix("_bucket") {
            let bound = labels.iter().position(|(name, _)| name == "le").unwrap();
            let bound = labels.remove(bound).1;
            let key = format!("{histogram}{}", written(&labels));
            let before = last.insert(key.clone(), value).unwrap_or(0.0);
            assert!(value >= before, "{line}");
            if bound == "+Inf" {
                last.insert(format!("{key} in all"), value);
            }
        }
    }
    for line in body.lines().filter(|line| !line.starts_with('#')) {
        let (name, labels, value) = sample(line);
        if let Some(histogram) = name.strip_suffix("_count") {
            let key = format!("{histogram}{} in all", written(&labels));
            assert!(last.get(&key).is_none_or(|all| *all == value), "{line}");
        }
    }
}
