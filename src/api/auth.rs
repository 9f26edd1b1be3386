//! Who may do what: bearer tokens, each with a name and scopes.
//!
//! The token is judged before anything else of a request, its body included, is read. Of a secret only its digest is
//! kept; a presented token is compared with every configured one in constant time. With no token configured every
//! request may do everything; the settings then keep the listener on loopback.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use ring::hmac;

use super::ApiState;
use super::problem::{Code, Problem};
use crate::metrics::{AuthFailure, auth_failed};
use crate::store::Actor;

/// What a token may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scope {
    /// Enqueue events.
    Enqueue,
    /// Process a batch or one event, and read runs.
    Process,
    /// Read everything but payloads.
    Read,
    /// See payloads too.
    Payload,
    /// Requeue, discard, cancel.
    Operate,
    /// Read metrics.
    Metrics,
}

impl Scope {
    /// Every scope.
    pub const ALL: [Self; 6] = [Self::Enqueue, Self::Process, Self::Read, Self::Payload, Self::Operate, Self::Metrics];

    /// The word in settings and answers.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Enqueue => "enqueue",
            Self::Process => "process",
            Self::Read => "read",
            Self::Payload => "payload",
            Self::Operate => "operate",
            Self::Metrics => "metrics",
        }
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

/// The text names no scope.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown scope {0:?}: valid are enqueue, process, read, payload, operate, metrics")]
pub struct UnknownScope(String);

impl FromStr for Scope {
    type Err = UnknownScope;

    fn from_str(text: &str) -> Result<Self, UnknownScope> {
        Self::ALL.into_iter().find(|scope| scope.as_str() == text).ok_or_else(|| UnknownScope(text.to_owned()))
    }
}

/// A set of scopes.
pub type Scopes = BTreeSet<Scope>;

/// A token as it is kept: its secret can be recognised but not shown.
#[derive(Clone)]
pub struct Token {
    name: String,
    scopes: Scopes,
    digest: hmac::Tag,
}

/// Why a token is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("token {name:?} has an empty secret: everybody could present it")]
pub struct EmptySecret {
    name: String,
}

/// What is authenticated under the secret as the key: the tag then is a digest of the secret.
const DIGEST_TEXT: &[u8] = b"outboxd bearer token";

impl Token {
    /// A token with this secret, which is not kept.
    ///
    /// # Errors
    /// An empty secret.
    pub fn new(name: impl Into<String>, scopes: Scopes, secret: &str) -> Result<Self, EmptySecret> {
        let name = name.into();
        if secret.is_empty() {
            return Err(EmptySecret { name });
        }
        let key = hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes());
        Ok(Self { name, scopes, digest: hmac::sign(&key, DIGEST_TEXT) })
    }

    /// Its name, for logs.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What it may do.
    #[must_use]
    pub fn scopes(&self) -> &Scopes {
        &self.scopes
    }

    fn is(&self, presented: &hmac::Key) -> bool {
        hmac::verify(presented, DIGEST_TEXT, self.digest.as_ref()).is_ok()
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Token").field("name", &self.name).field("scopes", &self.scopes).finish_non_exhaustive()
    }
}

/// Who makes a request, as far as the interface cares.
#[derive(Debug, Clone)]
pub(super) struct Caller {
    name: String,
    scopes: Scopes,
}

impl Caller {
    /// Whether the caller has this scope.
    pub fn may(&self, scope: Scope) -> bool {
        self.scopes.contains(&scope)
    }

    /// The token's name, for the log of what operators do.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Who changes an event, for its own log.
    pub fn actor(&self, note: Option<&str>) -> Actor {
        Actor::new(&self.name).because(note)
    }

    /// Somebody with these scopes, for tests.
    #[cfg(test)]
    pub fn example(scopes: &[Scope]) -> Self {
        Self { name: "example".to_owned(), scopes: scopes.iter().copied().collect() }
    }

    /// Whoever calls while there are no tokens: may do everything.
    fn anybody(name: &str) -> Self {
        Self { name: name.to_owned(), scopes: Scope::ALL.into() }
    }

    /// Finds the token that the request presents.
    fn identify(headers: &HeaderMap, tokens: &[Token]) -> Result<Self, Problem> {
        let unauthorized = |detail: &'static str| Problem::new(Code::Unauthorized, detail);
        let Some(presented) = bearer(headers) else {
            auth_failed(AuthFailure::Missing);
            return Err(unauthorized(
                "no bearer token was sent: the header must be `Authorization: Bearer <token>`, once",
            ));
        };
        let presented = hmac::Key::new(hmac::HMAC_SHA256, presented);
        // All tokens are compared, so that the time taken does not tell which one came close.
        let matching = tokens.iter().fold(None, |found, token| if token.is(&presented) { Some(token) } else { found });
        let Some(token) = matching else {
            auth_failed(AuthFailure::Unknown);
            return Err(unauthorized("the bearer token is unknown"));
        };
        Ok(Self { name: token.name.clone(), scopes: token.scopes.clone() })
    }
}

