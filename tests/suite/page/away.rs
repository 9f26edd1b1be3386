//! The page while what it reads from is gone: it says so, keeps the last figures with their age, and recovers alone.

use super::browser::Browser;
use super::site::Site;
use crate::support::postgres::Server;

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_gone_is_said_and_it_recovers_alone() {
    let mut site = Site::start().await;
    let browser = Browser::start().await;
    site.dead_letter("invoice.created", "invoice/42", "no");
    site.run();
    browser.open(&site.url()).await;
    browser.shows("#verdict-headline", "1 was given up").await;
    site.stop();
    browser.shows("#verdict-headline", "The server does not answer").await;
    browser.shows("#freshness", "old").await;
    browser.shows("#lanes", "invoice.created").await;
    site.begin();
    browser.shows("#verdict-headline", "1 was given up").await;
    browser.shows("#freshness", "just now").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_database_that_is_gone_is_said_and_it_recovers_alone() {
    let mut server = Server::start().await;
    let site = Site::over(server.url()).await;
    let browser = Browser::start().await;
    site.run();
    browser.open(&site.url()).await;
    browser.shows("#verdict-headline", "Events flow").await;
    server.stop();
    browser.shows("#verdict-headline", "The database is away").await;
    browser.shows("#verdict-text", "Nothing is lost").await;
    server.start_again();
    browser.shows("#verdict-headline", "Events flow").await;
}
