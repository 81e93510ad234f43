# What looks like a key of the application's own, or like an error of the server's, and may be neither.

=== strings that are nearly 0
CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT);
CREATE TABLE u (a INT);
INSERT INTO u VALUES (1), (2);
--- run
@refused a string that is no number
INSERT INTO t (id, a) VALUES ('0 ', 1);
@refused a string that is no number
INSERT INTO t (id, a) VALUES ('0\n', 1);
@refused a string that is no number
INSERT INTO t (id, a) VALUES ('\n0', 1);
@refused a string that is no number
INSERT INTO t (id, a) VALUES ('0\t', 1);
@refused a string that is no number
INSERT INTO t (id, a) VALUES ('0.4 ', 1);
@refused a string that is no number
INSERT INTO t (id, a) VALUES ('0' ' ', 1);
@refused a string that is no number
INSERT INTO t (id, a) VALUES ("0e999", 1);
@refused a string that is no number
INSERT INTO t (id, a) VALUES ('1e-100', 1);
@refused a string that is no number
INSERT INTO t (id, a) VALUES (b'', 1);
@refused a string that is no number
INSERT INTO t (id, a) VALUES (x'', 1);
@refused a string that is no number
INSERT INTO t (id, a) SELECT '', a FROM u;
@refused a string that is no number
INSERT IGNORE INTO t (id, a) SELECT '', a FROM u;
@refused a string that is no number
INSERT INTO t (id, a) SELECT '0 ', a FROM u LIMIT 1;
INSERT INTO t (id, a) VALUES ('04e-1', 2);
INSERT INTO t (id, a) VALUES (0.5e-3, 3);
INSERT INTO t (id, a) VALUES ('abc', 4);
@params '0 ', 5
@refused a string that is no number
INSERT INTO t (id, a) VALUES (?, ?);
@params 'abc', 5
@params '0.4', 6
INSERT INTO t (id, a) VALUES (?, ?);
SET sql_mode = '';
@refused a string that is no number
INSERT INTO t (id, a) SELECT '', a FROM u;
@deviates the server does not get the string, so it does not warn of it
INSERT INTO t (id, a) VALUES ('abc', 4);
@params 'abc', 5
@deviates the server does not get the string, so it does not warn of it
INSERT INTO t (id, a) VALUES (?, ?);
SELECT id - LAST_INSERT_ID(), a FROM t ORDER BY id;

=== numbers below 0
CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT);
CREATE TABLE t_ubig (id BIGINT UNSIGNED AUTO_INCREMENT PRIMARY KEY, a INT);
--- run
INSERT INTO t (id, a) VALUES (-5, 1);
INSERT INTO t_ubig (id, a) VALUES (-5, 1);
@refused a number below 0
INSERT INTO t_ubig (id, a) VALUES (-0.4, 1);
@params -6, 2
INSERT INTO t (id, a) VALUES (?, ?);
SET sql_mode = '';
@refused a number below 0
INSERT INTO t_ubig (id, a) VALUES (-5, 1);
@params -5, 2
@refused a number below 0
INSERT INTO t_ubig (id, a) VALUES (?, ?);
SET sql_mode = 'NO_AUTO_VALUE_ON_ZERO';
INSERT INTO t (id, a) VALUES (-7, 3), (-8, 4);
SELECT id, a FROM t ORDER BY id;

