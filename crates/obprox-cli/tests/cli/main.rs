//! The whole command, as a user meets it: exit status, standard output, standard error, and what is left on disk.

mod columns;
mod data;
mod documents;
mod end_to_end;
#[cfg(feature = "paper")]
mod get;
mod help;
mod interrupt;
mod left_out;
mod limits;
mod log;
mod net;
mod net_served;
mod offsets;
#[cfg(feature = "paper")]
mod paper;
mod paths;
mod penalties;
mod refused;
mod reports;
mod resume;
#[cfg(feature = "paper")]
mod server;
mod shard_faults;
mod shards;
mod tables;
mod times;
mod workshop;
