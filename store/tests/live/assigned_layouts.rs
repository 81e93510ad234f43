//! Databases with an assigned number and programs have one layout: ids of two layouts could meet.

use keywright_core::Cause;
use keywright_store::{KeySpec, RawSnowflakeSettings};
use keywright_testkit::Result;

use crate::common::{Engine, Schema, on_engines, open_with, runtime};

on_engines!(
    programs_of_another_layout_have_no_keys,
    none_are_assigned_beside_programs_of_another_layout,
);

/// The spare bit is where `twitter` has the highest bit of a worker id.
const SPARE: &str = "time=41,worker=9,spare=1,sequence=12,epoch=1288834974657";

fn of(layout: &str, assigned: &str) -> RawSnowflakeSettings {
    RawSnowflakeSettings {
        layout: layout.to_owned(),
        leased_worker_ids: Some("128-255".to_owned()),
        assigned_worker_ids: (!assigned.is_empty()).then(|| assigned.to_owned()),
        ..RawSnowflakeSettings::default()
    }
}

fn programs_of_another_layout_have_no_keys(engine: Engine) -> Result<()> {
    let schema = Schema::of(engine, "kw_assigned_layout")?;
    runtime()?.block_on(async {
        let keys = open_with(&schema.raw(), &of("twitter", "256-511"))?;
        keys.init().await?;
        keys.record_worker_ids(false).await?;
        keys.source(&KeySpec::Snowflake)?.take(1, true).await?;
        let keys = open_with(&schema.raw(), &of(SPARE, "256-511"))?;
        let refused = keys.source(&KeySpec::Snowflake)?.take(1, true).await;
        assert_eq!(refused.unwrap_err().cause(), Cause::LayoutOverlap);
        Ok(())
    })
}

fn none_are_assigned_beside_programs_of_another_layout(engine: Engine) -> Result<()> {
    let schema = Schema::of(engine, "kw_layout_assigned")?;
    runtime()?.block_on(async {
        let keys = open_with(&schema.raw(), &of(SPARE, ""))?;
        keys.init().await?;
        keys.record_worker_ids(false).await?;
        keys.source(&KeySpec::Snowflake)?.take(1, true).await?;
        let keys = open_with(&schema.raw(), &of("twitter", "256-511"))?;
        let refused = keys.record_worker_ids(true).await;
        assert_eq!(refused.unwrap_err().cause(), Cause::WorkerIdInUse);
        Ok(())
    })
}
