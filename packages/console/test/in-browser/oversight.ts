/** Audit, cluster and certificates. */
import { execFileSync } from 'node:child_process';
import { createPrivateKey, X509Certificate } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { beforeAll, describe, expect, test } from '@jest/globals';
import type { Download, Page } from 'playwright-core';

import { accessibilityFaults, logIn } from '../support/browser.js';
import { ask, BASIC, PASSWORD } from '../support/node.js';
import type { Stage } from '../support/stage.js';
import { keepPicture } from '../support/visit.js';

const textOf = async (saved: Download): Promise<string> => {
  const parts: Buffer[] = [];
  for await (const part of await saved.createReadStream()) parts.push(part as Buffer);
  return Buffer.concat(parts).toString();
};

export const oversight = ({ node, openTab }: Stage): void => {
  describe('audit', () => {
    test('who changed what, before and after; filters live in the address', async () => {
      const path = '/api/v1/config/partners/SLOW';
      const partner = await ask(node.server, path);
      await ask(node.server, path, { ...partner, description: 'Nightly batch' }, 'PUT');
      const { page } = await openTab();
      await logIn(page, `${node.server}/audit`);
      await page.getByRole('button', { name: 'Filter', exact: true }).click();
      const form = page.getByRole('form', { name: 'Filters' });
      await form.getByLabel('What was done').fill('changed');
      await form.getByLabel('Object', { exact: true }).fill('SLOW');
      await form.getByRole('button', { name: 'Apply' }).click();
      await page.getByText('Entries: 1', { exact: true }).waitFor();
      expect(new URL(page.url()).search).toBe('?action=changed&object=SLOW');
      await page.getByRole('button', { name: /^Details of entry/ }).click();
      const row = page.getByRole('row').filter({ has: page.getByRole('rowheader', { name: 'description' }) });
      expect(await row.last().getByRole('cell').allTextContents()).toEqual(['empty', 'Nightly batch']);
      expect(await accessibilityFaults(page)).toEqual([]);
      await keepPicture(page, 'audit-change-light');
      await page.getByRole('button', { name: 'Remove the filter Object' }).click();
      await page.waitForURL((url) => url.search === '?action=changed');
      const [saved] = await Promise.all([
        page.waitForEvent('download'),
        page.getByRole('button', { name: 'Export CSV' }).click(),
      ]);
      expect(saved.suggestedFilename()).toBe('audit.csv');
      expect(await textOf(saved)).toContain('Nightly batch');
    });

    test('takes an operator', async () => {
      const { page } = await openTab();
      await logIn(page, `${node.server}/audit`, 'viewer', PASSWORD);
      await page.getByText('The audit log takes the role operator.').waitFor();
      expect(await page.getByRole('link', { name: 'Audit' }).count()).toBe(0);
    });
  });

  test('cluster: who is not ready and why, and that Redis is away', async () => {
    const { page } = await openTab();
    const pod = {
      app: 'server',
      address: 'pod:8080',
      version: '1.0.0',
      sessions: 3,
      startedAt: '2026-01-01T00:00:00Z',
    };
    const members = [
      { ...pod, name: 'pod-1', isLeader: true, ready: true, notReadyReason: null },
      { ...pod, name: 'pod-2', isLeader: false, ready: false, notReadyReason: 'draining', version: '1.1.0' },
    ];
    const overview = { enabled: true, clusterName: 'north', members, memberCount: 2 };
    const redis = { connected: false, since: '2026-01-01T00:00:00Z' };
    await page.route('**/api/v1/cluster', (route) => route.fulfill({ json: overview }));
    await page.route('**/api/v1/cluster/status', (route) =>
      route.fulfill({ json: { ...overview, nodeName: 'pod-1', isLeader: true, redis } }),
    );
    await logIn(page, `${node.server}/cluster`);
    await page.getByText('draining').waitFor();
    await page.getByText('The pods run different versions: 1.0.0, 1.1.0').waitFor();
    await page.getByText(/^Redis has been away since/).waitFor();
    expect(await accessibilityFaults(page)).toEqual([]);
    await keepPicture(page, 'cluster-two-light');
  });

  describe('certificates', () => {
    const inDialog = (page: Page) => page.getByRole('dialog');

    // There is one for a node: whichever test comes first finds it made by its page.
    beforeAll(async () => {
      const { page } = await openTab();
      await logIn(page, `${node.server}/certificates`);
      await page.getByLabel('Common name').fill('Acme PeSIT CA');
      await page.getByRole('button', { name: 'Create the local CA' }).click();
      await page.getByText('CN=Acme PeSIT CA').waitFor();
    });

    test('of the local CA: for a partner, whose password is shown once, and revoked', async () => {
      const { page, complaints } = await openTab();
      await logIn(page, `${node.server}/certificates`);
      await page.getByRole('button', { name: 'Issue a certificate' }).click();
      await inDialog(page).getByLabel('Name', { exact: true }).fill('bank');
      await inDialog(page).getByLabel('Common name').fill('bank.example');
      await inDialog(page).getByRole('button', { name: 'Issue a certificate' }).click();
      const shown = page.getByRole('dialog', { name: 'Certificate of bank' });
      const password = (await shown.locator('dd code').textContent()) ?? '';
      const [saved] = await Promise.all([
        page.waitForEvent('download'),
        shown.getByRole('button', { name: 'Save the PKCS#12' }).click(),
      ]);
      expect(saved.suggestedFilename()).toBe('bank.p12');
      await shown.getByRole('button', { name: 'Close' }).click();
      expect(await page.locator('main').textContent()).not.toContain(password);

      // The same file comes back as a keystore: with a wrong password refused in words, then taken.
      await page.getByRole('button', { name: 'Add a keystore' }).click();
      await inDialog(page).getByLabel('Name', { exact: true }).fill('bank-store');
      await inDialog(page)
        .locator('[name=file]')
        .setInputFiles(await saved.path());
      await inDialog(page).getByLabel('Password').fill('not-this-one');
      await inDialog(page).getByRole('button', { name: 'Store it' }).click();
      expect(await inDialog(page).getByRole('alert').textContent()).toMatch(/password/i);
      await inDialog(page).getByLabel('Password').fill(password);
      await inDialog(page).getByRole('button', { name: 'Store it' }).click();
      await page.getByRole('button', { name: 'Delete bank-store' }).waitFor();
      await page.getByRole('button', { name: 'Delete bank-store' }).click();
      await inDialog(page).getByRole('button', { name: 'Delete', exact: true }).click();
      await page.getByRole('button', { name: 'Delete bank-store' }).waitFor({ state: 'detached' });

      await page.getByRole('button', { name: 'Revoke bank' }).click();
      await inDialog(page).getByLabel('Reason').selectOption('keyCompromise');
      await inDialog(page).getByRole('button', { name: 'Revoke', exact: true }).click();
      await page.getByText('revoked', { exact: true }).waitFor();
      const [crl] = await Promise.all([
        page.waitForEvent('download'),
        page.getByRole('button', { name: 'CRL', exact: true }).click(),
      ]);
      expect([crl.suggestedFilename(), (await textOf(crl)).length > 100]).toEqual(['ca.crl', true]);
      expect(complaints.filter((one) => !/status of 40[04] /.test(one))).toEqual([]);
    });

    test('a certificate request is signed, a key of RSA is made, and a truststore is told where its CRLs are', async () => {
      const directory = mkdtempSync(join(tmpdir(), 'pesit-console-csr-'));
      const keys = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-keyout', 'own.key'];
      const request = ['req', '-new', ...keys, '-out', 'own.csr', '-subj', '/CN=ignored'];
      execFileSync('openssl', request, { cwd: directory, stdio: 'ignore' });
      const { page } = await openTab();
      await logIn(page, `${node.server}/certificates`);
      const issue = async (key: string, name: string): Promise<X509Certificate> => {
        await inDialog(page).getByLabel('Name', { exact: true }).fill(name);
        await inDialog(page).getByLabel('Common name').fill(`${name}.example`);
        expect(await accessibilityFaults(page)).toEqual([]);
        await keepPicture(page, `certificates-${key}-light`, false);
        await inDialog(page).getByRole('button', { name: 'Issue a certificate' }).click();
        const shown = page.getByRole('dialog', { name: `Certificate of ${name}` });
        const [saved] = await Promise.all([
          page.waitForEvent('download'),
          shown.getByRole('button', { name: 'Save the certificate' }).click(),
        ]);
        await shown.getByRole('button', { name: 'Certificate of the CA' }).waitFor();
        await shown.getByRole('button', { name: 'Close' }).click();
        expect(saved.suggestedFilename()).toBe(`${name}.pem`);
        return new X509Certificate(await textOf(saved));
      };
      await page.getByRole('button', { name: 'Issue a certificate' }).click();
      await inDialog(page).locator('[name=keyType]').selectOption('CSR');
      await inDialog(page).locator('input[type=file]').setInputFiles(join(directory, 'own.csr'));
      await page.waitForFunction("document.querySelector('[name=csr]').value.includes('CERTIFICATE REQUEST')");
      const signed = await issue('csr', 'signed');
      expect(signed.checkPrivateKey(createPrivateKey(readFileSync(join(directory, 'own.key'))))).toBe(true);
      expect(signed.subject).toBe('CN=signed.example');
      await page.getByRole('button', { name: 'Issue a certificate' }).click();
      await inDialog(page).locator('[name=keyType]').selectOption('RSA');
      const { publicKey } = await issue('rsa', 'strong');
      expect(publicKey.asymmetricKeyDetails?.modulusLength).toBe(3072);
      rmSync(directory, { recursive: true });

      const { certificate } = await ask(node.server, '/api/v1/certificates/ca');
      await ask(node.server, '/api/v1/certificates/truststores', { name: 'listed', certificates: certificate });
      await page.getByRole('link', { name: 'Now', exact: true }).click();
      await page.getByRole('link', { name: 'Certificates', exact: true }).click();
      await page.getByRole('button', { name: 'CRL URLs of listed' }).click();
      await inDialog(page).getByLabel('URLs of CRLs').fill('ftp://127.0.0.1/ca.crl');
      await inDialog(page).getByRole('button', { name: 'Store it' }).click();
      await inDialog(page).getByRole('alert').getByText('http').first().waitFor();
      await inDialog(page).getByLabel('URLs of CRLs').fill('http://127.0.0.1:1/ca.crl');
      await inDialog(page).getByRole('button', { name: 'Store it' }).click();
      await page.getByText(/^CRL http:\/\/127\.0\.0\.1:1\/ca\.crl/).waitFor();
      expect(await ask(node.server, '/api/v1/certificates/truststores/listed')).toMatchObject({
        crlUrls: ['http://127.0.0.1:1/ca.crl'],
      });
    });

    test('a keystore of this node: rotated, and not deleted while a listener uses it', async () => {
      const { page } = await openTab();
      await logIn(page, `${node.server}/certificates`);
      await page.getByRole('button', { name: 'Issue a certificate' }).click();
      await inDialog(page).locator('[name=kind]').selectOption('server');
      await inDialog(page).getByLabel('Name', { exact: true }).fill('node');
      await inDialog(page).getByLabel('Common name').fill('node.example');
      await inDialog(page).getByLabel('Valid for days').fill('20');
      await inDialog(page).getByRole('button', { name: 'Issue a certificate' }).click();
      await inDialog(page).getByRole('button', { name: 'Close' }).click();
      await ask(node.server, '/api/v1/servers?start=false', {
        ...{ serverId: 'TLS', port: 1, sslEnabled: true, tlsPort: 2, keystoreName: 'node', autoStart: false },
      });
      await page.getByRole('button', { name: 'Rotate node' }).click();
      await page.getByText('Used by: listener TLS').waitFor();
      expect(await page.locator('main').textContent()).toContain('These end within 30 days, or have ended: node.');
      expect(await accessibilityFaults(page)).toEqual([]);
      await keepPicture(page, 'certificates-ca-light');
      await ask(node.server, '/api/v1/certificates/issue', {
        ...{ name: 'SHOP', commonName: 'shop.example', kind: 'partner', ttlDays: 9 },
      });
      // Whoever reads the metrics has the app look at its stores, which it does once a minute by itself.
      await fetch(`${node.server}/metrics`, { headers: { authorization: BASIC } });
      const viewer = await openTab();
      await logIn(viewer.page, node.server, 'viewer', PASSWORD);
      const matter = (text: string) =>
        viewer.page.getByRole('region', { name: 'Needs attention' }).getByRole('listitem').filter({ hasText: text });
      await matter('Keystore node · days until its certificate ends: 19')
        .getByText(/used by: listener TLS$/)
        .waitFor();
      await matter('Keystore node')
        .getByText(/^What to do: The local CA renews it/)
        .waitFor();
      await matter('Issued to SHOP · days until its certificate ends: 8')
        .getByText(/give it to its holder/)
        .waitFor();
      expect(await accessibilityFaults(viewer.page)).toEqual([]);
      await keepPicture(viewer.page, 'now-certificates-light');
      await matter('SHOP').getByRole('link', { name: 'To the certificates' }).click();
      await viewer.page.getByRole('heading', { level: 1, name: 'Certificates' }).waitFor();
      expect(viewer.complaints).toEqual([]);
      await page.getByRole('button', { name: 'Delete node' }).click();
      await inDialog(page).getByRole('button', { name: 'Delete', exact: true }).click();
      expect(await page.getByRole('alert').textContent()).toContain('TLS');
    });
  });
};
