# Rows that come from a file.

=== local file
CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT, b VARCHAR(20));
--- run
@text
@local 1\tone\n2\ttwo\n3\tthree\n
@refused LOAD DATA
LOAD DATA LOCAL INFILE 'x' INTO TABLE t FIELDS TERMINATED BY '\\t' (a, b);
@text
@local 4,four\n5,five\n
@refused LOAD DATA
LOAD DATA LOCAL INFILE 'x' INTO TABLE t FIELDS TERMINATED BY ',' (a, b);
SELECT LAST_INSERT_ID() > 0;
@text
@local head\n6\n
@refused LOAD DATA
LOAD DATA LOCAL INFILE 'x' INTO TABLE t IGNORE 1 LINES (a) SET b = 'set';
SELECT a, b FROM t ORDER BY id;
