//! How a record is declared: its fields as they are on disk, and which field of core each one is.

/// Converts between a value of core and its form on disk.
pub(crate) trait Form<Core> {
    fn of(core: &Core) -> Self;
    fn into_core(self) -> Core;
}

/// Declares types that are their own form: one text or one number each.
macro_rules! plain {
    ($($type:ty),* $(,)?) => {$(
        impl Form<$type> for $type {
            fn of(core: &$type) -> $type {
                core.clone()
            }

            fn into_core(self) -> $type {
                self
            }
        }
    )*};
}
plain!(bool, u8, u32, u64, i64, String);
plain!(tenure_core::GrantId, tenure_core::Token, tenure_core::WallTime);
plain!(tenure_core::TaskId, tenure_core::Resource, tenure_core::Mode);

impl<Core, Record: Form<Core>> Form<Option<Core>> for Option<Record> {
    fn of(core: &Option<Core>) -> Option<Record> {
        core.as_ref().map(Record::of)
    }

    fn into_core(self) -> Option<Core> {
        self.map(Record::into_core)
    }
}

impl<Core, Record: Form<Core>> Form<Box<Core>> for Box<Record> {
    fn of(core: &Box<Core>) -> Box<Record> {
        Box::new(Record::of(core))
    }

    fn into_core(self) -> Box<Core> {
        Box::new((*self).into_core())
    }
}

impl<Core, Record: Form<Core>> Form<Vec<Core>> for Vec<Record> {
    fn of(core: &Vec<Core>) -> Vec<Record> {
        core.iter().map(Record::of).collect()
    }

    fn into_core(self) -> Vec<Core> {
        self.into_iter().map(Record::into_core).collect()
    }
}

/// Declares a record: `name_on_disk: Type = field_of_core`. A field that core loses or renames stops this
/// from compiling; the name on disk stays as it is.
///
/// A field that core gains stops it from compiling too, if other crates can write the type field by
/// field. One that they cannot (`#[non_exhaustive]`) is made by its constructor, of which the arguments
/// are named here as they are on disk. Then the suite of stores notices a field that is missing here: a
/// task that has all of them (`tenure_core::sample`) must come back as it was.
macro_rules! record {
    ($(#[$about:meta])* $name:ident = $core:ident {
        $($(#[$how:meta])* $field:ident: $type:ty = $of:ident),* $(,)?
    }) => {
        record!(@fields $(#[$about])* $name { $($(#[$how])* $field: $type),* });

        impl Form<$core> for $name {
            fn of(core: &$core) -> $name {
                let $core { $($of),* } = core;
                $name { $($field: <$type>::of($of)),* }
            }

            fn into_core(self) -> $core {
                $core { $($of: self.$field.into_core()),* }
            }
        }
    };
    ($(#[$about:meta])* $name:ident = $core:ident::$new:ident($($first:ident),*) {
        $($(#[$how:meta])* $field:ident: $type:ty = $of:ident),* $(,)?
    }) => {
        record!(@fields $(#[$about])* $name { $($(#[$how])* $field: $type),* });

        impl Form<$core> for $name {
            fn of(core: &$core) -> $name {
                $name { $($field: <$type>::of(&core.$of)),* }
            }

            fn into_core(self) -> $core {
                let mut core = $core::$new($(self.$first.clone().into_core()),*);
                $(core.$of = self.$field.into_core();)*
                core
            }
        }
    };
    (@fields $(#[$about:meta])* $name:ident { $($(#[$how:meta])* $field:ident: $type:ty),* }) => {
        #[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
        $(#[$about])*
        pub(crate) struct $name {
            $($(#[$how])* $field: $type,)*
        }
    };
}

/// Declares a record that is one of several: `"word_on_disk" Variant { field: Type }`. Every variant
/// of core must be named.
macro_rules! tagged_record {
    ($(#[$about:meta])* $name:ident = $core:ident {
        $($word:literal $variant:ident {
            $($(#[$how:meta])* $field:ident: $type:ty),* $(,)?
        })*
    }) => {
        #[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
        $(#[$about])*
        pub(crate) enum $name {
            $(#[serde(rename = $word)] $variant { $($(#[$how])* $field: $type),* },)*
        }

        impl Form<$core> for $name {
            fn of(core: &$core) -> $name {
                match core {
                    $($core::$variant { $($field),* } => {
                        $name::$variant { $($field: <$type>::of($field)),* }
                    })*
                    // Core may gain variants without this crate: each needs a word on disk here.
                    #[allow(unreachable_patterns)]
                    other => unreachable!("{other:?} has no form on disk"),
                }
            }

            fn into_core(self) -> $core {
                match self {
                    $($name::$variant { $($field),* } => {
                        $core::$variant { $($field: $field.into_core()),* }
                    })*
                }
            }
        }
    };
}

/// Declares a record that is one word: `"word_on_disk" Variant`.
macro_rules! word_record {
    ($(#[$about:meta])* $name:ident = $core:ident { $($word:literal $variant:ident),* $(,)? }) => {
        #[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
        $(#[$about])*
        pub(crate) enum $name {
            $(#[serde(rename = $word)] $variant,)*
        }

        impl Form<$core> for $name {
            fn of(core: &$core) -> $name {
                match core {
                    $($core::$variant => $name::$variant,)*
                }
            }

            fn into_core(self) -> $core {
                match self {
                    $($name::$variant => $core::$variant,)*
                }
            }
        }
    };
}

pub(super) use {record, tagged_record, word_record};
