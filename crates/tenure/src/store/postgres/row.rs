//! A row of an answer. Statements that are sent one by one are answered in PostgreSQL's binary form;
//! those that are sent together, in its text form.

use tokio_postgres::SimpleQueryRow;
use tokio_postgres::types::FromSql;

/// One row, in either form.
#[derive(Debug)]
pub(super) enum Row {
    Binary(tokio_postgres::Row),
    Text(SimpleQueryRow),
}

impl Row {
    /// The value of a column, by its number or its name. The statement and its reader are written
    /// side by side, so a column of another type is a mistake in the program.
    pub(super) fn get<'a, C: Column, T: Cell<'a>>(&'a self, column: C) -> T {
        let column = column.index(self);
        match self {
            Row::Binary(row) => row.get(column),
            Row::Text(row) => match T::from_text(row.get(column)) {
                Some(value) => value,
                None => panic!("column {column} has another type: {:?}", row.get(column)),
            },
        }
    }
}

/// Which column is meant.
pub(super) trait Column {
    fn index(&self, row: &Row) -> usize;
}

impl Column for usize {
    fn index(&self, _: &Row) -> usize {
        *self
    }
}

impl Column for &str {
    fn index(&self, row: &Row) -> usize {
        let found = match row {
            Row::Binary(row) => row.columns().iter().position(|column| column.name() == *self),
            Row::Text(row) => row.columns().iter().position(|column| column.name() == *self),
        };
        found.unwrap_or(usize::MAX)
    }
}

/// A value that can be read in both forms.
pub(super) trait Cell<'a>: FromSql<'a> {
    /// Nothing if the text has another form.
    fn from_text(text: Option<&'a str>) -> Option<Self>;
}

impl<'a> Cell<'a> for &'a str {
    fn from_text(text: Option<&'a str>) -> Option<&'a str> {
        text
    }
}

impl<'a> Cell<'a> for String {
    fn from_text(text: Option<&'a str>) -> Option<String> {
        text.map(str::to_owned)
    }
}

impl<'a> Cell<'a> for i64 {
    fn from_text(text: Option<&'a str>) -> Option<i64> {
        text?.parse().ok()
    }
}

impl<'a> Cell<'a> for i32 {
    fn from_text(text: Option<&'a str>) -> Option<i32> {
        text?.parse().ok()
    }
}

impl<'a> Cell<'a> for bool {
    fn from_text(text: Option<&'a str>) -> Option<bool> {
        match text? {
            "t" => Some(true),
            "f" => Some(false),
            _ => None,
        }
    }
}

impl<'a> Cell<'a> for Vec<String> {
    fn from_text(text: Option<&'a str>) -> Option<Vec<String>> {
        texts(text?)
    }
}

impl<'a, T: Cell<'a>> Cell<'a> for Option<T> {
    fn from_text(text: Option<&'a str>) -> Option<Option<T>> {
        match text {
            Some(_) => T::from_text(text).map(Some),
            None => Some(None),
        }
    }
}

/// An array of texts, none of which is missing, as the server writes it: `{a,"b c"}`.
fn texts(array: &str) -> Option<Vec<String>> {
    let mut rest = array.strip_prefix('{')?.strip_suffix('}')?;
    let mut texts = Vec::new();
    while !rest.is_empty() {
        let mut text = String::new();
        if let Some(quoted) = rest.strip_prefix('"') {
            let mut characters = quoted.char_indices();
            let end = loop {
                match characters.next()? {
                    (end, '"') => break end,
                    (_, '\\') => text.push(characters.next()?.1),
                    (_, other) => text.push(other),
                }
            };
            rest = &quoted[end + 1..];
        } else {
            let (bare, _) = rest.split_once(',').unwrap_or((rest, ""));
            text.push_str(bare);
            rest = &rest[bare.len()..];
        }
        texts.push(text);
        rest = match rest.strip_prefix(',') {
            Some(rest) => rest,
            None if rest.is_empty() => rest,
            None => return None,
        };
    }
    Some(texts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrays_are_read_as_the_server_writes_them() {
        for (array, expected) in [
            ("{}", vec![]),
            ("{a}", vec!["a"]),
            ("{a,b/c:d,xlock:e}", vec!["a", "b/c:d", "xlock:e"]),
            (r#"{"","a b","{},","NULL"}"#, vec!["", "a b", "{},", "NULL"]),
            (r#"{"say \"so\"","C:\\x",é,"b"}"#, vec!["say \"so\"", "C:\\x", "é", "b"]),
        ] {
            assert_eq!(texts(array).unwrap(), expected, "{array}");
        }
        for wrong in ["", "a", "{a", r#"{"a}"#, r#"{"a"b}"#] {
            assert_eq!(texts(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn other_values_are_read_from_text() {
        assert_eq!(i64::from_text(Some("-7")), Some(-7));
        assert_eq!(bool::from_text(Some("t")), Some(true));
        assert_eq!(bool::from_text(Some("true")), None);
        assert_eq!(<Option<i64>>::from_text(None), Some(None));
        assert_eq!(<Option<i64>>::from_text(Some("x")), None);
        assert_eq!(String::from_text(None), None);
    }
}
