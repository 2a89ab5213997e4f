/** Drives the operations of an app with requests that it must refuse, or survive. */
import { Agent, createServer, request as httpRequest } from 'node:http';
import type { RequestListener } from 'node:http';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';

import fc from 'fast-check';
import type { Express } from 'express';

import type { Database } from '../../database/types.js';
import { operationsOfApp } from '../../http/app.js';
import { ANY_QUERY } from '../../http/validate.js';
import type { OpenApiDocument } from '../../openapi/document.js';
import { answerViolations } from '../openapi.js';
import { attacksOn } from './attacks.js';
import type { Attack, Target } from './attacks.js';

export interface HostileOptions {
  readonly app: Express;
  readonly authorization: string;
  /** `http.max-body`. */
  readonly maxBody: number;
  readonly database: Database;
  /** Whose tables a refused request leaves as they are. */
  readonly schema: string;
  /** Changed behind an answer: columns of tables, or whole ones. */
  readonly besides: Readonly<Record<string, readonly string[] | 'all'>>;
  /** Values of the parameters of a path: of things that are there, or not. */
  readonly params: (path: string) => Readonly<Record<string, string>>;
  /** Bodies that are taken, by `POST /path`. Default: an empty one, which most refuse whatever else is wrong. */
  readonly bodies: Readonly<Record<string, object>>;
  /** Makes everything as it was, after a request that was taken. */
  readonly reset: () => Promise<void>;
}

/** How many requests, and which: `PESIT_HOSTILE_RUNS`, `PESIT_HOSTILE_SEED` (set by `npm run fuzz -- --rest`). */
const RUNS = 500;
const SEED = 20_261_122;

/** After so many wrong answers it ends. */
const MAX_WRONG = 20;

export interface HostileOutcome {
  /** Makes the same requests again. */
  readonly seed: string;
  refused: number;
  taken: number;
  readonly wrong: string[];
}

interface Answered {
  readonly status: number;
  readonly contentType: string | undefined;
  readonly allow: string | undefined;
  readonly text: string;
}

const short = (text: string): string => (text.length > 300 ? `${text.slice(0, 300)}… (${text.length})` : text);

const shown = ({ what, method, target, headers, body }: Attack): string =>
  `${what}: ${method} ${short(target)} ${short(JSON.stringify(headers))} ${short(body?.toString() ?? '')}`;

/** Sends it over a connection of its own kind: Node.js writes the target as it is. */
const exchange = (port: number, agent: Agent, authorization: string, attack: Attack): Promise<Answered> =>
  new Promise((resolve, reject) => {
    const { method, target, headers, body = Buffer.alloc(0) } = attack;
    const length = method === 'GET' && body.length === 0 ? {} : { 'Content-Length': String(body.length) };
    const sent = httpRequest({
      ...{ host: '127.0.0.1', port, agent, method, path: target },
      headers: { Authorization: authorization, ...length, ...headers },
    });
    sent.on('error', reject);
    sent.on('response', (response) => {
      const { statusCode: status = 0, headers: answered } = response;
      const { 'content-type': type, allow } = answered;
      const pieces: Buffer[] = [];
      const done = (): void => {
        resolve({ status, contentType: type, allow, text: Buffer.concat(pieces).toString() });
      };
      // It has no end.
      if (type?.startsWith('text/event-stream')) {
        done();
        sent.destroy();
        return;
      }
      response.on('data', (piece: Buffer) => pieces.push(piece));
      response.on('error', reject);
      response.on('end', done);
    });
    sent.end(body);
  });

const detailsOf = (text: string): readonly { readonly field: string; readonly message: string }[] =>
  (JSON.parse(text) as { details?: { field: string; message: string }[] }).details ?? [];

/** The faults of an answer. */
const problemsOf = (document: OpenApiDocument, attack: Attack, answered: Answered): readonly string[] => {
  const { method, target, statuses, fields } = attack;
  const { status, contentType, text, allow } = answered;
  if (status >= 500) return [`${status}: a fault of the service`];
  const path = target.split('?', 1)[0] ?? '/';
  const problems = [...answerViolations(document, { method, path, status, contentType, text })];
  if (statuses !== undefined && !statuses.includes(status)) problems.push(`expected ${statuses.join(' or ')}`);
  if (status === 405 && (allow ?? '') === '') problems.push('405 without Allow');
  if (status !== 400 || !(contentType ?? '').startsWith('application/json')) return problems;
  const named = detailsOf(text);
  if (named.length === 0) problems.push('no field is named');
  if (named.some(({ message }) => message === '')) problems.push('a field is named without a word');
  if (fields !== undefined && statuses?.length === 1) {
    const isNamed = named.some(({ field }) =>
      fields.some((one) => field === one || field.startsWith(`${one}.`) || field.startsWith(`${one}[`)),
    );
    if (!isNamed)
      problems.push(`expected ${fields.join(' or ')} to be named, got ${named.map(({ field }) => field).join()}`);
  }
  return problems;
};

