//! A connection that leads to another server than before, as behind a proxy that moves connections or shares them: each transaction
//! sees it.

use keywright_store::RawStoreSettings;
use keywright_testkit::{Flavour, Result, Upstream};

use crate::common::{open, raw, runtime, segment, small_steps, tag};
use crate::put_back::until_known;

/// MariaDB has no identity but what it is set to, so another number makes it another server for connections that are open.
#[test]
fn another_server_behind_an_open_connection_is_met_as_by_a_new_one() -> Result<()> {
    let server = Upstream::start_with(Flavour::MariaDb, &["--server-id=1"])?;
    server.run("", "CREATE DATABASE keywright")?;
    until_known(|| server.up_s())?;
    let settings = RawStoreSettings {
        connections_max: 1,
        ..raw(server.port(), "keywright")
    };
    runtime()?.block_on(async {
        let keys = open(&settings)?;
        keys.init().await?;
        for name in ["orders", "items", "others"] {
            keys.create_tag(&tag(name), &small_steps(100)).await?;
        }
        keys.source(&segment("orders"))?.take(1, true).await?;
        server.run("", "SET GLOBAL server_id = 2")?;
        let items = keys.source(&segment("items"))?.take(1, true).await?;
        let meets_it = open(&settings)?;
        let others = meets_it.source(&segment("others"))?.take(1, true).await?;
        assert_eq!(items.number(0), others.number(0));
        assert!(items.number(0) > Some(1), "a gap is left out");
        // What was reserved on the one before is not handed back to this one.
        keys.hand_back().await;
        let rests = server.run("keywright", "SELECT tag FROM keywright_returned")?;
        assert_eq!(rests, [["items"]]);
        Ok(())
    })
}
