//! One program's view of the switch in the store.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use keywright_core::Cause;
use tokio::sync::Mutex;

use super::fenced::FencedTable;
use super::reached::Reached;
use super::space::KeySpace;
use super::state::{
    Change, Dropped, IdSpan, LateTable, NativeInserts, PeerReports, Phase, Recorded, RuleName,
    Standing, TableName, Unseen, WantedKeys,
};
use crate::failure::Failure;
use crate::host::holder;
use crate::keys::Keys;
use crate::store::fenced::{Admit, ForgetFenced, ReadFenced};
use crate::store::late::{DropReserved, NoteLate, ReadLate, ReadSpan};
use crate::store::lifted::{ForgetLifted, NoteLifted, ReadLifted};
use crate::store::native::{NoteNative, NoteUnseen, ReadUnseen};
use crate::store::switch_commit::{Commit, Committed, ReadRecorded, Record};
use crate::store::switch_left::ForgetAbove;
use crate::store::switch_rows::{Ask, Beat, Begin, Leave, Move, ReadStanding, Release};
use crate::store::wanted::{ReadWanted, RecordWanted};

/// What one program says to the store about the switch, and hears of it.
#[derive(Debug, Clone)]
pub struct Switchboard {
    keys: Keys,
    program: String,
    holder: String,
    /// A moment of `CLOCK_BOOTTIME` before what the program knows was read, milliseconds; 0: nothing was.
    read_since: Arc<AtomicU64>,
    /// Whether the store may have heard of it. Locked until the store has answered, also where nobody waits for that any more: what is said last
    /// is last there, too.
    was_heard: Arc<Mutex<bool>>,
}

impl Switchboard {
    /// Of a program that begins now.
    pub fn new(keys: &Keys) -> Self {
        Self {
            keys: keys.clone(),
            program: uuid::Uuid::new_v4().simple().to_string(),
            holder: holder(),
            read_since: Arc::default(),
            was_heard: Arc::default(),
        }
    }

    /// For questions of which the program's part in the switch must not know: it does not go by their answers.
    #[must_use]
    pub fn apart(&self) -> Self {
        Self::new(&self.keys)
    }

    /// The program, as the store knows it.
    pub fn program(&self) -> &str {
        &self.program
    }

    /// Reads everything.
    ///
    /// # Errors
    /// The store cannot be used.
    pub async fn standing(&self) -> Result<Standing, Failure> {
        let store = self.keys.store();
        let since_boot_ms = self.keys.boot_ms().unwrap_or(0);
        let standing = self.keys.run(ReadStanding { store }).await?;
        self.read_since.store(since_boot_ms, Ordering::Release);
        Ok(standing)
    }

    /// Says that the program is there, and for which attempt its statements wait.
    ///
    /// # Errors
    /// The store cannot be used.
    pub async fn beat(&self, held: Option<u64>) -> Result<(), Failure> {
        let mut was_heard = Arc::clone(&self.was_heard).lock_owned().await;
        let is_first = !std::mem::replace(&mut *was_heard, true);
        let beat = Beat {
            program: self.program.clone(),
            holder: self.holder.clone(),
            held,
            is_first,
            _was_heard: was_heard,
        };
        self.keys.run(beat).await?;
        // What the program goes by was read earlier, and others may have gone on in between, had it been silent for long.
        let since_boot_ms = self.read_since.load(Ordering::Acquire);
        self.keys
            .heard(Some(since_boot_ms).filter(|boot_ms| *boot_ms > 0));
        Ok(())
    }

    /// The program stops: the others need not wait for it, if they have heard of it. An attempt that it has begun, and that is not made yet, is given
    /// up; the others undo it.
    ///
    /// # Errors
    /// The store cannot be used.
    pub async fn leave(&self) -> Result<(), Failure> {
        let was_heard = Arc::clone(&self.was_heard).lock_owned().await;
        if !*was_heard {
            return Ok(());
        }
        let leave = Leave {
            program: self.program.clone(),
            _was_heard: was_heard,
        };
        self.keys.run(leave).await
    }

    /// What the configurations of all places wanted when that was in force last.
    ///
    /// # Errors
    /// The store cannot be used.
    pub async fn all_wanted(&self) -> Result<Vec<(String, WantedKeys)>, Failure> {
        self.keys.run(ReadWanted).await
    }

    /// Notes what went by this program, as it is then, and reads what the others have noted.
    ///
    /// # Errors
    /// The store cannot be used.
    pub async fn note_native(
        &self,
        figures: impl Fn() -> Vec<(RuleName, NativeInserts)> + Send + Sync + 'static,
    ) -> Result<PeerReports, Failure> {
        let program = self.program.clone();
        self.keys.run(NoteNative { program, figures }).await
    }

