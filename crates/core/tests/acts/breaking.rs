//! What an operator is told whose hold to break is gone.

use crate::support::{World, ask, exclusive, grant_id, in_every_view, shared};
use tenure_core::act::Broken;
use tenure_core::{BreakAsk, Token};

fn break_at(world: &mut World, resource: &str, token: Token) -> Broken {
    let resource = resource.parse().unwrap();
    world.act(&BreakAsk { resource, token, by: "operator".into(), reason: "stuck".into() })
}

#[test]
fn a_hold_that_is_gone_is_answered_with_the_holds_there_now() {
    in_every_view(|world| {
        let first = world.must_grant(&ask(1, &[exclusive("path:src/**")]));
        world.release(1, &["path:src/**"]);
        world.must_grant(&ask(2, &[shared("path:src/**")]));
        world.must_grant(&ask(3, &[shared("path:src/**")]));
        world.must_grant(&ask(4, &[shared("path:src/main.rs")]));
        world.must_grant(&ask(5, &[exclusive("deploy")]));
        let Broken::Gone(holds) = break_at(world, "path:src/**", first.token) else {
            panic!("that hold had ended");
        };
        let grants: Vec<_> = holds.iter().map(|seen| seen.hold.grant).collect();
        assert_eq!(grants, [2, 3].map(|number| grant_id(number).redacted()), "of that resource");
        assert_eq!(world.holders(), [2, 3, 4, 5], "nothing was changed");
    });
}

#[test]
fn a_hold_that_was_broken_is_shown_without_its_secret() {
    in_every_view(|world| {
        let grant = world.must_grant(&ask(1, &[exclusive("deploy")]));
        let Broken::Ended(ended) = break_at(world, "deploy", grant.token) else {
            panic!("it was held");
        };
        assert_eq!(ended.hold.grant, grant_id(1).redacted());
        assert_eq!(world.holders(), [0; 0]);
    });
}
