//! One Rust file as a list of words, without comments and test modules: enough to see what it imports.

/// One word of the source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Word {
    /// An identifier or keyword.
    Name(String),
    /// A string literal's content.
    Text(String),
    /// Any other character, one by one; `::` is one word.
    Sign(&'static str),
}

const PATH: Word = Word::Sign("::");

/// A file below `src/`.
pub struct Source {
    /// Relative to `src/`.
    pub path: String,
    words: Vec<Word>,
}

impl Source {
    pub fn new(path: &str, text: &str) -> Self {
        Self { path: path.to_owned(), words: without_tests(&read(text)) }
    }

    pub fn words(&self) -> &[Word] {
        &self.words
    }

    /// The module on the crate's first level to which the file belongs.
    pub fn module(&self) -> &str {
        self.path.split('/').next().unwrap().trim_end_matches(".rs")
    }

    /// Whether the whole file is a test module.
    pub fn is_test(&self) -> bool {
        self.path.split('/').any(|part| part == "tests" || part == "tests.rs")
    }

    /// How many modules deep the file's own module is.
    fn depth(&self) -> usize {
        let parts: Vec<&str> = self.path.split('/').collect();
        parts.len() - usize::from(parts.last() == Some(&"mod.rs"))
    }

    /// The first-level modules that the file names by a path, in order, possibly several times.
    pub fn imports(&self) -> Vec<String> {
        let mut found = Vec::new();
        for (index, word) in self.words.iter().enumerate() {
            let Word::Name(name) = word else { continue };
            if index > 0 && self.words[index - 1] == PATH {
                continue;
            }
            match name.as_str() {
                "crate" | "outboxd" => self.heads(index + 1, &mut found),
                "super" => {
                    let mut end = index + 1;
                    let mut ups = 1;
                    while self.words.get(end) == Some(&PATH)
                        && self.words.get(end + 1) == Some(&Word::Name("super".into()))
                    {
                        end += 2;
                        ups += 1;
                    }
                    if ups == self.depth() {
                        self.heads(end, &mut found);
                    }
                }
                _ => {}
            }
        }
        found
    }

    /// What the file names of one of the crate's first-level modules.
    pub fn names_under(&self, module: &str) -> Vec<String> {
        let path = [Word::Name("crate".to_owned()), PATH, Word::Name(module.to_owned())];
        let mut found = Vec::new();
        for (index, words) in self.words.windows(path.len()).enumerate() {
            if *words == path {
                self.heads(index + path.len(), &mut found);
            }
        }
        found
    }

    /// The crates, or whatever else begins a path, that the file names.
    pub fn crates(&self) -> Vec<&str> {
        let begins = |index: usize| index == 0 || self.words[index - 1] != PATH;
        let is_path = |index: usize| {
            self.words.get(index + 1) == Some(&PATH)
                || (index > 0 && self.words[index - 1] == Word::Name("use".to_owned()))
        };
        self.words
            .iter()
            .enumerate()
            .filter_map(|(index, word)| match word {
                Word::Name(name) if begins(index) && is_path(index) => Some(name.as_str()),
                Word::Name(_) | Word::Text(_) | Word::Sign(_) => None,
            })
            .collect()
    }

    /// The names after `::` at this place: one, or each at the beginning of an item of a `{…}` group.
    fn heads(&self, at: usize, found: &mut Vec<String>) {
        if self.words.get(at) != Some(&PATH) {
            return;
        }
        match self.words.get(at + 1) {
            Some(Word::Name(name)) => found.push(name.clone()),
            Some(Word::Sign("{")) => {
                let mut depth = 1;
                let mut expects_item = true;
                for word in &self.words[at + 2..] {
                    match word {
                        Word::Sign("{") => depth += 1,
                        Word::Sign("}") => depth -= 1,
                        Word::Sign(",") if depth == 1 => expects_item = true,
                        Word::Name(name) if expects_item => {
                            found.push(name.clone());
                            expects_item = false;
                        }
                        Word::Name(_) | Word::Text(_) | Word::Sign(_) => {}
                    }
                    if depth == 0 {
                        return;
                    }
                }
            }
            Some(Word::Text(_) | Word::Sign(_)) | None => {}
        }
    }
}

