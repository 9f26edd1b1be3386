//! How the page's files are served.

use super::site::{Site, TOKENS};

const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; \
                      trusted-types 'none'";

fn value<'a>(head: &'a str, name: &str) -> &'a str {
    let prefix = format!("{name}: ");
    head.lines().find_map(|line| line.strip_prefix(&prefix)).unwrap_or_else(|| panic!("no {name} in {head}"))
}

#[tokio::test(flavor = "multi_thread")]
async fn every_file_of_the_page_comes_with_the_strict_policy_and_without_a_token() {
    let site = Site::with_settings(TOKENS).await;
    for (path, content_type) in
        [("/", "text/html"), ("/page/page.css", "text/css"), ("/page/main.js", "text/javascript")]
    {
        let head = site.head(path);
        assert!(head.starts_with("http/1.1 200"), "{path}: {head}");
        assert!(value(&head, "content-type").starts_with(content_type), "{head}");
        assert_eq!(value(&head, "content-security-policy"), POLICY, "{path}");
        assert_eq!(value(&head, "referrer-policy"), "no-referrer");
        assert_eq!(value(&head, "cache-control"), "no-cache");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_answer_forbids_guessing_its_type() {
    let site = Site::with_settings(TOKENS).await;
    for path in ["/", "/page/main.js", "/page/nothing.js", "/livez", "/openapi.yaml", "/v1/stats", "/v1/nothing"] {
        assert_eq!(value(&site.head(path), "x-content-type-options"), "nosniff", "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_module_that_a_module_imports_is_served() {
    let site = Site::start().await;
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/api/page");
    let mut seen = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if path.extension().is_some_and(|extension| extension == "js" || extension == "css") {
            seen += 1;
            let head = site.head(&format!("/page/{name}"));
            assert!(head.starts_with("http/1.1 200"), "{name} is not among the files of the page");
        }
    }
    assert!(seen > 15);
}
