# Keys that the server computes: it is asked for their values before the INSERT.

=== a key out of a variable
CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT);
--- run
SET @id = 7;
INSERT INTO t (id, a) VALUES (@id, 1);
SELECT LAST_INSERT_ID();
INSERT INTO t (id, a) VALUES (@id + 1, 2);
INSERT INTO t (a, id) VALUES (3, (@id * 3));
INSERT INTO t SET id = @id + 2, a = 4;
REPLACE INTO t (id, a) VALUES (@id, 5);
INSERT INTO t (id, a) VALUES (@id, 6);
INSERT IGNORE INTO t (id, a) VALUES (@id, 7);
INSERT INTO t (id, a) VALUES (@id, 8) ON DUPLICATE KEY UPDATE a = VALUES(a) + id;
SET @id = NULL;
INSERT INTO t (id, a) VALUES (@id, 9);
SELECT id - LAST_INSERT_ID() FROM t WHERE a = 9;
INSERT INTO t (id, a) VALUES (@id + 1, 10);
INSERT INTO t (id, a) VALUES (@nobody, 11);
SET @id = 0;
INSERT INTO t (id, a) VALUES (@id, 12);
INSERT INTO t SET a = 13, id = @id;
REPLACE INTO t VALUES (@id, 14);
INSERT IGNORE INTO t VALUES (@id, 15);
INSERT INTO t VALUES (@id, 16) ON DUPLICATE KEY UPDATE a = 17;
SELECT id - LAST_INSERT_ID(), a FROM t ORDER BY a;

=== a key out of LAST_INSERT_ID()
CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT UNIQUE);
CREATE TABLE t_child (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT, parent BIGINT);
--- run
INSERT INTO t_child (id, a) VALUES (LAST_INSERT_ID(), 1);
SELECT LAST_INSERT_ID() = MAX(id) FROM t_child;
INSERT INTO t (a) VALUES (2);
INSERT INTO t_child (id, a) VALUES (LAST_INSERT_ID(), 2);
SELECT LAST_INSERT_ID() = id FROM t_child WHERE a = 2;
INSERT INTO t_child (id, a, parent) VALUES (LAST_INSERT_ID() + 1, 3, LAST_INSERT_ID());
INSERT INTO t (a) VALUES (4) ON DUPLICATE KEY UPDATE a = 6;
INSERT INTO t (a) VALUES (2) ON DUPLICATE KEY UPDATE a = 7;
INSERT INTO t_child (id, a) VALUES (@@identity + 2, 4);
INSERT INTO t_child (id, a, parent) VALUES (NULL, 5, LAST_INSERT_ID());
INSERT INTO t_child (id, a) VALUES (LAST_INSERT_ID() - LAST_INSERT_ID(), 6);
SELECT a, id - LAST_INSERT_ID(), parent - LAST_INSERT_ID() FROM t_child WHERE a > 4 ORDER BY a;
INSERT INTO t (a) VALUES (8);
INSERT INTO t_child (id, a) VALUES (LAST_INSERT_ID() + 10, 8), (NULL, 9), (LAST_INSERT_ID() + 11, 10);
SELECT COUNT(*), LAST_INSERT_ID() = MAX(IF(a = 9, id, 0)) FROM t_child;
INSERT INTO t_child (id, a) VALUES (LAST_INSERT_ID(), 11);

