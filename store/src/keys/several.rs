//! Several stores: which has a tag, and what is asked of each.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};

use keywright_core::{Cause, Tag};

use super::{Finding, Keys, Severity};
use crate::elsewhere::{Elsewhere, Stands, stands};
use crate::failure::Failure;
use crate::home::Standing;
use crate::store::home_rows::{ReadStandings, Standings, TagIn};
use crate::store::tag_admin::TagListing;
use crate::store::tag_denied::may_be_open;
use crate::store::tag_read::closed_here;

/// A store, and whether it answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreUp {
    /// Its name; empty where there is one without.
    pub name: String,
    /// Where it is, without user and password.
    pub address: String,
    /// Whether it let the program in and answered when it was last spoken to; `None` before.
    pub is_up: Option<bool>,
}

impl Keys {
    /// This store, then those that hold some tags.
    pub(super) fn all(&self) -> impl Iterator<Item = &Keys> {
        std::iter::once(self).chain(self.0.further.iter().map(|store| &store.keys))
    }

    /// The name of the store, where there are several.
    pub fn store_name(&self) -> &str {
        self.0.settings.name()
    }

    /// Whether there are several stores.
    pub fn are_several(&self) -> bool {
        !self.0.further.is_empty()
    }

    /// This store alone: whatever tag is named, it is asked.
    #[must_use]
    pub fn by_itself(&self) -> Keys {
        let inner = &self.0;
        Keys(Arc::new(super::Inner {
            settings: inner.settings.clone(),
            store: Arc::clone(&inner.store),
            clock: Arc::clone(&inner.clock),
            uuids: Arc::clone(&inner.uuids),
            seats: Arc::clone(&inner.seats),
            keeper: inner.keeper.clone(),
            sources: Mutex::default(),
            runtime: inner.runtime.clone(),
            further: Vec::new(),
            elsewhere: inner.elsewhere.clone(),
            end: Arc::clone(&inner.end),
        }))
    }

    /// Each store by itself, this one first: its own tags, and whether it is there.
    pub fn stores(&self) -> Vec<Keys> {
        self.all().cloned().collect()
    }

    /// Whether each store answers.
    pub fn stores_up(&self) -> Vec<StoreUp> {
        let of = |keys: &Keys| StoreUp {
            name: keys.store_name().to_owned(),
            address: keys.store_address().to_owned(),
            is_up: keys.0.store.is_up(),
        };
        self.all().map(of).collect()
    }

    /// The store of that name.
    ///
    /// # Errors
    /// There is none.
    pub fn store_named(&self, name: &str) -> Result<&Keys, Failure> {
        let found = self.all().find(|keys| keys.store_name() == name);
        found.ok_or_else(|| {
            let names: Vec<String> = self
                .all()
                .map(|keys| format!("\"{}\"", keys.store_name()))
                .collect();
            let message = format!("there is no store \"{name}\"");
            let failure = Failure::new(Cause::ArgumentOutOfRange, message);
            match self.are_several() {
                true => failure.hint(format!("there are {}", names.join(", "))),
                false => failure.hint("several are configured as [[store]], each with a name"),
            }
        })
    }

    /// The store of a tag, if that is not this one.
    pub(super) fn further_of(&self, tag: &Tag) -> Option<&Keys> {
        let mut further = self.0.further.iter();
        further
            .find(|store| store.its.holds(tag))
            .map(|store| &store.keys)
    }

    /// The store where a tag is at home, by the configuration.
    pub fn home_of(&self, tag: &Tag) -> &Keys {
        self.further_of(tag).unwrap_or(self)
    }

    /// The same of each of some tags, by store.
    fn at_home(&self, tags: &[Tag]) -> Vec<(&Keys, Vec<Tag>)> {
        let of = |keys: &Keys| {
            let its = |tag: &&Tag| self.home_of(tag).store_name() == keys.store_name();
            tags.iter().filter(its).cloned().collect()
        };
        self.all().map(|keys| (keys, of(keys))).collect()
    }

