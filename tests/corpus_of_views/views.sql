# Rows that go through views which a proxy saw when it started.

=== a view that shows the key
CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT UNIQUE, b VARCHAR(20) DEFAULT 'dull');
CREATE VIEW v AS SELECT id, a, b FROM t;
--- run
INSERT INTO v (a) VALUES (1);
SELECT LAST_INSERT_ID() - id, a, b FROM v;
INSERT INTO v (a, b) VALUES (2, 'two'), (3, 'three');
SELECT id - LAST_INSERT_ID(), a FROM v ORDER BY id;
INSERT INTO v VALUES (NULL, 4, 'four'), (DEFAULT, 5, 'five'), (0, 6, 'six');
INSERT INTO v SET a = 7;
INSERT INTO v SET id = NULL, a = 8;
INSERT INTO v (b, id, a) VALUES ('mixed', NULL, 9), ('mixed', 77, 10), ('mixed', 0, 11);
REPLACE INTO v (a) VALUES (1);
SELECT LAST_INSERT_ID() = id FROM t WHERE a = 1;
INSERT INTO v (id, a) VALUES (78, 12);
INSERT IGNORE INTO v (a) VALUES (13);
INSERT INTO v (a) VALUES (1) ON DUPLICATE KEY UPDATE b = CONCAT(b, '!');
INSERT INTO v (a) VALUES (14) ON DUPLICATE KEY UPDATE b = 'no';
INSERT INTO v (a) VALUES (1);
INSERT INTO v (a, nothing) VALUES (1, 2);
INSERT INTO {db}.v (a) VALUES (15);
INSERT INTO `v` (`a`) VALUE (16);
SELECT a, b FROM t ORDER BY id;
SELECT LAST_INSERT_ID() = MAX(id) FROM t;

=== rows of a view that come from elsewhere
CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT, b VARCHAR(20));
CREATE TABLE source (k INT PRIMARY KEY, x INT);
INSERT INTO source VALUES (1, 10), (2, 20), (3, 30);
CREATE VIEW v AS SELECT a, id AS nr FROM t;
--- run
@deviates_after several rows, then ROW_COUNT() in the statement that asks for LAST_INSERT_ID()
INSERT INTO v (a) SELECT x FROM source;
SELECT nr - LAST_INSERT_ID(), a FROM v ORDER BY nr;
@params 1, NULL
@params 2, 5
@params 3, 0
INSERT INTO v (a, nr) VALUES (?, ?);
@params 7
@params 8
INSERT INTO v (a) VALUES (?);
SELECT LAST_INSERT_ID() = MAX(nr) FROM v;
@text
PREPARE s FROM 'INSERT INTO v (a) VALUES (?)';
SET @a = 9;
@text
EXECUTE s USING @a;
SELECT LAST_INSERT_ID() = MAX(nr) FROM v;
@text
@local 11\n
LOAD DATA LOCAL INFILE 'x' INTO TABLE v (a);
@text
@local 12\t0\n
LOAD DATA LOCAL INFILE 'x' INTO TABLE v;
SELECT a FROM t ORDER BY id;

=== select through a view with an update of duplicates
CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT UNIQUE, b VARCHAR(20));
CREATE TABLE source (k INT PRIMARY KEY, x INT);
INSERT INTO source VALUES (1, 10), (2, 20), (3, 30);
CREATE VIEW v AS SELECT a, b, id AS nr FROM t;
--- run
INSERT INTO v (a, b) VALUES (10, 'old');
INSERT INTO v (a, b) VALUES (10, 'new') ON DUPLICATE KEY UPDATE b = CONCAT(b, VALUES(b));
@only mariadb
@deviates the key of a skipped row is reported, because the server does not report which rows went in
INSERT INTO v (a, b) SELECT x, 'n' FROM source ON DUPLICATE KEY UPDATE b = CONCAT(b, VALUES(b), source.k);
@only mysql
@refused an INSERT through a view with ON DUPLICATE KEY UPDATE of the rows of a SELECT
INSERT INTO v (a, b) SELECT x, 'n' FROM source ON DUPLICATE KEY UPDATE b = CONCAT(b, VALUES(b), source.k);
SELECT a, b FROM t ORDER BY a;
@elsewhere
TRUNCATE TABLE t;

=== no columns of a view
CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT);
CREATE VIEW v AS SELECT id, a FROM t;
--- run
@only mysql
INSERT INTO v () VALUES ();
@only mariadb
@deviates MariaDB counts the view's columns, while keywright names the key
INSERT INTO v () VALUES ();
@elsewhere
TRUNCATE TABLE t;

