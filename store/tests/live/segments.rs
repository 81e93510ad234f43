//! Keywright's own table: making it, many issuers, limits of a tag.

use keywright_core::{Cause, Step};
use keywright_store::{
    Above, Finding, KeySpec, OWN_TABLES, Severity, Stride, TagChange, TagOptions,
};
use keywright_testkit::Result;

use crate::common::{
    Engine, IssuedLog, Schema, on_engines, open, runtime, segment, small_steps, tag, take_many,
};

on_engines!(
    issuers_that_share_a_tag_never_meet,
    a_large_statement_gets_its_keys_in_a_row,
    a_tag_ends_at_its_largest_id_and_never_wraps,
    a_tag_that_nears_its_end_is_told,
    strides_keep_to_their_remainder,
    a_gap_beyond_the_end_is_told_and_can_be_corrected,
    what_tables_have_is_given_by_no_source,
    an_altered_step_is_no_use,
    a_raise_is_no_use,
);

#[test]
fn init_is_repeatable_and_refuses_other_shapes() -> Result<()> {
    let schema = Schema::new("kw_init")?;
    runtime()?.block_on(async {
        let keys = open(&schema.raw())?;
        let missing = keys.check(&[]).await;
        assert!(missing.iter().any(|finding| finding.message.contains("init")));
        assert_eq!(keys.init().await?, OWN_TABLES);
        assert_eq!(keys.init().await?, Vec::<String>::new());
        let options = TagOptions::with_step(Step::new(1_000)?);
        keys.create_tag(&tag("orders"), &options).await?;
        keys.source(&segment("ORDERS"))?;
        let other = keys.check(&[tag("ORDERS")]).await;
        let is_missed = other.iter().any(|finding| finding.message.contains("\"ORDERS\" is not in"));
        assert!(is_missed, "names in another case are other names here: {other:?}");
        let again = keys.create_tag(&tag("orders"), &options).await.unwrap_err();
        assert_eq!(again.cause(), Cause::TagExists);
        let tags = keys.tags().await?;
        assert_eq!((tags[0].tag.as_str(), tags[0].next, tags[0].step), ("orders", 1, 1_000));
        schema.sql("DROP TABLE keywright_worker; CREATE TABLE keywright_worker (worker_id INT) ENGINE = MyISAM")?;
        let refused = keys.init().await.unwrap_err();
        for part in ["InnoDB", "column \"epoch\"", "of type int"] {
            assert!(refused.message().contains(part), "{refused}");
        }
        Ok(())
    })
}

/// Three issuers as three proxies, each with four tasks, all on one tag; ids of every size of statement.
fn issuers_that_share_a_tag_never_meet(engine: Engine) -> Result<()> {
    let schema = Schema::of(engine, "kw_shared_tag")?;
    runtime()?.block_on(async {
        let log = IssuedLog::default();
        let first = open(&schema.raw())?;
        first.init().await?;
        first.create_tag(&tag("orders"), &small_steps(300)).await?;
        let (mut tasks, mut issuers) = (Vec::new(), Vec::new());
        for issuer in 0..3 {
            let keys = open(&schema.raw())?;
            let source = keys.source(&segment("orders"))?;
            for task in 0..4 {
                let by = format!("issuer {issuer} task {task}");
                tasks.push(tokio::spawn(take_many(
                    source.clone(),
                    log.clone(),
                    by,
                    300,
                )));
            }
            issuers.push(keys);
        }
        for task in tasks {
            task.await?;
        }
        let hi = schema.number("SELECT hi FROM keywright_segment")?;
        assert!(log.max() < hi);
        assert_eq!(log.min(), 1);
        assert!(log.len() > 60_000);
        Ok(())
    })
}

/// One statement of more rows than a reservation has gets them in a row; what is too short for it serves others.
fn a_large_statement_gets_its_keys_in_a_row(engine: Engine) -> Result<()> {
    let schema = Schema::of(engine, "kw_large")?;
    runtime()?.block_on(async {
        let keys = open(&schema.raw())?;
        keys.init().await?;
        keys.create_tag(&tag("orders"), &small_steps(100)).await?;
        let source = keys.source(&segment("orders"))?;
        let log = IssuedLog::default();
        for count in [1, 5_000, 3, 10_000, 1] {
            let taken = source.take(count, true).await?;
            assert_eq!(taken.len(), count);
            assert_eq!(
                taken.number(count - 1),
                taken.number(0).map(|first| first + count - 1)
            );
            log.add_all("one", &taken);
        }
        let too_many = source.take(1_000_001, true).await.unwrap_err();
        assert_eq!(too_many.cause(), Cause::ArgumentOutOfRange);
        Ok(())
    })
}

