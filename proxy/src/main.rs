//! A MySQL proxy that fills generated keys into INSERTs.

fn main() {}
