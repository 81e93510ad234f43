# Names of schemas, tables and views in another case than they were made in, on a server that does not tell them apart.

=== tables in another case
CREATE TABLE T (Id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT UNIQUE, b VARCHAR(20) DEFAULT 'dull');
CREATE TABLE Source (k INT PRIMARY KEY, x INT);
INSERT INTO source VALUES (1, 101), (2, 102), (3, 103);
--- run
INSERT INTO T (a) VALUES (1), (2);
SELECT ID - LAST_INSERT_ID(), a FROM t ORDER BY id;
REPLACE {DB}.`T` (A) VALUES (1);
INSERT INTO `{DB}` . t VALUES (NULL, 3, 'three'), (DEFAULT, 4, 'four');
INSERT INTO T SET A = 5, iD = 0;
@deviates_after several rows, then ROW_COUNT() in the statement that asks for LAST_INSERT_ID()
INSERT INTO T (a) SELECT X FROM SOURCE;
@params 6
INSERT INTO {DB}.T (a) VALUES (?);
SELECT LAST_INSERT_ID() = MAX(ID), COUNT(*) FROM t;

=== views in another case
CREATE TABLE T (Id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT UNIQUE, b VARCHAR(20) DEFAULT 'dull');
CREATE TABLE Source (k INT PRIMARY KEY, x INT);
INSERT INTO source VALUES (1, 101), (2, 102), (3, 103);
CREATE VIEW `Shown` AS SELECT A, b, ID AS Nr FROM {DB}.`T`;
CREATE VIEW Over_Shown AS SELECT s.a, S.nR AS `Key` FROM SHOWN AS s;
--- run
INSERT INTO SHOWN (a) VALUES (1);
SELECT LAST_INSERT_ID() - NR, a, b FROM shown;
INSERT INTO shown (A, b) VALUES (2, 'two'), (3, 'three');
INSERT INTO Shown VALUES (4, 'four', NULL), (5, 'five', DEFAULT), (6, 'six', 0);
INSERT INTO {DB}.sHOWN SET A = 7;
INSERT INTO `{DB}`.`SHOWN` SET nR = NULL, a = 8;
INSERT INTO SHOWN (b, nr, a) VALUES ('mixed', NULL, 9), ('mixed', 77, 10), ('mixed', 0, 11);
REPLACE INTO SHOWN (a) VALUES (1);
SELECT LAST_INSERT_ID() = id FROM T WHERE a = 1;
INSERT INTO SHOWN (a) VALUES (1) ON DUPLICATE KEY UPDATE B = CONCAT(SHOWN.b, '!');
@deviates_after several rows, then ROW_COUNT() in the statement that asks for LAST_INSERT_ID()
INSERT INTO SHOWN (a) SELECT x FROM SOURCE;
INSERT INTO OVER_SHOWN (A) VALUES (12), (13);
INSERT INTO {DB}.over_shown VALUES (14, NULL);
@params 15, NULL
@params 16, 5
@params 17, 0
INSERT INTO {DB}.OVER_SHOWN (a, KEY) VALUES (?, ?);
@params 18
@params 19
REPLACE SHOWN (a) VALUES (?);
@deviates_after several rows, then ROW_COUNT() in the statement that asks for LAST_INSERT_ID()
@params 100
INSERT INTO SHOWN (a) SELECT x + ? FROM {DB}.SOURCE;
@text
PREPARE s FROM 'INSERT INTO SHOWN (a) VALUES (?)';
SET @a = 20;
@text
EXECUTE s USING @a;
SELECT LAST_INSERT_ID() = MAX(nr) FROM shown;
@text
@local 21\n
LOAD DATA LOCAL INFILE 'x' INTO TABLE SHOWN (a);
@command init_db {DB}
INSERT INTO over_SHOWN (a) VALUES (22);
USE {DB};
INSERT INTO SHOWN (a) VALUES (23);
SELECT a, b FROM t ORDER BY a;
SELECT COUNT(DISTINCT Id) FROM t;

=== temporary tables in another case
CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT);
CREATE VIEW v AS SELECT id, a FROM t;
--- run
CREATE TEMPORARY TABLE {DB}.V (a INT);
INSERT INTO v VALUES (1);
DROP TEMPORARY TABLE {DB}.v;
INSERT INTO V (a) VALUES (2);
CREATE TEMPORARY TABLE T (a INT);
INSERT INTO {DB}.t VALUES (3);
DROP TEMPORARY TABLE t;
INSERT INTO T (a) VALUES (4);
SELECT a FROM t ORDER BY a;
SELECT LAST_INSERT_ID() = MAX(id) FROM t;

=== names beyond ASCII in another case
CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT);
CREATE VIEW `größe` AS SELECT id, a FROM t;
--- run
INSERT INTO `GRÖßE` (a) VALUES (1), (2);
CREATE TEMPORARY TABLE `Größe` (a INT);
INSERT INTO `GRÖßE` VALUES (3);
DROP TEMPORARY TABLE `GRÖßE`;
INSERT INTO `GrÖßE` (a) VALUES (4);
SELECT a FROM t ORDER BY a;

=== views in another case that do not show the key
CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT);
CREATE VIEW Hidden AS SELECT A FROM T;
--- run
@refused an INSERT through a view that does not show the key
INSERT INTO HIDDEN (a) VALUES (1);
@refused an INSERT through a view that does not show the key
INSERT INTO {DB}.hidden VALUES (1);
@refused an INSERT through a view that does not show the key
@params 1
INSERT INTO HIDDEN (a) VALUES (?);
SELECT a FROM t;
