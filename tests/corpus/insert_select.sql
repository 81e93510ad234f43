# Rows that come from a query.

=== insert from a query
CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT, b VARCHAR(20));
CREATE TABLE source (x INT, y VARCHAR(20));
INSERT INTO source VALUES (3, 'c'), (1, 'a'), (2, 'b');
--- run
@deviates_after several rows, then ROW_COUNT() in the statement that asks for LAST_INSERT_ID()
INSERT INTO t (a, b) SELECT x, y FROM source ORDER BY x;
SELECT id - LAST_INSERT_ID(), a, b FROM t ORDER BY id;
INSERT INTO t (a) SELECT x FROM source WHERE x > 100;
SELECT ROW_COUNT(), LAST_INSERT_ID() = MIN(id) FROM t;
INSERT INTO t (a, b) SELECT 7, 'seven';
@deviates_after several rows, then ROW_COUNT() in the statement that asks for LAST_INSERT_ID()
INSERT INTO t (a) SELECT x FROM source WHERE x = 1 UNION ALL SELECT 99;
@deviates_after several rows, then ROW_COUNT() in the statement that asks for LAST_INSERT_ID()
INSERT INTO t (b) SELECT y FROM source ORDER BY y DESC LIMIT 2;
@deviates_after several rows, then ROW_COUNT() in the statement that asks for LAST_INSERT_ID()
INSERT INTO t (a, b) SELECT NOT -x, y FROM source ORDER BY y;
SELECT a, b FROM t ORDER BY id;

=== insert from a union that is ordered as a whole
CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT, b VARCHAR(20));
CREATE TABLE source (x INT, y VARCHAR(20));
INSERT INTO source VALUES (3, 'c'), (1, 'a'), (2, 'b');
--- run
@deviates_after several rows, then ROW_COUNT() in the statement that asks for LAST_INSERT_ID()
INSERT INTO t (a, b) SELECT x, y FROM source UNION ALL SELECT 0, 'zero' ORDER BY x;
@deviates_after several rows, then ROW_COUNT() in the statement that asks for LAST_INSERT_ID()
INSERT INTO t (b, a) SELECT y AS name, x AS number FROM source UNION SELECT 'd', 4 ORDER BY name DESC, number;
@deviates_after several rows, then ROW_COUNT() in the statement that asks for LAST_INSERT_ID()
INSERT INTO t (b) SELECT y FROM source UNION SELECT 'e' ORDER BY 1 DESC LIMIT 3;
SELECT a, b FROM t ORDER BY id;

=== insert from all rows but the first
only: mariadb
CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT);
CREATE TABLE source (x INT PRIMARY KEY, k INT);
INSERT INTO source VALUES (1, 9), (2, 8), (3, 7);
--- run
@deviates_after several rows, then ROW_COUNT() in the statement that asks for LAST_INSERT_ID()
INSERT INTO t (a) SELECT x FROM source OFFSET 1 ROWS;
@deviates_after several rows, then ROW_COUNT() in the statement that asks for LAST_INSERT_ID()
INSERT INTO t (a) SELECT x FROM source ORDER BY k OFFSET 1 ROW;
SELECT a FROM t ORDER BY id;

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
@deviates_after several rows, then ROW_COUNT() in the statement that asks for LAST_INSERT_ID()
INSERT INTO t (a) SELECT a + 10 FROM t ORDER BY a;
SELECT a FROM t ORDER BY id;

=== insert from a query in a transaction that fails
CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT UNIQUE);
CREATE TABLE source (x INT);
INSERT INTO source VALUES (1), (2), (2);
--- run
BEGIN;
@deviates_after several rows that fail after their first
INSERT INTO t (a) SELECT x FROM source ORDER BY x;
@deviates_after several rows, then ROW_COUNT() in the statement that asks for LAST_INSERT_ID()
INSERT INTO t (a) SELECT DISTINCT x FROM source ORDER BY x;
COMMIT;
SELECT a FROM t ORDER BY id;

