# The binary protocol, with parameters in every place.

=== parameters in other columns
CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT, b VARCHAR(20));
--- run
@params 1, 'one'
@params 2, 'two'
@params NULL, NULL
INSERT INTO t (a, b) VALUES (?, ?);
SELECT LAST_INSERT_ID() = MAX(id) FROM t;
@params 4, 'four', 5, 'five', 6, 'six'
@params 7, 'x', 8, 'y', 9, 'z'
INSERT INTO t (a, b) VALUES (?, ?), (?, ?), (?, ?);
SELECT id - LAST_INSERT_ID(), a, b FROM t WHERE id >= LAST_INSERT_ID() ORDER BY id;
@params 10
INSERT INTO t SET a = ?;
@params 11
INSERT INTO t VALUES (NULL, ?, 'x');
@params 12, 13
INSERT INTO t VALUES (DEFAULT, ?, 'x'), (0, ?, 'y');
@params 14
INSERT INTO t (a, b) VALUES (? + 1, CONCAT('?', "?", '/* ? */'));
SELECT a, b FROM t ORDER BY id;

=== parameters for the key
CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT);
--- run
@params NULL, 1
@params 0, 2
@params 5, 3
@params '0', 4
@params '6', 5
@params NULL, 6
INSERT INTO t (id, a) VALUES (?, ?);
SELECT LAST_INSERT_ID() = MAX(id) FROM t;
@params NULL, 7, NULL, 8
@params 10, 9, NULL, 10
@params NULL, 11, 11, 12
@params 12, 13, 13, 14
@params 0, 15, '0', 16
INSERT INTO t (id, a) VALUES (?, ?), (?, ?);
@params 17, NULL
@params 18, 14
INSERT INTO t (a, id) VALUES (?, ?);
@params NULL, 19
INSERT INTO t VALUES (?, ?);
@params NULL, 20
@params 15, 21
INSERT INTO t SET id = ?, a = ?;
@params 0.4, 22
@params 0.6, 23
INSERT INTO t (id, a) VALUES (?, ?);
SELECT id, a FROM t ORDER BY a;

=== parameters for the key under NO_AUTO_VALUE_ON_ZERO
CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT);
--- run
SET sql_mode = 'NO_AUTO_VALUE_ON_ZERO';
@params NULL, 1
@params 0, 2
INSERT INTO t (id, a) VALUES (?, ?);
@params 3
INSERT INTO t (a) VALUES (?);
SET sql_mode = '';
DELETE FROM t WHERE id = 0;
@params 0, 4
INSERT INTO t (id, a) VALUES (?, ?);
SELECT id, a FROM t ORDER BY a;

=== values sent as long data
CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT, b VARCHAR(20), c BLOB);
--- run
@params 1, ahead 'one', ahead x'00ff'
@params 2, 'two', NULL
@params 3, ahead 'three', x'01'
INSERT INTO t (a, b, c) VALUES (?, ?, ?);
SELECT LAST_INSERT_ID() = MAX(id) FROM t;
@params NULL, 4, ahead 'four'
@params 0, 5, ahead 'five'
@params NULL, 6, 'six'
@params 7, 7, ahead 'seven'
@params NULL, 8, ahead 'eight'
INSERT INTO t (id, a, b) VALUES (?, ?, ?);
SELECT LAST_INSERT_ID() = MAX(id) FROM t;
@deviates_after several rows, then ROW_COUNT() in the statement that asks for LAST_INSERT_ID()
@params NULL, 9, ahead 'nine', NULL, 10, ahead 'ten'
@params 8, 11, ahead 'eleven', NULL, 12, 'twelve'
@params NULL, 13, 'thirteen', 9, 14, ahead x''
INSERT INTO t (id, a, b) VALUES (?, ?, ?), (?, ?, ?);
SELECT IF(id < 100, id, id - LAST_INSERT_ID()), a, b, HEX(c) FROM t ORDER BY a;
@params 15, ahead 'fifteen', 15
@params 15, ahead 'fifteen', 15
INSERT INTO t (a, b) SELECT ?, ? FROM DUAL WHERE NOT EXISTS (SELECT * FROM t WHERE a = ?);
SELECT LAST_INSERT_ID() = MAX(id) FROM t;
@refused COM_STMT_SEND_LONG_DATA
@params ahead 'sixteen', 15
INSERT INTO t (b) SELECT ? FROM t WHERE a = ?;
@params 16, ahead 'sixteen', 16, ahead 'again'
INSERT INTO t (id, a, b) VALUES (NULL, ?, ?), (NULL, ?, ?);
SELECT IF(id < 100, id, id - LAST_INSERT_ID()), a, b, HEX(c) FROM t ORDER BY a;

