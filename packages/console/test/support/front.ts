/** A server between the browser and an app: it can go away and come back, and answer some paths by itself. */
import { createServer, request } from 'node:http';
import type { ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface Front {
  readonly address: string;
  /** Ends every connection, and takes no other. */
  readonly goAway: () => Promise<void>;
  /** At the same address. */
  readonly comeBack: () => Promise<void>;
}

/** @param own answers by path; everything else is answered by the app */
export const startFront = async (
  app: string,
  own: Readonly<Record<string, (answer: ServerResponse) => void>> = {},
): Promise<Front> => {
  const server = createServer((asked, answer) => {
    const mine = own[new URL(asked.url ?? '/', app).pathname];
    if (mine !== undefined) {
      mine(answer);
      return;
    }
    const { method, headers } = asked;
    const passed = request(new URL(asked.url ?? '/', app), { method, headers }, (given) => {
      answer.writeHead(given.statusCode ?? 502, given.headers);
      given.pipe(answer);
    });
    passed.on('error', () => answer.destroy());
    answer.on('close', () => passed.destroy());
    asked.pipe(passed);
  });
  const listen = (port: number): Promise<void> => new Promise((resolve) => server.listen(port, '127.0.0.1', resolve));
  await listen(0);
  const { port } = server.address() as AddressInfo;
  return {
    address: `http://127.0.0.1:${port}`,
    goAway: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
    comeBack: () => listen(port),
  };
};
