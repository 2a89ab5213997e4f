/** The REST interface over HTTPS, asked by `curl`, which shares no code with it. */
import { execFile } from 'node:child_process';
import { X509Certificate } from 'node:crypto';
import { EventEmitter, once } from 'node:events';
import { mkdtempSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import type { Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createSecureContext } from 'node:tls';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';

import { afterAll, afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { createHttpApp, loadConfig, RestCertificate, runService } from '@pesit-node/service';
import type { HttpsTools, RestIdentity, ServiceDefinition, ServiceGround } from '@pesit-node/service';
import { captureLog, freePort, selfSigned, testMetrics } from '@pesit-node/service/testing';

const run = promisify(execFile);
const identity = (name: string): RestIdentity => {
  const { certificate, privateKey } = selfSigned(name, 'DNS:localhost', 'IP:127.0.0.1');
  return { certificateChain: certificate, privateKey };
};
const [first, second, provisional] = [identity('first'), identity('second'), identity('provisional')];

const tools: HttpsTools = {
  contextOf: ({ certificateChain: cert, privateKey: key }) => createSecureContext({ cert, key, minVersion: 'TLSv1.2' }),
  makeProvisional: () => Promise.resolve(provisional),
};

const trusted = mkdtempSync(join(tmpdir(), 'pesit-cas-'));
const caFile = ({ certificateChain }: RestIdentity): string => {
  const path = join(trusted, new X509Certificate(certificateChain).serialNumber);
  writeFileSync(path, certificateChain);
  return path;
};
afterAll(() => rmSync(trusted, { recursive: true, force: true }));
/** @returns what curl says: the answer with its headers, or how it failed */
const curl = async (...args: readonly string[]): Promise<string> => {
  try {
    return (await run('curl', ['-sS', '-i', '--max-time', '60', ...args])).stdout;
  } catch (error) {
    const { code, stderr } = error as { readonly code: number; readonly stderr: string };
    return `curl failed (${code}): ${stderr}`;
  }
};

class FakeProcess extends EventEmitter {
  readonly argv = ['node', 'main.js', '--log.level=fatal'];
  wrong = '';
  readonly stdout = { write: () => true };
  readonly stderr = { write: (text: string) => (this.wrong += text) };
  cwd = (): string => directory;
  exit = (code: number): void => void this.emit('exit', code);
}

let directory: string;
let processes: FakeProcess[];
let sockets: Socket[];
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'pesit-https-'));
  writeFileSync(join(directory, 'package.json'), '{"version":"1.0.0"}');
  [processes, sockets] = [[], []];
});
afterEach(async () => {
  for (const socket of sockets) socket.destroy();
  for (const one of processes) {
    const ended = once(one, 'exit');
    one.emit('SIGTERM', 'SIGTERM');
    await ended;
  }
  rmSync(directory, { recursive: true, force: true });
});

const put = (name: string, text: string): void => {
  // As Kubernetes changes a Secret: by a link.
  const [path, link] = [join(directory, `${name}-${Math.random()}`), join(directory, `${name}.link`)];
  writeFileSync(path, text);
  symlinkSync(path, link);
  renameSync(link, join(directory, name));
};
const putFiles = ({ certificateChain, privateKey }: RestIdentity): void => {
  put('tls.crt', certificateChain);
  put('tls.key', privateKey);
};
const FILES = { SERVER_SSL_CERTIFICATE_FILE: 'tls.crt', SERVER_SSL_KEY_FILE: 'tls.key' };
const KEYSTORE = { SERVER_SSL_KEYSTORE_NAME: 'rest' };

interface Started {
  readonly port: number;
  readonly process: FakeProcess;
  readonly ground: () => ServiceGround<'server'>;
  readonly keystores: Map<string, RestIdentity>;
}

const start = async (
  env: Readonly<Record<string, string>>,
  change: Partial<ServiceDefinition<'server', null>> = {},
) => {
  const port = await freePort();
  let ground: ServiceGround<'server'> | undefined;
  const keystores = new Map<string, RestIdentity>();
  const process = new FakeProcess();
  const definition: ServiceDefinition<'server', null> = {
    ...{ app: 'server', name: 'tried-service', manifest: pathToFileURL(join(directory, 'package.json')) },
    schema: 'pesit_server',
    env: {
      ...{ DATA_DIRECTORY: join(directory, 'data'), SERVER_PORT: String(port), SERVER_SSL_ENABLED: 'true' },
      // Nobody answers there: the interface does not wait for a database.
      DATABASE_URL: 'postgresql://pesit@127.0.0.1:9/pesit',
      SECRETS_KEY: Buffer.alloc(32, 7).toString('base64'),
      ADMIN_PASSWORD: 'pw-of-rest',
      SERVER_HOST: '127.0.0.1',
      ...env,
    },
    first: { read: () => Promise.resolve(null), explained: [] },
    build: (given) => {
      ground = given;
      const { config, info, logger, health } = given;
      const app = createHttpApp({
        config,
        info,
        logger,
        health,
        metrics: testMetrics('server'),
        routes: () => undefined,
      });
      return {
        ...{ app, metrics: { watchProcess: () => undefined }, reloaded: () => undefined },
        ...{ beforeHttp: [], afterHttp: [] },
        keystores: {
          identity: (name) => {
            const found = keystores.get(name);
            return found === undefined
              ? Promise.reject(new Error(`There is no keystore "${name}"`))
              : Promise.resolve(found);
          },
        },
      };
    },
    https: tools,
    ...change,
  };
  await runService(process, definition);
  if (process.wrong === '') processes.push(process);
  return { port, process, keystores, ground: () => ground as ServiceGround<'server'> } satisfies Started;
};
const LIVENESS = '/actuator/health/liveness';

