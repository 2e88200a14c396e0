//! From nodes back to text.

use super::parse::Node;

/// The text of normalised segments, with no escape that is not needed.
pub(super) fn segments(segments: &[Vec<Node>]) -> String {
    let mut text = String::new();
    for (index, segment) in segments.iter().enumerate() {
        if index > 0 {
            text.push('/');
        }
        print_nodes(&mut text, segment, false);
    }
    text
}

fn print_nodes(text: &mut String, nodes: &[Node], in_group: bool) {
    for node in nodes {
        match node {
            Node::Separator => text.push('/'),
            Node::AnyCharacter => text.push('?'),
            Node::AnyRun => text.push('*'),
            Node::Class(class) => text.push_str(&class.to_string()),
            Node::Group(alternatives) => {
                for (index, alternative) in alternatives.iter().enumerate() {
                    text.push(if index == 0 { '{' } else { ',' });
                    print_nodes(text, alternative, true);
                }
                text.push('}');
            }
            Node::Character(character) => {
                let special = matches!(character, '*' | '?' | '[' | '{' | '}' | '\\');
                if special || (in_group && *character == ',') {
                    text.push('\\');
                }
                text.push(*character);
            }
        }
    }
}
