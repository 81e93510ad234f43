# Rows that come from a file.

=== local file
CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT, b VARCHAR(20));
--- run
@deviates_after several rows, then ROW_COUNT() in the statement that asks for LAST_INSERT_ID()
@text
@local 1\tone\n2\ttwo\n3\tthree\n
LOAD DATA LOCAL INFILE 'x' INTO TABLE t FIELDS TERMINATED BY '\\t' (a, b);
SELECT id - LAST_INSERT_ID(), a, b FROM t ORDER BY id;
@deviates_after several rows, then ROW_COUNT() in the statement that asks for LAST_INSERT_ID()
@text
@local 4,four\n5,five\n
LOAD DATA LOCAL INFILE 'x' INTO TABLE t FIELDS TERMINATED BY ',' (a, b);
SELECT LAST_INSERT_ID() > 0;
@text
@local head\n6\n
LOAD DATA LOCAL INFILE 'x' INTO TABLE t IGNORE 1 LINES (a) SET b = 'set';
@text
@local 7\n
LOAD DATA LOCAL INFILE 'x' INTO TABLE t (@n) SET a = @n + 1, b = id;
@text
@local 71\t9\n
LOAD DATA LOCAL INFILE 'x' INTO TABLE t (@'x', a) SET b = @'x';
@text
@local 72\t10\n
LOAD DATA LOCAL INFILE 'x' INTO TABLE t (@"y)", a) SET b = @`y)`;
@text
@local
LOAD DATA LOCAL INFILE 'x' INTO TABLE t (a);
SELECT a, b FROM t ORDER BY id;
INSERT INTO t (a) VALUES (8);
SELECT id - LAST_INSERT_ID(), a FROM t ORDER BY id DESC LIMIT 1;

=== keys in a local file
CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT, b VARCHAR(20));
--- run
@deviates_after several rows, then ROW_COUNT() in the statement that asks for LAST_INSERT_ID()
@text
@local 7,1,seven\n0,2,zero\n\N,3,null\n0.4,4,fraction\n-5,5,minus\n8,6,eight\n
LOAD DATA LOCAL INFILE 'x' INTO TABLE t FIELDS TERMINATED BY ',';
SELECT LAST_INSERT_ID() = id FROM t WHERE a = 2;
SELECT id, a, b FROM t ORDER BY a;
@text
@local 9,10\n
LOAD DATA LOCAL INFILE 'x' INTO TABLE t FIELDS TERMINATED BY ',' (a, id);
SELECT LAST_INSERT_ID() = id FROM t WHERE a = 2;
@text
@local 11\n
LOAD DATA LOCAL INFILE 'x' INTO TABLE t (@n) SET id = NULLIF(@n, 11), a = @n;
@text
@local 12\n
LOAD DATA LOCAL INFILE 'x' INTO TABLE t (@n) SET id = DEFAULT, a = @n, b = id;
@text
@local ,13,empty\n
LOAD DATA LOCAL INFILE 'x' INTO TABLE t FIELDS TERMINATED BY ',';
@text
@local x,14,word\n
LOAD DATA LOCAL INFILE 'x' REPLACE INTO TABLE t FIELDS TERMINATED BY ',' (id, a, b) SET b = id;
SELECT id, a, b FROM t ORDER BY a;
SET sql_mode = 'NO_AUTO_VALUE_ON_ZERO';
@text
@local 15\n
LOAD DATA LOCAL INFILE 'x' INTO TABLE t (a);
@text
@local 16\n
@refused LOAD DATA with keys while sql_mode has NO_AUTO_VALUE_ON_ZERO
LOAD DATA LOCAL INFILE 'x' INTO TABLE t (id);

=== rows of a local file that do not go in
CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT UNIQUE, b VARCHAR(5));
--- run
@deviates_after several rows, then ROW_COUNT() in the statement that asks for LAST_INSERT_ID()
@text
@local 1,one\n1,again\n2,two\n
LOAD DATA LOCAL INFILE 'x' INTO TABLE t FIELDS TERMINATED BY ',' (a, b);
@text
@local 1,once\n2,more\n
LOAD DATA LOCAL INFILE 'x' IGNORE INTO TABLE t FIELDS TERMINATED BY ',' (a, b);
@deviates_after the first key of several rows is reported, although the server skipped its row
@text
@local 1,again\n3,three\n
LOAD DATA LOCAL INFILE 'x' INTO TABLE t FIELDS TERMINATED BY ',' (a, b);
@deviates_after several rows, then ROW_COUNT() in the statement that asks for LAST_INSERT_ID()
@text
@local 1,ONE\n4,four\n
LOAD DATA LOCAL INFILE 'x' REPLACE INTO TABLE t FIELDS TERMINATED BY ',' (a, b);
@text
@local 5,too long\n
LOAD DATA LOCAL INFILE 'x' INTO TABLE t FIELDS TERMINATED BY ',' (a, b);
@text
@local 6,x,more\n7\n
@deviates_after several rows, then ROW_COUNT() in the statement that asks for LAST_INSERT_ID()
LOAD DATA LOCAL INFILE 'x' INTO TABLE t FIELDS TERMINATED BY ',' (a, b);
SELECT a, b FROM t ORDER BY id;
SELECT COUNT(DISTINCT id) FROM t;

