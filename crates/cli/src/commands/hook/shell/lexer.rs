//! Splits a line of shell into simple commands: their words, and the files that they redirect to.
//!
//! It knows quotes, operators, redirections, subshells and here-documents. A word that contains an
//! expansion has no known text. A line with an open quote or bracket is not understood.

use std::collections::VecDeque;

/// One thing in a script.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Item {
    /// A simple command.
    Command(Command),
    /// `(`: what follows changes the folder for itself only.
    OpenSubshell,
    /// `)`.
    CloseSubshell,
}

/// A simple command.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Command {
    /// The program and its arguments.
    pub(super) words: Vec<Word>,
    /// What it redirects its output to.
    pub(super) written: Vec<Word>,
    /// Whether it is part of a pipeline.
    pub(super) is_piped: bool,
}

/// A word of a command.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Word {
    text: String,
    /// Whether it contains an expansion, so that its text is not known.
    is_unknown: bool,
    /// Whether it has a wildcard that the shell replaces by the names of files.
    has_pattern: bool,
    /// Whether any of it was quoted.
    is_quoted: bool,
}

impl Word {
    /// Its text, if that is known without running anything.
    pub(super) fn text(&self) -> Option<&str> {
        (!self.is_unknown).then_some(&self.text)
    }

    /// Whether the shell replaces it by the names of files.
    pub(super) fn has_pattern(&self) -> bool {
        self.has_pattern
    }

    /// Whether it is an option: `-x`, `--long`, `--`, but not `-`.
    pub(super) fn is_option(&self) -> bool {
        self.text.len() > 1 && self.text.starts_with('-')
    }

    /// Whether it is exactly this text without quotes, as the reserved words of the shell are.
    fn is_bare(&self, text: &str) -> bool {
        !self.is_quoted && !self.is_unknown && self.text == text
    }

    /// Whether it sets a variable for the command: `NAME=value`.
    pub(super) fn is_assignment(&self) -> bool {
        let name = self.text.split_once('=').map(|(name, _)| name);
        name.is_some_and(|name| {
            !name.is_empty()
                && !name.starts_with(|first: char| first.is_ascii_digit())
                && name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
        })
    }
}

/// Words after which a command follows as at the beginning of a line.
const BEFORE_COMMANDS: [&str; 9] = ["if", "then", "else", "elif", "while", "until", "do", "!", "{"];

/// The items of a script; `None` if it cannot be understood.
pub(super) fn items(text: &str) -> Option<Vec<Item>> {
    let mut lexer = Lexer {
        rest: text.chars().collect(),
        items: Vec::new(),
        command: Command::default(),
        here_documents: Vec::new(),
        depth: 0,
    };
    lexer.run()?;
    Some(lexer.items)
}

/// A here-document whose body begins at the next line.
struct HereDocument {
    end: String,
    strips_tabs: bool,
}

struct Lexer {
    rest: VecDeque<char>,
    items: Vec<Item>,
    command: Command,
    here_documents: Vec<HereDocument>,
    depth: usize,
}

impl Lexer {
    fn run(&mut self) -> Option<()> {
        while let Some(next) = self.peek(0) {
            match next {
                ' ' | '\t' | '\r' => drop(self.rest.pop_front()),
                '\n' => {
                    self.rest.pop_front();
                    self.end_command(false);
                    self.skip_here_documents();
                }
                '#' => self.skip_line(),
                ';' => {
                    // `;;` belongs to `case`, whose patterns look like commands.
                    if self.peek(1) == Some(';') {
                        return None;
                    }
                    self.rest.pop_front();
                    self.end_command(false);
                }
                '&' if self.peek(1) == Some('>') => {
                    self.skip(2);
                    if self.peek(0) == Some('>') {
                        self.skip(1);
                    }
                    self.redirect_to_file()?;
                }
                '&' => {
                    self.skip(if self.peek(1) == Some('&') { 2 } else { 1 });
                    self.end_command(false);
                }
                '|' => {
                    let is_pipe = self.peek(1) != Some('|');
                    let two = matches!(self.peek(1), Some('|' | '&'));
                    self.skip(if two { 2 } else { 1 });
                    self.end_command(is_pipe);
                    self.command.is_piped = is_pipe;
                }
                '(' => {
                    // After a word it defines a function.
                    if !self.command.words.is_empty() || self.peek(1) == Some('(') {
                        return None;
                    }
                    self.rest.pop_front();
                    self.end_command(false);
                    self.depth += 1;
                    self.items.push(Item::OpenSubshell);
                }
                ')' => {
                    self.rest.pop_front();
                    self.end_command(false);
                    self.depth = self.depth.checked_sub(1)?;
                    self.items.push(Item::CloseSubshell);
                }
                '>' | '<' if self.is_comparing() => self.skip(1),
                '>' | '<' => self.redirection()?,
                digit if digit.is_ascii_digit() && self.is_descriptor() => {
                    while self.peek(0).is_some_and(|next| next.is_ascii_digit()) {
                        self.skip(1);
                    }
                    self.redirection()?;
                }
                _ => {
                    let word = self.word()?;
                    self.push(word)?;
                }
            }
        }
        self.end_command(false);
        (self.depth == 0).then_some(())
    }