/// Cuts a source into words. Comments are dropped; characters and lifetimes become nothing.
fn read(text: &str) -> Vec<Word> {
    let mut words = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        if rest.starts_with("//") {
            rest = rest.split_once('\n').map_or("", |(_, after)| after);
        } else if rest.starts_with("/*") {
            rest = rest.split_once("*/").map_or("", |(_, after)| after);
        } else if let Some((content, after)) = raw_string(rest) {
            words.push(Word::Text(content.to_owned()));
            rest = after;
        } else if first == '"' {
            let end = closing_quote(rest);
            words.push(Word::Text(rest[1..end].to_owned()));
            rest = rest.get(end + 1..).unwrap_or("");
        } else if first == '\'' {
            rest = after_quote(rest);
        } else if first.is_alphanumeric() || first == '_' {
            let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
            words.push(Word::Name(rest[..end].to_owned()));
            rest = &rest[end..];
        } else {
            let sign =
                ["::", "{", "}", "(", ")", "[", "]", "#", ",", ";"].into_iter().find(|sign| rest.starts_with(sign));
            words.extend(sign.filter(|_| !first.is_whitespace()).map(Word::Sign));
            rest = &rest[sign.map_or(first.len_utf8(), str::len)..];
        }
    }
    words
}

fn raw_string(text: &str) -> Option<(&str, &str)> {
    let after_letter = text.strip_prefix("br").or_else(|| text.strip_prefix('r'))?;
    let hashes = after_letter.len() - after_letter.trim_start_matches('#').len();
    let content = after_letter[hashes..].strip_prefix('"')?;
    content.split_once(&format!("\"{}", "#".repeat(hashes)))
}

/// Where the string that begins this text ends.
fn closing_quote(text: &str) -> usize {
    let mut escaped = false;
    for (index, character) in text.char_indices().skip(1) {
        match character {
            '"' if !escaped => return index,
            '\\' => escaped = !escaped,
            _ => escaped = false,
        }
    }
    text.len()
}

/// What follows the character literal or the lifetime that begins this text.
fn after_quote(text: &str) -> &str {
    let mut characters = text.char_indices().skip(1);
    let second = characters.next().map(|(_, character)| character);
    let third = characters.next();
    match (second, third) {
        (Some('\\'), Some((index, escaped))) => {
            let after = &text[index + escaped.len_utf8()..];
            after.split_once('\'').map_or("", |(_, rest)| rest)
        }
        (Some(_), Some((index, '\''))) => &text[index + 1..],
        (_, _) => &text[1..],
    }
}

/// Leaves out every item under `#[cfg(test)]`.
fn without_tests(words: &[Word]) -> Vec<Word> {
    let attribute = read("#[cfg(test)]");
    let mut kept = Vec::with_capacity(words.len());
    let mut index = 0;
    while index < words.len() {
        if words[index..].starts_with(&attribute) {
            index += attribute.len() + item_length(&words[index + attribute.len()..]);
        } else {
            kept.push(words[index].clone());
            index += 1;
        }
    }
    kept
}

/// The words of the item that begins here: to its semicolon or its closing brace.
fn item_length(words: &[Word]) -> usize {
    let mut depth = 0;
    for (index, word) in words.iter().enumerate() {
        match word {
            Word::Sign("{") => depth += 1,
            Word::Sign("}") if depth == 1 => return index + 1,
            Word::Sign("}") => depth -= 1,
            Word::Sign(";") if depth == 0 => return index + 1,
            Word::Name(_) | Word::Text(_) | Word::Sign(_) => {}
        }
    }
    words.len()
}
