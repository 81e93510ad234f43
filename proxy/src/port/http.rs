//! Keys over HTTP.
//!
//! [`route`]: what a request asks for, [`parameters`], [`body`], [`accept`] and [`credentials`]: what else it says. [`service`] answers it
//! ([`step`]: how far the answer is; [`taking`]: the keys for it) with [`own`], the program's own interface, or as [`leaf`] and [`tinyid`] do, for
//! their clients, whose errors are those of [`spring`]. [`connection`] is one client, on a [`socket`] that notes what happens on it; [`context`]: what
//! its requests draw on.

mod accept;
mod body;
pub(crate) mod connection;
mod context;
mod credentials;
mod leaf;
mod own;
mod parameters;
mod reply;
mod route;
mod service;
mod socket;
mod spring;
mod step;
mod taking;
mod tinyid;

pub(crate) use reply::turned_away;
