//! etcd: Debian's packages of it, unpacked below `target/`, and private clusters.

mod cluster;
mod tools;

pub use cluster::{EtcdCluster, EtcdOptions};
pub use tools::EtcdTools;
