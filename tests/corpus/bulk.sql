# Rows that come from a query or a file.

=== insert from a query
CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT, b VARCHAR(20));
CREATE TABLE source (x INT, y VARCHAR(20));
INSERT INTO source VALUES (3, 'c'), (1, 'a'), (2, 'b');
--- run
INSERT INTO t (a, b) SELECT x, y FROM source ORDER BY x;
SELECT id - LAST_INSERT_ID(), a, b FROM t ORDER BY id;
INSERT INTO t (a) SELECT x FROM source WHERE x > 100;
SELECT ROW_COUNT(), LAST_INSERT_ID() = MIN(id) FROM t;
INSERT INTO t (a, b) SELECT 7, 'seven';
INSERT INTO t (a) SELECT x FROM source WHERE x = 1 UNION ALL SELECT 99;
INSERT INTO t (b) SELECT y FROM source ORDER BY y DESC LIMIT 2;
SELECT a, b FROM t ORDER BY id;

=== insert from a query with a key column
CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT);
CREATE TABLE source (x INT, k INT);
INSERT INTO source VALUES (1, 11), (2, 12);
--- run
INSERT INTO t (id, a) SELECT k, x FROM source ORDER BY x;
SELECT id, a FROM t ORDER BY id;

=== insert from the same table
CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT);
--- run
INSERT INTO t (a) VALUES (1), (2);
INSERT INTO t (a) SELECT a + 10 FROM t ORDER BY a;
SELECT a FROM t ORDER BY id;

=== insert from a query in a transaction that fails
CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT UNIQUE);
CREATE TABLE source (x INT);
INSERT INTO source VALUES (1), (2), (2);
--- run
BEGIN;
INSERT INTO t (a) SELECT x FROM source ORDER BY x;
INSERT INTO t (a) SELECT DISTINCT x FROM source ORDER BY x;
COMMIT;
SELECT a FROM t ORDER BY id;

=== local file
CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT, b VARCHAR(20));
--- run
@text
@local 1\tone\n2\ttwo\n3\tthree\n
LOAD DATA LOCAL INFILE 'x' INTO TABLE t FIELDS TERMINATED BY '\\t' (a, b);
@text
@local 4,four\n5,five\n
LOAD DATA LOCAL INFILE 'x' INTO TABLE t FIELDS TERMINATED BY ',' (a, b);
SELECT LAST_INSERT_ID() > 0;
@text
@local head\n6\n
LOAD DATA LOCAL INFILE 'x' INTO TABLE t IGNORE 1 LINES (a) SET b = 'set';
SELECT a, b FROM t ORDER BY id;

=== a thousand rows
CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT);
CREATE TABLE digits (d INT);
INSERT INTO digits VALUES (0), (1), (2), (3), (4), (5), (6), (7), (8), (9);
--- run
INSERT INTO t (a) SELECT h.d * 100 + t.d * 10 + e.d FROM digits h, digits t, digits e ORDER BY 1;
SELECT COUNT(*), COUNT(DISTINCT id), MIN(id) = LAST_INSERT_ID(), SUM(a) FROM t;