=== a thousand rows
CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT);
CREATE TABLE digits (d INT);
INSERT INTO digits VALUES (0), (1), (2), (3), (4), (5), (6), (7), (8), (9);
--- run
@deviates_after several rows, then ROW_COUNT() in the statement that asks for LAST_INSERT_ID()
INSERT INTO t (a) SELECT h.d * 100 + t.d * 10 + e.d FROM digits h, digits t, digits e ORDER BY 1;
SELECT COUNT(*), COUNT(DISTINCT id), MIN(id) = LAST_INSERT_ID(), SUM(a) FROM t;

=== insert from a temporary table
CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT);
--- run
CREATE TEMPORARY TABLE t2 AS SELECT 1 AS x;
INSERT INTO t (a) SELECT x FROM t2 WHERE x < 0;
INSERT INTO t (a) SELECT x FROM t2;
SELECT a FROM t;

=== select of one row
CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT UNIQUE, b VARCHAR(20));
CREATE TABLE source (x INT, y VARCHAR(20));
INSERT INTO source VALUES (3, 'c'), (1, 'a'), (2, 'b');
--- run
SELECT LAST_INSERT_ID(42);
INSERT INTO t (a, b) SELECT 7, 'seven';
SELECT LAST_INSERT_ID() = id, a, b FROM t;
INSERT INTO t (a) SELECT 8 FROM DUAL WHERE NOT EXISTS (SELECT * FROM t WHERE a = 8);
INSERT INTO t (a) SELECT 8 FROM DUAL WHERE NOT EXISTS (SELECT * FROM t WHERE a = 8);
SELECT LAST_INSERT_ID() = MAX(id), COUNT(*) FROM t;
INSERT INTO t (a, b) SELECT MAX(x) * 100, MIN(y) FROM source;
INSERT INTO t (a, b) SELECT x * 10, y FROM source ORDER BY x DESC LIMIT 1;
INSERT INTO t (a, b) (SELECT 11, 'in parentheses') -- end
;
INSERT INTO t (a) SELECT 11;
INSERT IGNORE INTO t (a) SELECT 11;
@deviates_after several rows, then ROW_COUNT() in the statement that asks for LAST_INSERT_ID()
REPLACE INTO t (a, b) SELECT 11, 'new';
SELECT LAST_INSERT_ID() = MAX(id) FROM t;
INSERT INTO t (a, b) SELECT 11, 'x' ON DUPLICATE KEY UPDATE b = CONCAT(VALUES(b), t.b);
SELECT a, b FROM t ORDER BY id;

=== select of rows in the order they are read
CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT, b VARCHAR(20));
CREATE TABLE source (k INT PRIMARY KEY, x INT, y VARCHAR(20));
INSERT INTO source VALUES (1, 30, 'c'), (2, 10, 'a'), (3, 20, 'b'), (4, 10, 'd');
CREATE TABLE other (k INT PRIMARY KEY, z VARCHAR(20));
INSERT INTO other VALUES (1, 'one'), (3, 'three'), (4, 'four');
CREATE VIEW seen AS SELECT k, x + 1 AS x1 FROM source;
--- run
@deviates_after several rows, then ROW_COUNT() in the statement that asks for LAST_INSERT_ID()
INSERT INTO t (a, b) SELECT x, y FROM source;
SELECT id - LAST_INSERT_ID(), a, b FROM t ORDER BY id;
INSERT INTO t (a) SELECT x FROM source WHERE x > 100;
SELECT LAST_INSERT_ID() = MIN(id) FROM t;
@deviates_after several rows, then ROW_COUNT() in the statement that asks for LAST_INSERT_ID()
INSERT INTO t (a, b) SELECT x, z FROM source STRAIGHT_JOIN other ON source.k = other.k WHERE x < 30;
SELECT id - LAST_INSERT_ID(), a, b FROM t WHERE id >= LAST_INSERT_ID() ORDER BY id;
@deviates_after several rows, then ROW_COUNT() in the statement that asks for LAST_INSERT_ID()
INSERT INTO t (a) SELECT x1 FROM seen;
@deviates_after several rows, then ROW_COUNT() in the statement that asks for LAST_INSERT_ID()
INSERT INTO t (b) SELECT CONCAT(x / 3, '') FROM source;
@deviates_after several rows, then ROW_COUNT() in the statement that asks for LAST_INSERT_ID()
INSERT INTO t (b) SELECT (SELECT MAX(z) FROM other WHERE other.k <= source.k) FROM source -- end
;
@deviates_after several rows, then ROW_COUNT() in the statement that asks for LAST_INSERT_ID()
INSERT INTO t (a) WITH c AS (SELECT x FROM source WHERE k > 1) SELECT x FROM c;
@deviates_after several rows, then ROW_COUNT() in the statement that asks for LAST_INSERT_ID()
INSERT INTO t (a, b) SELECT * FROM (SELECT x, y FROM source ORDER BY y LIMIT 2) d;
@deviates_after several rows, then ROW_COUNT() in the statement that asks for LAST_INSERT_ID()
INSERT INTO t (a) SELECT x FROM source FOR UPDATE;
@deviates_after several rows, then ROW_COUNT() in the statement that asks for LAST_INSERT_ID()
INSERT INTO t (a) SELECT a + 1000 FROM t WHERE a < 20;
SELECT a, b FROM t ORDER BY id;

