//! What a MySQL connection through Keywright does with packets and keys, without sockets; pure.
