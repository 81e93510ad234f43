//! Keys over HTTP.
//!
//! [`route`]: what a request asks for, [`parameters`], [`body`], [`accept`] and [`credentials`]: what else it says. [`service`] answers it: with
//! [`own`], the program's own interface, or as [`leaf`] and [`tinyid`] do, for their clients, whose errors are those of [`spring`]. [`connection`] is one client, on a
//! [`socket`] that notes what happens on it.

mod accept;
mod body;
pub(crate) mod connection;
mod credentials;
mod leaf;
mod own;
mod parameters;
mod reply;
mod route;
mod service;
mod socket;
mod spring;
mod tinyid;

pub(crate) use reply::turned_away;
