//! Readable ids out of several stores: which of them lease which buckets, and one source over all of them.

use keywright_core::Cause;

use super::{Finding, Keys, Severity, draining};
use crate::buckets::{BucketRows, OwnBuckets, Receiver, Refused, Rest};
use crate::failure::Failure;
use crate::lease::space::Space;
use crate::sources::buckets::Buckets;
use crate::sources::source::{Source, Supply};
use crate::spec::KeySpec;
use crate::store::advance::AdvanceLeases;
use crate::store::bucket_admin::{CloseBuckets, GiveBuckets, OpenBuckets, ReadBuckets};
use crate::worker_ids::IdRange;

/// Buckets of readable ids of a store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreBuckets {
    /// The store's name.
    pub store: String,
    /// As in the configuration; nothing: none.
    pub buckets: Option<IdRange>,
}

/// A store is as the configuration says.
fn is_so(own: &OwnBuckets, wanted: Option<IdRange>, giver: &str) -> bool {
    own.is_open && own.buckets == wanted && own.giver == giver
}

impl Keys {
    fn buckets_here(&self) -> Option<IdRange> {
        self.0.settings.readable_buckets
    }

    /// The stores that readable ids come from, where the configuration says their buckets.
    pub(super) fn bucket_stores(&self) -> Vec<&Keys> {
        let all = self.all();
        all.filter(|keys| keys.buckets_here().is_some()).collect()
    }

    /// One source over all stores that have buckets, the same one for the same spec; nothing: the configuration does not say which, so they come
    /// from this store.
    pub(super) fn over_buckets(&self, spec: &KeySpec) -> Result<Option<Source>, Failure> {
        let KeySpec::Readable(biz) = spec else {
            return Ok(None);
        };
        let stores = self.bucket_stores();
        if stores.is_empty() {
            return Ok(None);
        }
        let mut supplies = Vec::new();
        for keys in stores {
            supplies.extend(keys.source_here(spec)?.time_supply());
        }
        let most = self.0.settings.limits.range_ids_max;
        let mut sources = self.sources();
        if sources.closed {
            return Err(draining());
        }
        let source = sources.over_buckets.entry(spec.clone());
        let supply = || Supply::Buckets(Buckets::new(supplies), *biz);
        let source = source.or_insert_with(|| Source::new(spec.clone(), most, supply()));
        Ok(Some(source.clone()))
    }

    /// Has all later readable ids be of a moment that is not before this one, in each store that leases buckets. The moment at which they go on, unix
    /// milliseconds.
    ///
    /// # Errors
    /// A store cannot be used.
    pub(super) async fn advance_buckets(&self, unix_ms: i64) -> Result<u64, Failure> {
        let mut on_ms = 0;
        let further = self.receivers(Rest::AsRecorded);
        for keys in std::iter::once(self).chain(further) {
            let advance = AdvanceLeases {
                space: Space::Readable,
                bound_ms: unix_ms,
            };
            on_ms = on_ms.max(keys.run(advance).await?);
        }
        Ok(on_ms.max(0).cast_unsigned())
    }

    /// Stores that are given buckets. Those that have none in this configuration are left as they are, unless nobody else may have any.
    fn receivers(&self, rest: Rest) -> impl Iterator<Item = &Keys> {
        let further = self.0.further.iter().map(|store| &store.keys);
        further.filter(move |keys| {
            let is_asked = rest == Rest::HasNone && !keys.0.settings.gives_ranges_only();
            keys.buckets_here().is_some() || is_asked
        })
    }

    /// Divides the buckets of readable ids among the stores, as the configuration says: what is so since now. `no_others`: somebody says that no other
    /// store leases any, and that each one that was ever leased is among those of its store in the configuration.
    ///
    /// # Errors
    /// One was leased in another store than is to have it, or is given to a store that is not configured; the store that gives them was restored, and
    /// nobody says that there are no others; a store cannot be used.
    pub async fn divide_buckets(&self, no_others: bool) -> Result<Vec<StoreBuckets>, Failure> {
        let rest = match (self.bucket_stores().is_empty(), no_others) {
            (true, true) => return Err(none_configured()),
            (true, false) => return Ok(Vec::new()),
            (false, true) => Rest::HasNone,
            (false, false) => Rest::AsRecorded,
        };
        let rows = self.run(ReadBuckets).await?;
        let mut all_are_so = self.is_divided_here(&rows);
        for keys in self.receivers(rest) {
            let its = keys.run(ReadBuckets).await?;
            all_are_so = all_are_so && self.is_divided(&rows, &its, keys);
        }
        if all_are_so {
            return Ok(Vec::new());
        }
        // Where a step would be refused nothing is closed.
        self.close_and_give(&rows, rest, true).await?;
        let (closed, giver) = self.close_and_give(&rows, rest, false).await?;
        let mut divided = vec![self.store_buckets()];
        for (keys, own) in closed {
            let open = OpenBuckets {
                name: keys.store_name().to_owned(),
                version: own.version,
                buckets: keys.buckets_here(),
                giver: giver.clone(),
            };
            let opened = keys.run(open).await?;
            opened.map_err(|refused: Refused| refused.failure(keys.store_name()))?;
            divided.push(keys.store_buckets());
        }
        Ok(divided)
    }

