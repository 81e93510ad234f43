# What gh-ost and pt-online-schema-change send, as they are published, while a table goes over to a changed copy of itself. The copy has
# a rule, or none.

=== gh-ost copies into a table without a rule
CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT, b VARCHAR(20));
INSERT INTO t (id, a, b) VALUES (1, 1, 'one'), (2, 2, 'two'), (5, 5, 'five'), (9, 9, NULL);
--- run
SET SESSION time_zone = '+00:00', sql_mode = CONCAT(@@session.sql_mode, ',NO_AUTO_VALUE_ON_ZERO');
create /* gh-ost */ table `{db}`.`_t_gho` like `{db}`.`t`;
alter /* gh-ost */ table `{db}`.`_t_gho` add column c int not null default 7;
<<
insert /* gh-ost `{db}`.`t` */ ignore
into
	`{db}`.`_t_gho`
	(`id`, `a`, `b`)
(
	select `id`, `a`, `b`
	from
		`{db}`.`t`
	force index (`PRIMARY`)
	where
		(((`id` > _binary'1') or ((`id` = _binary'1'))) and ((`id` < _binary'5') or ((`id` = _binary'5'))))
	lock in share mode
)
>>
@params 5, 9, 9
<<
insert /* gh-ost `{db}`.`t` */ ignore
into
	`{db}`.`_t_gho`
	(`id`, `a`, `b`)
(
	select `id`, `a`, `b`
	from
		`{db}`.`t`
	force index (`PRIMARY`)
	where
		(((`id` > ?)) and ((`id` < ?) or ((`id` = ?))))
	lock in share mode
)
>>
INSERT INTO t (a, b) VALUES (10, 'ten'), (11, 'eleven');
@params 20, 20, 'twenty'
<<
replace /* gh-ost `{db}`.`_t_gho` */
into
	`{db}`.`_t_gho`
	(`id`, `a`, `b`)
values
	(?, ?, ?)
>>
@params 2, 22, 'two', 2
update /* gh-ost `{db}`.`_t_gho` */ `{db}`.`_t_gho` set `id`=?, `a`=?, `b`=? where ((`id` = ?));
@params 20
delete /* gh-ost `{db}`.`_t_gho` */ from `{db}`.`_t_gho` where ((`id` = ?));
SELECT COUNT(*), COUNT(b), MIN(c) FROM _t_gho;

=== gh-ost copies into a table with a rule
CREATE TABLE t_parent (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT, b VARCHAR(20));
CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT, b VARCHAR(20), c INT NOT NULL DEFAULT 7);
INSERT INTO t_parent (id, a, b) VALUES (1, 1, 'one'), (2, 2, 'two'), (5, 5, 'five'), (9, 9, NULL);
--- run
SET SESSION time_zone = '+00:00', sql_mode = CONCAT(@@session.sql_mode, ',NO_AUTO_VALUE_ON_ZERO');
<<
insert /* gh-ost `{db}`.`t_parent` */ ignore
into
	`{db}`.`t`
	(`id`, `a`, `b`)
(
	select `id`, `a`, `b`
	from
		`{db}`.`t_parent`
	force index (`PRIMARY`)
	where
		(((`id` > _binary'1') or ((`id` = _binary'1'))) and ((`id` < _binary'5') or ((`id` = _binary'5'))))
	lock in share mode
)
>>
@params 5, 9, 9
<<
insert /* gh-ost `{db}`.`t_parent` */ ignore
into
	`{db}`.`t`
	(`id`, `a`, `b`)
(
	select `id`, `a`, `b`
	from
		`{db}`.`t_parent`
	force index (`PRIMARY`)
	where
		(((`id` > ?)) and ((`id` < ?) or ((`id` = ?))))
	lock in share mode
)
>>
replace /* gh-ost `{db}`.`t` */ into `{db}`.`t` (`id`, `a`, `b`) values (_binary'2', _binary'22', _binary'two');
@params 20, 20, 'twenty'
@params 0, 21, 'zero'
replace /* gh-ost `{db}`.`t` */ into `{db}`.`t` (`id`, `a`, `b`) values (?, ?, ?);
insert /* gh-ost `{db}`.`t` */ ignore into `{db}`.`t` (`id`, `a`, `b`) values (20, 99, 'there');
@params 2, 23, 'two', 2
update /* gh-ost `{db}`.`t` */ `{db}`.`t` set `id`=?, `a`=?, `b`=? where ((`id` = ?));
@params 20
delete /* gh-ost `{db}`.`t` */ from `{db}`.`t` where ((`id` = ?));
SELECT id, a, b, c FROM t ORDER BY id;
rename /* gh-ost */ table `{db}`.`t_parent` to `{db}`.`_t_del`, `{db}`.`t` to `{db}`.`t_parent`;
SELECT COUNT(*) FROM t_parent;

=== gh-ost keeps notes in a table with a rule
CREATE TABLE t (id BIGINT AUTO_INCREMENT, last_update TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP, hint VARCHAR(64) CHARSET ascii NOT NULL, value VARCHAR(4096) CHARSET ascii NOT NULL, PRIMARY KEY (id), UNIQUE KEY hint_uidx (hint));
--- run
SET timestamp = 1000000000;
insert /* gh-ost */ into `{db}`.`t` (id, hint, value) values (NULLIF(2, 0), 'state', 'GhostTableMigrated') on duplicate key update last_update=NOW(), value=VALUES(value);
insert /* gh-ost */ into `{db}`.`t` (id, hint, value) values (NULLIF(0, 0), 'state at 1', 'GhostTableMigrated') on duplicate key update last_update=NOW(), value=VALUES(value);
insert /* gh-ost */ into `{db}`.`t` (id, hint, value) values (NULLIF(1, 0), 'heartbeat', '2026') on duplicate key update last_update=NOW(), value=VALUES(value);
insert /* gh-ost */ into `{db}`.`t` (id, hint, value) values (NULLIF(1, 0), 'heartbeat', '2027') on duplicate key update last_update=NOW(), value=VALUES(value);
SELECT id, hint, value FROM t ORDER BY hint;

