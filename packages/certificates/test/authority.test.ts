/** The local CA, judged by `openssl`: chains, extensions, CRLs, OCSP answers, PKCS#12. */
import { X509Certificate } from 'node:crypto';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

import { expect, test } from '@jest/globals';
import { PeriodicWork, SecretBox } from '@pesit-node/service';
import { withDatabase } from '@pesit-node/service/testing';
import request from 'supertest';
import type { Response } from 'supertest';

import { renewManaged } from '../src/authority/renewal.js';
import { sealAuthoritiesAnew } from '../src/authority/store.js';
import { NO_AUDIT, useStores } from './support/app.js';
import type { Pod } from './support/app.js';
import { OpenSsl } from './support/openssl.js';

const openssl = new OpenSsl();
const CA = { commonName: 'Bank "CA"', organization: 'Bank, Test', validityDays: 3650 };
const DAY_MS = 86_400_000;

/** The body of an answer as bytes, for supertest. */
const bytes = (res: Response, done: (error: Error | null, body: Buffer) => void): void => {
  const pieces: Buffer[] = [];
  res.on('data', (piece: Buffer) => pieces.push(piece));
  res.on('end', () => done(null, Buffer.concat(pieces)));
};

withDatabase((harness) => {
  const stores = useStores(harness);

  /** A CA, and `ca.pem` of it. */
  const useCa = async (more: object = {}) => {
    const pod = stores.pod();
    const rest = stores.rest(pod);
    const made = await rest.post('/ca', { ...CA, ...more });
    expect(made.status).toBe(201);
    openssl.write('ca.pem', made.body.certificate);
    return { ...rest, pod, ca: made.body };
  };
  const text = (pem: string): string => {
    openssl.write('one.pem', pem);
    return openssl.run('x509', '-in', 'one.pem', '-noout', '-text');
  };

  test('a CA is one, with a key usage and a path length, and there is one at a time', async () => {
    const { post, get, ca } = await useCa();
    const said = text(ca.certificate);
    expect(said).toMatch(/X509v3 Basic Constraints: critical\s+CA:TRUE, pathlen:0/);
    expect(said).toMatch(/X509v3 Key Usage: critical\s+Digital Signature, Certificate Sign, CRL Sign/);
    expect(said).toContain('Subject: O = "Bank, Test", CN = Bank \\"CA\\"');
    expect(said).toContain('ASN1 OID: prime256v1');
    expect(openssl.run('verify', '-x509_strict', '-CAfile', 'ca.pem', 'ca.pem')).toContain('OK');
    const second = await post('/ca', CA);
    expect([second.status, second.body.error]).toEqual([409, 'CONFLICT']);
    expect((await get('/ca')).body).toEqual(ca);
    const other = await post('/ca?replace=true', { ...CA, commonName: 'Next' });
    expect([other.status, other.body.details.subject]).toEqual([201, 'CN=Next,O=Bank\\, Test']);
    expect((await get('/ca')).body.details.subject).toBe('CN=Next,O=Bank\\, Test');
  });

  test.each([['http://bänk.example/crl'], ['http://bank.example/a crl'], ['http://bank.example/\u0007']])(
    'a URL that no certificate can hold is refused: %j',
    async (url) => {
      const { post } = stores.rest(stores.pod());
      for (const field of ['crlUrl', 'ocspUrl']) {
        const refused = await post('/ca', { ...CA, [field]: url });
        expect([refused.status, refused.body.details?.[0].field]).toEqual([400, field]);
      }
    },
  );

  test('without a CA nothing is issued, and no list is signed', async () => {
    const { post, get } = stores.rest(stores.pod());
    expect((await get('/ca')).status).toBe(404);
    expect((await get('/crl')).status).toBe(409);
    expect((await post('/issue', { name: 'X', commonName: 'x' })).status).toBe(409);
  });

  test('a managed keystore is issued and rotated in place; its key never comes out', async () => {
    const { post, get, pod } = await useCa();
    const sans = ['DNS:node.example', '192.0.2.7', '2001:db8::1', 'urn://x', 'URI:urn:y', 'a@b.example', '*.b.example'];
    const issued = await post('/issue', {
      name: 'NODE',
      commonName: 'node.example',
      sans,
      ttlDays: 30,
      kind: 'server',
    });
    expect([issued.status, issued.body.keystore, Object.keys(issued.body).sort()]).toEqual([
      ...[201, 'NODE'],
      ['certificate', 'fingerprint', 'keystore', 'name', 'notAfter', 'serial'],
    ]);
    const said = text(issued.body.certificate);
    expect(said).toContain('TLS Web Server Authentication, TLS Web Client Authentication');
    expect(said).toMatch(/X509v3 Basic Constraints: critical\s+CA:FALSE/);
    expect(said).toMatch(/X509v3 Key Usage: critical\s+Digital Signature\n/);
    expect(said).toContain('X509v3 Authority Key Identifier');
    expect(said).toContain(
      'DNS:node.example, IP Address:192.0.2.7, IP Address:2001:DB8:0:0:0:0:0:1, URI:urn://x, URI:urn:y, email:a@b.example, DNS:*.b.example',
    );
    expect(openssl.run('verify', '-x509_strict', '-CAfile', 'ca.pem', '-purpose', 'sslserver', 'one.pem')).toContain(
      'OK',
    );
    expect(issued.body.serial).toBe(new X509Certificate(issued.body.certificate).serialNumber);
    openssl.write('one.pem', issued.body.certificate);
    const fingerprint = openssl.run('x509', '-in', 'one.pem', '-noout', '-fingerprint', '-sha256');
    expect(fingerprint).toContain(`=${issued.body.fingerprint as string}\n`);
    expect((await get('/keystores/NODE')).body).toMatchObject({ managed: true, warnings: [] });
    const before = await pod.certificates.identity('NODE');
    const rotated = await post('/keystores/NODE/rotate', {});
    expect([rotated.status, rotated.body.serial === issued.body.serial]).toEqual([200, false]);
    const after = await pod.certificates.identity('NODE');
    expect(after.certificateChain).toContain(rotated.body.certificate);
    expect(after.privateKey).not.toBe(before.privateKey);
    openssl.write('rotated.pem', rotated.body.certificate);
    openssl.write('rotated.key', after.privateKey);
    expect(openssl.run('x509', '-in', 'rotated.pem', '-noout', '-pubkey')).toBe(
      openssl.run('pkey', '-in', 'rotated.key', '-pubout'),
    );
    expect(new X509Certificate(rotated.body.certificate).subjectAltName).toBe(
      new X509Certificate(issued.body.certificate).subjectAltName,
    );
    const { body } = await get('/issued?sort=issuedAt,asc');
    expect(
      body.content.map(({ serial, state, keystore }: Record<string, unknown>) => [serial, state, keystore]),
    ).toEqual([
      [issued.body.serial, 'VALID', 'NODE'],
      [rotated.body.serial, 'VALID', 'NODE'],
    ]);
    expect((await post('/issue', { name: 'NODE', commonName: 'x' })).status).toBe(409);
    expect((await post('/keystores/NOBODY/rotate', {})).status).toBe(404);
  });

  test('a partner gets a PKCS#12 and its password once, and openssl opens it', async () => {
    const { post, get } = await useCa();
    const { status, body } = await post('/issue', {
      name: 'ACME',
      commonName: 'ACME',
      kind: 'partner',
      keyType: 'RSA',
    });
    expect([status, body.keystore]).toEqual([201, null]);
    openssl.write('acme.p12', Buffer.from(body.pkcs12, 'base64'));
    const opened = openssl.run('pkcs12', '-in', 'acme.p12', '-nodes', '-passin', `pass:${body.password as string}`);
    expect(opened).toContain('PRIVATE KEY');
    openssl.write('acme.pem', opened);
    expect(openssl.run('verify', '-CAfile', 'ca.pem', '-purpose', 'sslclient', 'acme.pem')).toContain('OK');
    expect(() => openssl.run('verify', '-CAfile', 'ca.pem', '-purpose', 'sslserver', 'acme.pem')).toThrow();
    expect(openssl.run('rsa', '-in', 'acme.pem', '-noout', '-text')).toContain('3072 bit');
    expect(() => openssl.run('pkcs12', '-in', 'acme.p12', '-nodes', '-passin', 'pass:wrong')).toThrow();
    const again = JSON.stringify((await get(`/issued/${body.serial as string}`)).body) + stores.log.lines.join('\n');
    expect(again).not.toContain(body.password);
  });

  test('a certificate request is signed for the names that the administrator gives', async () => {
    const { post } = await useCa();
    const own = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:secp384r1', '-nodes', '-keyout', 'own.key'];
    openssl.run('req', '-new', ...own, '-out', 'own.csr', '-subj', '/CN=evil');
    const csr = openssl.bytes('own.csr').toString();
    const { status, body } = await post('/issue', { name: 'P', commonName: 'p.example', kind: 'partner', csr });
    expect([status, 'pkcs12' in body]).toEqual([201, false]);
    const certificate = new X509Certificate(body.certificate);
    expect([certificate.subject, certificate.subjectAltName]).toEqual(['CN=p.example', 'DNS:p.example']);
    openssl.write('own.pem', body.certificate);
    expect(openssl.run('x509', '-in', 'own.pem', '-noout', '-pubkey')).toBe(
      openssl.run('pkey', '-in', 'own.key', '-pubout'),
    );
    const der = Buffer.from(csr.replace(/-----[^-]+-----|\s/g, ''), 'base64');
    der[der.length - 1] = (der[der.length - 1] as number) ^ 1;
    const forged = `-----BEGIN CERTIFICATE REQUEST-----\n${der.toString('base64')}\n-----END CERTIFICATE REQUEST-----\n`;
    for (const [given, expected] of [
      [forged, 422],
      [body.certificate, 400],
      [csr.slice(0, 200), 400],
    ] as const) {
      const refused = await post('/issue', { name: 'P', commonName: 'p.example', csr: given });
      expect([refused.status, refused.body.details[0].field]).toEqual([expected, 'csr']);
    }
  });

  test('a CA with permitted domains issues for them alone, and peers refuse anything else', async () => {
    const { post, ca } = await useCa({ permittedDomains: ['bank.example'] });
    expect(text(ca.certificate)).toMatch(/X509v3 Name Constraints: critical\s+Permitted:\s+DNS:bank.example/);
    const inside = await post('/issue', { name: 'IN', commonName: 'a.bank.example' });
    openssl.write('in.pem', inside.body.certificate);
    expect(openssl.run('verify', '-CAfile', 'ca.pem', 'in.pem')).toContain('OK');
    // Peers read a common name as that of a host where no other name is one.
    for (const names of [
      { commonName: 'evilbank.example' },
      { commonName: 'evilbank.example', sans: ['IP:192.0.2.7'] },
      { commonName: 'a_b.evil.example' },
      { commonName: 'inside', sans: ['a.bank.example', '*.evil.example'] },
    ]) {
      const outside = await post('/issue', { name: 'OUT', ...names });
      expect([outside.status, outside.body.details?.[0].field]).toEqual([400, 'sans']);
    }
    const partner = await post('/issue', {
      name: 'P',
      commonName: 'Evil SA',
      kind: 'partner',
      sans: ['a@evil.example'],
    });
    openssl.write('partner.pem', partner.body.certificate);
    expect(openssl.run('verify', '-CAfile', 'ca.pem', 'partner.pem')).toContain('OK');
  });

  test('what is revoked is on the next CRL, which openssl believes', async () => {
    const { post, get, send, pod } = await useCa();
    const serials: string[] = [];
    for (const name of ['A', 'B']) {
      const { body } = await post('/issue', { name, commonName: `${name}.example`, kind: 'server' });
      serials.push(body.serial as string);
      openssl.write(`${name}.pem`, body.certificate);
    }
    const crl = async (): Promise<string> => {
      const { body, headers } = await send(request(pod.app).get('/api/v1/certificates/crl').buffer(true).parse(bytes));
      expect(headers['content-type']).toBe('application/pkix-crl');
      openssl.write('ca.crl', body as Buffer);
      openssl.run('crl', '-in', 'ca.crl', '-inform', 'DER', '-CAfile', 'ca.pem', '-out', 'ca.crl.pem');
      return openssl.run('crl', '-in', 'ca.crl.pem', '-noout', '-text');
    };
    const verify = (name: string): string =>
      openssl.run('verify', '-crl_check', '-CAfile', 'ca.pem', '-CRLfile', 'ca.crl.pem', `${name}.pem`);
    const empty = await crl();
    expect(empty).toMatch(/X509v3 CRL Number:\s+1\n/);
    expect(await crl()).toBe(empty);
    expect(verify('A')).toContain('OK');
    const revoked = await post('/revoked', { serial: serials[0]?.toLowerCase() ?? '', reason: 'keyCompromise' });
    expect([revoked.status, revoked.body.state, revoked.body.reason]).toEqual([200, 'REVOKED', 'keyCompromise']);
    const full = await crl();
    expect(full).toMatch(/X509v3 CRL Number:\s+2\n/);
    expect(full).toContain(`Serial Number: ${serials[0]}`);
    expect(full).toContain('Key Compromise');
    expect(() => verify('A')).toThrow(/certificate revoked/);
    expect(verify('B')).toContain('OK');
    // A hold can be ended, and nothing else.
    expect((await post('/revoked', { serial: serials[0] ?? '' })).status).toBe(409);
    expect((await post('/revoked', { serial: serials[1] ?? '', reason: 'removeFromCRL' })).status).toBe(409);
    expect((await post('/revoked', { serial: serials[1] ?? '', reason: 'certificateHold' })).status).toBe(200);
    await crl();
    expect(() => verify('B')).toThrow(/certificate revoked/);
    expect((await post('/revoked', { serial: serials[1] ?? '', reason: 'removeFromCRL' })).body.state).toBe('VALID');
    await crl();
    expect(verify('B')).toContain('OK');
    expect((await post('/revoked', { serial: 'ABCDEF' })).status).toBe(404);
    // Before it gets old there is another one.
    stores.clock.now += 4 * DAY_MS;
    expect(await crl()).toMatch(/X509v3 CRL Number:\s+5\n/);
    const pem = await send(request(pod.app).get('/api/v1/certificates/crl?format=pem').buffer(true).parse(bytes));
    expect((pem.body as Buffer).toString()).toMatch(/^-----BEGIN X509 CRL-----\n/);
    expect((await get('/issued')).body.totalElements).toBe(2);
  });

  test('issued ones by their end, and of each name the newest that counts', async () => {
    const { post, get } = await useCa();
    const issue = async (name: string, ttlDays: number): Promise<string> => {
      const { body } = await post('/issue', { name, commonName: name, ttlDays, kind: 'partner' });
      return body.serial as string;
    };
    const names = async (query: string): Promise<readonly string[]> =>
      (await get(`/issued?sort=notAfter,asc&${query}`)).body.content.map(({ name }: { name: string }) => name);
    await issue('RENEWED', 10);
    await issue('RENEWED', 400);
    await issue('SOON', 20);
    const taken = await issue('TAKEN', 5);
    const spare = await issue('SPARE', 7);
    await issue('SPARE', 300);
    await post('/revoked', { serial: taken });
    const day = (days: number): string => new Date(stores.clock.now + days * DAY_MS).toISOString();
    expect(await names(`to=${day(30)}`)).toEqual(['TAKEN', 'SPARE', 'RENEWED', 'SOON']);
    expect(await names(`from=${day(6)}&to=${day(15)}`)).toEqual(['SPARE', 'RENEWED']);
    expect(await names(`newest=true&to=${day(30)}`)).toEqual(['SOON']);
    expect(await names('newest=true')).toEqual(['SOON', 'SPARE', 'RENEWED']);
    // The newer one was taken back: the older one is what its holder has.
    const { body } = await get('/issued?newest=true&sort=notAfter,asc');
    await post('/revoked', { serial: body.content[1].serial });
    expect((await get(`/issued?newest=true&to=${day(30)}&sort=notAfter,asc`)).body.content[0].serial).toBe(spare);
    expect((await get('/issued?newest=yes')).status).toBe(400);
  });

  const serve = async (pod: Pod) => {
    const server = createServer(pod.app).listen(0, '127.0.0.1');
    await new Promise((resolve) => server.once('listening', resolve));
    return {
      port: (server.address() as AddressInfo).port,
      close: () => new Promise((resolve) => server.close(resolve)),
    };
  };

  test.each(['EC', 'RSA'])('OCSP without a login, as openssl asks and believes it: %s', async (keyType) => {
    const { post, pod } = await useCa({ keyType });
    const { body } = await post('/issue', { name: 'A', commonName: 'a.example' });
    openssl.write('a.pem', body.certificate);
    openssl.issue({ name: 'stranger' });
    openssl.write('ocsp-request', '');
    const ask = async (hash: string): Promise<string> => {
      openssl.run('ocsp', `-${hash}`, '-issuer', 'ca.pem', '-cert', 'a.pem', '-reqout', 'ocsp-request');
      const {
        body: answer,
        status,
        headers,
      } = await request(pod.app)
        .post('/ocsp')
        .set('Content-Type', 'application/ocsp-request')
        .send(openssl.bytes('ocsp-request'))
        .buffer(true)
        .parse(bytes);
      expect([status, headers['content-type']]).toEqual([200, 'application/ocsp-response']);
      openssl.write('ocsp-answer', answer as Buffer);
      const how = ['-reqin', 'ocsp-request', '-respin', 'ocsp-answer', '-CAfile', 'ca.pem'];
      const said = openssl.tell('ocsp', ...how, '-resp_text');
      expect(said).toContain('Response verify OK');
      expect(said).not.toContain('no nonce');
      return said;
    };
    const good = await ask('sha1');
    expect(good).toContain('Cert Status: good');
    expect(good).toMatch(/Response Extensions:\s+OCSP Nonce/);
    stores.clock.now = Math.floor(stores.clock.now / 1000) * 1000 + 123;
    await post('/revoked', { serial: body.serial, reason: 'superseded' });
    const revoked = await ask('sha256');
    // RFC 5280 §4.1.2.5.2: no fractions of a second; some peers read none.
    expect(revoked).toMatch(/Revocation Time: \w+ +\d+ \d\d:\d\d:\d\d \d{4} GMT/);
    expect(revoked).toContain('Cert Status: revoked');
    expect(revoked).toContain('Reason: superseded');
    // Of this CA, and never issued.
    await stores.database().knex('issued_certificates').delete();
    expect(await ask('sha1')).toContain('Cert Status: unknown');
    // The same by GET (RFC 6960 §A.1).
    const base64 = encodeURIComponent(openssl.bytes('ocsp-request').toString('base64'));
    const got = await request(pod.app).get(`/ocsp/${base64}`).buffer(true).parse(bytes);
    expect([got.status, got.headers['content-type']]).toEqual([200, 'application/ocsp-response']);
    openssl.write('ocsp-answer', got.body as Buffer);
    const text = ['-respin', 'ocsp-answer', '-noverify', '-resp_text'];
    expect(openssl.tell('ocsp', ...text)).toContain('Cert Status: unknown');
  });

  test('OCSP: what is no request, asks about another CA, or is too large, gets no signature', async () => {
    const { pod } = await useCa();
    const { port, close } = await serve(pod);
    const send = async (body: Buffer): Promise<string> => {
      const response = await fetch(`http://127.0.0.1:${port}/ocsp`, {
        ...{ method: 'POST', headers: { 'content-type': 'application/ocsp-request' }, body: new Uint8Array(body) },
      });
      return Buffer.from(await response.arrayBuffer()).toString('hex');
    };
    // OCSPResponse ::= SEQUENCE { responseStatus ENUMERATED }
    expect(await send(Buffer.from('junk'))).toBe('30030a0101');
    expect(await send(Buffer.alloc(0))).toBe('30030a0101');
    expect(await send(Buffer.alloc(9000, 0x30))).toBe('30030a0101');
    const other = openssl.ca('other');
    openssl.run('ocsp', '-issuer', other.certificate, '-cert', other.certificate, '-reqout', 'of-other');
    expect(await send(openssl.bytes('of-other'))).toBe('30030a0106');
    await close();
  });

  test('the leader renews what ends soon, and nothing else', async () => {
    const { post, get, pod } = await useCa();
    await post('/issue', { name: 'SOON', commonName: 'soon.example', ttlDays: 40 });
    await post('/issue', { name: 'LATER', commonName: 'later.example', ttlDays: 60 });
    const serials = async () =>
      Object.fromEntries(
        (await get('/keystores')).body.map((one: { name: string; certificates: { serial: string }[] }) => [
          one.name,
          one.certificates[0]?.serial,
        ]),
      );
    const before = await serials();
    const said: unknown[] = [];
    let leads = true;
    const periodic = new PeriodicWork({ logger: stores.log.logger, isLeader: () => leads });
    const { knex } = stores.database();
    const task = periodic.add(
      renewManaged({
        ...{ authority: pod.authority, days: () => 30, audit: NO_AUDIT },
        events: { publish: (_kind, event) => void said.push(event) },
        asLeader: (work) => (leads ? knex.transaction(work) : Promise.reject(new Error('late'))),
      }),
    );
    await task.runNow();
    expect(await serials()).toEqual(before);
    stores.clock.now += 15 * DAY_MS;
    leads = false;
    await task.runNow();
    expect(await serials()).toEqual(before);
    leads = true;
    await task.runNow();
    const after = await serials();
    expect([after['SOON'] === before['SOON'], after['LATER']]).toEqual([false, before['LATER']]);
    const facts = { keystore: 'SOON', serial: after['SOON'], notAfter: expect.any(String) as unknown };
    expect(said).toEqual([{ what: 'keystore', action: 'renewed', facts, recorded: true }]);
    await periodic.stop();
  });

  test('one that lives shorter than that is not renewed all the time, nor one that the CA cannot let live longer', async () => {
    const { post, get, pod } = await useCa({ validityDays: 50 });
    await post('/issue', { name: 'SHORT', commonName: 'short.example', ttlDays: 9 });
    await post('/issue', { name: 'LAST', commonName: 'last.example', ttlDays: 365 });
    expect(await pod.authority.due(30)).toEqual([]);
    stores.clock.now += 4 * DAY_MS;
    expect(await pod.authority.due(30)).toEqual(['SHORT']);
    await pod.authority.rotate('SHORT');
    expect(await pod.authority.due(30)).toEqual([]);
    // LAST ends with its CA: another one would, too.
    stores.clock.now += 40 * DAY_MS;
    await pod.authority.rotate('SHORT');
    expect(await pod.authority.due(30)).toEqual([]);
    await post('/ca?replace=true', CA);
    expect(await pod.authority.due(30)).toEqual(['LAST']);
    expect((await get('/issued')).body.totalElements).toBe(4);
  });

  test('the key of the CA is sealed, and sealed anew with a newer secrets.key', async () => {
    await useCa();
    const { knex } = stores.database();
    const { private_key: key } = (await knex('authorities').first()) as { readonly private_key: string };
    expect(key).toMatch(/^v1\.[0-9a-f]{8}\./);
    const newer = new SecretBox([Buffer.alloc(32, 8), Buffer.alloc(32, 7)]);
    expect(await sealAuthoritiesAnew(knex, newer)).toEqual({ sealed: 1, unreadable: [] });
    expect(await sealAuthoritiesAnew(knex, new SecretBox([Buffer.alloc(32, 9)]))).toEqual({
      ...{ sealed: 0, unreadable: ['CA 1'] },
    });
  });
});
