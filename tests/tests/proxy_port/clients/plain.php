<?php
// What an application does with php-redis: php plain.php PORT.
function same($is, $should) {
    if ($is !== $should) {
        throw new Exception(var_export($is, true) . ' is not ' . var_export($should, true));
    }
}

$r = new Redis();
$r->connect('127.0.0.1', (int) $argv[1]);
same($r->ping(), true);
$first = $r->incr('orders');
same($r->get('orders'), (string) $first);
same($r->incrBy('orders', 10), $first + 10);
same($r->mget(['orders', 'none']), [(string) ($first + 10), false]);
same(count(array_unique($r->rawCommand('KEYWRIGHT', 'NEXT', 'tokens', 'COUNT', '3'))), 3);
same(is_int($r->incr('flakes')), true);

$pipeline = $r->multi(Redis::PIPELINE);
for ($i = 0; $i < 10000; $i++) {
    $pipeline->incr('orders');
}
$ids = $pipeline->exec();
same($ids, range($ids[0], $ids[0] + 9999));

// Errors that begin with ERR are told by false, others thrown.
foreach ([['set', 'orders', 1], ['decr', 'orders'], ['incr', 'none'], ['incr', 'tokens'], ['incrBy', 'orders', -1]] as $wrong) {
    $r->clearLastError();
    $method = array_shift($wrong);
    try {
        same($r->$method(...$wrong), false);
        echo $r->getLastError(), "\n";
    } catch (RedisException $error) {
        echo $error->getMessage(), "\n";
    }
}
same($r->incr('orders') > $ids[9999], true);
