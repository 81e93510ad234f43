//! Sources that nobody uses any more: the rules that had them have others, or are gone.

use std::collections::HashSet;

use super::Keys;
use crate::sources::demand::Demand;
use crate::spec::KeySpec;

impl Keys {
    /// Only the sources of these specs are used from here on. Another one gives up its worker id and reserves nothing ahead, and is not in trouble for
    /// having nothing, until [`Keys::source`] is asked for it again. Who still takes keys of it gets them as before.
    pub fn use_only(&self, used: &HashSet<KeySpec>) {
        for keys in self.all() {
            keys.use_only_here(used);
        }
    }

    fn use_only_here(&self, used: &HashSet<KeySpec>) {
        let sources = self.sources();
        let (mut in_use, mut unused): (Vec<&Demand>, Vec<&Demand>) = (Vec::new(), Vec::new());
        for (spec, source) in &sources.by_spec {
            match used.contains(spec) {
                true => in_use.extend(source.demand()),
                false => unused.extend(source.demand()),
            }
        }
        // Also where an earlier snapshot that lacks it was handed out meanwhile.
        for demand in &in_use {
            demand.want();
        }
        for demand in unused {
            // Several may draw from one: all readable keys do.
            if !in_use.iter().any(|its| std::ptr::eq(*its, demand)) {
                demand.want_no_more();
            }
        }
    }
}