describe('with files', () => {
  test('answers callers that check the certificate, over TLS 1.2 and 1.3, and asks for HTTPS from now on', async () => {
    putFiles(first);
    const { port } = await start(FILES);
    for (const version of ['1.2', '1.3']) {
      const answer = await curl(
        '--cacert',
        caFile(first),
        `--tlsv${version}`,
        '--tls-max',
        version,
        `https://127.0.0.1:${port}${LIVENESS}`,
      );
      expect(answer).toMatch(/^HTTP\/1\.1 200 OK/);
      expect(answer).toMatch(/^strict-transport-security: max-age=31536000\r$/im);
    }
    expect(await curl('--cacert', caFile(second), `https://127.0.0.1:${port}${LIVENESS}`)).toMatch(
      /^curl failed \(60\)/,
    );
  });

  test('half of a change counts for nothing: the old files stay in use, and it is said', async () => {
    putFiles(first);
    const { port, ground } = await start(FILES);
    const url = `https://localhost:${port}${LIVENESS}`;
    expect(await curl('--cacert', caFile(first), url)).toMatch(/^HTTP\/1\.1 200/);
    // Half of the change: the old ones stay, and it is said.
    put('tls.crt', second.certificateChain);
    expect(await curl('--cacert', caFile(first), url)).toMatch(/^HTTP\/1\.1 200/);
    expect(await ground().https?.health()).toMatchObject({
      details: { subject: 'CN=first', reason: expect.any(String) },
    });
  });

  test('a whole change counts at once', async () => {
    putFiles(first);
    const { port, ground } = await start(FILES);
    const url = `https://localhost:${port}${LIVENESS}`;
    putFiles(second);
    expect(await curl('--cacert', caFile(second), url)).toMatch(/^HTTP\/1\.1 200/);
    expect(await ground().https?.health()).toMatchObject({
      status: 'UP',
      details: { subject: 'CN=second', from: join(directory, 'tls.crt') },
    });
    const [expiry] = (await ground().https?.expiry()) ?? [];
    expect(expiry?.name).toBe('server.ssl.certificate-file');
    expect(expiry?.expiresAt).toBeGreaterThan(Date.now() + 3000 * 86_400_000);
  });

  test.each([
    ['that are missing', () => undefined, /^HTTPS cannot be spoken: ENOENT.*tls\.crt/],
    [
      'that do not belong together',
      () => putFiles({ certificateChain: first.certificateChain, privateKey: second.privateKey }),
      /^HTTPS cannot be spoken: .*key values mismatch/,
    ],
    ['that are no PEM', () => putFiles({ certificateChain: 'x', privateKey: 'y' }), /^HTTPS cannot be spoken: /],
    [
      'too large',
      () => putFiles({ ...first, privateKey: 'k'.repeat(2_000_000) }),
      /tls\.key has more than 1048576 bytes/,
    ],
  ])('%s end the start in a sentence', async (_, prepare, words) => {
    prepare();
    const { process } = await start(FILES);
    expect(process.wrong).toMatch(words);
    expect(process.wrong.trim().split('\n')).toHaveLength(1);
  });
});

