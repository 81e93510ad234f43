//! Whose turn it is to have a password looked at. Clients of one address wait in a line, in the order in which they came, and lines take turns: whoever
//! sends wrong passwords without end has others wait for one of them each time, not for all.
//!
//! Nothing here goes by what a client says: else names that nobody has would be told by the time that an answer takes.

use std::collections::VecDeque;
use std::mem;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

use crate::users::secret::HashMemory;

/// Passwords that wait to be looked at. Who comes then takes the last place of the longest line, or is refused if that is his own.
const LOGINS_WAITING_MAX: usize = 1_000;
/// The part of an address of IPv6 that tells networks apart: a machine may have all addresses of its own, bits.
const NETWORK_BITS: u32 = 64;

/// Who waits together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Line {
    /// Clients over UNIX sockets, which have no addresses.
    Unix,
    /// Clients of an address, or of a network of IPv6.
    Address(IpAddr),
    /// Administrators who set passwords: they have logged in.
    Administrators,
}

impl Line {
    /// Of a client with this address, if it has one.
    pub(crate) fn of(client: Option<SocketAddr>) -> Self {
        match client.map(|client| client.ip().to_canonical()) {
            None => Self::Unix,
            Some(IpAddr::V4(address)) => Self::Address(address.into()),
            Some(IpAddr::V6(address)) => {
                let network = address.to_bits() & (u128::MAX << NETWORK_BITS);
                Self::Address(Ipv6Addr::from_bits(network).into())
            }
        }
    }
}

/// Turns, and who waits for them.
#[derive(Debug)]
pub(super) struct Turns(Mutex<Waiting>);

#[derive(Debug)]
struct Waiting {
    /// What those hash in who may have their turn now, too. While there is any nobody waits.
    free: Vec<HashMemory>,
    /// The number of the next place.
    next: u64,
    /// Lines in which somebody waits; the first has the next turn.
    lines: VecDeque<(Line, Places)>,
}

/// By number.
type Places = VecDeque<(u64, oneshot::Sender<Turn>)>;

/// A turn, until it is dropped.
#[derive(Debug)]
pub(super) struct Turn {
    turns: Arc<Turns>,
    memory: HashMemory,
}

/// A place in a line, until it is dropped.
#[derive(Debug)]
pub(super) struct Place {
    turns: Arc<Turns>,
    line: Line,
    number: u64,
    turn: oneshot::Receiver<Turn>,
}

impl Turns {
    /// So many at once.
    pub(super) fn new(at_once: usize) -> Self {
        Self(Mutex::new(Waiting {
            free: (0..at_once).map(|_| HashMemory::default()).collect(),
            next: 0,
            lines: VecDeque::new(),
        }))
    }

    /// Takes the last place of a line. Nothing: there is no room for one.
    pub(super) fn join(self: &Arc<Self>, line: Line) -> Option<Place> {
        let (gives, turn) = oneshot::channel();
        let mut waiting = self.waiting();
        let number = waiting.next;
        waiting.next = number.wrapping_add(1);
        // The one that was used last comes first: where nobody has to wait the others stay empty.
        if let Some(memory) = waiting.free.pop() {
            drop(waiting);
            // It is received by the place.
            let _ = gives.send(self.turn(memory));
        } else {
            waiting.make_room(line)?;
            waiting.add(line, (number, gives));
        }
        Some(Place {
            turns: Arc::clone(self),
            line,
            number,
            turn,
        })
    }

    fn pass_on(self: &Arc<Self>, memory: HashMemory) {
        let mut waiting = self.waiting();
        let Some(gives) = waiting.take_next() else {
            waiting.free.push(memory);
            return;
        };
        drop(waiting);
        // Where the place was left meanwhile the turn is dropped, and with that passed on.
        let _ = gives.send(self.turn(memory));
    }

