//! Replies with keys of strict tags: held until the store has confirmed that this program was to give them, and with them what was answered behind
//! them. What was read of a connection together waits together.

use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Instant;

use keywright_resp::reply::{Protocol, Writer};
use keywright_store::{Confirmation, Failure, Unconfirmed};
use tokio::sync::watch;

use crate::in_force::snapshot::ConfigSnapshot;
use crate::port::access::Who;
use crate::port::issue::{self, Issued, KeyRequest};
use crate::port::redis::answer::write_lasts;
use crate::port::redis::client::Client;
use crate::port::redis::context::PortContext;
use crate::port::redis::refused;
use crate::port::redis::told::{AskedKeys, Away};

/// What a reply that is held takes, beside what is answered behind it, bytes.
const REPLY_BYTES: usize = 64;

/// A reply.
#[derive(Debug)]
pub(super) struct HeldReply {
    asked: AskedKeys,
    answer: Answer,
    unconfirmed: Unconfirmed,
    protocol: Protocol,
    /// Who asked: the client may be another user, or nobody, by the time it is told.
    who: Who,
    behind: Vec<u8>,
}

/// What it tells if it is confirmed.
#[derive(Debug)]
pub(super) enum Answer {
    /// Keys, or the last one.
    Issued(Issued),
    /// The last ones of several names.
    Lasts(Vec<Option<u64>>),
}

/// One reply at least, in their order.
#[derive(Debug)]
pub(super) struct Held {
    replies: Vec<HeldReply>,
    /// Without what was answered behind the last.
    bytes: usize,
}

/// What came in place of each reply, if it does not stand; nothing: all of them do.
type Instead = Option<Vec<Option<Result<Issued, Failure>>>>;

/// Replies whose confirmation is under way.
pub(super) struct Confirming {
    held: Held,
    coming: Pin<Box<dyn Future<Output = Instead> + Send>>,
    began: Instant,
}

impl fmt::Debug for Confirming {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = out.debug_struct("Confirming");
        shown.field("held", &self.held).finish_non_exhaustive()
    }
}

impl HeldReply {
    /// The client's request was read, and its keys are taken.
    pub(super) fn new(
        asked: AskedKeys,
        answer: Answer,
        unconfirmed: Unconfirmed,
        client: &Client,
    ) -> Self {
        Self {
            asked,
            answer,
            unconfirmed,
            protocol: client.protocol(),
            who: client.who().clone(),
            behind: Vec::new(),
        }
    }

    fn bytes(&self) -> usize {
        let keys = match &self.answer {
            Answer::Issued(Issued::Keys(keys)) => usize::try_from(keys.len()).unwrap_or(usize::MAX),
            Answer::Issued(_) => 1,
            Answer::Lasts(lasts) => lasts.len(),
        };
        keys.saturating_mul(REPLY_BYTES)
    }
}

impl Held {
    pub(super) fn new(reply: HeldReply) -> Self {
        Self {
            bytes: reply.bytes(),
            replies: vec![reply],
        }
    }

    pub(super) fn push(&mut self, reply: HeldReply) {
        let behind = self.replies.last().map_or(0, |last| last.behind.len());
        self.bytes = self.bytes.saturating_add(behind);
        self.bytes = self.bytes.saturating_add(reply.bytes());
        self.replies.push(reply);
    }

    /// What they take, about.
    pub(super) fn bytes(&self) -> usize {
        let behind = self.replies.last().map_or(0, |last| last.behind.len());
        self.bytes.saturating_add(behind)
    }

    /// Where what is answered behind them goes.
    pub(super) fn behind<'a>(&'a mut self, out: &'a mut Vec<u8>) -> &'a mut Vec<u8> {
        match self.replies.last_mut() {
            Some(last) => &mut last.behind,
            None => out,
        }
    }

    /// One confirmation for all of them of each slot group, whose requests have been read. `began`: when the first was.
    pub(super) fn confirm(self, began: Instant, context: &PortContext) -> Confirming {
        let requests = self.replies.iter();
        let requests = requests.map(|its| (its.asked.request.clone(), its.unconfirmed));
        let (snapshot, port) = (context.snapshot.clone(), context.port);
        let settled = settle(requests.collect(), began, (snapshot, port));
        Confirming {
            coming: Box::pin(settled),
            held: self,
            began,
        }
    }
}

