//! Query strings, read strictly: what nobody asked for, what stands twice and what is out of range is refused.
//!
//! Each resource says which parameters it knows by reading them; whatever is left over is unknown. `outbox` is known to
//! all of them, because every path takes it; what it means is [`outbox`](super::outbox)'s to say.

use std::ops::RangeInclusive;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use percent_encoding::percent_decode_str;
use uuid::Uuid;

use super::problem::{Answer, Problem};
use crate::event::check_event_type;

/// Types that one request may name: so many of the longest ones still fit into a request's head.
pub(super) const MAX_TYPES: usize = 100;
const DEFAULT_LIMIT: u32 = 50;
const MAX_LIMIT: u64 = 200;

/// A set of query parameters.
pub(super) trait FromQuery: Sized {
    /// Takes its parameters out of the query.
    fn from_query(query: &mut QueryReader) -> Answer<Self>;
}

/// Extracts query parameters.
pub(super) struct Query<T>(pub T);

/// A path without parameters of its own.
pub(super) struct NoParameters;

impl FromQuery for NoParameters {
    fn from_query(_query: &mut QueryReader) -> Answer<Self> {
        Ok(Self)
    }
}

impl<S: Send + Sync, T: FromQuery> FromRequestParts<S> for Query<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Problem> {
        read(parts.uri.query().unwrap_or_default()).map(Query)
    }
}

fn read<T: FromQuery>(text: &str) -> Answer<T> {
    let mut reader = QueryReader::new(text)?;
    let value = T::from_query(&mut reader)?;
    reader.one("outbox")?;
    reader.finish()?;
    Ok(value)
}

/// The outbox that a query names.
pub(super) fn outbox_of(text: &str) -> Answer<Option<String>> {
    if text.is_empty() {
        return Ok(None);
    }
    QueryReader::new(text)?.one("outbox")
}

/// The parameters that have not been taken yet, in their order.
pub(super) struct QueryReader {
    pairs: Vec<(String, String)>,
}

impl QueryReader {
    fn new(text: &str) -> Answer<Self> {
        let pairs = text.split('&').filter(|pair| !pair.is_empty()).map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            Ok((decode(name)?, decode(value)?))
        });
        Ok(Self { pairs: pairs.collect::<Answer<_>>()? })
    }

    /// A parameter that may stand any number of times.
    pub fn all(&mut self, name: &str) -> Vec<String> {
        self.pairs.extract_if(.., |(key, _)| key == name).map(|(_, value)| value).collect()
    }

    /// A parameter that may stand once.
    pub fn one(&mut self, name: &str) -> Answer<Option<String>> {
        let mut values = self.all(name);
        match values.len() {
            0 | 1 => Ok(values.pop()),
            _ => Err(refused(name, "is given more than once")),
        }
    }

    /// A whole number within a range.
    pub fn number(&mut self, name: &str, range: RangeInclusive<u64>) -> Answer<Option<u64>> {
        let Some(text) = self.one(name)? else { return Ok(None) };
        let number = whole_number(&text).filter(|number| range.contains(number));
        let detail = || format!("must be a whole number from {} to {}", range.start(), range.end());
        number.map(Some).ok_or_else(|| refused(name, detail()))
    }

    /// `limit`: 50 when it is not given, and never more than 200.
    pub fn limit(&mut self) -> Answer<u32> {
        let Some(text) = self.one("limit")? else { return Ok(DEFAULT_LIMIT) };
        let limit = whole_number(&text).filter(|number| *number > 0);
        let limit = limit.ok_or_else(|| refused("limit", "must be a whole number of at least 1"))?;
        Ok(u32::try_from(limit.min(MAX_LIMIT)).unwrap_or(DEFAULT_LIMIT))
    }

    /// Event types, as often as they are given.
    pub fn types(&mut self, name: &str) -> Answer<Vec<String>> {
        let types = self.all(name);
        check_types(&types, |_| format!("/{name}"))?;
        Ok(types)
    }

    /// A text of at most `max` characters.
    pub fn text(&mut self, name: &str, max: usize) -> Answer<Option<String>> {
        let text = self.one(name)?;
        check_text(text.as_deref(), &format!("/{name}"), max)?;
        Ok(text)
    }

    fn finish(self) -> Answer<()> {
        match self.pairs.first() {
            None => Ok(()),
            Some((name, _)) => Err(refused(&shortened(name), "is no query parameter of this path")),
        }
    }
}

/// A refused query parameter.
pub(super) fn refused(name: &str, detail: impl Into<String>) -> Problem {
    Problem::field(format!("/{name}"), detail)
}

