/** A receiver of webhooks, for services that are killed. */
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

/** Settings of a service that may tell it; its deliveries may be taken over soon after a kill. */
export const HOOK_SETTINGS = { 'hooks.webhooks': true, 'hooks.allow-http': true, 'hooks.webhook-timeout': 1 };
const SECRET = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw';

/** Takes all that it is told. */
export class HookReceiver {
  /** Ids of the deliveries by event and record of the transfer: `transfer.completed 17` → each id, as often as it came. */
  readonly told = new Map<string, string[]>();
  readonly #server = createServer((request, response) => {
    const pieces: Buffer[] = [];
    request.on('data', (piece: Buffer) => pieces.push(piece));
    request.on('end', () => {
      const { type, data } = JSON.parse(Buffer.concat(pieces).toString()) as { type: string; data: { id: unknown } };
      const key = `${type} ${String(data.id)}`;
      this.told.set(key, [...(this.told.get(key) ?? []), String(request.headers['webhook-id'])]);
      response.end();
    });
  });

  async start(): Promise<void> {
    this.#server.listen(0, '127.0.0.1');
    await once(this.#server, 'listening');
  }

  /** A hook that tells it of everything. */
  get hook() {
    const { port } = this.#server.address() as AddressInfo;
    return { hookId: 'all', target: `http://127.0.0.1:${port}/`, secret: SECRET };
  }

  /** What it was told that is another event, or that came under more than one id. */
  unlike(event: string): readonly unknown[] {
    return [...this.told].filter(([key, ids]) => !key.startsWith(`${event} `) || new Set(ids).size !== 1);
  }

  close(): void {
    this.#server.closeAllConnections();
    this.#server.close();
  }
}
