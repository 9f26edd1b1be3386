//! Deliveries to a real receiver: what arrives there, and what its behaviour means.

use std::collections::BTreeMap;
use std::net::TcpListener;
use std::process::Command;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use outboxd::event::check_event_headers;
use outboxd::handler::webhook::{SigningSecret, Webhook, WebhookClient, WebhookSettings};
use outboxd::handler::{Delivery, Handler};
use outboxd::lease::{ClaimedEvent, Lease};
use outboxd::outcome::Outcome;
use outboxd::timestamp::Timestamp;
use uuid::Uuid;

use crate::support::receiver::{Receiver, Reply};

const PAYLOAD: &str = r#"{"n":9007199254740993,"a":1.0,"a":2}"#;
const HMAC_SECRET: &str = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD";
const ED25519_SECRET: &str =
    "whsk_6Xb/dCcHpPea21PS1N9VY/NZW723CEc77N4rJCubMbfVKIDij2HKpMKkioLlX0dRqSKJp4AJ6p9lMicMFs6Kvg==";

fn event() -> ClaimedEvent {
    ClaimedEvent {
        lease: Lease { event_id: Uuid::from_u128(0x0192_0000_0000_7000_8000_0000_0000_0001).into(), claim_no: 7 },
        event_type: "invoice.paid".to_owned(),
        subject: Some("Müller/1".to_owned()),
        payload: Some(PAYLOAD.to_owned()),
        payload_bytes: i64::try_from(PAYLOAD.len()).unwrap(),
        headers: BTreeMap::new(),
        attempts: 2,
        max_attempts: 10,
        created_at: Timestamp::from_micros(0),
        available_at: Timestamp::from_micros(0),
        waited: Duration::ZERO,
        deferred_for: None,
    }
}

fn settings(url: &str) -> WebhookSettings {
    WebhookSettings { url: url.to_owned(), headers: BTreeMap::new(), secrets: vec![], dead_letter_on: vec![] }
}

fn webhook(settings: WebhookSettings) -> Webhook {
    Webhook::new(WebhookClient::new().unwrap(), settings).unwrap()
}

/// One attempt with this timeout at this URL.
pub async fn attempt(url: &str, timeout: Duration) -> (Outcome, Delivery) {
    let delivery = Delivery::start(event(), timeout);
    let outcome = webhook(settings(url)).handle(&delivery).await;
    (outcome, delivery)
}

pub const LONG: Duration = Duration::from_secs(20);