fn a_tag_ends_at_its_largest_id_and_never_wraps(engine: Engine) -> Result<()> {
    let schema = Schema::of(engine, "kw_exhausted")?;
    runtime()?.block_on(async {
        let keys = open(&schema.raw())?;
        keys.init().await?;
        let options = TagOptions {
            start: 10,
            id_max: 1_000,
            ..small_steps(64)
        };
        keys.create_tag(&tag("short"), &options).await?;
        let source = keys.source(&segment("short"))?;
        let log = IssuedLog::default();
        while log.len() < 900 {
            log.add_all("one", &source.take(4, true).await?);
        }
        let refused = source.take(200, true).await.unwrap_err();
        assert_eq!(refused.cause(), Cause::TagExhausted, "{refused}");
        assert_eq!(refused.message(), "tag \"short\" is exhausted at 1000");
        let last = loop {
            match source.take(1, true).await {
                Ok(taken) => log.add_all("one", &taken),
                Err(failure) => break failure,
            }
        };
        assert_eq!(last.cause(), Cause::TagExhausted);
        assert_eq!(log.max(), 1_000);
        let told = keys.check(&[tag("short")]).await;
        let is_told = |of: &Finding| of.message.starts_with("tag \"short\" is exhausted at 1000");
        let warned = told.iter().filter(|of| is_told(of));
        assert!(
            warned.map(|of| of.severity).eq([Severity::Warning]),
            "{told:?}"
        );
        let left = keys.stats().into_iter().map(|of| (of.name, of.tag_left));
        let left: Vec<_> = left.collect();
        assert_eq!(left, [("segment:short".to_owned(), Some(0))]);
        let unknown = keys
            .source(&segment("nobody"))?
            .take(1, true)
            .await
            .unwrap_err();
        assert_eq!(unknown.cause(), Cause::TagUnknown);
        Ok(())
    })
}

/// Below a tenth of its ids; the figures of a program say how many are left from its first reservation on.
fn a_tag_that_nears_its_end_is_told(engine: Engine) -> Result<()> {
    let schema = Schema::of(engine, "kw_near_end")?;
    runtime()?.block_on(async {
        let keys = open(&schema.raw())?;
        keys.init().await?;
        for (name, start) in [("enough", 901), ("short", 902)] {
            let options = TagOptions {
                start,
                id_max: 1_000,
                ..small_steps(50)
            };
            keys.create_tag(&tag(name), &options).await?;
        }
        keys.create_tag(&tag("without_end"), &small_steps(50)).await?;
        let all = ["enough", "short", "without_end"].map(tag);
        let told = keys.check(&all).await;
        let of_tags = told.iter().filter(|of| of.message.starts_with("tag "));
        let of_tags: Vec<_> = of_tags.collect();
        let says = "tag \"short\" nears its end at 1000: 99 ids are not reserved yet (a larger id_max, or another tag)";
        let [finding] = of_tags.as_slice() else {
            panic!("{told:?}");
        };
        assert_eq!((finding.severity, finding.message.as_str()), (Severity::Warning, says));
        let source = keys.source(&segment("enough"))?;
        // The first of five: no more are reserved before some of them are used.
        assert_eq!(source.take(1, true).await?.number(0), Some(901));
        let hi = schema.number("SELECT hi FROM keywright_segment WHERE tag = 'enough'")?;
        let left = keys.stats().into_iter().find_map(|of| of.tag_left);
        assert_eq!(left, Some(1_001 - hi));
        Ok(())
    })
}

/// Three nodes with offsets 1, 2, 3 and increment 3, and a plain issuer, all on one tag.
fn strides_keep_to_their_remainder(engine: Engine) -> Result<()> {
    let schema = Schema::of(engine, "kw_stride")?;
    runtime()?.block_on(async {
        let keys = open(&schema.raw())?;
        keys.init().await?;
        keys.create_tag(&tag("orders"), &small_steps(50)).await?;
        let log = IssuedLog::default();
        for round in 0..200 {
            for offset in 1..=3 {
                let spec = KeySpec::Stride(Stride::new(tag("orders"), offset, 3)?);
                let taken = keys.source(&spec)?.take(1 + round % 9, true).await?;
                for index in 0..taken.len() {
                    assert_eq!(taken.number(index).unwrap() % 3, offset.unsigned_abs() % 3);
                }
                log.add_all("stride", &taken);
            }
            log.add_all(
                "plain",
                &keys.source(&segment("orders"))?.take(2, true).await?,
            );
        }
        Ok(())
    })
}

