/** Remote servers that the configuration file declares. */
import { afterAll, expect, test } from '@jest/globals';
import { SecretBox } from '@pesit-node/service';
import { withDatabase } from '@pesit-node/service/testing';

import { openFor } from '../src/remote-servers/secrets.js';
import type { RemoteServerRow } from '../src/remote-servers/fields.js';
import { expectNoSecrets } from './support/service.js';
import type { Service } from './support/service.js';
import { until, useWorld } from './support/world.js';

afterAll(expectNoSecrets);

// Passwords that other tests give by REST: `expectNoSecrets` looks for them.
const PASSWORD = 'pz#8kQ!v';
const OTHER = 'Wv3~Kk$1';
const FILE = '/etc/pesit/config/pesit.yaml';
/** The key of the services of these tests. */
const box = new SecretBox([Buffer.alloc(32, 7)]);

type Item = Readonly<Record<string, unknown>>;

withDatabase((harness) => {
  const world = useWorld(harness);
  const servers: Item[] = [];
  const write = (...items: readonly Item[]): void => {
    servers.splice(0, Infinity, ...items);
  };
  const bank = (more: Item = {}): Item => ({
    ...{ name: 'bank', host: '127.0.0.1', port: 6502, serverId: 'BANKSRV', clientId: 'NODE1', password: PASSWORD },
    ...more,
  });
  const results = ({ log }: Service) =>
    log
      .entries()
      .map(({ msg }) => String(msg))
      .filter((msg) => msg.startsWith('configuration file applied'));
  const applied = async (service: Service, times = 1): Promise<string | undefined> => {
    await until(() => Promise.resolve(results(service).length >= times));
    return results(service).at(-1);
  };
  const start = async (): Promise<Service> => {
    const service = await world.service({ config: { servers }, configFile: FILE });
    await applied(service);
    return service;
  };
  const again = async (service: Service): Promise<string | undefined> => {
    const times = results(service).length + 1;
    service.reloaded();
    return applied(service, times);
  };
  const row = async (): Promise<RemoteServerRow> =>
    (await world.database().knex('remote_servers').where('name', 'bank').first()) as RemoteServerRow;
  const password = async (): Promise<string> => {
    const stored = await row();
    return openFor(box, 'password', stored, stored.password ?? '');
  };
  const entries = () =>
    world.database().knex('audit_entries').where('actor', 'configuration file').select('address', 'action', 'object');

  test('servers of PESIT_CONFIG: those with a host are there, and a file goes to one; listeners are for the other app', async () => {
    const partner = await world.partner();
    write({ serverId: 'NODE1', port: 6502 }, bank({ port: partner.port }));
    const service = await start();
    expect(results(service)).toEqual(['configuration file applied: 1 created, 0 changed, 0 unchanged, 0 refused']);
    expect(await entries()).toEqual([{ address: FILE, action: 'created', object: String((await row()).id) }]);
    expect((await service.api.get('/servers')).body).toMatchObject([{ name: 'bank', port: partner.port }]);
    expect(await world.send(service)).toMatchObject({ status: 'COMPLETED' });
  });

  test('twice change nothing; what REST has set is changed back, but for a password that is no other in the file', async () => {
    write(bank({ description: 'd' }));
    const service = await start();
    const before = await row();
    expect(await again(service)).toMatch('0 created, 0 changed, 1 unchanged, 0 refused');
    expect([await row(), (await entries()).length]).toEqual([before, 1]);
    await service.api.put(`/servers/${before.id}`, { description: 'x', maxConnections: 3, password: OTHER });
    expect(await again(service)).toMatch('0 created, 1 changed, 0 unchanged, 0 refused');
    expect(await row()).toMatchObject({ description: 'd', max_connections: null });
    expect(await password()).toBe(OTHER);
    write(bank({ password: 'n3w~Pass' }));
    expect(await again(service)).toMatch('1 changed');
    expect(await password()).toBe('n3w~Pass');
  });

  test('a password goes with its server to another host; without one in the file it does not', async () => {
    write(bank());
    const service = await start();
    write(bank({ port: 6503 }));
    expect(await again(service)).toMatch('1 changed');
    expect([(await row()).port, await password()]).toEqual([6503, PASSWORD]);
    const without = Object.fromEntries(Object.entries(bank({ port: 6504 })).filter(([name]) => name !== 'password'));
    write(without, bank({ name: 'bank2' }));
    expect(await again(service)).toMatch('1 created, 0 changed, 0 unchanged, 1 refused');
    expect((await row()).port).toBe(6503);
    expect(await service.health.health()).toMatchObject({
      components: {
        configurationFile: { details: { reasons: [expect.stringMatching(/^servers\[0\]\.password: expected again/)] } },
      },
    });
    // What is refused may be mended by REST or in the file.
    write({ ...without, password: null });
    expect(await again(service)).toMatch('1 changed');
    expect(await row()).toMatchObject({ port: 6504, password: null });
  });
});
