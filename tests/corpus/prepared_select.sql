# Rows that come from a query, with parameters in every place.

=== a row that is not there yet
CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT UNIQUE, b VARCHAR(20));
--- run
SELECT LAST_INSERT_ID(42);
@params 1, 'one', 1
@params 1, 'again', 1
@params 2, 'two', 2
@params NULL, NULL, 3
@params 1, 'duplicate', 4
@params '4', 4, 4
INSERT INTO t (a, b) SELECT ?, ? FROM DUAL WHERE NOT EXISTS (SELECT * FROM t WHERE a = ?);
SELECT LAST_INSERT_ID() = MAX(id) FROM t;
@params 1, 'x'
@params 7, 'y'
INSERT IGNORE INTO t (a, b) SELECT ?, ?;
@params 7, 'z', 'new'
@params 8, 'z', 'newer'
INSERT INTO t (a, b) SELECT ?, ? ON DUPLICATE KEY UPDATE b = ?;
@params 8
@params 9
REPLACE INTO t (a) SELECT ?;
@params 10, 'ten'
INSERT INTO t SELECT NULL, ?, ?;
@params 'eleven', 11
INSERT INTO t (b, id, a) SELECT ?, 0, ?;
SELECT id - LAST_INSERT_ID(), a, b FROM t ORDER BY id;

=== parameters in a query of several rows
CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT, b VARCHAR(40), c DOUBLE);
CREATE TABLE source (k INT, x INT, y VARCHAR(20));
INSERT INTO source VALUES (1, 30, 'c'), (2, 10, 'a'), (3, 20, 'b'), (4, 10, 'd'), (5, 5, 'e');
--- run
@deviates_after several rows, then ROW_COUNT() in the statement that asks for LAST_INSERT_ID()
@params NULL, 4
@params 'q', 3
@params 'p', 1
INSERT INTO t (a, b) SELECT x, ? FROM source WHERE k > ?;
SELECT id - LAST_INSERT_ID(), a, b FROM t WHERE id >= LAST_INSERT_ID() ORDER BY id;
@params 'none', 100
INSERT INTO t (a, b) SELECT x, ? FROM source WHERE k > ?;
@deviates_after several rows, then ROW_COUNT() in the statement that asks for LAST_INSERT_ID()
@params 3
INSERT INTO t (a, b) SELECT x, y FROM source WHERE k < ? ORDER BY y DESC;
@deviates_after several rows, then ROW_COUNT() in the statement that asks for LAST_INSERT_ID()
@params 1, 2
@params 2, 3
INSERT INTO t (a, b) SELECT x, y FROM source WHERE k > ? ORDER BY x, k LIMIT ?;
@deviates_after several rows, then ROW_COUNT() in the statement that asks for LAST_INSERT_ID()
@params 1, 2
INSERT INTO t (a, b) SELECT x, y FROM source ORDER BY k LIMIT ?, ?;
@deviates_after several rows, then ROW_COUNT() in the statement that asks for LAST_INSERT_ID()
@params 2, 1
INSERT INTO t (a, b) SELECT x, y FROM source ORDER BY k LIMIT ? OFFSET ?;
@deviates_after several rows, then ROW_COUNT() in the statement that asks for LAST_INSERT_ID()
@params 1, 7
INSERT INTO t (a, b) SELECT x, MAX(y) FROM source WHERE k > ? GROUP BY x HAVING x > ? ORDER BY MAX(y) DESC;
@deviates_after several rows, then ROW_COUNT() in the statement that asks for LAST_INSERT_ID()
@params 1, 2
INSERT INTO t (a) SELECT x FROM source WHERE k = ? UNION ALL SELECT x FROM source WHERE k > ?;
@deviates_after several rows, then ROW_COUNT() in the statement that asks for LAST_INSERT_ID()
@params 2, 5
INSERT INTO t (a) WITH c AS (SELECT k, x FROM source WHERE k > ?) SELECT x FROM c WHERE k < ?;
@deviates_after several rows, then ROW_COUNT() in the statement that asks for LAST_INSERT_ID()
@params 3
INSERT INTO t (a, b) SELECT DISTINCT x, 'd' FROM source WHERE k <> ? ORDER BY x;
@deviates_after several rows, then ROW_COUNT() in the statement that asks for LAST_INSERT_ID()
@params 'a', 2
INSERT INTO t SELECT NULL, x, CONCAT(?, y), x / 3 FROM source WHERE k > ? -- ?
;
@deviates_after several rows, then ROW_COUNT() in the statement that asks for LAST_INSERT_ID()
@params 5, 1.25, 1
@params 6, '2.5', 2
INSERT INTO t (a, id, c, b) SELECT x + ?, NULL, ?, '?' /* ? */ FROM source WHERE k > ?;
SELECT id - LAST_INSERT_ID(), a, b, c FROM t ORDER BY id;