    fn store_buckets(&self) -> StoreBuckets {
        StoreBuckets {
            store: self.store_name().to_owned(),
            buckets: self.buckets_here(),
        }
    }

    /// The stores that are given buckets, as closing left them, and the id of the one that gives.
    async fn close_and_give(
        &self,
        rows: &BucketRows,
        rest: Rest,
        only_looks: bool,
    ) -> Result<(Vec<(&Keys, OwnBuckets)>, String), Failure> {
        let own = rows.own.as_ref();
        let mut closed = Vec::new();
        for keys in self.receivers(rest) {
            let close = CloseBuckets {
                name: keys.store_name().to_owned(),
                wanted: keys.buckets_here(),
                giver: own.map(|own| own.store_id.clone()),
                rest,
                only_looks,
            };
            let its = keys.run(close).await?;
            let its = its.map_err(|refused| refused.failure(keys.store_name()))?;
            closed.push((keys, its));
        }
        let receivers = closed.iter().map(|(keys, its)| receiver(keys, its));
        let give = GiveBuckets {
            name: self.store_name().to_owned(),
            version: own.map_or(0, |own| own.version),
            kept: self.buckets_here(),
            receivers: receivers.collect(),
            rest,
            only_looks,
        };
        let giver = self.run(give).await?.map_err(|(store, refused)| {
            let name = match store.as_str() {
                "" => self.store_name(),
                name => name,
            };
            refused.failure(name)
        })?;
        Ok((closed, giver))
    }

    fn is_divided_here(&self, rows: &BucketRows) -> bool {
        let own = rows.own.as_ref();
        own.is_some_and(|own| is_so(own, self.buckets_here(), &own.store_id))
    }

    fn is_divided(&self, of_giver: &BucketRows, its: &BucketRows, keys: &Keys) -> bool {
        let (Some(giver), Some(own)) = (&of_giver.own, &its.own) else {
            return false;
        };
        let mut given = of_giver.given.iter();
        let wanted = keys.buckets_here();
        is_so(own, wanted, &giver.store_id)
            && given.any(|given| given.store_id == own.store_id && given.buckets == wanted)
    }

    /// Where the configuration divides buckets otherwise than the stores, as far as they answer.
    pub(super) async fn check_buckets(&self) -> Vec<Finding> {
        let mut findings = Vec::new();
        if self.bucket_stores().is_empty() {
            return findings;
        }
        let Ok(rows) = self.run(ReadBuckets).await else {
            return findings;
        };
        let mut differs = |keys: &Keys| {
            findings.push(Finding {
                store: keys.store_name().to_owned(),
                severity: Severity::Error,
                message: not_divided(keys.store_name()).to_string(),
            });
        };
        if !self.is_divided_here(&rows) {
            differs(self);
        }
        for keys in self.receivers(Rest::AsRecorded) {
            if let Ok(its) = keys.run(ReadBuckets).await
                && !self.is_divided(&rows, &its, keys)
            {
                differs(keys);
            }
        }
        findings
    }
}

fn receiver(keys: &Keys, own: &OwnBuckets) -> Receiver {
    Receiver {
        store_id: own.store_id.clone(),
        name: keys.store_name().to_owned(),
        buckets: keys.buckets_here(),
        is_restored: own.is_restored,
    }
}

fn none_configured() -> Failure {
    let message = "no store has buckets of readable ids in this configuration";
    Failure::new(Cause::WorkerIdUnset, message).hint("set its readable_buckets")
}

fn not_divided(store: &str) -> Failure {
    let message = format!(
        "store \"{store}\" leases other buckets of readable ids than its readable_buckets, or none"
    );
    Failure::new(Cause::WorkerIdUnset, message).hint("keywright init divides them")
}