describe('with a keystore', () => {
  test('probes are answered before there is one, and callers that check the certificate come no further', async () => {
    const { port } = await start(KEYSTORE);
    const url = `https://localhost:${port}${LIVENESS}`;
    expect(await curl('-k', url)).toMatch(/^HTTP\/1\.1 200/);
    expect(await curl('--cacert', caFile(first), url)).toMatch(/^curl failed \(60\)/);
  });

  test('the next handshake uses the keystore as soon as it is there, and every later one', async () => {
    let now = 0;
    const log = captureLog();
    const config = loadConfig({
      app: 'server',
      argv: [],
      cwd: directory,
      env: { ...KEYSTORE, SERVER_SSL_ENABLED: 'true' },
    });
    const certificate = await RestCertificate.open({ config, tools, logger: log.logger, now: () => now });
    const before = await certificate.context();
    expect(log.entries()).toEqual([]);
    let stored: RestIdentity | undefined;
    let asked = 0;
    certificate.useKeystores({
      identity: () => {
        asked++;
        return stored === undefined
          ? Promise.reject(new Error('There is no keystore "rest"'))
          : Promise.resolve(stored);
      },
    });
    // Asked once a second at most, whoever knocks.
    await Promise.all([certificate.context(), certificate.context()]);
    expect(await certificate.context()).toBe(before);
    expect(asked).toBe(1);
    const reason = 'There is no keystore "rest"';
    expect(await certificate.health()).toMatchObject({
      details: { subject: 'CN=provisional', from: 'made at this start', reason },
    });
    for (const next of [first, second]) {
      [stored, now] = [next, now + 1000];
      const context = await certificate.context();
      expect(await certificate.context()).toBe(context);
      const subject = new X509Certificate(next.certificateChain).subject;
      expect(await certificate.health()).toEqual({
        status: 'UP',
        details: expect.objectContaining({ subject, from: 'keystore "rest"' }),
      });
    }
    // Without it the last one stays, and one that cannot be used changes nothing.
    const last = await certificate.context();
    stored = undefined;
    expect(await certificate.context()).toBe(last);
    [stored, now] = [{ ...first, privateKey: second.privateKey }, now + 1000];
    expect(await certificate.context()).toBe(last);
    expect(await certificate.expiry()).toEqual([]);
    expect(log.entries().map(({ level, msg }) => [level, msg])).toEqual([
      ['warn', 'REST interface: shows a certificate made at this start until there is another'],
      ['info', 'REST interface: certificate in use'],
      ['info', 'REST interface: certificate in use'],
      ['error', 'REST interface: keeps the certificate that it has'],
      ['error', 'REST interface: keeps the certificate that it has'],
    ]);
    expect(log.lines.join('')).not.toContain('PRIVATE KEY');
  });
});

test('plain HTTP on the port for HTTPS is told where to go, and not to send its password again', async () => {
  putFiles(first);
  const { port } = await start(FILES);
  const answer = await curl('-u', 'admin:pw-of-rest', `http://127.0.0.1:${port}/api/v1/servers?x=1`);
  const [head = '', body = ''] = answer.split('\r\n\r\n');
  expect(head).toMatch(/^HTTP\/1\.1 400 Bad Request/);
  expect(JSON.parse(body)).toMatchObject({
    error: 'HTTPS_REQUIRED',
    message: expect.stringMatching(
      `^This port speaks HTTPS: use https://127.0.0.1:${port}/api/v1/servers\\?x=1. The login of this request came without TLS`,
    ),
    path: '/api/v1/servers',
  });
});

test('plain HTTP on a port beside it, without the header that asks for HTTPS', async () => {
  putFiles(first);
  const plain = await freePort();
  const { port } = await start({ ...FILES, SERVER_SSL_HTTP_PORT: String(plain) });
  const answer = await curl(`http://127.0.0.1:${plain}${LIVENESS}`);
  expect(answer).toMatch(/^HTTP\/1\.1 200/);
  expect(answer).not.toMatch(/strict-transport-security/i);
  expect(await curl('--cacert', caFile(first), `https://127.0.0.1:${port}${LIVENESS}`)).toMatch(/^HTTP\/1\.1 200/);
});

test('connections that never begin their handshake make room for one that does', async () => {
  putFiles(first);
  const { port } = await start({ ...FILES, HTTP_MAX_CONNECTIONS: '16' });
  const closed: Promise<unknown>[] = [];
  for (let index = 0; index < 40; index++) {
    const socket = connect(port, '127.0.0.1');
    socket.on('error', () => undefined);
    sockets.push(socket);
    closed.push(once(socket, 'close'));
    await once(socket, 'connect');
    // The first bytes of a ClientHello, and no more.
    socket.write(Buffer.from('1603010200010001fc0303', 'hex'));
  }
  expect(await curl('--cacert', caFile(first), `https://127.0.0.1:${port}${LIVENESS}`)).toMatch(/^HTTP\/1\.1 200/);
  await Promise.all(closed.slice(0, 20));
});

test.each([
  [{}, 'server.ssl.enabled: expected server.ssl.keystore-name, or'],
  [{ ...FILES, ...KEYSTORE }, 'server.ssl.keystore-name: expected nothing beside'],
  [{ SERVER_SSL_KEY_FILE: 'k' }, 'server.ssl.certificate-file: expected a file beside server.ssl.key-file'],
  [{ SERVER_SSL_CERTIFICATE_FILE: 'c' }, 'server.ssl.key-file: expected a file beside server.ssl.certificate-file'],
  [{ ...KEYSTORE, SERVER_PORT: '8443', SERVER_SSL_HTTP_PORT: '8443' }, 'server.ssl.http-port: expected another port'],
])('settings that contradict themselves are refused: %j', async (env, words) => {
  const { process } = await start(env);
  expect(process.wrong).toContain(words);
});