=== types of parameters in a query
CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, u BIGINT UNSIGNED, r DOUBLE, s VARCHAR(60), b BLOB, d DECIMAL(30, 6), w DATETIME(6));
CREATE TABLE source (k INT PRIMARY KEY);
INSERT INTO source VALUES (1), (2);
--- run
@deviates_after several rows, then ROW_COUNT() in the statement that asks for LAST_INSERT_ID()
@params 18446744073709551615, 1.5, 'text', x'00ff27', '12345678901234.123456', '2026-11-21 12:13:14.123456'
@params NULL, NULL, NULL, NULL, NULL, NULL
@params 1, -2.25, '', x'', 5, '2026-11-21'
@params '7', '1e3', 5, 'blob', 1.25, 20261121121314
@params 9007199254740993, 0.1, 0.1, 0.1, 0.1, '2026-11-21 12:13:14'
@params 1, 9007199254740993, 9007199254740993, 18446744073709551615, 9007199254740993, NULL
INSERT INTO t (u, r, s, b, d, w) SELECT ?, ?, ?, ?, ?, ? FROM source;
@params 18446744073709551615, 1.5, 'text', x'00ff27', '12345678901234.123456', '2026-11-21 12:13:14.123456'
@params NULL, NULL, NULL, NULL, NULL, NULL
@params '7', '1e3', 5, 'blob', 1.25, 20261121121314
INSERT INTO t (u, r, s, b, d, w) SELECT ?, ?, ?, ?, ?, ?;
@deviates_after several rows, then ROW_COUNT() in the statement that asks for LAST_INSERT_ID()
@params 0.1, 3, 'x', 1
@params 9007199254740993, 'a', 1.5, 2
@params '1', 0.3, x'ff', 3
INSERT INTO t (r, s, b) SELECT ? + k, CONCAT(?, k), CONCAT(?, ?) FROM source;
SELECT u, r, s, HEX(b), d, w FROM t ORDER BY id;

=== errors of a prepared query
CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a TINYINT NOT NULL UNIQUE, b VARCHAR(3));
CREATE TABLE source (k INT PRIMARY KEY, x INT);
INSERT INTO source VALUES (1, 1), (2, 2), (3, 3);
--- run
@deviates_after several rows that fail after their first
@params 1000
@params 'many'
@params 1
INSERT INTO t (a) SELECT x * ? FROM source;
@deviates_after several rows that fail after their first
@params 1, 'toolong'
@params 10, 'ok'
INSERT INTO t (a, b) SELECT x + ?, ? FROM source;
@params 1
INSERT INTO t (a) SELECT nothing FROM source WHERE k > ?;
@params 1
INSERT INTO t (nothing) SELECT ? FROM source;
@params 1
INSERT INTO t (a) SELECT x, x FROM source WHERE k > ?;
@params 1
INSERT INTO t (a) SELECT x FROM nothing WHERE k > ?;
@params 1
INSERT INTO t (a) SELECT x FROM source WHERE k = (SELECT k FROM source WHERE k >= ?);
@params -1
INSERT INTO t (a) SELECT x FROM source LIMIT ?;
SELECT a, b FROM t ORDER BY id;

=== a prepared query of many rows
CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT);
CREATE TABLE digits (d INT);
INSERT INTO digits VALUES (0), (1), (2), (3), (4), (5), (6), (7), (8), (9);
CREATE TABLE numbers (n INT PRIMARY KEY);
INSERT INTO numbers SELECT h.d * 100 + t.d * 10 + e.d FROM digits h JOIN digits t JOIN digits e;
--- run
@deviates_after several rows, then ROW_COUNT() in the statement that asks for LAST_INSERT_ID()
@params 1, 4
@params 0, 65
@params 1000, 64
@params 0, 100000
@params 0, 3
INSERT INTO t (a) SELECT ? + n FROM numbers WHERE n + 0 < ?;
SELECT COUNT(*), COUNT(DISTINCT id), MAX(id) - LAST_INSERT_ID(), SUM(a) FROM t;
@deviates_after several rows, then ROW_COUNT() in the statement that asks for LAST_INSERT_ID()
@params 600
@params 10
INSERT INTO t (a) SELECT a FROM t WHERE a < ? ORDER BY a DESC;
SELECT COUNT(*), COUNT(DISTINCT id), MAX(id) - LAST_INSERT_ID(), SUM(a) FROM t;

