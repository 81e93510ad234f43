# What the server refuses, before and after it issued keys.

=== duplicate of another key
CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT UNIQUE);
--- run
INSERT INTO t (a) VALUES (1);
SELECT LAST_INSERT_ID(42);
INSERT INTO t (a) VALUES (1);
SELECT LAST_INSERT_ID();
SELECT `last_insert_id`(77);
INSERT INTO t (a) VALUES (1);
SELECT LAST_INSERT_ID();
INSERT INTO t (a) VALUES (1), (2);
SELECT LAST_INSERT_ID();
INSERT INTO t (a) VALUES (2), (3), (1);
SELECT a FROM t;
INSERT INTO t (a) VALUES (4);
SELECT LAST_INSERT_ID() = MAX(id), COUNT(*) FROM t;

=== later rows
CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT UNIQUE);
--- run
SELECT LAST_INSERT_ID(42);
INSERT INTO t (a) VALUES (1), (2);
CALL nothing();
INSERT INTO t (a) VALUES (1), (3);
INSERT INTO t (a) VALUES (4), (1);
INSERT INTO t (a) VALUES (1);
SELECT LAST_INSERT_ID();
@params 5, 6
@params 1, 7
INSERT INTO t (a) VALUES (?), (?);
SELECT LAST_INSERT_ID();
@deviates_after several rows, then ROW_COUNT() in the statement that asks for LAST_INSERT_ID()
INSERT IGNORE INTO t (a) VALUES (8), (9);
INSERT IGNORE INTO t (a) VALUES (11), (12);
INSERT INTO t (a) VALUES (10), (10);
SELECT LAST_INSERT_ID() - MAX(id) FROM t;

=== later rows of an update of duplicates
CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT UNIQUE, b VARCHAR(3));
--- run
@deviates_after several rows that fail after their first, with ON DUPLICATE KEY UPDATE
INSERT INTO t (a, b) VALUES (1, 'x'), (2, 'toolong') ON DUPLICATE KEY UPDATE b = 'y';

=== references to the key of the own table
CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, above BIGINT, a INT, FOREIGN KEY (above) REFERENCES t (id));
--- run
INSERT INTO t (a) VALUES (1);
INSERT INTO t (above, a) VALUES (LAST_INSERT_ID(), 2);
INSERT INTO t (id, above, a) VALUES (5, 5, 3);
INSERT INTO t (id, above, a) VALUES (6, 7, 4);
INSERT INTO t (above, a) VALUES (8, 5);
INSERT INTO t (id, above, a) VALUES (9, 0, 6);
BEGIN;
@only mariadb
INSERT INTO t (above, a) VALUES (0, 7);
@only mysql
@deviates natively the new row still has the key 0 when MySQL checks the reference
INSERT INTO t (above, a) VALUES (0, 7);
SELECT LAST_INSERT_ID(42);
ROLLBACK;
SELECT COUNT(*), SUM(above IS NULL) FROM t;

=== duplicate within a transaction
CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT UNIQUE);
--- run
BEGIN;
INSERT INTO t (a) VALUES (1);
INSERT INTO t (a) VALUES (1);
INSERT INTO t (a) VALUES (2);
COMMIT;
SELECT a FROM t ORDER BY id;

=== constraints
CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT NOT NULL, b VARCHAR(3), c INT, CONSTRAINT positive CHECK (c > 0));
--- run
INSERT INTO t (b) VALUES ('x');
INSERT INTO t (a) VALUES (NULL);
INSERT INTO t (a, b) VALUES (1, 'toolong');
INSERT INTO t (a, b) VALUES (1, 'ok'), (2, 'toolong');
INSERT INTO t (a, c) VALUES (1, 0);
INSERT INTO t (a, c) VALUES (1, 1), (2, -1);
INSERT INTO t (a) VALUES ('abc');
INSERT INTO t (a) VALUES (99999999999);
INSERT INTO t (a) VALUES (1, 2);
INSERT INTO t (a, b) VALUES (1);
INSERT INTO t (a, b) VALUES (1, 'a'), (2);
INSERT INTO t (a) VALUES (1 / 0);
INSERT INTO t (a) VALUES (NO_SUCH_FUNCTION());
INSERT INTO t (a) VALUES ((SELECT 1 UNION SELECT 2));
INSERT INTO t (a, c) VALUES (3, 3);
SELECT a, b, c, id = LAST_INSERT_ID() FROM t;

=== syntax
CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT);
--- run
INSERT INTO t (a VALUES (1);
INSERT INTO t (a) VALUES (1;
INSERT INTO t (a) VALUES ('x);
INSERT INTO t (a) VALUES (1) /* open;
INSERT IN t (a) VALUES (1);
INSERT INTO INTO t (a) VALUES (1);
REPLACE IGNORE INTO t (a) VALUES (1);
SELECT COUNT(*) FROM t;

=== syntax that the server refuses as well, in other words
CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT);
--- run
@refused goes on behind its rows
INSERT INTO t (a) VALUE (1) VALUE (2);
@refused goes on behind its rows
INSERT INTO t (a) VALUES (1)(2);
@refused goes on behind its table
INSERT INTO t a VALUES (1);
SELECT COUNT(*) FROM t;

=== privileges
CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT);
--- run
INSERT INTO mysql.nothing (a) VALUES (1);
INSERT INTO information_schema.tables (table_name) VALUES ('x');
SELECT a FROM t;

=== a view of the table
CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT);
CREATE SQL SECURITY INVOKER VIEW v AS SELECT id, a FROM t;
--- run
INSERT INTO v (id, a) VALUES (7, 1);
SELECT id, a FROM v;
@deviates the view was made after the last schema refresh, so the fence refuses the INSERT
INSERT INTO v (a) VALUES (2);
@elsewhere
TRUNCATE TABLE t;
