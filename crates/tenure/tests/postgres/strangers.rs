//! Other roles of the same database: what they define is not found where tenure names something of
//! PostgreSQL's own.

use super::pooler::Pooler;
use super::{open, shared_port};
use std::sync::atomic::{AtomicU32, Ordering};
use tenure::core::rules::tasks::NewTask;
use tenure::store::Maintenance;
use tenure::{ClaimRequest, Client, Finish, Wait};
use tenure_testkit::postgres::{psql, shared_url};

/// Functions that fit better than PostgreSQL's own, and note that they ran.
const HOSTILE: &str = "
CREATE TABLE public.ran (what text);
CREATE FUNCTION public.unnest(text[]) RETURNS SETOF text LANGUAGE plpgsql AS
    $$ BEGIN INSERT INTO public.ran VALUES ('unnest'); RETURN; END $$;
CREATE FUNCTION public.count(bigint) RETURNS bigint LANGUAGE plpgsql AS
    $$ BEGIN INSERT INTO public.ran VALUES ('count'); RETURN 0; END $$;
CREATE FUNCTION public.to_regclass(text) RETURNS regclass LANGUAGE plpgsql AS
    $$ BEGIN INSERT INTO public.ran VALUES ('to_regclass'); RETURN NULL; END $$;
CREATE FUNCTION public.pg_notify(text, text) RETURNS void LANGUAGE plpgsql AS
    $$ BEGIN INSERT INTO public.ran VALUES ('pg_notify'); END $$;
CREATE FUNCTION public.substr(text, int, int) RETURNS text LANGUAGE plpgsql AS
    $$ BEGIN INSERT INTO public.ran VALUES ('substr'); RETURN ''; END $$;
CREATE FUNCTION public.differs(text, text) RETURNS boolean LANGUAGE plpgsql AS
    $$ BEGIN INSERT INTO public.ran VALUES ('operator'); RETURN false; END $$;
CREATE OPERATOR public.= (LEFTARG = text, RIGHTARG = text, FUNCTION = public.differs);
";

/// A database with a stranger's functions, in which names are looked up there first; its name and its URL.
fn hostile_database() -> (String, String) {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    let name = format!("hostile_{}_{number}", std::process::id());
    psql(&shared_url(), &format!("CREATE DATABASE {name}")).unwrap();
    let server = shared_url();
    let (server, _) = server.rsplit_once('/').expect("a URL names a database");
    let url = format!("{server}/{name}");
    psql(&url, HOSTILE).unwrap();
    psql(&url, &format!("ALTER DATABASE {name} SET search_path = public, pg_catalog")).unwrap();
    (name, url)
}

/// What ran of the stranger's functions; the database is removed.
fn ran(name: &str, url: &str) -> String {
    let ran = psql(url, "SET search_path = pg_catalog; SELECT DISTINCT what FROM public.ran");
    psql(&shared_url(), &format!("DROP DATABASE {name} WITH (FORCE)")).unwrap();
    ran.unwrap()
}

async fn use_everything(url: &str) {
    let client = Client::open(url).await.unwrap();
    let held = client.request("path:src/**").also("deploy").hold().await.unwrap();
    let held = held.into_result().unwrap();
    let other = Client::open(url).await.unwrap();
    let refused = other.request("path:src/a.rs").wait(Wait::No).hold().await.unwrap();
    assert!(refused.into_result().is_err(), "no lock was taken");
    assert!(held.confirm().await.unwrap());
    client.look_everywhere().await.unwrap();
    let task = |number: u32| NewTask::new(format!("t{number}").parse().unwrap(), "T");
    client.tasks().add((0..5).map(task).collect()).await.unwrap();
    for _ in 0..5 {
        let claim = client.tasks().request(ClaimRequest::default());
        for work in claim.take_work().await.unwrap().expect("a task is ready") {
            work.finish(Finish::completed()).await.unwrap();
        }
    }
    held.release().await.unwrap();
    let store = open(url);
    for work in [Maintenance::Check, Maintenance::Tidy] {
        store.maintain(work).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn functions_of_a_stranger_do_not_run_as_tenure() {
    let (name, url) = hostile_database();
    use_everything(&url).await;
    assert_eq!(ran(&name, &url), "");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn functions_of_a_stranger_do_not_run_as_tenure_behind_a_pooler() {
    let (name, url) = hostile_database();
    let pooler = Pooler::start(&name, shared_port(), "");
    use_everything(&pooler.url()).await;
    drop(pooler);
    assert_eq!(ran(&name, &url), "");
}

/// The trap itself: with usual settings, the stranger's function is found.
#[test]
fn a_stranger_can_define_what_fits_better() {
    let (name, url) = hostile_database();
    psql(&url, "SELECT * FROM unnest(ARRAY['a']::text[])").unwrap();
    assert_eq!(ran(&name, &url), "unnest");
}