=== local files that the server does not want
CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT);
--- run
@text
@local 1\n
LOAD DATA LOCAL INFILE 'x' INTO TABLE t (a, no_such_column);
@text
@local 1\n
LOAD DATA LOCAL INFILE 'x' INTO TABLE t (a) SET no_such_column = 1;
@text
@local 1\n
LOAD DATA LOCAL INFILE 'x' INTO TABLE t (a) SET;
@text
@local 1\n
LOAD DATA LOCAL INFILE 'x' INTO TABLE t PARTITION (p) (a);
SELECT COUNT(*) FROM t;
@text
@local 2\n
LOAD DATA LOCAL INFILE 'x' INTO TABLE t (a);
SELECT a FROM t;

=== file of the server
CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT, b VARCHAR(20));
CREATE TABLE digits (d INT);
INSERT INTO digits VALUES (0), (1), (2), (3), (4), (5), (6), (7), (8), (9);
SELECT 100 * h.d + 10 * t.d + e.d, 'x' FROM digits h, digits t, digits e INTO OUTFILE './{db}.1000.txt';
SELECT d, 'y' FROM digits WHERE d = 9 INTO OUTFILE './{db}.1.txt';
--- run
@deviates_after several rows, then ROW_COUNT() in the statement that asks for LAST_INSERT_ID()
@text
LOAD DATA INFILE './{db}.1000.txt' INTO TABLE t (a, b);
SELECT COUNT(*), COUNT(DISTINCT id), MIN(id) = LAST_INSERT_ID(), SUM(a) FROM t;
SELECT COUNT(*) FROM t JOIN t u ON u.id > t.id AND u.a = t.a;
@text
LOAD DATA INFILE './{db}.1.txt' INTO TABLE t (a, b);
SELECT id = LAST_INSERT_ID(), a, b FROM t ORDER BY id DESC LIMIT 1;
@text
LOAD DATA INFILE './{db}.1.txt' INTO TABLE t (id, b);
SELECT id, b FROM t WHERE id = 9;
@text
LOAD DATA INFILE './{db}.1.txt' INTO TABLE t (id, b);
@deviates_after several rows, then ROW_COUNT() in the statement that asks for LAST_INSERT_ID()
@text
LOAD DATA INFILE './{db}.1.txt' REPLACE INTO TABLE t (id, b) SET b = 'z';
SELECT id, b FROM t WHERE id = 9;
BEGIN;
@deviates_after several rows, then ROW_COUNT() in the statement that asks for LAST_INSERT_ID()
@text
LOAD DATA INFILE './{db}.1000.txt' INTO TABLE t (a, b);
ROLLBACK;
SELECT COUNT(*) FROM t;
@text
LOAD DATA INFILE './{db}.no.txt' INTO TABLE t (a, b);

=== file of the server that fails
CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT UNIQUE, b VARCHAR(20));
SELECT 1, 'one' UNION ALL SELECT 2, 'two' UNION ALL SELECT 1, 'again' INTO OUTFILE './{db}.txt';
--- run
INSERT INTO t (a) VALUES (2);
BEGIN;
@text
LOAD DATA INFILE './{db}.txt' INTO TABLE t (a, b);
SELECT a, b FROM t ORDER BY id;
@deviates_after several rows, then ROW_COUNT() in the statement that asks for LAST_INSERT_ID()
@text
LOAD DATA INFILE './{db}.txt' REPLACE INTO TABLE t (a, b);
COMMIT;
SELECT a, b FROM t ORDER BY id;
@text
LOAD DATA INFILE './{db}.txt' IGNORE INTO TABLE t (a, b);
SELECT LAST_INSERT_ID() > 0;

=== loads that are refused
CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT);
CREATE TABLE t_parent (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT);
CREATE FUNCTION f() RETURNS INT DETERMINISTIC RETURN 1;
--- run
@text
@refused LOAD XML
LOAD XML LOCAL INFILE 'x' INTO TABLE t;
@text
@refused LOAD DATA with values that could see LAST_INSERT_ID()
LOAD DATA LOCAL INFILE 'x' INTO TABLE t (@a) SET a = f();
@text
@refused LOAD DATA with values that could see LAST_INSERT_ID()
LOAD DATA LOCAL INFILE 'x' INTO TABLE t (@a) SET a = LAST_INSERT_ID();
@text
@refused LOAD DATA LOCAL whose lines do not end with a text in ASCII
LOAD DATA LOCAL INFILE 'x' INTO TABLE t LINES TERMINATED BY '' (a);
@text
@refused LOAD DATA with a call or an assignment that must not be carried out twice
LOAD DATA INFILE 'x' INTO TABLE t (@a) SET a = (@n := @n + 1);
SET @n = 0;
@deviates_after several rows, then ROW_COUNT() in the statement that asks for LAST_INSERT_ID()
@text
@local x\nx\n
LOAD DATA LOCAL INFILE 'x' INTO TABLE t (@a) SET a = (@n := @n + 1);
@text
@local 2\n
LOAD DATA LOCAL INFILE 'x' INTO TABLE t (@a) SET a = (SELECT COUNT(*) FROM t_parent) + @a;
SELECT a, @n FROM t ORDER BY id;
@text
@only mariadb
@refused LOAD DATA in a prepared statement
EXECUTE IMMEDIATE 'LOAD DATA INFILE \'x\' INTO TABLE t (a)';