=== select of rows that are sorted
CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT, b VARCHAR(20));
CREATE TABLE source (k INT, x INT, y VARCHAR(20));
INSERT INTO source VALUES (1, 30, 'c'), (2, 10, 'a'), (3, 20, 'b'), (4, 10, 'd'), (5, 5, 'e');
CREATE TABLE other (k INT, z VARCHAR(20));
INSERT INTO other VALUES (1, 'one'), (3, 'three'), (4, 'four');
--- run
@deviates_after several rows, then ROW_COUNT() in the statement that asks for LAST_INSERT_ID()
INSERT INTO t (a, b) SELECT x, y FROM source ORDER BY x DESC, y;
SELECT id - LAST_INSERT_ID(), a, b FROM t ORDER BY id;
@deviates_after several rows, then ROW_COUNT() in the statement that asks for LAST_INSERT_ID()
INSERT INTO t (a, b) SELECT x, z FROM source LEFT JOIN other ON source.k = other.k ORDER BY z DESC, x;
@deviates_after several rows, then ROW_COUNT() in the statement that asks for LAST_INSERT_ID()
INSERT INTO t (a, b) SELECT x, y FROM source ORDER BY y DESC LIMIT 1, 3;
@deviates_after several rows, then ROW_COUNT() in the statement that asks for LAST_INSERT_ID()
INSERT INTO t (a, b) SELECT x, y FROM source ORDER BY y DESC LIMIT 2;
@deviates_after several rows, then ROW_COUNT() in the statement that asks for LAST_INSERT_ID()
INSERT INTO t (a) SELECT k FROM source LIMIT 3;
@deviates_after several rows, then ROW_COUNT() in the statement that asks for LAST_INSERT_ID()
INSERT INTO t (a) SELECT DISTINCT x FROM source ORDER BY x;
@deviates_after several rows, then ROW_COUNT() in the statement that asks for LAST_INSERT_ID()
INSERT INTO t (a, b) SELECT x, MAX(y) FROM source GROUP BY x ORDER BY MAX(y) DESC;
INSERT INTO t (a, b) SELECT x, COUNT(*) FROM source GROUP BY x HAVING COUNT(*) > 1;
@deviates_after several rows, then ROW_COUNT() in the statement that asks for LAST_INSERT_ID()
INSERT INTO t (a) SELECT x FROM source WHERE k < 3 UNION SELECT k FROM other ORDER BY 1;
@deviates_after several rows, then ROW_COUNT() in the statement that asks for LAST_INSERT_ID()
INSERT INTO t (a) SELECT x FROM source WHERE k = 1 UNION ALL SELECT 99;
@deviates_after several rows, then ROW_COUNT() in the statement that asks for LAST_INSERT_ID()
INSERT INTO t (a, b) (SELECT x, y FROM source ORDER BY y DESC);
INSERT INTO t (a, b) WITH c AS (SELECT x, y FROM source) SELECT y, x FROM c WHERE 0 ORDER BY 1;
@deviates_after several rows, then ROW_COUNT() in the statement that asks for LAST_INSERT_ID()
INSERT INTO t (a) SELECT a + 10 FROM t WHERE a < 10 ORDER BY a DESC, id;
SELECT a, b FROM t ORDER BY id;