=== keys out of other expressions
CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT);
--- run
INSERT INTO t (id, a) VALUES (COALESCE(@x, NULL), 1);
INSERT INTO t (id, a) VALUES (COALESCE(@x, 5), 2);
INSERT INTO t (id, a) VALUES (IF(@x IS NULL, 0, @x), 3);
INSERT INTO t (id, a) VALUES (IFNULL(@x, 4 + 4), 4);
INSERT INTO t (id, a) VALUES ((SELECT 9), 5);
INSERT INTO t (id, a) VALUES ((SELECT NULL), 6);
INSERT INTO t (id, a) VALUES (10 * 10 - 99, 7), (1 - 1, 8), (NULL + 1, 9);
@text
INSERT INTO t (id, a) VALUES (CAST('11' AS SIGNED), 10);
INSERT INTO t (id, a) VALUES (CASE WHEN 1 THEN 12 END, 11), (GREATEST(13, 1), 12);
INSERT INTO t (id, a) VALUES (ROUND(13.6), 13), (CEIL(14.2), 14);
INSERT INTO t (id, a) VALUES (-5 - 5, 15);
@text
INSERT INTO t (id, a) VALUES (9223372036854775807 + 1, 16);
INSERT INTO t (id, a) VALUES (9223372036854775807 - 5 + @y, 17);
SELECT CAST(id AS SIGNED) < LAST_INSERT_ID(), a FROM t ORDER BY a;
INSERT INTO t (id, a) VALUES ((UUID_SHORT() > 5) + 200, 18);
SET @s = '300', @r = 301e0, @d = 302.0;
INSERT INTO t (id, a) VALUES (@s, 19);
INSERT INTO t (id, a) VALUES (@r, 20);
INSERT INTO t (id, a) VALUES (FLOOR(@d), 21);
SET @s = '0';
INSERT INTO t (id, a) VALUES (@s, 22);

=== computed keys beside warnings and counts
CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT, b DECIMAL(9,2));
--- run
SET @id = 30;
SELECT 1 FROM t UNION SELECT 2;
INSERT INTO t (id, a) VALUES (@id, 1);
SELECT ROW_COUNT();
SHOW WARNINGS;
INSERT INTO t (id, a, b) VALUES (@id + 1, 2, 1.234);
SHOW WARNINGS;
SELECT @@warning_count;
@refused a variable as key
INSERT INTO t (id, a) VALUES (@id + 2, ROW_COUNT());
@refused a variable as key
INSERT INTO t (id, a) VALUES (@id + 2, FOUND_ROWS());
@refused a variable as key
INSERT INTO t (id, a) VALUES (@id + 2, @@warning_count);
@refused an expression whose value is not of the kind of the key, or has a warning, as key
INSERT INTO t (id, a) VALUES (@id / 0, 3);
@text
@refused an expression whose value is not of the kind of the key, or has a warning, as key
INSERT INTO t (id, a) VALUES (CAST('7a' AS SIGNED), 3);
@text
INSERT INTO t (id, a) VALUES (@id + 9223372036854775807, 3);
@text
INSERT INTO t (id, a) VALUES (@id + 9223372036854775807, 3) ON DUPLICATE KEY UPDATE a = nothing;
SHOW WARNINGS;
SELECT COUNT(*) FROM t;

=== computed keys in transactions
CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT);
--- run
SET @id = 40;
SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
BEGIN;
INSERT INTO t (id, a) VALUES (@id, 1);
INSERT INTO t (id, a) VALUES (@id + 1, 2);
ROLLBACK;
INSERT INTO t (id, a) VALUES (@id, 3);
SET autocommit = 0;
INSERT INTO t (id, a) VALUES (@id + 1, 4);
INSERT INTO t (id, a) VALUES (@none, 5);
ROLLBACK;
SET autocommit = 1;
START TRANSACTION READ ONLY;
INSERT INTO t (id, a) VALUES (@id + 1, 6);
COMMIT;
SET TRANSACTION READ ONLY;
INSERT INTO t (id, a) VALUES (@id + 1, 7);
INSERT INTO t (id, a) VALUES (@id + 2, 8);
SELECT id, a FROM t;

=== computed keys where 0 is a key
CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT);
--- run
SET sql_mode = 'NO_AUTO_VALUE_ON_ZERO';
SET @id = 0;
INSERT INTO t (id, a) VALUES (@id, 1);
INSERT INTO t (id, a) VALUES (@nobody, 2);
INSERT INTO t (id, a) VALUES (@id + 1, 3), (NULL, 4);
SELECT id - LAST_INSERT_ID(), a FROM t ORDER BY a;

