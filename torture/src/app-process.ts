/** A process of one of the apps, as the harness runs it. */
import { once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { ADMIN, isReady } from './rest.js';
import { VictimProcess } from './victim.js';

const APPS = fileURLToPath(new URL('../../apps', import.meta.url));

export type AppName = 'server' | 'client';

export interface App {
  readonly base: string;
  readonly process: VictimProcess;
}

/** A port that is free on the loopback address at this moment. */
export const freePort = async (): Promise<number> => {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
};

/**
 * @param settings more of its environment
 * @param host that its listeners have
 * @param pod name of its log in `directory`. Default: that of the app
 */
export const appProcess = async (
  name: AppName,
  directory: string,
  settings: Readonly<Record<string, string>>,
  host: string,
  pod: string = name,
): Promise<App> => {
  const port = await freePort();
  const base = `http://127.0.0.1:${port}`;
  const process_ = new VictimProcess({
    name: `the ${name} app on ${host}`,
    command: process.execPath,
    args: [join(APPS, name, 'dist/main.js')],
    options: {
      env: {
        PATH: process.env['PATH'],
        NODE_OPTIONS: process.env['NODE_OPTIONS'],
        SERVER_HOST: '127.0.0.1',
        SERVER_PORT: String(port),
        ...(name === 'server' ? { LISTENER_HOST: host } : {}),
        DATA_DIRECTORY: join(directory, name),
        ADMIN_USERNAME: ADMIN.username,
        ADMIN_PASSWORD: ADMIN.password,
        LOG_LEVEL: 'info',
        // The partner's wish counts: the smaller of both (pesit-e.md §3).
        TRANSFER_MAX_ENTITY_SIZE: '65535',
        TRANSFER_SYNC_POINT_INTERVAL: '65534',
        TRANSFER_SYNC_WINDOW: '255',
        TRANSFER_RETRY_ATTEMPTS: '1000',
        TRANSFER_RETRY_INITIAL_DELAY: '100',
        TRANSFER_RETRY_MAX_DELAY: '500',
        ...settings,
      },
    },
    log: join(directory, `${pod}.log`),
    ready: () => isReady(base, settings['CLUSTER_LISTENERS'] === 'leader'),
  });
  return { base, process: process_ };
};
