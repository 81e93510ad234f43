# Rows that come from a query.

=== insert from a query
CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT, b VARCHAR(20));
CREATE TABLE source (x INT, y VARCHAR(20));
INSERT INTO source VALUES (3, 'c'), (1, 'a'), (2, 'b');
--- run
@refused SELECT
INSERT INTO t (a, b) SELECT x, y FROM source ORDER BY x;
SELECT id - LAST_INSERT_ID(), a, b FROM t ORDER BY id;
@refused SELECT
INSERT INTO t (a) SELECT x FROM source WHERE x > 100;
SELECT ROW_COUNT(), LAST_INSERT_ID() = MIN(id) FROM t;
@refused SELECT
INSERT INTO t (a, b) SELECT 7, 'seven';
@refused SELECT
INSERT INTO t (a) SELECT x FROM source WHERE x = 1 UNION ALL SELECT 99;
@refused SELECT
INSERT INTO t (b) SELECT y FROM source ORDER BY y DESC LIMIT 2;
SELECT a, b FROM t ORDER BY id;

=== insert from a query with a key column
CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT);
CREATE TABLE source (x INT, k INT);
INSERT INTO source VALUES (1, 11), (2, 12);
--- run
@refused SELECT
INSERT INTO t (id, a) SELECT k, x FROM source ORDER BY x;
SELECT id, a FROM t ORDER BY id;

=== insert from the same table
CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT);
--- run
INSERT INTO t (a) VALUES (1), (2);
@refused SELECT
INSERT INTO t (a) SELECT a + 10 FROM t ORDER BY a;
SELECT a FROM t ORDER BY id;

=== insert from a query in a transaction that fails
CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT UNIQUE);
CREATE TABLE source (x INT);
INSERT INTO source VALUES (1), (2), (2);
--- run
BEGIN;
@refused SELECT
INSERT INTO t (a) SELECT x FROM source ORDER BY x;
@refused SELECT
INSERT INTO t (a) SELECT DISTINCT x FROM source ORDER BY x;
COMMIT;
SELECT a FROM t ORDER BY id;

=== a thousand rows
CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT);
CREATE TABLE digits (d INT);
INSERT INTO digits VALUES (0), (1), (2), (3), (4), (5), (6), (7), (8), (9);
--- run
@refused SELECT
INSERT INTO t (a) SELECT h.d * 100 + t.d * 10 + e.d FROM digits h, digits t, digits e ORDER BY 1;
SELECT COUNT(*), COUNT(DISTINCT id), MIN(id) = LAST_INSERT_ID(), SUM(a) FROM t;

=== insert from a temporary table
CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT);
--- run
CREATE TEMPORARY TABLE t2 AS SELECT 1 AS x;
@refused SELECT
INSERT INTO t (a) SELECT x FROM t2 WHERE x < 0;
@refused SELECT
INSERT INTO t (a) SELECT x FROM t2;
SELECT a FROM t;
