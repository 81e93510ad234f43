# What ordinary applications write.

=== order by a column named offset
only: mysql
CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT);
CREATE TABLE u (offset INT, a INT);
INSERT INTO u VALUES (2, 1), (1, 2), (3, 0);
--- run
@deviates_after several rows, then ROW_COUNT() in the statement that asks for LAST_INSERT_ID()
INSERT INTO t (a) SELECT a FROM u ORDER BY offset;
SELECT a FROM t ORDER BY id;

=== order by a column named offset, from the second row on
only: mysql
CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT);
CREATE TABLE u (offset INT, a INT);
INSERT INTO u VALUES (2, 1), (1, 2), (3, 0);
--- run
@deviates_after several rows, then ROW_COUNT() in the statement that asks for LAST_INSERT_ID()
INSERT INTO t (a) SELECT a FROM u ORDER BY offset LIMIT 2 OFFSET 1;
SELECT a FROM t ORDER BY id;

=== a WITH in parentheses
CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT);
--- run
@only mysql
INSERT INTO t (a) (WITH c AS (SELECT 1 AS x) SELECT x FROM c);
INSERT INTO t (WITH c AS (SELECT 2 AS x) SELECT NULL, x FROM c);
SELECT a FROM t ORDER BY id;

=== a WITH with columns
CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT);
--- run
INSERT INTO t (a) WITH c (x) AS (SELECT 1) SELECT x FROM c;
@deviates_after several rows, then ROW_COUNT() in the statement that asks for LAST_INSERT_ID()
INSERT INTO t (a) WITH RECURSIVE c (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 3) SELECT n FROM c ORDER BY n;
SELECT a FROM t ORDER BY id;

=== tables out of JSON
CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT, b VARCHAR(20));
--- run
@deviates_after several rows, then ROW_COUNT() in the statement that asks for LAST_INSERT_ID()
INSERT INTO t (a, b) SELECT j.x, j.y FROM JSON_TABLE('[{"x":1,"y":"a"},{"x":2,"y":"b"}]', '$[*]' COLUMNS (x INT PATH '$.x', y VARCHAR(20) PATH '$.y')) AS j;
SELECT a, b FROM t ORDER BY id;

=== window functions
CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT, b INT);
CREATE TABLE u (x INT, g INT);
INSERT INTO u VALUES (3, 1), (1, 1), (2, 2);
--- run
@deviates_after several rows, then ROW_COUNT() in the statement that asks for LAST_INSERT_ID()
INSERT INTO t (a, b) SELECT x, ROW_NUMBER() OVER (PARTITION BY g ORDER BY x) FROM u ORDER BY x;
@deviates_after several rows, then ROW_COUNT() in the statement that asks for LAST_INSERT_ID()
INSERT INTO t (a, b) SELECT x, SUM(x) OVER w FROM u WINDOW w AS (ORDER BY x) ORDER BY x;
SELECT a, b FROM t ORDER BY id;

=== a query in parentheses
CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT);
CREATE TABLE u (x INT);
INSERT INTO u VALUES (3), (1), (2), (3);
--- run
@deviates_after several rows, then ROW_COUNT() in the statement that asks for LAST_INSERT_ID()
INSERT INTO t (a) (SELECT x FROM u ORDER BY x);
@deviates_after several rows, then ROW_COUNT() in the statement that asks for LAST_INSERT_ID()
INSERT INTO t (a)((SELECT DISTINCT x FROM u WHERE x > 1 ORDER BY x /* all */));
@deviates_after several rows, then ROW_COUNT() in the statement that asks for LAST_INSERT_ID()
INSERT INTO t (a) (SELECT x FROM u ORDER BY x LIMIT 2);
SELECT a FROM t ORDER BY id;

