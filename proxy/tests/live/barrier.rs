//! Programs that let a table of two servers go over to keys and back, in steps that the test chooses.

use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::time::Duration;

use keywright_core::{Step, Tag};
use keywright_proxy::config::Config;
use keywright_proxy::switch::{Ahead, ClientConnections, Conductor, Limits};
use keywright_store::switch::{Change, KeySpace, Next, Phase, RuleName, Standing, Switchboard};
use keywright_store::{Keys, TagOptions};
use keywright_testkit::{AT_FENCE, Flavour, Reply, Result, Upstream, WAIT_MAX};
use tokio::time::{Instant, sleep};

pub const LIMITS: Limits = Limits {
    wait_ms_max: 60_000,
    peer_wait_ms: 60_000,
};
/// Attempts are late soon; so long it takes to reach the servers, too.
pub const IMPATIENT: Limits = Limits {
    wait_ms_max: 1_000,
    ..LIMITS
};

/// Clients of a program, of which the test says whether something is under way.
#[derive(Default)]
pub struct Clients {
    pub holds: Cell<bool>,
    pub is_busy: Cell<bool>,
    /// How often it is looked before a connection comes to say that it is the one.
    pub looks: Cell<u32>,
    pub followed: RefCell<Option<Standing>>,
}

impl ClientConnections for Clients {
    fn note_ahead(&self, _: Ahead) {}

    fn note_late(&self, _: &RuleName) {}

    fn hold(&self, _: &Standing) -> bool {
        self.holds.set(true);
        true
    }

    fn is_quiet(&self) -> bool {
        !self.is_busy.get()
    }

    fn in_the_way(&self) -> Option<String> {
        let who = match self.looks.get() {
            0 => "a client",
            _ => "a statement",
        };
        self.is_busy.get().then(|| who.to_owned())
    }

    fn is_unnamed(&self) -> bool {
        let looks = self.looks.get();
        self.looks.set(looks.saturating_sub(1));
        self.is_busy.get() && looks > 0
    }

    fn follow(&self, standing: &Standing) -> bool {
        self.holds.set(false);
        *self.followed.borrow_mut() = Some(standing.clone());
        true
    }
}

/// A table `t` on two servers, and a store.
pub struct Fleet {
    pub schema: &'static str,
    pub servers: [Arc<Upstream>; 2],
    pub keys: Keys,
    pub config: Arc<Config>,
}

pub type Program = Conductor<Clients>;

fn text(schema: &str, ports: [u16; 2], admin_ports: [u16; 2]) -> String {
    let mut text = format!(
        "[store]\nurl = \"mysql://root@127.0.0.1:{}/{schema}\"\n",
        ports[0]
    );
    for (port, admin) in ports.into_iter().zip(admin_ports) {
        text += &format!(
            "[[listener]]\nbind = \"127.0.0.2:{port}\"\nupstream = \"127.0.0.1:{port}\"\n\
             admin = \"mysql://root@127.0.0.1:{admin}?prefer_socket=false\"\n"
        );
    }
    text += &format!("[[rule]]\ntable = \"{schema}.t\"\ncolumn = \"id\"\nkey = \"segment:a\"\n");
    text
}

impl Fleet {
    pub async fn new(schema: &'static str) -> Result<Fleet> {
        let servers = [
            Upstream::shared(Flavour::MariaDb)?,
            Upstream::shared(Flavour::MySql)?,
        ];
        for server in &servers {
            server.run("", &format!("CREATE DATABASE {schema}"))?;
            server.run(
                schema,
                "CREATE TABLE t (id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY, a INT) ENGINE = InnoDB",
            )?;
        }
        let ports = [&servers[0], &servers[1]].map(|server| server.port());
        let config = Config::parse(&text(schema, ports, ports))?;
        let keys = Keys::open(config.store.clone())?;
        keys.init().await?;
        let step = Step::new(100)?;
        keys.create_tag(&tag(), &TagOptions::with_step(step))
            .await?;
        Ok(Fleet {
            schema,
            servers,
            keys,
            config: Arc::new(config),
        })
    }

    /// As configured, with other ports for the connections of a program's own.
    pub fn config_through(&self, admin_ports: [u16; 2]) -> Result<Config> {
        Config::parse(&text(self.schema, self.ports(), admin_ports))
    }

    /// As configured.
    pub fn text(&self) -> String {
        text(self.schema, self.ports(), self.ports())
    }

    fn ports(&self) -> [u16; 2] {
        let [one, other] = &self.servers;
        [one.port(), other.port()]
    }

