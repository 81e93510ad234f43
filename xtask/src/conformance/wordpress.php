<?php
// What a site does, through WordPress's own functions. Each line says how one of it ended.
error_reporting(E_ALL & ~E_DEPRECATED & ~E_WARNING & ~E_NOTICE);
[, $root, $port] = $argv;
$_SERVER += ['HTTP_HOST' => 'shop.test', 'SERVER_NAME' => 'shop.test', 'REQUEST_URI' => '/', 'SERVER_PROTOCOL' => 'HTTP/1.1', 'REQUEST_METHOD' => 'GET', 'REMOTE_ADDR' => '127.0.0.1'];
define('ABSPATH', "$root/");
define('DB_NAME', 'wp');
define('DB_USER', 'root');
define('DB_PASSWORD', '');
define('DB_HOST', "127.0.0.1:$port");
define('DB_CHARSET', 'utf8mb4');
define('DB_COLLATE', '');
define('DISABLE_WP_CRON', true);
define('WP_HTTP_BLOCK_EXTERNAL', true);
if ($argv[3] === 'install') define('WP_INSTALLING', true);
define('WP_DEBUG', false);
$table_prefix = 'wp_';
function wp_mail() { return true; }
require ABSPATH . 'wp-settings.php';
require_once ABSPATH . 'wp-admin/includes/admin.php';
require_once ABSPATH . 'wp-admin/includes/upgrade.php';
$wpdb->hide_errors();
function step(string $name, callable $what): void {
    global $wpdb, $EZSQL_ERROR;
    $EZSQL_ERROR = [];
    try { $is = $what(); } catch (Throwable $error) { $is = $error->getMessage(); }
    foreach ($EZSQL_ERROR ?? [] as $error) { if (str_starts_with($error['query'], 'DESCRIBE ')) continue; $is = $error['error_str'] . ' in ' . substr($error['query'], 0, 300); break; }
    if ($is instanceof WP_Error) { $is = $is->get_error_message(); }
    echo $is === true ? "PASSED wordpress::$name\n" : "FAILED wordpress::$name - " . json_encode($is) . "\n";
}
function is(bool $so, string $what) { if (!$so) throw new Exception($what); }
if ($argv[3] === 'install') step('install', function () { $r = wp_install('Shop', 'admin', 'a@shop.test', true, '', 'secret'); dbDelta("CREATE TABLE wp_shop_log (\n order_id bigint(20) unsigned NOT NULL auto_increment,\n PRIMARY KEY  (order_id)\n);"); return $r['user_id'] > 0; });
if ($argv[3] === 'install') exit;
wp_set_current_user(get_user_by('login', 'admin')->ID ?? 0);
step('user', function () {
    global $u;
    $u = wp_insert_user(['user_login' => 'ann', 'user_pass' => 'x', 'user_email' => 'ann@shop.test', 'role' => 'editor']);
    return is_int($u) && get_userdata($u)->roles === ['editor'];
});
step('user meta', function () {
    global $u;
    $m = add_user_meta($u, 'k', 'v');
    return $m > 0 && get_user_meta($u, 'k', true) === 'v' && get_metadata_by_mid('user', $m)->meta_value === 'v';
});
step('post', function () {
    global $p;
    $p = wp_insert_post(['post_title' => "It's \\ \"one\"", 'post_content' => "täxt ☃ \n?", 'post_status' => 'publish', 'tags_input' => ['a', 'b'], 'post_category' => [1]], true);
    return is_int($p) && get_post($p)->post_content === "täxt ☃ \n?" && count(wp_get_post_tags($p)) === 2;
});
step('own guid', function () {
    global $p;
    return str_ends_with(get_post($p)->guid, "?p=$p");
});
step('revisions', function () {
    global $p;
    for ($i = 0; $i < 3; $i++) wp_update_post(['ID' => $p, 'post_content' => "text $i"]);
    return count(wp_get_post_revisions($p)) >= 3;
});
step('post meta', function () {
    global $p;
    $ids = [];
    for ($i = 0; $i < 20; $i++) $ids[] = add_post_meta($p, "m$i", ['n' => $i]);
    is(count(array_unique($ids)) === 20, 'ids');
    return get_post_meta($p, 'm7', true) === ['n' => 7];
});
step('meta by id', function () {
    global $p;
    $m = add_post_meta($p, 'x', 'y');
    is(update_metadata_by_mid('post', $m, 'z'), 'update');
    return get_metadata_by_mid('post', $m)->meta_value === 'z' && delete_metadata_by_mid('post', $m);
});
step('terms', function () {
    $t = wp_insert_term('Shoes', 'category');
    is(!is_wp_error($t), 'term');
    $c = wp_insert_term('Boots', 'category', ['parent' => $t['term_id']]);
    return get_term($c['term_id'])->parent === $t['term_id'] && get_term_children($t['term_id'], 'category') === [$c['term_id']];
});
step('term meta', function () {
    $t = term_exists('Shoes', 'category');
    return add_term_meta($t['term_id'], 'a', 'b') > 0;
});
step('comments', function () {
    global $p;
    $a = wp_new_comment(['comment_post_ID' => $p, 'comment_author' => 'Bo', 'comment_author_email' => 'b@x.test', 'comment_author_url' => '', 'comment_content' => 'first', 'comment_type' => 'comment', 'user_id' => 0], true);
    is(is_int($a), 'first');
    $b = wp_insert_comment(['comment_post_ID' => $p, 'comment_content' => 'second', 'comment_parent' => $a, 'comment_approved' => 1]);
    is(add_comment_meta($b, 'k', 1) > 0, 'meta');
    return (int) get_comment($b)->comment_parent === $a && get_comments_number($p) > 0;
});
step('options', function () {
    is(add_option('o', ['a' => 1]), 'add');
    is(update_option('o', ['a' => 2]), 'update');
    is(update_option('new', 'n'), 'upsert');
    wp_cache_flush();
    return get_option('o') === ['a' => 2] && get_option('new') === 'n' && delete_option('new');
});
step('transients', function () {
    set_transient('t', 'v', 60);
    set_transient('t', 'w', 60);
    wp_cache_flush();
    return get_transient('t') === 'w';
});
step('attachment', function () {
    global $p;
    $a = wp_insert_attachment(['post_title' => 'f', 'post_mime_type' => 'image/png'], '2026/a.png', $p);
    wp_update_attachment_metadata($a, ['width' => 1]);
    return set_post_thumbnail($p, $a) !== false && get_post_thumbnail_id($p) === $a;
});
step('menu', function () {
    global $p;
    $m = wp_create_nav_menu('Main');
    is(is_int($m), 'menu');
    $i = wp_update_nav_menu_item($m, 0, ['menu-item-title' => 'Home', 'menu-item-url' => '/', 'menu-item-status' => 'publish']);
    return is_int($i) && count(wp_get_nav_menu_items($m)) === 1;
});
step('links', function () {
    require_once ABSPATH . 'wp-admin/includes/bookmark.php';
    $l = wp_insert_link(['link_name' => 'l', 'link_url' => 'http://x.test']);
    return $l > 0 && get_bookmark($l)->link_name === 'l';
});
step('cron', function () {
    is(wp_schedule_event(time() + 60, 'hourly', 'shop_tick') !== false, 'schedule');
    return wp_next_scheduled('shop_tick') > 0;
});
step('search', function () {
    return count((new WP_Query(['s' => 'text', 'post_type' => 'any']))->posts) > 0;
});
step('dbDelta', function () {
    global $wpdb;
    dbDelta("CREATE TABLE wp_shop_orders (\n order_id bigint(20) unsigned NOT NULL auto_increment,\n total decimal(10,2) NOT NULL default 0,\n PRIMARY KEY  (order_id)\n) {$wpdb->get_charset_collate()};");
    $wpdb->insert('wp_shop_orders', ['total' => 5]);
    is($wpdb->insert_id > 0, 'id');
    return (float) $wpdb->get_var("SELECT total FROM wp_shop_orders WHERE order_id = {$wpdb->insert_id}") === 5.0;
});
step('insert_id', function () {
    global $wpdb;
    $wpdb->insert('wp_shop_orders', ['total' => 6]);
    $a = $wpdb->insert_id;
    $wpdb->query('INSERT INTO wp_shop_orders (total) VALUES (7), (8), (9)');
    $b = $wpdb->insert_id;
    return $b > $a && (int) $wpdb->get_var('SELECT COUNT(*) FROM wp_shop_orders WHERE order_id BETWEEN ' . $b . ' AND ' . ($b + 2)) === 3;
});
step('replace', function () {
    global $wpdb;
    $wpdb->replace('wp_shop_orders', ['total' => 1]);
    $a = $wpdb->insert_id;
    $wpdb->replace('wp_shop_orders', ['order_id' => $a, 'total' => 2]);
    return (float) $wpdb->get_var("SELECT total FROM wp_shop_orders WHERE order_id = $a") === 2.0;
});
step('copied rows', function () {
    global $wpdb, $p;
    $n = $wpdb->query("INSERT INTO wp_postmeta (post_id, meta_key, meta_value) SELECT post_id, CONCAT('copy_', meta_key), meta_value FROM wp_postmeta WHERE post_id = $p");
    return $n >= 20;
});
step('copied many rows', function () {
    global $wpdb;
    $n = 0;
    for ($i = 0; $i < 4; $i++) $n = $wpdb->query("INSERT INTO wp_postmeta (post_id, meta_key, meta_value) SELECT post_id, meta_key, meta_value FROM wp_postmeta");
    return $n > 200;
});
step('upsert', function () {
    global $wpdb;
    $wpdb->query("INSERT INTO wp_options (option_name, option_value, autoload) VALUES ('up', '1', 'no') ON DUPLICATE KEY UPDATE option_value = VALUES(option_value)");
    $wpdb->query("INSERT INTO wp_options (option_name, option_value, autoload) VALUES ('up', '2', 'no') ON DUPLICATE KEY UPDATE option_value = VALUES(option_value)");
    return $wpdb->get_var("SELECT option_value FROM wp_options WHERE option_name = 'up'") === '2';
});
// Keys out of columns pass where 0 is a key.
$wpdb->query("SET SESSION sql_mode = 'NO_AUTO_VALUE_ON_ZERO'");
step('archive', function () {
    global $wpdb;
    $wpdb->query('CREATE TABLE wp_shop_archive LIKE wp_shop_orders');
    $n = $wpdb->query('INSERT INTO wp_shop_archive SELECT * FROM wp_shop_orders');
    return $n > 3;
});
step('archive by names', function () {
    global $wpdb;
    $wpdb->query('TRUNCATE wp_shop_archive');
    $n = $wpdb->query('INSERT IGNORE INTO wp_shop_archive (order_id, total) SELECT order_id, total FROM wp_shop_orders WHERE total > 1');
    return $n > 3;
});
$wpdb->query("SET SESSION sql_mode = ''");
step('privacy request', function () {
    $r = wp_create_user_request('ann@shop.test', 'export_personal_data');
    return is_int($r);
});
step('delete user, reassign', function () {
    global $u;
    require_once ABSPATH . 'wp-admin/includes/user.php';
    return wp_delete_user($u, 1);
});
step('delete post', function () {
    global $p;
    return wp_delete_post($p, true) !== false && get_post($p) === null;
});
step('upgrade', function () {
    update_option('db_version', '30000');
    wp_upgrade();
    wp_cache_flush();
    return (int) get_option('db_version') > 50000;
});
