//! The proxy's threads, each with a runtime of its own. A client stays on the thread it is given to, so each is given to the one
//! that has fewest: which thread is the first to accept it says nothing about how busy the others are. Clients of key ports come several to a
//! thread before the next has any: their requests cost little but the wake-up, which then serves those of several at once.

use std::cmp::Reverse;
use std::future::{Future, pending};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::runtime::{Builder, Handle, Runtime};

use crate::connection::buffers::Buffers;

/// More clients than there can be.
const CLIENTS_MAX: usize = usize::MAX / 2;

/// Clients of a MySQL listener that share a thread before another one is given any.
pub(crate) const CLIENTS_TOGETHER: usize = 1;
/// The same of a key port.
pub(crate) const PORT_CLIENTS_TOGETHER: usize = 8;

/// Where clients can be given to.
#[derive(Debug)]
pub(crate) struct Threads(Vec<Thread>);

#[derive(Debug)]
struct Thread {
    runtime: Handle,
    clients: Arc<AtomicUsize>,
    buffers: Arc<Buffers>,
}

/// A client's place on a thread, free again when it is dropped.
#[derive(Debug)]
pub(crate) struct Seat {
    clients: Arc<AtomicUsize>,
    buffers: Arc<Buffers>,
}

impl Seat {
    /// The buffers of its thread.
    pub(crate) fn buffers(&self) -> Arc<Buffers> {
        Arc::clone(&self.buffers)
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.clients.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A thread whose runtime is there. When it is dropped with that, the thread has more clients than any other: what a runtime is
/// given that is gone is dropped at once.
struct There(Arc<AtomicUsize>);

impl Drop for There {
    fn drop(&mut self) {
        self.0.fetch_add(CLIENTS_MAX, Ordering::Relaxed);
    }
}

impl Threads {
    /// Runtimes, each for a thread to run, and how to give clients to them.
    ///
    /// # Errors
    /// Too many open files.
    pub(crate) fn new(count: usize) -> io::Result<(Self, Vec<Runtime>)> {
        let runtimes = (0..count)
            .map(|_| Builder::new_current_thread().enable_all().build())
            .collect::<io::Result<Vec<_>>>()?;
        let thread = |runtime: &Runtime| {
            let clients = Arc::default();
            let there = There(Arc::clone(&clients));
            runtime.spawn(async move {
                let _there = there;
                pending::<()>().await;
            });
            Thread {
                runtime: runtime.handle().clone(),
                clients,
                buffers: Arc::default(),
            }
        };
        Ok((Self(runtimes.iter().map(thread).collect()), runtimes))
    }

    /// Serves a client on the thread that has fewest, counted in groups of so many that share one, of those that have not ended. It keeps
    /// its seat itself: a task around it would have room for it twice.
    pub(crate) fn give<F>(&self, together: usize, client: impl FnOnce(Seat) -> F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let fewest = |thread: &&Thread| {
            let clients = thread.clients.load(Ordering::Relaxed);
            // A group that has begun is filled first.
            (clients.checked_div(together), Reverse(clients))
        };
        let Some(thread) = self.0.iter().min_by_key(fewest) else {
            return;
        };
        thread.clients.fetch_add(1, Ordering::Relaxed);
        let seat = Seat {
            clients: Arc::clone(&thread.clients),
            buffers: Arc::clone(&thread.buffers),
        };
        thread.runtime.spawn(client(seat));
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::atomic::Ordering;
    use std::sync::mpsc::{Receiver, channel};
    use std::thread::{self, ThreadId};

    use tokio::sync::watch;

    use super::{CLIENTS_TOGETHER, Thread, Threads};

    /// How many of so many clients are on each thread.
    fn counted(on: &Receiver<ThreadId>, clients: usize) -> Vec<usize> {
        let mut counts = BTreeMap::new();
        for thread in on.iter().take(clients) {
            *counts.entry(format!("{thread:?}")).or_default() += 1;
        }
        counts.into_values().collect()
    }

    #[test]
    fn clients_are_spread_over_the_threads_as_they_come_and_go() -> std::io::Result<()> {
        let (threads, runtimes) = Threads::new(4)?;
        let (end, ended) = watch::channel(false);
        for runtime in runtimes {
            let mut ended = ended.clone();
            thread::spawn(move || {
                let _ = runtime.block_on(ended.wait_for(|ended| *ended));
            });
        }
        let (tell, on) = channel();
        let (leave, left) = watch::channel(0_usize);
        let (gone, is_gone) = channel();
        for client in 0..40 {
            let (tell, gone, mut left) = (tell.clone(), gone.clone(), left.clone());
            threads.give(CLIENTS_TOGETHER, |seat| async move {
                let _seat = seat;
                let _ = tell.send(thread::current().id());
                // Those of two threads leave first, then all.
                let _ = left.wait_for(|left| *left > client % 4 / 2).await;
                let _ = gone.send(());
            });
        }
        assert_eq!(counted(&on, 40), [10; 4]);
        let _ = leave.send(1);
        assert_eq!(is_gone.iter().take(20).count(), 20);
        // Their seats are free as soon as their tasks are dropped.
        let taken = |thread: &Thread| thread.clients.load(Ordering::Relaxed);
        while threads.0.iter().map(taken).sum::<usize>() > 20 {
            thread::yield_now();
        }
        for _ in 0..20 {
            let (tell, mut left) = (tell.clone(), left.clone());
            threads.give(CLIENTS_TOGETHER, |seat| async move {
                let _seat = seat;
                let _ = tell.send(thread::current().id());
                let _ = left.wait_for(|left| *left > 1).await;
            });
        }
        assert_eq!(counted(&on, 20), [10; 2], "where there was room");
        let _ = leave.send(2);
        let _ = end.send(true);
        Ok(())
    }

    #[test]
    fn clients_of_a_key_port_share_threads() -> std::io::Result<()> {
        let (threads, runtimes) = Threads::new(3)?;
        let counts = || -> Vec<usize> {
            let taken = |thread: &Thread| thread.clients.load(Ordering::Relaxed);
            threads.0.iter().map(taken).collect()
        };
        let mut places = vec![counts()];
        for clients in [1, 3, 1, 4, 8, 3] {
            for _ in 0..clients {
                threads.give(4, |seat| async move {
                    let _seat = seat;
                    std::future::pending::<()>().await;
                });
            }
            places.push(counts());
        }
        assert_eq!(
            places,
            [
                [0, 0, 0],
                [1, 0, 0],
                [4, 0, 0],
                [4, 1, 0],
                [4, 4, 1],
                [8, 5, 4],
                [8, 8, 4]
            ]
        );
        drop(runtimes);
        Ok(())
    }

    /// The others still send clients that the program is stopping.
    #[test]
    fn a_thread_that_has_ended_is_given_no_more_clients() -> std::io::Result<()> {
        let (threads, mut runtimes) = Threads::new(3)?;
        let last = runtimes.pop();
        drop(runtimes);
        let (tell, output) = channel();
        for client in 0..3 {
            let tell = tell.clone();
            threads.give(CLIENTS_TOGETHER, |seat| async move {
                let _seat = seat;
                let _ = tell.send(client);
            });
        }
        drop(tell);
        if let Some(last) = last {
            last.block_on(tokio::task::yield_now());
        }
        assert_eq!(output.iter().collect::<Vec<_>>(), [0, 1, 2]);
        Ok(())
    }
}
