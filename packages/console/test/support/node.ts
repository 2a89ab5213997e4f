/** Both apps as `npm start` starts them, with the sample, and three users. */
import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../../../..', import.meta.url));

export interface StartedNode {
  readonly server: string;
  readonly client: string;
  readonly pesitPort: number;
  /** Files that the client app sends by their name. */
  readonly sendDirectory: string;
  readonly stop: () => Promise<void>;
}

export const PASSWORD = 'Zw4-mal-Drei';
export const USERS = ['viewer', 'operator'] as const;

/** @throws with what it printed when it does not come up */
export const startNode = async (): Promise<StartedNode> => {
  const data = mkdtempSync(join(tmpdir(), 'pesit-console-'));
  const hash = execFileSync(process.execPath, ['scripts/hash-password.mjs'], {
    ...{ cwd: root, input: `${PASSWORD}\n`, encoding: 'utf8' },
  }).trim();
  const users = join(data, 'users');
  writeFileSync(users, USERS.map((role) => `${role} ${role} ${hash.split('\n').at(-1) ?? ''}\n`).join(''), {
    mode: 0o600,
  });
  const args = ['scripts/start.mjs', '--free-ports', '--data', join(data, 'data'), '--size', '1'];
  const env = { ...process.env, ADMIN_USERS: users, NODE_OPTIONS: '' };
  const child = spawn(process.execPath, args, { cwd: root, env, stdio: ['ignore', 'pipe', 'pipe'] });
  const printed = await untilUp(child);
  const [, server = '', client = ''] = /server app: (\S+)\s+client app: (\S+)/.exec(printed) ?? [];
  const pesitPort = Number(/listener SAMPLE on port (\d+)/.exec(printed)?.[1]);
  const stop = async (): Promise<void> => {
    const ended = new Promise((resolve) => child.once('close', resolve));
    child.kill('SIGTERM');
    await ended;
    rmSync(data, { recursive: true, force: true });
  };
  return { server, client, pesitPort, sendDirectory: join(data, 'data/client/send'), stop };
};

const untilUp = (child: ChildProcess): Promise<string> =>
  new Promise((resolve, reject) => {
    let printed = '';
    const take = (chunk: Buffer): void => {
      printed += chunk.toString();
      if (printed.includes('Both services are up')) resolve(printed);
    };
    child.stdout?.on('data', take);
    child.stderr?.on('data', take);
    child.once('close', () => reject(new Error(`npm start ended:\n${printed}`)));
  });

/** The admin, as a header says it. */
export const BASIC = `Basic ${Buffer.from('admin:admin').toString('base64')}`;

/** Asks an app as its admin. @param method default: POST where there is a body. @returns its JSON */
export const ask = async (
  base: string,
  path: string,
  body?: unknown,
  method = 'POST',
): Promise<Record<string, unknown>> => {
  const init =
    body === undefined ? {} : { method, body: JSON.stringify(body), headers: { 'content-type': 'application/json' } };
  const answer = await fetch(new URL(path, base), {
    ...init,
    headers: { authorization: BASIC, ...('headers' in init ? init.headers : {}) },
  });
  const json = (await answer.json()) as Record<string, unknown>;
  if (!answer.ok) throw new Error(`${path}: ${JSON.stringify(json)}`);
  return json;
};

/** The local CA is there from now on. */
export const needCa = async ({ server }: Pick<StartedNode, 'server'>): Promise<void> => {
  const path = '/api/v1/certificates/ca';
  const { status } = await fetch(new URL(path, server), { headers: { authorization: BASIC } });
  if (status === 404) await ask(server, path, { commonName: 'Acme PeSIT CA' });
};
