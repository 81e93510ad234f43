//! Tags whose keys hide how many there are: every number goes out through one permutation, whoever takes it, or not at all.

use std::collections::BTreeSet;

use keywright_core::hiding::{HideBits, HideKey, Hiding};
use keywright_core::{Cause, KeyBatch};
use keywright_store::switch::{
    Change, CommitRefusal, Committed, KeySpace, Reached, Recorded, RuleName, Switchboard,
};
use keywright_store::{
    Above, Failure, HiddenTags, KeySpec, Keys, RawHiddenTag, RawSnowflakeSettings, StoreSettings,
    Stride, TagOptions, TagOrder,
};
use keywright_testkit::Result;

use crate::common::{
    Engine, IssuedLog, Schema, on_engines, open, runtime, segment, small_steps, tag,
};

on_engines!(
    keys_are_a_permutation_of_the_numbers,
    another_permutation_is_given_nothing,
    a_tag_keeps_its_permutation_when_it_is_made_anew,
    there_are_as_many_keys_as_the_bits_allow,
    tables_with_other_ids_and_hidden_keys_do_not_meet,
);

#[test]
fn on_mysql() -> Result<()> {
    keys_are_a_permutation_of_the_numbers(Engine::MySql)?;
    another_permutation_is_given_nothing(Engine::MySql)?;
    a_tag_keeps_its_permutation_when_it_is_made_anew(Engine::MySql)?;
    tables_with_other_ids_and_hidden_keys_do_not_meet(Engine::MySql)
}

fn hiding(byte: u8, bits: i64) -> Result<Hiding> {
    let key = HideKey::new([byte; HideKey::BYTES]);
    Ok(Hiding::new(&key, HideBits::new(bits)?))
}

/// The section of a configuration for tag "orders", whose key are so many of this byte.
fn hidden_tags(byte: u8, bits: i64) -> Result<HiddenTags> {
    let file = tempfile::NamedTempFile::new()?;
    std::fs::write(file.path(), format!("{byte:02x}").repeat(16))?;
    let section = RawHiddenTag {
        tag: "orders".to_owned(),
        hide_bits: bits,
        hide_key_file: Some(file.path().to_owned()),
        hide_key_env: None,
    };
    Ok(HiddenTags::new(&[section])?)
}

/// A program whose tag "orders" is hidden.
fn open_hidden(schema: &Schema, byte: u8, bits: i64) -> Result<Keys> {
    let settings = StoreSettings::new(&schema.raw(), &RawSnowflakeSettings::default())?;
    Ok(Keys::open(settings.hiding(hidden_tags(byte, bits)?))?)
}

/// What stands in the tag's row, as one line.
fn row(schema: &Schema) -> Result<String> {
    let rows =
        schema.sql("SELECT hi, generation, hide_bits, hide_fingerprint FROM keywright_segment")?;
    Ok(rows.concat().join(" "))
}

async fn refused(keys: &Keys) -> Result<Failure> {
    match keys.source(&segment("orders"))?.take(1, true).await {
        Err(failure) => Ok(failure),
        Ok(taken) => panic!("{taken:?}"),
    }
}

/// The numbers of keys, in their order.
fn numbers(keys: &KeyBatch, hiding: &Hiding) -> Vec<u64> {
    let all = (0..keys.len()).map(|at| keys.number(at).and_then(|key| hiding.reveal(key)));
    all.map(|number| number.expect("a key of the tag"))
        .collect()
}

