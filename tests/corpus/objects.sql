# Triggers, routines, views, and statements that only look at an insert.

=== trigger that inserts into another table
CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT);
CREATE TABLE audit (n INT AUTO_INCREMENT PRIMARY KEY, a INT);
CREATE TRIGGER after_t AFTER INSERT ON t FOR EACH ROW INSERT INTO audit (a) VALUES (NEW.a);
--- run
INSERT INTO t (a) VALUES (1);
SELECT LAST_INSERT_ID() = MAX(id) FROM t;
INSERT INTO t (a) VALUES (2), (3);
SELECT id - LAST_INSERT_ID(), a FROM t ORDER BY id;
SELECT n, a FROM audit ORDER BY n;
SELECT LAST_INSERT_ID();

=== trigger that reads the new key
CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT);
CREATE TABLE audit (k BIGINT, a INT);
CREATE TRIGGER after_t AFTER INSERT ON t FOR EACH ROW INSERT INTO audit VALUES (NEW.id, NEW.a);
--- run
INSERT INTO t (a) VALUES (1), (2);
SELECT audit.k = t.id, audit.a FROM audit JOIN t ON t.a = audit.a ORDER BY t.a;

=== trigger before the insert
CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT, b BIGINT);
CREATE TRIGGER before_t BEFORE INSERT ON t FOR EACH ROW SET NEW.a = NEW.a + 100;
--- run
INSERT INTO t (a) VALUES (1), (2);
SELECT id - LAST_INSERT_ID(), a FROM t ORDER BY id;
INSERT INTO t SET a = 3;
SELECT a FROM t ORDER BY id;

=== trigger that refuses
CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT);
CREATE TRIGGER before_t BEFORE INSERT ON t FOR EACH ROW IF NEW.a < 0 THEN SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'negative'; END IF;
--- run
INSERT INTO t (a) VALUES (1);
INSERT INTO t (a) VALUES (-1);
INSERT INTO t (a) VALUES (2), (-2);
INSERT INTO t (a) VALUES (3);
SELECT a FROM t ORDER BY id;

=== function that inserts nothing
CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT);
CREATE FUNCTION twice (x INT) RETURNS INT DETERMINISTIC RETURN x * 2;
--- run
@deviates_after several rows, then ROW_COUNT() in the statement that asks for LAST_INSERT_ID()
INSERT INTO t (a) VALUES (twice(1)), ({db}.twice(2));
SELECT a FROM t ORDER BY id;
SELECT LAST_INSERT_ID() = MIN(id) FROM t;

=== function that reads the last id
CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a BIGINT);
CREATE FUNCTION reported () RETURNS BIGINT READS SQL DATA RETURN LAST_INSERT_ID();
--- run
DO LAST_INSERT_ID(42);
INSERT INTO t (a) VALUES (reported());
SELECT id = LAST_INSERT_ID(), a FROM t;
SELECT reported() > 42;

=== procedures on other tables
CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT);
CREATE TABLE other (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT);
<<
CREATE PROCEDURE fill (n INT) BEGIN INSERT INTO other (a) VALUES (n), (n + 1); SELECT COUNT(*) FROM other; SELECT n; END
>>
--- run
CALL fill(1);
SELECT LAST_INSERT_ID();
INSERT INTO t (a) VALUES (1);
CALL fill(3);
SELECT LAST_INSERT_ID();
INSERT INTO t VALUES (NULL, 2);
CALL nothing();
SELECT a FROM t ORDER BY id;

=== procedure that sets the mode
CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT);
CREATE PROCEDURE relax () SET sql_mode = 'NO_AUTO_VALUE_ON_ZERO';
--- run
CALL relax();
INSERT INTO t VALUES (0, 1);
SELECT id = LAST_INSERT_ID() FROM t;

=== views
CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT, b INT);
CREATE VIEW t_view AS SELECT id, a FROM t;
CREATE VIEW other_view AS SELECT a FROM t WHERE a > 5 WITH CHECK OPTION;
--- run
INSERT INTO t (a) VALUES (1);
SELECT a FROM t_view;
INSERT INTO other_view (a) VALUES (1);
SELECT COUNT(*) FROM t;

=== statements that look at an insert
CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT);
--- run
EXPLAIN INSERT INTO t (a) VALUES (1);
DESCRIBE INSERT INTO t (a) VALUES (1);
EXPLAIN REPLACE INTO t SET a = 1;
@only mysql
EXPLAIN FORMAT=JSON INSERT INTO t (a) VALUES (1);
SELECT COUNT(*) FROM t;
HELP 'INSERT';
SHOW CREATE TABLE nothing;
DESC t;

=== analysing an insert
only: mariadb
CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT);
--- run
ANALYZE INSERT INTO t (a) VALUES (1);
ANALYZE INSERT INTO t VALUES (NULL, 2), (0, 3);
SELECT a FROM t ORDER BY id;
SELECT LAST_INSERT_ID() > 0;

=== bodies of routines are left alone
CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT);
CREATE TABLE other (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT);
--- run
CREATE PROCEDURE p () INSERT INTO other (a) VALUES (1);
CALL p();
<<
CREATE PROCEDURE q () BEGIN INSERT INTO other (a) VALUES (2); INSERT INTO other (a) VALUES (3); END
>>
CALL q();
CREATE TRIGGER tr AFTER INSERT ON other FOR EACH ROW SET @seen = NEW.a;
INSERT INTO other (a) VALUES (4);
SELECT @seen;
SELECT id, a FROM other ORDER BY id;
SELECT routine_name, routine_definition FROM information_schema.routines WHERE routine_schema = '{db}' ORDER BY 1;

=== tables made and changed on the way
CREATE TABLE seed (a INT);
INSERT INTO seed VALUES (1), (2);
--- run
CREATE TABLE other (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT);
INSERT INTO other (a) VALUES (1);
ALTER TABLE other ADD b INT DEFAULT 3;
INSERT INTO other VALUES (NULL, 2, 4);
RENAME TABLE other TO other2;
INSERT INTO other2 (a) VALUES (5);
INSERT INTO other (a) VALUES (6);
CREATE TABLE other3 (id BIGINT AUTO_INCREMENT PRIMARY KEY) SELECT a FROM seed;
SELECT id, a FROM other3;
DROP TABLE other2, other3;
INSERT INTO other2 (a) VALUES (7);

=== blocks in ORACLE mode
only: mariadb
CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT);
--- run
SET sql_mode = 'ORACLE';
<<
BEGIN SELECT 1; SELECT 2; END
>>
<<
BEGIN SELECT 1; INSERT INTO t (id, a) VALUES (998, 1); END
>>
SELECT id, a FROM t;

=== routines that are compiled with a delimiter
CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT);
--- run
@only mariadb
<<
BEGIN NOT ATOMIC SELECT 1; SELECT 2; END
>>
HANDLER t OPEN;
INSERT INTO t (a) VALUES (1);
HANDLER t READ FIRST;
HANDLER t CLOSE;
SELECT a FROM t;
