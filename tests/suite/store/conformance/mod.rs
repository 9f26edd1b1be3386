//! The promises that hold for every outbox alike: our own tables on both databases, and tables that were there before.
//!
//! What a table has no column for, a [`Ground`] says; each test then asks for what is promised instead.

mod bulk;
mod claiming;
mod enqueueing;

mod ground;
mod listing;
mod operating;
mod reaping;
mod settling;
mod sqlite;

use outboxd::event::{EventId, NewEvent, Status};
use outboxd::outcome::Change;

use self::ground::Ground;
use super::{LEASE, bury, retry, settlement, somebody};

/// One test on every table: `on_every_table!(its_sentence, |ground| { … });`
macro_rules! on_every_table {
    ($name:ident, |$ground:ident| $body:block) => {
        mod $name {
            use super::*;

            async fn check($ground: Ground) {
                $body
            }

            #[tokio::test(flavor = "multi_thread")]
            async fn our_own_on_sqlite() {
                check(Ground::own_sqlite().await).await;
            }

            #[tokio::test(flavor = "multi_thread")]
            async fn our_own_on_postgres() {
                check(Ground::own_postgres().await).await;
            }

            #[tokio::test(flavor = "multi_thread")]
            async fn domain_events_of_prisma() {
                check(Ground::domain_events().await).await;
            }

            #[tokio::test(flavor = "multi_thread")]
            async fn domain_events_of_prisma_behind_a_pooler() {
                check(Ground::pooled_domain_events().await).await;
            }

            #[tokio::test(flavor = "multi_thread")]
            async fn notifications_of_prisma() {
                check(Ground::notifications().await).await;
            }

            #[tokio::test(flavor = "multi_thread")]
            async fn webhooks_of_prisma_all_of_one_type() {
                check(Ground::webhooks().await).await;
            }

            #[tokio::test(flavor = "multi_thread")]
            async fn outbox_event_of_drizzle() {
                check(Ground::outbox_event().await).await;
            }

            #[tokio::test(flavor = "multi_thread")]
            async fn prisma_on_sqlite() {
                check(Ground::prisma_on_sqlite().await).await;
            }

            #[tokio::test(flavor = "multi_thread")]
            async fn numbered_events_with_current_timestamps_on_sqlite() {
                check(Ground::numbered_on_sqlite().await).await;
            }

            #[tokio::test(flavor = "multi_thread")]
            async fn whole_seconds_and_claim_numbers_on_sqlite() {
                check(Ground::seconds_on_sqlite().await).await;
            }

            #[tokio::test(flavor = "multi_thread")]
            async fn iso_instants_all_of_one_type_on_sqlite() {
                check(Ground::iso_on_sqlite().await).await;
            }
        }
    };
}
use on_every_table;
