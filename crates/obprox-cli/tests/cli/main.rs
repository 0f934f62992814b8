//! The whole command, as a user meets it: exit status, standard output, standard error, and what is left on disk.

mod data;
mod end_to_end;
mod help;
mod interrupt;
mod log;
mod net;
mod paths;
mod refused;
mod resume;
mod tables;
mod workshop;
