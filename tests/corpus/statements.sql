# Every form of the statement.

=== no column list
CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT, b VARCHAR(9));
--- run
INSERT INTO t VALUES (NULL, 1, 'x');
INSERT t VALUES (0, 2, 'y'), (DEFAULT, 3, 'z');
INSERT INTO t VALUES (1, 2);
INSERT INTO t VALUES (NULL, 1, 'x', 4);
INSERT INTO t VALUES (77, 4, 'w');
SELECT a, b, id >= LAST_INSERT_ID() FROM t ORDER BY id;

=== no column list, columns moved meanwhile
CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT, b INT);
--- run
INSERT INTO t VALUES (NULL, 1, 2);
@elsewhere
ALTER TABLE t MODIFY a INT FIRST;
INSERT INTO t VALUES (3, NULL, 4);
@elsewhere
ALTER TABLE t ADD c INT DEFAULT 5 FIRST;
INSERT INTO t VALUES (6, 7, NULL, 8);
@elsewhere
ALTER TABLE t DROP COLUMN b;
INSERT INTO t VALUES (9, 10, 0);
SELECT a, c FROM t ORDER BY id;

=== invisible columns on MariaDB
only: mariadb
CREATE TABLE t (h INT INVISIBLE DEFAULT 7, id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT);
--- run
INSERT INTO t VALUES (NULL, 1);
INSERT INTO t VALUES (NULL, 1), (0, 2);
INSERT INTO t (h, a) VALUES (8, 3);
INSERT INTO t VALUES (9, NULL, 4);
SELECT h, a FROM t ORDER BY id;

=== invisible columns on MySQL
only: mysql
CREATE TABLE t (h INT DEFAULT 7 INVISIBLE, id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT);
--- run
INSERT INTO t VALUES (NULL, 1);
INSERT INTO t VALUES (NULL, 1), (0, 2);
INSERT INTO t (h, a) VALUES (8, 3);
INSERT INTO t VALUES (9, NULL, 4);
SELECT h, a FROM t ORDER BY id;

=== generated columns
CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT, d INT GENERATED ALWAYS AS (a * 2) STORED);
--- run
INSERT INTO t (a) VALUES (1);
INSERT INTO t VALUES (NULL, 2, DEFAULT);
INSERT INTO t (a, d) VALUES (3, 4);
SELECT a, d FROM t ORDER BY id;

=== INSERT SET
CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT, b VARCHAR(9));
--- run
INSERT INTO t SET a = 1;
INSERT INTO t SET a = 2, b = 'x';
INSERT INTO t SET id = NULL, a = 3;
INSERT INTO t SET a = 4, id = DEFAULT;
INSERT INTO t SET id = 0, a = 5;
INSERT INTO t SET id := 0, a := 6;
INSERT INTO t SET id = 8, a = 7;
INSERT t SET `t`.`a` = 9, t.b = 'y';
INSERT IGNORE INTO t SET a = 10;
INSERT INTO t SET a = a + 1;
SELECT a, b, id - LAST_INSERT_ID() FROM t WHERE id >= LAST_INSERT_ID();

=== REPLACE
CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT, u INT UNIQUE);
--- run
REPLACE INTO t (a, u) VALUES (1, 1);
REPLACE INTO t (a, u) VALUES (2, 1);
REPLACE t (a, u) VALUES (3, 2), (4, 1), (5, 3);
SELECT ROW_COUNT(), LAST_INSERT_ID();
REPLACE INTO t SET a = 6, u = 3;
REPLACE INTO t VALUES (NULL, 7, 4);
REPLACE INTO t VALUES (9, 8, 5);
REPLACE INTO t VALUES (9, 10, 6);
REPLACE LOW_PRIORITY INTO t (a) VALUES (11);
SELECT id, a, u FROM t ORDER BY id;

=== priorities
CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT);
--- run
INSERT LOW_PRIORITY INTO t (a) VALUES (1);
INSERT HIGH_PRIORITY INTO t (a) VALUES (2), (3);
INSERT LOW_PRIORITY IGNORE INTO t (a) VALUES (4);
INSERT HIGH_PRIORITY t (a) VALUES (5);
INSERT DELAYED INTO t (a) VALUES (6);
SELECT a FROM t ORDER BY id;

=== partitions
CREATE TABLE t (id BIGINT AUTO_INCREMENT, a INT, PRIMARY KEY (id, a)) PARTITION BY RANGE (a) (PARTITION p0 VALUES LESS THAN (10), PARTITION p1 VALUES LESS THAN (20));
--- run
INSERT INTO t PARTITION (p0) (a) VALUES (1);
INSERT INTO t PARTITION (p0, p1) (a) VALUES (2), (12);
INSERT INTO t PARTITION (p0) VALUES (NULL, 3);
INSERT INTO t PARTITION (p1) (id, a) VALUES (NULL, 13), (0, 14);
INSERT INTO t PARTITION (p1) (a) VALUES (4);
INSERT INTO t (a) VALUES (50);
INSERT INTO t (a) VALUES (5), (60), (6);
REPLACE INTO t PARTITION (`p0`) (a) VALUES (7);
SELECT a FROM t ORDER BY id;