    pub fn program(&self, limits: Limits) -> Program {
        self.program_with(&self.keys, limits)
    }

    pub fn program_with(&self, keys: &Keys, limits: Limits) -> Program {
        let board = Switchboard::new(keys);
        Conductor::new(board, Arc::clone(&self.config), limits, Clients::default())
    }

    pub fn change(&self, from: Option<KeySpace>, to: Option<KeySpace>) -> [Change; 1] {
        [Change {
            rule: RuleName {
                tables: format!("{}.t", self.schema),
                column: "id".to_owned(),
            },
            from,
            to,
        }]
    }

    /// What a native insert gets on each server.
    pub fn insert(&self) -> Result<[Option<u64>; 2]> {
        let insert = |server: &Arc<Upstream>| -> Result<Option<u64>> {
            let replies = server
                .wire(self.schema)?
                .query("INSERT INTO t (a) VALUES (1)")?;
            match replies.into_iter().next() {
                Some(Reply::Done(done)) => Ok(Some(done.last_insert_id)),
                Some(Reply::Failed(fault)) if AT_FENCE.contains(&fault.errno) => Ok(None),
                other => anyhow::bail!("{other:?}"),
            }
        };
        let [one, other] = &self.servers;
        Ok([insert(one)?, insert(other)?])
    }

    pub async fn standing(&self) -> Result<Standing> {
        Ok(Switchboard::new(&self.keys).standing().await?)
    }
}

pub fn space() -> KeySpace {
    KeySpace::Tag(tag())
}

pub fn tag() -> Tag {
    Tag::parse("a").unwrap()
}

pub fn runtime() -> Result<tokio::runtime::Runtime> {
    Ok(tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?)
}

/// Steps until one comes to this.
pub async fn until(program: &mut Program, wanted: fn(Next) -> bool) -> Result<()> {
    let end = Instant::now() + WAIT_MAX;
    while Instant::now() < end {
        if wanted(program.step().await?) {
            return Ok(());
        }
    }
    anyhow::bail!("it never came to that")
}

pub fn follows(next: Next) -> bool {
    next == Next::Follow
}

pub fn is_wanted() -> bool {
    Flavour::ALL.into_iter().all(Flavour::is_wanted)
}

#[test]
fn a_table_goes_over_on_all_servers_and_back() -> Result<()> {
    if !is_wanted() {
        return Ok(());
    }
    runtime()?.block_on(async {
        let fleet = Fleet::new("sw_barrier").await?;
        let (mut one, mut other) = (fleet.program(LIMITS), fleet.program(LIMITS));
        until(&mut one, follows).await?;
        until(&mut other, follows).await?;
        for _ in 0..5 {
            fleet.insert()?;
        }
        // Ids that no row shows.
        let mut wire = fleet.servers[1].wire(fleet.schema)?;
        for sql in [
            "BEGIN",
            "INSERT INTO t (a) VALUES (1), (1), (1)",
            "ROLLBACK",
        ] {
            wire.run(sql)?;
        }
        // A range from before, as observing programs have them.
        let source = fleet.keys.source(&fleet.config.rules[0].spec)?;
        source.take(1, true).await?;

        assert!(one.begin(&fleet.change(None, Some(space()))).await?);
        assert!(!other.begin(&fleet.change(None, Some(space()))).await?);
        other.connections().is_busy.set(true);
        until(&mut one, |next| matches!(next, Next::Acknowledge(_))).await?;
        assert!(one.connections().holds.get());
        // The other one's transactions go on, and nothing is fenced before they have ended.
        for _ in 0..5 {
            other.step().await?;
            assert_eq!(one.step().await?, Next::Wait);
        }
        assert!(other.connections().holds.get());
        assert_eq!(fleet.insert()?, [Some(6), Some(9)]);
        other.connections().is_busy.set(false);
        assert!(matches!(other.step().await?, Next::Acknowledge(_)));
        assert!(matches!(one.step().await?, Next::Carry(_)));
        until(&mut one, follows).await?;
        until(&mut other, follows).await?;
        assert_eq!(fleet.insert()?, [None, None]);
        let standing = fleet.standing().await?;
        assert_eq!(standing.rules[0].keys, Some(space()));
        let generations = &standing.generations;
        let of_tag = generations.iter().find(|(keys, _)| *keys == space());
        fleet.keys.follow(&space(), of_tag.unwrap().1);
        let key = source.take(1, true).await?.number(0).unwrap();
        assert!(key >= 10, "{key} is a native id");

        // Back, by the other one; what the first still has is below.
        assert!(other.begin(&fleet.change(Some(space()), None)).await?);
        until(&mut one, |next| matches!(next, Next::Acknowledge(_))).await?;
        until(&mut other, |next| matches!(next, Next::Carry(_))).await?;
        assert_eq!(fleet.standing().await?.phase, Phase::Closed);
        assert_eq!(fleet.insert()?, [None, None]);
        let late = source.take(1, true).await?.number(0).unwrap();
        until(&mut other, follows).await?;
        until(&mut one, follows).await?;
        for id in fleet.insert()? {
            assert!(id.unwrap() > late, "{id:?} is below key {late}");
        }
        Ok(())
    })
}

