//! Requests in few words. A request has a number; its grant, its label and its process follow.

use super::evidence_of;
use std::time::Duration;
use tenure_core::{Ask, GrantId, Holder, Mode, Owner, Want};

/// How long a lease lasts, unless a test says otherwise.
pub const TTL_MS: u64 = 100;

/// How long a place lasts without a sign of life: longer than a lease, so that leases lapse first.
pub const PLACE_MS: u64 = 1_000;

pub fn grant_id(number: u32) -> GrantId {
    GrantId::from_bits(u128::from(number))
}

/// The number of a grant, also of one that an answer shows in its public form.
pub fn number_of(grant: GrantId) -> u32 {
    match grant.is_veiled() {
        false => u32::try_from(grant.to_bits()).expect("tests number their grants"),
        true => {
            (0..100_000).find(|number| grant_id(*number).redacted() == grant).expect("a number")
        }
    }
}

pub fn exclusive(resource: &str) -> Want {
    Want::exclusive(resource.parse().unwrap())
}

pub fn shared(resource: &str) -> Want {
    Want::shared(resource.parse().unwrap())
}

pub fn slot(resource: &str, of: u32) -> Want {
    Want { resource: resource.parse().unwrap(), mode: Mode::Slot { of } }
}

/// The request with this number, by a process with the same number and a label chosen for it. It
/// does not queue.
pub fn ask(number: u32, wants: &[Want]) -> Ask {
    let holder = Holder::chosen(&format!("holder {number}")).unwrap();
    let ask = Ask {
        grant: grant_id(number),
        wants: wants.to_vec(),
        holder,
        presence: None,
        operation: None,
        ttl: Duration::from_millis(TTL_MS),
        keeps: vec![],
        owner: Owner::default(),
        queue: None,
    };
    ask.by_process(number)
}

/// What a request can add to itself.
pub trait AskExt {
    /// Queues if it is not free.
    fn queued(self) -> Ask;
    /// Keeps the grants with these numbers while it waits.
    fn keeping(self, numbers: &[u32]) -> Ask;
    /// Is tied to this process.
    fn by_process(self, pid: u32) -> Ask;
    /// Is tied to no process: nobody can tell whether its holder lives.
    fn untied(self) -> Ask;
    /// Is made on behalf of whoever has this label, and holds under it.
    fn owned_by(self, label: &str) -> Ask;
    /// Is made on behalf of whoever has the grants with these numbers.
    fn owning(self, numbers: &[u32]) -> Ask;
    /// Is made by an agent with this label, whose program is this process, below that parent.
    fn by_agent(self, label: &str, pid: u32, parent: Option<&str>) -> Ask;
    /// Has a lease of this length.
    fn lasting_ms(self, ttl_ms: u64) -> Ask;
}

impl AskExt for Ask {
    fn queued(self) -> Ask {
        Ask { queue: Some(Duration::from_millis(PLACE_MS)), ..self }
    }

    fn keeping(self, numbers: &[u32]) -> Ask {
        Ask { keeps: numbers.iter().map(|number| grant_id(*number)).collect(), ..self }
    }

    fn by_process(self, pid: u32) -> Ask {
        Ask { holder: self.holder.with_evidence(evidence_of(pid)), ..self }
    }

    fn untied(self) -> Ask {
        Ask { holder: Holder { evidence: None, ..self.holder }, ..self }
    }

    fn owned_by(self, label: &str) -> Ask {
        let holder = Holder { label: label.to_owned(), ..self.holder };
        let owner = Owner { label: Some(label.to_owned()), ..self.owner };
        Ask { holder, owner, ..self }
    }

    fn owning(self, numbers: &[u32]) -> Ask {
        let grants = numbers.iter().map(|number| grant_id(*number)).collect();
        Ask { owner: Owner { grants, ..self.owner }, ..self }
    }

    fn by_agent(self, label: &str, pid: u32, parent: Option<&str>) -> Ask {
        let ask = self.owned_by(label).by_process(pid);
        let holder = Holder { agent: true, ..ask.holder };
        let owner = Owner { parent: parent.map(str::to_owned), ..ask.owner };
        Ask { holder, owner, ..ask }
    }

    fn lasting_ms(self, ttl_ms: u64) -> Ask {
        Ask { ttl: Duration::from_millis(ttl_ms), ..self }
    }
}