fn keys_are_a_permutation_of_the_numbers(engine: Engine) -> Result<()> {
    let schema = Schema::of(engine, "kw_hidden")?;
    let hiding = hiding(7, 53)?;
    runtime()?.block_on(async {
        let (log, mut given) = (IssuedLog::default(), BTreeSet::new());
        let first = open_hidden(&schema, 7, 53)?;
        first.init().await?;
        first.create_tag(&tag("orders"), &small_steps(100)).await?;
        assert_eq!(
            first
                .check(&[tag("orders")])
                .await
                .iter()
                .filter(|its| its.message.contains("orders"))
                .count(),
            0
        );
        for round in 0..4 {
            // One that ends as if it was killed, and one that hands back what it has left.
            for is_killed in [true, false] {
                let keys = open_hidden(&schema, 7, 53)?;
                let source = keys.source(&segment("orders"))?;
                for (count, contiguous) in [(1, true), (150, false), (1, false)] {
                    let taken = source.take(count, contiguous).await?;
                    log.add_all("hidden", &taken);
                    let numbers = numbers(&taken, &hiding);
                    assert!(numbers.is_sorted(), "{numbers:?}");
                    given.extend(numbers);
                }
                // Whoever may compute them from the first gets none.
                let several = source.take(2, true).await.unwrap_err();
                assert_eq!(several.cause(), Cause::StatementUnsupported, "{round}");
                assert!(source.try_take(2, true).is_err());
                if !is_killed {
                    keys.hand_back().await;
                }
            }
        }
        assert_eq!(given.len(), 8 * 152, "no number twice");
        assert!(
            given.last() < Some(&10_000),
            "and no great gaps: {:?}",
            given.last()
        );
        assert_eq!(log.len(), given.len());
        // They are far apart, and tell nothing of how many there are.
        assert!(log.max() > 1 << 50, "{}", log.max());
        Ok(())
    })
}

fn another_permutation_is_given_nothing(engine: Engine) -> Result<()> {
    let schema = Schema::of(engine, "kw_hidden_otherwise")?;
    runtime()?.block_on(async {
        let keys = open_hidden(&schema, 7, 53)?;
        keys.init().await?;
        keys.create_tag(&tag("orders"), &small_steps(100)).await?;
        let orders = keys.source(&segment("orders"))?;
        orders.take(1, true).await?;
        let stands = row(&schema)?;
        let stride = KeySpec::Stride(Stride::new(tag("orders"), 1, 2)?);
        for (other, says) in [
            (
                open_hidden(&schema, 8, 53)?,
                "was made with another hide key",
            ),
            (
                open_hidden(&schema, 7, 31)?,
                "have hide_bits = 53, and here 31",
            ),
            (
                open(&schema.raw())?,
                "hides its volume, and this program has no key",
            ),
        ] {
            let failure = refused(&other).await?;
            assert_eq!(failure.cause(), Cause::HideKeyMismatch, "{failure}");
            assert!(failure.to_string().contains(says), "{failure}");
            let checked = other.check_hidden(&[tag("orders")]).await?;
            assert!(checked[0].to_string().contains(says), "{checked:?}");
            let by_stride = other.source(&stride)?.take(1, true).await.unwrap_err();
            assert_eq!(by_stride.cause(), Cause::HideKeyMismatch);
            // Who does not know that keys are not the numbers may name a key.
            let id = 1 << 30;
            let of_key = Above::Tag {
                tag: tag("orders"),
                id,
            };
            let advanced = other.advance(&of_key).await.unwrap_err();
            assert_eq!(advanced.cause(), Cause::HideKeyMismatch, "{advanced}");
            assert_eq!(row(&schema)?, stands, "nothing was reserved");
        }
        let by_stride = keys.source(&stride)?.take(1, true).await.unwrap_err();
        assert_eq!(by_stride.cause(), Cause::HideKeyMismatch);
        assert_eq!(row(&schema)?, stands);

        // Somebody writes another fingerprint: what was reserved before is dropped, too.
        schema.sql("UPDATE keywright_segment SET hide_fingerprint = '0123456789abcdef'")?;
        let failure = loop {
            if let Err(failure) = orders.take(10, false).await {
                break failure;
            }
        };
        assert_eq!(failure.cause(), Cause::HideKeyMismatch, "{failure}");
        assert!(orders.try_take(1, true).is_err());
        schema.sql("UPDATE keywright_segment SET hide_fingerprint = NULL")?;
        let failure = refused(&open_hidden(&schema, 7, 53)?).await?;
        assert_eq!(failure.cause(), Cause::BoundDamaged, "{failure}");

        // A tag whose keys are its numbers does not become another.
        schema.sql("UPDATE keywright_segment SET hide_bits = NULL")?;
        let failure = refused(&open_hidden(&schema, 7, 53)?).await?;
        assert_eq!(failure.cause(), Cause::HideKeyMismatch, "{failure}");
        assert!(
            failure.to_string().contains("its keys are its numbers"),
            "{failure}"
        );
        Ok(())
    })
}

