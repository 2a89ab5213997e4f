/** Commands for the REST interface, against a service that answers what a test tells it. */
import { chmod, readFile, stat, symlink, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';

import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';

import { useConsole } from './support/console.js';
import type { Console } from './support/console.js';

interface Call {
  readonly method: string;
  readonly url: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: unknown;
}

type Answer = readonly [status: number, body: unknown];

const DOCUMENT = {
  paths: {
    '/api/v1/config/partners': {
      post: { requestBody: { content: { 'application/json': { schema: { $ref: '#/components/schemas/Partner' } } } } },
    },
    '/api/v1/config/partners/{partnerId}': {
      put: { requestBody: { content: { 'application/json': { schema: { $ref: '#/components/schemas/Partner' } } } } },
    },
  },
  components: {
    schemas: {
      Partner: {
        type: 'object',
        properties: {
          partnerId: { type: 'string' },
          enabled: { type: 'boolean' },
          maxConnections: { anyOf: [{ type: 'integer' }, { type: 'null' }] },
          allowedFiles: { type: 'array', items: { type: 'string' } },
          description: { type: ['string', 'null'] },
        },
      },
    },
  },
};

let user: Console;
let url: string;
let calls: Call[];
let answers: Record<string, Answer>;
/** Paths whose answers end in the middle. */
let cut: Set<string>;
let close: () => Promise<unknown>;

beforeEach(async () => {
  user = await useConsole();
  calls = [];
  cut = new Set();
  answers = { 'GET /openapi.json': [200, DOCUMENT] };
  const server = createServer((req, res) => {
    const chunks: Buffer[] = [];
    req.on('data', (chunk: Buffer) => chunks.push(chunk));
    req.on('end', () => {
      const text = Buffer.concat(chunks).toString();
      const { method = '', url: path = '', headers } = req;
      calls.push({ method, url: path, headers, body: text === '' ? undefined : JSON.parse(text) });
      const [status, body] = answers[`${method} ${path.split('?')[0]}`] ?? [404, { error: 'NOT_FOUND', message: 'no' }];
      if (cut.has(path)) {
        res.writeHead(status, { 'content-length': 1000 }).write(body, () => res.destroy());
        return;
      }
      res.writeHead(status, { 'content-type': 'application/json' });
      res.end(body === undefined ? '' : typeof body === 'string' ? body : JSON.stringify(body));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  close = () => new Promise((resolve) => server.close(resolve));
});
afterEach(async () => {
  await close();
  await user.close();
});

const profiles = () => join(user.directory, '.config/pesit/profiles.json');
const setProfile = () => user.pesit(['profile', 'set', 'prod', '--server', url, '--user', 'ann', '--password', 'a:b']);
const asked = (): string[] => calls.map(({ method, url: path }) => `${method} ${path}`);

describe('profiles', () => {
  test('are kept in a file that nobody else may read', async () => {
    expect((await setProfile()).code).toBe(0);
    expect((await stat(profiles())).mode & 0o777).toBe(0o600);
    const listed = await user.pesit(['profile', 'list']);
    expect(listed.out).toContain('prod');
    expect(listed.out).not.toContain('a:b');
    await chmod(profiles(), 0o644);
    const refused = await user.pesit(['partners', 'list']);
    expect(refused.code).toBe(3);
    expect(refused.error).toContain('run chmod 600');
    expect(calls).toEqual([]);
  });

  test('the first one is in use, another when it is asked for, none when it was removed', async () => {
    await setProfile();
    await user.pesit(['profile', 'set', 'other', '--server', 'http://127.0.0.1:1']);
    answers['GET /api/v1/config/partners'] = [200, []];
    expect((await user.pesit(['partners', 'list'])).code).toBe(0);
    expect(calls[0]?.headers.authorization).toBe(`Basic ${Buffer.from('ann:a:b').toString('base64')}`);
    expect((await user.pesit(['partners', 'list', '--profile', 'other'])).code).toBe(4);
    expect((await user.pesit(['partners', 'list', '--profile', 'none'])).error).toContain('there are: prod, other');
    expect((await user.pesit(['servers', 'list'])).error).toContain('has no address of the client app');
    await user.pesit(['profile', 'use', 'other']);
    await user.pesit(['profile', 'delete', 'other']);
    expect((await user.pesit(['partners', 'list'])).error).toContain('no service is known yet');
  });

  test('an API key takes the place of the login', async () => {
    await user.pesit(['profile', 'set', 'prod', '--server', url, '--api-key', 'k1']);
    answers['GET /api/v1/config/partners'] = [200, []];
    await user.pesit(['partners', 'list']);
    expect(calls[0]?.headers).toMatchObject({ 'x-api-key': 'k1' });
    expect(calls[0]?.headers.authorization).toBeUndefined();
  });

  test.each(['', '{', '{"profiles":[]}', '{"profiles":{"a":{"server":1}}}'])(
    'a file that is none: %j',
    async (text) => {
      await setProfile();
      await writeFile(profiles(), text, { mode: 0o600 });
      expect((await user.pesit(['partners', 'list'])).code).toBe(text === '{"profiles":[]}' ? 2 : 3);
      expect(await readFile(profiles(), 'utf8')).toBe(text);
    },
  );
});

describe('lists and objects', () => {
  beforeEach(setProfile);

  test('what is in use is deleted by force alone, and a keystore has no force', async () => {
    answers['DELETE /api/v1/config/partners/ACME'] = [204, undefined];
    expect((await user.pesit(['partners', 'delete', 'ACME'])).out).toBe('ACME removed\n');
    await user.pesit(['partners', 'delete', 'ACME', '--force']);
    const path = 'DELETE /api/v1/config/partners/ACME';
    expect(asked()).toEqual([path, `${path}?force=true`]);
    expect((await user.pesit(['keystores', 'delete', 'K', '--force'])).code).toBe(2);
  });

  test('a list is a table; its filters and pages are those of the service', async () => {
    const content = [{ id: 'x', status: 'FAILED', partnerId: 'ACME', filename: 'a\u001b[31mb', diagnostic: null }];
    answers['GET /api/v1/transfers'] = [
      200,
      { content, totalElements: 31, totalIsExact: true, number: 0, totalPages: 31 },
    ];
    const ran = await user.pesit(['transfers', 'list', 'status=FAILED', 'q=a b', '--size', '1', '--app', 'server']);
    expect(asked()).toEqual(['GET /api/v1/transfers?status=FAILED&q=a+b&size=1']);
    expect(ran.out).toBe('ID  PARTNERID  FILENAME  STATUS  DIAGNOSTIC\nx   ACME       a·[31mb   FAILED  -\n');
    expect(ran.error).toBe('1 of 31 (page 0 of 31; --page, --size)\n');
    const json = await user.pesit(['transfers', 'list', '--json']);
    expect(json.json()).toMatchObject({ totalElements: 31 });
  });

  test('a transfer is shown with its attempts as a table, and added up with filters', async () => {
    const attemptList = [
      {
        number: 1,
        status: 'FAILED',
        diagnostic: '3-310',
        sessionId: null,
        terms: { fromPoint: 0, asked: { crc: true } },
      },
      { number: 2, status: 'COMPLETED', diagnostic: '0-000', sessionId: null, terms: { fromPoint: 7, asked: {} } },
    ];
    answers['GET /api/v1/transfers/7'] = [200, { id: 7, attempts: 2, attemptList }];
    const { out } = await user.pesit(['transfers', 'show', '7', '--app', 'server']);
    expect(out.split('\n').map((line) => line.trimEnd())).toEqual([
      'id           7',
      'attempts     2',
      '',
      'attemptList:',
      '  NUMBER  STATUS     DIAGNOSTIC  TERMS.FROMPOINT',
      '  1       FAILED     3-310       0',
      '  2       COMPLETED  0-000       7',
      '',
    ]);
    answers['GET /api/v1/transfers/stats'] = [200, { totalTransfers: 3, groups: [{ value: 'ACME', transfers: 3 }] }];
    const stats = await user.pesit(['transfers', 'stats', 'groupBy=partner', 'from=2026-11-01', '--app', 'server']);
    expect(asked().at(-1)).toBe('GET /api/v1/transfers/stats?groupBy=partner&from=2026-11-01');
    expect(stats.out).toContain('ACME');
  });

  test('an id never leaves its place in the path', async () => {
    answers['GET /api/v1/config/partners/..%2F..%2Flicense'] = [200, { partnerId: '../../license' }];
    expect((await user.pesit(['partners', 'show', '../../license'])).code).toBe(0);
  });

  test('values get the type that the service expects', async () => {
    answers['POST /api/v1/config/partners'] = [201, { partnerId: '007' }];
    const pairs = ['partnerId=007', 'enabled=true', 'maxConnections=5', 'allowedFiles=A, B', 'description=true'];
    expect((await user.pesit(['partners', 'create', ...pairs])).code).toBe(0);
    expect(calls.at(-1)?.body).toEqual({
      ...{ partnerId: '007', enabled: true, maxConnections: 5, allowedFiles: ['A', 'B'], description: 'true' },
    });
    answers['PUT /api/v1/config/partners/007'] = [200, {}];
    await user.pesit(['partners', 'update', '007', 'maxConnections=null', 'allowedFiles:=["C"]', 'description=']);
    expect(calls.at(-1)?.body).toEqual({ maxConnections: null, allowedFiles: ['C'], description: '' });
  });

  test('fields come from a file, too; a field that there is not is named before anything is changed', async () => {
    await writeFile(join(user.directory, 'p.json'), '{"partnerId":"A","enabled":false}');
    answers['POST /api/v1/config/partners'] = [201, {}];
    await user.pesit(['partners', 'create', '--from', 'p.json', 'enabled=true']);
    expect(calls.at(-1)?.body).toEqual({ partnerId: 'A', enabled: true });
    const wrong = await user.pesit(['partners', 'create', 'partnerID=A']);
    expect(wrong).toMatchObject({ code: 2 });
    expect(wrong.error).toContain('there is no field partnerID; there are: partnerId, enabled');
    expect((await user.pesit(['partners', 'update', 'A'])).error).toContain('nothing to change');
    expect((await user.pesit(['partners', 'create', 'oops'])).error).toContain('expected name=value, got "oops"');
  });
});

describe('what a service refuses is said in its words', () => {
  beforeEach(setProfile);

  test.each([
    [400, 9],
    [401, 5],
    [403, 5],
    [402, 9],
    [404, 6],
    [409, 9],
    [429, 10],
    [500, 10],
    [503, 10],
  ])('%i → %i', async (status, code) => {
    const body = { error: 'CODE', message: 'Not so: x: expected y', details: [{ field: 'x', message: 'expected y' }] };
    answers['GET /api/v1/config/partners'] = [status, body];
    const ran = await user.pesit(['partners', 'list']);
    expect(ran).toMatchObject({ code, out: '', error: `pesit: Not so\n  x: expected y (${status} CODE)\n` });
    expect((await user.pesit(['partners', 'list', '--json'])).json()).toEqual(body);
  });

  test('an answer of something else is no crash', async () => {
    answers['GET /api/v1/config/partners'] = [200, '<html>'];
    expect((await user.pesit(['partners', 'list'])).error).toBe('nothing found\n');
    answers['GET /api/v1/config/partners'] = [502, '<html>'];
    expect((await user.pesit(['partners', 'list'])).error).toContain('is this a service of ours?');
  });

  test('a test that failed, and a service that is down, are told by the exit code', async () => {
    await user.pesit(['profile', 'set', 'prod', '--client', url]);
    answers['POST /api/v1/servers/1/test'] = [200, { success: false, errorCode: 'TIMEOUT', message: 'silence' }];
    expect(await user.pesit(['servers', 'test', '1'])).toMatchObject({ code: 7 });
    answers['GET /actuator/health'] = [503, { status: 'DOWN', components: {} }];
    expect(await user.pesit(['status'])).toMatchObject({ code: 10, error: '' });
  });

  test('a download goes to a new file', async () => {
    answers['GET /api/v1/transfers/x/content'] = [200, 'content'];
    const ran = await user.pesit(['transfers', 'download', 'x', '--app', 'server', '--file', 'out']);
    expect(ran.code).toBe(0);
    expect(await readFile(join(user.directory, 'out'), 'utf8')).toBe('content');
    expect((await user.pesit(['transfers', 'download', 'x', '--app', 'server', '--file', 'out'])).code).toBe(3);
    const none = await user.pesit(['transfers', 'download', 'y', '--app', 'server', '--file', 'none']);
    expect(none.code).toBe(6);
    await expect(stat(join(user.directory, 'none'))).rejects.toThrow('ENOENT');
  });

  test('a download that is cut off leaves nothing, and says that the way to the service is in the way', async () => {
    cut.add('/api/v1/transfers/x/content');
    answers['GET /api/v1/transfers/x/content'] = [200, 'content'];
    const ran = await user.pesit(['transfers', 'download', 'x', '--app', 'server', '--file', 'out']);
    expect(ran).toMatchObject({ code: 4, out: '' });
    expect(ran.error).toMatch(/^pesit: the answer was cut off: /);
    await expect(stat(join(user.directory, 'out'))).rejects.toThrow('ENOENT');
  });

  test('a disk that fills while profiles are written leaves them as they were', async () => {
    const before = await readFile(profiles(), 'utf8');
    // Each write to it fails with ENOSPC.
    await symlink('/dev/full', `${profiles()}.new`);
    const ran = await user.pesit(['profile', 'set', 'other', '--client', url]);
    expect(ran).toMatchObject({ code: 3, out: '' });
    expect(ran.error).toMatch(/^pesit: .*profiles\.json cannot be written \(ENOSPC: .*\): it is as it was/);
    expect(await readFile(profiles(), 'utf8')).toBe(before);
    expect((await user.pesit(['profile', 'list', '--profiles', 'x/\u0000'])).code).toBe(3);
  });
});

test('a transfer is asked for with its priority, its time and its order', async () => {
  const text = { type: 'string' };
  const schema = { type: 'object', properties: { server: text, filename: text, virtualFile: text } };
  const post = { requestBody: { content: { 'application/json': { schema } } } };
  answers['GET /openapi.json'] = [200, { paths: { '/api/v1/transfers/send': { post } } }];
  answers['POST /api/v1/transfers/send'] = [202, { id: '1', status: 'PENDING' }];
  const flags = ['--priority', '0', '--not-before', '2026-11-21T09:30:15Z', '--expires-at', '2026-11-22T00:00:00Z'];
  const fields = ['server=bank', 'filename=day.txt', 'virtualFile=PAYMENTS'];
  await user.pesit(['profile', 'set', 'prod', '--client', url, '--user', 'ann', '--password', 'a:b']);
  const { code } = await user.pesit(['transfers', 'send', ...fields, ...flags, '--ordered', '--wait', '30']);
  expect(code).toBe(0);
  expect(asked().at(-1)).toBe('POST /api/v1/transfers/send?wait=30');
  expect(calls.at(-1)?.body).toEqual({
    ...{ server: 'bank', filename: 'day.txt', virtualFile: 'PAYMENTS', priority: 0, ordered: true },
    ...{ notBefore: '2026-11-21T09:30:15Z', expiresAt: '2026-11-22T00:00:00Z' },
  });
});

describe('what runs', () => {
  const EVENTS = '/api/v1/transfers/events';
  const event = (name: string, data: object, id?: string): string =>
    `${id === undefined ? '' : `id: ${id}\n`}event: ${name}\ndata: ${JSON.stringify(data)}\n\n`;
  const record = { id: 7, direction: 'SEND', filename: 'a.csv', status: 'IN_PROGRESS', bytesTransferred: 0 };
  const ONE =
    'retry: 2000\n\n' +
    event('transfer', record, 'x-1') +
    ': heartbeat\n\n' +
    event('progress', [{ id: 7, bytesTransferred: 512, rate: 256, estimatedEnd: null, node: 'pod-1' }]) +
    event('transfer', { ...record, status: 'COMPLETED', bytesTransferred: 1024 }, 'over');

  test('watch of one transfer: a JSON line an event, until it is over', async () => {
    await setProfile();
    answers['GET /api/v1/transfers/7/events'] = [200, ONE];
    const { code, out } = await user.pesit(['transfers', 'watch', 7, '--app', 'server']);
    const lines = out
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as { event: string });
    expect([code, lines.map((line) => line.event)]).toEqual([0, ['transfer', 'progress', 'transfer']]);
    expect(lines[2]).toEqual({ event: 'transfer', data: { ...record, status: 'COMPLETED', bytesTransferred: 1024 } });
    expect(calls[0]?.headers.accept).toBe('text/event-stream');
  });

  test('on a terminal a table that is drawn again', async () => {
    await setProfile();
    answers['GET /api/v1/transfers/7/events'] = [200, ONE];
    const { code, out, error } = await user.pesit(['transfers', 'watch', 7], { isTTY: true });
    expect([code, out]).toEqual([0, '']);
    expect(error).toMatch(
      /7 +SEND +a\.csv +IN_PROGRESS +512 +256[^]*\u001b\[2A\r\u001b\[J[^]*7 +SEND +a\.csv +COMPLETED +1024 +-/,
    );
  });

  test('all: the list when the service says so; a stream that is cut off is read again from where it was', async () => {
    await setProfile();
    answers[`GET ${EVENTS}`] = [
      200,
      `${event('reset', { reason: 'new' }, 'x-5')}${event('transfer', { ...record, id: 9 }, 'x-6')}`,
    ];
    answers['GET /api/v1/transfers'] = [200, { content: [record] }];
    cut.add(EVENTS);
    const end = new AbortController();
    const heard = (): void => {
      if (asked().filter((one) => one.endsWith(EVENTS)).length === 2) end.abort();
    };
    const { code, error } = await user.pesit(['transfers', 'watch'], { isTTY: true, signal: end.signal, heard });
    expect(code).toBe(130);
    expect(error).toContain('the answer was cut off');
    expect(error).toMatch(/7 +SEND[^]*9 +SEND/);
    expect(asked()[1]).toBe('GET /api/v1/transfers?status=IN_PROGRESS&size=100');
    expect(calls.filter(({ url: path }) => path === EVENTS).map(({ headers }) => headers['last-event-id'])).toEqual([
      undefined,
      'x-6',
    ]);
  });

  test('sessions of a listener are listed and ended; a transfer of the server app is cancelled', async () => {
    await setProfile();
    const transfer = { id: 3, filename: 'b.csv', bytesTransferred: 12 };
    const session = { id: 's1', partnerId: 'ACME', remoteAddress: '10.0.0.1', state: 'TRANSFERRING', transfer };
    answers['GET /api/v1/servers/NODE1/sessions'] = [200, { sessions: [session], silentPods: ['pod-2'] }];
    const listed = await user.pesit(['sessions', 'list', 'NODE1']);
    expect(listed.out).toMatch(/s1 +ACME +10\.0\.0\.1 +TRANSFERRING +b\.csv +12/);
    expect(listed.error).toContain('without those of pod-2');
    answers['DELETE /api/v1/servers/NODE1/sessions/s1'] = [204, undefined];
    expect(await user.pesit(['sessions', 'end', 'NODE1', 's1'])).toMatchObject({ code: 0, out: 's1 ended\n' });
    answers['POST /api/v1/transfers/7/cancel'] = [202, { ...record, status: 'CANCELLED' }];
    const cancelled = await user.pesit(['transfers', 'cancel', 7, '--app', 'server']);
    expect([cancelled.code, cancelled.out]).toEqual([0, expect.stringContaining('CANCELLED')]);
  });
});
