//! What proves ownership: a grant, a chosen label, a token; and what does not.

use crate::{Stores, events, held, is_busy, lease, on_every_store, resource};
use std::time::Duration;
use tenure::Broken;
use tenure::core::{EventKind, GrantId, Proof, Released, Token, VerifyAnswer};
use tenure::store::Renewed;

on_every_store!(
    a_grant_releases_from_anywhere,
    a_chosen_label_releases_and_an_unchosen_one_never,
    releasing_names_what_it_ends,
    what_the_proof_covers_is_renewed,
    a_token_is_valid_only_while_it_holds,
    breaking_ends_the_exact_hold_and_no_successor,
);

async fn a_grant_releases_from_anywhere(stores: &Stores) {
    let (one, other) = (stores.anonymous(), stores.anonymous());
    let lease = lease(one.request("a").also("b").detached()).await;
    let wrong = other.release(Proof::Grant(GrantId::random()), None).await.unwrap();
    assert_eq!(wrong, Released::NotHeld(vec![]));
    let Released::Ended(ended) = other.release(Proof::Grant(lease.grant), None).await.unwrap()
    else {
        panic!("the grant proves it")
    };
    assert_eq!(ended.len(), 2);
    let again = other.release(Proof::Grant(lease.grant), None).await.unwrap();
    assert_eq!(again, Released::NotHeld(vec![]));
}

async fn a_chosen_label_releases_and_an_unchosen_one_never(stores: &Stores) {
    let (alice, nameless) = (stores.client("alice"), stores.anonymous());
    let other = stores.client("other");
    lease(alice.request("a").detached()).await;
    lease(nameless.request("b").detached()).await;

    let label = |label: &str| Proof::Label(label.to_owned());
    let a = [resource("a")];
    let stranger = other.release(label("other"), Some(&a)).await.unwrap();
    let Released::NotHeld(holders) = stranger else { panic!("{stranger:?}") };
    assert_eq!(holders[0].hold.holder.label, "alice");
    // A label that nobody chose can be read by everybody, and proves nothing.
    let known = nameless.holder().label.clone();
    let guessed = other.release(label(&known), None).await.unwrap();
    assert_eq!(guessed, Released::NotHeld(vec![]));
    assert!(is_busy(&other, "b").await);

    // The same label from another process, such as the next command of one terminal.
    let Released::Ended(ended) =
        stores.client("alice").release(label("alice"), None).await.unwrap()
    else {
        panic!("the label was chosen")
    };
    assert_eq!(ended.len(), 1);
    assert!(!is_busy(&other, "a").await);
}

async fn releasing_names_what_it_ends(stores: &Stores) {
    let one = stores.anonymous();
    let lease = lease(one.request("a").also("b").detached()).await;
    // Named twice, ended once.
    let some = [resource("a"), resource("a")];
    let Released::Ended(ended) = one.release(Proof::Grant(lease.grant), Some(&some)).await.unwrap()
    else {
        panic!("the grant proves it")
    };
    assert_eq!(ended.len(), 1);
    let released = events(&one).await.iter().filter(|kind| **kind == EventKind::Released).count();
    assert_eq!(released, 1);
    let other = stores.anonymous();
    assert!(is_busy(&other, "b").await && !is_busy(&other, "a").await);
}

async fn what_the_proof_covers_is_renewed(stores: &Stores) {
    let (alice, other) = (stores.client("alice"), stores.anonymous());
    let lease = lease(alice.request("a").also("b").ttl(Duration::from_secs(60)).detached()).await;
    let longer = Some(Duration::from_secs(900));
    let grant = Proof::Grant(lease.grant);
    let renewed = other.renew(&grant, Some(&[resource("b")]), longer).await.unwrap();
    assert_eq!(renewed.iter().map(|(_, answer)| *answer).collect::<Vec<_>>(), [Renewed::Renewed]);
    let left = |name: &'static str| {
        let other = other.clone();
        async move { other.look(&[resource(name)]).await.unwrap().holds[0].left }
    };
    assert!(left("a").await <= Duration::from_secs(60), "only b was named");
    assert!(left("b").await > Duration::from_secs(60));
    let by_label = other.renew(&Proof::Label("alice".into()), None, longer).await.unwrap();
    assert_eq!(by_label.len(), 2);
    assert!(left("a").await > Duration::from_secs(60));
    assert!(other.renew(&Proof::Label("bob".into()), None, longer).await.unwrap().is_empty());
}

async fn a_token_is_valid_only_while_it_holds(stores: &Stores) {
    let (one, other) = (stores.anonymous(), stores.anonymous());
    let verify = |token: Token| {
        let other = other.clone();
        async move { other.verify("a", token).await.unwrap() }
    };
    let refused = |current| VerifyAnswer::Refused { current };
    assert_eq!(verify(Token(1)).await, refused(None));
    let guard = one.acquire("a").await.unwrap();
    let token = guard.token();
    assert_eq!(verify(token).await, VerifyAnswer::Valid);
    assert_eq!(verify(Token(token.0 + 1)).await, refused(Some(token)));
    guard.release().await.unwrap();
    assert_eq!(verify(token).await, refused(None));
    let successor = held(other.try_acquire("a").await.unwrap());
    assert!(successor.token() > token);
    assert_eq!(verify(token).await, refused(Some(successor.token())));
    assert_eq!(verify(successor.token()).await, VerifyAnswer::Valid);
}

async fn breaking_ends_the_exact_hold_and_no_successor(stores: &Stores) {
    let (one, operator) = (stores.client("one"), stores.client("operator"));
    let lease = lease(one.request("a").detached()).await;
    let Broken::Ended(ended) = operator.break_hold("a", lease.token, "stuck").await.unwrap() else {
        panic!("it was there")
    };
    assert_eq!((ended.hold.token, ended.hold.holder.label.as_str()), (lease.token, "one"));

    let successor = held(one.try_acquire("a").await.unwrap());
    // A second operator decided on what the first had already ended.
    let Broken::Gone(now) = operator.break_hold("a", lease.token, "stuck").await.unwrap() else {
        panic!("it broke the successor")
    };
    assert_eq!(now[0].hold.token, successor.token());
    assert!(is_busy(&operator, "a").await);
    let broken = events(&one).await.into_iter().filter(|kind| kind.word() == "broken");
    let expected = EventKind::Broken { by: "operator".into(), reason: "stuck".into() };
    assert_eq!(broken.collect::<Vec<_>>(), [expected]);
}
