# Several statements in one text.

=== several statements in one packet
CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT, b VARCHAR(20));
--- run
@text
INSERT INTO t (a) VALUES (1); INSERT INTO t (a) VALUES (2), (3); SELECT LAST_INSERT_ID();
@text
SELECT 1; INSERT INTO t (b) VALUES ('a;b'); SELECT a, b FROM t ORDER BY id;
@text
SET sql_mode = 'NO_AUTO_VALUE_ON_ZERO'; INSERT INTO t VALUES (0, 4, 'zero'); SET sql_mode = DEFAULT; INSERT INTO t VALUES (NULL, 5, 'key');
@text
INSERT INTO t (a) VALUES (6); INSERT INTO t (nothing) VALUES (7); INSERT INTO t (a) VALUES (8);
@text
BEGIN; INSERT INTO t (a) VALUES (9); ROLLBACK; SELECT COUNT(*) FROM t;
<<
INSERT INTO t (a) VALUES (10);
>>
@text
USE {db}_2; INSERT INTO {db}.t (a) VALUES (12); USE {db}; INSERT INTO t (a) VALUES (13);
SELECT a, b FROM t ORDER BY id;

=== nothing behind the last statement
CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT);
--- run
INSERT INTO t (a) VALUES (1);;;
INSERT INTO t (a) VALUES (2) ; ;;
@text
INSERT INTO t (a) VALUES (3); INSERT INTO t (a) VALUES (4);; ;;
SELECT LAST_INSERT_ID() = MAX(id) FROM t;;
SELECT a FROM t ORDER BY id;

=== nothing between two statements
CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT);
--- run
@text
@deviates each statement is sent by itself, so an empty statement has another error
INSERT INTO t (a) VALUES (1);; SELECT 2;
SELECT a FROM t;