=== computed keys below 0
CREATE TABLE t_uint (id INT UNSIGNED AUTO_INCREMENT PRIMARY KEY, a INT);
CREATE TABLE t_int (id INT AUTO_INCREMENT PRIMARY KEY, a INT);
--- run
SET @id = -5;
INSERT INTO t_int (id, a) VALUES (@id, 1);
INSERT INTO t_uint (id, a) VALUES (@id, 1);
INSERT INTO t_int (id, a) VALUES (@id * -1000000000, 2);
SELECT id, a FROM t_int;

=== bound values beside computed keys
CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT, b VARCHAR(20));
--- run
SET @id = 50;
@params 1, 'one'
INSERT INTO t (id, a, b) VALUES (@id, ?, ?);
@params 2, 'two'
INSERT INTO t (a, id, b) VALUES (?, @id + 1, ?);
@params 3
@params 4
INSERT INTO t (id, a) VALUES (@nobody, ?);
SELECT LAST_INSERT_ID() = MAX(id) FROM t;
@params 5, 6, 60, 7
INSERT INTO t (id, a) VALUES (LAST_INSERT_ID(), ?) ON DUPLICATE KEY UPDATE a = VALUES(a) + ? + ? + ?;
@params 8, 61, 9
INSERT INTO t (id, a) VALUES (@id + 2, ?), (?, ?);
@params NULL, 10
INSERT INTO t (id, a) VALUES (?, 11), (LAST_INSERT_ID() + 77, ?);
SELECT id - LAST_INSERT_ID() > 0, a, b FROM t ORDER BY a;
@params ahead 'long', 12
INSERT INTO t (b, id, a) VALUES (?, @id + 3, ?);
SELECT b FROM t WHERE a = 12;

=== computed keys that are refused
CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT);
CREATE TABLE u (id BIGINT PRIMARY KEY);
INSERT INTO u VALUES (5);
CREATE FUNCTION f() RETURNS INT DETERMINISTIC NO SQL RETURN 5;
--- run
SET @s = '7 ';
@refused a variable as key
INSERT INTO t (id, a) VALUES (@s := 7, 1);
@refused a variable as key
INSERT INTO t (a, id) VALUES (@s := 7, @s);
@refused a function call as key
INSERT INTO t (id, a) VALUES (f(), 1);
@refused a variable as key
INSERT INTO t (a, id) VALUES (f(), @s);
@refused a function call as key
INSERT INTO t (id, a) VALUES (LAST_INSERT_ID(@s), 1);
@refused a function call as key
INSERT INTO t (id, a) VALUES (SLEEP(0), 1);
@refused a function call as key
INSERT INTO t (id, a) VALUES (GET_LOCK('keywright', 0), 1);
@refused a function call as key
INSERT INTO t (id, a) VALUES (RAND(), 1);
@refused a function call as key
INSERT INTO t (id, a) VALUES (UNIX_TIMESTAMP(), 1);
@params 5
@refused a subquery as key
INSERT INTO t (id, a) VALUES ((SELECT id FROM u), ?);
@refused a variable as key
INSERT INTO t (id, a) VALUES (@@server_id, 1);
@refused an expression as key
INSERT INTO t (id, a) VALUES (a + 1, 1);
@refused an expression whose value is not of the kind of the key, or has a warning, as key
INSERT INTO t (id, a) VALUES (@s, 1);
@refused an expression whose value is not of the kind of the key, or has a warning, as key
INSERT INTO t (id, a) VALUES (2.5 * 3, 1);
@refused a variable as key
INSERT INTO t (id, a) VALUES (1, 1), (@s := 5, 2);
SELECT COUNT(*) FROM t;