    fn turn(self: &Arc<Self>, memory: HashMemory) -> Turn {
        Turn {
            turns: Arc::clone(self),
            memory,
        }
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Waiting {
    /// Room for one more in a line. Where there is none the longest line gives its last place, if it is longer than this one will be.
    fn make_room(&mut self, line: Line) -> Option<()> {
        let lengths = self.lines.iter().map(|(_, places)| places.len());
        if lengths.sum::<usize>() < LOGINS_WAITING_MAX {
            return Some(());
        }
        let own = self.lines.iter().find(|(its, _)| *its == line);
        let own = own.map_or(0, |(_, places)| places.len());
        let lines = self.lines.iter_mut().map(|(_, places)| places);
        let longest = lines.max_by_key(|places| places.len())?;
        if longest.len() <= own.saturating_add(1) {
            return None;
        }
        longest.pop_back();
        Some(())
    }

    fn add(&mut self, line: Line, place: (u64, oneshot::Sender<Turn>)) {
        match self.lines.iter_mut().find(|(its, _)| *its == line) {
            Some((_, places)) => places.push_back(place),
            None => self.lines.push_back((line, VecDeque::from([place]))),
        }
    }

    /// The first place of the first line, which goes behind the others.
    fn take_next(&mut self) -> Option<oneshot::Sender<Turn>> {
        let (line, mut places) = self.lines.pop_front()?;
        let (_, gives) = places.pop_front()?;
        if !places.is_empty() {
            self.lines.push_back((line, places));
        }
        Some(gives)
    }

    fn leave(&mut self, line: Line, number: u64) {
        if let Some((_, places)) = self.lines.iter_mut().find(|(its, _)| *its == line) {
            places.retain(|(its, _)| *its != number);
        }
        self.lines.retain(|(_, places)| !places.is_empty());
    }
}

impl Turn {
    /// What is hashed in.
    pub(super) fn memory(&mut self) -> &mut HashMemory {
        &mut self.memory
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.turns.pass_on(mem::take(&mut self.memory));
    }
}

impl Place {
    /// Waits for the turn. Nothing: another needed the place more.
    pub(super) async fn turn(&mut self) -> Option<Turn> {
        (&mut self.turn).await.ok()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.turns.waiting().leave(self.line, self.number);
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;
    use std::sync::Arc;

    use tokio::sync::oneshot::error::TryRecvError;

    use super::{LOGINS_WAITING_MAX, Line, Place, Turn, Turns};

    fn line(address: &str) -> Line {
        let address: SocketAddr = address.parse().unwrap();
        Line::of(Some(address))
    }

    fn of_machine(number: usize) -> Line {
        let [.., high, low] = number.to_be_bytes();
        line(&format!("10.0.{high}.{low}:1"))
    }

    /// Whose turn it is, which then has its end.
    fn next(places: &mut Vec<(&'static str, Place)>) -> Option<&'static str> {
        let index = places
            .iter_mut()
            .position(|(_, place)| place.turn.try_recv().is_ok())?;
        Some(places.remove(index).0)
    }

    #[test]
    fn lines_take_turns() {
        let turns = Arc::new(Turns::new(1));
        let join = |name, line| (name, turns.join(line).unwrap());
        let (one, other) = (line("192.0.2.1:1"), line("192.0.2.2:1"));
        let mut places = vec![
            join("a1", one),
            join("a2", one),
            join("a3", one),
            join("a4", one),
            join("b1", other),
            join("c1", Line::Unix),
            join("b2", other),
        ];
        let order: Vec<_> = std::iter::from_fn(|| next(&mut places)).collect();
        assert_eq!(order, ["a1", "a2", "b1", "c1", "a3", "b2", "a4"]);
        // All are free again.
        let mut place = turns.join(one).unwrap();
        assert!(place.turn.try_recv().is_ok());
    }

    #[test]
    fn so_many_at_once_have_their_turn() {
        let turns = Arc::new(Turns::new(2));
        let mut places: Vec<_> = (0..3).map(|_| turns.join(Line::Unix).unwrap()).collect();
        let mut had: Vec<Option<Turn>> = places
            .iter_mut()
            .map(|place| place.turn.try_recv().ok())
            .collect();
        let has = had.iter().map(Option::is_some).collect::<Vec<_>>();
        assert_eq!(has, [true, true, false]);
        had.clear();
        assert!(places.pop().unwrap().turn.try_recv().is_ok());
    }

    #[test]
    fn whoever_leaves_is_passed_over() {
        let turns = Arc::new(Turns::new(1));
        let mut first = turns.join(Line::Unix).unwrap();
        let gone = turns.join(Line::Unix).unwrap();
        let mut last = turns.join(Line::Administrators).unwrap();
        drop(gone);
        drop(first.turn.try_recv().unwrap());
        assert!(last.turn.try_recv().is_ok());
        // Also with a turn that was not taken up.
        let unused = turns.join(Line::Unix).unwrap();
        let mut next = turns.join(Line::Unix).unwrap();
        assert!(next.turn.try_recv().is_err());
        drop(unused);
        assert!(next.turn.try_recv().is_ok());
        assert!(turns.waiting().lines.is_empty());
    }

    #[test]
    fn the_longest_line_makes_room() {
        let turns = Arc::new(Turns::new(0));
        let (stranger, program) = (of_machine(0), of_machine(1));
        let mut strangers: Vec<_> = (0..LOGINS_WAITING_MAX)
            .map(|_| turns.join(stranger).unwrap())
            .collect();
        assert!(turns.join(stranger).is_none());
        let mut place = turns.join(program).unwrap();
        // The last one has lost its place, and no other has.
        let is_out = |place: &mut Place| matches!(place.turn.try_recv(), Err(TryRecvError::Closed));
        let out: Vec<_> = strangers.iter_mut().map(is_out).collect();
        assert_eq!(out.iter().filter(|is_out| **is_out).count(), 1);
        assert_eq!(out.last(), Some(&true));
        assert!(!is_out(&mut place));
        // As many addresses as there are places keep others out.
        drop(place);
        drop(strangers);
        let _all: Vec<_> = (0..LOGINS_WAITING_MAX)
            .map(|number| turns.join(of_machine(number)).unwrap())
            .collect();
        assert!(turns.join(Line::Unix).is_none());
    }

    #[test]
    fn a_network_of_ipv6_is_one_address() {
        assert_eq!(line("[2001:db8::1]:1"), line("[2001:db8::ffff:2]:2"));
        assert_ne!(line("[2001:db8::1]:1"), line("[2001:db8:0:1::1]:1"));
        assert_eq!(line("[::ffff:192.0.2.1]:1"), line("192.0.2.1:2"));
        assert_ne!(line("192.0.2.1:1"), line("192.0.2.2:1"));
        assert_eq!(Line::of(None), Line::Unix);
    }
}
