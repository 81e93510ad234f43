//! Programs that lack the rule of tables that the switch is about. One of its name that has left the switch gives keys by itself, while the store goes on
//! saying what was in force for it.

use std::sync::Arc;

use keywright_proxy::config::Config;
use keywright_proxy::switch::{Conductor, Limits, server_identities, with_tables_here};
use keywright_store::switch::{
    Change, Committed, FencedTable, Next, Phase, Reached, Recorded, RuleName, Switchboard,
};
use keywright_testkit::{Flavour, Result, WAIT_MAX};
use tokio::time::Instant;

use crate::barrier::{
    Clients, Fleet, IMPATIENT, LIMITS, Program, follows, is_wanted, runtime, space, until,
};

/// Above all that was reserved.
const BEYOND: u64 = 5_000;

/// Programs of the fleet whose rule of the table is not switched: its keys are of another kind, or its tag is in a store of its own.
fn not_switched(fleet: &Fleet) -> Result<[Program; 2]> {
    let text = fleet.text();
    let stride = text.replace("\"segment:a\"", "\"stride:b\"\noffset = 1\nincrement = 2");
    let main = text.replace("[store]\n", "[[store]]\nname = \"main\"\n");
    let moved = format!(
        "{main}[[store]]\nname = \"far\"\nurl = \"file:/var/lib/keywright/far.db\"\ntags = [\"a\"]\n"
    );
    let program = |text: &str| -> Result<Program> {
        let config = Config::parse(text)?;
        assert!(config.rules.iter().all(|rule| !rule.is_switched));
        let board = Switchboard::new(&fleet.keys);
        Ok(Conductor::new(
            board,
            Arc::new(config),
            LIMITS,
            Clients::default(),
        ))
    };
    Ok([program(&stride)?, program(&moved)?])
}

/// A program of the fleet whose only rule is of another table.
fn without_rule(fleet: &Fleet, limits: Limits) -> Result<Program> {
    let table = format!("\"{}.t\"", fleet.schema);
    let text = fleet.text().replace(&table, "\"other.t\"");
    let board = Switchboard::new(&fleet.keys);
    let config = Arc::new(Config::parse(&text)?);
    Ok(Conductor::new(board, config, limits, Clients::default()))
}

/// Tables are on their way back, their tag is closed, and who did that is gone.
async fn close(fleet: &Fleet) -> Result<()> {
    let mut leader = fleet.program(LIMITS);
    until(&mut leader, follows).await?;
    assert!(leader.begin(&fleet.change(None, Some(space()))).await?);
    until(&mut leader, follows).await?;
    assert!(leader.begin(&fleet.change(Some(space()), None)).await?);
    until(&mut leader, |next| matches!(next, Next::Carry(_))).await?;
    assert_eq!(fleet.standing().await?.phase, Phase::Closed);
    Ok(())
}

/// What it says when it comes to complete the attempt.
async fn refusal(program: &mut Program) -> Result<String> {
    let end = Instant::now() + WAIT_MAX;
    while Instant::now() < end {
        match program.step().await {
            Ok(Next::Hold(_) | Next::Wait) => {}
            Ok(next) => anyhow::bail!("{next:?}"),
            Err(refused) => return Ok(refused.to_string()),
        }
    }
    anyhow::bail!("it never came to that")
}

#[test]
fn tables_go_back_by_a_program_that_has_their_rule() -> Result<()> {
    if !is_wanted() {
        return Ok(());
    }
    runtime()?.block_on(async {
        let fleet = Fleet::new("sw_back").await?;
        close(&fleet).await?;
        let mut lacks = without_rule(&fleet, IMPATIENT)?;
        let refused = refusal(&mut lacks).await?;
        assert!(refused.contains("has the table sw_back.t"), "{refused}");
        assert_eq!(fleet.standing().await?.phase, Phase::Closed);
        assert_eq!(fleet.insert()?, [None, None]);
        let mut has_it = fleet.program(IMPATIENT);
        until(&mut has_it, |next| matches!(next, Next::Complete(_))).await?;
        until(&mut lacks, follows).await?;
        assert!(fleet.insert()?.iter().all(Option::is_some));
        Ok(())
    })
}

