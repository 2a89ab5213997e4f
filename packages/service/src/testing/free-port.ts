import { randomInt } from 'node:crypto';
import { createServer } from 'node:net';

/** A port that is free at this moment, and that the system gives to no outgoing connection (those are above 32,767). */
export const freePort = async (): Promise<number> => {
  for (;;) {
    const port = randomInt(12_000, 32_000);
    const server = createServer();
    const isFree = await new Promise<boolean>((resolve) => {
      server.once('error', () => resolve(false));
      server.listen(port, '0.0.0.0', () => server.close(() => resolve(true)));
    });
    if (isFree) return port;
  }
};
