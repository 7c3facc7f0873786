import { connect, createServer } from "node:net";
import type { AddressInfo } from "node:net";
import { once } from "node:events";
import { urlWith } from "./place.ts";

/**
 * What was asked of a server while the body ran, as seen on the wire: whenever
 * a client ends a question (a simple query, a Sync, or a Flush), it may wait
 * for the answer. Logging in is not counted; how long that takes is the
 * server's to say.
 */
export async function questionsDuring(
  url: string,
  body: (url: string, soFar: () => readonly number[]) => Promise<void>,
): Promise<number> {
  const { hostname, port } = new URL(url);
  const said: Buffer[][] = [];
  const turns: number[] = [];
  const proxy = createServer((client) => {
    const chunks: Buffer[] = [];
    const nth = said.push(chunks) - 1;
    let hasHeard = true;
    const server = connect({ host: hostname, port: Number(port) });
    server.on("data", () => (hasHeard = true));
    client.on("data", (chunk: Buffer) => {
      chunks.push(chunk);
      if (hasHeard) turns[nth] = (turns[nth] ?? 0) + 1;
      hasHeard = false;
    });
    client.pipe(server).pipe(client);
    client.on("error", () => server.destroy());
    server.on("error", () => client.destroy());
  }).listen(0, "127.0.0.1");
  await once(proxy, "listening");
  const { port: own } = proxy.address() as AddressInfo;
  try {
    await body(
      urlWith((parsed) => (parsed.port = String(own)), url),
      () => said.map((_, nth) => turns[nth] ?? 0),
    );
  } finally {
    proxy.close();
  }
  return said
    .map((chunks) => questionsIn(Buffer.concat(chunks)))
    .reduce((sum, each) => sum + each, 0);
}

function questionsIn(said: Buffer): number {
  let questions = 0;
  // The first message has a length and no type.
  let at = said.length < 4 ? said.length : said.readInt32BE(0);
  while (at + 5 <= said.length) {
    if ("QSH".includes(String.fromCodePoint(said[at] ?? 0))) questions += 1;
    at += 1 + said.readInt32BE(at + 1);
  }
  return questions;
}