    fn peek(&self, ahead: usize) -> Option<char> {
        self.rest.get(ahead).copied()
    }

    fn skip(&mut self, count: usize) {
        self.rest.drain(..count.min(self.rest.len()));
    }

    fn skip_line(&mut self) {
        while self.peek(0).is_some_and(|next| next != '\n') {
            self.skip(1);
        }
    }

    /// Whether this is inside `[[ … ]]`, where `<` and `>` compare.
    fn is_comparing(&self) -> bool {
        self.command.words.first().is_some_and(|word| word.is_bare("[["))
    }

    /// Whether digits before `<` or `>` follow.
    fn is_descriptor(&self) -> bool {
        let after = self.rest.iter().find(|next| !next.is_ascii_digit());
        matches!(after, Some('<' | '>'))
    }

    fn push(&mut self, word: Word) -> Option<()> {
        if self.command.words.is_empty() {
            if BEFORE_COMMANDS.iter().any(|reserved| word.is_bare(reserved)) {
                return Some(());
            }
            if word.is_bare("case") || word.is_bare("function") || word.is_bare("select") {
                return None;
            }
        }
        self.command.words.push(word);
        Some(())
    }

    fn end_command(&mut self, is_piped: bool) {
        let mut command = std::mem::take(&mut self.command);
        command.is_piped |= is_piped;
        if !command.words.is_empty() || !command.written.is_empty() {
            self.items.push(Item::Command(command));
        }
    }

    fn redirection(&mut self) -> Option<()> {
        let first = self.rest.pop_front()?;
        let second = self.peek(0);
        match (first, second) {
            ('<' | '>', Some('(')) => {
                // A process substitution, in place of a file's name.
                self.skip(1);
                self.skip_brackets('(', ')')?;
                self.push(Word { is_unknown: true, ..Word::default() })
            }
            ('<', Some('<')) => {
                self.skip(1);
                self.here()
            }
            ('<', Some('>')) | ('>', Some('>' | '|')) => {
                self.skip(1);
                self.redirect_to_file()
            }
            ('<', Some('&')) => {
                self.skip(1);
                self.redirect_target().map(drop)
            }
            ('>', Some('&')) => {
                self.skip(1);
                let target = self.redirect_target()?;
                let is_descriptor = target.text().is_some_and(|text| {
                    text == "-" || text.chars().all(|letter| letter.is_ascii_digit())
                });
                if !is_descriptor {
                    self.command.written.push(target);
                }
                Some(())
            }
            ('<', _) => self.redirect_target().map(drop),
            _ => self.redirect_to_file(),
        }
    }

    fn redirect_to_file(&mut self) -> Option<()> {
        let target = self.redirect_target()?;
        self.command.written.push(target);
        Some(())
    }

    fn redirect_target(&mut self) -> Option<Word> {
        while matches!(self.peek(0), Some(' ' | '\t')) {
            self.skip(1);
        }
        match self.peek(0)? {
            '\n' | ';' | '&' | '|' | '<' | '>' | ')' => None,
            _ => self.word(),
        }
    }

    /// The rest of `<<`: a here-document, or a here-string with `<<<`.
    fn here(&mut self) -> Option<()> {
        if self.peek(0) == Some('<') {
            self.skip(1);
            return self.redirect_target().map(drop);
        }
        let strips_tabs = self.peek(0) == Some('-');
        if strips_tabs {
            self.skip(1);
        }
        let end = self.redirect_target()?;
        self.here_documents.push(HereDocument { end: end.text, strips_tabs });
        Some(())
    }