    /// Notes what this program found of native ids that came by no program.
    ///
    /// # Errors
    /// The store cannot be used.
    pub async fn note_unseen(&self, unseen: Unseen) -> Result<(), Failure> {
        let program = self.program.clone();
        self.keys.run(NoteUnseen { program, unseen }).await
    }

    /// What programs have found of these, by rule.
    ///
    /// # Errors
    /// The store cannot be used.
    pub async fn unseen(&self) -> Result<Vec<Unseen>, Failure> {
        self.keys.run(ReadUnseen).await
    }

    /// The ids that keys may have; `None`: there is no such tag.
    ///
    /// # Errors
    /// The store cannot be used.
    pub async fn span(&self, keys: &KeySpace) -> Result<Option<IdSpan>, Failure> {
        let read = ReadSpan {
            store: self.keys.store(),
            keys: keys.clone(),
        };
        self.keys.run(read).await
    }

    /// The tables of a server that have their fence by a rule.
    ///
    /// # Errors
    /// The store cannot be used.
    pub async fn fenced(&self, server: &str) -> Result<Vec<FencedTable>, Failure> {
        let server = Some(server.to_owned());
        self.keys.run(ReadFenced { server }).await
    }

    /// The same of all servers.
    ///
    /// # Errors
    /// The store cannot be used.
    pub async fn all_fenced(&self) -> Result<Vec<FencedTable>, Failure> {
        self.keys.run(ReadFenced { server: None }).await
    }

    /// Forgets that of a table which is not there any more.
    ///
    /// # Errors
    /// The store cannot be used.
    pub async fn forget_fenced(&self, table: FencedTable) -> Result<(), Failure> {
        self.keys.run(ForgetFenced { table }).await
    }

    /// The tables of a server that number their rows natively, behind a fence that was lifted: what looks like a fence there is the end of their counter.
    ///
    /// # Errors
    /// The store cannot be used.
    pub async fn lifted(&self, server: &str) -> Result<BTreeSet<TableName>, Failure> {
        let server = server.to_owned();
        self.keys.run(ReadLifted { server }).await
    }

    /// Records such tables, as they were found while this attempt was the last one, and in this phase. False: another one has come since, and may
    /// have fenced them; nothing is recorded.
    ///
    /// # Errors
    /// The store cannot be used.
    pub async fn note_lifted(
        &self,
        (attempt, phase): (u64, Phase),
        server: &str,
        tables: BTreeSet<TableName>,
    ) -> Result<bool, Failure> {
        let note = NoteLifted {
            attempt,
            phase,
            server: server.to_owned(),
            tables,
        };
        self.keys.run(note).await
    }

    /// Forgets those that are not there any more.
    ///
    /// # Errors
    /// The store cannot be used.
    pub async fn forget_lifted(
        &self,
        server: &str,
        tables: BTreeSet<TableName>,
    ) -> Result<(), Failure> {
        let server = server.to_owned();
        self.keys.run(ForgetLifted { server, tables }).await
    }

    /// A table is to get its fence, or has brought one (`is_fenced`), and its own ids are below `next`. Reserved keys are dropped as
    /// [`Self::drop_reserved`] does, and in the same transaction it is recorded that the table has its fence by this rule: whoever comes second drops nothing.
    /// Nothing is done where its rule does not give these keys, or another one gives it others. To be asked under the table's lock, before its fence.
    ///
    /// # Errors
    /// The store cannot be used.
    pub async fn admit(
        &self,
        table: FencedTable,
        is_fenced: bool,
        next: u64,
    ) -> Result<Dropped, Failure> {
        if !self.keys.keep_standing(None) {
            return Ok(Dropped::Not);
        }
        let admit = Admit {
            dropping: self.dropping(&table.keys, next),
            table,
            is_fenced,
        };
        self.keys.run(admit).await
    }

    fn dropping(&self, keys: &KeySpace, next: u64) -> DropReserved {
        DropReserved {
            store: self.keys.store(),
            snowflakes: self.keys.snowflakes(),
            keys: keys.clone(),
            next,
        }
    }

    /// A table has come whose own ids are below `next`. Where keys may have such ids, those that were reserved are of an older generation from
    /// now on: programs drop them. To be asked under the table's lock, before its fence. What is kept for the next start is not used from here on, until
    /// the program follows the next generation; where it cannot be told so, nothing is dropped.
    ///
    /// # Errors
    /// The store cannot be used.
    pub async fn drop_reserved(&self, keys: &KeySpace, next: u64) -> Result<Dropped, Failure> {
        if !self.keys.keep_standing(None) {
            return Ok(Dropped::Not);
        }
        self.keys.run(self.dropping(keys, next)).await
    }

    /// Notes what was found of a table that came late.
    ///
    /// # Errors
    /// The store cannot be used.
    pub async fn note_late(&self, late: LateTable) -> Result<(), Failure> {
        self.keys.run(NoteLate { late }).await
    }

