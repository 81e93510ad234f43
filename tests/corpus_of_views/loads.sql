# Files of the server that go through views which a proxy saw when it started.

=== files of the server through views
CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT UNIQUE, b VARCHAR(20));
CREATE TABLE digits (d INT);
INSERT INTO digits VALUES (0), (1), (2), (3), (4), (5), (6), (7), (8), (9);
CREATE VIEW v AS SELECT a, b, id AS nr FROM t;
CREATE VIEW `over` (`a``s`, id) AS SELECT nr, a FROM v;
CREATE VIEW big AS SELECT id, a FROM t WHERE a > 5 WITH CHECK OPTION;
--- run
@elsewhere
SELECT 1000 + 100 * h.d + 10 * t.d + e.d, 'x' FROM digits h, digits t, digits e INTO OUTFILE './{db}.1000.txt';
@elsewhere
SELECT 1, 'one' INTO OUTFILE './{db}.1.txt';
@elsewhere
SELECT 2, 'null', NULL UNION ALL SELECT 3, 'zero', 0 UNION ALL SELECT 4, 'own', 77 INTO OUTFILE './{db}.keys.txt';
@elsewhere
SELECT 5, 6 UNION ALL SELECT 0, 7 UNION ALL SELECT NULL, 8 INTO OUTFILE './{db}.over.txt';
@elsewhere
SELECT 9 UNION ALL SELECT 10 INTO OUTFILE './{db}.large.txt';
@elsewhere
SELECT 11 UNION ALL SELECT 3 INTO OUTFILE './{db}.small.txt';
@elsewhere
SELECT 12 UNION ALL SELECT 12 INTO OUTFILE './{db}.twice.txt';
@elsewhere
SELECT 1 FROM digits WHERE d > 9 INTO OUTFILE './{db}.0.txt';
@text
LOAD DATA INFILE './{db}.1.txt' INTO TABLE v;
SELECT nr = LAST_INSERT_ID(), a, b FROM v;
@deviates_after several rows, then ROW_COUNT() in the statement that asks for LAST_INSERT_ID()
@text
LOAD DATA INFILE './{db}.1000.txt' INTO TABLE v (a, b);
SELECT COUNT(*), COUNT(DISTINCT id), MIN(id) = LAST_INSERT_ID(), SUM(id - a) = 1000 * (MIN(id) - MIN(a)) FROM t WHERE a + 0 >= 1000;
@deviates_after several rows, then ROW_COUNT() in the statement that asks for LAST_INSERT_ID()
@text
LOAD DATA INFILE './{db}.keys.txt' INTO TABLE {db}.v;
SELECT a, b, id = 77, id = LAST_INSERT_ID() FROM t WHERE a + 0 < 1000 ORDER BY a;
@deviates_after several rows, then ROW_COUNT() in the statement that asks for LAST_INSERT_ID()
@text
LOAD DATA INFILE './{db}.over.txt' INTO TABLE `over`;
SELECT id, a FROM t WHERE id = 5;
SELECT `a``s` - LAST_INSERT_ID(), id FROM `over` WHERE id IN (7, 8) ORDER BY id;
@deviates_after several rows, then ROW_COUNT() in the statement that asks for LAST_INSERT_ID()
@text
LOAD DATA INFILE './{db}.large.txt' INTO TABLE big (a);
@text
LOAD DATA INFILE './{db}.small.txt' INTO TABLE big (a);
@text
LOAD DATA INFILE './{db}.small.txt' IGNORE INTO TABLE big (a);
@text
LOAD DATA INFILE './{db}.twice.txt' INTO TABLE v (a) SET b = 'set';
@text
LOAD DATA INFILE './{db}.twice.txt' IGNORE INTO TABLE v (a);
@deviates_after several rows, then ROW_COUNT() in the statement that asks for LAST_INSERT_ID()
@text
LOAD DATA INFILE './{db}.twice.txt' REPLACE INTO TABLE v (v.a) SET nr = NULL, b = 'again';
@deviates_after several rows, then ROW_COUNT() in the statement that asks for LAST_INSERT_ID()
@text
LOAD DATA INFILE './{db}.1000.txt' REPLACE INTO TABLE v (a, b) SET b = CONCAT(b, nr > 0);
SELECT COUNT(*), COUNT(DISTINCT id), SUM(a), MIN(b) FROM t WHERE a + 0 >= 1000;
@text
LOAD DATA INFILE './{db}.0.txt' INTO TABLE v (a);
@text
LOAD DATA INFILE './{db}.no.txt' INTO TABLE v (a);
@text
LOAD DATA INFILE './{db}.1.txt' INTO TABLE v (a, nothing);
@text
LOAD DATA INFILE './{db}.1.txt' INTO TABLE no_such_view (a);
SELECT a, b FROM t WHERE a + 0 < 1000 ORDER BY a;