=== select of many rows
CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT);
CREATE TABLE digits (d INT);
INSERT INTO digits VALUES (0), (1), (2), (3), (4), (5), (6), (7), (8), (9);
--- run
@deviates_after several rows, then ROW_COUNT() in the statement that asks for LAST_INSERT_ID()
INSERT INTO t (a) SELECT h.d * 100 + t.d * 10 + e.d FROM digits h, digits t, digits e ORDER BY 1;
SELECT COUNT(*), COUNT(DISTINCT id), MIN(id) = LAST_INSERT_ID(), MAX(id) - MIN(id), SUM(a) FROM t;
BEGIN;
@deviates_after several rows, then ROW_COUNT() in the statement that asks for LAST_INSERT_ID()
INSERT INTO t (a) SELECT d FROM digits h STRAIGHT_JOIN t;
SELECT LAST_INSERT_ID();
ROLLBACK;
@deviates_after several rows, then ROW_COUNT() in the statement that asks for LAST_INSERT_ID()
INSERT INTO t (a) SELECT a FROM t WHERE a < 700;
SELECT COUNT(*), COUNT(DISTINCT id), MAX(id) - LAST_INSERT_ID() FROM t;

=== select of many rows whose error the server cuts off
CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT);
CREATE TABLE digits (d INT);
INSERT INTO digits VALUES (0), (1), (2), (3), (4), (5), (6), (7), (8), (9);
--- run
SET character_set_results = utf16;
@refused character_set_results
INSERT INTO t (a) SELECT h.d * 10 + e.d FROM digits h STRAIGHT_JOIN digits e;
SELECT COUNT(*) FROM t;
SET character_set_results = utf16le;
@refused character_set_results
INSERT INTO t (a) SELECT h.d * 10 + e.d FROM digits h STRAIGHT_JOIN digits e;
SELECT COUNT(*) FROM t;
SET character_set_results = utf8mb4;
SELECT COUNT(*) FROM t;

=== select of many rows that may be there
CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT UNIQUE, b INT DEFAULT 0);
CREATE TABLE digits (d INT);
INSERT INTO digits VALUES (0), (1), (2), (3), (4), (5), (6), (7), (8), (9);
--- run
@deviates_after several rows, then ROW_COUNT() in the statement that asks for LAST_INSERT_ID()
INSERT IGNORE INTO t (a) SELECT h.d * 10 + e.d FROM digits h STRAIGHT_JOIN digits e;
SELECT LAST_INSERT_ID();
SELECT COUNT(*), COUNT(DISTINCT id), MAX(id) - MIN(id), MIN(id) > 0, SUM(a) FROM t;
@deviates_after several rows, then ROW_COUNT() in the statement that asks for LAST_INSERT_ID()
REPLACE INTO t (a) SELECT h.d * 10 + e.d + 50 FROM digits h STRAIGHT_JOIN digits e;
SELECT COUNT(*), SUM(a) FROM t;
SET sql_mode = '';
@deviates_after several rows, then ROW_COUNT() in the statement that asks for LAST_INSERT_ID()
INSERT IGNORE INTO t (a) SELECT 1000 + z.d * 1000 + h.d * 100 + e.d * 10 + u.d FROM digits z STRAIGHT_JOIN digits h STRAIGHT_JOIN digits e STRAIGHT_JOIN digits u;
SELECT COUNT(*), COUNT(DISTINCT id), SUM(a), MIN(id) > 0 FROM t;
@deviates_after several rows, then ROW_COUNT() in the statement that asks for LAST_INSERT_ID()
REPLACE INTO t (a) SELECT a FROM t ORDER BY b, a DESC LIMIT 600;
SELECT COUNT(*), SUM(a) FROM t;

