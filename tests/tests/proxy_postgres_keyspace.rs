//! One key space over everything, for a short while: what `cargo xtask soak keyspace` does for longer. Seeds are printed, and replay it there
//! as far as timing lets them.

use std::time::Duration;

use keywright_testkit::Result;
use keywright_testkit::soak::{KeySpaceSoak, StoreKind};

fn soak(store: StoreKind, seconds: u64) -> Result<()> {
    let soak = KeySpaceSoak::new(None, Duration::from_secs(seconds), 1_000_000, store);
    println!("cargo xtask soak keyspace --seed {}", soak.seed());
    let report = soak.run()?;
    println!("{report}");
    Ok(())
}

#[test]
fn nothing_comes_twice_with_a_store_in_etcd() -> Result<()> {
    soak(StoreKind::Etcd, 40)
}

#[test]
fn nothing_comes_twice_with_a_store_in_a_file() -> Result<()> {
    soak(StoreKind::File, 20)
}
