//! What a driver has for its session: keys, lists, another user, and what a server says of new tables.

use keywright_core::{Cause, KeyBatch};
use keywright_rewrite::KeyForm;
use keywright_session::{KeyFailure, KeyRequest, List};

use super::Player;

impl Player<'_> {
    pub(super) fn authenticate(&mut self) {
        match (self.of.seed ^ self.key_requests) % 4 {
            0 => self.session.refused(),
            _ => {
                let mut facts = self.of.circumstances.facts.clone();
                facts.user = b"other".to_vec();
                self.session.reset(facts);
            }
        }
    }

    pub(super) fn show(&mut self) {
        let value = |text: &str| Some(text.to_owned());
        self.session.show(&List {
            columns: &["name", "value"],
            rows: vec![vec![value("rule"), value("1")], vec![value("uptime"), None]],
        });
    }

    /// Whether the program's own account may see tables that are new. Of some nobody answers in time.
    pub(super) fn ask_about_new_tables(&mut self) {
        self.questions += 1;
        let choice = fastrand::Rng::with_seed(self.of.seed ^ self.questions).u8(0..8);
        let tables = self.schema.tables_to_ask(false);
        assert!(!tables.is_empty(), "nobody asks about what is waited for");
        self.schema.note_asked(&tables);
        self.reach.note("waits without an answer", choice == 0);
        if choice == 0 {
            self.session.on_waited();
            return;
        }
        for table in &tables {
            let is_shown = choice > 1;
            self.reach.note("may not see a table", !is_shown);
            self.note(|| format!("  sees {table:?}: {is_shown}"));
            self.schema.note_shown(table, is_shown);
        }
    }

    /// Keys, of which there are none now and then.
    pub(super) fn keys(&mut self, request: KeyRequest) -> Result<KeyBatch, KeyFailure> {
        self.key_requests += 1;
        let (nth, count) = (self.key_requests, request.count);
        let failure = |cause, message: &str| {
            Err(KeyFailure {
                cause,
                message: message.to_owned(),
            })
        };
        let choice = fastrand::Rng::with_seed(self.of.seed ^ nth.rotate_left(32)).u8(0..16);
        if choice == 0 || count > 100_000 {
            return failure(Cause::StoreUnavailable, "the store is away");
        }
        let first = match choice {
            1 => u64::MAX >> 8,
            _ => 1_000 * nth,
        };
        Ok(match self.forms.get(request.rule) {
            Some(KeyForm::Text) => {
                KeyBatch::Texts((0..count).map(|key| format!("k{nth}-{key}")).collect())
            }
            Some(KeyForm::Bytes) => {
                KeyBatch::Bytes((0..count).map(|key| [key.to_le_bytes()[0]; 16]).collect())
            }
            Some(KeyForm::Integer) | None if choice < 4 || !request.contiguous => {
                let apart = |key: u64| first + key + u64::from(key > 2) * 50;
                KeyBatch::Listed((0..count).map(apart).collect())
            }
            Some(KeyForm::Integer) | None => KeyBatch::Numbers {
                first,
                spacing: if choice < 7 { 4 } else { 1 },
                count,
            },
        })
    }
}
