//! Values in requests. Each is described and checked by the same numbers, so that what the document
//! forbids is refused.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use std::fmt::Display;
use std::time::Duration;
use tenure::core::{GrantId, Mode, Resource, Status, TaskId, WallTime};
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{KnownFormat, ObjectBuilder, Schema, SchemaFormat, Type};
use utoipa::{PartialSchema, ToSchema};

/// Without control characters, and not only white space.
const LINE: &str = r"^[^\u0000-\u001f\u007f-\u009f]*[^\s\u0000-\u001f\u007f-\u009f][^\u0000-\u001f\u007f-\u009f]*$";

/// Not only white space.
const WORDS: &str = r"\S";

fn is_line(text: &str) -> bool {
    !text.trim().is_empty() && !text.chars().any(char::is_control)
}

fn is_words(text: &str) -> bool {
    !text.trim().is_empty()
}

fn is_any(_: &str) -> bool {
    true
}

fn text_schema(min: usize, max: usize, pattern: Option<&str>, about: &str) -> RefOr<Schema> {
    ObjectBuilder::new()
        .schema_type(Type::String)
        .min_length(Some(min))
        .max_length(Some(max))
        .pattern(pattern)
        .description(Some(about))
        .into()
}

/// Text that was checked: how long it may be, in characters, and what it may look like.
macro_rules! text {
    ($name:ident, $about:literal, $min:literal..=$max:literal, $pattern:expr, $fits:path) => {
        #[doc = $about]
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub struct $name(pub String);

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(input: D) -> Result<$name, D::Error> {
                let text = String::deserialize(input)?;
                let length = text.chars().count();
                if !($min..=$max).contains(&length) {
                    let bounds = concat!(stringify!($min), " to ", stringify!($max));
                    let message = format!("this must have {bounds} characters, not {length}");
                    return Err(D::Error::custom(message));
                }
                if !$fits(&text) {
                    let message = "this must be a line without control characters, and not blank";
                    return Err(D::Error::custom(message));
                }
                Ok($name(text))
            }
        }

        impl PartialSchema for $name {
            fn schema() -> RefOr<Schema> {
                text_schema($min, $max, $pattern, $about)
            }
        }

        impl ToSchema for $name {}

        impl From<$name> for String {
            fn from(text: $name) -> String {
                text.0
            }
        }
    };
}

text!(Label, "A name for whoever asks, of at most 256 bytes.", 1..=256, Some(LINE), is_line);
text!(Operation, "What for, for people who look or wait.", 1..=1000, Some(LINE), is_line);
text!(Reason, "Why, in words.", 1..=10000, Some(WORDS), is_words);
text!(Title, "What is to be done, in a line.", 1..=1000, Some(WORDS), is_words);
text!(Description, "What is to be done, in full.", 0..=100000, None, is_any);
text!(SectionName, "Names a section; at most 1024 bytes.", 1..=1024, Some(LINE), is_line);
text!(NoSectionName, "Names a section; empty for none.", 0..=1024, None, is_any);
text!(TaskLabel, "For picking.", 1..=256, Some(LINE), is_line);
text!(Glob, "Matches paths, relative to the repository.", 1..=1024, Some(LINE), is_line);
text!(Key, "Adding a second task with this key adds none.", 1..=1024, Some(LINE), is_line);
text!(Search, "Text to look for, in upper or lower case.", 0..=200, None, is_any);

/// A number within bounds.
macro_rules! number {
    ($name:ident, $about:literal, $type:ty, $min:literal..=$max:literal) => {
        #[doc = $about]
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct $name(pub $type);

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(input: D) -> Result<$name, D::Error> {
                let number = <$type>::deserialize(input)?;
                if !($min..=$max).contains(&number) {
                    let bounds = concat!(stringify!($min), " to ", stringify!($max));
                    let message = format!("this must be a number from {bounds}, not {number}");
                    return Err(D::Error::custom(message));
                }
                Ok($name(number))
            }
        }

        impl PartialSchema for $name {
            fn schema() -> RefOr<Schema> {
                let (min, max): ($type, $type) = ($min, $max);
                ObjectBuilder::new()
                    .schema_type(Type::Integer)
                    .format(Some(SchemaFormat::KnownFormat(KnownFormat::Int64)))
                    .minimum(Some(min as f64))
                    .maximum(Some(max as f64))
                    .description(Some($about))
                    .into()
            }
        }

        impl ToSchema for $name {}
    };
}

number!(LeaseMs, "Length of a lease from each renewal.", u64, 100..=31622400000);
number!(PauseMs, "For how long.", u64, 0..=31622400000);
number!(TimeoutMs, "How long a worker may take.", u64, 1..=31622400000);
number!(WaitMs, "How long to wait for an answer at most.", u64, 0..=60000);
number!(Priority, "Lower goes first.", u64, 0..=100);
number!(
    Position,
    "Among equals of priority, lower goes first.",
    i64,
    -9007199254740991..=9007199254740991
);
number!(Attempts, "How often a task may be tried in all.", u64, 1..=1000000);
number!(Runners, "How many runners at once.", u64, 1..=1000000);
number!(Count, "At most so many.", u64, 1..=1000);
number!(TokenNumber, "A fencing token.", u64, 0..=9007199254740991);
number!(RevisionNumber, "The number of a change.", u64, 0..=9007199254740991);