fn a_tag_keeps_its_permutation_when_it_is_made_anew(engine: Engine) -> Result<()> {
    let schema = Schema::of(engine, "kw_hidden_anew")?;
    runtime()?.block_on(async {
        let keys = open_hidden(&schema, 7, 31)?;
        keys.init().await?;
        // No order, since hiding leaves none.
        for order in [TagOrder::Monotonic, TagOrder::Strict] {
            let options = TagOptions {
                order,
                ..small_steps(10)
            };
            let failure = keys.create_tag(&tag("orders"), &options).await.unwrap_err();
            assert_eq!(failure.cause(), Cause::HideKeyMismatch, "{failure}");
        }
        keys.create_tag(&tag("orders"), &small_steps(10)).await?;
        let hiding = hiding(7, 31)?;
        let before = numbers(
            &keys.source(&segment("orders"))?.take(25, false).await?,
            &hiding,
        );
        keys.drop_tag(&tag("orders")).await?;
        for other in [
            open(&schema.raw())?,
            open_hidden(&schema, 8, 31)?,
            open_hidden(&schema, 7, 53)?,
        ] {
            let failure = other
                .create_tag(&tag("orders"), &small_steps(10))
                .await
                .unwrap_err();
            assert_eq!(failure.cause(), Cause::HideKeyMismatch, "{failure}");
        }
        let again = open_hidden(&schema, 7, 31)?;
        again.create_tag(&tag("orders"), &small_steps(10)).await?;
        let after = numbers(
            &again.source(&segment("orders"))?.take(25, false).await?,
            &hiding,
        );
        assert!(
            before.iter().max() < after.iter().min(),
            "{before:?} {after:?}"
        );
        let listed = again.tags().await?;
        let fingerprint = hiding.fingerprint().to_string();
        let listed = listed[0].hiding.clone().expect("it is whole");
        assert_eq!(listed.map(|its| its.fingerprint), Some(fingerprint));
        Ok(())
    })
}

fn there_are_as_many_keys_as_the_bits_allow(engine: Engine) -> Result<()> {
    let schema = Schema::of(engine, "kw_hidden_all")?;
    let largest = HideBits::new(31)?.largest();
    runtime()?.block_on(async {
        let keys = open_hidden(&schema, 7, 31)?;
        keys.init().await?;
        // More than there are is not wanted by anybody who knows.
        keys.create_tag(&tag("orders"), &small_steps(10)).await?;
        let above = |id| Above::Tag {
            tag: tag("orders"),
            id,
        };
        let beyond = keys.advance(&above(largest + 1)).await.unwrap_err();
        assert_eq!(beyond.cause(), Cause::ArgumentOutOfRange, "{beyond}");
        // Numbers, not keys.
        keys.advance_using_up(&tag("orders"), largest - 3).await?;
        // One by one: a reservation may end before them all.
        let (source, hiding) = (keys.source(&segment("orders"))?, hiding(7, 31)?);
        for expected in [largest - 2, largest - 1, largest] {
            let taken = source.take(1, false).await?;
            assert_eq!(numbers(&taken, &hiding), [expected]);
        }
        let none = refused(&keys).await?;
        assert_eq!(none.cause(), Cause::TagExhausted, "{none}");
        // Whatever somebody writes there.
        schema.sql("UPDATE keywright_segment SET id_max = 9000000000000000000")?;
        let none = refused(&open_hidden(&schema, 7, 31)?).await?;
        assert_eq!(none.cause(), Cause::TagExhausted, "{none}");
        Ok(())
    })
}

