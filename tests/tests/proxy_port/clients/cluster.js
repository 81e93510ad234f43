// Takes ids of an ordered tag until it is killed, with ioredis in cluster mode: node cluster.js PORT. A line for each id, and for each error.
const { Cluster } = require("ioredis");

const cluster = new Cluster([{ host: "127.0.0.1", port: Number(process.argv[2]) }]);
cluster.on("error", () => {});

async function main() {
  for (;;) {
    try {
      console.log(await cluster.incr("orders"));
    } catch (error) {
      console.log(`error: ${error.message}`);
    }
  }
}

main();
