//! What the repository's Markdown says, in pieces that can be tried: links, code, commands, requests.

use std::path::{Path, PathBuf};

/// A Markdown file of the repository.
pub struct Document {
    /// Relative to the repository.
    pub name: String,
    pub text: String,
}

/// A fenced block of code.
pub struct Block<'a> {
    pub language: &'a str,
    pub code: String,
}

pub fn repository() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// README, CONTRIBUTING, CHANGELOG and everything in `docs/`.
pub fn documents() -> Vec<Document> {
    let mut names: Vec<String> = ["README.md", "CONTRIBUTING.md", "CHANGELOG.md"].map(str::to_owned).to_vec();
    for entry in std::fs::read_dir(repository().join("docs")).unwrap() {
        let entry = entry.unwrap();
        // Pictures stand in a folder of their own.
        if entry.file_type().unwrap().is_file() {
            names.push(format!("docs/{}", entry.file_name().to_string_lossy()));
        }
    }
    names.sort();
    names.into_iter().map(|name| Document { text: read(&name), name }).collect()
}

pub fn read(name: &str) -> String {
    std::fs::read_to_string(repository().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

impl Document {
    pub fn blocks(&self, language: &str) -> Vec<Block<'_>> {
        self.fences().into_iter().filter(|block| block.language == language).collect()
    }

    fn fences(&self) -> Vec<Block<'_>> {
        let mut blocks = Vec::new();
        let mut open: Option<Block<'_>> = None;
        for line in self.text.lines() {
            match (line.strip_prefix("```"), open.as_mut()) {
                (Some(_), Some(_)) => blocks.extend(open.take()),
                (Some(language), None) => open = Some(Block { language, code: String::new() }),
                (None, Some(block)) => block.code.extend([line, "\n"]),
                (None, None) => {}
            }
        }
        assert!(open.is_none(), "{}: a block of code has no end", self.name);
        blocks
    }

    fn prose(&self) -> impl Iterator<Item = &str> {
        let mut inside = false;
        self.text.lines().filter(move |line| {
            let fence = line.starts_with("```");
            inside ^= fence;
            !inside && !fence
        })
    }

    /// The targets of all links.
    pub fn links(&self) -> Vec<String> {
        let after = |line: &str| -> Vec<String> {
            line.split("](").skip(1).filter_map(|rest| Some(rest.split_once(')')?.0.to_owned())).collect()
        };
        self.prose().flat_map(after).collect()
    }

    /// What stands between backticks in the text.
    pub fn inline_code(&self) -> Vec<String> {
        let odd = |line: &str| -> Vec<String> { line.split('`').skip(1).step_by(2).map(str::to_owned).collect() };
        self.prose().flat_map(odd).collect()
    }

    /// Headings as their anchors.
    pub fn anchors(&self) -> Vec<String> {
        self.prose()
            .filter_map(|line| line.strip_prefix('#'))
            .map(|heading| {
                let words = heading.trim_start_matches('#').trim().to_lowercase();
                words
                    .chars()
                    .filter(|c| c.is_alphanumeric() || " -_".contains(*c))
                    .collect::<String>()
                    .replace(' ', "-")
            })
            .collect()
    }

    /// The lines of all shell blocks and inline code: what a reader may type.
    pub fn shell_lines(&self) -> Vec<String> {
        let mut lines: Vec<String> = self
            .blocks("sh")
            .iter()
            .flat_map(|block| block.code.lines().map(str::to_owned).collect::<Vec<_>>())
            .collect();
        lines.extend(self.inline_code());
        lines
    }

    /// The arguments of every call of the program.
    pub fn commands(&self) -> Vec<Vec<String>> {
        self.shell_lines().iter().filter_map(|line| arguments(line)).collect()
    }

    /// Where a relative link leads.
    pub fn resolve(&self, link: &str) -> PathBuf {
        repository().join(Path::new(&self.name).parent().unwrap()).join(link)
    }
}

/// The program's arguments in a shell line that calls it, directly or by cargo.
pub fn arguments(line: &str) -> Option<Vec<String>> {
    let mut words = words(line);
    while words.first().is_some_and(|word| word.contains('=') && !word.starts_with('-')) {
        words.remove(0);
    }
    let from = match words.first()?.as_str() {
        "outboxd" | "/usr/local/bin/outboxd" => 1,
        "cargo" if words.get(1)? == "run" && !words.contains(&"--example".to_owned()) => {
            words.iter().position(|word| word == "--")? + 1
        }
        _ => return None,
    };
    let until = words.iter().position(|word| [">", "|"].contains(&word.as_str())).unwrap_or(words.len());
    (from < until).then(|| words[from..until].to_vec())
}

/// Splits a shell line at white space, minding quotes.
pub fn words(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quote = None;
    for character in line.chars() {
        match quote {
            Some(open) if open == character => quote = None,
            None if character == '\'' || character == '"' => quote = Some(character),
            None if character.is_whitespace() => words.push(String::new()),
            Some(_) | None => words.last_mut().unwrap().push(character),
        }
    }
    words.retain(|word| !word.is_empty());
    words
}
