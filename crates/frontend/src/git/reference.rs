//! Messages of the commits that keep rescued work.

/// What the message of a rescue says, as lines of `Name: value` after its subject.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Message {
    pub(super) task: String,
    pub(super) attempt: u32,
    /// The worker whose work it is.
    pub(super) by: String,
    /// Which claim of the task it was; tells attempts with the same number apart.
    pub(super) claim: String,
    /// What the work is compared with.
    pub(super) base: String,
}

impl Message {
    pub(super) fn text(&self) -> String {
        let Message { task, attempt, by, claim, base } = self;
        format!(
            "Rescued work on task {task}, attempt {attempt}\n\nTenure-Task: {task}\n\
             Tenure-Attempt: {attempt}\nTenure-Worker: {by}\nTenure-Claim: {claim}\n\
             Tenure-Base: {base}\n"
        )
    }

    /// Reads a message; `None` if it is no rescue's.
    pub(super) fn parse(text: &str) -> Option<Message> {
        let value = |name: &str| {
            let mut lines = text.lines().rev();
            lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(": ").map(str::to_owned))
        };
        Some(Message {
            task: value("Tenure-Task")?,
            attempt: value("Tenure-Attempt")?.parse().ok()?,
            by: value("Tenure-Worker")?,
            claim: value("Tenure-Claim")?,
            base: value("Tenure-Base").filter(|base| is_object(base))?,
        })
    }
}

/// Whether a text is the name of an object, and nothing that git could take for an option.
pub(super) fn is_object(text: &str) -> bool {
    matches!(text.len(), 40 | 64) && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use super::*;
    use tenure::core::{TaskId, rescue_reference};

    #[test]
    fn any_task_has_a_reference_that_git_accepts() {
        let long = "ü".repeat(200);
        for id in ["t17", "a b", "../x", "x.lock", ".", "a..b", "@{", "a~1^2:3?*[\\", "-x", &long] {
            let task: TaskId = id.parse().expect("an id");
            let name = rescue_reference(&task, 2, 1);
            let mut command = std::process::Command::new("git");
            command.args(["check-ref-format", &name]);
            let accepted = command.status().expect("git runs").success();
            assert!(accepted, "{name}");
            assert!(name.len() < 220, "{name}");
        }
    }

    #[test]
    fn a_message_is_read_back() {
        let message = Message {
            task: "t1".to_owned(),
            attempt: 3,
            by: "alice: the first".to_owned(),
            claim: "1700000000000".to_owned(),
            base: "0123456789".repeat(4),
        };
        assert_eq!(Message::parse(&message.text()), Some(message));
        assert_eq!(Message::parse("Tenure-Task: t1\n"), None);
    }

    /// A base goes into a command line.
    #[test]
    fn a_base_that_is_no_object_is_refused() {
        let text = "x\n\nTenure-Task: t\nTenure-Attempt: 1\nTenure-Worker: a\nTenure-Claim: 1\n";
        assert_eq!(Message::parse(&format!("{text}Tenure-Base: --output=/tmp/x\n")), None);
    }
}
