//! Small records: written, read by kind and key, dropped, and gone when their time is over.

use crate::Harness;
use crate::kit::*;
use std::time::Duration;
use tenure::core::record::{RECORD_MAX_BYTES, output_key};
use tenure::core::{
    Change, Decision, RecordKind, RecordRange, SmallRecord, Snapshot, TaskId, Write,
};
use tenure::store::{RecordSearch, Store, Transaction};

cases!("small records":
    a_record_is_read_as_it_was_written,
    the_last_record_of_a_key_counts,
    records_are_found_by_kind_and_by_the_beginning_of_their_keys,
    records_are_listed_page_by_page,
    a_record_is_gone_when_its_time_is_over,
    records_record_no_event,
);

fn record(kind: RecordKind, key: &str, text: &str) -> SmallRecord {
    SmallRecord { kind, key: key.to_owned(), text: text.to_owned(), ttl: None }
}

/// Puts records as most rules do: by a change that needs to see nothing.
async fn put(store: &dyn Store, records: Vec<SmallRecord>) -> Verdict {
    let writes: Vec<Write> = records.into_iter().map(Write::PutRecord).collect();
    let change = Change { writes, ..Change::default() };
    let decide = move |_: &Snapshot| Decision::Write(change.clone());
    store.transact(Transaction::new(at(&[]), decide)).await?;
    Ok(())
}

async fn drop_all(store: &dyn Store, range: RecordRange) -> Verdict {
    let writes = vec![Write::DropRecords(range)];
    write(store, move |_| Change { writes: writes.clone(), ..Change::default() }).await?;
    Ok(())
}

async fn keys(store: &dyn Store, range: RecordRange) -> Result<Vec<String>, Failure> {
    let found = store.read(RecordSearch::all(range)).await?;
    Ok(found.into_iter().map(|record| record.key).collect())
}

async fn a_record_is_read_as_it_was_written(harness: &dyn Harness) -> Verdict {
    let mut store = harness.fresh().await;
    let text = format!("a 'quoted' \"text\"\n\tin lines 🚀\u{fffd}\\ {}", "x".repeat(60_000));
    let longest = "y".repeat(RECORD_MAX_BYTES);
    let id: TaskId = "täsk 🚀/1".parse().expect("a good id");
    let (first, second) = (output_key(&id, 1), output_key(&id, 2));
    let records = vec![
        record(RecordKind::Output, &first, &text),
        record(RecordKind::Output, &second, &longest),
    ];
    let before = everything(&*store).await?.wall;
    put(&*store, records).await?;
    for _ in 0..2 {
        let found = store.read(RecordSearch::all(RecordRange::outputs(&id))).await?;
        let read: Vec<(&str, &str)> =
            found.iter().map(|one| (one.key.as_str(), one.text.as_str())).collect();
        ensure_eq!(read, [(first.as_str(), text.as_str()), (&second, &longest)], "the records");
        ensure!(found[0].written_at >= before, "{:?} is before {before:?}", found[0].written_at);
        store = harness.reopen(store).await;
    }
    Ok(())
}

async fn the_last_record_of_a_key_counts(harness: &dyn Harness) -> Verdict {
    let store = harness.fresh().await;
    let other = harness.another(&store).await;
    put(&*store, vec![record(RecordKind::Worker, "w", "first")]).await?;
    put(&*other, vec![record(RecordKind::Worker, "w", "second")]).await?;
    let all = RecordRange::all(RecordKind::Worker);
    for store in [&store, &other] {
        let found = store.read(RecordSearch::all(all.clone())).await?;
        ensure_eq!(found.len(), 1, "the number of records");
        ensure_eq!(found[0].text, "second", "the text");
    }
    Ok(())
}

