/** One attempt of a hook: the request and its signature, the executable and its bounds. Real sockets, real processes. */
import { once } from 'node:events';
import { chmod, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import { selfSigned } from '@pesit-node/service/testing';

import { findExecutable, runExecutable } from '../src/executable.js';
import { keyOfSecret } from '../src/fields.js';
import { mayBeAsked } from '../src/hosts.js';
import { postNotice, retryAfterOf, signatureOf } from '../src/webhook.js';

const SECRET = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw';
const KEY = keyOfSecret(SECRET) ?? Buffer.alloc(0);
const NOTICE = { id: 'msg_p5jXN8AQM9LWM0D4loKWxJek', attempt: 3, body: '{"test": 2432232314}' };
const LONG = 600_000;
const NEVER = new AbortController().signal;

test('the signature is that of the Standard Webhooks specification', () => {
  // Its vector; `openssl dgst -sha256 -mac HMAC` says the same.
  expect(signatureOf(KEY, NOTICE.id, 1614265330, NOTICE.body)).toBe('v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=');
});

test.each([
  ['without its prefix', 'MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'],
  ['too short', 'whsec_AAAA'],
  ['too long', `whsec_${Buffer.alloc(65).toString('base64')}`],
  ['no base64', 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLa_w'],
])('a secret that is %s is none', (_, secret) => {
  expect(keyOfSecret(secret)).toBeUndefined();
});

test.each([
  [undefined, undefined],
  ['120', 120_000],
  ['999999999', 3_600_000],
  ['Thu, 01 Jan 1970 00:01:00 GMT', 60_000],
  ['Wed, 31 Dec 1969 00:00:00 GMT', 0],
  ['soon', undefined],
])('Retry-After %p asks for %p ms', (header, expected) => {
  expect(retryAfterOf(header, 0)).toBe(expected);
});

test.each([
  ['https://a.example/x', [], false, undefined],
  ['http://a.example/x', [], false, 'expected https: hooks.allow-http is false'],
  ['http://a.example/x', [], true, undefined],
  ['https://a.example/x', ['*.example'], false, undefined],
  ['https://example/x', ['*.example'], false, 'hooks.allowed-hosts has no example'],
  ['https://bexample/x', ['*.example'], false, 'hooks.allowed-hosts has no bexample'],
  ['https://A.example/x', ['a.EXAMPLE'], false, undefined],
  ['https://[::1]/x', ['::1'], false, undefined],
])('%s with hosts %p and http %p', (url, hosts, http, expected) => {
  expect(mayBeAsked(url, { 'hooks.allowed-hosts': hosts, 'hooks.allow-http': http })).toBe(expected);
});

describe('a webhook', () => {
  const closers: (() => void)[] = [];
  afterEach(() => {
    for (const close of closers.splice(0)) close();
  });
  type Answer = (request: IncomingMessage, response: ServerResponse) => void;
  const serve = async (answer: Answer, tls?: { readonly cert: string; readonly key: string }): Promise<number> => {
    const server = tls === undefined ? createServer(answer) : createTlsServer(tls, answer);
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    closers.push(() => {
      server.closeAllConnections();
      server.close();
    });
    return (server.address() as AddressInfo).port;
  };
  const post = (
    url: string,
    { timeoutMs = LONG, stopped = NEVER, cas = undefined as readonly string[] | undefined } = {},
  ) => postNotice({ url, key: KEY, cas }, NOTICE, timeoutMs, stopped);

  test('posts the body with an id, the time and a signature over them', async () => {
    let seen:
      { readonly headers: IncomingMessage['headers']; readonly body: string; readonly method?: string } | undefined;
    const port = await serve((request, response) => {
      const pieces: Buffer[] = [];
      request.on('data', (piece: Buffer) => pieces.push(piece));
      request.on('end', () => {
        seen = { headers: request.headers, method: request.method ?? '', body: Buffer.concat(pieces).toString() };
        response.writeHead(204).end();
      });
    });
    expect(await post(`http://127.0.0.1:${port}/x?y=z`)).toEqual({ outcome: 'delivered', statusCode: 204 });
    const headers = seen?.headers ?? {};
    expect(seen).toMatchObject({ method: 'POST', body: NOTICE.body });
    expect(headers).toMatchObject({
      'content-type': 'application/json',
      'webhook-id': NOTICE.id,
      'webhook-attempt': '3',
    });
    const timestamp = Number(headers['webhook-timestamp']);
    expect(Math.abs(Date.now() / 1000 - timestamp)).toBeLessThan(600);
    expect(headers['webhook-signature']).toBe(signatureOf(KEY, NOTICE.id, timestamp, NOTICE.body));
  });

  const ANSWERS: readonly (readonly [string, Answer, object])[] = [
    [
      '500 with words',
      (_, response) => response.writeHead(500).end('no disk\u0000'),
      {
        outcome: 'failed',
        statusCode: 500,
        reason: 'the receiver answered 500: expected 200 to 299',
        output: 'no disk\ufffd',
      },
    ],
    [
      'a redirect',
      (_, response) => response.writeHead(307, { Location: 'http://127.0.0.1:1/' }).end(),
      { reason: 'the receiver answered 307: redirects are not followed, correct the target' },
    ],
    ['410', (_, response) => response.writeHead(410).end(), { outcome: 'failed', gone: true }],
    ['429', (_, response) => response.writeHead(429, { 'Retry-After': '7' }).end(), { retryAfterMs: 7000 }],
    ['503', (_, response) => response.writeHead(503, { 'Retry-After': '8' }).end(), { retryAfterMs: 8000 }],
    [
      '500 that wants to be asked later',
      (_, response) => response.writeHead(500, { 'Retry-After': '8' }).end(),
      { retryAfterMs: undefined },
    ],
    [
      'nothing, and closes',
      (request) => request.socket.destroy(),
      { outcome: 'failed', reason: expect.stringMatching(/^the receiver cannot be asked: .*ECONNRESET/) },
    ],
    [
      '200 without an end of its body',
      (_, response) => response.writeHead(200, { 'Content-Length': '1000000000' }).write('begun'),
      { outcome: 'delivered', statusCode: 200 },
    ],
    [
      '500 and a gigabyte',
      (_, response) => {
        const piece = Buffer.alloc(65_536, 'x');
        const more = (): void => {
          if (!response.destroyed) response.write(piece, more);
        };
        response.writeHead(500, { 'Content-Length': '1073741824' });
        more();
      },
      { outcome: 'failed', statusCode: 500, output: 'x'.repeat(4096) },
    ],
  ];
  test.each(ANSWERS)('answered with %s', async (_, answer, expected) => {
    const port = await serve(answer);
    expect(await post(`http://127.0.0.1:${port}/`)).toMatchObject(expected);
  });

  test('that gets no answer ends with its time', async () => {
    const port = await serve(() => undefined);
    const ended = await post(`http://127.0.0.1:${port}/`, { timeoutMs: 50 });
    expect(ended).toEqual({ outcome: 'failed', reason: 'the receiver did not answer within 0.05 s' });
  });

  test('that is under way when the service stops is interrupted', async () => {
    const stop = new AbortController();
    const port = await serve(() => stop.abort());
    expect(await post(`http://127.0.0.1:${port}/`, { stopped: stop.signal })).toMatchObject({ outcome: 'interrupted' });
  });

  test.each([
    ['169.254.169.254', '169.254.169.254 is a link-local address: expected another host'],
    ['[fe80::1]', 'fe80::1 is a link-local address: expected another host'],
    ['[::ffff:169.254.169.254]', '::ffff:a9fe:a9fe is a link-local address: expected another host'],
    ['[fd00:ec2::254]', 'clouds keep credentials at fd00:ec2::254: expected another host'],
    ['100.100.100.200', 'clouds keep credentials at 100.100.100.200: expected another host'],
  ])('never goes to %s, and no hook can name it', async (host, reason) => {
    const url = `http://${host}/latest`;
    expect(await post(url)).toEqual({ outcome: 'failed', reason: `the receiver cannot be asked: ${reason}` });
    expect(mayBeAsked(url, { 'hooks.allow-http': true, 'hooks.allowed-hosts': [] })).toBe(reason);
  });

  test('goes to whom the truststore vouches for, and to nobody else', async () => {
    const { certificate: cert, privateKey: key } = selfSigned('receiver', 'IP:127.0.0.1');
    const other = selfSigned('other', 'IP:127.0.0.1').certificate;
    const asked: unknown[] = [];
    const port = await serve(
      (request, response) => {
        asked.push(request.url);
        response.end();
      },
      { cert, key },
    );
    const url = `https://127.0.0.1:${port}/`;
    expect(await post(url, { cas: [cert] })).toEqual({ outcome: 'delivered', statusCode: 200 });
    const refused = { outcome: 'failed', reason: expect.stringContaining('DEPTH_ZERO_SELF_SIGNED_CERT') as unknown };
    expect(await post(url, { cas: [other] })).toMatchObject(refused);
    expect(await post(url)).toMatchObject(refused);
    expect(asked).toEqual(['/']);
  });
});

describe('an executable', () => {
  let directory: string;
  let outside: string;
  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), 'pesit-hooks-'));
    outside = await mkdtemp(join(tmpdir(), 'pesit-hooks-outside-'));
  });
  afterAll(async () => {
    for (const one of [directory, outside]) await rm(one, { recursive: true, force: true });
  });
  let count = 0;
  const script = async (lines: string, mode = 0o755): Promise<string> => {
    const name = `hook-${count++}.sh`;
    await writeFile(join(directory, name), `#!/bin/sh\n${lines}\n`);
    await chmod(join(directory, name), mode);
    return name;
  };
  const run = async (
    lines: string,
    limits: { timeoutMs?: number; killGraceMs?: number; stopped?: AbortSignal; body?: string } = {},
  ) => {
    const { timeoutMs = LONG, killGraceMs = LONG, stopped = NEVER, body = NOTICE.body } = limits;
    const path = await findExecutable(directory, await script(lines));
    return runExecutable(path, { ...NOTICE, body }, { timeoutMs, killGraceMs }, stopped);
  };

  test('gets the body on its standard input, and nothing of the environment of the node', async () => {
    const ended = await run('cat; echo; env | grep -v -e ^PWD= -e ^SHLVL= -e ^_= -e ^OLDPWD= | sort; pwd; echo "$#"');
    const environment = [
      'LANG=C.UTF-8',
      'PATH=/usr/local/bin:/usr/bin:/bin',
      'PESIT_HOOK_ATTEMPT=3',
      `PESIT_HOOK_DELIVERY=${NOTICE.id}`,
    ];
    const output = [NOTICE.body, ...environment, directory, '0', ''].join('\n');
    expect(ended).toEqual({ outcome: 'delivered', exitCode: 0, output });
  });

  test('that fails says how, with its last words', async () => {
    expect(await run('echo bad >&2; exit 3')).toEqual({
      outcome: 'failed',
      exitCode: 3,
      reason: 'the executable ended with 3: expected 0',
      output: 'bad\n',
    });
    expect(await run('kill -9 $$')).toMatchObject({ reason: 'the executable was ended by SIGKILL: expected 0' });
  });

  test('that does not read its input ends well', async () => {
    expect(await run('exit 0', { body: 'x'.repeat(5_000_000) })).toEqual({ outcome: 'delivered', exitCode: 0 });
  });

  test('that floods its output keeps the last 4 KB', async () => {
    const ended = await run('head -c 20000000 /dev/zero | tr "\\0" y; printf end');
    expect(ended.output).toBe(`${'y'.repeat(4093)}end`);
  });

  test('that leaves processes behind is ended with all of them', async () => {
    const pidFile = join(directory, 'left.pid');
    const ended = await run(`sleep 600 & echo $! > ${pidFile}; exit 0`);
    expect(ended).toMatchObject({ outcome: 'delivered' });
    const pid = (await readFile(pidFile, 'latin1')).trim();
    // A process that has ended may still wait for its parent to look.
    const state = async () => (await readFile(`/proc/${pid}/stat`, 'latin1').catch(() => ') Z')).split(') ')[1]?.[0];
    while ((await state()) !== 'Z') await new Promise(setImmediate);
  });

  test('that hangs gets SIGTERM, and SIGKILL when it does not mind', async () => {
    const late = { outcome: 'failed', reason: 'the executable did not end within 0.3 s and was ended' };
    expect(await run('exec sleep 600', { timeoutMs: 300 })).toMatchObject(late);
    const stubborn = 'trap "" TERM; while :; do sleep 0.05; done';
    expect(await run(stubborn, { timeoutMs: 300, killGraceMs: 100 })).toMatchObject(late);
    // Its 0 does not say that it has done its work.
    const polite = 'trap "exit 0" TERM; while :; do sleep 0.05; done';
    expect(await run(polite, { timeoutMs: 300 })).toMatchObject(late);
  });

  test('that runs when the service stops is ended, and interrupted', async () => {
    const stop = new AbortController();
    const ready = join(directory, 'ready');
    const running = run(`: > ${ready}; exec sleep 600`, { stopped: stop.signal });
    while ((await readFile(ready).catch(() => undefined)) === undefined) await new Promise(setImmediate);
    stop.abort();
    expect(await running).toMatchObject({ outcome: 'interrupted', reason: 'the service stopped while it ran' });
  });

  test('without its interpreter cannot be started', async () => {
    const name = 'text';
    await writeFile(join(directory, name), '#!/nowhere/sh\n', { mode: 0o755 });
    const path = await findExecutable(directory, name);
    const ended = await runExecutable(path, NOTICE, { timeoutMs: LONG }, NEVER);
    expect(ended).toMatchObject({ outcome: 'failed', reason: expect.stringContaining('cannot be started') as unknown });
  });

  const REFUSED: readonly (readonly [string, () => Promise<string>, string])[] = [
    ['is not there', () => Promise.resolve('nothing'), 'there is none'],
    ['may not be run', () => script('exit 0', 0o644), 'the service may not run it'],
    [
      'others can write',
      () => script('exit 0', 0o757),
      'it can be written by its group or by others: take these rights away',
    ],
    ['is a directory', () => Promise.resolve('..'), 'it is a link to a file outside hooks.directory'],
    [
      'is a link that leads out',
      async () => {
        await symlink('/bin/sh', join(directory, 'shell'));
        return 'shell';
      },
      'it is a link to a file outside hooks.directory',
    ],
  ];
  test.each(REFUSED)('that %s is refused', async (_, make, reason) => {
    const name = await make();
    await expect(findExecutable(directory, name)).rejects.toThrow(
      `executable ${name} of hooks.directory cannot be run: ${reason}`,
    );
  });

  test('is refused in a directory that others can write in', async () => {
    await writeFile(join(outside, 'hook'), '#!/bin/sh\n', { mode: 0o755 });
    await chmod(outside, 0o777);
    await expect(findExecutable(outside, 'hook')).rejects.toThrow(
      'hooks.directory can be written by its group or by others',
    );
  });

  test('may be a link within the directory', async () => {
    const name = await script('echo linked');
    await symlink(name, join(directory, 'current'));
    expect(await findExecutable(directory, 'current')).toBe(join(directory, name));
  });
});
