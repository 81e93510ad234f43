//! Programs, store, clients and time, one millisecond after the other.

use std::collections::VecDeque;

use fastrand::Rng;

use crate::divider::Divider;
use crate::node::{Flaw, Node, Reply, Request};
use crate::store::{Answer, Ask, Store};

/// How long a run is, milliseconds.
const RUN_MS: u64 = 6_000;
/// A lease's time to live, milliseconds.
const TTL_MS: u64 = 100;
const NODES: usize = 3;
const CLIENTS: usize = 5;
/// A client gives a request up after that, milliseconds.
const PATIENCE_MS: u64 = 200;
/// Steps of a program's loop in a millisecond at most.
const STEPS: u64 = 8;
/// How much a server may lack that takes the place of another, milliseconds.
const LACKS_MS_MAX: usize = 300;

/// What came of a run.
#[derive(Debug, Default)]
pub struct Outcome {
    pub inversion: Option<String>,
    pub replies: u64,
    pub takeovers: u64,
    /// How often the number of slot groups became another one.
    pub divisions: u64,
    pub late: u64,
    /// How often a program was told that another has the lease while its own time was not over.
    pub robbed: u64,
    pub too_soon: Option<String>,
}

/// A request to the store on its way, and back.
struct Travelling {
    node: usize,
    owner: String,
    /// Into how many groups the program divides slots.
    groups: usize,
    number: u64,
    ask: Ask,
    arrives_at: u64,
    /// None: it gets lost.
    returns_at: Option<u64>,
    answer: Option<Answer>,
}

struct Client {
    number: u64,
    asks: usize,
    /// Since when it waits; or when it asks next.
    waits_since: Option<u64>,
    next_at: u64,
}

pub struct World {
    rng: Rng,
    now: u64,
    store: Store,
    nodes: Vec<Node>,
    lives: u64,
    clients: Vec<Client>,
    travelling: Vec<Travelling>,
    to_nodes: Vec<(u64, usize, Request)>,
    to_clients: Vec<(u64, Reply)>,
    /// The largest id that anybody has read.
    highest: u64,
    flaws: &'static [Flaw],
    /// The lease is changed by hand now and then: then no order is promised.
    has_robbers: bool,
    /// Whether the tag is strict: then clocks do what they want, and servers of the store take each other's place.
    is_strict: bool,
    servers: u64,
    /// Whoever changes the number of slot groups now and then; programs have the one or the other.
    divider: Option<Divider>,
    /// What the store had, millisecond by millisecond.
    before: VecDeque<Store>,
    outcome: Outcome,
}

impl World {
    pub fn new(seed: u64, flaws: &'static [Flaw]) -> World {
        World::of(seed, false, flaws)
    }

    /// The same of a strict tag.
    pub fn strict(seed: u64, flaws: &'static [Flaw]) -> World {
        World::of(seed, true, flaws)
    }

    fn of(seed: u64, is_strict: bool, flaws: &'static [Flaw]) -> World {
        let mut rng = Rng::with_seed(seed);
        let nodes = (0..NODES)
            .map(|at| Node::new(format!("life {at}"), TTL_MS, is_strict, &mut rng, flaws));
        let nodes = nodes.collect();
        let clients = (0..CLIENTS).map(|at| Client {
            number: 0,
            asks: at % NODES,
            waits_since: None,
            next_at: 0,
        });
        World {
            nodes,
            clients: clients.collect(),
            lives: 0,
            rng,
            now: 0,
            store: Store::new(),
            travelling: Vec::new(),
            to_nodes: Vec::new(),
            to_clients: Vec::new(),
            highest: 0,
            flaws,
            has_robbers: false,
            is_strict,
            servers: 0,
            divider: None,
            before: VecDeque::new(),
            outcome: Outcome::default(),
        }
    }

    /// The same, with a lease that somebody changes by hand.
    pub fn with_robbers(seed: u64) -> World {
        World {
            has_robbers: true,
            ..World::new(seed, &[])
        }
    }

    /// The same with programs that divide slots into one group, and others into two, of a tag that is monotonic.
    pub fn divided(seed: u64, flaws: &'static [Flaw]) -> World {
        World::of(seed, false, flaws).dividing()
    }

