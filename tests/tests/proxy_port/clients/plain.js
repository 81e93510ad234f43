// What an application does with ioredis: node plain.js PORT.
const assert = require("assert");
const Redis = require("ioredis");

async function main() {
  const r = new Redis({ port: Number(process.argv[2]), connectionName: "tests" });
  assert.strictEqual(await r.ping(), "PONG");
  const first = await r.incr("orders");
  assert.strictEqual(await r.get("orders"), String(first));
  assert.strictEqual(await r.incrby("orders", 10), first + 10);
  assert.deepStrictEqual(await r.mget("orders", "none"), [String(first + 10), null]);
  const uuids = await r.call("KEYWRIGHT", "NEXT", "tokens", "COUNT", 3);
  assert.strictEqual(new Set(uuids).size, 3);

  const pipeline = r.pipeline();
  for (let i = 0; i < 10000; i++) pipeline.incr("orders");
  const ids = (await pipeline.exec()).map(([error, id]) => (assert.ifError(error), id));
  ids.forEach((id, place) => assert.strictEqual(id, ids[0] + place));

  const refused = [
    () => r.set("orders", 1),
    () => r.decr("orders"),
    () => r.incr("none"),
    () => r.incr("tokens"),
    () => r.incrby("orders", -1),
    () => r.multi().incr("orders").exec(),
  ];
  for (const wrong of refused) {
    await assert.rejects(wrong, (error) => (console.log(error.message), true));
  }

  // What is asked at once on one connection goes out as a pipeline of its own accord.
  const all = await Promise.all(Array.from({ length: 4000 }, () => r.incr("orders")));
  assert.strictEqual(new Set(all).size, 4000);
  // Ids beyond 2^53 are told whole as text.
  const text = new Redis({ port: Number(process.argv[2]), stringNumbers: true });
  assert.match(await text.incr("flakes"), /^\d{18,19}$/);
  await r.quit();
  await text.quit();
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