=== keys of a union
CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT);
CREATE TABLE u (a INT, b INT);
INSERT INTO u VALUES (1, 1), (2, 1), (3, 2);
--- run
@refused with UNION over keys
INSERT INTO t (id, a) SELECT 700, 1 UNION ALL SELECT NULL, 2;
INSERT INTO t (id, a) SELECT 700, 1 UNION ALL SELECT 701, 2 UNION SELECT 702, 3;
INSERT INTO t (id, a) SELECT 710, a FROM u WHERE a IN (SELECT 1 UNION SELECT 5) LOCK IN SHARE MODE;
@refused ROLLUP
INSERT INTO t (id, a) SELECT 720 AS k, COUNT(*) FROM u GROUP BY k WITH ROLLUP;
@refused ROLLUP
INSERT INTO t (id, a) SELECT NULL AS k, COUNT(*) FROM u GROUP BY k WITH ROLLUP LIMIT 1;
INSERT INTO t (id, a) SELECT 730, COUNT(*) FROM u GROUP BY b HAVING b = 1;
@deviates_after several rows, then ROW_COUNT() in the statement that asks for LAST_INSERT_ID()
INSERT INTO t (a) SELECT COUNT(*) FROM u GROUP BY b WITH ROLLUP;
@refused behind WITH
INSERT INTO t (id, a) WITH c AS (SELECT 1) (SELECT NULL, 1);
@refused of something else than SELECT
INSERT INTO t (id, a) WITH c AS (SELECT 1) TABLE u UNION SELECT 5, 1;
@refused of something else than SELECT
INSERT INTO t (id, a) WITH c AS (SELECT 1) VALUES ROW(NULL, 1);
@refused a computed value
INSERT INTO t (id, a) SELECT 5, AVG(a) OVER (ORDER BY a) FROM u;
@refused an expression as key
INSERT INTO t (id, a) SELECT 1 AND 0, a FROM u;
@refused an expression as key
INSERT INTO t (id, a) SELECT NULL IS NULL, a FROM u;
@refused an expression as key
INSERT INTO t (id, a) SELECT NOT a, a FROM u;
@refused takes keys out of *
INSERT INTO t (a, id) SELECT * FROM u UNION SELECT 1, 2;
@refused the default of another column
INSERT INTO t (id, a) SELECT DEFAULT(a), a FROM u;
SELECT id, a FROM t ORDER BY a, id;

=== minus, which is an operator in ORACLE mode only
CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT);
CREATE TABLE u (a INT, minus INT);
INSERT INTO u VALUES (1, 1);
--- run
INSERT INTO t (id, a) SELECT 5, minus.a FROM u minus;
INSERT INTO t (id, a) SELECT NULL, minus.a FROM u minus LIMIT 1;
INSERT INTO t (id, a) SELECT NULL, a FROM u ORDER BY minus LIMIT 1;
INSERT INTO t (a) SELECT minus.a FROM u minus;
SELECT a FROM t ORDER BY id;

=== minus in ORACLE mode
only: mariadb
CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT);
CREATE TABLE u (a INT);
INSERT INTO u VALUES (1), (2), (3);
--- run
SET sql_mode = 'ORACLE';
@refused with UNION over keys
INSERT INTO t (id, a) SELECT 700, 1 MINUS SELECT NULL, 2;
@deviates_after several rows, then ROW_COUNT() in the statement that asks for LAST_INSERT_ID()
INSERT INTO t (a) SELECT a FROM u MINUS SELECT 2;
SELECT a FROM t ORDER BY id;

=== keys beside words and comments
CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT UNIQUE);
CREATE TABLE u (a INT);
INSERT INTO u VALUES (21);
--- run
INSERT INTO t (a, id) VALUES (1, /*!NULL*/);
@only mariadb
INSERT INTO t (a, id) VALUES (2, /*!50000NULL*/);
INSERT INTO t (a, id) VALUES (3, /*!50000 NULL*/);
INSERT INTO t (a) VALUES /*!(4)*/;
INSERT INTO t SET /*!a=5*/;
@only mariadb
INSERT INTO t SET a = 6, id = /*!50000DEFAULT*/;
@only mysql
@deviates MySQL warns of a version without a blank behind it
INSERT INTO t (a, id) VALUES (2, /*!50000NULL*/);
INSERT INTO t SET a=7,id=DEFAULT ON DUPLICATE KEY UPDATE a=a;
INSERT INTO t SET a=8,id=(NULL)ON DUPLICATE KEY UPDATE a=a;
INSERT INTO t SET a=9,id=NULL/**/ON DUPLICATE KEY UPDATE a=a;
INSERT INTO t SET a=10,id=DEFAULT/*! ON DUPLICATE KEY UPDATE a=a*/;
INSERT INTO t SET a=11,id='0'ON DUPLICATE KEY UPDATE a=a;
INSERT INTO t (a, id) VALUES (12,/**/NULL/**/);
INSERT INTO t (id, a) SELECT(NULL),a FROM u LIMIT 1;
INSERT INTO t (id, a) SELECT/**/NULL/**/,a + 1 FROM u LIMIT 1;
@params 13
INSERT INTO t SET a=?,id=(NULL)ON DUPLICATE KEY UPDATE a=a;
@params 14
INSERT INTO t (a, id) VALUES (?, /*!NULL*/);
@params NULL
INSERT INTO t SET a=15,id=? ON DUPLICATE KEY UPDATE a=a;
@refused inside an executable comment
INSERT INTO t (a, id) VALUES (16, /*!(*/NULL));
@only mariadb
INSERT INTO t (a, id) VALUES (17, /*M!NULL*/);
@only mariadb
INSERT INTO t (a, id) VALUES (18, /*M!100000NULL*/);
@only mariadb
INSERT INTO t SET a=19,id=DEFAULT RETURNING a;
@only mariadb
INSERT INTO t SET a=20,id=(NULL)RETURNING a;
@only mariadb
INSERT INTO t (a) VALUES (30) /*M!999999*/;
@only mariadb
INSERT INTO t (a) VALUES /*!99999 /*/ x */ */ (31);
SELECT a FROM t ORDER BY id;

