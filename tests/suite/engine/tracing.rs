//! Spans, as a collector gets them from the real program, and what the receivers see of them.

use std::sync::Mutex;
use std::time::Instant;

use opentelemetry_proto::tonic::trace::v1::Span;
use opentelemetry_proto::tonic::trace::v1::span::SpanKind;
use outboxd::otlp::Exporter;
use outboxd::processor::{OutboxParts, Outboxes};
use outboxd::span::SpanContext;

use super::service::Service;
use super::*;
use crate::support::collector::{Collector, number, text, traceparent};
use crate::support::program::Program;
use crate::support::receiver::Reply;

const TRACE: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

fn traced(traceparent: &str) -> NewEvent {
    let mut event = NewEvent::new("invoice.paid", r#"{"n":1}"#);
    event.headers.insert("Traceparent".to_owned(), traceparent.to_owned());
    event.headers.insert("tracestate".to_owned(), "vendor=a".to_owned());
    event
}

async fn exporting(world: &World, receiver: &Receiver, endpoint: &str) -> Service {
    let setting = format!("[telemetry]\notlp_endpoint = \"{endpoint}\"");
    Service::start(&world.sql.options.url, receiver, "20s", &setting).await
}

/// Headers of the requests that arrived.
fn sent(receiver: &Receiver, name: &str) -> Vec<Option<String>> {
    receiver.received().iter().map(|request| request.header(name).map(str::to_owned)).collect()
}

fn kind(span: &Span) -> SpanKind {
    SpanKind::try_from(span.kind).unwrap()
}

engine_test!(a_delivery_is_a_span_that_is_linked_to_the_enqueueing_trace_and_goes_on_at_the_receiver, |world| {
    let (collector, receiver) = (Collector::start().await, Receiver::start().await);
    let service = exporting(&world, &receiver, &collector.endpoint()).await;
    let id = world.enqueue_as(traced(TRACE)).await;
    let report = service.run().await;
    assert_eq!(report["completed"], 1, "{report}");

    let [send] = collector.spans("send", 1).await.try_into().unwrap();
    let [link] = send.links.as_slice() else { panic!("one link: {send:?}") };
    assert_eq!(traceparent(&link.trace_id, &link.span_id), TRACE);
    assert_eq!(link.trace_state, "vendor=a");
    assert!(send.parent_span_id.is_empty() && send.trace_id != link.trace_id, "linked, not parented: {send:?}");
    assert_eq!(sent(&receiver, "traceparent"), [Some(traceparent(&send.trace_id, &send.span_id))]);
    assert_eq!(sent(&receiver, "tracestate"), [Some("vendor=a".to_owned())]);
    assert_eq!((send.name.as_str(), kind(&send)), ("send default", SpanKind::Producer));
    for (name, value) in [
        ("messaging.system", "outboxd"),
        ("messaging.operation.type", "send"),
        ("messaging.destination.name", "default"),
        ("messaging.message.id", &id.to_string()),
        ("outboxd.event.type", "invoice.paid"),
        ("outboxd.outcome", "complete"),
        ("error.type", ""),
    ] {
        assert_eq!(text(&send, name), value, "{name}");
    }
    assert_eq!(number(&send, "outboxd.attempt"), Some(1));
    assert_eq!(number(&send, "http.response.status_code"), Some(200));
    assert!(send.status.is_none() && send.start_time_unix_nano <= send.end_time_unix_nano);
    assert!(send.end_time_unix_nano / 1_000 <= now_micros() as u64);

    let [process] = collector.spans("process", 1).await.try_into().unwrap();
    assert_eq!((process.name.as_str(), kind(&process)), ("process default", SpanKind::Consumer));
    assert_eq!(number(&process, "messaging.batch.message_count"), Some(1));
    assert_eq!(text(&process, "outboxd.run.trigger"), "http");
    assert_eq!(report["run_id"], text(&process, "outboxd.run.id"));
    let [settle] = collector.spans("settle", 1).await.try_into().unwrap();
    assert_eq!((&settle.trace_id, &settle.parent_span_id), (&process.trace_id, &process.span_id));
    assert_eq!((number(&settle, "messaging.batch.message_count"), kind(&settle)), (Some(1), SpanKind::Client));
});

engine_test!(a_failing_attempt_says_in_its_span_what_went_wrong, |world| {
    let (collector, receiver) =
        (Collector::start().await, Receiver::playing([Reply::status(503), Reply::reset()]).await);
    let service = exporting(&world, &receiver, &collector.endpoint()).await;
    for event_type in ["refused", "reset"] {
        let id = world.enqueue(event_type).await;
        let answer = service.call("POST", &format!("/v1/events/{id}/process")).await;
        assert_eq!(answer.body["outcome"], "pending", "{answer:?}");
    }
    let [refused, reset] = collector.spans("send", 2).await.try_into().unwrap();
    assert_eq!(
        (text(&refused, "error.type").as_str(), number(&refused, "http.response.status_code")),
        ("503", Some(503))
    );
    assert_eq!((text(&reset, "error.type").as_str(), number(&reset, "http.response.status_code")), ("reset", None));
    let message = |span: &Span| span.status.clone().filter(|status| status.code == 2).unwrap().message;
    assert_eq!(message(&refused), "HTTP 503 Service Unavailable");
    assert!(message(&reset).starts_with("reset: "), "{reset:?}");
    assert!(refused.links.is_empty() && refused.trace_id != reset.trace_id, "nobody enqueued them in a trace");
    let settles = collector.spans("settle", 2).await;
    assert_eq!(settles[0].parent_span_id, refused.span_id);
});

engine_test!(an_event_of_a_trace_that_is_not_sampled_has_no_span_and_keeps_its_own_context, |world| {
    let (collector, receiver) = (Collector::start().await, Receiver::start().await);
    let service = exporting(&world, &receiver, &collector.endpoint()).await;
    let unsampled = TRACE.replace("-01", "-00");
    world.enqueue_as(traced(&unsampled)).await;
    service.run().await;
    world.enqueue_as(traced(TRACE)).await;
    service.run().await;
    let [only] = collector.spans("send", 1).await.try_into().unwrap();
    let own = traceparent(&only.trace_id, &only.span_id);
    assert_eq!(sent(&receiver, "traceparent"), [Some(unsampled), Some(own)]);
});

engine_test!(a_collector_that_hangs_refuses_or_is_down_changes_nothing, |world| {
    let receiver = Receiver::start().await;
    let silent = Collector::answering(Reply::silence()).await;
    let unwilling = Collector::answering(Reply::status(503)).await;
    let down = { Collector::start().await.endpoint() };
    for endpoint in [silent.endpoint(), unwilling.endpoint(), down] {
        let service = exporting(&world, &receiver, &endpoint).await;
        // More spans than can wait.
        for _ in 0..5 {
            world.enqueue_many("a", 1_000).await;
            assert_eq!(service.run().await["completed"], 1_000);
        }
        if endpoint == unwilling.endpoint() {
            let line = service.running.line_of_log("spans could not be exported");
            assert!(line.contains("the collector answered HTTP 503"), "{line}");
        }
        let asked = Instant::now();
        let status = tokio::task::spawn_blocking(move || service.running.terminate()).await.unwrap();
        assert_eq!(status.code(), Some(0));
        assert!(asked.elapsed() < Duration::from_secs(4), "{:?}", asked.elapsed());
    }
    assert_eq!(world.count("completed").await, 15_000);
    silent.wait_for_requests(1).await;
});

engine_test!(spans_that_wait_are_exported_when_the_program_is_asked_to_stop, |world| {
    let (collector, receiver) = (Collector::start().await, Receiver::start().await);
    let service = exporting(&world, &receiver, &collector.endpoint()).await;
    world.enqueue_many("a", 1_000).await;
    assert_eq!(service.run().await["completed"], 1_000);
    let status = tokio::task::spawn_blocking(move || service.running.terminate()).await.unwrap();
    assert_eq!(status.code(), Some(0));
    assert_eq!(collector.spans("send", 1_000).await.len(), 1_000);
});

engine_test!(without_a_collector_the_receiver_gets_the_context_of_the_enqueueing_request, |world| {
    let receiver = Receiver::start().await;
    let service = Service::start(&world.sql.options.url, &receiver, "20s", "").await;
    world.enqueue_as(traced(TRACE)).await;
    world.enqueue("a").await;
    assert_eq!(service.run().await["completed"], 2);
    let mut contexts = sent(&receiver, "traceparent");
    contexts.sort();
    assert_eq!(contexts, [None, Some(TRACE.to_owned())]);
});

engine_test!(a_run_over_several_outboxes_is_one_span_and_a_handler_sees_its_own, |world| {
    let collector = Collector::start().await;
    let (tracer, exporter) = Exporter::start(collector.endpoint().parse().unwrap()).unwrap();
    let settings = ProcessorSettings { tracer: Some(tracer), ..ProcessorSettings::default() };
    let seen = Arc::new(Mutex::new(Vec::new()));
    let part = |name: &str| OutboxParts {
        name: name.to_owned(),
        store: Arc::clone(&world.store),
        registry: Registry::new(vec![route("*", LONG, Seen(Arc::clone(&seen)))]).unwrap(),
        settings: settings.clone(),
    };
    let outboxes = Outboxes::new(vec![part("first"), part("second")]).unwrap();
    world.enqueue_as(traced(TRACE)).await;
    let report = outboxes.run(within(3 * LONG), None).await.unwrap();
    assert_eq!(report.completed, 1, "{report:?}");
    exporter.shut_down(PATIENCE).await;

    let [process] = collector.spans("process", 1).await.try_into().unwrap();
    assert_eq!((process.name.as_str(), text(&process, "messaging.destination.name").as_str()), ("process all", "all"));
    let [settle] = collector.spans("settle", 1).await.try_into().unwrap();
    assert_eq!((settle.trace_id, settle.parent_span_id), (process.trace_id, process.span_id));
    let [send] = collector.spans("send", 1).await.try_into().unwrap();
    assert_eq!(*seen.lock().unwrap(), [Some(traceparent(&send.trace_id, &send.span_id))]);
});

/// Notes the spans of its attempts.
struct Seen(Arc<Mutex<Vec<Option<String>>>>);

#[async_trait]
impl Handler for Seen {
    async fn handle(&self, delivery: &Delivery) -> Outcome {
        self.0.lock().unwrap().push(delivery.span().map(SpanContext::traceparent));
        Outcome::Complete
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_without_http_exports_its_spans_before_it_exits() {
    let collector = Collector::start().await;
    let telemetry = format!("[telemetry]\notlp_endpoint = \"{}\"\n", collector.endpoint());
    let settings = format!("{telemetry}[[route]]\nname = \"all\"\ntypes = [\"*\"]\nhandler = \"discard\"\n");
    tokio::task::spawn_blocking(move || {
        let program = Program::migrated(&settings);
        program.succeed(&["enqueue", "a", "1"]);
        assert_eq!(program.json(&["process"])["completed"], 1);
    })
    .await
    .unwrap();
    let [process] = collector.spans("process", 1).await.try_into().unwrap();
    assert_eq!(text(&process, "outboxd.run.trigger"), "cli");
    assert_eq!(collector.spans("send", 1).await.len(), 1);
}
