/** The guided set-up over TLS: what the page gives to the partner is all that its program needs. */
import { execFile, execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { afterAll, expect, test } from '@jest/globals';
import type { Locator, Page } from 'playwright-core';

import { accessibilityFaults, logIn } from '../support/browser.js';
import { ask, needCa } from '../support/node.js';
import type { Stage } from '../support/stage.js';
import { keepPicture } from '../support/visit.js';

/** Compiled: the node was started from it, too. */
const CLI = fileURLToPath(new URL('../../../cli/dist/main.js', import.meta.url));
const library = new URL('../../../../scripts/lib/process.mjs', import.meta.url).href;
const { freePort } = (await import(library)) as { freePort: () => Promise<number> };

export const tlsSetUp = ({ node, openTab }: Stage): void => {
  const directory = mkdtempSync(join(tmpdir(), 'pesit-console-partner-'));
  afterAll(() => rmSync(directory, { recursive: true, force: true }));

  const openssl = (...args: readonly string[]): string =>
    execFileSync('openssl', args, { cwd: directory, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] });
  /** The partner's program. @returns its exit code and what it said */
  const pesit = (...args: readonly string[]): Promise<readonly [code: unknown, said: string]> =>
    new Promise((resolve) => {
      execFile(process.execPath, [CLI, ...args], { cwd: directory }, (error, out, said) =>
        resolve([error === null ? 0 : error.code, out + said]),
      );
    });
  /** What the parameter sheet says, by the name of its line; and the flags of the program that say the same. */
  const readSheet = async (page: Page) => {
    const sheet = (await page.getByLabel('Parameter sheet').locator('pre').textContent()) ?? '';
    const lines = new Map(sheet.split('\n').map((line) => line.split(/: +/) as [string, string | undefined]));
    const said = (name: string): string => lines.get(name) ?? '';
    writeFileSync(join(directory, 'password'), `${said('Your password (PI 5)')}\n`);
    writeFileSync(join(directory, 'ca.pem'), /-----BEGIN[^]+/.exec(sheet)?.[0] ?? '');
    const session = [
      ...['--host', said('Host'), '--port', said('Port'), '--server-id', said('Server identifier (PI 4)')],
      ...['--partner', said('Your identifier (PI 3)'), '--password-file', 'password', '--tls', '--ca', 'ca.pem'],
    ];
    return { sheet, said, session };
  };

  test('a listener of its own: made, tried, and a partner with the certificate from us sends a file', async () => {
    const port = String(await freePort());
    const { page, complaints } = await openTab();
    // The login.
    let steps = 3;
    const click = (where: Locator) => ((steps += 1), where.click());
    const fill = (where: Locator, text: string) => ((steps += 1), where.fill(text));
    const choose = (where: Locator, label: string) => ((steps += 1), where.selectOption({ label }));
    const keep = async (button: string): Promise<string> => {
      const [saved] = await Promise.all([
        page.waitForEvent('download'),
        click(page.getByRole('button', { name: button })),
      ]);
      const path = join(directory, saved.suggestedFilename());
      await saved.saveAs(path);
      return path;
    };
    await logIn(page, node.server);
    await click(page.getByRole('link', { name: 'Partners' }));
    await click(page.getByRole('link', { name: 'Set up a partner' }));
    await fill(page.getByLabel('Identifier (PI 3)'), 'SHOP');
    await choose(page.getByRole('combobox', { name: 'Listener', exact: true }), 'a new one');
    await click(page.getByLabel('only with TLS'));
    const portField = page.getByRole('spinbutton', { name: 'Port', exact: true });
    expect(await portField.inputValue()).toBe('5001');
    await fill(portField, port);
    await choose(page.getByLabel('Certificate of the listener'), 'a new one, from our CA');
    await choose(page.getByLabel('The partner shows who it is by'), 'password, and a new certificate from us');
    expect(await accessibilityFaults(page)).toEqual([]);
    await keepPicture(page, 'set-up-tls-light');
    await click(page.getByRole('button', { name: 'Set up a partner' }));

    // Tried by the service itself, before the partner comes.
    await page.getByText(/^a PeSIT session was opened and released in/).waitFor();
    await page.getByText('It may write SHOP.').waitFor();
    const { sheet, said, session } = await readSheet(page);
    const ca = readFileSync(await keep('Save the certificate of our CA'), 'utf8');
    expect(sheet).toContain(ca.trim());
    const pkcs12 = await keep('Save the PKCS#12 of the partner');
    const files = page.getByRole('region', { name: 'Files for the partner' });
    const secret = (await files.locator('dd').textContent()) ?? '';
    expect(sheet).not.toContain(secret);
    expect(said('Names in our certificate')).toBe(`IP:${said('Host')}`);
    openssl('pkcs12', '-in', pkcs12, '-passin', `pass:${secret}`, '-nodes', '-out', 'shop.pem');
    writeFileSync(join(directory, 'orders.csv'), 'one;two\n');
    // Bound to the certificate: the password alone does not let it in.
    expect(await pesit('test', ...session)).toEqual([5, expect.stringContaining('3-304')]);
    const sending = await pesit(
      ...['send', 'orders.csv', '--remote', said('Virtual file (PI 12)')],
      ...[...session, '--cert', 'shop.pem'],
    );
    expect(sending).toEqual([0, expect.anything()]);
    const crossed = page.locator('.steps li.good').nth(4);
    await crossed.getByRole('link').waitFor();
    expect(await crossed.textContent()).toContain('Completed');
    expect(steps).toBe(14);
    expect(await accessibilityFaults(page)).toEqual([]);
    await keepPicture(page, 'set-up-tls-done');
    expect(await ask(node.server, '/api/v1/config/partners/SHOP')).toMatchObject({
      ...{ tlsRequired: true, certificateFingerprint: [said('SHA-256 of it')] },
    });
    // A browser notes each 404: this one says that there is no local CA yet.
    expect(complaints.filter((one) => !/ 404 .*\/certificates\/ca$/.test(one))).toEqual([]);
  });

  test('a listener that asked for no certificate, and a certificate of the partner’s own: believed and bound', async () => {
    openssl(
      ...['req', '-x509', '-days', '90', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'],
      ...['-keyout', 'own.key', '-out', 'own.pem', '-subj', '/CN=owner'],
    );
    await needCa(node);
    await ask(node.server, '/api/v1/certificates/issue', {
      ...{ name: 'open', commonName: 'open', sans: ['127.0.0.1'] },
    });
    await ask(node.server, '/api/v1/servers', {
      ...{ serverId: 'OPEN', port: null, tlsPort: await freePort(), sslEnabled: true, keystoreName: 'open' },
    });
    const { page } = await openTab();
    await logIn(page, `${node.server}/partners?setup=1`);
    await page.getByLabel('Identifier (PI 3)').fill('OWNER');
    await page.getByRole('combobox', { name: 'Listener', exact: true }).selectOption('OPEN');
    await page.getByLabel('only with TLS').check();
    await page.getByLabel('The partner shows who it is by').selectOption('own');
    await page.getByLabel('Certificate of the partner (PEM)').fill(readFileSync(join(directory, 'own.pem'), 'utf8'));
    await page.getByRole('button', { name: 'Set up a partner' }).click();
    await page.getByText('It may write OWNER.').waitFor();
    const [, fingerprint] = openssl('x509', '-in', 'own.pem', '-noout', '-fingerprint', '-sha256').trim().split('=');
    expect(await ask(node.server, '/api/v1/config/partners/OWNER')).toMatchObject({
      certificateFingerprint: [fingerprint],
    });
    expect(await ask(node.server, '/api/v1/servers/OPEN')).toMatchObject({ sslClientAuth: 'WANT' });
    const { session } = await readSheet(page);
    const own = ['--cert', 'own.pem', '--key', 'own.key'];
    expect(await pesit('test', ...session, ...own)).toEqual([0, expect.anything()]);
  });
};
