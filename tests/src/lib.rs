//! Starts private servers for tests, demo and benchmark.
