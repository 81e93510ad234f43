//! A short soak: what `cargo xtask soak pg` does for minutes. Its seeds are printed, and replay it there as far as timing lets them.

use std::time::Duration;

use keywright_testkit::Result;
use keywright_testkit::soak::Soak;

/// Enough for each kind of event to come a few times.
const LENGTH: Duration = Duration::from_secs(35);

/// Its first events change a time zone for good, and roll identities back: by ROLLBACK PREPARED and by a crash.
const EVENTFUL: u64 = 77;

fn soak(seed: Option<u64>) -> Result<()> {
    let soak = Soak::new(seed, LENGTH);
    println!("cargo xtask soak pg --seed {}", soak.seed());
    let report = soak.run()?;
    println!("{report}");
    assert!(report.ids >= 1_000_000, "only {} ids", report.ids);
    assert!(report.counts.crashes >= 4, "{:?}", report.counts);
    Ok(())
}

#[test]
fn nothing_comes_twice_with_the_seed_that_stays() -> Result<()> {
    soak(Some(EVENTFUL))
}

#[test]
fn nothing_comes_twice_with_a_seed_of_its_own() -> Result<()> {
    soak(None)
}