=== lines that a view's check option skips
CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT);
CREATE TABLE digits (d INT);
INSERT INTO digits VALUES (0), (1), (2), (3), (4), (5), (6), (7), (8), (9);
CREATE VIEW even AS SELECT a, id AS nr FROM t WHERE a % 2 = 0 WITH CHECK OPTION;
--- run
@elsewhere
SELECT 100 * h.d + 10 * t.d + e.d FROM digits h, digits t, digits e ORDER BY 1 INTO OUTFILE './{db}.1000.txt';
@text
LOAD DATA INFILE './{db}.1000.txt' INTO TABLE even (a);
@deviates_after several rows, then ROW_COUNT() in the statement that asks for LAST_INSERT_ID()
@text
LOAD DATA INFILE './{db}.1000.txt' IGNORE INTO TABLE even (a);
SELECT COUNT(*), COUNT(DISTINCT id), MIN(a), SUM(a) FROM t;
SELECT COUNT(*) FROM t JOIN t u ON u.id > t.id AND u.a < t.a;

=== files of the server through views that forbid it
CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT);
CREATE TABLE source (k INT PRIMARY KEY, x INT);
CREATE VIEW v AS SELECT a, id FROM t;
CREATE VIEW hidden AS SELECT a FROM t;
CREATE VIEW twice AS SELECT id, id AS nr, a FROM t;
CREATE VIEW checked AS SELECT id, a FROM t WHERE id > 5 WITH CHECK OPTION;
CREATE VIEW joined AS SELECT t.id, t.a, source.x FROM t JOIN source ON t.a = source.k;
CREATE VIEW computed AS SELECT id, a + 1 AS a FROM t;
CREATE VIEW united AS SELECT id, a FROM t UNION SELECT id, a FROM t;
CREATE VIEW elsewhere AS SELECT k, x FROM source;
--- run
@elsewhere
SELECT 1, 2 INTO OUTFILE './{db}.txt';
@text
@refused an INSERT through a view that does not show the key
LOAD DATA INFILE './{db}.txt' INTO TABLE hidden (a);
@text
@refused an INSERT through a view that does not show the key
LOAD DATA INFILE './{db}.txt' INTO TABLE {db}.hidden;
@text
@refused an INSERT through a view that shows the key more than once
LOAD DATA INFILE './{db}.txt' INTO TABLE twice (a);
@text
@refused an INSERT through a view whose CHECK OPTION may test the key
LOAD DATA INFILE './{db}.txt' IGNORE INTO TABLE checked (a);
@text
@refused an INSERT through a view that is not a choice of columns and rows of one table
LOAD DATA INFILE './{db}.txt' REPLACE INTO TABLE joined (a);
@text
LOAD DATA INFILE './{db}.txt' INTO TABLE computed (a);
@text
LOAD DATA INFILE './{db}.txt' INTO TABLE computed (id);
@text
LOAD DATA INFILE './{db}.txt' INTO TABLE united (a);
@text
LOAD DATA INFILE './{db}.txt' INTO TABLE elsewhere;
@text
@only mariadb
@refused LOAD DATA in a prepared statement
EXECUTE IMMEDIATE 'LOAD DATA INFILE \'{db}.txt\' INTO TABLE v';
@text
@only mariadb
@refused LOAD DATA in a prepared statement
PREPARE s FROM 'LOAD DATA INFILE \'{db}.txt\' INTO TABLE v';
@text
@refused LOAD XML
LOAD XML INFILE './{db}.txt' INTO TABLE v;
SELECT a FROM t;
SELECT k, x FROM elsewhere;