=== keys further apart from a prepared query
CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT);
CREATE TABLE source (k INT PRIMARY KEY);
INSERT INTO source VALUES (1), (2), (3);
--- run
@deviates_after several rows, then ROW_COUNT() in the statement that asks for LAST_INSERT_ID()
@params 0
INSERT INTO t (a) SELECT k FROM source WHERE k > ?;
SET auto_increment_increment = 10;
@deviates_after several rows, then ROW_COUNT() in the statement that asks for LAST_INSERT_ID()
@params 1
INSERT INTO t (a) SELECT k FROM source WHERE k > ?;
SELECT MAX(id) - MIN(id), COUNT(*) FROM t WHERE id >= LAST_INSERT_ID();

=== zeros of a prepared query
CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT);
CREATE TABLE source (k INT PRIMARY KEY);
INSERT INTO source VALUES (1), (2);
--- run
@deviates_after several rows, then ROW_COUNT() in the statement that asks for LAST_INSERT_ID()
@params 0
INSERT INTO t (id, a) SELECT 0, k FROM source WHERE k > ?;
SET sql_mode = 'NO_AUTO_VALUE_ON_ZERO';
@params 1
INSERT INTO t (id, a) SELECT 0, k FROM source WHERE k > ?;
@deviates_after several rows, then ROW_COUNT() in the statement that asks for LAST_INSERT_ID()
@params 0
INSERT INTO t (id, a) SELECT NULL, k FROM source WHERE k > ?;
SELECT id > 0, a FROM t ORDER BY id;

=== rows copied with their keys by a prepared query, where 0 is a key
CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT);
CREATE TABLE source (k INT PRIMARY KEY, a INT, n INT);
INSERT INTO source VALUES (0, 1, 1), (2, 2, 2), (3, 3, 3);
--- run
SET sql_mode = 'NO_AUTO_VALUE_ON_ZERO';
@params 0, 2
INSERT IGNORE INTO t (id, a) SELECT k, a FROM source WHERE k >= ? AND k <= ? LOCK IN SHARE MODE;
@refused a column as key
@params 2
INSERT INTO t (id, a) SELECT n, a FROM source WHERE k > ?;
SET sql_mode = '';
@refused with a 0 or NULL in it
@params 0, 9
INSERT IGNORE INTO t (id, a) SELECT k, a FROM source WHERE k >= ? AND k <= ? LOCK IN SHARE MODE;
SELECT id, a FROM t ORDER BY id;

=== the last id in a prepared query
CREATE TABLE t_parent (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT);
CREATE TABLE t_child (id BIGINT AUTO_INCREMENT PRIMARY KEY, parent BIGINT, a INT);
--- run
@params 1
@params 2
INSERT INTO t_parent (a) SELECT ?;
@params 3
INSERT INTO t_child (parent, a) SELECT LAST_INSERT_ID(), ?;
@params 2
INSERT INTO t_child (parent, a) SELECT id, 4 FROM t_parent WHERE a = ? LIMIT 1;
SELECT id, parent, a FROM t_child ORDER BY id;

=== SET insert_id before prepared statements
CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT, b VARCHAR(20));
CREATE TABLE source (k INT PRIMARY KEY);
INSERT INTO source VALUES (1), (2);
--- run
SET insert_id = 77;
@params 1, 'a'
@params 2, 'b'
INSERT INTO t (a, b) VALUES (?, ?);
SELECT LAST_INSERT_ID() = MAX(id), MIN(id) FROM t;
SET insert_id = 80;
@params 3, 'c', 4, 'd'
INSERT INTO t (a, b) VALUES (?, ?), (?, ?);
SELECT LAST_INSERT_ID();
SET insert_id = 90;
@params NULL, 5
@params NULL, 6
INSERT INTO t (id, a) VALUES (?, ?);
SET insert_id = 95;
@params 0
INSERT INTO t (a) SELECT k FROM source WHERE k > ?;
SELECT LAST_INSERT_ID();
SET insert_id = 100;
@params 7
@params 8
INSERT INTO t (a, b) SELECT ?, LAST_INSERT_ID();
SELECT id < 200 AS own, IF(id < 200, id, 0), a, b FROM t ORDER BY a;

=== rows copied with their keys by a prepared statement
CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT);
CREATE TABLE u (id INT UNSIGNED NOT NULL PRIMARY KEY, a INT);
INSERT INTO u VALUES (20, 2), (30, 3), (40, 4), (50, 5);
--- run
@params 30
@params 40
@params 40
INSERT INTO t SELECT * FROM u WHERE id = ?;
@params 7, 50
INSERT INTO t (id, a) SELECT id, ? FROM u WHERE id = ?;
INSERT INTO u VALUES (0, 1);
@refused with a 0 or NULL in it
@params 20
INSERT INTO t (a, id) SELECT a, id FROM u WHERE id < ?;
SELECT id, a FROM t ORDER BY id;