impl LeaseMs {
    /// As a span of time.
    pub fn span(self) -> Duration {
        Duration::from_millis(self.0)
    }
}

impl Priority {
    /// As the rules know it.
    pub fn byte(self) -> u8 {
        u8::try_from(self.0).expect("a priority was checked when it was read")
    }
}

/// A value that is written as text and has a type of its own.
macro_rules! parsed {
    ($name:ident, $about:literal, $type:ty, $parse:path, $schema:expr) => {
        #[doc = $about]
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub struct $name(pub $type);

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(input: D) -> Result<$name, D::Error> {
                let text = String::deserialize(input)?;
                $parse(&text).map($name).map_err(D::Error::custom)
            }
        }

        impl PartialSchema for $name {
            fn schema() -> RefOr<Schema> {
                let schema: ObjectBuilder = $schema;
                schema.schema_type(Type::String).description(Some($about)).into()
            }
        }

        impl ToSchema for $name {}
    };
}

fn name_schema() -> ObjectBuilder {
    ObjectBuilder::new().min_length(Some(1)).max_length(Some(1031)).pattern(Some(LINE))
}

fn format(name: &str) -> ObjectBuilder {
    ObjectBuilder::new().format(Some(SchemaFormat::Custom(name.to_owned())))
}

parsed!(
    ResourceName,
    "What can be held: NAME, section:NAME, task:ID or path:GLOB; the name has at most 1024 bytes.",
    Resource,
    parse,
    name_schema()
);
parsed!(TaskName, "The id of a task.", TaskId, parse, name_schema().max_length(Some(1024)));
parsed!(Grant, "Proves ownership: keep it to yourself.", GrantId, parse_grant, format("uuid"));
parsed!(
    ModeWord,
    "exclusive, shared, or slot:N for one of N.",
    Mode,
    parse_mode,
    ObjectBuilder::new().pattern(Some("^(exclusive|shared|slot:[1-9][0-9]{0,5})$"))
);
parsed!(Moment, "A time, as in RFC 3339.", WallTime, parse_moment, format("date-time"));
parsed!(
    StatusWord,
    "Where a task stands.",
    Status,
    parse_status,
    ObjectBuilder::new().enum_values(Some(Status::ALL.map(Status::word)))
);

fn parse<T: std::str::FromStr<Err: Display>>(text: &str) -> Result<T, String> {
    text.parse().map_err(|error: T::Err| error.to_string())
}

/// Only the usual form: the others that name the same bits would be refused by most who check.
fn parse_grant(text: &str) -> Result<GrantId, String> {
    let grant: GrantId = parse(text)?;
    match grant.to_string().eq_ignore_ascii_case(text) {
        true => Ok(grant),
        false => Err("a grant looks like 01234567-89ab-cdef-0123-456789abcdef".to_owned()),
    }
}

fn parse_mode(text: &str) -> Result<Mode, String> {
    let slots = |text: &str| -> Option<u32> {
        let is_plain = (1..=6).contains(&text.len()) && !text.starts_with('0');
        text.parse().ok().filter(|_| is_plain && text.bytes().all(|byte| byte.is_ascii_digit()))
    };
    let mode = match text {
        "exclusive" => Some(Mode::Exclusive),
        "shared" => Some(Mode::Shared),
        text => text.strip_prefix("slot:").and_then(slots).map(|of| Mode::Slot { of }),
    };
    mode.ok_or_else(|| "a mode is exclusive, shared, or slot:N with N from 1 to 999999".to_owned())
}

fn parse_moment(text: &str) -> Result<WallTime, String> {
    let time = text.parse::<jiff::Timestamp>();
    let time = time.map_err(|_| "a time is written 2026-01-29T20:30:00Z".to_owned())?;
    Ok(WallTime(time.as_millisecond()))
}

/// The words of other tools are understood in files, not here.
fn parse_status(text: &str) -> Result<Status, String> {
    let status: Status = parse(text)?;
    match status.word() == text {
        true => Ok(status),
        false => Err(format!("the word for this status is {}", status.word())),
    }
}

/// A list with so many items.
pub fn list<'de, D, T, const MIN: usize, const MAX: usize>(input: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    let list = Vec::<T>::deserialize(input)?;
    match (MIN..=MAX).contains(&list.len()) {
        true => Ok(list),
        false => {
            let length = list.len();
            let message = format!("this list must have {MIN} to {MAX} items, not {length}");
            Err(D::Error::custom(message))
        }
    }
}

/// A value that may be left out, but not null: whoever sends null means to remove something.
pub fn given<'de, D, T>(input: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    T::deserialize(input).map(Some)
}
