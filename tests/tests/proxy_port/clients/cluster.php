<?php
// Takes ids of an ordered tag until it is killed, with php-redis in cluster mode: php cluster.php PORT. A line for each id, and for each error.
$cluster = null;
for (;;) {
    try {
        // As a worker does that begins anew after an error.
        $cluster = $cluster ?? new RedisCluster(null, ["127.0.0.1:$argv[1]", "127.0.0.1:$argv[2]"]);
        $id = $cluster->incr('orders');
        if ($id === false) {
            throw new Exception($cluster->getLastError());
        }
        echo $id, "\n";
    } catch (Exception $error) {
        echo 'error: ', $error->getMessage(), "\n";
        $cluster = null;
    }
}
