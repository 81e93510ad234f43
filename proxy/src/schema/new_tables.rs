//! Statements on tables that are new to the program wait here until their server was asked whether the program's own account may see them.

use tokio::sync::{Notify, watch};

use super::unshown::NEW_TABLES_MS_MAX;

/// How long a statement waits for what the server says of its table, milliseconds: for all that a question may take, and the way of its answer.
pub(crate) const ANSWER_MS_MAX: u64 = NEW_TABLES_MS_MAX + 1_000;

/// Brings together statements that wait and whoever asks.
#[derive(Debug, Default)]
pub struct NewTables {
    waiting: Notify,
    /// `keywright_session::SchemaChanges::answers`.
    answers: watch::Sender<u64>,
}

impl NewTables {
    /// Has the servers asked, and waits until there are more answers than so many.
    pub(crate) async fn answered(&self, answers: u64) {
        let mut now = self.answers.subscribe();
        self.wake();
        // Its sender is here.
        let _ = now.wait_for(|now| *now > answers).await;
    }

    /// A statement waits.
    pub fn wake(&self) {
        self.waiting.notify_one();
    }

    /// Returns when a statement has begun to wait since it last did.
    pub async fn waited_for(&self) {
        self.waiting.notified().await;
    }

    /// There are so many answers.
    pub fn tell(&self, answers: u64) {
        // Those who ask several servers at once may be late.
        self.answers
            .send_modify(|known| *known = (*known).max(answers));
    }
}

#[cfg(test)]
mod tests {
    use tokio::join;

    use super::NewTables;

    #[tokio::test]
    async fn who_waits_has_it_asked_and_hears_of_the_answer() {
        let new_tables = NewTables::default();
        let asks = async {
            new_tables.waited_for().await;
            new_tables.tell(1);
        };
        join!(new_tables.answered(0), asks);
        // It came before anybody waited.
        new_tables.answered(0).await;
        new_tables.tell(3);
        new_tables.tell(2);
        new_tables.answered(2).await;
    }
}
