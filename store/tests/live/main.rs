//! The store's client against private MariaDB and PostgreSQL servers, in etcd, and in a file: many issuers, killed servers, lost replies, leases, other systems'
//! tables. Every id that is issued is logged and compared.

#![allow(unreachable_pub, reason = "modules of one test binary")]

mod assigned_layouts;
mod assignments;
mod both;
mod buckets;
mod bursts;
mod causes;
mod clocks;
mod clusters;
mod common;
mod dropped_tags;
mod etcd_cluster;
mod etcd_refusals;
mod etcd_rows;
mod failures;
mod file;
mod fleet;
mod forwarder;
mod generations;
mod hidden;
mod homes;
mod late_rests;
mod late_tables;
mod leases;
mod manual_clock;
mod marked;
mod moved_connection;
mod moves;
mod noticed;
mod number_table;
mod open_nowhere;
mod ordered;
mod others;
mod overwritten;
mod postgres_refusals;
mod postgres_server;
mod privileges;
mod put_back;
mod restored;
mod returned;
mod rewound;
mod rewound_leases;
mod rewound_rests;
mod segments;
mod semi_sync;
mod sessions;
mod slot_groups;
mod spare_worker;
mod strict;
mod switched_snowflake;
mod switches;
mod texts;
mod two;
mod users;
