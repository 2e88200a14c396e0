//! The programs that run on the simulated machines. Each uses the client as a real program would, and
//! tells the observer what it sees.

mod agent;
mod locks;
mod nested;
mod producer;
mod workers;

use crate::checks::Observer;
use crate::dice::Dice;
use crate::plan::{CALM, Kind, Pace, TURBULENT};
use crate::world::SimWorld;
use parking_lot::Mutex;
use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;
use tenure::core::Task;
use tenure::world::World;
use tenure::{Client, Error};

/// How long a program that ends waits for its last cleanups; longer than they take in calm times.
const LAST_CLEANUPS: Duration = Duration::from_millis(500);

/// What a program has to work with.
#[derive(Clone)]
pub struct Context {
    /// The client, over a link of its own.
    pub client: Client,
    /// The process.
    pub world: SimWorld,
    /// Records what it sees.
    pub observer: Arc<Observer>,
    /// Its name.
    pub who: String,
    /// Its number in the plan.
    pub number: u64,
    /// How often its process was started, which makes names unique.
    pub start: u32,
    /// How much it does.
    pub pace: Pace,
    /// What it leaves to chance.
    pub dice: Arc<Mutex<Dice>>,
}

impl Context {
    /// Runs the program until it is time to end.
    pub async fn run(self, kind: Kind) {
        match kind {
            Kind::Locks => locks::run(&self, false).await,
            Kind::Queue => locks::run(&self, true).await,
            Kind::Operator => locks::operator(&self).await,
            Kind::Nested => nested::run(&self).await,
            Kind::Agent => agent::run(&self).await,
            Kind::Worker => workers::worker(&self).await,
            Kind::Swarm => workers::swarm(&self).await,
            Kind::Producer => producer::run(&self).await,
        }
        self.observer.gives_up_all(self.world.pid);
        // A client that is dropped waits until what its last guards held is given back.
        self.sleep(LAST_CLEANUPS).await;
        self.say("ends");
    }

    fn roll<T>(&self, ask: impl FnOnce(&mut Dice) -> T) -> T {
        ask(&mut self.dice.lock())
    }

    fn say(&self, text: impl Display) {
        self.observer.say(&self.who, text);
    }

    async fn sleep(&self, time: Duration) {
        self.world.sleep(time).await;
    }

    /// Whether programs begin something new.
    fn goes_on(&self) -> bool {
        self.observer.now() < TURBULENT + CALM
    }

    async fn wait_out(&self, error: &Error) {
        self.say(format_args!("trouble: {error}"));
        let pause = self.roll(|dice| dice.time(50, 800));
        self.sleep(pause).await;
    }
}

fn task_name(task: &Task) -> String {
    task.id.to_string()
}
