//! A TypeScript backend with Prisma: three tables, quoted camelCase names, an enum type for each table's status.

use serde_json::json;

use super::*;
use crate::support::receiver::Reply;

pub const TABLES: &str = r#"
CREATE TYPE "DomainEventStatus" AS ENUM ('PENDING', 'PROCESSING', 'DONE', 'FAILED');
CREATE TYPE "WebhookDeliveryStatus" AS ENUM ('PENDING', 'PROCESSING', 'DELIVERED', 'FAILED');
CREATE TYPE "NotificationDeliveryStatus" AS ENUM ('PENDING', 'PROCESSING', 'DELIVERED', 'FAILED', 'SKIPPED');
CREATE TABLE "DomainEvent" (
    "id" TEXT NOT NULL PRIMARY KEY, "type" TEXT NOT NULL, "payload" JSONB NOT NULL, "correlationId" TEXT,
    "status" "DomainEventStatus" NOT NULL DEFAULT 'PENDING', "attempts" INTEGER NOT NULL DEFAULT 0,
    "availableAt" TIMESTAMP(3) NOT NULL DEFAULT CURRENT_TIMESTAMP, "claimedAt" TIMESTAMP(3), "lastError" TEXT,
    "occurredAt" TIMESTAMP(3) NOT NULL DEFAULT CURRENT_TIMESTAMP, "processedAt" TIMESTAMP(3));
CREATE INDEX "DomainEvent_status_availableAt_idx" ON "DomainEvent" ("status", "availableAt");
CREATE TABLE "WebhookDelivery" (
    "id" TEXT NOT NULL PRIMARY KEY, "payload" JSONB NOT NULL,
    "status" "WebhookDeliveryStatus" NOT NULL DEFAULT 'PENDING', "attempts" INTEGER NOT NULL DEFAULT 0,
    "availableAt" TIMESTAMP(3) NOT NULL DEFAULT CURRENT_TIMESTAMP, "claimedAt" TIMESTAMP(3), "lastError" TEXT,
    "createdAt" TIMESTAMP(3) NOT NULL DEFAULT CURRENT_TIMESTAMP, "deliveredAt" TIMESTAMP(3));
CREATE INDEX "WebhookDelivery_status_availableAt_idx" ON "WebhookDelivery" ("status", "availableAt");
CREATE TABLE "NotificationDelivery" (
    "id" TEXT NOT NULL PRIMARY KEY, "kind" TEXT NOT NULL, "payload" JSONB NOT NULL,
    "status" "NotificationDeliveryStatus" NOT NULL DEFAULT 'PENDING', "attempts" INTEGER NOT NULL DEFAULT 0,
    "availableAt" TIMESTAMP(3) NOT NULL DEFAULT CURRENT_TIMESTAMP, "claimedAt" TIMESTAMP(3), "lastError" TEXT,
    "createdAt" TIMESTAMP(3) NOT NULL DEFAULT CURRENT_TIMESTAMP, "deliveredAt" TIMESTAMP(3));
CREATE INDEX "NotificationDelivery_status_availableAt_idx" ON "NotificationDelivery" ("status", "availableAt");
"#;

pub(super) const SETTINGS: &str = r#"
default_outbox = false
[[outbox]]
name = "domain"
table = 'public."DomainEvent"'
order_by = "occurredAt"
max_attempts = 3
lease = "5m"
columns = { id = "id", event_type = "type", payload = "payload", status = "status", attempts = "attempts", available_at = "availableAt", locked_at = "claimedAt", created_at = "occurredAt", processed_at = "processedAt", last_error = "lastError", subject = "correlationId" }
status = { pending = "PENDING", processing = "PROCESSING", completed = "DONE", dead_letter = "FAILED" }
[[outbox]]
name = "webhooks"
table = '"WebhookDelivery"'
fixed_type = "webhook"
order_by = "createdAt"
max_attempts = 3
lease = "5m"
columns = { id = "id", payload = "payload", status = "status", attempts = "attempts", available_at = "availableAt", locked_at = "claimedAt", created_at = "createdAt", processed_at = "deliveredAt", last_error = "lastError" }
status = { pending = "PENDING", processing = "PROCESSING", completed = "DELIVERED", dead_letter = "FAILED" }
[[outbox]]
name = "notifications"
table = 'public."NotificationDelivery"'
order_by = "createdAt"
max_attempts = 3
lease = "5m"
columns = { id = "id", event_type = "kind", payload = "payload", status = "status", attempts = "attempts", available_at = "availableAt", locked_at = "claimedAt", created_at = "createdAt", processed_at = "deliveredAt", last_error = "lastError" }
status = { pending = "PENDING", processing = "PROCESSING", completed = "DELIVERED", dead_letter = "FAILED", skipped = "SKIPPED" }
[[route]]
name = "domain"
outbox = "domain"
types = ["*"]
url = "{receiver}"
timeout = "20s"
[[route]]
name = "webhooks"
outbox = "webhooks"
types = ["*"]
url = "{receiver}"
timeout = "20s"
[[route]]
name = "notifications"
outbox = "notifications"
types = ["*"]
url = "{receiver}"
timeout = "20s"
"#;