/// Others are not held up for ever. Who has the rule comes back to the fences, and native ids go on above the keys.
#[test]
fn fences_that_are_left_on_the_way_back_are_lifted_by_who_has_the_rule() -> Result<()> {
    if !is_wanted() {
        return Ok(());
    }
    runtime()?.block_on(async {
        let fleet = Fleet::new("sw_back_left").await?;
        close(&fleet).await?;
        let soon = Limits {
            peer_wait_ms: 500,
            ..IMPATIENT
        };
        let mut lacks = without_rule(&fleet, soon)?;
        until(&mut lacks, |next| matches!(next, Next::Complete(_))).await?;
        let standing = fleet.standing().await?;
        assert_eq!(standing.phase, Phase::None);
        assert_eq!(fleet.insert()?, [None, None]);
        let mut has_lifted = false;
        let has_it = fleet.program(LIMITS);
        has_it.lift_left(&mut has_lifted).await?;
        assert!(has_lifted);
        let above = standing.rules[0].above;
        for id in fleet.insert()? {
            assert!(id.is_some() && id >= above, "{id:?} {above:?}");
        }
        Ok(())
    })
}

fn set_counters(fleet: &Fleet, next: impl Fn(Flavour) -> u64) -> Result<()> {
    // As the fleet has them.
    let flavours = [Flavour::MariaDb, Flavour::MySql];
    for (server, flavour) in fleet.servers.iter().zip(flavours) {
        let next = next(flavour);
        server.run(
            fleet.schema,
            &format!("ALTER TABLE t AUTO_INCREMENT = {next}"),
        )?;
    }
    Ok(())
}

fn fence(flavour: Flavour) -> u64 {
    match flavour {
        Flavour::MariaDb => 1 << 63,
        Flavour::MySql => u64::MAX,
    }
}

/// Whoever inserts past the programs would get ids that the rule gives to others.
#[test]
fn the_fence_of_a_rule_that_has_left_the_switch_stays() -> Result<()> {
    if !is_wanted() {
        return Ok(());
    }
    runtime()?.block_on(async {
        let fleet = Fleet::new("sw_left").await?;
        let mut switched = fleet.program(LIMITS);
        until(&mut switched, follows).await?;
        assert!(switched.begin(&fleet.change(None, Some(space()))).await?);
        until(&mut switched, follows).await?;
        assert!(switched.begin(&fleet.change(Some(space()), None)).await?);
        until(&mut switched, follows).await?;
        // As the schema refresh sets it, of rules that are not switched.
        set_counters(&fleet, fence)?;
        let mut has_lifted = false;
        for program in not_switched(&fleet)? {
            program.lift_left(&mut has_lifted).await?;
            assert!(!has_lifted);
            assert_eq!(fleet.insert()?, [None, None]);
        }
        // As of servers that took over: nothing is recorded of their tables.
        fleet.servers[0].run(fleet.schema, "DELETE FROM keywright_lifted")?;
        switched.lift_left(&mut has_lifted).await?;
        assert!(has_lifted);
        assert!(fleet.insert()?.iter().all(Option::is_some));
        Ok(())
    })
}