=== select that skips rows
CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT UNIQUE, b VARCHAR(20));
CREATE TABLE source (k INT, x INT, y VARCHAR(20));
INSERT INTO source VALUES (1, 30, 'c'), (2, 10, 'a'), (3, 20, 'b'), (4, 10, 'd');
--- run
@deviates_after several rows that fail after their first
INSERT INTO t (a, b) SELECT x, y FROM source;
@deviates_after several rows, then ROW_COUNT() in the statement that asks for LAST_INSERT_ID()
INSERT IGNORE INTO t (a, b) SELECT x, y FROM source;
SELECT LAST_INSERT_ID();
SELECT LAST_INSERT_ID() = MIN(id) FROM t;
INSERT IGNORE INTO t (a, b) SELECT x, y FROM source;
@deviates_after several rows, then ROW_COUNT() in the statement that asks for LAST_INSERT_ID()
REPLACE INTO t (a, b) SELECT x, y FROM source;
SELECT a, b FROM t ORDER BY id;
SELECT LAST_INSERT_ID(42);
INSERT INTO t (a, b) SELECT x, y FROM source ON DUPLICATE KEY UPDATE b = CONCAT(VALUES(b), source.k);
SELECT LAST_INSERT_ID();
INSERT INTO t (a, b) SELECT x, y FROM source WHERE k > 2 ON DUPLICATE KEY UPDATE b = IF(source.k = 3, 'changed', t.b);
SELECT LAST_INSERT_ID();

=== select with a key column
CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT, b VARCHAR(20));
CREATE TABLE source (k INT, x INT, y VARCHAR(20));
INSERT INTO source VALUES (11, 30, 'c'), (12, 10, 'a'), (13, 20, 'b');
--- run
@deviates_after several rows, then ROW_COUNT() in the statement that asks for LAST_INSERT_ID()
INSERT INTO t SELECT NULL, x, y FROM source;
SELECT id - LAST_INSERT_ID(), a, b FROM t ORDER BY id;
@deviates_after several rows, then ROW_COUNT() in the statement that asks for LAST_INSERT_ID()
INSERT INTO t (id, a) SELECT 0, x FROM source ORDER BY x;
INSERT INTO t (a, id) SELECT x, NULL AS id FROM source LIMIT 1;
INSERT INTO t SELECT 5, 1, 'five';
SELECT a, b FROM t ORDER BY id;

=== select into a column without auto increment
CREATE TABLE t (id BIGINT AUTO_INCREMENT, a INT, b DECIMAL(20, 10), c DOUBLE, d VARCHAR(40), KEY (id));
CREATE TABLE source (k INT, x DECIMAL(10, 3), y FLOAT, z DATETIME(3));
INSERT INTO source VALUES (1, 1.005, 1.1, '2020-01-02 03:04:05.678'), (2, -2.5, 3e10, '2021-01-02 03:04:05');
--- run
@deviates_after several rows, then ROW_COUNT() in the statement that asks for LAST_INSERT_ID()
INSERT INTO t (b, c, d) SELECT x / 7, y / 3, z FROM source;
@deviates_after several rows, then ROW_COUNT() in the statement that asks for LAST_INSERT_ID()
INSERT INTO t (b, c, d) SELECT x, y, z FROM source ORDER BY k DESC;
@deviates_after several rows, then ROW_COUNT() in the statement that asks for LAST_INSERT_ID()
INSERT INTO t (b, c, d) SELECT SUM(x), SUM(y), MAX(z) FROM source GROUP BY k ORDER BY k;
@deviates_after several rows, then ROW_COUNT() in the statement that asks for LAST_INSERT_ID()
INSERT INTO t (b, d) SELECT 0x41, 1 / 3 FROM source;
@deviates_after several rows, then ROW_COUNT() in the statement that asks for LAST_INSERT_ID()
INSERT INTO t (b, d) SELECT x * 3 - k, CONCAT(y, x) FROM source ORDER BY k;
SELECT b, c, d FROM t ORDER BY id;

=== select spaced by auto_increment_increment
CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT);
CREATE TABLE source (k INT);
INSERT INTO source VALUES (1), (2), (3);
--- run
SET auto_increment_increment = 3;
@deviates_after several rows, then ROW_COUNT() in the statement that asks for LAST_INSERT_ID()
INSERT INTO t (a) SELECT k FROM source;
SELECT id - LAST_INSERT_ID(), a FROM t ORDER BY id;
@deviates_after several rows, then ROW_COUNT() in the statement that asks for LAST_INSERT_ID()
INSERT INTO t (a) SELECT k FROM source ORDER BY k DESC;
SELECT id - LAST_INSERT_ID(), a FROM t WHERE id >= LAST_INSERT_ID() ORDER BY id;