    pub(super) fn tag_in(&self, tag: &Tag) -> TagIn {
        TagIn {
            store: Arc::clone(&self.0.store),
            name: self.store_name().to_owned(),
            tag: tag.clone(),
        }
    }

    /// What stands of a tag in this store.
    pub(super) async fn stands_here(&self, tag: &Tag) -> Result<Stands, Failure> {
        let is_ranges = self.gives_ranges_only();
        stands(self.tag_in(tag), &self.0.runtime, is_ranges).await
    }

    /// Each store is told how the others are asked.
    pub(super) fn meet_each_other(&self) {
        if !self.are_several() {
            return;
        }
        // The tag is filled in when one is asked for.
        let Ok(any) = Tag::parse("any") else { return };
        for keys in self.all() {
            let is_other = |other: &&Keys| other.store_name() != keys.store_name();
            let others = self.all().filter(is_other).map(|other| {
                let handle = other.0.runtime.clone();
                (other.tag_in(&any), handle, other.gives_ranges_only())
            });
            let elsewhere = Elsewhere::new(others.collect(), keys.0.settings.mark());
            // It is told once.
            drop(keys.0.elsewhere.set(Arc::new(elsewhere)));
        }
    }

    /// The other stores, if they must be asked because this one cannot say itself that a tag is closed in them.
    pub(super) fn elsewhere_to_ask(&self) -> Option<Arc<Elsewhere>> {
        match self.has_own_tags() {
            true => None,
            false => self.0.elsewhere.get().cloned(),
        }
    }

    /// Looks at all stores and changes nothing: are they there, have they their tables and these tags, would a commit survive.
    pub async fn check(&self, tags: &[Tag]) -> Vec<Finding> {
        let mut findings = Vec::new();
        for (keys, tags) in self.at_home(tags) {
            let found = keys.check_here(&tags).await.into_iter();
            findings.extend(found.map(|finding| Finding {
                store: keys.store_name().to_owned(),
                ..finding
            }));
        }
        findings.extend(self.check_buckets().await);
        let refused = self.not_at_home(tags).await.into_iter();
        findings.extend(refused.map(|failure| Finding {
            store: String::new(),
            severity: Severity::Error,
            message: failure.to_string(),
        }));
        findings
    }

    /// Those tags that are not in their store. One store that cannot be used keeps nothing of the others back.
    ///
    /// # Errors
    /// None is missing, as far as is known, and a store cannot be used.
    pub async fn missing(&self, tags: &[Tag]) -> Result<Vec<Tag>, Failure> {
        let mut answers = Vec::new();
        for (keys, tags) in self.at_home(tags) {
            answers.push(keys.missing_here(&tags).await);
        }
        all_or_failure(answers)
    }

    /// Those tags that are ordered.
    ///
    /// # Errors
    /// None is, as far as is known, and a store cannot be used.
    pub async fn ordered(&self, tags: &[Tag]) -> Result<Vec<Tag>, Failure> {
        let mut answers = Vec::new();
        for (keys, tags) in self.at_home(tags) {
            answers.push(keys.ordered_here(&tags).await);
        }
        all_or_failure(answers)
    }

    /// Why the stores give no keys of some of these tags: they were made with another permutation than this program has for them, or with none.
    ///
    /// # Errors
    /// None is refused, as far as is known, and a store cannot be used.
    pub async fn check_hidden(&self, tags: &[Tag]) -> Result<Vec<Failure>, Failure> {
        let mut answers = Vec::new();
        for (keys, tags) in self.at_home(tags) {
            answers.push(match keys.has_own_tags() {
                true => keys.check_hidden_here(&tags).await,
                false => Ok(Vec::new()),
            });
        }
        all_or_failure(answers)
    }

    /// All tags, each of the store where it is at home.
    ///
    /// # Errors
    /// A store cannot be used.
    pub async fn tags(&self) -> Result<Vec<TagListing>, Failure> {
        let mut all = Vec::new();
        for keys in self
            .all()
            .filter(|keys| !keys.gives_ranges_only() || !self.are_several())
        {
            let rows = keys.tags_here().await?.into_iter();
            all.extend(rows.filter(|row| match Tag::parse(&row.tag) {
                Ok(tag) => self.home_of(&tag).store_name() == keys.store_name(),
                Err(_) => true,
            }));
        }
        Ok(all)
    }

