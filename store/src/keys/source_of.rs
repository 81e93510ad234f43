//! The source of a spec, made once, and what it draws from: all sources of a tag from one supply.

use std::sync::Arc;

use keywright_core::Tag;
use keywright_core::residue::Residue;

use super::{Keys, Sources, draining};
use crate::failure::Failure;
use crate::lease::space::Space;
use crate::sources::segment::{SegmentSupply, refilling};
use crate::sources::source::{Source, Supply};
use crate::sources::time::keeper;
use crate::sources::time::supply::TimeSupply;
use crate::spec::KeySpec;

impl Keys {
    /// The source of a spec: the same one for the same spec. It begins to load at once, in the background. [`Keys::use_only`] ends that.
    ///
    /// # Errors
    /// [`keywright_core::Cause::Draining`] after [`Keys::hand_back`].
    pub fn source(&self, spec: &KeySpec) -> Result<Source, Failure> {
        if let Some(of_tag) = spec.tag().and_then(|tag| self.further_of(tag)) {
            return of_tag.source(spec);
        }
        match self.over_buckets(spec)? {
            Some(source) => Ok(source),
            None => self.source_here(spec),
        }
    }

    /// The source of a spec in this store.
    pub(super) fn source_here(&self, spec: &KeySpec) -> Result<Source, Failure> {
        let mut sources = self.sources();
        if sources.closed {
            return Err(draining());
        }
        if let Some(source) = sources.by_spec.get(spec) {
            source.want();
            return Ok(source.clone());
        }
        let supply = match spec {
            KeySpec::Segment(tag) => Supply::Segment(self.segment(&mut sources, tag, Residue::ALL)),
            KeySpec::Stride(stride) => {
                Supply::Segment(self.segment(&mut sources, stride.tag(), stride.residue()))
            }
            KeySpec::Snowflake => Supply::Time(self.time(&mut sources, Space::Snowflake)),
            KeySpec::Readable(_) => Supply::Time(self.time(&mut sources, Space::Readable)),
            KeySpec::Uuid { version, form } => {
                Supply::Uuid(Arc::clone(&self.0.uuids), *version, *form)
            }
        };
        let source = Source::new(spec.clone(), self.0.settings.limits.range_ids_max, supply);
        source.want();
        sources.by_spec.insert(spec.clone(), source.clone());
        Ok(source)
    }

    fn segment(&self, sources: &mut Sources, tag: &Tag, residue: Residue) -> Arc<SegmentSupply> {
        let key = (tag.clone(), residue);
        if let Some(supply) = sources.segments.get(&key) {
            return Arc::clone(supply);
        }
        let limits = self.0.settings.limits;
        let name = match residue {
            Residue::ALL => format!("segment:{tag}"),
            residue => format!("stride:{tag} {}/{}", residue.remainder(), residue.modulus()),
        };
        let seat = self.0.seats.of(tag, &self.0.clock);
        let supply = SegmentSupply::new(name, (tag.clone(), residue), &limits, seat);
        let hiding = self.0.settings.hidden.of(tag).cloned();
        let supply = supply.hiding(hiding).keeping(self.0.keeper.clone());
        let supply = supply.sharing(Arc::clone(&sources.news));
        if let Some(bound) = supply.kept_bound() {
            self.0.store.note_seen(tag, bound);
        }
        let supply = Arc::new(supply);
        if let Some(first) = sources.left_out.get(tag) {
            supply.leave_out(*first);
        }
        sources.segments.insert(key, Arc::clone(&supply));
        let elsewhere = self.elsewhere_to_ask();
        let store = Arc::clone(&self.0.store);
        let task = refilling::run(Arc::clone(&supply), store, elsewhere, limits);
        sources.tasks.push(self.spawn(task));
        supply
    }

    fn time(&self, sources: &mut Sources, space: Space) -> Arc<TimeSupply> {
        if let Some(supply) = sources.times.iter().find(|supply| supply.space == space) {
            return Arc::clone(supply);
        }
        let limits = self.0.settings.limits;
        let clock = Arc::clone(&self.0.clock);
        let supply = Arc::new(TimeSupply::new(
            space,
            (
                self.0.settings.snowflake.clone(),
                self.0.settings.readable_buckets.is_some(),
            ),
            clock,
            &limits,
        ));
        sources.times.push(Arc::clone(&supply));
        let task = keeper::run(Arc::clone(&supply), Arc::clone(&self.0.store), limits);
        sources.tasks.push(self.spawn(task));
        supply
    }
}
