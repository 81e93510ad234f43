//! Time for databases whose snowflake ids are fed: leased for them, and handed over when that commit is known.

use std::sync::atomic::Ordering;

use tracing::debug;

use super::demand::TimeDemand;
use super::server::{Refused, Server};
use super::{Feeding, Pause};
use crate::failure::Failure;
use crate::lease::fed::TimeAsker;
use crate::store::fed_rows::{GrantTime, GrantedTime};

impl Feeding {
    /// Leases and hands over what one database wants, unless that failed a moment ago.
    pub(super) async fn serve_time(
        &mut self,
        server: &Server,
        demand: &TimeDemand,
    ) -> Result<(), Failure> {
        let owner = demand.owner();
        if self
            .databases
            .get(&owner)
            .is_some_and(|pause| !pause.is_over())
        {
            return Ok(());
        }
        let served = match self.grant(demand).await {
            Ok(granted) => {
                let taken = self.hand_time_over(server, demand, &granted).await?;
                if taken.is_err() {
                    server.may_feed().await?;
                }
                taken
            }
            Err(failure) => Err(failure),
        };
        let Err(failure) = served else {
            self.databases.remove(&owner);
            self.feeder.succeeded(&demand.subject(None));
            return Ok(());
        };
        let subject = demand.subject(server.name_of(demand).await);
        let pause = self
            .databases
            .entry(owner)
            .or_insert_with(|| Pause::new(&self.limits));
        pause.note(Err(failure), &subject, &self.feeder);
        Ok(())
    }

    /// Makes time durably the database's.
    async fn grant(&self, demand: &TimeDemand) -> Result<GrantedTime, Failure> {
        let cover_ms = self.feeder.settings.snowflake.unwrap_or(0);
        let lead_ms = i64::try_from(self.snowflake.lead_ms_max).unwrap_or(i64::MAX);
        let handed = |in_this_life: bool| {
            let known = demand.handed;
            known.filter(|(_, its)| *its == in_this_life)
        };
        let request = GrantTime {
            store: &self.store,
            asker: TimeAsker {
                owner: demand.owner(),
                handed: handed(true).map(|(handed, _)| handed),
                layout: demand.layout,
            },
            key_space: demand.key_space,
            server_ms: demand.now_ms,
            known: handed(false).map(|(handed, _)| handed),
            holder: demand.holder(&self.feeder.settings.address),
            ids: self.snowflake.worker_ids.clone(),
            layout: self.snowflake.layout,
            ahead_ms: cover_ms.saturating_add(lead_ms),
            skew_ms_max: self.snowflake.skew_ms_max,
        };
        let granted = self.store.run(request).await;
        granted.map_err(|error| self.store.failure(&error))?
    }

    /// Hands time over. Inside: the server did not take it.
    ///
    /// # Errors
    /// The server did not answer: nobody knows whether it took it.
    async fn hand_time_over(
        &self,
        server: &Server,
        demand: &TimeDemand,
        granted: &GrantedTime,
    ) -> Result<Result<(), Failure>, Failure> {
        let feeder = &self.feeder;
        let answer = server.feed_time(demand, granted).await;
        match &answer {
            Ok(Ok(())) => {
                let grant = granted.grant;
                feeder.ranges.fetch_add(1, Ordering::Relaxed);
                debug!(
                    server = feeder.settings.address,
                    worker_id = grant.worker_id,
                    from_ms = grant.from_ms,
                    until_ms = grant.until_ms,
                    "handed time over"
                );
            }
            Ok(Err(_)) | Err(_) => {
                feeder.lost.fetch_add(1, Ordering::Relaxed);
            }
        }
        Ok(answer?.map_err(|Refused(failure)| failure))
    }
}
