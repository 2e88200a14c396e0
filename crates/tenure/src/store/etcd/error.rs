//! What a failed call means for its caller.

use crate::store::StoreError;

/// Why a call failed.
#[derive(Clone, Debug)]
pub(super) enum Failure {
    /// The server refused it: nothing was written.
    Refused(StoreError),
    /// The server did not answer. A write may have been made or not.
    NoAnswer(String),
    /// A read at a revision that the server has forgotten by now.
    Compacted,
    /// The lease is not there any more.
    NoLease,
    /// The server has used up its space and takes nothing new.
    NoSpace,
}

/// gRPC status codes that matter here.
const INVALID_ARGUMENT: i32 = 3;
const NOT_FOUND: i32 = 5;
const PERMISSION_DENIED: i32 = 7;
const RESOURCE_EXHAUSTED: i32 = 8;
const FAILED_PRECONDITION: i32 = 9;
const OUT_OF_RANGE: i32 = 11;
const UNIMPLEMENTED: i32 = 12;
const UNAUTHENTICATED: i32 = 16;

impl Failure {
    /// What the error of a call to the store at this address means.
    pub(super) fn of(error: etcd_client::Error, store: &str) -> Failure {
        let store = store.to_owned();
        match error {
            etcd_client::Error::GRpcStatus(status) => {
                let reason = status.message().trim_start_matches("etcdserver: ").to_owned();
                Failure::of_status(status.code() as i32, reason, store)
            }
            // The same error stands for a stream that broke.
            etcd_client::Error::LeaseKeepAliveError(reason) if reason.contains("not found") => {
                Failure::NoLease
            }
            etcd_client::Error::InvalidArgs(reason) | etcd_client::Error::EndpointError(reason) => {
                Failure::unusable(store, reason)
            }
            etcd_client::Error::InvalidUri(error) => Failure::unusable(store, error.to_string()),
            error => Failure::NoAnswer(error.to_string()),
        }
    }

    fn of_status(code: i32, reason: String, store: String) -> Failure {
        let refused = |reason: String, hint: &str| {
            let hint = Some(hint.to_owned());
            Failure::Refused(StoreError::Refused { store: store.clone(), reason, hint })
        };
        match code {
            OUT_OF_RANGE if reason.contains("compacted") => Failure::Compacted,
            NOT_FOUND if reason.contains("lease not found") => Failure::NoLease,
            INVALID_ARGUMENT if reason.contains("authentication failed") => refused(
                "the user name or the password is wrong".to_owned(),
                "Check the user and the password in the URL, and that the user exists in etcd.",
            ),
            INVALID_ARGUMENT if reason.contains("user name is empty") => refused(
                "etcd asks for a user and a password".to_owned(),
                "Write etcd://USER:PASSWORD@HOST:PORT/PREFIX.",
            ),
            FAILED_PRECONDITION if reason.contains("authentication is not enabled") => refused(
                "etcd has no users, and the URL names one".to_owned(),
                "Remove the user from the URL, or enable authentication in etcd.",
            ),
            INVALID_ARGUMENT if reason.contains("request is too large") => too_large(),
            PERMISSION_DENIED => refused(
                "the user may not use these keys".to_owned(),
                "Give the user's role read and write access to all keys below the prefix.",
            ),
            UNAUTHENTICATED => refused(reason, "Check the user and the password in the URL."),
            RESOURCE_EXHAUSTED if reason.contains("space exceeded") => Failure::NoSpace,
            RESOURCE_EXHAUSTED if reason.contains("larger than max") => too_large(),
            INVALID_ARGUMENT | NOT_FOUND | FAILED_PRECONDITION | OUT_OF_RANGE | UNIMPLEMENTED => {
                let what = format!("etcd at {store} does not accept a request: {reason}");
                let instead = "Use etcd 3.4 or newer.".to_owned();
                Failure::Refused(StoreError::Unsupported { what, instead })
            }
            // Too many requests, a leader that changes, a server that ends, a connection that broke.
            _ => Failure::NoAnswer(reason),
        }
    }

    fn unusable(store: String, reason: String) -> Failure {
        let hint = Some("Write etcd://HOST:PORT,HOST:PORT/PREFIX.".to_owned());
        Failure::Refused(StoreError::Unavailable { store, reason, hint })
    }

    /// The error of an operation that wrote nothing.
    pub(super) fn unwritten(self, store: &str) -> StoreError {
        let store = store.to_owned();
        match self {
            Failure::Refused(error) => error,
            Failure::NoAnswer(reason) => StoreError::Unavailable {
                store,
                reason,
                hint: Some("Check that etcd runs at this address and has a leader.".to_owned()),
            },
            Failure::Compacted => StoreError::Unavailable {
                store,
                reason: "etcd compacted its history during the request".to_owned(),
                hint: Some("Try again.".to_owned()),
            },
            Failure::NoSpace => StoreError::Unavailable {
                store,
                reason: "etcd has used up its space and takes no changes".to_owned(),
                hint: Some(
                    "Compact and defragment etcd, then disarm its alarm (see docs/etcd.md)."
                        .to_owned(),
                ),
            },
            Failure::NoLease => StoreError::Unavailable {
                store,
                reason: "a lease ended during the request".to_owned(),
                hint: Some("Try again.".to_owned()),
            },
        }
    }
}

/// A change that is larger than a server takes at once.
pub(super) fn too_large() -> Failure {
    Failure::Refused(StoreError::Unsupported {
        what: "this change is larger than etcd takes at once (1.5 MiB by default)".to_owned(),
        instead: "Import or finish fewer tasks at a time, or raise --max-request-bytes of etcd."
            .to_owned(),
    })
}
