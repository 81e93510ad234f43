//! Keys that are text or bytes.

use std::collections::HashSet;

use keywright_core::{Biz, KeyBatch, Zone, readable};
use keywright_store::KeySpec;
use keywright_testkit::Result;

use crate::common::{Engine, Schema, on_engines, open, runtime};

on_engines!(proxies_issue_readable_keys_in_buckets_of_their_own,);

fn texts(keys: KeyBatch) -> Vec<String> {
    match keys {
        KeyBatch::Texts(texts) => texts,
        other => panic!("not text: {other:?}"),
    }
}

fn proxies_issue_readable_keys_in_buckets_of_their_own(engine: Engine) -> Result<()> {
    let schema = Schema::of(engine, "kw_readable")?;
    runtime()?.block_on(async {
        let (first, second) = (open(&schema.raw())?, open(&schema.raw())?);
        first.init().await?;
        let (mut seen, mut buckets) = (HashSet::new(), HashSet::new());
        for round in 0..50 {
            for keys in [&first, &second] {
                for biz in ["ORD", "PAY"] {
                    let source = keys.source(&KeySpec::Readable(Biz::parse(biz)?))?;
                    let issued = texts(source.take(1 + round * 20, true).await?);
                    assert!(issued.is_sorted_by(|one, next| one < next));
                    for text in issued {
                        let parts = readable::parse(&text, Zone::UTC)?;
                        assert_eq!(parts.biz.as_str(), biz);
                        buckets.insert(parts.bucket);
                        assert!(seen.insert(text.clone()), "{text} came twice");
                    }
                }
            }
        }
        assert_eq!(buckets.len(), 2);
        Ok(())
    })
}

/// UUIDs need no store at all.
#[test]
fn uuids_are_issued_without_a_store() -> Result<()> {
    let raw = crate::common::raw(1, "nowhere");
    runtime()?.block_on(async {
        let keys = open(&raw)?;
        let mut seen = HashSet::new();
        for spec in ["uuid_v1", "uuid_v4:text32", "uuid_v7"] {
            let source = keys.source(&KeySpec::parse(spec, None, None)?)?;
            let issued = source.try_take(1_000, true)?;
            seen.extend(texts(issued));
        }
        assert_eq!(seen.len(), 3_000);
        let bytes = keys.source(&KeySpec::parse("uuid_v7:bytes16", None, None)?)?;
        assert_eq!(bytes.try_take(3, true)?.len(), 3);
        assert!(
            keys.check(&[])
                .await
                .iter()
                .any(|finding| finding.message.contains("cannot be used"))
        );
        Ok(())
    })
}
