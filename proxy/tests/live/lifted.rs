//! Tables whose numbers are used up natively, behind a fence that was lifted. On MariaDB their counter is then where the fence would be, and rows that
//! had the last ids may be gone: who took it for a fence would have the server make these ids again.

use std::collections::BTreeSet;
use std::sync::Arc;

use keywright_proxy::config::Config;
use keywright_proxy::switch::{Conductor, Limits, server_identities};
use keywright_store::switch::{Next, Phase, Switchboard};
use keywright_testkit::Result;

use crate::barrier::{
    Clients, Fleet, IMPATIENT, LIMITS, Program, follows, is_wanted, runtime, space, until,
};

/// The largest number of the column.
const LARGEST: u64 = 32_767;

/// A fleet whose table soon has no number left.
struct Narrow {
    fleet: Fleet,
    config: Arc<Config>,
}

impl Narrow {
    async fn new(schema: &'static str) -> Result<Narrow> {
        let fleet = Fleet::new(schema).await?;
        for server in &fleet.servers {
            let narrow = "ALTER TABLE t MODIFY id SMALLINT NOT NULL AUTO_INCREMENT";
            server.run(schema, narrow)?;
        }
        let config = Config::parse(&format!("{}bits_max = 15\n", fleet.text()))?;
        Ok(Narrow {
            fleet,
            config: Arc::new(config),
        })
    }

    fn program(&self, limits: Limits) -> Program {
        let board = Switchboard::new(&self.fleet.keys);
        Conductor::new(board, Arc::clone(&self.config), limits, Clients::default())
    }

    /// Its table is switched on, by a program that has come so far.
    async fn switched_on(&self) -> Result<Program> {
        let mut program = self.program(LIMITS);
        until(&mut program, follows).await?;
        let on = self.fleet.change(None, Some(space()));
        assert!(program.begin(&on).await?);
        until(&mut program, follows).await?;
        Ok(program)
    }

    /// And native again.
    async fn native_again(&self) -> Result<Program> {
        let mut program = self.switched_on().await?;
        let back = self.fleet.change(Some(space()), None);
        assert!(program.begin(&back).await?);
        until(&mut program, follows).await?;
        Ok(program)
    }

    fn on_mariadb(&self, sql: &str) -> Result<()> {
        self.fleet.servers[0].run(self.fleet.schema, sql)?;
        Ok(())
    }

    /// Its native ids come to the end there, and their rows go.
    fn use_up(&self) -> Result<()> {
        let before = LARGEST - 1;
        self.on_mariadb(&format!("INSERT INTO t (id, a) VALUES ({before}, 1)"))?;
        assert_eq!(self.fleet.insert()?[0], Some(LARGEST));
        self.on_mariadb("DELETE FROM t")
    }

    /// The id that a native insert gets there.
    fn next(&self) -> Result<Option<u64>> {
        Ok(self.fleet.insert()?[0])
    }
}

/// What a program that looks at native tables lifts.
async fn lifts(program: &Program) -> Result<bool> {
    let mut has_lifted = false;
    program.lift_left(&mut has_lifted).await?;
    Ok(has_lifted)
}

#[test]
fn the_end_of_a_native_counter_is_no_fence() -> Result<()> {
    if !is_wanted() {
        return Ok(());
    }
    runtime()?.block_on(async {
        for (schema, is_record_lost) in [("sw_end", false), ("sw_end_seen", true)] {
            let narrow = Narrow::new(schema).await?;
            let program = narrow.native_again().await?;
            if is_record_lost {
                // As where whoever lifted the fence was killed behind that: the next look sees that there is none.
                narrow.on_mariadb("DELETE FROM keywright_lifted")?;
                assert!(!lifts(&program).await?);
            }
            narrow.use_up()?;
            for program in [program, narrow.program(LIMITS)] {
                assert!(!lifts(&program).await?);
                assert_eq!(narrow.next()?, None, "an id of a row that was deleted");
            }
        }
        Ok(())
    })
}

