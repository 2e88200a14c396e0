//! Parses one line of a checklist: its box, its title, and the attributes after it.

/// A checklist item.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Item<'a> {
    /// The character in the box.
    pub(super) mark: char,
    /// The text after it, including attributes.
    pub(super) text: &'a str,
}

/// Whether the line, without its indentation, is a checklist item.
pub(super) fn is_item(line: &str) -> bool {
    item(line).is_some()
}

/// Parses `- [ ] text`, with any usual bullet or number.
pub(super) fn item(line: &str) -> Option<Item<'_>> {
    let inside = after_bullet(line)?.trim_start().strip_prefix('[')?;
    let mut characters = inside.chars();
    let mark = characters.next()?;
    let rest = characters.as_str().strip_prefix(']')?;
    // A space follows the box: `[a](link)` is not a box.
    let ends = rest.is_empty() || rest.starts_with([' ', '\t']);
    ends.then(|| Item { mark, text: rest.trim() })
}

/// The text after the bullet or number of a list item.
pub(super) fn after_bullet(line: &str) -> Option<&str> {
    let rest = match line.strip_prefix(['-', '*', '+']) {
        Some(rest) => rest,
        None => {
            let number = line.trim_start_matches(|c: char| c.is_ascii_digit());
            if number.len() == line.len() {
                return None;
            }
            number.strip_prefix(['.', ')'])?
        }
    };
    rest.starts_with([' ', '\t']).then_some(rest)
}

/// The known attributes.
const KNOWN: [&str; 13] = [
    "id",
    "status",
    "priority",
    "position",
    "after",
    "label",
    "labels",
    "file",
    "files",
    "max_attempts",
    "timeout",
    "not_before",
    "finished_by",
];

/// How many parentheses are tried from the right: a title may contain some.
const BRACKETS_TRIED: usize = 8;

/// Splits a text into its title and the attributes after it, if it ends in `(name: value, …)` with
/// known names only. A name may occur more than once.
pub(super) fn attributes(text: &str) -> (&str, Vec<(&'static str, String)>) {
    let Some(body) = text.strip_suffix(')') else { return (text, vec![]) };
    for (start, _) in body.rmatch_indices('(').take(BRACKETS_TRIED) {
        let title = body[..start].trim_end();
        if let Some(found) = pairs(&body[start + 1..]) {
            return (title, found);
        }
    }
    (text, vec![])
}

fn pairs(mut rest: &str) -> Option<Vec<(&'static str, String)>> {
    let mut found = Vec::new();
    loop {
        let (name, after) = rest.split_once(':')?;
        let name = name.trim().replace('-', "_");
        let known = KNOWN.iter().find(|known| **known == name)?;
        let (value, after) = value(after.trim_start())?;
        found.push((*known, value));
        let after = after.trim_start();
        match after.strip_prefix(',') {
            Some(after) => rest = after,
            None => return after.is_empty().then_some(found),
        }
    }
}

/// A value up to the comma, or in quotes.
fn value(text: &str) -> Option<(String, &str)> {
    let Some(quoted) = text.strip_prefix('"') else {
        let end = text.find(',').unwrap_or(text.len());
        let value = text[..end].trim();
        let plain = !value.is_empty() && !value.contains(['"', '(', ')']);
        return plain.then(|| (value.to_owned(), &text[end..]));
    };
    let mut value = String::new();
    let mut characters = quoted.char_indices();
    while let Some((index, character)) = characters.next() {
        match character {
            '"' => return Some((value, &quoted[index + 1..])),
            '\\' => value.push(characters.next()?.1),
            _ => value.push(character),
        }
    }
    None
}

/// Quotes a value so that [`attributes`] reads it.
pub(super) fn quoted(value: &str) -> String {
    let plain =
        !value.is_empty() && value.trim() == value && !value.contains(['"', '(', ')', ',', '\\']);
    match plain {
        true => value.to_owned(),
        false => format!("\"{}\"", value.replace('\\', "\\\\").replace('"', "\\\"")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boxes_are_told_from_other_brackets() {
        for line in ["- [ ] a", "* [x] a", "+ [~] a", "1. [ ] a", "12) [/]\ta", "-  [ ]  a"] {
            assert_eq!(item(line).map(|item| item.text), Some("a"), "{line}");
        }
        for line in ["- a", "- [a](b)", "-[ ] a", "[ ] a", "- [ab] c", "1 [ ] a", "- []", "", "-"] {
            assert_eq!(item(line), None, "{line}");
        }
    }

    #[test]
    fn attributes_stand_at_the_end_and_have_known_names() {
        let (title, found) = attributes("Build (all) (id: t1, priority: 10, after: a, after: b)");
        assert_eq!(title, "Build (all)");
        let expected = [("id", "t1"), ("priority", "10"), ("after", "a"), ("after", "b")];
        assert_eq!(found, expected.map(|(name, value)| (name, value.to_owned())));
        for text in ["Fix it (soon)", "Fix (id: x) now", "a (color: red)", "a (id: )", "(", ")"] {
            assert_eq!(attributes(text), (text, vec![]));
        }
    }

    #[test]
    fn any_value_can_be_written() {
        for value in ["a", "a, b", "x (id: y)", "say \"hi\"", "back\\slash", ")", " a "] {
            let text = format!("t (label: {}, id: z)", quoted(value));
            let (title, found) = attributes(&text);
            assert_eq!(title, "t", "{text}");
            assert_eq!(found[0].1, value, "{text}");
        }
    }
}