/// The token of the one `Authorization: Bearer <token>`; the scheme's case does not matter.
fn bearer(headers: &HeaderMap) -> Option<&[u8]> {
    let mut values = headers.get_all(header::AUTHORIZATION).iter();
    let value = values.next()?.as_bytes();
    // Of two, a proxy in front may have judged the other one.
    if values.next().is_some() {
        return None;
    }
    let (scheme, token) = value.split_at_checked(7)?;
    let token = token.trim_ascii();
    (scheme.eq_ignore_ascii_case(b"bearer ") && !token.is_empty()).then_some(token)
}

/// The tokens, and the scopes of which a path demands one.
#[derive(Clone)]
pub(super) struct Guard {
    pub state: ApiState,
    pub any_of: &'static [Scope],
}

/// Lets a request pass whose token has one of the scopes, and notes the [`Caller`] for the handler.
pub(super) async fn authorize(State(guard): State<Guard>, mut request: Request, next: Next) -> Response {
    let settings = guard.state.settings();
    let caller = if settings.tokens.is_empty() {
        Caller::anybody(&settings.nobody)
    } else {
        match Caller::identify(request.headers(), &settings.tokens) {
            Ok(caller) => caller,
            Err(problem) => return problem.into_response(),
        }
    };
    if !guard.any_of.iter().any(|scope| caller.may(*scope)) {
        auth_failed(AuthFailure::Scope);
        let needed: Vec<&str> = guard.any_of.iter().map(|scope| scope.as_str()).collect();
        let detail = format!("the token lacks the scope `{}`", needed.join("` or `"));
        return Problem::new(Code::Forbidden, detail).into_response();
    }
    request.extensions_mut().insert(caller);
    next.run(request).await
}

#[cfg(test)]
mod tests {
    use super::*;

    fn presented(value: &str) -> HeaderMap {
        HeaderMap::from_iter([(header::AUTHORIZATION, value.parse().unwrap())])
    }

    fn tokens() -> Vec<Token> {
        let token = |name, scope, secret| Token::new(name, Scopes::from([scope]), secret).unwrap();
        vec![token("old", Scope::Process, "s3cret-1"), token("new", Scope::Read, "s3cret-2")]
    }

    #[test]
    fn several_tokens_are_valid_at_once() {
        for (secret, name) in [("s3cret-1", "old"), ("s3cret-2", "new")] {
            let caller = Caller::identify(&presented(&format!("Bearer {secret}")), &tokens()).unwrap();
            assert_eq!(caller.name(), name);
        }
    }

    #[test]
    fn a_missing_and_a_wrong_token_are_told_apart_by_the_detail() {
        let detail = |headers: &HeaderMap| {
            let problem = Caller::identify(headers, &tokens()).unwrap_err();
            assert_eq!(problem.code, Code::Unauthorized);
            serde_json::to_value(problem.body("r")).unwrap()["detail"].to_string()
        };
        assert_ne!(detail(&HeaderMap::new()), detail(&presented("Bearer s3cret-")));
        for value in ["Bearer s3cret-11", "Bearer S3CRET-1", "Basic s3cret-1", "Bearer", "Bearer ", "s3cret-1"] {
            assert!(Caller::identify(&presented(value), &tokens()).is_err(), "{value}");
        }
    }

    #[test]
    fn two_authorization_headers_are_none() {
        let mut headers = presented("bearer s3cret-1");
        assert!(Caller::identify(&headers, &tokens()).is_ok());
        headers.append(header::AUTHORIZATION, "Bearer s3cret-1".parse().unwrap());
        assert!(Caller::identify(&headers, &tokens()).is_err());
    }

    #[test]
    fn a_token_never_shows_its_secret() {
        assert_eq!(format!("{:?}", tokens()[0]), "Token { name: \"old\", scopes: {Process}, .. }");
    }

    #[test]
    fn an_empty_secret_is_no_token() {
        assert!(Token::new("empty", Scopes::new(), "").is_err());
    }

    #[test]
    fn without_tokens_everybody_may_do_everything() {
        let caller = Caller::anybody("somebody");
        assert_eq!(caller.actor(None).name, "somebody");
        assert!(Scope::ALL.into_iter().all(|scope| caller.may(scope)));
    }
}