=== rows that are locked
CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT);
CREATE TABLE u (x INT);
INSERT INTO u VALUES (3), (1), (2);
--- run
@deviates_after several rows, then ROW_COUNT() in the statement that asks for LAST_INSERT_ID()
INSERT INTO t (a) SELECT x FROM u ORDER BY x LIMIT 2 FOR UPDATE;
INSERT INTO t (a) SELECT x FROM u ORDER BY x DESC LIMIT 1 LOCK IN SHARE MODE;
SELECT a FROM t ORDER BY id;

=== groups, and rows that are there
CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT UNIQUE, b INT);
CREATE TABLE u (x INT, y INT);
INSERT INTO u VALUES (3, 1), (1, 1), (3, 2), (2, 5);
--- run
INSERT INTO t (a, b) VALUES (3, 0);
@deviates_after several rows, then ROW_COUNT() in the statement that asks for LAST_INSERT_ID()
INSERT INTO t (a, b) SELECT x, SUM(y) FROM u GROUP BY x ORDER BY x ON DUPLICATE KEY UPDATE b = VALUES(b);
SELECT a, b FROM t ORDER BY a;

=== all columns of another table
CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT, b INT);
CREATE TABLE u (id BIGINT NOT NULL PRIMARY KEY, a INT, b INT);
CREATE TABLE v (a INT, b INT);
INSERT INTO u VALUES (7, 1, 1), (9, 2, 2);
INSERT INTO v VALUES (1, 1), (2, 2);
--- run
@deviates_after several rows, then ROW_COUNT() in the statement that asks for LAST_INSERT_ID()
INSERT INTO t (a, b) SELECT * FROM v ORDER BY a;
INSERT INTO t SELECT * FROM u ORDER BY a;
SELECT a, b FROM t ORDER BY a;

=== rows copied with their keys, where 0 is a key
CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT);
CREATE TABLE u (id INT UNSIGNED NOT NULL PRIMARY KEY, a INT);
INSERT INTO u VALUES (0, 1), (20, 2), (30, 3), (40, 4);
CREATE TABLE n (id INT, a INT);
INSERT INTO n VALUES (NULL, 1);
--- run
SET sql_mode = CONCAT(@@sql_mode, ',NO_AUTO_VALUE_ON_ZERO');
INSERT LOW_PRIORITY IGNORE INTO t (id, a) SELECT id, a FROM u FORCE INDEX (`PRIMARY`) WHERE id >= 0 AND id <= 20 LOCK IN SHARE MODE /* copy */;
INSERT IGNORE INTO t (id, a) (SELECT `u`.`id`, a FROM u FORCE INDEX (PRIMARY) WHERE id > 10 LOCK IN SHARE MODE);
DELETE FROM t WHERE id = 40;
INSERT INTO t SELECT * FROM u WHERE id = 40;
INSERT INTO t (a, id) SELECT u.a, u.id + 0 AS id FROM u WHERE 1 = 0;
@refused a column as key
INSERT INTO t (id, a) SELECT id, a FROM n;
@refused a column as key
INSERT INTO t (id, a) SELECT n.id, u.a FROM u LEFT JOIN n ON n.id = u.id;
@refused takes keys out of *
INSERT INTO t SELECT * FROM n;
SELECT id, a FROM t ORDER BY id;

=== rows copied with their keys
CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT);
CREATE TABLE u (id INT UNSIGNED NOT NULL PRIMARY KEY, a INT);
INSERT INTO u VALUES (20, 2), (30, 3), (40, 4), (50, 5);
CREATE TABLE n (id BIGINT UNSIGNED, a INT);
INSERT INTO n VALUES (NULL, 1), (60, 6);
--- run
INSERT INTO t (id, a) SELECT id, a FROM u WHERE id < 30;
INSERT INTO t SELECT * FROM u WHERE id = 30;
INSERT INTO t (a, id) SELECT u.a, u.id AS k FROM u WHERE id = 40 ORDER BY k LIMIT 1;
REPLACE INTO t SELECT x.* FROM (SELECT id, a + 1 FROM u) AS x WHERE id = 50;
INSERT IGNORE INTO t SELECT * FROM n WHERE id IS NOT NULL;
INSERT IGNORE INTO t SELECT * FROM n WHERE id IS NOT NULL;
INSERT INTO t SELECT * FROM n WHERE id IS NOT NULL;
@refused with a 0 or NULL in it
INSERT INTO t (id, a) SELECT id, a FROM n ORDER BY a;
SELECT id, a FROM t ORDER BY id;
INSERT INTO u VALUES (0, 9);
@refused with a 0 or NULL in it
INSERT IGNORE INTO t SELECT * FROM u;
@refused a column as key
INSERT INTO t (id, a) SELECT id, COUNT(*) FROM u WHERE id > 60 GROUP BY id;
SELECT id, a FROM t ORDER BY id;

