//! Two agents, each with hooks, a shell and an MCP server, change the same files in two worktrees of
//! one repository: no file is ever theirs both, and each agent is one owner.

use crate::mcp_agent::Agent;
use crate::scene::Scene;
use crate::support::{Dice, Ended, Running, TENURE};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

const FILES: usize = 20;
const EDITS_EACH: usize = 100;

/// How an agent came to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum By {
    Hook,
    Shell,
    Mcp,
}

struct Player<'a> {
    scene: &'a Scene,
    session: &'static str,
    root: PathBuf,
    mcp: Agent,
    /// What it has now. Of each there is a marker, which the other must never find.
    held: BTreeMap<String, By>,
    edits: usize,
    refusals: usize,
}

impl<'a> Player<'a> {
    fn new(scene: &'a Scene, session: &'static str, root: &Path) -> Player<'a> {
        let mut command = scene.command(TENURE);
        command.arg("mcp").current_dir(root);
        command.env("TENURE_IDENTITY", "auto").env("CLAUDE_CODE_SESSION_ID", session);
        let mcp = Agent::speak(command);
        let (root, held) = (root.to_owned(), BTreeMap::new());
        Player { scene, session, root, mcp, held, edits: 0, refusals: 0 }
    }

    fn shell(&self, arguments: &[&str]) -> Ended {
        let mut command = self.scene.command(TENURE);
        command.args(arguments).current_dir(&self.root);
        command.env("TENURE_IDENTITY", "auto").env("CLAUDE_CODE_SESSION_ID", self.session);
        Running::start(command).end()
    }

    fn marker(&self, file: &str) -> PathBuf {
        self.scene.place.path(&format!("{file}.marker"))
    }

    /// Asks for a file by one of the three ways; changes it if it may.
    fn edit(&mut self, file: &str, by: By) {
        let path = format!("path:{file}");
        let may = match by {
            By::Hook => {
                let mut event = self.scene.edit(self.session, file);
                event["cwd"] = json!(self.root);
                event["tool_input"]["file_path"] = json!(self.root.join(file));
                self.scene.refused(&event).is_none()
            }
            By::Shell => {
                let ended = self.shell(&["acquire", "-n", "-q", &path]);
                assert!([0, 6].contains(&ended.code), "{ended:?}");
                ended.code == 0
            }
            By::Mcp => {
                let answer = self.mcp.call("acquire_lock", json!({ "resources": [path] }));
                answer["success"] == json!(true)
            }
        };
        if !may {
            assert!(!self.held.contains_key(file), "refused its own {file} by {by:?}");
            self.refusals += 1;
            return;
        }
        if !self.held.contains_key(file) {
            let made = std::fs::File::create_new(self.marker(file));
            assert!(made.is_ok(), "{file} is changed by both agents");
            self.held.insert(file.to_owned(), by);
        }
        let text = format!("{} {}\n", self.session, self.edits);
        std::fs::write(self.root.join(file), text).expect("a file");
        self.edits += 1;
    }

    /// Ends the turn: commits, and gives everything back, each by the way that it was taken.
    fn end_turn(&mut self) {
        self.scene.git_in(&self.root, &["commit", "-q", "-a", "--allow-empty", "-m", "turn"]);
        for file in self.held.keys() {
            std::fs::remove_file(self.marker(file)).expect("its own marker");
        }
        for (file, by) in std::mem::take(&mut self.held) {
            let path = format!("path:{file}");
            match by {
                By::Hook => {}
                By::Shell => assert_eq!(self.shell(&["release", "-q", &path]).code, 0),
                By::Mcp => {
                    let answer = self.mcp.call("release_lock", json!({ "resources": [path] }));
                    assert_eq!(answer["success"], json!(true), "{answer}");
                }
            }
        }
        let mut event = self.scene.event(self.session, "Stop");
        event["cwd"] = json!(self.root);
        self.scene.is_allowed(&event);
    }

    fn play(mut self, mut dice: Dice) -> (usize, usize) {
        for _ in 0..EDITS_EACH {
            let file = format!("file{:02}.txt", dice.below(FILES));
            let by = [By::Hook, By::Hook, By::Shell, By::Mcp][dice.below(4)];
            self.edit(&file, by);
            if dice.below(8) == 0 {
                self.end_turn();
            }
        }
        self.end_turn();
        (self.edits, self.refusals)
    }
}

#[test]
fn no_file_is_changed_by_two_agents_at_once_and_each_is_one_owner() {
    let scene = Scene::new();
    for index in 0..FILES {
        scene.write(&format!("file{index:02}.txt"), "0\n");
    }
    scene.git(&["add", "."]);
    scene.git(&["commit", "-q", "-m", "files"]);
    scene.git(&["worktree", "add", "-q", "../side"]);
    let side = scene.place.path("side").canonicalize().expect("the worktree");
    let mut dice = Dice::new();
    let seeds = [0, 1].map(|_| Dice::seeded(dice.below(usize::MAX) as u64));
    let roots = [scene.root.clone(), side];
    let players: Vec<Player<'_>> = ["one", "two"]
        .into_iter()
        .zip(&roots)
        .map(|(session, root)| Player::new(&scene, session, root))
        .collect();
    let ends: Vec<(usize, usize)> = std::thread::scope(|scope| {
        let running: Vec<_> = players
            .into_iter()
            .zip(seeds)
            .map(|(player, dice)| scope.spawn(move || player.play(dice)))
            .collect();
        running.into_iter().map(|one| one.join().expect("an agent to the end")).collect()
    });
    println!("edits and refusals of each: {ends:?}");
    assert!(ends.iter().all(|(edits, _)| *edits > 0), "{ends:?}");
    let events = scene.json(&["events"])["events"].clone();
    let taken = events.as_array().expect("events").iter();
    let labels: BTreeSet<&str> = taken
        .filter(|event| event["event"] == "acquired")
        .filter_map(|event| event["holder"].as_str())
        .collect();
    assert_eq!(labels.len(), 2, "{labels:?}");
    assert_eq!(scene.resources(), Vec::<String>::new());
}
