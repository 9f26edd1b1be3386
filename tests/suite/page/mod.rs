//! The dashboard in a real browser, served by the real program.

mod away;
mod browser;
mod files;
mod hostile;
mod journey;
mod keyboard;
mod looks;
mod many;
mod outboxes;
mod rules;
mod site;
mod tokens;
mod webdriver;