=== pt-online-schema-change copies into a table with a rule
CREATE TABLE t_parent (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT, b VARCHAR(20));
CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT, b VARCHAR(20), c INT NOT NULL DEFAULT 7);
INSERT INTO t_parent (id, a, b) VALUES (1, 1, 'one'), (2, 2, 'two'), (5, 5, 'five'), (9, 9, NULL);
--- run
SET @@SQL_QUOTE_SHOW_CREATE = 1/*!40101, @@SQL_MODE='NO_AUTO_VALUE_ON_ZERO,STRICT_TRANS_TABLES'*/;
SELECT 1;
@text
<<
CREATE TRIGGER `pt_osc_db_t_del` AFTER DELETE ON `{db}`.`t_parent` FOR EACH ROW BEGIN DECLARE CONTINUE HANDLER FOR 1146 begin end; DELETE IGNORE FROM `{db}`.`t` WHERE `{db}`.`t`.`id` <=> OLD.`id`; END
>>
@text
<<
CREATE TRIGGER `pt_osc_db_t_upd` AFTER UPDATE ON `{db}`.`t_parent` FOR EACH ROW BEGIN DECLARE CONTINUE HANDLER FOR 1146 begin end; DELETE IGNORE FROM `{db}`.`t` WHERE !(OLD.`id` <=> NEW.`id`) AND `{db}`.`t`.`id` <=> OLD.`id`; REPLACE INTO `{db}`.`t` (`id`, `a`, `b`) VALUES (NEW.`id`, NEW.`a`, NEW.`b`); END
>>
@text
<<
CREATE TRIGGER `pt_osc_db_t_ins` AFTER INSERT ON `{db}`.`t_parent` FOR EACH ROW BEGIN DECLARE CONTINUE HANDLER FOR 1146 begin end; REPLACE INTO `{db}`.`t` (`id`, `a`, `b`) VALUES (NEW.`id`, NEW.`a`, NEW.`b`); END
>>
SELECT /*!40001 SQL_NO_CACHE */ `id` FROM `{db}`.`t_parent` FORCE INDEX(`PRIMARY`) ORDER BY `id` LIMIT 1 /*first lower boundary*/;
@params 1, 5
INSERT LOW_PRIORITY IGNORE INTO `{db}`.`t` (`id`, `a`, `b`) SELECT `id`, `a`, `b` FROM `{db}`.`t_parent` FORCE INDEX(`PRIMARY`) WHERE ((`id` >= ?)) AND ((`id` <= ?)) LOCK IN SHARE MODE /*pt-online-schema-change 4711 copy nibble*/;
SHOW WARNINGS;
INSERT LOW_PRIORITY IGNORE INTO `{db}`.`t` (`id`, `a`, `b`) SELECT `id`, `a`, `b` FROM `{db}`.`t_parent` FORCE INDEX(`PRIMARY`) WHERE ((`id` >= '5')) AND ((`id` <= '9')) LOCK IN SHARE MODE /*pt-online-schema-change 4711 copy nibble*/;
INSERT LOW_PRIORITY IGNORE INTO `{db}`.`t` (`id`, `a`, `b`) SELECT `id`, `a`, `b` FROM `{db}`.`t_parent` LOCK IN SHARE MODE /*pt-online-schema-change 4711 copy table*/;
INSERT INTO t_parent (id, a, b) VALUES (30, 30, 'thirty');
UPDATE t_parent SET a = 31 WHERE id = 30;
UPDATE t_parent SET id = 32 WHERE id = 30;
DELETE FROM t_parent WHERE id = 2;
SELECT id, a, b, c FROM t ORDER BY id;
RENAME TABLE `{db}`.`t_parent` TO `{db}`.`_t_old`, `{db}`.`t` TO `{db}`.`t_parent`;
SELECT COUNT(*) FROM t_parent;
DROP TRIGGER IF EXISTS `{db}`.`pt_osc_db_t_del`;
DROP TRIGGER IF EXISTS `{db}`.`pt_osc_db_t_upd`;
DROP TRIGGER IF EXISTS `{db}`.`pt_osc_db_t_ins`;
DROP TABLE IF EXISTS `{db}`.`_t_old`;

=== rows with keys from the proxy while triggers copy them
CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT, b VARCHAR(20));
CREATE TABLE _t_new (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT, b VARCHAR(20), c INT NOT NULL DEFAULT 7);
CREATE TRIGGER pt_osc_ins AFTER INSERT ON t FOR EACH ROW REPLACE INTO _t_new (id, a, b) VALUES (NEW.id, NEW.a, NEW.b);
--- run
INSERT INTO t (a, b) VALUES (1, 'one');
SELECT LAST_INSERT_ID() = MAX(id) FROM t;
INSERT INTO t (a) VALUES (2), (3);
INSERT IGNORE INTO t (id, a) VALUES (NULL, 4);
@params 5
@params 6
INSERT INTO t (a) VALUES (?);
SELECT LAST_INSERT_ID() = MAX(id) FROM t;
SELECT COUNT(*) FROM t JOIN _t_new ON t.id = _t_new.id AND t.a = _t_new.a;
