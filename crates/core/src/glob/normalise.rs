//! From nodes to segments: braces expanded, spelling made uniform, escapes from the root refused.

use super::parse::Node;
use super::{GlobError, MAX_ALTERNATIVES, MAX_EXPANDED_CHARACTERS};

/// All texts that the braces stand for, as nodes without groups; `glob` is for the error alone.
pub(super) fn expansions(glob: &str, nodes: &[Node]) -> Result<Vec<Vec<Node>>, GlobError> {
    let extent = extent_of_sequence(nodes);
    if extent.alternatives > MAX_ALTERNATIVES || extent.characters > MAX_EXPANDED_CHARACTERS {
        return Err(GlobError::TooManyAlternatives { glob: glob.to_owned() });
    }
    Ok(expand(nodes))
}

/// The normalised segments of one expansion, refused if they could leave the root.
pub(super) fn checked_segments(
    glob: &str,
    expansion: &[Node],
) -> Result<Vec<Vec<Node>>, GlobError> {
    let glob = || glob.to_owned();
    match expansion.first() {
        None => return Err(GlobError::Empty { glob: glob() }),
        Some(Node::Separator) => return Err(GlobError::Absolute { glob: glob() }),
        Some(_) => {}
    }
    let segments = segments(expansion);
    if segments.iter().any(|segment| is_literal(segment, "..")) {
        return Err(GlobError::ParentSegment { glob: glob() });
    }
    // Judged after `./` is gone, or `./C:/x` would turn into `C:/x`.
    if segments.first().is_some_and(|first| is_drive_or_server(first)) {
        return Err(GlobError::Absolute { glob: glob() });
    }
    if let Some(escape) = segments.iter().find_map(|segment| url_escape(segment)) {
        return Err(GlobError::UrlEncoded { glob: glob(), escape });
    }
    Ok(segments)
}

/// The segments without `.`, empty ones and repeated wildcards; a directory gets its `**`.
///
/// Works on expansions and on nodes with groups alike: it changes nothing inside or beside a
/// group, so expanding the result gives the same globs as expanding what was written.
pub(super) fn segments(nodes: &[Node]) -> Vec<Vec<Node>> {
    let written: Vec<&[Node]> = nodes.split(|node| *node == Node::Separator).collect();
    let names_directory = written.last().is_some_and(|last| is_blank(last));
    let mut segments: Vec<Vec<Node>> = written
        .iter()
        .filter(|segment| !is_blank(segment))
        .map(|segment| without_repeated_runs(segment))
        .collect();
    // Without its `./` a glob like `./{/a,b}` would have become absolute.
    let keeps_dot = written.first().is_some_and(|first| is_literal(first, "."))
        && segments.first().is_some_and(|first| !starts_with_name(first));
    if keeps_dot {
        segments.insert(0, vec![Node::Character('.')]);
    }
    if names_directory {
        segments.push(vec![Node::AnyRun, Node::AnyRun]);
    }
    segments.dedup_by(|next, previous| is_any_depth(next) && is_any_depth(previous));
    segments
}

/// Whether the segment is `**`.
pub(super) fn is_any_depth(segment: &[Node]) -> bool {
    *segment == [Node::AnyRun, Node::AnyRun]
}

fn is_blank(segment: &[Node]) -> bool {
    segment.is_empty() || is_literal(segment, ".")
}

fn is_literal(segment: &[Node], text: &str) -> bool {
    segment.iter().cloned().eq(text.chars().map(Node::Character))
}

fn without_repeated_runs(segment: &[Node]) -> Vec<Node> {
    let mut segment = segment.to_vec();
    // Beside a group `**` may still become a whole segment: `**{,a}`.
    let has_group = segment.iter().any(|node| matches!(node, Node::Group(_)));
    if !has_group && !is_any_depth(&segment) {
        segment.dedup_by(|next, previous| *next == Node::AnyRun && *previous == Node::AnyRun);
    }
    segment
}

fn starts_with_name(nodes: &[Node]) -> bool {
    match nodes.first() {
        None | Some(Node::Separator) => false,
        Some(Node::Group(alternatives)) => {
            alternatives.iter().all(|alternative| starts_with_name(alternative))
        }
        Some(_) => true,
    }
}

fn is_drive_or_server(first_segment: &[Node]) -> bool {
    match first_segment {
        [Node::Character('\\'), ..] => true,
        [Node::Character(letter), Node::Character(':'), ..] => letter.is_ascii_alphabetic(),
        _ => false,
    }
}

/// The first URL-encoded dot, slash, backslash or NUL, as written.
fn url_escape(segment: &[Node]) -> Option<String> {
    segment.windows(3).find_map(|window| match window {
        [Node::Character('%'), Node::Character(high), Node::Character(low)] => {
            let escape = format!("%{high}{low}");
            let is_path_syntax = ["%2e", "%2f", "%5c", "%00"]
                .iter()
                .any(|refused| escape.eq_ignore_ascii_case(refused));
            is_path_syntax.then_some(escape)
        }
        _ => None,
    })
}

/// How much an expansion would give, counted without making it.
struct Extent {
    alternatives: usize,
    characters: usize,
}

fn extent_of_sequence(nodes: &[Node]) -> Extent {
    let nothing = Extent { alternatives: 1, characters: 0 };
    nodes.iter().map(extent_of_node).fold(nothing, |all, next| Extent {
        alternatives: all.alternatives.saturating_mul(next.alternatives),
        characters: all
            .characters
            .saturating_mul(next.alternatives)
            .saturating_add(next.characters.saturating_mul(all.alternatives)),
    })
}

fn extent_of_node(node: &Node) -> Extent {
    let characters = match node {
        Node::Group(alternatives) => {
            let extents = alternatives.iter().map(|nodes| extent_of_sequence(nodes));
            let nothing = Extent { alternatives: 0, characters: 0 };
            return extents.fold(nothing, |all, next| Extent {
                alternatives: all.alternatives.saturating_add(next.alternatives),
                characters: all.characters.saturating_add(next.characters),
            });
        }
        Node::Class(class) => class.range_count(),
        _ => 1,
    };
    Extent { alternatives: 1, characters }
}

fn expand(nodes: &[Node]) -> Vec<Vec<Node>> {
    let mut expansions = vec![Vec::new()];
    for node in nodes {
        let Node::Group(alternatives) = node else {
            for expansion in &mut expansions {
                expansion.push(node.clone());
            }
            continue;
        };
        let endings: Vec<Vec<Node>> = alternatives.iter().flat_map(|nodes| expand(nodes)).collect();
        expansions = expansions
            .iter()
            .flat_map(|start| endings.iter().map(|end| [start.as_slice(), end].concat()))
            .collect();
    }
    expansions
}