fn tables_with_other_ids_and_hidden_keys_do_not_meet(engine: Engine) -> Result<()> {
    let schema = Schema::of(engine, "kw_hidden_switch")?;
    runtime()?.block_on(async {
        let keys = open_hidden(&schema, 7, 53)?;
        keys.init().await?;
        keys.create_tag(&tag("orders"), &small_steps(10)).await?;
        keys.create_tag(&tag("plain"), &small_steps(10)).await?;
        let board = Switchboard::new(&keys);
        let rule = RuleName {
            tables: "shop.orders".to_owned(),
            column: "id".to_owned(),
        };
        let space = |name: &str| KeySpace::Tag(tag(name));
        let begin = async |from: Option<&str>, to: Option<&str>| -> Result<u64> {
            let change = Change {
                rule: rule.clone(),
                from: from.map(space),
                to: to.map(space),
            };
            let attempt = board.begin(&[change]).await?;
            Ok(attempt.expect("no other attempt is under way"))
        };
        let recorded = |counter, was_fenced| Recorded {
            server: "s".to_owned(),
            schema: "shop".to_owned(),
            table: "orders".to_owned(),
            counter,
            was_fenced,
        };
        let give_up = async |attempt| -> Result<()> {
            board.end(attempt).await?;
            board.release(attempt, None).await?;
            Ok(())
        };
        let orders = space("orders");
        let here = || vec!["s".to_owned()];

        // The server has made an id once, though no row has it.
        let on = begin(None, Some("orders")).await?;
        board.record(on, recorded(2, false)).await?;
        let refused = Committed::Refused(orders.clone(), CommitRefusal::NotEmpty(1));
        assert_eq!(board.commit(on, Reached::default(), here()).await?, refused);
        give_up(on).await?;
        // A row has one that nobody's counter made.
        let on = begin(None, Some("orders")).await?;
        let mut reached = Reached::default();
        reached.add_rows(&orders, 41, false);
        let refused = Committed::Refused(orders.clone(), CommitRefusal::NotEmpty(40));
        assert_eq!(board.commit(on, reached, here()).await?, refused);
        give_up(on).await?;

        let on = begin(None, Some("orders")).await?;
        board.record(on, recorded(1, false)).await?;
        assert_eq!(
            board.commit(on, Reached::default(), here()).await?,
            Committed::Done
        );
        let span = board.span(&orders).await?.expect("there is such a tag");
        assert_eq!(
            (span.first, span.bound),
            (1, 1),
            "no id of a table's own is let in"
        );
        let hi = schema.number("SELECT hi FROM keywright_segment WHERE tag = 'orders'")?;

        // On another server, whose copies of the rows have such keys already.
        let again = begin(Some("orders"), Some("orders")).await?;
        board.record(again, recorded(5_000_000_000, true)).await?;
        let mut reached = Reached::default();
        reached.add_rows(&orders, 5_000_000_000, true);
        assert_eq!(board.commit(again, reached, here()).await?, Committed::Done);
        let still = schema.number("SELECT hi FROM keywright_segment WHERE tag = 'orders'")?;
        assert_eq!(still, hi, "keys say nothing of numbers");

        // There is no way back, and none to other keys.
        for to in [None, Some("plain")] {
            let off = begin(Some("orders"), to).await?;
            let refused = match to {
                None => orders.clone(),
                Some(name) => space(name),
            };
            let refused = Committed::Refused(refused, CommitRefusal::Hidden);
            assert_eq!(
                board.commit(off, Reached::default(), here()).await?,
                refused
            );
            give_up(off).await?;
        }
        Ok(())
    })
}