=== returning from a view
only: mariadb
CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT);
CREATE VIEW v AS SELECT a AS x, id AS nr FROM t;
--- run
INSERT INTO v (x) VALUES (1), (2) RETURNING nr - LAST_INSERT_ID(), x;
SELECT LAST_INSERT_ID() = MIN(id) FROM t;

=== views over views
CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT, b INT);
CREATE VIEW inner_v AS SELECT b, id AS `the key`, a FROM t WHERE a > 0 ORDER BY a;
CREATE VIEW outer_v AS SELECT i.a AS id, i.`the key` AS nr FROM inner_v AS i;
--- run
INSERT INTO outer_v (id) VALUES (1), (2);
INSERT INTO outer_v VALUES (3, NULL);
INSERT INTO inner_v VALUES (5, DEFAULT, 4);
INSERT INTO inner_v (b, a) VALUES (7, -1);
SELECT a, b FROM t ORDER BY id;
SELECT LAST_INSERT_ID() = MAX(id) FROM t;

=== views that name their columns themselves
CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a BIGINT, b INT);
CREATE VIEW swapped (id, nr) AS SELECT a, id FROM t;
CREATE VIEW `over` (`select`, `a``s`) AS SELECT nr, id FROM swapped;
CREATE VIEW hinted AS SELECT STRAIGHT_JOIN id, a FROM t USE INDEX (PRIMARY) WHERE b IS NULL;
--- run
INSERT INTO swapped (id) VALUES (1), (2);
INSERT INTO swapped VALUES (3, NULL);
INSERT INTO swapped (nr, id) VALUES (0, 4), (DEFAULT, 5);
INSERT INTO `over` (`a``s`) VALUES (6);
INSERT INTO `over` VALUES (NULL, 7);
INSERT INTO hinted (a) VALUES (8);
SELECT a, b FROM t ORDER BY id;
SELECT LAST_INSERT_ID() = MAX(id) FROM t;

=== views with a check option
CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT, b INT);
CREATE VIEW big AS SELECT id, a, b FROM t WHERE a > 5 WITH CHECK OPTION;
CREATE VIEW over_big AS SELECT id, a FROM big;
--- run
INSERT INTO big (a) VALUES (6);
INSERT INTO big (a) VALUES (1);
SELECT LAST_INSERT_ID() = MAX(id) FROM t;
INSERT INTO big (a) VALUES (8), (2);
INSERT IGNORE INTO big (a) VALUES (3);
INSERT INTO over_big (a) VALUES (9);
INSERT INTO over_big (a) VALUES (4);
SELECT a FROM t ORDER BY id;

=== views through which the key cannot be told
CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT, b INT);
CREATE TABLE source (k INT PRIMARY KEY, x INT);
CREATE VIEW hidden AS SELECT a, b FROM t;
CREATE VIEW twice AS SELECT id, id AS nr, a FROM t;
CREATE VIEW checked AS SELECT id, a FROM t WHERE id > 5 WITH CHECK OPTION;
CREATE VIEW joined AS SELECT t.id, t.a, source.x FROM t JOIN source ON t.a = source.k;
CREATE VIEW united AS SELECT id, a FROM t UNION SELECT id, a FROM t;
CREATE VIEW elsewhere AS SELECT k, x FROM source;
CREATE VIEW chosen AS SELECT e.k, e.x FROM source AS e JOIN source AS f ON f.k = e.k WHERE e.x > ALL (SELECT id FROM t);
--- run
@refused an INSERT through a view that does not show the key
INSERT INTO hidden (a) VALUES (1);
@refused an INSERT through a view that does not show the key
INSERT INTO hidden (a) SELECT k FROM source;
@refused an INSERT through a view that does not show the key
@text
@local 1\n
LOAD DATA LOCAL INFILE 'x' INTO TABLE hidden (a);
@refused an INSERT through a view that shows the key more than once
INSERT INTO twice (a) VALUES (1);
@refused an INSERT through a view whose CHECK OPTION may test the key
REPLACE INTO checked (a) VALUES (1);
@refused an INSERT through a view that is not a choice of columns and rows of one table
@params 1
INSERT INTO joined (a) VALUES (?);
INSERT INTO united (a) VALUES (1);
INSERT INTO elsewhere VALUES (1, 2);
INSERT INTO chosen (k, x) VALUES (3, 4);
UPDATE hidden SET a = 2;
SELECT a FROM t;
SELECT k, x FROM elsewhere;