/// Whoever led the way back was killed when the fence was lifted, and before the attempt had its end.
#[test]
fn the_way_back_is_gone_once() -> Result<()> {
    if !is_wanted() {
        return Ok(());
    }
    runtime()?.block_on(async {
        let narrow = Narrow::new("sw_end_back").await?;
        let mut leader = narrow.switched_on().await?;
        let back = narrow.fleet.change(Some(space()), None);
        assert!(leader.begin(&back).await?);
        until(&mut leader, |next| matches!(next, Next::Carry(_))).await?;
        drop(leader);
        let standing = narrow.fleet.standing().await?;
        assert_eq!(standing.phase, Phase::Closed);
        narrow.on_mariadb("ALTER TABLE t AUTO_INCREMENT = 1000")?;
        let board = Switchboard::new(&narrow.fleet.keys);
        let table = (narrow.fleet.schema.to_owned(), "t".to_owned());
        for server in server_identities(&narrow.config).await {
            let of = (standing.attempt, Phase::Closed);
            let tables = BTreeSet::from([table.clone()]);
            assert!(board.note_lifted(of, &server, tables).await?);
        }
        narrow.use_up()?;
        let mut other = narrow.program(IMPATIENT);
        until(&mut other, |next| matches!(next, Next::Complete(_))).await?;
        assert_eq!(narrow.fleet.standing().await?.phase, Phase::None);
        let [of_mariadb, of_mysql] = narrow.fleet.insert()?;
        assert_eq!(of_mariadb, None, "an id of a row that was deleted");
        assert!(of_mysql.is_some());
        assert!(!lifts(&other).await?);
        assert_eq!(narrow.next()?, None);
        Ok(())
    })
}

/// Switched on again, and given up without somebody who could lift the fence: what was recorded before says nothing of that one.
#[test]
fn a_fence_of_an_attempt_that_was_given_up_is_lifted_where_one_was_before() -> Result<()> {
    if !is_wanted() {
        return Ok(());
    }
    runtime()?.block_on(async {
        let narrow = Narrow::new("sw_end_left").await?;
        let mut leader = narrow.native_again().await?;
        let native = narrow.next()?;
        let on = narrow.fleet.change(None, Some(space()));
        assert!(leader.begin(&on).await?);
        // A transaction on the second server: the first one is fenced by then.
        let mut wire = narrow.fleet.servers[1].wire(narrow.fleet.schema)?;
        wire.run("BEGIN")?;
        wire.run("INSERT INTO t (a) VALUES (1)")?;
        until(&mut leader, |next| matches!(next, Next::Acknowledge(_))).await?;
        let refused = leader.step().await.unwrap_err().to_string();
        assert!(refused.contains("is locked: connection"), "{refused}");
        drop(leader);
        wire.run("COMMIT")?;
        // The program that is left has no rule for the table.
        let table = format!("\"{}.t\"", narrow.fleet.schema);
        let text = narrow.fleet.text().replace(&table, "\"other.t\"");
        let soon = Limits {
            peer_wait_ms: 500,
            ..IMPATIENT
        };
        let board = Switchboard::new(&narrow.fleet.keys);
        let config = Arc::new(Config::parse(&text)?);
        let mut lacks = Conductor::new(board, config, soon, Clients::default());
        until(&mut lacks, |next| matches!(next, Next::Undo(_))).await?;
        assert_eq!(narrow.fleet.standing().await?.phase, Phase::None);
        assert_eq!(narrow.next()?, None);
        let has_it = narrow.program(LIMITS);
        assert!(lifts(&has_it).await?);
        let next = narrow.next()?;
        assert!(next > native, "{next:?} {native:?}");
        // And that is all.
        narrow.use_up()?;
        assert!(!lifts(&has_it).await?);
        assert_eq!(narrow.next()?, None);
        Ok(())
    })
}

/// Out of a dump that was taken behind the fence, say: once nobody has seen the table any more, it is another one.
#[test]
fn a_table_that_is_made_anew_with_a_fence_goes_on_natively() -> Result<()> {
    if !is_wanted() {
        return Ok(());
    }
    runtime()?.block_on(async {
        let narrow = Narrow::new("sw_end_dump").await?;
        let program = narrow.native_again().await?;
        narrow.on_mariadb("DROP TABLE t")?;
        assert!(!lifts(&program).await?);
        let fence = LARGEST + 1;
        narrow.on_mariadb(&format!(
            "CREATE TABLE t (id SMALLINT NOT NULL AUTO_INCREMENT PRIMARY KEY, a INT) ENGINE = InnoDB; ALTER TABLE t AUTO_INCREMENT = {fence}"
        ))?;
        assert_eq!(narrow.next()?, None);
        assert!(lifts(&program).await?);
        assert!(narrow.next()?.is_some());
        Ok(())
    })
}