=== rows copied with keys that are computed
CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT);
CREATE TABLE u (a INT);
INSERT INTO u VALUES (1), (2), (3);
CREATE FUNCTION f() RETURNS INT DETERMINISTIC NO SQL RETURN 5;
--- run
INSERT INTO t (id, a) SELECT d.k, d.a FROM (SELECT ABS(a) + 100 AS k, a FROM u WHERE a < YEAR(NOW())) d;
INSERT INTO t (id, a) SELECT k, m FROM (SELECT MAX(a) + 200 AS k, UPPER(MIN(a)) AS m FROM u) d;
@refused a column as key
INSERT INTO t (id, a) SELECT d.k, d.a FROM (SELECT f() + a AS k, a FROM u) d;
@refused a column as key
INSERT INTO t (id, a) SELECT k, a FROM (SELECT CAST(FLOOR(RAND() * 2) AS SIGNED) AS k, a FROM u) d;
@refused a column as key
INSERT INTO t (id, a) SELECT a, f() FROM u;
SELECT id, a FROM t ORDER BY id;

=== rows without values that have an alias
only: mysql
CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT NOT NULL DEFAULT 3, b INT, c INT AS (a + 1), UNIQUE (a));
--- run
INSERT INTO t VALUES () AS n ON DUPLICATE KEY UPDATE a = n.a;
INSERT INTO t VALUES () AS n ON DUPLICATE KEY UPDATE b = n.a + 1;
INSERT INTO t () VALUES ( /* none */ ) AS n ON DUPLICATE KEY UPDATE b = n.c;
INSERT INTO t VALUES () AS n (w, x, y, z) ON DUPLICATE KEY UPDATE b = x + z;
INSERT INTO t VALUES (), () AS n ON DUPLICATE KEY UPDATE b = n.a + 2;
INSERT INTO t VALUES () AS n;
DELETE FROM t;
INSERT INTO t VALUES () AS n ON DUPLICATE KEY UPDATE a = 1;
@params 4
INSERT INTO t VALUES () AS n ON DUPLICATE KEY UPDATE a = n.a + ?;
SELECT a, b, c FROM t ORDER BY id;

