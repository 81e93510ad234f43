//! What a connection hears of a value that others replace.

use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use tokio::sync::watch;
use tokio::task::unconstrained;

type Wait<T> = Pin<Box<dyn Future<Output = watch::Receiver<T>> + Send>>;

/// The wait for changes of a watched value. It is entered once by each task, and asked again only when that was woken: a
/// connection asks at each rest.
pub(crate) struct Changes<T> {
    value: watch::Receiver<T>,
    wait: Wait<T>,
    /// Who is woken by the next change.
    waiting: Option<Arc<Waiting>>,
}

/// A task that waits, and whether it was woken since it has entered the wait. Who changes the value tells those who wait one after the other: a task
/// that has heard of the change and waits for the next may be told of the same one once more, and waits no more then.
struct Waiting {
    task: Waker,
    is_woken: AtomicBool,
}

impl Wake for Waiting {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.is_woken.store(true, Ordering::Release);
        self.task.wake_by_ref();
    }
}

impl<T: Send + Sync + 'static> Changes<T> {
    /// The changes from now on.
    pub(crate) fn new(mut value: watch::Receiver<T>) -> Self {
        value.mark_unchanged();
        Self {
            wait: change(value.clone()),
            value,
            waiting: None,
        }
    }

    /// Whether the value has changed since this was last asked; the task is woken at the next change.
    pub(crate) fn poll(&mut self, context: &mut Context<'_>) -> bool {
        let waiting = match self.waiting.take() {
            Some(waiting) if waiting.task.will_wake(context.waker()) => {
                let waits = !waiting.is_woken.load(Ordering::Acquire);
                // An error: nobody can change it any more.
                if waits && !self.value.has_changed().unwrap_or(false) {
                    self.waiting = Some(waiting);
                    return false;
                }
                waiting.is_woken.store(false, Ordering::Release);
                waiting
            }
            Some(_) | None => Arc::new(Waiting {
                task: context.waker().clone(),
                is_woken: AtomicBool::new(false),
            }),
        };
        let waker = Waker::from(Arc::clone(&waiting));
        let mut context = Context::from_waker(&waker);
        self.waiting = Some(waiting);
        let mut has_changed = false;
        // Unconstrained: of a task that has used its turn up, tokio would not enter the wait.
        while let Poll::Ready(value) = pin!(unconstrained(self.wait.as_mut())).poll(&mut context) {
            self.value = value.clone();
            self.wait = change(value);
            has_changed = true;
        }
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
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicU64, AtomicUsize};

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

    /// A task that asks within its wake, as one on another thread may: while the sender goes on to tell the others.
    struct AsksAtOnce {
        changes: Mutex<Changes<u64>>,
        last: AtomicU64,
    }

    impl AsksAtOnce {
        fn ask(self: &Arc<Self>) {
            let waker = Waker::from(Arc::clone(self));
            let mut context = Context::from_waker(&waker);
            let mut changes = self.changes.lock().unwrap();
            while changes.poll(&mut context) {
                self.last
                    .store(*changes.value().borrow(), Ordering::Relaxed);
            }
        }
    }

    impl Wake for AsksAtOnce {
        fn wake(self: Arc<Self>) {
            self.ask();
        }
    }

    /// It enters the wait again while the sender still tells of the change, and is told once more of the same one.
    #[test]
    fn a_task_that_is_woken_twice_by_one_change_is_woken_by_the_next() {
        let (sender, receiver) = watch::channel(0);
        let task = Arc::new(AsksAtOnce {
            changes: Mutex::new(Changes::new(receiver)),
            last: AtomicU64::new(0),
        });
        task.ask();
        for value in 1..=1_000 {
            sender.send_replace(value);
            assert_eq!(task.last.load(Ordering::Relaxed), value);
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
