//! The etcd store on real servers: it conforms, it does not fall into the known traps of etcd, and it
//! survives what happens to clusters.
//!
//! Each test starts servers of its own, on free ports of the loopback interface, or uses the cluster that
//! `TENURE_TEST_ETCD` names, if the test does no harm to it. Without the program `etcd` the tests fail.

#![cfg(feature = "etcd")]

mod acts;
mod conformance;
mod errors;
mod failures;
mod figures;
mod kit;
mod leases;
mod proxy;
mod samples;
mod traps;
