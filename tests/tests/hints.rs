//! Hints name what was probably meant.

mod common;

use common::{builder, expect_cause};
use keywright_core::cause::Cause;
use keywright_testkit::{Result, SharedServer};

static SERVER: SharedServer = SharedServer::new();

#[test]
fn layouts_and_fields_that_are_nearly_right() -> Result<()> {
    let database = SERVER.database(builder)?;
    let mut client = database.client()?;
    for (layout, meant) in [
        ("instgram", "instagram"),
        ("Twitter", "twitter"),
        ("sharding_sphere", "shardingsphere"),
        ("biadu,epoch=2024-01-01", "baidu"),
        ("time=41,wroker=10,sequence=12,epoch=2024-01-01", "worker"),
        ("time=41,worker=10,sequence=12,epoc=2024-01-01", "epoch"),
    ] {
        let refused = client.batch_execute(&format!("SELECT keywright.set_layout('{layout}')"));
        let error = expect_cause(refused, Cause::LayoutInvalid, "neither a preset");
        let hint = format!("Did you mean \"{meant}\"? Name a preset");
        assert!(error.hint.starts_with(&hint), "{error:#?}");
    }
    let refused = client.batch_execute("SELECT snowflake_decode(1, 'something else')");
    let error = expect_cause(refused, Cause::LayoutInvalid, "neither a preset");
    assert!(error.hint.starts_with("Name a preset"), "{error:#?}");
    Ok(())
}

#[test]
fn tags_that_are_nearly_right() -> Result<()> {
    let database = SERVER.database(builder)?;
    let mut client = database.client()?;
    client.batch_execute(
        "SELECT keywright.create_tag('orders'), keywright.create_tag('payments'), keywright.create_tag('secret'),
                keywright.create_tag('gone');
         SELECT keywright.drop_tag('gone'), keywright.revoke_tag('secret', 'public');
         CREATE ROLE hints_visitor",
    )?;
    let meant = [
        ("order", "orders"),
        ("Payments", "payments"),
        ("paymetns", "payments"),
    ];
    for role in ["postgres", "hints_visitor"] {
        client.batch_execute(&format!("SET ROLE {role}"))?;
        for (tag, meant) in meant {
            let refused = client.batch_execute(&format!("SELECT next_biz_id('{tag}')"));
            let error = expect_cause(refused, Cause::TagUnknown, "does not exist");
            let hint = format!("Did you mean \"{meant}\"? Otherwise create it with");
            assert!(error.hint.starts_with(&hint), "{role}: {error:#?}");
        }
        for tag in ["gond", "completely_different"] {
            let refused = client.batch_execute(&format!("SELECT next_biz_id('{tag}')"));
            let error = expect_cause(refused, Cause::TagUnknown, "does not exist");
            assert!(error.hint.starts_with("Create it"), "{role}: {error:#?}");
        }
        // Names that a role may not use are not told.
        let refused = client.batch_execute("SELECT next_biz_id('secre')");
        let error = expect_cause(refused, Cause::TagUnknown, "does not exist");
        assert_eq!(
            error.hint.contains("secret"),
            role == "postgres",
            "{error:#?}"
        );
    }
    client.batch_execute("RESET ROLE")?;
    for call in [
        "alter_tag('order')",
        "drop_tag('order')",
        "advance_tag('order', 5)",
        "grant_tag('order', 'public')",
    ] {
        let refused = client.batch_execute(&format!("SELECT keywright.{call}"));
        let error = expect_cause(refused, Cause::TagUnknown, "does not exist");
        assert!(error.hint.contains("\"orders\""), "{error:#?}");
    }
    Ok(())
}

/// Far more tags than are looked at: those beside the wanted one in the order of names are.
#[test]
fn many_tags_are_not_all_looked_at() -> Result<()> {
    let database = SERVER.database(builder)?;
    let mut client = database.client()?;
    client.batch_execute(
        "SELECT keywright.create_tag('orders');
         SET session_replication_role = replica;
         INSERT INTO keywright.tag (tag, step, step_min, step_max, start, max)
             SELECT 'x' || md5(n::text), 1, 1, 1, 1, 1 FROM generate_series(1, 50000) AS n;
         RESET session_replication_role;
         ANALYZE keywright.tag; SET statement_timeout = '5 s'",
    )?;
    let refused = client.batch_execute("SELECT next_biz_id('ordres')");
    let error = expect_cause(refused, Cause::TagUnknown, "does not exist");
    assert!(error.hint.contains("\"orders\""), "{error:#?}");
    Ok(())
}