/// What becomes of requests whose keys are taken, each with what it waits for. Those of a slot group wait together.
async fn settle(
    requests: Vec<(KeyRequest, Unconfirmed)>,
    began: Instant,
    (snapshot, port): (watch::Receiver<Arc<ConfigSnapshot>>, usize),
) -> Instead {
    let mut verdicts = confirmed(&requests, began).await;
    let stands = |(_, verdict): &(u8, Verdict)| matches!(verdict, Verdict::Stands);
    if verdicts.iter().all(stands) {
        return None;
    }
    let mut instead = Vec::with_capacity(requests.len());
    for (request, unconfirmed) in &requests {
        let mut of_all = verdicts.iter_mut();
        let its = of_all.find(|(group, _)| *group == unconfirmed.group());
        let found = match its {
            Some((_, Verdict::Stands)) => None,
            Some((_, Verdict::Said(said))) => Some(said.clone()),
            // They are asked for anew, in their order. What is said of one of them holds of those behind it.
            Some((_, verdict @ Verdict::GivenUp)) => {
                let found = request.issue(snapshot.clone(), port).await;
                match &found {
                    Ok(Issued::Keys(_) | Issued::Last(_)) => {}
                    Ok(Issued::Elsewhere(_) | Issued::BySuccessor) | Err(_) => {
                        *verdict = Verdict::Said(found.clone());
                    }
                }
                Some(found)
            }
            None => Some(Err(issue::nobody())),
        };
        instead.push(found);
    }
    Some(instead)
}

/// What is known of the replies of a slot group.
#[derive(Debug, Clone)]
enum Verdict {
    /// They may be told.
    Stands,
    /// They may not.
    GivenUp,
    /// This is told in their place.
    Said(Result<Issued, Failure>),
}

/// One confirmation for each slot group, all of them under way at the same time.
async fn confirmed(requests: &[(KeyRequest, Unconfirmed)], began: Instant) -> Vec<(u8, Verdict)> {
    let mut groups: Vec<u8> = requests.iter().map(|(_, its)| its.group()).collect();
    groups.sort_unstable();
    groups.dedup();
    let of_group = |group: u8| async move {
        let mut its = requests.iter().filter(|(_, its)| its.group() == group);
        let Some((first, unconfirmed)) = its.next() else {
            return (group, Verdict::GivenUp);
        };
        // Where they are not of one epoch, somebody else was active between them.
        let verdict = match its.all(|(_, other)| other == unconfirmed) {
            true => first.confirm(*unconfirmed, began.into()).await,
            false => Ok(Confirmation::GivenUp),
        };
        let verdict = match verdict {
            Ok(Confirmation::Stands) => Verdict::Stands,
            Ok(Confirmation::GivenUp) => Verdict::GivenUp,
            Err(failure) => Verdict::Said(Err(failure)),
        };
        (group, verdict)
    };
    let mut under_way: Vec<_> = groups
        .into_iter()
        .map(|of| Box::pin(of_group(of)))
        .collect();
    let mut known = Vec::new();
    poll_fn(|waker| {
        under_way.retain_mut(|confirmation| match confirmation.as_mut().poll(waker) {
            Poll::Ready(of_group) => {
                known.push(of_group);
                false
            }
            Poll::Pending => true,
        });
        match under_way.is_empty() {
            true => Poll::Ready(()),
            false => Poll::Pending,
        }
    })
    .await;
    known
}

impl Confirming {
    /// Writes the replies, or what came in their place, once that is known. Inside: another program at this address gives keys now, so the
    /// connection ends.
    pub(super) fn poll(
        &mut self,
        out: &mut Vec<u8>,
        context: &mut PortContext,
        waker: &mut Context<'_>,
    ) -> Poll<Result<(), ()>> {
        let instead = ready!(self.coming.as_mut().poll(waker));
        let mut instead = instead.map(Vec::into_iter);
        for reply in std::mem::take(&mut self.held.replies) {
            let name = reply.asked.name().as_bytes();
            // Rights may have gone while it waited: then the keys are nobody's.
            let may = reply.who.now(&context.keys);
            let may = may.and_then(|who| who.may_use(name));
            let found = match (&mut instead, reply.answer) {
                (None, answer) => Ok(answer),
                (Some(instead), answer) => match (instead.next(), answer) {
                    (Some(None), answer) => Ok(answer),
                    (Some(Some(Ok(Issued::Keys(_) | Issued::Last(_)))), Answer::Lasts(_))
                    | (None, _) => Err(issue::nobody()),
                    (Some(Some(found)), _) => found.map(Answer::Issued),
                },
            };
            let mut to = Writer::new(out, reply.protocol);
            let told = match may.and(found) {
                Ok(Answer::Issued(issued)) => reply.asked.tell(issued, &context.keys, &mut to),
                Ok(Answer::Lasts(lasts)) => {
                    write_lasts(&lasts, &mut to);
                    Ok(())
                }
                Err(failure) => {
                    refused::refuse(&context.keys, name, &failure, &mut to);
                    Ok(())
                }
            };
            reply.asked.took(1, self.began.elapsed());
            match told {
                Ok(()) => {}
                Err(Away::Moved(moved)) => context.note_moved(moved),
                Err(Away::Gone) => return Poll::Ready(Err(())),
            }
            out.extend_from_slice(&reply.behind);
        }
        Poll::Ready(Ok(()))
    }
}