    /// The same of a strict tag.
    pub fn divided_strict(seed: u64, flaws: &'static [Flaw]) -> World {
        World::of(seed, true, flaws).dividing()
    }

    fn dividing(mut self) -> World {
        self.divider = Some(Divider::new(TTL_MS, self.is_strict, &mut self.rng));
        for node in &mut self.nodes {
            node.groups = self.rng.usize(1..=2);
        }
        self
    }

    pub fn run(mut self) -> Outcome {
        let ends = |outcome: &Outcome, has_robbers: bool| match has_robbers {
            true => outcome.too_soon.is_some(),
            false => outcome.inversion.is_some(),
        };
        while self.now < RUN_MS && !ends(&self.outcome, self.has_robbers) {
            self.now += 1;
            self.happen();
            self.store_step();
            if let Some(divider) = &mut self.divider {
                divider.step(self.now, &mut self.store, &mut self.rng, self.flaws);
            }
            for at in 0..self.nodes.len() {
                self.node_step(at);
            }
            self.clients_step();
            let mut too_soon = self.nodes.iter_mut().map(|node| node.too_soon.take());
            self.outcome.too_soon = too_soon.find_map(|its| its);
        }
        self.outcome.robbed += self.nodes.iter().map(|node| node.robbed).sum::<u64>();
        self.outcome.late += self.nodes.iter().map(|node| node.late).sum::<u64>();
        self.outcome.takeovers = self.store.takeovers;
        self.outcome.divisions = self.divider.map_or(0, |divider| divider.changes);
        self.outcome
    }

    fn once_in(&mut self, times: u64) -> bool {
        self.rng.u64(0..times) == 0
    }

    /// What nobody wants.
    fn happen(&mut self) {
        if self.has_robbers && self.once_in(800) {
            self.store.be_robbed(TTL_MS);
        }
        for at in 0..self.nodes.len() {
            if self.once_in(500) {
                let longest = *self.rng.choice([5, 50, 400].iter()).unwrap_or(&5);
                self.nodes[at].stopped_until = self.now + self.rng.u64(1..=longest);
            }
            if self.once_in(1_500) {
                self.nodes[at].cut_off_until = self.now + self.rng.u64(1..300);
            }
            if self.once_in(1_000) && self.nodes[at].stopped_until < self.now {
                let asked = self.nodes[at].demote(self.now);
                self.send(at, asked);
            }
            if self.once_in(3_000) {
                self.lives += 1;
                let owner = format!("later life {}", self.lives);
                self.outcome.late += self.nodes[at].late;
                self.outcome.robbed += self.nodes[at].robbed;
                self.nodes[at] =
                    Node::new(owner, TTL_MS, self.is_strict, &mut self.rng, self.flaws);
                if self.divider.is_some() {
                    self.nodes[at].groups = self.rng.usize(1..=2);
                }
            }
            if self.is_strict && self.once_in(400) {
                self.nodes[at].step_clock(&mut self.rng);
            }
        }
        if self.is_strict {
            self.change_servers();
        }
    }

    /// A server takes the place of another, and may lack what that one had acknowledged.
    fn change_servers(&mut self) {
        self.before.push_back(self.store.clone());
        if self.before.len() > LACKS_MS_MAX {
            self.before.pop_front();
        }
        if self.once_in(1_500) {
            self.servers += 1;
            let then = self.rng.usize(0..self.before.len());
            let name = format!("server {}", self.servers);
            self.store.be_replaced_by(self.before[then].clone(), name);
            // What it lacks is lost, for the one behind it, too.
            self.before.clear();
        }
    }

    /// How long a message is on its way: most are fast.
    fn way_ms(&mut self) -> u64 {
        match self.rng.u64(0..20) {
            0 => self.rng.u64(0..250),
            1..4 => self.rng.u64(0..20),
            _ => self.rng.u64(0..3),
        }
    }

    fn send(&mut self, node: usize, asks: impl IntoIterator<Item = (u64, Ask)>) {
        for (number, ask) in asks {
            if self.nodes[node].cut_off_until > self.now {
                continue;
            }
            let arrives_at = self.now + self.way_ms();
            let returns = arrives_at + self.way_ms();
            let is_lost = self.once_in(30);
            self.travelling.push(Travelling {
                node,
                owner: self.nodes[node].owner.clone(),
                groups: self.nodes[node].groups,
                number,
                ask,
                arrives_at,
                returns_at: (!is_lost).then_some(returns),
                answer: None,
            });
        }
    }