/// The keys of the switch are not those that the rule gives, so that they say nothing of ids that its tables have; nor does a switch come that
/// would let a table go on.
#[test]
fn a_table_of_a_rule_that_has_left_the_switch_waits_for_none() -> Result<()> {
    if !is_wanted() {
        return Ok(());
    }
    runtime()?.block_on(async {
        let fleet = Fleet::new("sw_left_ahead").await?;
        let mut switched = fleet.program(LIMITS);
        until(&mut switched, follows).await?;
        assert!(switched.begin(&fleet.change(None, Some(space()))).await?);
        until(&mut switched, follows).await?;
        // As after a copy that was made without its fence.
        set_counters(&fleet, |_| BEYOND)?;
        // Servers on which nothing was brought into force.
        let mut elsewhere = fleet.standing().await?;
        for rule in &mut elsewhere.rules {
            rule.servers.clear();
        }
        for mut program in not_switched(&fleet)? {
            program.fence_missing().await?;
            assert!(!program.has_ahead());
            let repeated = program.on_unknown_servers(&elsewhere).await;
            assert!(repeated.is_empty(), "{repeated:?}");
        }
        switched.fence_missing().await?;
        assert!(switched.has_ahead());
        let repeated = switched.on_unknown_servers(&elsewhere).await;
        assert_eq!(repeated.len(), 1, "{repeated:?}");
        Ok(())
    })
}

fn rule(tables: &str) -> RuleName {
    RuleName {
        tables: tables.to_owned(),
        column: "id".to_owned(),
    }
}

/// By a pattern for many schemas a program would have the store forget what another one needs for its servers.
#[test]
fn a_rule_has_left_where_a_server_has_its_tables() -> Result<()> {
    if !is_wanted() {
        return Ok(());
    }
    runtime()?.block_on(async {
        let fleet = Fleet::new("sw_left_here").await?;
        let stride = "\"stride:b\"\noffset = 1\nincrement = 2";
        let text = fleet.text().replace("\"segment:a\"", stride);
        let config = Config::parse(&text.replace("sw_left_here.t", "sw_left_*.t"))?;
        let (here, elsewhere) = (rule("sw_left_here.t"), rule("sw_left_elsewhere.t"));
        let names = vec![here.clone(), elsewhere];
        let (found, looked) = with_tables_here((&config, None), names).await;
        looked?;
        assert_eq!(found, [here]);
        Ok(())
    })
}

/// A table of a rule has its fence, as the store says, and is in force.
async fn bring_into_force(fleet: &Fleet, tables: &str, table: &str) -> Result<()> {
    let board = Switchboard::new(&fleet.keys);
    let change = Change {
        rule: rule(tables),
        from: None,
        to: Some(space()),
    };
    let attempt = board.begin(&[change]).await?;
    let attempt = attempt.ok_or_else(|| anyhow::anyhow!("another attempt is under way"))?;
    let servers = server_identities(&fleet.config).await;
    let mut reached = Reached::default();
    for server in &servers {
        let recorded = Recorded {
            server: server.clone(),
            schema: fleet.schema.to_owned(),
            table: table.to_owned(),
            counter: 1,
            was_fenced: false,
        };
        assert!(board.record(attempt, recorded).await?);
        reached.add_table((server.as_str(), fleet.schema, table), &space());
        reached.add_fenced(FencedTable {
            server: server.clone(),
            schema: fleet.schema.to_owned(),
            table: table.to_owned(),
            rule: rule(tables),
            keys: space(),
        });
    }
    let committed = board.commit(attempt, reached, servers.into_iter().collect());
    assert_eq!(committed.await?, Committed::Done);
    Ok(())
}

/// Their programs see to them, and a look would ask for each of them.
#[test]
fn what_is_recorded_of_tables_by_other_programs_rules_is_left_to_these() -> Result<()> {
    if !is_wanted() {
        return Ok(());
    }
    runtime()?.block_on(async {
        let fleet = Fleet::new("sw_others").await?;
        bring_into_force(&fleet, "sw_others.t", "gone").await?;
        bring_into_force(&fleet, "sw_others.other_*", "other_gone").await?;
        let mut program = fleet.program(LIMITS);
        until(&mut program, follows).await?;
        program.fence_missing().await?;
        let board = Switchboard::new(&fleet.keys);
        for server in server_identities(&fleet.config).await {
            let recorded = board.fenced(&server).await?.into_iter();
            let tables: Vec<String> = recorded.map(|its| its.table).collect();
            assert!(!tables.contains(&"gone".to_owned()), "{tables:?}");
            assert!(tables.contains(&"other_gone".to_owned()), "{tables:?}");
        }
        Ok(())
    })
}