=== sums of text that is no number, sorted
only: mariadb
CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a DOUBLE);
CREATE TABLE u (a VARCHAR(10), b VARCHAR(10));
INSERT INTO u VALUES ('1y', '1'), ('2', '3'), ('', 'x'), ('zz', NULL);
--- run
INSERT INTO t (a) SELECT DISTINCT a + b FROM u;
@deviates_after several rows, then ROW_COUNT() in the statement that asks for LAST_INSERT_ID()
INSERT INTO t (a) SELECT a + b FROM u ORDER BY a;
SELECT a FROM t ORDER BY id;
INSERT INTO t SELECT NULL, - -v.`a` * (v.b - '1x') AS s FROM u AS v WHERE b > '0' ORDER BY a DESC, lower(b);
@deviates_after several rows, then ROW_COUNT() in the statement that asks for LAST_INSERT_ID()
INSERT INTO t (id, a) SELECT NULL, - -v.`a` * (v.b - '1') AS s FROM u AS v WHERE b > '' ORDER BY a DESC, lower(b);
@deviates_after several rows, then ROW_COUNT() in the statement that asks for LAST_INSERT_ID()
INSERT INTO t (a) SELECT round(a / 3, 2) FROM u ORDER BY b LIMIT 2;
INSERT INTO t (a) SELECT u.a - v.b FROM u JOIN u v ON u.a = v.a ORDER BY v.b DESC, u.a;
INSERT INTO t (a) SELECT a - 'x' FROM t ORDER BY a;
SELECT a FROM t ORDER BY id;
SET sql_mode = '';
@deviates_after several rows, then ROW_COUNT() in the statement that asks for LAST_INSERT_ID()
INSERT INTO t (a) SELECT a + b FROM u ORDER BY a;
INSERT INTO u (a) SELECT LAST_INSERT_ID(8);
SELECT a FROM t ORDER BY id;
SET sql_mode = 'STRICT_TRANS_TABLES';
START TRANSACTION;
@deviates text that is no number counts as 0 in a sum, as natively with a column list
INSERT INTO t SELECT NULL, a + b FROM u;
INSERT INTO u (a) SELECT LAST_INSERT_ID(6);
ROLLBACK;
START TRANSACTION;
@deviates text that is no number is an error in a sorted sum of several tables, as natively with DISTINCT
INSERT INTO t (a) SELECT a + b AS s FROM u v, (SELECT 1) w ORDER BY v.a;
INSERT INTO u (a) SELECT LAST_INSERT_ID(7);
ROLLBACK;

=== numbers that a temporary table would round, sorted
only: mariadb
CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a DECIMAL(30,15), b DOUBLE, c VARCHAR(60));
CREATE TABLE u (i INT, d DECIMAL(10,3), f DOUBLE, s VARCHAR(10), y YEAR, e ENUM('b','a'), k BIT(5), m TIME, w DATETIME(3), z INT ZEROFILL);
INSERT INTO u VALUES (7, 2.345, 0.1, '3.5', 2024, 'a', b'101', '12:30:01', '2024-02-29 12:00:00.125', 42);
INSERT INTO u VALUES (-3, -1.005, 1e100, 'x', 1999, 'b', b'1', '-00:00:01', '1999-12-31 23:59:59.999', 7);
INSERT INTO u VALUES (NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
--- run
SET sql_mode = '';
@deviates_after several rows, then ROW_COUNT() in the statement that asks for LAST_INSERT_ID()
INSERT INTO t (a, b, c) SELECT i / 7, f / 3, concat(d, s) FROM u ORDER BY i;
@deviates_after several rows, then ROW_COUNT() in the statement that asks for LAST_INSERT_ID()
INSERT INTO t (a, b, c) SELECT d / i, i * f, concat(e, k + 0, y) FROM u ORDER BY d DESC;
@deviates_after several rows, then ROW_COUNT() in the statement that asks for LAST_INSERT_ID()
INSERT INTO t (a, b, c) SELECT e + 0, k / 2, concat(m + 0, '/', w + 0) FROM u ORDER BY y;
@deviates_after several rows, then ROW_COUNT() in the statement that asks for LAST_INSERT_ID()
INSERT INTO t (a, b, c) SELECT y / 3, m / 7, concat(z, ':', w) FROM u ORDER BY w LIMIT 2;
@deviates_after several rows, then ROW_COUNT() in the statement that asks for LAST_INSERT_ID()
INSERT INTO t (a, b, c) SELECT i DIV 2, i % 4, coalesce(s, d, 'none') FROM u ORDER BY e, i;
@deviates_after several rows, then ROW_COUNT() in the statement that asks for LAST_INSERT_ID()
INSERT INTO t (a, b, c) SELECT greatest(i, d), least(f, d), upper(concat(s, e)) FROM u ORDER BY m;
@deviates_after several rows, then ROW_COUNT() in the statement that asks for LAST_INSERT_ID()
INSERT INTO t (a, b, c) SELECT truncate(d / 3, 9), nullif(i, 7) / 9, ifnull(w, m) FROM u ORDER BY z DESC FOR UPDATE;
SELECT a, b, c FROM t ORDER BY id;