/// After a failover, when more may have been given away than there is: it is said, and whoever knows better can go on.
fn a_gap_beyond_the_end_is_told_and_can_be_corrected(engine: Engine) -> Result<()> {
    let schema = Schema::of(engine, "kw_eaten")?;
    runtime()?.block_on(async {
        let keys = open(&schema.raw())?;
        keys.init().await?;
        let options = TagOptions {
            id_max: 32_767,
            ..small_steps(8)
        };
        keys.create_tag(&tag("small"), &options).await?;
        schema.sql(
            "UPDATE keywright_segment SET hi = 100, server = 'elsewhere', rate_per_s = 4, reserved_ms = reserved_ms - 86400000",
        )?;
        let source = keys.source(&segment("small"))?;
        let refused = source.take(1, true).await.unwrap_err();
        assert_eq!(refused.cause(), Cause::TagExhausted);
        assert!(refused.message().contains("the safety gap above it"), "{refused}");
        assert!(refused.hint_text().is_some_and(|hint| hint.contains("set hi")));
        // The gap grows with time. What is said of it is the same, or it would be logged as news with each attempt.
        schema.sql("UPDATE keywright_segment SET reserved_ms = reserved_ms - 86400000")?;
        let fresh = open(&schema.raw())?;
        let later = fresh.source(&segment("small"))?.take(1, true).await;
        assert_eq!(later.unwrap_err(), refused);
        fresh.hand_back().await;
        schema.sql("UPDATE keywright_segment SET hi = 120, server = NULL")?;
        let taken = loop {
            match source.take(1, true).await {
                Ok(taken) => break taken,
                Err(failure) => assert_eq!(failure.cause(), Cause::TagExhausted),
            }
        };
        assert_eq!(taken.number(0), Some(120));
        Ok(())
    })
}

/// Neither does a raise: it is no reservation.
fn a_raise_is_no_use(engine: Engine) -> Result<()> {
    let schema = Schema::of(engine, "kw_raised_rate")?;
    runtime()?.block_on(async {
        let keys = open(&schema.raw())?;
        keys.init().await?;
        keys.create_tag(&tag("orders"), &small_steps(8)).await?;
        keys.source(&segment("orders"))?.take(1, true).await?;
        schema.sql(
            "UPDATE keywright_segment SET reserved_ids = 900000, reserved_ms = reserved_ms - 900000",
        )?;
        let above = Above::Tag {
            tag: tag("orders"),
            id: 10_000_000,
        };
        keys.advance(&above).await?;
        open(&schema.raw())?.source(&segment("orders"))?.take(1, true).await?;
        let rate = schema.number("SELECT rate_per_s FROM keywright_segment")?;
        assert!((500..2_000).contains(&rate), "{rate}");
        Ok(())
    })
}

/// An alteration says nothing of how fast ids go.
fn an_altered_step_is_no_use(engine: Engine) -> Result<()> {
    let schema = Schema::of(engine, "kw_altered_rate")?;
    runtime()?.block_on(async {
        let keys = open(&schema.raw())?;
        keys.init().await?;
        keys.create_tag(&tag("orders"), &small_steps(8)).await?;
        let source = keys.source(&segment("orders"))?;
        source.take(1, true).await?;
        let change = TagChange {
            step: Some(Step::new(1_000_000)?),
            step_max: Some(Step::new(1_000_000)?),
            ..TagChange::default()
        };
        keys.alter_tag(&tag("orders"), &change).await?;
        schema.sql("UPDATE keywright_segment SET reserved_ms = reserved_ms - 2000")?;
        for _ in 0..4 {
            source.take(7, true).await?;
        }
        let rate = schema.number("SELECT rate_per_s FROM keywright_segment")?;
        assert!(rate < 1_000, "{rate}");
        Ok(())
    })
}

/// Neither by one that has reserved of it, nor by one that is made later.
fn what_tables_have_is_given_by_no_source(engine: Engine) -> Result<()> {
    let schema = Schema::of(engine, "kw_left_out")?;
    runtime()?.block_on(async {
        let keys = open(&schema.raw())?;
        keys.init().await?;
        for name in ["orders", "bills"] {
            keys.create_tag(&tag(name), &small_steps(100)).await?;
        }
        let orders = keys.source(&segment("orders"))?;
        let first = orders.take(1, true).await?.number(0).unwrap();
        // Among what is reserved, and above all that the store has given.
        for id in [first + 3, first + 70_000] {
            keys.leave_out(&tag("orders"), id);
            let next = orders.take(7, true).await?.number(0).unwrap();
            assert!(next > id, "{next} is not above {id}");
        }
        keys.leave_out(&tag("bills"), 500);
        let bills = keys.source(&segment("bills"))?;
        let next = bills.take(1, true).await?.number(0).unwrap();
        assert!(next > 500, "{next} is not above 500");
        Ok(())
    })
}