pub fn error_of(outcome: Outcome) -> String {
    match outcome {
        Outcome::Retry { error, retry_after: None } => error,
        other => panic!("{other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_delivery_arrives_byte_for_byte_with_all_its_headers() {
    let receiver = Receiver::start().await;
    let secrets: Vec<SigningSecret> = vec![HMAC_SECRET.parse().unwrap(), ED25519_SECRET.parse().unwrap()];
    let headers = BTreeMap::from([("authorization".to_owned(), "Bearer route".to_owned())]);
    let target = WebhookSettings { headers, secrets: secrets.clone(), ..settings(&receiver.url("/in?tenant=a%20b")) };
    let trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let sent_along = BTreeMap::from([("traceparent".to_owned(), trace.to_owned())]);
    check_event_headers(&sent_along).unwrap();
    let delivery = Delivery::start(ClaimedEvent { headers: sent_along, ..event() }, Duration::from_secs(30));

    assert_eq!(webhook(target).handle(&delivery).await, Outcome::Complete);

    let [request] = receiver.received().try_into().unwrap();
    assert_eq!((request.method.as_str(), request.path.as_str()), ("POST", "/in?tenant=a%20b"));
    assert_eq!(request.body, PAYLOAD.as_bytes());
    let id = event().lease.event_id.to_string();
    let agent = concat!("outboxd/", env!("CARGO_PKG_VERSION"));
    for (name, value) in [
        ("content-type", "application/json"),
        ("webhook-id", id.as_str()),
        ("idempotency-key", id.as_str()),
        ("outbox-event-type", "invoice.paid"),
        ("outbox-subject", "M%C3%BCller/1"),
        ("outbox-attempt", "3"),
        ("outbox-claim", "7"),
        ("traceparent", trace),
        ("authorization", "Bearer route"),
        ("user-agent", agent),
    ] {
        assert_eq!(request.header(name), Some(value), "{name}");
    }
    let deadline: u64 = request.header("outbox-deadline-ms").unwrap().parse().unwrap();
    assert!((25_000..=30_000).contains(&deadline), "{deadline}");
    let timestamp: u64 = request.header("webhook-timestamp").unwrap().parse().unwrap();
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    assert!((now - 20..=now).contains(&timestamp), "{timestamp}");
    let signatures: Vec<String> =
        secrets.iter().map(|secret| secret.sign(&id, timestamp, PAYLOAD.as_bytes())).collect();
    assert_eq!(request.header("webhook-signature"), Some(signatures.join(" ").as_str()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_subject_of_printable_ascii_arrives_as_it_was_enqueued() {
    let receiver = Receiver::start().await;
    let target = webhook(settings(&receiver.url("/")));
    for subject in ["a b", "50%", "100%25"] {
        let event = ClaimedEvent { subject: Some(subject.to_owned()), ..event() };
        assert_eq!(target.handle(&Delivery::start(event, LONG)).await, Outcome::Complete);
    }
    let received = receiver.received();
    let subjects: Vec<_> = received.iter().map(|request| request.header("outbox-subject")).collect();
    assert_eq!(subjects, [Some("a b"), Some("50%"), Some("100%25")]);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_secret_nothing_claims_to_be_signed() {
    let receiver = Receiver::start().await;
    assert_eq!(attempt(&receiver.url("/"), LONG).await.0, Outcome::Complete);
    assert_eq!(receiver.received()[0].header("webhook-signature"), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_become_the_outcomes_of_the_contract() {
    let seconds = |count| Some(Duration::from_secs(count));
    let retry = |error: &str| Outcome::retry(error);
    let word = |status: u16, word: &str| Reply::status(status).header("Outbox-Outcome", word);
    let defer = |delay, reason: &str| Outcome::Defer { delay, reason: reason.to_owned() };
    let table = [
        (Reply::status(200), Outcome::Complete),
        (Reply::status(204), Outcome::Complete),
        (Reply::status(410), Outcome::Skip { reason: "gone".to_owned() }),
        (Reply::status(429), defer(None, "HTTP 429 Too Many Requests")),
        (Reply::status(429).header("Retry-After", "3"), defer(seconds(3), "HTTP 429 Too Many Requests")),
        (Reply::status(503).header("Retry-After", "3"), defer(seconds(3), "HTTP 503 Service Unavailable")),
        (Reply::status(503), retry("HTTP 503 Service Unavailable")),
        (Reply::status(404), retry("HTTP 404 Not Found")),
        (Reply::status(500), retry("HTTP 500 Internal Server Error")),
        (Reply::status(422), Outcome::DeadLetter { error: "HTTP 422 Unprocessable Entity".to_owned() }),
        (word(422, "complete"), Outcome::Complete),
        (word(200, "skip").header("Outbox-Reason", "old"), Outcome::Skip { reason: "old".to_owned() }),
        (
            word(500, "defer").header("Retry-After", "9"),
            defer(seconds(9), "HTTP 500 Internal Server Error: deferred by the receiver"),
        ),
        (
            word(200, "dead_letter").header("Outbox-Reason", "bad"),
            Outcome::DeadLetter { error: "HTTP 200 OK: bad".to_owned() },
        ),
        (word(202, "accepted"), Outcome::Accepted),
        (word(200, "banana"), retry("HTTP 200 OK: unknown Outbox-Outcome \"banana\"")),
    ];
    let receiver = Receiver::playing(table.iter().map(|(reply, _)| reply.clone())).await;
    let webhook = webhook(WebhookSettings { dead_letter_on: vec![422], ..settings(&receiver.url("/")) });
    for (reply, expected) in &table {
        assert_eq!(&webhook.handle(&Delivery::start(event(), LONG)).await, expected, "{reply:?}");
    }
    assert_eq!(receiver.received().len(), table.len());
    // Not exactly one: a request may begin just before the last one's connection is back among the idle ones.
    assert!(receiver.connections() < table.len() / 2, "connections are used again: {}", receiver.connections());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_redirect_is_never_followed() {
    let elsewhere = Receiver::start().await;
    for status in [301, 302, 303, 307, 308] {
        let receiver = Receiver::playing([Reply::redirect(status, &elsewhere.url("/stolen"))]).await;
        let error = error_of(attempt(&receiver.url("/"), LONG).await.0);
        assert!(error.contains("redirects are not followed"), "{error}");
    }
    assert_eq!((elsewhere.received().len(), elsewhere.connections()), (0, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn one_deadline_covers_silence_slow_heads_and_slow_bodies() {
    let timeout = Duration::from_millis(300);
    let dribble = Reply::status(200).body(vec![b'x'; 1_000]).dribble(Duration::from_millis(50));
    let slow_head = Reply::status(200).after(LONG);
    for (reply, status) in [(Reply::silence(), None), (slow_head, None), (dribble, Some(200))] {
        let receiver = Receiver::playing([reply.clone()]).await;
        let started = Instant::now();
        let (outcome, delivery) = attempt(&receiver.url("/"), timeout).await;
        assert_eq!(outcome, Outcome::TimedOut { error: "no complete answer within 300 ms".to_owned() }, "{reply:?}");
        assert!(started.elapsed() < Duration::from_secs(5), "{reply:?}");
        assert_eq!(delivery.answer().map(|answer| answer.status_code), status, "{reply:?}");
        if let Some(answer) = delivery.answer() {
            assert!(answer.excerpt.starts_with('x'), "what came before the end is kept");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn failures_without_an_answer_name_their_class_and_no_secret() {
    let free_port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let receiver = Receiver::playing([Reply::reset()]).await;
    let plain = Receiver::start().await;
    for (url, class) in [
        (format!("http://127.0.0.1:{free_port}/?key=s3cret"), "connect: "),
        (receiver.url("/?key=s3cret"), "reset: "),
        (format!("https://127.0.0.1:{}/?key=s3cret", plain.port()), "tls: "),
        ("http://nonexistent.invalid/?key=s3cret".to_owned(), "dns: "),
    ] {
        let error = error_of(attempt(&url, LONG).await.0);
        assert!(error.starts_with(class) && error.len() > class.len(), "{class}{error}");
        assert!(!error.contains("s3cret") && error.len() < 300, "{error}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_breaks_off_undoes_a_success_but_no_refusal() {
    let broken = |status| Reply::status(status).body("half of this").break_off();
    let receiver = Receiver::playing([broken(200), broken(410)]).await;
    let (outcome, delivery) = attempt(&receiver.url("/"), LONG).await;
    let error = error_of(outcome);
    assert!(error.starts_with("body: "), "{error}");
    assert_eq!(delivery.answer().unwrap().excerpt, "half o");
    assert_eq!(attempt(&receiver.url("/"), LONG).await.0, Outcome::Skip { reason: "gone".to_owned() });
}

#[tokio::test(flavor = "multi_thread")]
async fn of_a_huge_answer_only_the_beginning_is_read() {
    let endless = Reply::status(500).body(vec![b'x'; 70_000]).header("x-a", "b");
    let huge = Reply::status(200).body("ü".repeat(5_000_000));
    let receiver = Receiver::playing([huge, endless]).await;
    let (outcome, delivery) = attempt(&receiver.url("/"), LONG).await;
    assert_eq!(outcome, Outcome::Complete);
    assert_eq!(delivery.answer().unwrap().excerpt, "ü".repeat(2_048));
    let (outcome, delivery) = attempt(&receiver.url("/"), LONG).await;
    assert_eq!(outcome, Outcome::retry("HTTP 500 Internal Server Error"));
    assert_eq!(delivery.answer().unwrap().excerpt.len(), 4_096);
}

#[tokio::test(flavor = "multi_thread")]
async fn held_replies_wait_until_they_are_released() {
    let receiver = Receiver::start().await;
    receiver.then(Reply::status(410).held());
    receiver.set_default(Reply::status(500).held());
    let deliver = || {
        let url = receiver.url("/");
        tokio::spawn(async move { attempt(&url, LONG).await.0 })
    };

    let first = deliver();
    receiver.wait_for(1).await;
    assert!(!first.is_finished());
    receiver.release(1);
    assert_eq!(first.await.unwrap(), Outcome::Skip { reason: "gone".to_owned() });

    let others = [deliver(), deliver()];
    receiver.wait_for(3).await;
    assert!(others.iter().all(|other| !other.is_finished()));
    receiver.release_all();
    for other in others {
        assert_eq!(other.await.unwrap(), Outcome::retry("HTTP 500 Internal Server Error"));
    }
}

#[test]
fn proxies_of_the_environment_are_not_used() {
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", "webhook::without_a_secret_nothing_claims_to_be_signed"]);
    for name in ["HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"] {
        child.env(name, "http://127.0.0.1:1");
    }
    for name in ["NO_PROXY", "no_proxy"] {
        child.env_remove(name);
    }
    let output = child.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
}