=== types of parameters
CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, u BIGINT UNSIGNED, r DOUBLE, s VARCHAR(30), b BLOB);
--- run
@params 18446744073709551615, 1.5, 'text', x'00ff27'
@params NULL, NULL, NULL, NULL
@params 1, -2.25, '', x''
@params '7', '1e3', 5, 'blob'
INSERT INTO t (u, r, s, b) VALUES (?, ?, ?, ?);
@params 1, 'a', 2, 'b', 3, 'c', 4, 'd', 5, 'e'
INSERT INTO t (u, s) VALUES (?, ?), (?, ?), (?, ?), (?, ?), (?, ?);
SELECT u, r, s, HEX(b) FROM t ORDER BY id;
@params 2
SELECT u, s FROM t WHERE u > ? ORDER BY id;

=== duplicates with parameters
CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT UNIQUE, b INT DEFAULT 0);
--- run
@params 1, 1
@params 1, 2
@params 2, 3
INSERT INTO t (a, b) VALUES (?, ?) ON DUPLICATE KEY UPDATE b = b + 10;
SELECT LAST_INSERT_ID() > 0;
@params 1, 1, 5
@params 3, 1, 6
INSERT INTO t (a, b) VALUES (?, ?) ON DUPLICATE KEY UPDATE b = ?;
@params 1, 7
@params 4, 8
INSERT IGNORE INTO t (a, b) VALUES (?, ?);
@params 1, 9
@params 5, 10
REPLACE INTO t (a, b) VALUES (?, ?);
@params 5, 11
@params 6, 12
INSERT INTO t (a, b) VALUES (?, ?);
SELECT a, b FROM t ORDER BY a;

=== errors with parameters
CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a TINYINT NOT NULL, b VARCHAR(3));
--- run
@params 1000, 'x'
@params NULL, 'x'
@params 1, 'toolong'
@params 1, 'ok'
INSERT INTO t (a, b) VALUES (?, ?);
@params 1
INSERT INTO t (nothing) VALUES (?);
@params 1, 2
INSERT INTO t (a) VALUES (?, ?);
@params 1
INSERT INTO nothing (a) VALUES (?);
SELECT a, b FROM t;

=== the last id in a prepared insert
CREATE TABLE t_parent (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT);
CREATE TABLE t_child (id BIGINT AUTO_INCREMENT PRIMARY KEY, parent BIGINT, a INT);
--- run
@params 1
INSERT INTO t_parent (a) VALUES (?);
@params 2
@params 3
INSERT INTO t_child (parent, a) VALUES (LAST_INSERT_ID(), ?);
@params 4
INSERT INTO t_child VALUES (NULL, LAST_INSERT_ID(), ?);
SELECT id, parent, a FROM t_child ORDER BY id;

=== prepared returning
only: mariadb
CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT);
--- run
@params 1
@params 2
INSERT INTO t (a) VALUES (?) RETURNING id, a;
@params 3, 4
INSERT INTO t (a) VALUES (?), (?) RETURNING id;
@params NULL, 5
@params 6, 7
INSERT INTO t (id, a) VALUES (?, ?) RETURNING *;
SELECT a FROM t ORDER BY id;
