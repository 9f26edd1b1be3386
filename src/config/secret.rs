//! Settings that hold secrets: readable by this program, masked in everything that it prints.

use std::fmt;

use serde::{Deserialize, Serialize, Serializer};

/// What stands in the place of a secret.
pub(super) const MASK: &str = "***";

/// Parameters of a URL's query that are known to hold no secret.
const OPEN_PARAMETERS: [&str; 4] = ["application_name", "cache", "mode", "sslmode"];

/// Makes a text setting that is masked by `$mask` wherever it is shown.
macro_rules! masked_text {
    ($(#[$doc:meta])* $name:ident, $mask:expr) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, Deserialize)]
        #[serde(transparent)]
        pub struct $name(String);

        impl $name {
            /// The text itself. Never to be printed.
            #[must_use]
            pub fn reveal(&self) -> &str {
                &self.0
            }

            /// The text as it may be shown.
            #[must_use]
            pub fn masked(&self) -> String {
                let mask: fn(&str) -> String = $mask;
                mask(&self.0)
            }
        }

        impl From<String> for $name {
            fn from(text: String) -> Self {
                Self(text)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str(&self.masked())
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(&self.masked())
            }
        }
    };
}

masked_text! {
    /// A token or a signing secret.
    Secret, |_| MASK.to_owned()
}
masked_text! {
    /// The value of a route's header, which may be a credential.
    HeaderValue, |_| MASK.to_owned()
}
masked_text! {
    /// A database's URL, which may hold a password.
    DatabaseUrl, mask_url
}
masked_text! {
    /// A receiver's URL, which may hold credentials.
    RouteUrl, mask_url
}

impl DatabaseUrl {
    /// The file that is used when nobody says otherwise.
    pub(super) const DEFAULT: &'static str = "sqlite://outboxd.db";
}

impl Default for DatabaseUrl {
    fn default() -> Self {
        Self(Self::DEFAULT.to_owned())
    }
}

/// A URL without its password and without the values of its query, except those that are known to be open.
#[must_use]
pub fn mask_url(url: &str) -> String {
    let (base, query) = url.split_once('?').map_or((url, None), |(base, query)| (base, Some(query)));
    // A password may hold an unescaped question mark: what follows the last "@" is then the only part that is safe.
    if query.is_some_and(|query| query.contains('@')) {
        return mask_user_info(url);
    }
    let base = mask_user_info(base);
    match query {
        None => base,
        Some(query) => format!("{base}?{}", query.split('&').map(mask_parameter).collect::<Vec<_>>().join("&")),
    }
}

fn mask_user_info(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return MASK.to_owned() };
    let Some((user_info, place)) = rest.rsplit_once('@') else { return url.to_owned() };
    match user_info.split_once(':') {
        Some((user, _)) => format!("{scheme}://{user}:{MASK}@{place}"),
        // Postgres' user name is no secret; a lone user part of an HTTP URL often is a token.
        None if scheme.starts_with("postgres") => url.to_owned(),
        None => format!("{scheme}://{MASK}@{place}"),
    }
}

fn mask_parameter(parameter: &str) -> String {
    match parameter.split_once('=') {
        Some((name, _)) if !OPEN_PARAMETERS.contains(&name) => format!("{name}={MASK}"),
        Some(_) => parameter.to_owned(),
        None => MASK.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_and_query_values_of_urls_are_masked() {
        for (url, masked) in [
            ("postgres://app:s3cret@db:5432/app", "postgres://app:***@db:5432/app"),
            ("postgres://app:s/3?c@ret@db/app", "postgres://app:***@db/app"),
            ("postgres://app@db/app?sslmode=require&password=x", "postgres://app@db/app?sslmode=require&password=***"),
            ("https://token@hooks.example.com/in", "https://***@hooks.example.com/in"),
            ("https://hooks.example.com/in?key=abc&abc", "https://hooks.example.com/in?key=***&***"),
            ("sqlite://outboxd.db?mode=rwc", "sqlite://outboxd.db?mode=rwc"),
            ("no url at all", "***"),
        ] {
            assert_eq!(mask_url(url), masked);
        }
    }

    #[test]
    fn a_secret_shows_itself_nowhere() {
        let secret = Secret::from("s3cret".to_owned());
        assert_eq!(format!("{secret:?} {}", secret.masked()), "*** ***");
        assert_eq!(serde_json::to_string(&secret).unwrap(), "\"***\"");
    }
}