#[test]
fn an_attempt_whose_leader_is_gone_is_undone_by_others() -> Result<()> {
    if !is_wanted() {
        return Ok(());
    }
    runtime()?.block_on(async {
        let fleet = Fleet::new("sw_undone").await?;
        let (mut leader, mut other) = (fleet.program(LIMITS), fleet.program(LIMITS));
        until(&mut leader, follows).await?;
        until(&mut other, follows).await?;
        assert_eq!(fleet.insert()?, [Some(1), Some(1)]);
        assert!(leader.begin(&fleet.change(None, Some(space()))).await?);
        // A transaction on the second server: the first one is fenced by then.
        let mut wire = fleet.servers[1].wire(fleet.schema)?;
        wire.run("BEGIN")?;
        wire.run("INSERT INTO t (a) VALUES (1)")?;
        until(&mut leader, |next| matches!(next, Next::Acknowledge(_))).await?;
        until(&mut other, |next| matches!(next, Next::Acknowledge(_))).await?;
        let refused = leader.step().await.unwrap_err().to_string();
        assert!(refused.contains("is locked: connection"), "{refused}");
        assert_eq!(fleet.standing().await?.phase, Phase::Ending);
        assert_eq!(fleet.insert()?[0], None);
        drop(leader);
        wire.run("COMMIT")?;
        assert_eq!(other.step().await?, Next::Wait);
        let mut rescuer = fleet.program(IMPATIENT);
        until(&mut rescuer, |next| matches!(next, Next::Undo(_))).await?;
        until(&mut other, follows).await?;
        assert_eq!(fleet.standing().await?.phase, Phase::None);
        assert_eq!(fleet.insert()?, [Some(2), Some(4)]);
        assert!(other.begin(&fleet.change(None, Some(space()))).await?);
        Ok(())
    })
}

/// The one that gives the attempt up does not know whose clients are in the way. The one that began it puts everything back, and names its own.
#[test]
fn whoever_began_an_attempt_that_others_give_up_names_who_is_in_the_way() -> Result<()> {
    if !is_wanted() {
        return Ok(());
    }
    runtime()?.block_on(async {
        let fleet = Fleet::new("sw_named").await?;
        let (mut leader, mut other) = (fleet.program(LIMITS), fleet.program(IMPATIENT));
        until(&mut leader, follows).await?;
        until(&mut other, follows).await?;
        assert!(leader.begin(&fleet.change(None, Some(space()))).await?);
        leader.connections().is_busy.set(true);
        until(&mut leader, |next| matches!(next, Next::Hold(_))).await?;
        until(&mut other, |next| matches!(next, Next::End(_))).await?;
        assert!(matches!(leader.step().await?, Next::Undo(_)));
        let told = leader.take_given_up().unwrap_or_default();
        assert!(told.contains("a client"), "{told}");
        until(&mut leader, follows).await?;
        until(&mut other, follows).await?;
        assert_eq!(fleet.insert()?, [Some(1), Some(1)]);
        Ok(())
    })
}

/// On a busy machine an attempt may be late before its connections have had a turn.
#[test]
fn an_attempt_that_is_late_waits_for_the_names_of_who_is_in_the_way() -> Result<()> {
    if !is_wanted() {
        return Ok(());
    }
    runtime()?.block_on(async {
        let fleet = Fleet::new("sw_late_names").await?;
        let mut leader = fleet.program(IMPATIENT);
        until(&mut leader, follows).await?;
        assert!(leader.begin(&fleet.change(None, Some(space()))).await?);
        leader.connections().is_busy.set(true);
        leader.connections().looks.set(5);
        // It takes so long until it comes to hold.
        sleep(Duration::from_millis(IMPATIENT.wait_ms_max)).await;
        until(&mut leader, |next| matches!(next, Next::End(_))).await?;
        let told = leader.take_given_up().unwrap_or_default();
        assert!(told.contains("a client"), "{told}");
        Ok(())
    })
}