=== select that fails
CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT UNIQUE);
CREATE TABLE source (k INT, x INT);
INSERT INTO source VALUES (1, 1), (2, 2), (3, 2);
--- run
BEGIN;
@deviates_after several rows, then ROW_COUNT() in the statement that asks for LAST_INSERT_ID()
INSERT INTO t (a) SELECT k FROM source;
INSERT INTO t (a) SELECT x FROM source;
INSERT INTO t (a) SELECT nothing FROM source;
INSERT INTO t (a) SELECT k, x FROM source;
INSERT INTO t (a) SELECT k + 10 FROM missing;
INSERT INTO t (a) SELECT (SELECT k FROM source) FROM source;
INSERT INTO t (a) SELECT 18446744073709551615 + k FROM source;
COMMIT;
SELECT a FROM t ORDER BY id;

=== select with words before a parenthesis that call no stored function
CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT, b VARCHAR(20));
CREATE TABLE parts (x INT, y VARCHAR(20)) PARTITION BY HASH (x) PARTITIONS 2;
CREATE TABLE words (x INT, y VARCHAR(20), FULLTEXT (y));
INSERT INTO parts VALUES (1, 'a'), (2, 'b'), (3, NULL), (4, 'd');
INSERT INTO words VALUES (1, 'hello'), (2, 'world'), (3, 'hello');
--- run
@deviates_after several rows, then ROW_COUNT() in the statement that asks for LAST_INSERT_ID()
INSERT INTO t (a, b) SELECT x, IFNULL (y, 'none') FROM parts PARTITION (p1) WHERE COALESCE (x, 0) > 0;
@deviates_after several rows, then ROW_COUNT() in the statement that asks for LAST_INSERT_ID()
INSERT INTO t (a, b) SELECT x, UPPER (y) FROM words WHERE MATCH (y) AGAINST ('hello') AND y LIKE ('h%') ESCAPE ('|');
@only mysql
@deviates_after several rows, then ROW_COUNT() in the statement that asks for LAST_INSERT_ID()
INSERT INTO t (a) SELECT n FROM (VALUES ROW(5), ROW(6)) AS d (n);
@only mysql
@deviates_after several rows, then ROW_COUNT() in the statement that asks for LAST_INSERT_ID()
INSERT INTO t (a) SELECT x FROM parts WHERE x MEMBER OF ('[1, 2]');
@only mysql
@deviates_after several rows, then ROW_COUNT() in the statement that asks for LAST_INSERT_ID()
INSERT INTO t (a) SELECT e.m FROM parts, LATERAL (SELECT parts.x AS m) e;
SELECT a, b FROM t ORDER BY a, b;

=== select that is not rewritten
CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT);
CREATE TABLE source (k INT, x INT);
INSERT INTO source VALUES (1, 1), (2, 2), (3, 2);
CREATE FUNCTION twice (n INT) RETURNS INT NO SQL DETERMINISTIC RETURN n * 2;
--- run
@refused an expression as key
INSERT INTO t (id, a) SELECT k + 1, x FROM source;
@refused must not be carried out twice
INSERT INTO t (a) SELECT twice(k) FROM source;
@refused assigns to a variable
INSERT INTO t (a) SELECT @n := k FROM source;
@refused lose digits
INSERT INTO t (a) SELECT AVG(x) FROM source GROUP BY k;
@refused with columns of the query
INSERT INTO t (a) SELECT x FROM source ORDER BY x ON DUPLICATE KEY UPDATE a = source.x;
@refused RETURNING
@only mariadb
INSERT INTO t (a) SELECT x FROM source RETURNING id;
@refused RETURNING
@only mariadb
INSERT INTO t (a) SELECT 1 ON DUPLICATE KEY UPDATE a = 2 RETURNING id;
@refused a parameter as key
@params 1
INSERT INTO t (id, a) SELECT ?, x FROM source;
@refused lose digits
@params 1
INSERT INTO t (a) SELECT ? FROM source ORDER BY k;
SELECT COUNT(*) FROM t;
