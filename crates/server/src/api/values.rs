//! Values in requests. Each is described and checked by the same numbers, so that what the document
//! forbids is refused.

use serde::de::value::MapAccessDeserializer;
use serde::de::{Error as _, MapAccess, Unexpected, Visitor};
use serde::{Deserialize, Deserializer};
use std::fmt::{Display, Formatter};
use std::marker::PhantomData;
use std::time::Duration;
use tenure::core::resource::NAME_MAX_BYTES;
use tenure::core::{EventKind, GrantId, Mode, Resource, Status, TaskId, WallTime};
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{KnownFormat, ObjectBuilder, Schema, SchemaFormat, Type};
use utoipa::{PartialSchema, ToSchema};

/// Without control characters, and not only white space.
const LINE: &str = r"^[^\u0000-\u001f\u007f-\u009f]*[^\s\u0000-\u001f\u007f-\u009f][^\u0000-\u001f\u007f-\u009f]*$";

/// Without control characters, and without white space at its ends.
const NAME: &str = r"^[^\s\u0000-\u001f\u007f-\u009f]([^\u0000-\u001f\u007f-\u009f]*[^\s\u0000-\u001f\u007f-\u009f])?$";

/// The same, or nothing.
const NAME_OR_NONE: &str = r"^([^\s\u0000-\u001f\u007f-\u009f]([^\u0000-\u001f\u007f-\u009f]*[^\s\u0000-\u001f\u007f-\u009f])?)?$";

/// Not only white space.
const WORDS: &str = r"\S";

type Fits = Result<(), &'static str>;

fn line(text: &str) -> Fits {
    match text.trim().is_empty() || text.chars().any(char::is_control) {
        true => Err("this must be a non-empty line without control characters"),
        false => Ok(()),
    }
}

fn name(text: &str) -> Fits {
    line(text)?;
    match text.trim() == text {
        true => Ok(()),
        false => Err("this must not begin or end with white space"),
    }
}

fn name_or_none(text: &str) -> Fits {
    if text.is_empty() { Ok(()) } else { name(text) }
}

fn words(text: &str) -> Fits {
    match text.trim().is_empty() {
        true => Err("this must not be empty"),
        false => Ok(()),
    }
}

fn anything(_: &str) -> Fits {
    Ok(())
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
                $fits(&text).map_err(D::Error::custom)?;
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

text!(Label, "The label of the caller, at most 256 bytes.", 1..=256, Some(LINE), line);
text!(Operation, "What it is held for, shown to others.", 1..=1000, Some(LINE), line);
text!(Reason, "The reason.", 1..=10000, Some(WORDS), words);
text!(NoteText, "The note, at most 8192 bytes.", 1..=8192, Some(WORDS), words);
text!(Title, "The title, in one line.", 1..=1000, Some(WORDS), words);
text!(Description, "The full description.", 0..=100000, None, anything);
text!(SectionName, "The name of a section; at most 1024 bytes.", 1..=1024, Some(NAME), name);
text!(
    NoSectionName,
    "The name of a section; empty for none.",
    0..=1024,
    Some(NAME_OR_NONE),
    name_or_none
);
text!(TaskLabel, "A label for selecting tasks.", 1..=256, Some(LINE), line);
text!(Glob, "A glob of paths, relative to the repository.", 1..=1024, Some(NAME), name);
text!(
    Key,
    "Idempotency key: a second task with this key is not added.",
    1..=1024,
    Some(LINE),
    line
);
text!(TokenName, "The name of a token of the server.", 1..=64, Some(LINE), line);
text!(Search, "Text to search for; case is ignored.", 0..=200, None, anything);

/// Reads a whole number, also one that is written with a point, as some languages do.
struct Whole;

impl Visitor<'_> for Whole {
    type Value = i64;

    fn expecting(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        f.write_str("a whole number")
    }

    fn visit_i64<E: serde::de::Error>(self, number: i64) -> Result<i64, E> {
        Ok(number)
    }

    fn visit_u64<E: serde::de::Error>(self, number: u64) -> Result<i64, E> {
        i64::try_from(number).map_err(|_| E::invalid_value(Unexpected::Unsigned(number), &self))
    }

    fn visit_f64<E: serde::de::Error>(self, number: f64) -> Result<i64, E> {
        // Up to here each whole number has a floating point of its own.
        const EXACT: f64 = 9_007_199_254_740_992.0;
        match number.fract() == 0.0 && number.abs() < EXACT {
            true => Ok(number as i64),
            false => Err(E::invalid_value(Unexpected::Float(number), &self)),
        }
    }
}

