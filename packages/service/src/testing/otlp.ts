import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

/** A span as OTLP/HTTP has it in JSON. */
export interface ReceivedSpan {
  readonly name: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly kind: number;
  readonly attributes: readonly { readonly key: string; readonly value: Readonly<Record<string, unknown>> }[];
  readonly events?: readonly { readonly name: string }[];
  readonly links?: readonly { readonly spanId: string }[];
  readonly status: { readonly code?: number; readonly message?: string };
}

interface Group {
  readonly resource: { readonly attributes: ReceivedSpan['attributes'] };
  readonly scopeSpans: readonly { readonly spans: readonly ReceivedSpan[] }[];
}

/** The attributes by their names, as texts. */
export const attributesOf = ({ attributes }: Pick<ReceivedSpan, 'attributes'>): Readonly<Record<string, string>> =>
  Object.fromEntries(attributes.map(({ key, value }) => [key, String(Object.values(value)[0])]));

/** A collector that keeps what it gets at `/v1/traces`. */
export const otlpReceiver = async () => {
  const bodies: string[] = [];
  const authorizations: (string | undefined)[] = [];
  const server = createServer((req, res) => {
    const pieces: Buffer[] = [];
    req.on('data', (piece: Buffer) => pieces.push(piece));
    req.on('end', () => {
      bodies.push(`${req.method} ${req.url} ${Buffer.concat(pieces).toString()}`);
      authorizations.push(req.headers.authorization);
      res.writeHead(200, { 'Content-Type': 'application/json' }).end('{}');
    });
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const groups = (): readonly Group[] =>
    bodies.flatMap(
      (body) => (JSON.parse(body.replace('POST /v1/traces ', '')) as { resourceSpans: Group[] }).resourceSpans,
    );
  return {
    endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    /** All that came, as it came. */
    text: () => bodies.join('\n'),
    authorizations,
    resources: () => groups().map(({ resource }) => attributesOf(resource)),
    spans: () => groups().flatMap(({ scopeSpans }) => scopeSpans.flatMap(({ spans }) => spans)),
    close: async (): Promise<void> => {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
};
