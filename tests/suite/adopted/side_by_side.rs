//! The change-over: a home-made poller of the same protocol goes on beside outboxd.

use std::collections::HashMap;

use super::*;

const EVENTS: usize = 400;

/// As such pollers are written: claim one by compare-and-set, handle it, settle it by the claim's instant.
async fn old_poller(pool: PgPool) -> Vec<String> {
    let mut handled = Vec::new();
    loop {
        let claimed = sqlx::query(
            r#"UPDATE "DomainEvent" SET "status" = 'PROCESSING', "claimedAt" = now() AT TIME ZONE 'UTC'
               WHERE "id" = (SELECT "id" FROM "DomainEvent"
                             WHERE "status" = 'PENDING' AND "availableAt" <= now() AT TIME ZONE 'UTC'
                             ORDER BY "occurredAt" LIMIT 1 FOR UPDATE SKIP LOCKED) AND "status" = 'PENDING'
               RETURNING "id", "claimedAt""#,
        );
        let Some(row) = claimed.fetch_optional(&pool).await.unwrap() else { return handled };
        let (id, claimed_at): (String, time::PrimitiveDateTime) = (row.get(0), row.get(1));
        let settled = sqlx::query(
            r#"UPDATE "DomainEvent" SET "status" = 'DONE', "processedAt" = now() AT TIME ZONE 'UTC', "claimedAt" = NULL
               WHERE "id" = $1 AND "status" = 'PROCESSING' AND "claimedAt" = $2"#,
        );
        let settled = settled.bind(&id).bind(claimed_at).execute(&pool).await.unwrap();
        assert_eq!(settled.rows_affected(), 1, "nobody has taken {id} from its poller");
        handled.push(id);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_event_is_handled_once_by_one_of_the_two() {
    let world = World::new(prisma::TABLES, prisma::SETTINGS).await;
    world
        .sql(&format!(
            r#"INSERT INTO "DomainEvent" ("id", "type", "payload") SELECT 'e' || n, 'a', '{{}}' FROM generate_series(1, {EVENTS}) AS n"#
        ))
        .await;
    let service = world.serve();
    let address = service.address;
    let old = tokio::spawn(old_poller(world.pool.clone()));
    let ours = tokio::task::spawn_blocking(move || {
        http(address, "POST", "/v1/process?batch_size=10000&max_runtime_ms=60000", "")
    });
    let mut handled: HashMap<String, usize> = HashMap::new();
    for id in old.await.unwrap() {
        *handled.entry(id).or_default() += 1;
    }
    assert_eq!(ours.await.unwrap().0, 200);
    service.process("");
    for request in world.receiver.received() {
        *handled.entry(request.header("webhook-id").unwrap().to_owned()).or_default() += 1;
    }
    assert_eq!(handled.len(), EVENTS, "nothing is lost");
    assert!(handled.values().all(|times| *times == 1), "{handled:?}");
    assert_eq!(world.ask(r#"SELECT count(*) FROM "DomainEvent" WHERE "status" = 'DONE'"#).await, EVENTS.to_string());
}