    /// Skips the bodies of here-documents, which begin at a new line.
    fn skip_here_documents(&mut self) {
        for document in std::mem::take(&mut self.here_documents) {
            while !self.rest.is_empty() {
                let mut line = String::new();
                while let Some(next) = self.rest.pop_front() {
                    if next == '\n' {
                        break;
                    }
                    line.push(next);
                }
                let line = match document.strips_tabs {
                    true => line.trim_start_matches('\t'),
                    false => &line,
                };
                if line == document.end {
                    break;
                }
            }
        }
    }

    fn word(&mut self) -> Option<Word> {
        let mut word = Word::default();
        if self.peek(0) == Some('~') {
            word.is_unknown = true;
        }
        while let Some(next) = self.peek(0) {
            match next {
                ' ' | '\t' | '\r' | '\n' | ';' | '&' | '|' | '<' | '>' | '(' | ')' => break,
                '\\' => {
                    self.skip(1);
                    word.is_quoted = true;
                    // A backslash at the end of a line joins it with the next.
                    match self.rest.pop_front() {
                        Some('\n') | None => {}
                        Some(letter) => word.text.push(letter),
                    }
                }
                '\'' => {
                    self.skip(1);
                    word.is_quoted = true;
                    self.until_quote(&mut word.text)?;
                }
                '"' => {
                    self.skip(1);
                    word.is_quoted = true;
                    self.double_quoted(&mut word)?;
                }
                '`' => {
                    self.skip(1);
                    word.is_unknown = true;
                    while self.rest.pop_front()? != '`' {}
                }
                '$' => {
                    self.skip(1);
                    self.expansion(&mut word)?;
                }
                '*' | '?' | '[' | '{' => {
                    self.skip(1);
                    word.has_pattern = true;
                    word.text.push(next);
                }
                _ => {
                    self.skip(1);
                    word.text.push(next);
                }
            }
        }
        // `{}` is how `find` and `xargs` write a file's name, and `{` begins a group.
        if word.text == "{" || word.text == "{}" {
            word.has_pattern = false;
            word.is_unknown |= word.text == "{}";
        }
        Some(word)
    }

    fn until_quote(&mut self, text: &mut String) -> Option<()> {
        loop {
            match self.rest.pop_front()? {
                '\'' => return Some(()),
                letter => text.push(letter),
            }
        }
    }

    fn double_quoted(&mut self, word: &mut Word) -> Option<()> {
        loop {
            match self.rest.pop_front()? {
                '"' => return Some(()),
                '`' => {
                    word.is_unknown = true;
                    while self.rest.pop_front()? != '`' {}
                }
                '$' => self.expansion(word)?,
                '\\' => match self.rest.pop_front()? {
                    letter @ ('"' | '\\' | '$' | '`') => word.text.push(letter),
                    '\n' => {}
                    letter => word.text.extend(['\\', letter]),
                },
                letter => word.text.push(letter),
            }
        }
    }

    /// What follows a `$`.
    fn expansion(&mut self, word: &mut Word) -> Option<()> {
        match self.peek(0) {
            Some('(') => {
                self.skip(1);
                word.is_unknown = true;
                self.skip_brackets('(', ')')
            }
            Some('{') => {
                self.skip(1);
                word.is_unknown = true;
                self.skip_brackets('{', '}')
            }
            Some('\'') => {
                self.skip(1);
                // Its escapes are not read.
                word.is_unknown = true;
                while self.rest.pop_front()? != '\'' {}
                Some(())
            }
            Some(next) if next.is_alphanumeric() || "_@*#?$!-".contains(next) => {
                word.is_unknown = true;
                self.skip(1);
                Some(())
            }
            _ => {
                word.text.push('$');
                Some(())
            }
        }
    }

    /// Skips to the closing bracket, past nested ones and quotes.
    fn skip_brackets(&mut self, open: char, close: char) -> Option<()> {
        let mut depth = 1;
        while depth > 0 {
            match self.rest.pop_front()? {
                letter if letter == open => depth += 1,
                letter if letter == close => depth -= 1,
                '\\' => drop(self.rest.pop_front()?),
                '\'' => while self.rest.pop_front()? != '\'' {},
                '"' => loop {
                    match self.rest.pop_front()? {
                        '"' => break,
                        '\\' => drop(self.rest.pop_front()?),
                        _ => {}
                    }
                },
                _ => {}
            }
        }
        Some(())
    }
}
