//! An operator's own SQL condition, judged by its form: it must stand within the parentheses that are put around it.
//!
//! This is no judgement of what it says; the database gives that. What is refused here could end the statement, hide the
//! rest of it, or be read in another way by another setting of the server.

/// Refuses what is no closed condition.
///
/// # Errors
/// What is the matter and what would be valid.
pub(super) fn check(condition: &str) -> Result<(), &'static str> {
    if condition.trim().is_empty() {
        return Err("is empty: valid is an SQL condition, or leave the key out");
    }
    let mut open = Vec::new();
    let mut rest = condition;
    while let Some(sign) = rest.chars().next() {
        let before = &condition[..condition.len() - rest.len()];
        let after = &rest[sign.len_utf8()..];
        rest = match sign {
            '\'' => text(before, after)?,
            '"' => quoted(after, '"').ok_or("has a double quote that is not closed")?,
            '(' => opened(&mut open, ')', after),
            '[' => opened(&mut open, ']', after),
            ')' | ']' if open.pop() != Some(sign) => return Err("closes a parenthesis that it has not opened"),
            '\0' => return Err("holds the character NUL"),
            ';' => return Err("holds a semicolon outside quotes: valid is one condition, not a statement"),
            '-' if after.starts_with('-') => return Err("holds a comment (--): leave it out"),
            '/' if after.starts_with('*') => return Err("holds a comment (/*): leave it out"),
            '$' => return Err("holds a $ outside quotes: write texts in single quotes, odd names in double quotes"),
            '`' => return Err("holds a ` outside quotes: write names in double quotes"),
            _ => after,
        };
    }
    if open.is_empty() { Ok(()) } else { Err("has a parenthesis that is not closed") }
}

fn opened<'rest>(open: &mut Vec<char>, end: char, rest: &'rest str) -> &'rest str {
    open.push(end);
    rest
}

/// What follows the text in single quotes that begins here.
fn text<'rest>(before: &str, begun: &'rest str) -> Result<&'rest str, &'static str> {
    let is_of_word = |letter: char| letter.is_alphanumeric() || "_$".contains(letter);
    let word_begins = before.trim_end_matches(is_of_word).len();
    if before[word_begins..].eq_ignore_ascii_case("e") {
        return Err("holds a text with escapes (E'…'): write it without the E");
    }
    let rest = quoted(begun, '\'').ok_or("has a single quote that is not closed")?;
    // A server with old settings would read on.
    if begun[..begun.len() - rest.len()].contains("\\'") {
        return Err("holds a backslash before a quote: servers differ in how they read it");
    }
    Ok(rest)
}

/// What follows the closing quote; a doubled one does not close.
fn quoted(begun: &str, quote: char) -> Option<&str> {
    let mut rest = begun;
    loop {
        let (_, after) = rest.split_once(quote)?;
        match after.strip_prefix(quote) {
            Some(further) => rest = further,
            None => return Some(after),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_condition_that_is_closed_in_itself_is_taken() {
        for condition in [
            "\"tenant\" = 7",
            "kind like'a;b -- c' and (a or b[1] = 2)",
            "note = 'it''s; (fine' AND \"odd \"\" ; name\" IS NULL",
            "payload->>'a' = 'b' AND tags @> '{a}' AND path LIKE 'C:\\x'",
            "a - -1 > 0 and b / 2 * 3 = 1",
        ] {
            assert_eq!(check(condition), Ok(()), "{condition}");
        }
    }

    #[test]
    fn what_could_end_the_statement_or_hide_the_rest_of_it_is_refused() {
        for condition in [
            "",
            "  ",
            "true; DROP TABLE x",
            "true -- x",
            "true /* x */",
            "true) OR (true",
            "(true",
            "f(a[1)]",
            "a = 'b",
            "a = 'b''",
            "\"a = 1",
            "a = E'\\'; --'",
            "a = 'b\\' OR true",
            "a = $$b$$",
            "a = $1",
            "`a` = 1",
            "a = 'b\0' \0",
        ] {
            assert!(check(condition).is_err(), "{condition}");
        }
    }
}