async fn records_are_found_by_kind_and_by_the_beginning_of_their_keys(
    harness: &dyn Harness,
) -> Verdict {
    let store = harness.fresh().await;
    // The id of one task is the beginning of another's.
    let (short, long): (TaskId, TaskId) = ("a".parse().unwrap(), "a/b".parse().unwrap());
    let outputs = [output_key(&short, 1), output_key(&short, 12), output_key(&long, 1)];
    let records = outputs.iter().map(|key| record(RecordKind::Output, key, "o"));
    put(&*store, records.chain([record(RecordKind::Worker, &outputs[0], "w")]).collect()).await?;
    let of_short = || RecordRange::outputs(&short);
    ensure_eq!(keys(&*store, of_short()).await?, outputs[..2], "the outputs of one task");
    let first = RecordRange::output(&short, 1);
    ensure_eq!(keys(&*store, first.clone()).await?, outputs[..1], "the output of one attempt");
    ensure_eq!(keys(&*store, RecordRange::outputs(&long)).await?, outputs[2..], "of the other");
    let workers = RecordRange::all(RecordKind::Worker);
    ensure_eq!(keys(&*store, workers.clone()).await?, outputs[..1], "the other kind");
    drop_all(&*store, first).await?;
    ensure_eq!(keys(&*store, of_short()).await?, outputs[1..2], "what is left of one task");
    drop_all(&*store, of_short()).await?;
    let all = RecordRange::all(RecordKind::Output);
    ensure_eq!(keys(&*store, all).await?, outputs[2..], "what is left of all tasks");
    ensure_eq!(keys(&*store, workers).await?, outputs[..1], "the other kind, still");
    Ok(())
}

async fn records_are_listed_page_by_page(harness: &dyn Harness) -> Verdict {
    let store = harness.fresh().await;
    let names: Vec<String> = (0..40).map(|number| format!("w{number:02}")).collect();
    let records = names.iter().map(|key| record(RecordKind::Worker, key, key));
    put(&*store, records.collect()).await?;
    let mut found = Vec::new();
    let mut after = String::new();
    loop {
        let range = RecordRange::all(RecordKind::Worker);
        let page = store.read(RecordSearch { range, after: after.clone(), limit: 7 }).await?;
        ensure!(page.len() <= 7, "{} records are too many", page.len());
        let Some(last) = page.last() else { break };
        after = last.key.clone();
        found.extend(page.into_iter().map(|record| record.key));
    }
    ensure_eq!(found, names, "all records");
    Ok(())
}

async fn a_record_is_gone_when_its_time_is_over(harness: &dyn Harness) -> Verdict {
    let store = harness.fresh().await;
    let other = harness.another(&store).await;
    let lease = harness.short_lease();
    let short = |key: &str| SmallRecord {
        ttl: Some(lease),
        ..record(RecordKind::Worker, key, "for a time")
    };
    let longer = SmallRecord {
        ttl: Some(Duration::from_secs(3600)),
        ..record(RecordKind::Worker, "long", "for long")
    };
    let kept = record(RecordKind::Worker, "kept", "until it is dropped");
    put(&*store, vec![short("again"), short("once"), longer, kept]).await?;
    let all = || RecordRange::all(RecordKind::Worker);
    ensure_eq!(keys(&*other, all()).await?, ["again", "kept", "long", "once"], "at first");
    // Written again, it is kept from then on.
    let again = SmallRecord { ttl: Some(Duration::from_secs(3600)), ..short("again") };
    put(&*store, vec![again]).await?;
    // An engine may take a moment longer to notice.
    for _ in 0..5 {
        harness.pass(lease).await;
        if keys(&*other, all()).await?.len() == 3 {
            break;
        }
    }
    ensure_eq!(keys(&*other, all()).await?, ["again", "kept", "long"], "after its time");
    // A dead record is in the way of none.
    put(&*store, vec![short("once")]).await?;
    ensure_eq!(keys(&*store, all()).await?, ["again", "kept", "long", "once"], "written anew");
    Ok(())
}

async fn records_record_no_event(harness: &dyn Harness) -> Verdict {
    let store = harness.fresh().await;
    let before = everything(&*store).await?.revision;
    put(&*store, vec![record(RecordKind::Output, "o", "text")]).await?;
    ensure_eq!(store.events(before, 10).await?, [], "new events");
    Ok(())
}