/// Refuses what can be no event type, and more of them than one request may name.
pub(super) fn check_types(types: &[String], pointer: impl Fn(usize) -> String) -> Answer<()> {
    if types.len() > MAX_TYPES {
        return Err(Problem::field(pointer(MAX_TYPES), format!("is one too many: at most {MAX_TYPES} types")));
    }
    for (index, event_type) in types.iter().enumerate() {
        check_event_type(event_type).map_err(|detail| Problem::field(pointer(index), detail))?;
    }
    Ok(())
}

/// Refuses control characters, which no database keeps and no log should show, and what is too long.
pub(super) fn check_text(text: Option<&str>, pointer: &str, max: usize) -> Answer<()> {
    let Some(text) = text else { return Ok(()) };
    if text.chars().count() > max {
        return Err(Problem::field(pointer, format!("must be at most {max} characters")));
    }
    if text.chars().any(char::is_control) {
        return Err(Problem::field(pointer, "must not contain control characters"));
    }
    Ok(())
}

/// A UUID in its one usual form, hyphens included.
pub(super) fn parse_uuid(text: &str) -> Option<Uuid> {
    if text.len() == 36 { Uuid::try_parse(text).ok() } else { None }
}

/// Digits only; a number too large for 64 bits counts as the largest.
fn whole_number(text: &str) -> Option<u64> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| text.parse().unwrap_or(u64::MAX))
}

fn decode(text: &str) -> Answer<String> {
    let spaced = text.replace('+', " ");
    match percent_decode_str(&spaced).decode_utf8() {
        Ok(decoded) if !decoded.contains('\0') => Ok(decoded.into_owned()),
        Ok(_) => Err(Problem::invalid("the query string contains a NUL character")),
        Err(_) => Err(Problem::invalid("the query string is not UTF-8")),
    }
}

fn shortened(name: &str) -> String {
    name.chars().take(100).collect()
}

#[cfg(test)]
mod tests {
    use super::super::problem::Code;
    use super::*;

    struct Example {
        limit: u32,
        types: Vec<String>,
        subject: Option<String>,
    }

    impl FromQuery for Example {
        fn from_query(query: &mut QueryReader) -> Answer<Self> {
            let subject = query.text("subject", 5)?;
            Ok(Self { limit: query.limit()?, types: query.types("type")?, subject })
        }
    }

    #[test]
    fn parameters_are_decoded_and_may_repeat_where_they_are_lists() {
        let example: Example = read("type=a&subject=a%2Fb+c&type=b.c&limit=7&outbox=default&").unwrap();
        assert_eq!((example.limit, example.types), (7, vec!["a".to_owned(), "b.c".to_owned()]));
        assert_eq!(example.subject.as_deref(), Some("a/b c"));
    }

    #[test]
    fn a_high_limit_is_lowered_silently() {
        for (query, limit) in [("", 50), ("limit=200", 200), ("limit=201", 200), ("limit=99999999999999999999", 200)] {
            assert_eq!(read::<Example>(query).unwrap().limit, limit, "{query}");
        }
    }

    #[test]
    fn what_is_wrong_is_refused() {
        for query in [
            "limit=0",
            "limit=-1",
            "limit=",
            "limit=x",
            "limit=1.0",
            "limit=%2B1",
            "limit=1&limit=1",
            "subject=a&subject=a",
            "foo=1",
            "type=",
            "type=a%20b",
            "subject=%00",
            "subject=%ff",
            "subject=abcdef",
            "subject=%0a",
            "Limit=1",
        ] {
            assert_eq!(read::<Example>(query).err().map(|problem| problem.code), Some(Code::InvalidRequest), "{query}");
        }
        let types = vec!["type=a"; MAX_TYPES].join("&");
        assert!(read::<Example>(&types).is_ok());
        assert!(read::<Example>(&format!("{types}&type=a")).is_err());
        assert!(read::<Example>("outbox=x&outbox=x").is_err() && outbox_of("outbox=x&outbox=x").is_err());
    }

    #[test]
    fn the_outbox_is_read_beside_everything_else() {
        assert_eq!(outbox_of("limit=5&outbox=x").unwrap().as_deref(), Some("x"));
        assert_eq!(outbox_of("").unwrap(), None);
        assert!(read::<Example>("outbox=x").is_ok());
    }

    #[test]
    fn a_uuid_has_one_form() {
        assert!(parse_uuid("0197a000-0000-7000-8000-000000000001").is_some());
        for text in ["0197a000000070008000000000000001", "{0197a000-0000-7000-8000-000000000001}", "", "x"] {
            assert_eq!(parse_uuid(text), None, "{text}");
        }
    }
}