/// A number within bounds.
macro_rules! number {
    ($name:ident, $about:literal, $type:ty, $min:literal..=$max:literal) => {
        #[doc = $about]
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct $name(pub $type);

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(input: D) -> Result<$name, D::Error> {
                let number = input.deserialize_i64(Whole)?;
                let fits = <$type>::try_from(number).ok();
                let fits = fits.filter(|number| ($min..=$max).contains(number));
                fits.map($name).ok_or_else(|| {
                    let bounds = concat!(stringify!($min), " to ", stringify!($max));
                    D::Error::custom(format!("this must be a number from {bounds}, not {number}"))
                })
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
number!(TimeoutMs, "The time limit for a worker.", u64, 1..=31622400000);
number!(WaitMs, "How long to wait at most.", u64, 0..=60000);
number!(Priority, "Lower goes first.", u64, 0..=100);
number!(
    Position,
    "Order among equal priorities: lower goes first.",
    i64,
    -9007199254740991..=9007199254740991
);
number!(Attempts, "The largest number of attempts.", u64, 1..=1000000);
number!(Runners, "How many runners at once.", u64, 1..=1000000);
number!(Count, "At most this many.", u64, 1..=1000);
number!(LastEvents, "The newest so many.", u64, 1..=10000);
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
    ObjectBuilder::new().min_length(Some(1)).max_length(Some(NAME_MAX_BYTES)).pattern(Some(NAME))
}

fn format(name: &str) -> ObjectBuilder {
    ObjectBuilder::new().format(Some(SchemaFormat::Custom(name.to_owned())))
}

parsed!(
    ResourceName,
    "What can be held: NAME, section:NAME, task:ID (or the beginning of an id, or a title) or path:GLOB, relative to the repository root; at most 1024 bytes. A NAME that looks like a path needs its kind, lock:NAME.",
    String,
    parse_resource,
    name_schema()
);
parsed!(TaskName, "The id of a task.", TaskId, parse, name_schema());
parsed!(Grant, "Proves ownership: keep it secret.", GrantId, parse_grant, format("uuid"));
parsed!(
    ModeWord,
    "exclusive, shared, or slot:N for one of N.",
    Mode,
    parse_mode,
    ObjectBuilder::new().pattern(Some("^(exclusive|shared|slot:[1-9][0-9]{0,5})$"))
);
parsed!(Moment, "A time, as in RFC 3339.", WallTime, parse_moment, format("date-time"));
parsed!(
    EventKinds,
    "Kinds of events, with commas between them, such as completed,failed.",
    Vec<String>,
    parse_kinds,
    ObjectBuilder::new().pattern(Some("^[a-z_]+(,[a-z_]+)*$"))
);
parsed!(
    StatusWord,
    "The status of a task.",
    Status,
    parse_status,
    ObjectBuilder::new().enum_values(Some(Status::ALL.map(Status::word)))
);

fn parse<T: std::str::FromStr<Err: Display>>(text: &str) -> Result<T, String> {
    text.parse().map_err(|error: T::Err| error.to_string())
}

/// The kind before the colon counts too: so that it can be told how long a name may be.
fn parse_resource(text: &str) -> Result<String, String> {
    match text.len() <= NAME_MAX_BYTES {
        true => parse::<Resource>(text).map(|_| text.to_owned()),
        false => Err(format!("this may have at most {NAME_MAX_BYTES} bytes")),
    }
}

/// Only the usual form: the others that name the same bits would be refused by most who check.
fn parse_grant(text: &str) -> Result<GrantId, String> {
    let grant: GrantId = parse(text)?;
    match grant.to_string().eq_ignore_ascii_case(text) {
        true => Ok(grant),
        false => Err("a grant looks like 01234567-89ab-cdef-0123-456789abcdef".to_owned()),
    }
}

/// Only the usual form, whose numbers have at most six digits and no sign.
fn parse_mode(text: &str) -> Result<Mode, String> {
    let mode: Option<Mode> = text.parse().ok();
    let is_plain = |mode: &Mode| match mode {
        Mode::Slot { of } => (1..=SLOTS_MAX).contains(of) && mode.to_string() == text,
        Mode::Exclusive | Mode::Shared => true,
    };
    mode.filter(is_plain).ok_or_else(|| {
        format!("a mode is exclusive, shared, or slot:N with N from 1 to {SLOTS_MAX}")
    })
}

/// The most slots that a request can name.
const SLOTS_MAX: u32 = 999_999;

fn parse_moment(text: &str) -> Result<WallTime, String> {
    let time = text.parse::<jiff::Timestamp>();
    let time = time.map_err(|_| "a time looks like 2026-01-29T20:30:00Z".to_owned())?;
    Ok(WallTime(time.as_millisecond()))
}

fn parse_kinds(text: &str) -> Result<Vec<String>, String> {
    let unknown = text.split(',').find(|word| !EventKind::WORDS.contains(word));
    match unknown {
        None => Ok(text.split(',').map(str::to_owned).collect()),
        Some(_) => Err(format!("kinds of events are {}", EventKind::WORDS.join(", "))),
    }
}

/// The words of other tools are understood in files, not here.
fn parse_status(text: &str) -> Result<Status, String> {
    let status: Status = parse(text)?;
    match status.word() == text {
        true => Ok(status),
        false => Err(format!("the word for this status is {}", status.word())),
    }
}

/// An object: what serde makes of types would also take a list of their fields.
#[derive(Clone, Debug)]
pub struct Object<T>(pub T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Object<T>, D::Error> {
        struct Fields<T>(PhantomData<T>);

        impl<'de, T: Deserialize<'de>> Visitor<'de> for Fields<T> {
            type Value = T;

            fn expecting(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, fields: A) -> Result<T, A::Error> {
                T::deserialize(MapAccessDeserializer::new(fields))
            }
        }

        input.deserialize_map(Fields(PhantomData)).map(Object)
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

/// The same for a list that may be left out, but not null.
pub fn given_list<'de, D, T, const MIN: usize, const MAX: usize>(
    input: D,
) -> Result<Option<Vec<T>>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    list::<D, T, MIN, MAX>(input).map(Some)
}

/// A value that may be left out, but not null: a caller that sends null means to remove something.
pub fn given<'de, D, T>(input: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    T::deserialize(input).map(Some)
}
