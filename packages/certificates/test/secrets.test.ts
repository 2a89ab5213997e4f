/** No private key and no password is in an answer, a log line or an event, whatever is sent to whichever route of the certificates. */
import { expect, test } from '@jest/globals';
import { CONFIGURATION_CHANGED } from '@pesit-node/service';
import type { OpenApiDocument } from '@pesit-node/service';
import { operationsOf, watchEvents, withDatabase } from '@pesit-node/service/testing';
import request from 'supertest';

import { useStores } from './support/app.js';
import { OpenSsl } from './support/openssl.js';

const PASSWORD = 'k3y-Pa55w0rd';
const openssl = new OpenSsl();
const root = openssl.ca('root');
const leaf = openssl.issue({ name: 'leaf', issuer: root });
const sealed = openssl.run('pkcs8', '-topk8', '-in', leaf.key, '-passout', `pass:${PASSWORD}`);
const pkcs12 = openssl.pkcs12(leaf, [root], PASSWORD);

/** Each piece of what is secret: a line of base64 is enough to know it again. */
const linesOf = (pem: string): readonly string[] =>
  pem.split('\n').filter((line) => /^[A-Za-z0-9+/=]{40,}$/.test(line));
const SECRETS = [PASSWORD, ...linesOf(leaf.keyPem), ...linesOf(sealed), pkcs12.toString('base64').slice(100, 160)];

/** Bodies that are right for a route, or wrong with secrets where others are expected. */
const BODIES: readonly object[] = [
  { name: 'one', certificate: leaf.pem, privateKey: leaf.keyPem },
  { name: 'two', certificate: leaf.pem, privateKey: sealed, password: PASSWORD },
  { name: 'three', pkcs12: pkcs12.toString('base64'), password: PASSWORD },
  { pkcs12: pkcs12.toString('base64'), password: `${PASSWORD}!` },
  { certificate: root.pem, privateKey: leaf.keyPem },
  { certificate: leaf.keyPem, privateKey: leaf.keyPem.slice(0, -40) },
  { name: 'four', certificate: leaf.pem, privateKey: sealed },
  { name: 'five', certificates: leaf.pem + leaf.keyPem },
  { name: 'six', certificates: leaf.keyPem },
  { name: 'seven', certificates: root.pem, crls: leaf.keyPem },
  { name: 'eight', certificates: root.pem, crlUrls: [`http://user:${PASSWORD}@127.0.0.1/`] },
  { name: 'nine', commonName: 'nine', csr: leaf.keyPem },
  { name: 'ten', commonName: 'ten', password: PASSWORD, privateKey: leaf.keyPem },
  { serial: leaf.keyPem, reason: leaf.keyPem },
  { commonName: 'Own CA', privateKey: leaf.keyPem },
];

withDatabase((harness) => {
  const stores = useStores(harness);

  test('every route, asked with secrets, says nothing of them', async () => {
    const pod = stores.pod();
    const { send } = stores.rest(pod);
    const events = watchEvents([CONFIGURATION_CHANGED]);
    const told: string[] = [];
    const document = (await send(request(pod.app).get('/openapi.json'))).body as OpenApiDocument;
    const routes = [...operationsOf(document).keys()].filter((name) => /certificates|ocsp|crl/.test(name));
    expect(routes.length).toBeGreaterThan(15);
    await send(request(pod.app).post('/api/v1/certificates/ca').send({ commonName: 'CA' }));
    for (const route of routes) {
      const [method, path = ''] = route.split(' ');
      const isRead = method === 'GET' || method === 'DELETE';
      for (const body of isRead ? [{}] : BODIES) {
        const at = path.replace(/\{name\}/, 'one').replace(/\{(?:serial|b64)\}/, 'ABCD');
        const call = request(pod.app)[method?.toLowerCase() as 'get' | 'post' | 'put' | 'delete'](at);
        const answer = await send(isRead ? call : call.send(body));
        told.push(`${route}: ${answer.text} ${JSON.stringify(answer.headers)}`);
      }
      if (isRead || !path.includes('stores')) continue;
      const form = request(pod.app)[method?.toLowerCase() as 'post' | 'put'](path.replace('{name}', 'one'));
      const answer = await send(form.field('name', 'form').field('password', PASSWORD).attach('file', pkcs12, 'a.p12'));
      told.push(`${route} (form): ${answer.text}`);
    }
    events.stop();
    expect(events.heard.length).toBeGreaterThan(5);
    const everything = [...told, ...stores.log.lines, ...events.heard.map((one) => JSON.stringify(one))];
    expect(everything.filter((text) => SECRETS.some((secret) => text.includes(secret)))).toEqual([]);
    expect(everything.filter((text) => text.includes('PRIVATE KEY-----'))).toEqual([]);
  });

  test('a password that is shown once is in that answer alone', async () => {
    const { get, post } = stores.rest(stores.pod());
    const events = watchEvents([CONFIGURATION_CHANGED]);
    await post('/ca', { commonName: 'CA' });
    const { body } = await post('/issue', { name: 'ACME', commonName: 'acme', kind: 'partner' });
    const later = await Promise.all(
      ['/issued', `/issued/${body.serial}`, '/ca', '/keystores'].map((path) => get(path)),
    );
    events.stop();
    const everything = [...later.map(({ text }) => text), ...stores.log.lines, JSON.stringify(events.heard)];
    expect(body.password).toMatch(/^[\w-]{22}$/);
    for (const secret of [body.password, body.pkcs12.slice(100, 160)]) {
      expect(everything.filter((text) => text.includes(secret))).toEqual([]);
    }
  });
});
