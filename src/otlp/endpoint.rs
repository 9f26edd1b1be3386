//! Where a collector is.

use std::fmt;
use std::str::FromStr;

use reqwest::Url;

/// The path under which collectors take spans over HTTP.
const PATH: &str = "v1/traces";

/// The base URL of a collector.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    spans: Url,
}

/// A text that is no such URL. The text itself is not repeated: it might hold a password.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{problem}; valid is the base URL of an OTLP/HTTP collector, such as \"http://collector:4318\"")]
pub struct EndpointProblem {
    problem: &'static str,
}

impl FromStr for Endpoint {
    type Err = EndpointProblem;

    fn from_str(text: &str) -> Result<Self, EndpointProblem> {
        let refuse = |problem| Err(EndpointProblem { problem });
        let Ok(mut url) = Url::parse(text) else {
            return refuse("is no absolute URL");
        };
        if !matches!(url.scheme(), "http" | "https") {
            return refuse("must begin with http:// or https://");
        }
        if url.host_str().is_none_or(str::is_empty) {
            return refuse("has no host");
        }
        if !url.username().is_empty() || url.password().is_some() {
            return refuse("holds credentials");
        }
        if url.query().is_some() || url.fragment().is_some() {
            return refuse("has a query or a fragment");
        }
        let path = format!("{}/{PATH}", url.path().trim_end_matches('/'));
        url.set_path(&path);
        Ok(Self { spans: url })
    }
}

impl Endpoint {
    /// Where spans are posted.
    pub(super) fn spans(&self) -> &Url {
        &self.spans
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.spans.fmt(formatter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_go_below_the_base_url() {
        for (text, expected) in [
            ("http://collector:4318", "http://collector:4318/v1/traces"),
            ("http://collector:4318/", "http://collector:4318/v1/traces"),
            ("https://example.com/otlp/", "https://example.com/otlp/v1/traces"),
        ] {
            assert_eq!(text.parse::<Endpoint>().unwrap().to_string(), expected);
        }
    }

    #[test]
    fn what_is_no_base_url_is_refused_without_repeating_it() {
        for text in
            ["", "collector:4318", "grpc://collector:4317", "http://", "http://u:hunter2@c", "http://c?a=hunter2"]
        {
            let error = text.parse::<Endpoint>().unwrap_err().to_string();
            assert!(error.contains("http://collector:4318") && !error.contains("hunter2"), "{text}: {error}");
        }
    }
}
