//! The clock of the store is set back in the middle of an attempt: what was noted before is ahead of it from then on, and statements wait no longer
//! for that.

use keywright_proxy::switch::Limits;
use keywright_store::switch::{Next, Phase};
use keywright_testkit::Result;

use crate::barrier::{Fleet, IMPATIENT, LIMITS, follows, is_wanted, runtime, space, until};

/// Attempts are not late before the test is over.
const PATIENT: Limits = Limits {
    wait_ms_max: 600_000,
    ..LIMITS
};

/// As after a step back by an hour.
fn set_back(fleet: &Fleet) -> Result<()> {
    let [store, _] = &fleet.servers;
    store.run(
        fleet.schema,
        "UPDATE keywright_switch SET begun_at = begun_at + INTERVAL 1 HOUR;
         UPDATE keywright_program SET seen_at = seen_at + INTERVAL 1 HOUR",
    )?;
    Ok(())
}

#[test]
fn an_attempt_is_late_in_spite_of_a_clock_that_was_set_back() -> Result<()> {
    if !is_wanted() {
        return Ok(());
    }
    runtime()?.block_on(async {
        let fleet = Fleet::new("sw_clock").await?;
        let mut leader = fleet.program(IMPATIENT);
        until(&mut leader, follows).await?;
        assert!(leader.begin(&fleet.change(None, Some(space()))).await?);
        leader.connections().is_busy.set(true);
        until(&mut leader, |next| matches!(next, Next::Hold(_))).await?;
        set_back(&fleet)?;
        until(&mut leader, |next| matches!(next, Next::End(_))).await?;
        until(&mut leader, follows).await?;
        assert_eq!(fleet.insert()?, [Some(1), Some(1)]);
        Ok(())
    })
}

#[test]
fn a_leader_that_is_gone_is_missed_in_spite_of_a_clock_that_was_set_back() -> Result<()> {
    if !is_wanted() {
        return Ok(());
    }
    runtime()?.block_on(async {
        let fleet = Fleet::new("sw_clock_gone").await?;
        let (mut leader, mut other) = (fleet.program(PATIENT), fleet.program(PATIENT));
        until(&mut leader, follows).await?;
        until(&mut other, follows).await?;
        assert!(leader.begin(&fleet.change(None, Some(space()))).await?);
        until(&mut leader, |next| matches!(next, Next::Acknowledge(_))).await?;
        drop(leader);
        set_back(&fleet)?;
        until(&mut other, |next| matches!(next, Next::End(_))).await?;
        until(&mut other, follows).await?;
        assert_eq!(fleet.standing().await?.phase, Phase::None);
        assert_eq!(fleet.insert()?, [Some(1), Some(1)]);
        Ok(())
    })
}