=== keys that are queries
CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT);
CREATE TABLE u (id BIGINT PRIMARY KEY, name VARCHAR(20), zero INT);
INSERT INTO u VALUES (5, 'five', 0), (7, 'seven', 0);
--- run
@text
INSERT INTO t (id, a) VALUES ((SELECT id FROM u WHERE name = 'five'), 1);
@text
INSERT INTO t (id, a) VALUES ((SELECT id FROM u WHERE name = 'five'), 2);
@text
@refused a subquery as key
INSERT IGNORE INTO t (id, a) VALUES ((SELECT id FROM u WHERE name = 'five'), 2);
@text
REPLACE INTO t (a, id) VALUES (3, (SELECT MAX(u.id) FROM u));
@text
INSERT INTO t SET a = 4, id = (SELECT COUNT(*) + 50 FROM u AS x WHERE x.id IN (SELECT id FROM u));
@text
INSERT INTO t (id, a) VALUES ((SELECT id FROM u WHERE name = 'five'), 5) ON DUPLICATE KEY UPDATE a = VALUES(a) + 100;
@text
INSERT INTO t (id, a) VALUES ((SELECT m FROM (SELECT MAX(id) + 1 AS m FROM t) d), 6);
@text
INSERT INTO t (id, a) VALUES ((SELECT MAX(id) + 1 FROM t), 7);
@text
@only mysql
INSERT INTO t (id, a) VALUES ((SELECT id FROM u), 8);
@text
@only mariadb
@deviates_after the query is executed twice, and the server records its error each time
INSERT INTO t (id, a) VALUES ((SELECT id FROM u), 8);
@text
@refused a subquery as key
INSERT INTO t (id, a) VALUES ((SELECT id FROM nowhere), 8);
@text
@refused a subquery as key
INSERT INTO t (id, a) VALUES ((SELECT id FROM u WHERE id = a), 9);
SELECT COUNT(*) FROM u;
BEGIN;
@text
INSERT INTO t (id, a) VALUES ((SELECT id FROM u WHERE id = 99), 10);
SELECT LAST_INSERT_ID() = MAX(id) FROM t;
@text
INSERT INTO t (id, a) VALUES ((SELECT zero FROM u WHERE id = 5), 11);
SELECT LAST_INSERT_ID() = MAX(id) FROM t;
COMMIT;
@text
INSERT INTO t SET id = (SELECT zero FROM u WHERE id = 7), a = 12;
@text
@deviates a query that results in no key is not executed again, so the status flag for no index is missing
INSERT INTO t (id, a) VALUES ((SELECT MIN(zero) FROM u), 13);
@text
INSERT INTO t (id, a) VALUES ((SELECT zero FROM u WHERE id = 7), 14) ON DUPLICATE KEY UPDATE a = 15;
SELECT id, a FROM t ORDER BY a;
@text
@refused a subquery as key
INSERT INTO t (id, a) VALUES ((SELECT name FROM u LIMIT 1), 16);
@text
@refused a subquery as key
INSERT INTO t (id, a) VALUES ((SELECT id / 2 FROM u LIMIT 1), 16);
@text
@refused a subquery as key
INSERT INTO t (id, a) VALUES ((SELECT id FROM u LIMIT 1), 16), (NULL, 17);
@refused a subquery as key
INSERT INTO t (id, a) VALUES ((SELECT id + RAND() FROM u LIMIT 1), 16);
@refused a subquery as key
INSERT INTO t (id, a) VALUES ((SELECT @n := id FROM u LIMIT 1), 16);
@text
@refused a subquery as key
INSERT INTO t (id, a) VALUES ((SELECT id FROM u LIMIT 1), @n := 16);
SELECT COUNT(*) FROM t;

=== keys that are queries over tables that a statement may name once
CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT);
CREATE TABLE u (id BIGINT PRIMARY KEY);
INSERT INTO u VALUES (5);
--- run
CREATE TEMPORARY TABLE once (k BIGINT);
INSERT INTO once VALUES (9);
@text
@only mariadb
INSERT INTO t (id, a) VALUES ((SELECT MAX(k) FROM once), 1);
@text
@only mysql
@refused a subquery as key
INSERT INTO t (id, a) VALUES ((SELECT MAX(k) FROM once), 1);
DROP TEMPORARY TABLE once;
LOCK TABLES t WRITE, u READ;
@text
@refused a subquery as key
INSERT INTO t (id, a) VALUES ((SELECT MAX(id) FROM u), 2);
SELECT COUNT(*) FROM t;
UNLOCK TABLES;
@text
INSERT INTO t (id, a) VALUES ((SELECT MAX(id) FROM u), 3);
SELECT id, a FROM t ORDER BY id;
