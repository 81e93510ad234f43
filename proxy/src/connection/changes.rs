//! What a connection hears of a value that others replace.

use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};

use tokio::sync::watch;
use tokio::task::unconstrained;

type Wait<T> = Pin<Box<dyn Future<Output = watch::Receiver<T>> + Send>>;

/// The wait for changes of a watched value. It is entered once by each task, and asked again only when the value has changed: a
/// connection asks at each rest.
pub(crate) struct Changes<T> {
    value: watch::Receiver<T>,
    wait: Wait<T>,
    /// Who is woken by the next change.
    woken: Option<Waker>,
}

impl<T: Send + Sync + 'static> Changes<T> {
    /// The changes from now on.
    pub(crate) fn new(mut value: watch::Receiver<T>) -> Self {
        value.mark_unchanged();
        Self {
            wait: change(value.clone()),
            value,
            woken: None,
        }
    }

    /// Whether the value has changed since this was last asked; the task is woken at the next change.
    pub(crate) fn poll(&mut self, context: &mut Context<'_>) -> bool {
        let is_woken = self
            .woken
            .as_ref()
            .is_some_and(|waker| waker.will_wake(context.waker()));
        // An error: nobody can change it any more.
        if is_woken && !self.value.has_changed().unwrap_or(false) {
            return false;
        }
        let mut has_changed = false;
        // Unconstrained: of a task that has used its turn up, tokio would not enter the wait.
        while let Poll::Ready(value) = pin!(unconstrained(self.wait.as_mut())).poll(context) {
            self.value = value.clone();
            self.wait = change(value);
            has_changed = true;
        }
        self.woken = Some(context.waker().clone());
        has_changed
    }

    /// The value's receiver.
    pub(crate) fn value(&self) -> &watch::Receiver<T> {
        &self.value
    }
}

fn change<T: Send + Sync + 'static>(mut value: watch::Receiver<T>) -> Wait<T> {
    Box::pin(async move {
        if value.changed().await.is_err() {
            // The process is about to end.
            std::future::pending::<()>().await;
        }
        value
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::Wake;

    use tokio::task::coop::{consume_budget, has_budget_remaining};
    use tokio::task::yield_now;

    use super::*;

    /// How often a task was woken.
    #[derive(Default)]
    struct Woken(AtomicUsize);

    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    impl Woken {
        fn times(&self) -> usize {
            self.0.load(Ordering::Relaxed)
        }
    }

    fn use_the_turn_up() {
        let mut context = Context::from_waker(Waker::noop());
        while has_budget_remaining() {
            let _ = pin!(consume_budget()).poll(&mut context);
        }
    }

    #[tokio::test]
    async fn a_task_that_has_used_its_turn_up_is_woken_all_the_same() {
        let (sender, receiver) = watch::channel(0);
        let woken = Arc::new(Woken::default());
        let waker = Waker::from(Arc::clone(&woken));
        let mut context = Context::from_waker(&waker);
        let mut changes = Changes::new(receiver);
        use_the_turn_up();
        assert!(!changes.poll(&mut context));
        for value in 1..=3 {
            yield_now().await;
            assert!(!changes.poll(&mut context));
            let before = woken.times();
            sender.send_replace(value);
            assert_eq!(woken.times(), before + 1, "value {value}");
            use_the_turn_up();
            assert!(changes.poll(&mut context));
            assert_eq!(*changes.value().borrow(), value);
        }
    }

    #[tokio::test]
    async fn the_task_that_asked_last_is_woken() {
        let (sender, receiver) = watch::channel(0);
        let mut changes = Changes::new(receiver);
        let tasks = [Arc::new(Woken::default()), Arc::new(Woken::default())];
        for task in &tasks {
            let waker = Waker::from(Arc::clone(task));
            assert!(!changes.poll(&mut Context::from_waker(&waker)));
        }
        sender.send_replace(1);
        assert_eq!(tasks.each_ref().map(|task| task.times()), [0, 1]);
    }
}
