//! Durable bounds in MySQL and MariaDB tables, and the sources of keys that live on them.
