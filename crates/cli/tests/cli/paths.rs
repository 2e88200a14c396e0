//! Paths on the command line: relative to the current folder, shown as they can be typed there, and
//! names that look like paths.

use crate::snapshot_support::Sandbox;
use insta::assert_snapshot;

/// A repository with sources, a link to them, and a linked worktree beside it.
fn repository() -> Sandbox {
    let sandbox = Sandbox::repository();
    sandbox.quietly("mkdir -p src/auth docs && ln -s src sources && touch src/main.rs");
    sandbox.quietly(
        "git -c user.name=t -c user.email=t@example.com commit --quiet --allow-empty -m first \
         && git worktree add --quiet ../side && mkdir ../side/src",
    );
    sandbox
}

#[test]
fn a_path_is_relative_to_the_current_folder() {
    let sandbox = repository();
    assert_snapshot!(sandbox.see_all(&[
        "cd src && tenure acquire path:main.rs --as alice --json | grep -o 'path:[^\"]*'",
        "tenure locks",
        "cd src && tenure locks",
        "cd docs && tenure locks",
        "cd src && tenure why path:main.rs",
        "cd src && tenure why Path:./auth/../main.rs",
        "cd src/auth && tenure status path:../main.rs",
        "tenure -C src status path:main.rs",
        "cd src && tenure wait -n \"path:$PWD/main.rs\"",
        "cd docs && tenure run -n 'path:../src/**' -- true",
        "cd src && tenure why path:main.rs --json | grep -o '\"resource\":\"[^\"]*\"' | sort -u",
        "cd docs && tenure why path:main.rs",
        "cd src && tenure renew path:main.rs --as alice",
        "cd src && tenure verify path:main.rs --token 99",
        "cd src && tenure release path:main.rs --as alice",
        "cd src && tenure events path:main.rs | cut -d' ' -f2-",
        "cd src && tenure break path:main.rs --force --reason 'not there'",
    ]));
}

#[test]
fn in_a_linked_worktree_and_through_a_linked_folder() {
    let sandbox = repository();
    assert_snapshot!(sandbox.see_all(&[
        "cd ../side/src && tenure acquire path:main.rs --as alice --json | grep -o 'path:[^\"]*'",
        "tenure locks",
        "cd sources && tenure why path:main.rs",
        "tenure why path:sources/main.rs",
        "cd ../side/src && tenure why path:main.rs",
        "cd ../side/src && tenure acquire -n path:own.rs --per-worktree --as bob --json \
         | grep -o 'path:[^\"]*'",
        "cd ../side/src && tenure locks list --type path | grep own",
    ]));
}

/// What blocks is named so that it can be typed where it was said.
#[test]
fn a_refusal_names_the_path_as_it_can_be_typed() {
    let sandbox = repository();
    sandbox.acquire("'path:src/auth/**' --as alice");
    sandbox.acquire("path:docs/index.md --as bob");
    assert_snapshot!(sandbox.see_all(&[
        "cd src && tenure run -n path:auth/login.rs -- true",
        "cd src && tenure why 'path:auth/**'",
        "cd src && tenure acquire -n 'path:../docs/*' --as carol",
        "cd src && tenure release --as carol path:../docs/index.md",
        "cd src && tenure locks show 'path:auth/**'",
        "cd src && tenure top --once | head -7",
    ]));
}

#[test]
fn commands_get_what_is_held_as_they_can_pass_it_on() {
    let sandbox = repository();
    assert_snapshot!(sandbox.see_all(&[
        "cd src && tenure run path:main.rs deploy -- printenv TENURE_RESOURCE",
        "cd src && tenure run --json path:main.rs -- sh -c \
         'tenure verify \"$TENURE_RESOURCE\" --token \"$TENURE_TOKEN\"'",
    ]));
}

#[test]
fn a_path_outside_the_root_is_refused() {
    let sandbox = repository();
    assert_snapshot!(sandbox.see_all(&[
        "cd src && tenure acquire path:../../x --as alice",
        "tenure acquire path:/etc/passwd --as alice",
        "tenure acquire path:~/x --as alice",
        "cd src && tenure acquire path:C:/x --as alice",
        "tenure tasks add Fix --file ../x",
    ]));
}

#[test]
fn the_files_of_a_task_are_relative_to_the_current_folder_and_kept_relative_to_the_root() {
    let sandbox = repository();
    assert_snapshot!(sandbox.see_all(&[
        "cd src && tenure tasks add Fix --id fix --file 'auth/**' --file path:main.rs --json \
         | grep -o '\"files\":[^]]*]'",
        "tenure tasks show fix | grep files",
        "cd src && tenure tasks show fix | grep files",
        "cd docs && tenure tasks update fix --file ../src/auth/ --json | grep -o '\"files\":[^]]*]'",
        "tenure acquire path:src/auth/a.rs --as alice -q > grant",
        "cd src && tenure tasks claim fix -n --as bob",
        "cd src && tenure tasks show fix | grep waits",
        "cd src && tenure why fix | grep held",
    ]));
}

#[test]
fn a_name_that_looks_like_a_path_is_refused() {
    let sandbox = repository();
    assert_snapshot!(sandbox.see_all(&[
        "tenure acquire src/auth/login.rs --as alice",
        "tenure run login.rs -- true",
        "tenure acquire 'src/**' --as alice",
        "tenure acquire ./x --as alice",
        "tenure acquire '~/x' --as alice",
        "tenure acquire 'src\\main' --as alice",
        "tenure acquire 'C:\\src' --as alice",
        "tenure acquire src/login --as alice",
        "cd src && tenure acquire auth/login --as alice",
        "tenure why src/main.rs --json",
        "tenure wait src/main.rs",
        "tenure locks show src/main.rs",
        "tenure events src/main.rs",
        "tenure acquire deploy/prod v1.2 node-20.11 db.example.com deploy.lock --as alice --json \
         | grep -o '\"resources\":[^]]*]'",
    ]));
}

/// Such a name could be taken by earlier versions, and can be with its kind.
#[test]
fn what_is_held_under_such_a_name_can_be_seen_and_released() {
    let sandbox = repository();
    sandbox.acquire("lock:src/main.rs lock:n.json lock:src/login --as alice");
    assert_snapshot!(sandbox.see_all(&[
        "tenure locks",
        "tenure why src/main.rs",
        "tenure status n.json",
        "tenure locks show src/login",
        "tenure renew n.json --as alice",
        "tenure release src/main.rs --as alice",
        "tenure break n.json --force --reason test",
        "tenure locks release src/login --as alice",
        "tenure events n.json --last 1 | cut -d' ' -f2-",
        "tenure release src/main.rs --as alice",
    ]));
}

#[test]
fn a_task_whose_title_looks_like_a_path_is_found() {
    let sandbox = repository();
    sandbox.quietly("tenure tasks add 'Tidy main.rs' --id tidy");
    assert_snapshot!(sandbox.see("tenure why 'Tidy main.rs'"));
}
