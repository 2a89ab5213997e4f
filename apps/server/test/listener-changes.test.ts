/** Changes of one listener that come at the same time, each possible by itself, and not together. */
import { expect, test } from '@jest/globals';
import { withDatabase } from '@pesit-node/service/testing';

import { ListenerStore } from '../src/listeners/store.js';
import { useRest } from './support/rest.js';

const SERVERS = '/api/v1/servers';

withDatabase((harness) => {
  const rest = useRest(harness);
  const detailsOf = (fields: readonly string[]) => fields.map((field) => expect.objectContaining({ field }));

  test.each([
    ['port', { sslEnabled: true }, { port: null }, { ssl_enabled: false }],
    ['tlsPort', { sslEnabled: true, tlsPort: 5002 }, { port: 5003 }, { tls_port: 5003 }],
    ['trustedProxies', { trustedProxies: ['192.0.2.1'] }, { proxyProtocol: 'required' }, { trusted_proxies: [] }],
  ] as const)('the second is refused, and names %s', async (field, before, first, second) => {
    await rest.post(`${SERVERS}?start=false`, { serverId: 'S', ...before });
    expect((await rest.put(`${SERVERS}/S`, first)).status).toBe(200);
    // As a request that was looked at before the first one was stored.
    await expect(rest.listeners.update('S', second as object)).rejects.toMatchObject({
      status: 400,
      details: detailsOf([field]),
    });
    expect((await rest.get(`${SERVERS}/S`)).body).toMatchObject({ ...before, ...first });
  });

  test('one that another pod stored meanwhile is named, and nothing is lost', async () => {
    await rest.post(`${SERVERS}?start=false`, { serverId: 'S' });
    // As a pod does that has read the listener before the other one stored its change.
    await expect(new ListenerStore(rest.database.knex).change('S', { port: null })).rejects.toMatchObject({
      status: 409,
      message:
        'Listener S was changed by somebody else at the same time, and cannot be both: look at it, and try again',
    });
    expect((await rest.get(`${SERVERS}/S`)).body.port).toBe(6502);
  });
});
