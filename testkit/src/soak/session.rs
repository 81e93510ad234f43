//! One connection that draws ids.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Error, Result};
use postgres::{Client, NoTls};

use super::verdict::judge;
use super::world::{Kind, Place, World};
use crate::copy_ids;

/// For all but the conductor: whoever is cancelled or terminated at random is one of these.
pub(super) const DRAWER: &str = "drawer";
/// No statement may hang for as long as nobody looks.
const OPTIONS: &str = "-c statement_timeout=8s -c keywright.refill_wait_ms_max=3000";

/// A connection to a database, and where what it draws is recorded.
pub(super) struct Session {
    world: Arc<World>,
    place: Arc<Place>,
    pub(super) client: Client,
    number: u32,
}

/// How ids are asked for.
#[derive(Debug, Clone, Copy)]
pub(super) enum Way {
    /// As many calls, each for as many consecutive ids, in one array.
    Batches(u32, u32),
    /// One id per call, in rows that arrive one by one.
    Singles(u32),
}

impl Session {
    /// Connects.
    ///
    /// # Errors
    /// The server refuses, or is not there.
    pub(super) fn connect(world: &Arc<World>, place: &Arc<Place>, who: &str) -> Result<Session> {
        let mut config = world.config();
        config
            .dbname(&place.name)
            .application_name(who)
            .connect_timeout(Duration::from_secs(10));
        if who == DRAWER {
            config.options(OPTIONS);
        }
        Ok(Session {
            world: Arc::clone(world),
            place: Arc::clone(place),
            client: config.connect(NoTls)?,
            number: world.findings.next_session(),
        })
    }

    /// Draws from the tag in force, or the worker.
    ///
    /// # Errors
    /// The server's; what arrived before it is recorded.
    pub(super) fn draw(&mut self, kind: Kind, way: Way) -> Result<()> {
        let tag = self.place.tag();
        self.draw_from(kind, &tag, way)
    }

    /// The same with that tag.
    ///
    /// # Errors
    /// The server's; what arrived before it is recorded.
    pub(super) fn draw_from(&mut self, kind: Kind, tag: &str, way: Way) -> Result<()> {
        let space = self.place.space(kind, tag);
        let query = query(kind, tag, way);
        let began = self.world.findings.ledger.begin();
        let mut ids = Vec::new();
        let done = match way {
            Way::Batches(_, _) => self.array(&query, &mut ids),
            Way::Singles(_) => copy_ids(&mut self.client, &query, &mut ids),
        };
        let what = format!("{query} in {}", self.place.name);
        let ledger = &self.world.findings.ledger;
        ledger.record(&space, self.number, &what, began, &ids);
        if !ids.is_empty() {
            self.place.came(kind);
        }
        done
    }

    fn array(&mut self, query: &str, ids: &mut Vec<i64>) -> Result<()> {
        let row = self.client.query_one(query, &[])?;
        *ids = row.try_get(0)?;
        Ok(())
    }

    /// Draws inside a savepoint, so that a refusal does not end the transaction around it.
    ///
    /// # Errors
    /// The session is over.
    pub(super) fn try_draw(&mut self, kind: Kind, tag: &str, way: Way) -> Result<()> {
        self.client.batch_execute("SAVEPOINT draw")?;
        if let Err(error) = self.draw_from(kind, tag, way) {
            self.refused(error)?;
            self.client.batch_execute("ROLLBACK TO draw")?;
        }
        self.client.batch_execute("RELEASE draw")?;
        Ok(())
    }

    /// Passes an error on unless the server refused as it may and the session goes on.
    ///
    /// # Errors
    /// The error given.
    pub(super) fn refused(&self, error: Error) -> Result<()> {
        let what = format!("session {} in {}", self.number, self.place.name);
        if self.world.findings.meets(&what, judge(&error)) {
            return Err(error);
        }
        Ok(())
    }
}

/// In the list of the subquery a set is made anew for each row; in FROM it would be made once and read again.
fn query(kind: Kind, tag: &str, way: Way) -> String {
    let times = match way {
        Way::Batches(calls, _) => calls,
        Way::Singles(times) => times,
    };
    let call = match (kind, way) {
        (Kind::Tag, Way::Batches(_, n)) => format!("next_biz_ids('{tag}', {n})"),
        (Kind::Tag, Way::Singles(_)) => format!("next_biz_id('{tag}')"),
        (Kind::Snowflake, Way::Batches(_, n)) => format!("snowflake_ids({n})"),
        (Kind::Snowflake, Way::Singles(_)) => "snowflake_id()".to_owned(),
        (Kind::Readable, Way::Batches(_, _) | Way::Singles(_)) => "readable_id('SOAK')".to_owned(),
    };
    let rows = format!("SELECT {call} AS id FROM generate_series(1, {times})");
    // As a number: the time as it is written (4 years of milliseconds), and what follows the business code.
    let id = match kind {
        Kind::Tag | Kind::Snowflake => "id",
        Kind::Readable => {
            "(SELECT (((extract(epoch FROM d.issued_at) * 1000)::bigint % (1::bigint << 37)) << 26) + (d.bucket << 18) + d.sequence \
             FROM readable_decode(id, 'UTC') d)"
        }
    };
    match way {
        Way::Batches(_, _) => format!("SELECT array_agg({id}) FROM ({rows}) AS drawn"),
        Way::Singles(_) => format!("SELECT {id} FROM ({rows}) AS drawn"),
    }
}