=== hints and comments
CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT, b VARCHAR(40));
--- run
/* trace 1/2 */ INSERT INTO t (a) VALUES (1);
INSERT /* here */ INTO /* and */ t /* there */ (a) /* too */ VALUES /* x */ (2) /* end */;
INSERT INTO t (a, b) VALUES (3, '/* no comment */'), (4, '-- nor this');
<<
INSERT INTO t (a) -- to the end of the line; (5)
VALUES (6) # and this, (7)
>>
<<
-- first
# second
INSERT INTO t (a) VALUES (8)
>>
INSERT INTO t (a) VALUES (9) /* closed */ -- open;
INSERT/**/INTO/**/t(a)VALUES(10),(11);
INSERT INTO t(a)VALUES(--1), (- -2);
@only mariadb
SET STATEMENT sort_buffer_size = 100000 FOR INSERT INTO t (a) VALUES (13);
SELECT a, b FROM t ORDER BY id;

=== variables for one statement
CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT);
--- run
@only mysql
@refused the hint SET_VAR
INSERT /*+ SET_VAR(sort_buffer_size = 100000) */ INTO t (a) VALUES (1);
@only mariadb
@refused SET STATEMENT of sql_mode
SET STATEMENT sql_mode = '' FOR INSERT INTO t (a) VALUES (2);
SELECT a FROM t;

=== executable comments
CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT);
--- run
INSERT /*!40000 INTO */ t (a) VALUES (1);
/*! INSERT INTO t (a) VALUES (2) */;
INSERT INTO t (a) VALUES (3) /*! , (4) */;
INSERT INTO t (a) VALUES (5) /*!999999 , (6) */;
INSERT INTO t (a /*!40000 , id */) VALUES (7 /*!40000 , NULL */);
@only mariadb
INSERT INTO t (a) VALUES (8) /*M! , (9) */;
@only mariadb
INSERT INTO t (a) VALUES (8) /*M!999999 , (9) */;
@only mysql
INSERT INTO t (a) VALUES (10) /*M! , (11) */;
/*!999999\- x */ INSERT INTO t (a) VALUES (12);
INSERT INTO t (a) VALUES (13) /*!999999\- , (14) */;
SELECT a FROM t ORDER BY id;

=== rows written as ROW
only: mysql
CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT, b INT);
--- run
INSERT INTO t (a, b) VALUES ROW(1, 2);
INSERT INTO t (a, b) VALUES ROW(3, 4), ROW(5, 6);
INSERT INTO t VALUES ROW(NULL, 7, 8);
SELECT a, b FROM t ORDER BY id;

=== expressions in other columns
CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a BIGINT, b VARCHAR(60));
--- run
SET @x = 5, @y = 'it''s; (';
INSERT INTO t (a, b) VALUES (@x, @y), (@x := @x + 1, CONCAT('(', @y, ')'));
INSERT INTO t (a, b) VALUES ((1 + 2) * 3, IF(1 > 2, 'a,b', "c)d"));
INSERT INTO t (a, b) VALUES (CASE WHEN 1 THEN (SELECT 7) ELSE 8 END, CAST(12 AS CHAR));
INSERT INTO t (a, b) VALUES (-1, NULL), (~0 >> 1, x'616263'), (b'101', 0x7A);
INSERT INTO t (a, b) VALUES (LENGTH('a''b'), REPLACE('a,b', ',', ')')), (1 IN (1, 2), 'x' 'y' "z");
INSERT INTO t (a, b) VALUES ((SELECT COUNT(*) FROM (SELECT 1 UNION SELECT 2) AS s), _utf8mb4'ü');
INSERT INTO t (b) VALUES (DATE_ADD('2026-01-01', INTERVAL 1 DAY)), (CONVERT('x' USING latin1));
SELECT a, b FROM t ORDER BY id;

=== names
CREATE TABLE `t-1` (`i d` BIGINT AUTO_INCREMENT PRIMARY KEY, `select` INT);
CREATE TABLE `t``q` (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT);
CREATE TABLE t (ID BIGINT AUTO_INCREMENT PRIMARY KEY, A INT);
CREATE TABLE other (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT);
--- run
INSERT INTO t (a) VALUES (1);
INSERT INTO t (Id, a) VALUES (NULL, 2);
INSERT INTO t (`ID`, `A`) VALUES (0, 3);
INSERT INTO {db}.t (a) VALUES (4);
INSERT INTO `{db}`.`t` (a) VALUES (5);
INSERT INTO {db} . t (a) VALUES (6);
INSERT INTO t (t.a) VALUES (7);
INSERT INTO t ({db}.t.a) VALUES (8);
INSERT INTO `t``q` (a) VALUES (9), (10);
INSERT INTO other (a) VALUES (11), (12);
INSERT INTO other VALUES (NULL, 13);
INSERT INTO nothing (a) VALUES (1);
INSERT INTO nowhere.t (a) VALUES (1);
INSERT INTO t (nothing) VALUES (1);
INSERT INTO t (a, a) VALUES (1, 2);
SELECT a, id - LAST_INSERT_ID() FROM other;

=== RETURNING
only: mariadb
CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT, b VARCHAR(9) DEFAULT 'd');
--- run
INSERT INTO t (a) VALUES (1) RETURNING id;
INSERT INTO t (a) VALUES (2), (3) RETURNING id, a, b;
INSERT INTO t VALUES (NULL, 4, 'x'), (0, 5, 'y') RETURNING *;
INSERT INTO t SET a = 6 RETURNING id + 0 AS k, UPPER(b);
REPLACE INTO t (a) VALUES (7), (8) RETURNING id, a;
INSERT IGNORE INTO t (id, a) VALUES (5, 9), (5, 10) RETURNING id, a;
INSERT INTO t (a) VALUES (11) RETURNING (SELECT 1), id;
SELECT LAST_INSERT_ID() = MAX(id) FROM t;
