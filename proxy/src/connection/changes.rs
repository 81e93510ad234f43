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
    use std::sync::Barrier;
    use std::sync::atomic::{AtomicU64, AtomicUsize};
    use std::thread::{self, Thread};
    use std::time::{Duration, Instant};

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

    /// A task of a thread of its own.
    struct Unparked(Thread);

    impl Wake for Unparked {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }

    /// It may be told of a change that it has heard of already.
    #[test]
    fn a_task_that_is_told_twice_hears_of_the_next_change() {
        const CHANGES: u64 = 30_000;
        let (sender, receiver) = watch::channel(0);
        let (heard, waits) = (Arc::new(AtomicU64::new(0)), Arc::new(Barrier::new(2)));
        let task = thread::spawn({
            let (heard, waits) = (Arc::clone(&heard), Arc::clone(&waits));
            move || {
                let waker = Waker::from(Arc::new(Unparked(thread::current())));
                let mut context = Context::from_waker(&waker);
                let mut changes = Changes::new(receiver);
                assert!(!changes.poll(&mut context));
                waits.wait();
                while heard.load(Ordering::Relaxed) < CHANGES {
                    if changes.poll(&mut context) {
                        heard.store(*changes.value().borrow(), Ordering::Relaxed);
                    } else {
                        thread::park();
                    }
                }
            }
        });
        waits.wait();
        for value in 1..=CHANGES {
            sender.send_replace(value);
            let sent = Instant::now();
            while heard.load(Ordering::Relaxed) < value {
                assert!(
                    sent.elapsed() < Duration::from_secs(30),
                    "change {value} was missed"
                );
                thread::yield_now();
            }
        }
        task.join().unwrap();
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