    fn store_step(&mut self) {
        let mut travelling = std::mem::take(&mut self.travelling);
        for its in &mut travelling {
            if its.answer.is_none() && its.arrives_at <= self.now {
                let answer =
                    self.store
                        .carry_out((&its.owner, its.groups), TTL_MS, &its.ask, self.flaws);
                its.answer = Some(answer);
            }
        }
        travelling.retain(|its| its.answer.is_none() || its.returns_at.is_some());
        self.travelling.append(&mut travelling);
    }

    fn node_step(&mut self, at: usize) {
        // Whoever is stopped finds answers and requests there when it goes on.
        if self.nodes[at].stopped_until >= self.now {
            return;
        }
        let (now, owner) = (self.now, self.nodes[at].owner.clone());
        let (here, rest) = std::mem::take(&mut self.travelling)
            .into_iter()
            .partition(|its| {
                its.node == at
                    && its.answer.is_some()
                    && its.returns_at.is_some_and(|its| its <= now)
            });
        self.travelling = rest;
        let here: Vec<Travelling> = here;
        for its in here.into_iter().filter(|its| its.owner == owner) {
            if let Some(answer) = &its.answer {
                let asked = self.nodes[at].answered(its.number, answer, now);
                self.send(at, asked);
            }
        }
        // Threads that serve and the one that keeps the lease run in any order.
        let serves_first = self.rng.bool();
        if serves_first {
            self.serve(at);
        }
        let asks = self.nodes[at].asks(now);
        self.send(at, asks);
        if !serves_first {
            self.serve(at);
        }
    }

    fn serve(&mut self, at: usize) {
        for _ in 0..self.rng.u64(0..=STEPS) {
            if let Some(reply) = self.nodes[at].serve(self.now) {
                let way = self.rng.u64(0..3);
                self.to_clients.push((self.now + way, reply));
            }
        }
    }

    fn clients_step(&mut self) {
        let now = self.now;
        let (arrived, rest): (Vec<_>, Vec<_>) = std::mem::take(&mut self.to_nodes)
            .into_iter()
            .partition(|(at, _, _)| *at <= now);
        self.to_nodes = rest;
        for (_, node, request) in arrived {
            self.nodes[node].inbox.push_back(request);
        }
        let (arrived, rest): (Vec<_>, Vec<_>) = std::mem::take(&mut self.to_clients)
            .into_iter()
            .partition(|(at, _)| *at <= now);
        self.to_clients = rest;
        for (_, reply) in arrived {
            self.read_reply(reply);
        }
        for at in 0..self.clients.len() {
            let client = &mut self.clients[at];
            if client
                .waits_since
                .is_some_and(|since| now > since + PATIENCE_MS)
            {
                client.waits_since = None;
                client.asks = self.rng.usize(0..NODES);
            }
            if client.waits_since.is_none() && client.next_at <= now {
                client.number += 1;
                client.waits_since = Some(now);
                let request = Request {
                    client: at,
                    number: client.number,
                    floor: self.highest,
                };
                let node = match self.rng.u64(0..10) {
                    0 => self.rng.usize(0..NODES),
                    _ => client.asks,
                };
                let way = self.rng.u64(0..3);
                self.to_nodes.push((now + way, node, request));
            }
        }
    }

    fn read_reply(&mut self, Reply { request, id }: Reply) {
        let client = &mut self.clients[request.client];
        // It has gone on to another request.
        if client.number != request.number || client.waits_since.is_none() {
            return;
        }
        client.waits_since = None;
        client.next_at = self.now + self.rng.u64(0..4);
        let Some(id) = id else {
            client.asks = self.rng.usize(0..NODES);
            return;
        };
        self.outcome.replies += 1;
        if id <= request.floor {
            let floor = request.floor;
            self.outcome.inversion = Some(format!(
                "at {} ms a client got {id}, and {floor} had been read before it asked",
                self.now
            ));
        }
        self.highest = self.highest.max(id);
    }
}