/// As Prisma's client would: ids and instants are the client's, rounded to its milliseconds.
const INSERTS: &str = r#"
INSERT INTO "DomainEvent" ("id", "type", "payload", "correlationId", "status", "attempts", "availableAt", "occurredAt")
SELECT 'clx' || n, 'user.created', jsonb_build_object('n', n), 'order-' || n % 2, 'PENDING', 0,
       date_trunc('milliseconds', now() + interval '999 microseconds'), now() FROM generate_series(1, 20) AS n;
INSERT INTO "WebhookDelivery" ("id", "payload") SELECT 'whd' || n, '{"a": [1, 2]}' FROM generate_series(1, 20) AS n;
INSERT INTO "NotificationDelivery" ("id", "kind", "payload") SELECT 'ntf' || n, 'mail', '{}' FROM generate_series(1, 20) AS n;
"#;

#[tokio::test(flavor = "multi_thread")]
async fn three_tables_are_drained_by_one_call_and_each_by_its_name() {
    let world = World::new(TABLES, SETTINGS).await;
    world.sql(INSERTS).await;
    let service = world.serve();
    let report = service.process("&outbox=webhooks");
    assert_eq!((&report["completed"], &report["more"]), (&json!(20), &json!(false)), "{report}");
    assert_eq!(world.ask(r#"SELECT count(*) FROM "DomainEvent" WHERE "status" = 'PENDING'"#).await, "20");
    let report = service.process("");
    assert_eq!((&report["claimed"], &report["completed"]), (&json!(40), &json!(40)), "{report}");
    assert_eq!((&report["stop_reason"], &report["more"]), (&json!("drained"), &json!(false)), "{report}");
    let ended = r#"SELECT count(*) FROM (
        SELECT 1 FROM "DomainEvent" WHERE "status" = 'DONE' AND "processedAt" IS NOT NULL AND "claimedAt" IS NULL AND "attempts" = 0
        UNION ALL SELECT 1 FROM "WebhookDelivery" WHERE "status" = 'DELIVERED' AND "deliveredAt" IS NOT NULL AND "claimedAt" IS NULL
        UNION ALL SELECT 1 FROM "NotificationDelivery" WHERE "status" = 'DELIVERED' AND "deliveredAt" IS NOT NULL AND "claimedAt" IS NULL
    ) AS ended"#;
    assert_eq!(world.ask(ended).await, "60");
    let received = world.receiver.received();
    let mut ids: Vec<&str> = received.iter().map(|request| request.header("webhook-id").unwrap()).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!((received.len(), ids.len()), (60, 60), "each once, by its own id");
    assert!(ids.contains(&"clx7") && ids.contains(&"whd20"), "{ids:?}");
    let event = service.call("GET", "/v1/events/clx7?outbox=domain", "", 200);
    assert_eq!(
        (&event["id"], &event["outbox"], &event["status"]),
        (&json!("clx7"), &json!("domain"), &json!("completed"))
    );
    let unknown = service.call("GET", "/v1/events/clx7?outbox=nowhere", "", 404);
    assert_eq!(unknown["code"], "outbox-not-found");
    assert!(unknown["detail"].as_str().unwrap().contains("domain"), "{unknown}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stale_claim_goes_back_or_fails_at_the_limit_and_the_report_says_which() {
    let world = World::new(TABLES, SETTINGS).await;
    world
        .sql(
            r#"INSERT INTO "DomainEvent" ("id", "type", "payload", "status", "attempts", "claimedAt") VALUES
               ('again', 'a', '{}', 'PROCESSING', 0, (now() AT TIME ZONE 'UTC') - interval '6 minutes'),
               ('last', 'a', '{}', 'PROCESSING', 2, (now() AT TIME ZONE 'UTC') - interval '6 minutes'),
               ('held', 'a', '{}', 'PROCESSING', 0, (now() AT TIME ZONE 'UTC') - interval '4 minutes')"#,
        )
        .await;
    let service = world.serve();
    let report = service.process("");
    assert_eq!((&report["reaped"], &report["completed"]), (&json!(2), &json!(1)), "{report}");
    assert_eq!(report["dead_letter_ids"], json!(["last"]), "{report}");
    let standing = r#"SELECT string_agg("id" || ':' || "status"::text || ':' || "attempts", ' ' ORDER BY "id") FROM "DomainEvent""#;
    assert_eq!(world.ask(standing).await, "again:DONE:1 held:PROCESSING:0 last:FAILED:3");
    assert_eq!(world.ask(r#"SELECT "lastError" FROM "DomainEvent" WHERE "id" = 'last'"#).await, "claim expired");
}

#[tokio::test(flavor = "multi_thread")]
async fn skip_and_defer_are_what_the_table_has_for_them() {
    let world = World::new(TABLES, SETTINGS).await;
    world.receiver.then(Reply::status(200).header("outbox-outcome", "skip"));
    world.sql(r#"INSERT INTO "NotificationDelivery" ("id", "kind", "payload") VALUES ('n', 'mail', '{}')"#).await;
    let service = world.serve();
    let report = service.process("&outbox=notifications");
    assert_eq!(report["skipped"], 1, "{report}");
    assert_eq!(world.ask(r#"SELECT "status" FROM "NotificationDelivery""#).await, "SKIPPED");

    world.receiver.then(Reply::status(503).header("outbox-outcome", "defer"));
    world.sql(r#"INSERT INTO "NotificationDelivery" ("id", "kind", "payload") VALUES ('m', 'mail', '{}')"#).await;
    let report = service.process("&outbox=notifications");
    assert_eq!(report["deferred"], 1, "{report}");
    let standing = r#"SELECT "status"::text || "attempts" || ("availableAt" > now() AT TIME ZONE 'UTC')
                      FROM "NotificationDelivery" WHERE "id" = 'm'"#;
    assert_eq!(world.ask(standing).await, "PENDING0true");

    // A table without the label: the event is done, and the reason kept.
    world.receiver.then(Reply::status(200).header("outbox-outcome", "skip"));
    world.sql(r#"INSERT INTO "DomainEvent" ("id", "type", "payload") VALUES ('d', 'a', '{}')"#).await;
    service.process("&outbox=domain");
    assert_eq!(world.ask(r#"SELECT "status"::text || ("lastError" IS NOT NULL) FROM "DomainEvent""#).await, "DONEtrue");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_for_one_subject_claims_only_its_events() {
    let world = World::new(TABLES, SETTINGS).await;
    world.sql(INSERTS).await;
    let service = world.serve();
    let report = service.process("&outbox=domain&subject=order-1");
    assert_eq!((&report["completed"], &report["more"]), (&json!(10), &json!(false)), "{report}");
    let left = r#"SELECT string_agg(DISTINCT "correlationId", ',') FROM "DomainEvent" WHERE "status" = 'PENDING'"#;
    assert_eq!(world.ask(left).await, "order-0");
}

#[tokio::test(flavor = "multi_thread")]
async fn failures_are_counted_up_to_the_setting_then_listed_requeued_and_delivered() {
    let world = World::new(TABLES, SETTINGS).await;
    world.sql(r#"INSERT INTO "WebhookDelivery" ("id", "payload", "attempts") VALUES ('w', '{}', 2)"#).await;
    world.receiver.then(Reply::status(500));
    let service = world.serve();
    let report = service.process("");
    assert_eq!(report["dead_letter_ids"], json!(["w"]), "{report}");
    assert_eq!(world.ask(r#"SELECT "status"::text || "attempts" FROM "WebhookDelivery""#).await, "FAILED3");
    let page = service.call("GET", "/v1/dead-letters?outbox=webhooks", "", 200);
    assert_eq!((&page["data"][0]["id"], &page["data"][0]["outbox"]), (&json!("w"), &json!("webhooks")), "{page}");
    let refused = service.call("POST", "/v1/dead-letters/w/discard?outbox=webhooks", "", 409);
    assert_eq!(refused["event_status"], "dead_letter", "this table has no label for it: {refused}");
    let event = service.call("POST", "/v1/dead-letters/w/requeue?outbox=webhooks", "", 200);
    assert_eq!((&event["status"], &event["attempts"]), (&json!("pending"), &json!(0)), "{event}");
    let done = service.call("POST", "/v1/events/w/process?outbox=webhooks", "", 200);
    assert_eq!(done["outcome"], "completed", "{done}");
    assert_eq!(world.ask(r#"SELECT "status"::text || "attempts" FROM "WebhookDelivery""#).await, "DELIVERED0");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_program_loses_nothing_and_its_late_settlement_changes_nothing() {
    let world = World::new(TABLES, SETTINGS).await;
    world.receiver.then(Reply::status(200).held());
    world.sql(r#"INSERT INTO "DomainEvent" ("id", "type", "payload") VALUES ('d', 'a', '{"n": 1}')"#).await;
    let killed = world.serve();
    let address = killed.address;
    let call = tokio::task::spawn_blocking(move || {
        crate::support::program::http_if_answered(address, "POST", "/v1/process", "")
    });
    world.receiver.wait_for(1).await;
    killed.running.kill();
    call.await.unwrap();
    let next = world.serve();
    assert_eq!(next.process("")["claimed"], 0, "its lease has not ended");
    world.sql(r#"UPDATE "DomainEvent" SET "claimedAt" = "claimedAt" - interval '6 minutes'"#).await;
    let report = next.process("");
    assert_eq!((&report["reaped"], &report["completed"]), (&json!(1), &json!(1)), "{report}");
    let received = world.receiver.received();
    assert_eq!(received[0].header("webhook-id"), received[1].header("webhook-id"));
    assert_ne!(received[0].header("outbox-claim"), received[1].header("outbox-claim"));
}