/** By table: what changes when one of its rows does. */
type Fingerprint = ReadonlyMap<string, string>;

/** The tables that are not as they were. */
const changedIn = (before: Fingerprint, after: Fingerprint): readonly string[] =>
  [...after].filter(([name, rows]) => before.get(name) !== rows).map(([name]) => name);

const fingerprintOf = async ({
  database: { knex },
  schema,
  besides,
}: HostileOptions): Promise<() => Promise<Fingerprint>> => {
  const tables = await knex('pg_tables').where({ schemaname: schema }).pluck<string[]>('tablename');
  const each = tables.flatMap((name) => {
    const left = besides[name] ?? [];
    if (left === 'all') return [];
    const row = left.reduce((text, column) => `${text} - '${column}'`, 'to_jsonb(t)');
    return [`select '${name}' as name, count(*), sum(hashtextextended((${row})::text, 0)) from ${schema}.${name} t`];
  });
  return async () => {
    const { rows } = await knex.raw<{ rows: { name: string }[] }>(each.join(' union all '));
    return new Map(rows.map((row) => [row.name, JSON.stringify(row)]));
  };
};

const targetsOf = (document: OpenApiDocument, { app, params, bodies, maxBody }: HostileOptions): readonly Target[] =>
  operationsOfApp(app).map(({ method, path, operation: { query } }) => {
    const template = path.replace(/:(\w+)/g, '{$1}');
    const operation = document.paths[template]?.[method];
    if (operation === undefined) throw new Error(`${method} ${template} is not in the document`);
    const name = `${method.toUpperCase()} ${template}`;
    const takes = operation.requestBody?.content['application/json'] !== undefined;
    return {
      ...{ document, method: method.toUpperCase(), template, operation, maxBody, anyQuery: query === ANY_QUERY },
      ...{ params: params(template), body: takes ? (bodies[name] ?? {}) : undefined },
    };
  });

const serve = async (app: RequestListener) => {
  const server = createServer(app).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const close = async (): Promise<void> => {
    server.closeAllConnections();
    server.close();
    await once(server, 'close');
  };
  return { port, close };
};

/**
 * Sends hostile requests to every operation of the app: wrong types, unknown fields, huge and deep values, broken JSON, other
 * methods, content types and encodings, strange queries and paths. Each must be refused in words with the field named, and
 * change nothing; or be one that may be taken.
 * @returns also, of the answers that were wrong, what was asked, and what was answered
 */
export const driveHostile = async (options: HostileOptions): Promise<HostileOutcome> => {
  // eslint-disable-next-line no-restricted-properties -- the harness belongs to the tests, which have no composition root
  const { PESIT_HOSTILE_RUNS: runs = RUNS, PESIT_HOSTILE_SEED: seed = SEED } = process.env;
  const { port, close } = await serve(options.app);
  const agent = new Agent({ keepAlive: true });
  const outcome: HostileOutcome = { seed: String(seed), refused: 0, taken: 0, wrong: [] };
  const call = (attack: Attack): Promise<Answered> => exchange(port, agent, options.authorization, attack);
  try {
    const { text } = await call({ what: 'the document', method: 'GET', target: '/openapi.json', headers: {} });
    const document = JSON.parse(text) as OpenApiDocument;
    await options.reset();
    const fingerprint = await fingerprintOf(options);
    let before = await fingerprint();
    const attacks = targetsOf(document, options).map((target) => fc.oneof(...attacksOn(target)));
    for (const attack of fc.sample(fc.oneof(...attacks), { numRuns: Number(runs), seed: Number(seed) })) {
      const answered = await call(attack).catch((error: unknown) => {
        throw new Error(`${shown(attack)}\n  no answer (seed ${seed})`, { cause: error });
      });
      const problems = [...problemsOf(document, attack, answered)];
      const changed = changedIn(before, await fingerprint());
      const isTaken = answered.status < 400;
      if (!isTaken && changed.length > 0) problems.push(`it was refused, and changed ${changed.join(', ')}`);
      outcome[isTaken ? 'taken' : 'refused'] += 1;
      if (changed.length > 0) {
        await options.reset();
        before = await fingerprint();
      }
      if (problems.length === 0) continue;
      outcome.wrong.push(`${shown(attack)}\n  ${answered.status} ${short(answered.text)}\n  ${problems.join('\n  ')}`);
      if (outcome.wrong.length === MAX_WRONG) break;
    }
    return outcome;
  } finally {
    agent.destroy();
    await close();
  }
};