=== shapes of a statement that must not be read as others
CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT, b VARCHAR(20));
CREATE TABLE u (a INT, b INT);
INSERT INTO u VALUES (1, 11), (4, 12);
CREATE TABLE `abcdefghij` (a INT);
CREATE FUNCTION `sum`(x INT) RETURNS INT DETERMINISTIC RETURN x + 1;
--- run
INSERT INTO t (id, a) VALUES (ISNULL(7), 1);
INSERT INTO t (SELECT NULL, a, b FROM u LIMIT 1);
INSERT INTO t ((SELECT NULL, 1, 2));
INSERT INTO t (b) VALUES (N'it\'s'), (2);
INSERT INTO `abcdefghij` (a) VALUES (1);
INSERT INTO t PARTITION (p0;
INSERT INTO t (a) SELECT a FROM u HAVING a > 3;
INSERT INTO t (a) SELECT 1 HAVING 1;
INSERT INTO t (a) SELECT COALESCE(MAX(a), 0) + 1 FROM u;
INSERT INTO t (a) SELECT (SELECT 1) + MAX(a) FROM u;
@refused assigns to a variable
INSERT INTO t (a) WITH c AS (SELECT @n := @n + 1 AS a FROM u) SELECT a FROM c;
INSERT INTO t (a) SELECT a FROM u EXCEPT SELECT 1;
INSERT INTO t (a) SELECT a FROM u INTERSECT SELECT 4;
@refused a call that must not be carried out twice
INSERT INTO t (a) SELECT {db}.sum(a) FROM u;
@deviates_after values that could see LAST_INSERT_ID(), then ROW_COUNT() in the statement that asks for it
INSERT INTO t (a) VALUES ((SELECT 1)), (2), (3);
@deviates_after values that could see LAST_INSERT_ID(), then ROW_COUNT() in the statement that asks for it
INSERT INTO t (a) VALUES (1), (ASCII('a')), ({db}.sum(1)), (2), (3);
@refused a value that refers to the key column
INSERT INTO t (id, a) VALUES (NULL, (SELECT 1) + id);
@refused a value that refers to the key column
INSERT INTO t (id, a) VALUES (NULL, (SELECT id));
@refused a value that refers to the key column
INSERT INTO t SET id = 0, a = (SELECT MAX(u.a) + t.id FROM u);
SELECT id - LAST_INSERT_ID(), a, b FROM t ORDER BY id;

=== shapes that MySQL knows
only: mysql
CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT);
CREATE TABLE u (a INT);
INSERT INTO u VALUES (1);
--- run
INSERT INTO t (a) VALUES (1);
INSERT INTO t (a) VALUES ROW(2);
INSERT INTO t (a) SELECT 3 WHERE NOT EXISTS (SELECT a FROM t WHERE a = 3);
INSERT INTO t (a) VALUES ((TABLE u));
INSERT INTO t (a, id) VALUES (4, /*!080000 NULL*/);
SELECT id - LAST_INSERT_ID(), a FROM t ORDER BY id;

=== shapes that MariaDB knows
only: mariadb
CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT);
CREATE TABLE u (`window` INT);
INSERT INTO u VALUES (1), (2);
--- run
SET STATEMENT low_priority_updates = ON FOR INSERT INTO t (a) VALUES (1);
SET STATEMENT max_statement_time = greatest(1, 2) FOR INSERT INTO t (a) VALUES (2);
SET STATEMENT a = 1;
INSERT INTO t (a) SELECT window FROM u LIMIT 1;
SELECT id - LAST_INSERT_ID(), a FROM t ORDER BY id;

=== the same beginning in a character set whose characters may contain a backslash
CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, b VARCHAR(20));
--- run
SET NAMES gbk;
INSERT INTO t (b) VALUES ('a');
@refused a character set whose characters may contain a backslash
INSERT INTO t (b) VALUES ('{xBF5C}');
INSERT INTO t (b) VALUES ('b');
SELECT b FROM t ORDER BY id;