    /// Why nobody gets ids of some of these tags, as far as their stores answer: they are closed there, or may be open in another store too.
    pub async fn not_at_home(&self, tags: &[Tag]) -> Vec<Failure> {
        let mut found: Vec<(&Keys, Standings)> = Vec::new();
        for keys in self
            .all()
            .filter(|keys| keys.has_own_tags() || self.are_several())
        {
            // A store that cannot be asked is told of elsewhere.
            if let Ok(standings) = keys.standings_here(tags).await {
                found.push((keys, standings));
            }
        }
        let refused = tags.iter();
        refused
            .filter_map(|tag| self.why_not_at_home(tag, &found))
            .collect()
    }

    /// What stands of tags in this store.
    async fn standings_here(&self, tags: &[Tag]) -> Result<Standings, Failure> {
        if self.gives_ranges_only() {
            let mut there: HashSet<Tag> = tags.iter().cloned().collect();
            for missing in self.missing_here(tags).await? {
                there.remove(&missing);
            }
            return Ok(Standings::Others(there));
        }
        self.run(ReadStandings {
            store: Arc::clone(&self.0.store),
            tags: tags.to_vec(),
        })
        .await
    }

    fn why_not_at_home(&self, tag: &Tag, found: &[(&Keys, Standings)]) -> Option<Failure> {
        let open = found
            .iter()
            .filter(|(_, standings)| standings.has_open(tag));
        let open: Vec<&str> = open.map(|(keys, _)| keys.store_name()).collect();
        if let [one, other, ..] = open.as_slice() {
            return Some(open_in_both(tag, one, other));
        }
        let home = self.home_of(tag);
        if let [store] = open.as_slice()
            && *store != home.store_name()
        {
            return Some(open_in_another(tag, store, home.store_name()));
        }
        let mut at_home = found.iter();
        let (_, standings) = at_home.find(|(keys, _)| keys.store_name() == home.store_name())?;
        let row = standings.row(tag)?;
        match &row.standing {
            _ if row.is_dropped => None,
            standing @ (Standing::Opening(_) | Standing::Elsewhere(_)) => {
                Some(closed_here(tag, standing))
            }
            Standing::Open => may_be_open(&home.0.store.others, row.closed_in.as_deref(), tag),
            Standing::Native(_) => None,
        }
    }
}

/// Why a tag is not made, or given, where it is at home by the configuration.
pub(super) fn open_in_another(tag: &Tag, store: &str, home: &str) -> Failure {
    let message = format!(
        "tag \"{tag}\" is open in store \"{store}\", and by the configuration in store \"{home}\""
    );
    Failure::new(Cause::TagExists, message)
        .hint(format!("keywright tag move {tag} --to-store {home}"))
}

/// Why nobody is to take of a tag.
pub(super) fn open_in_both(tag: &Tag, one: &str, other: &str) -> Failure {
    let message = format!(
        "tag \"{tag}\" is open in store \"{one}\" and in store \"{other}\": ids would come twice"
    );
    Failure::new(Cause::TagExists, message).hint(format!(
        "was one of them restored, or is it a tag of another system? Raise the one that is to stay above all that both gave, and drop the other: \
         keywright advance {tag} --store NAME --above ID, keywright tag drop {tag} --store NAME"
    ))
}

fn all_or_failure<T>(answers: Vec<Result<Vec<T>, Failure>>) -> Result<Vec<T>, Failure> {
    let (mut all, mut failure) = (Vec::new(), None);
    for answer in answers {
        match answer {
            Ok(found) => all.extend(found),
            Err(error) => failure = Some(error),
        }
    }
    match failure {
        Some(failure) if all.is_empty() => Err(failure),
        Some(_) | None => Ok(all),
    }
}