    /// What programs have found of such, for people.
    ///
    /// # Errors
    /// The store cannot be used.
    pub async fn late(&self) -> Result<Vec<String>, Failure> {
        self.keys.run(ReadLate).await
    }

    /// Records what a place's configuration wants, once it is in force.
    ///
    /// # Errors
    /// The store cannot be used.
    pub async fn record_wanted(&self, place: &str, wanted: WantedKeys) -> Result<(), Failure> {
        let place = place.to_owned();
        self.keys.run(RecordWanted { place, wanted }).await
    }

    /// Begins an attempt and returns its number; `None` if one is under way, or something else is in force than it is to begin
    /// from.
    ///
    /// # Errors
    /// The store cannot be used, or its tags are another system's; some tables are to go over to keys and others back.
    pub async fn begin(&self, changes: &[Change]) -> Result<Option<u64>, Failure> {
        let spaces = changes.iter().flat_map(|change| [&change.from, &change.to]);
        let mut tags = spaces.flatten().filter_map(KeySpace::tag);
        if !self.keys.has_own_tags() && tags.next().is_some() {
            return Err(Failure::new(
                Cause::TagInvalid,
                "tables cannot be switched to tags of another system, which knows no generations",
            ));
        }
        let back = changes.iter().filter(|change| change.to.is_none()).count();
        if changes.is_empty() || back != 0 && back != changes.len() {
            return Err(Failure::new(
                Cause::TagInvalid,
                "one attempt lets tables go over to keys, or back, and not both",
            ));
        }
        let mut was_heard = Arc::clone(&self.was_heard).lock_owned().await;
        *was_heard = true;
        let begin = Begin {
            program: self.program.clone(),
            changes: changes.to_vec(),
            _was_heard: was_heard,
        };
        self.keys.run(begin).await
    }

    /// Records a counter that was read under its table's lock. False: the attempt is over, and the table may not be fenced.
    ///
    /// # Errors
    /// The store cannot be used; then it is not known whether it was recorded.
    pub async fn record(&self, attempt: u64, recorded: Recorded) -> Result<bool, Failure> {
        self.keys.run(Record { attempt, recorded }).await
    }

    /// What an attempt has recorded: the sessions to kill, and the tables whose fences are to be lifted.
    ///
    /// # Errors
    /// The store cannot be used.
    pub async fn recorded(&self, attempt: u64) -> Result<Vec<Recorded>, Failure> {
        self.keys.run(ReadRecorded { attempt }).await
    }

    /// Makes the switch to keys on these servers, above what the tables have reached and all recorded counters, or closes the tags that are left for
    /// native auto-increment.
    ///
    /// # Errors
    /// The store cannot be used; then it is not known whether it was made.
    pub async fn commit(
        &self,
        attempt: u64,
        reached: Reached,
        servers: Vec<String>,
    ) -> Result<Committed, Failure> {
        let commit = Commit {
            store: self.keys.store(),
            snowflakes: self.keys.snowflakes(),
            takeover: self.keys.takeover(),
            clock: self.keys.clock(),
            attempt,
            reached,
            servers,
        };
        self.keys.run(commit).await
    }

    /// Whether an attempt is in a phase: to be asked under a table's lock, before its fence is lifted.
    ///
    /// # Errors
    /// The store cannot be used.
    pub async fn is_in(&self, attempt: u64, phase: Phase) -> Result<bool, Failure> {
        let now = self.keys.run(Ask { attempt }).await?;
        Ok(now == Some(phase))
    }

    /// Gives an attempt up, before anything is undone. False: it is not to be had any more.
    ///
    /// # Errors
    /// The store cannot be used.
    pub async fn end(&self, attempt: u64) -> Result<bool, Failure> {
        self.go(attempt, Phase::Holding, Phase::Ending).await
    }

    /// All is undone: programs go on as before. On servers that were left as they are, counters go on from `above` once their fences are
    /// lifted.
    ///
    /// # Errors
    /// The store cannot be used.
    pub async fn release(&self, attempt: u64, above: Option<u64>) -> Result<bool, Failure> {
        self.keys.run(Release { attempt, above }).await
    }

    /// All counters go on: the tables are native.
    ///
    /// # Errors
    /// The store cannot be used.
    pub async fn complete(&self, attempt: u64) -> Result<bool, Failure> {
        self.go(attempt, Phase::Closed, Phase::None).await
    }

    /// Tables of these rules have keys from now on of which the switch knows nothing: above what their counters went on, when they were native again, says
    /// nothing any more of the ids that they have. What is in force, or under way, stays as it is.
    ///
    /// # Errors
    /// The store cannot be used.
    pub async fn forget_above(&self, rules: Vec<RuleName>) -> Result<(), Failure> {
        self.keys.run(ForgetAbove { rules }).await
    }

    async fn go(&self, attempt: u64, from: Phase, to: Phase) -> Result<bool, Failure> {
        self.keys.run(Move { attempt, from, to }).await
    }
}
