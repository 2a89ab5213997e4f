/** Pages of the console that do something, in a real browser: as `browser.test.ts`, with a node of their own. */
import { mkdirSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import { join } from 'node:path';

import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { Browser, Download, Locator, Page } from 'playwright-core';

import { accessibilityFaults, describeInBrowser, logIn, LOOKS, openBrowser, openTab } from './support/browser.js';
import { startFront } from './support/front.js';
import type { Front } from './support/front.js';
import { ask, BASIC, PASSWORD, startNode } from './support/node.js';
import type { StartedNode } from './support/node.js';

const screens = process.env['PESIT_SCREENS'];
const textOf = async (saved: Download): Promise<string> => {
  const parts: Buffer[] = [];
  for await (const part of await saved.createReadStream()) parts.push(part as Buffer);
  return Buffer.concat(parts).toString();
};

describeInBrowser('pages that do something', () => {
  let node: StartedNode;
  let browser: Browser;
  const fronts: Front[] = [];
  const inFront = async (own?: Parameters<typeof startFront>[1]): Promise<Front> => {
    const front = await startFront(node.client, own);
    fronts.push(front);
    return front;
  };
  beforeAll(async () => {
    [node, browser] = await Promise.all([startNode(), openBrowser()]);
    await ask(node.server, '/api/v1/config/partners', {
      ...{ partnerId: 'SLOW', password: 'Slow4711', allowedOperations: ['WRITE'], maxBytesPerSecond: 65_536 },
    });
    await ask(node.server, '/api/v1/config/files', { fileId: 'SLOWLY', direction: 'RECEIVE' });
    await ask(node.client, '/api/v1/servers', {
      ...{ name: 'slow', host: '127.0.0.1', port: node.pesitPort, serverId: 'SAMPLE', clientId: 'SLOW' },
      ...{ password: 'Slow4711' },
    });
  });
  afterAll(async () => {
    await browser.close();
    await Promise.all(fronts.map(({ goAway }) => goAway()));
    await node.stop();
  });

  const settled = async (page: Page): Promise<void> => {
    await page.locator('h1').waitFor();
    await page.locator('[role=status]').first().waitFor({ state: 'detached' });
  };

  const keepPicture = async (of: Page | Locator, name: string): Promise<void> => {
    if (screens === undefined) return;
    mkdirSync(screens, { recursive: true });
    const path = join(screens, `${name}.png`);
    await ('goto' in of ? of.screenshot({ path, fullPage: true }) : of.screenshot({ path }));
  };

  /** As a click on its link does: without a new login. */
  const goTo = async (page: Page, path: string): Promise<void> => {
    await page.evaluate(`{
      history.pushState(null, '', ${JSON.stringify(path)});
      dispatchEvent(new PopStateEvent('popstate'));
    }`);
    await page.locator(`.rail a[href="${path}"][aria-current]`).waitFor({ state: 'attached' });
  };

  describe('every page', () => {
    const pages = {
      server: ['/audit', '/cluster', '/certificates', '/figures'],
      client: ['/send', '/audit', '/cluster', '/certificates', '/figures'],
    } as const;
    const cases = Object.keys(LOOKS).flatMap((look) =>
      (['server', 'client'] as const).map((app) => [app, look as keyof typeof LOOKS] as const),
    );

    test.each(cases)('of the %s app, %s: no complaint of the browser, nothing that axe finds', async (app, look) => {
      const { page, complaints } = await openTab(browser, LOOKS[look]);
      await logIn(page, `${node[app]}/license`);
      await settled(page);
      for (const path of pages[app]) {
        const before = (await page.locator('h1').textContent()) ?? '';
        await goTo(page, path);
        await page.locator('h1').filter({ hasNotText: before }).waitFor();
        await settled(page);
        expect([path, await accessibilityFaults(page)]).toEqual([path, []]);
        const width = await page.evaluate<number>('document.documentElement.scrollWidth');
        expect(width).toBeLessThanOrEqual(LOOKS[look].width);
        await keepPicture(page, `${path.slice(1)}-${app}-${look}`);
      }
      // A browser notes each 404: this one says that there is no local CA yet.
      expect(complaints.filter((one) => !/ 404 .*\/certificates\/ca$/.test(one))).toEqual([]);
      await page.context().close();
    });
  });

  const file = (name: string, size: number) => ({
    ...{ name, mimeType: 'application/octet-stream', buffer: Buffer.alloc(size, 'x') },
  });

  const fillTarget = async (page: Page, server: string, virtualFile: string): Promise<void> => {
    await page.getByLabel('Remote server').selectOption(server);
    await page.getByLabel('Virtual file (PI 12)').fill(virtualFile);
  };

  describe('send', () => {
    test('several files at a time, each to its end, and their virtual file is offered next time', async () => {
      const { page, complaints } = await openTab(browser);
      await logIn(page, `${node.client}/send`);
      await page.locator('input[type=file]').setInputFiles([file('état 1.csv', 2_000_000), file('b.bin', 0)]);
      expect(await page.getByLabel('Name of état 1.csv at the partner').inputValue()).toBe('etat 1.csv');
      await page.getByLabel('Name of b.bin at the partner').fill('second.bin');
      await fillTarget(page, 'sample', 'INBOX');
      await page.getByRole('button', { name: 'Send them' }).click();
      const asked = page.getByRole('region', { name: 'Asked for here' }).getByRole('listitem');
      await asked.filter({ hasText: 'état 1.csv' }).getByText('Completed').waitFor();
      await asked.filter({ hasText: 'b.bin' }).getByText('Completed').waitFor();
      const { content } = await ask(node.server, '/api/v1/transfers?virtualFileId=INBOX');
      const arrived = (content as { label: string; size: number }[]).map(({ label, size }) => [label, size]);
      expect(arrived).toEqual(
        expect.arrayContaining([
          ['etat 1.csv', 2_000_000],
          ['second.bin', 0],
        ]),
      );
      await page.getByRole('button', { name: 'Clear what has ended' }).click();
      await page.getByText('Files that you send are here').waitFor();
      await page.getByRole('link', { name: 'Receive a file' }).click();
      await page.getByRole('link', { name: 'Send files' }).click();
      await page.getByLabel('Remote server').selectOption('sample');
      await page.locator('datalist option[value=INBOX]').waitFor({ state: 'attached' });
      expect(complaints).toEqual([]);
    });

    test('dropped on the page, with its progress at the partner, and stopped', async () => {
      const { page } = await openTab(browser);
      await logIn(page, `${node.client}/send`);
      await page.locator('.drop').waitFor();
      await page.evaluate(`{
        const dataTransfer = new DataTransfer();
        dataTransfer.items.add(new File([new Uint8Array(40_000_000)], 'dropped.bin'));
        document.querySelector('.drop').dispatchEvent(new DragEvent('drop', { dataTransfer, bubbles: true, cancelable: true }));
      }`);
      await fillTarget(page, 'slow', 'SLOWLY');
      await page.getByRole('button', { name: 'Send it' }).click();
      const row = page.getByRole('region', { name: 'Asked for here' }).getByRole('listitem');
      await row.getByRole('progressbar', { name: 'Transfer of dropped.bin' }).waitFor();
      await row.locator('progress[value]:not([value="0"])').waitFor();
      await keepPicture(page, 'send-running-light');
      await row.getByRole('button', { name: 'Stop dropped.bin' }).click();
      await row.getByText('Cancelled', { exact: true }).waitFor();
    });

    test('a refusal is told in words with its request id, and taken at the next try', async () => {
      const { page } = await openTab(browser);
      await logIn(page, `${node.client}/send`);
      const path = '**/api/v1/transfers/send?**';
      for (const [status, words] of [
        [413, 'larger than this service takes'],
        [429, 'The queue is full'],
        [507, 'no space for it'],
      ] as const) {
        const name = `${status}.txt`;
        const json = { error: 'REFUSED', message: `It is refused with ${status}` };
        await page.route(path, (route) => route.fulfill({ status, json, headers: { 'X-Request-Id': `r-${status}` } }));
        await page.locator('input[type=file]').setInputFiles([file(name, 10)]);
        await fillTarget(page, 'sample', 'INBOX');
        await page.getByRole('button', { name: 'Send it' }).click();
        const row = page
          .getByRole('region', { name: 'Asked for here' })
          .getByRole('listitem')
          .filter({ hasText: name });
        await row.getByText(words).waitFor();
        expect(await row.getByRole('alert').textContent()).toContain(`${json.message}Request r-${status}`);
        await page.unroute(path);
        await row.getByRole('button', { name: `Try ${name} again` }).click();
        await row.getByText('Completed').waitFor();
      }
    });

    test('an upload that breaks off is made again under the same key', async () => {
      const { page } = await openTab(browser);
      await logIn(page, `${node.client}/send`);
      const keys: (string | undefined)[] = [];
      const path = '**/api/v1/transfers/send?**';
      await page.route(path, async (route) => {
        keys.push(route.request().headers()['idempotency-key']);
        if (keys.length > 1) await route.continue();
        else await route.abort('connectionreset');
      });
      await page.locator('input[type=file]').setInputFiles([file('broken.txt', 10)]);
      await fillTarget(page, 'sample', 'INBOX');
      await page.getByRole('button', { name: 'Send it' }).click();
      await page.getByText('The upload broke off. Try again').waitFor();
      await page.getByRole('button', { name: 'Try broken.txt again' }).click();
      await page.getByText('Completed').waitFor();
      expect(keys).toEqual([keys[0], keys[0]]);
    });

    test('what fails at the partner says so; a receive and a message', async () => {
      const { page } = await openTab(browser);
      await logIn(page, `${node.client}/send?what=receive`);
      const row = page.getByRole('region', { name: 'Asked for here' }).getByRole('listitem');
      await fillTarget(page, 'sample', 'NOSUCH');
      await page.getByRole('button', { name: 'Receive it' }).click();
      await row.filter({ hasText: 'NOSUCH' }).getByText('is not known here').waitFor();
      await page.getByRole('link', { name: 'Send a message' }).click();
      await fillTarget(page, 'sample', 'NOTE');
      await page.getByLabel('Message (PI 91)').fill('The invoices are booked.');
      await page.getByRole('button', { name: 'Send it' }).click();
      await row.filter({ hasText: 'NOTE' }).getByText('Completed').waitFor();
    });

    test('a viewer is not led there', async () => {
      const { page } = await openTab(browser);
      await logIn(page, `${node.client}/send`, 'viewer', PASSWORD);
      await page.getByText('Your role may look, and not send.').waitFor();
      expect(await page.getByRole('link', { name: 'Send', exact: true }).count()).toBe(0);
    });
  });

  describe('audit', () => {
    test('who changed what, before and after; filters live in the address', async () => {
      const path = '/api/v1/config/partners/SLOW';
      const partner = await ask(node.server, path);
      await ask(node.server, path, { ...partner, description: 'Nightly batch' }, 'PUT');
      const { page } = await openTab(browser);
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
      const { page } = await openTab(browser);
      await logIn(page, `${node.server}/audit`, 'viewer', PASSWORD);
      await page.getByText('The audit log takes the role operator.').waitFor();
      expect(await page.getByRole('link', { name: 'Audit' }).count()).toBe(0);
    });
  });

  test('cluster: who is not ready and why, and that Redis is away', async () => {
    const { page } = await openTab(browser);
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

    test('the local CA: made, a certificate for a partner whose password is shown once, and revoked', async () => {
      const { page, complaints } = await openTab(browser);
      await logIn(page, `${node.server}/certificates`);
      await page.getByLabel('Common name').fill('Acme PeSIT CA');
      await page.getByRole('button', { name: 'Create the local CA' }).click();
      await page.getByText('CN=Acme PeSIT CA').waitFor();
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

    test('a keystore of this node: rotated, and not deleted while a listener uses it', async () => {
      const { page } = await openTab(browser);
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
      const viewer = await openTab(browser);
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

  const sendNow = async (remoteFilename: string): Promise<string> => {
    const sent = await ask(node.client, '/api/v1/transfers/send?wait=30', {
      ...{ server: 'sample', virtualFile: 'INBOX', remoteFilename, fileContent: 'aGVsbG8=' },
    });
    return String(sent['id']);
  };

  test('the trace beside a record: switched on, then FPDU by FPDU', async () => {
    const { page } = await openTab(browser);
    await logIn(page, `${node.client}/transfers/${await sendNow('untraced.txt')}`);
    const card = page.getByRole('region', { name: 'Trace of the session' });
    await card.getByText(/The trace of this partner was off/).waitFor();
    await card.getByRole('button', { name: 'Trace the next hour' }).click();
    await card.getByText(/^The trace is on/).waitFor();
    const traced = await sendNow('traced.txt');
    await page.getByRole('link', { name: 'All transfers' }).click();
    await page.getByRole('link', { name: 'Transfer of traced.txt' }).click();
    await page.waitForURL(`**/transfers/${traced}`);
    await card.locator('summary').click();
    const create = card.getByRole('row').filter({ hasText: 'wants to write a file' });
    await create.getByText(/PI 12 \(file name\) "INBOX"/).waitFor();
    expect(await create.getByRole('cell').nth(1).textContent()).toContain('sent');
    await card.getByRole('row').filter({ hasText: 'answers CREATE' }).waitFor();
    expect(await card.textContent()).toContain('PI 5 (access control) ********');
    expect(await accessibilityFaults(page)).toEqual([]);
    // High enough for the whole card: the bar of the page would lie on it.
    await page.setViewportSize({ width: 1280, height: 2600 });
    await keepPicture(card, 'trace-client-light');
    await card.getByRole('button', { name: 'Trace off' }).click();
    await card.getByRole('button', { name: 'Trace the next hour' }).waitFor();
  });

  test('metrics: a picture of the day, and its figures in a table', async () => {
    await sendNow('counted.txt');
    const { page } = await openTab(browser);
    await logIn(page, `${node.client}/figures`);
    const chart = page.getByRole('region', { name: 'Transfers', exact: true });
    await chart.locator('canvas').waitFor();
    await chart.getByText('Figures', { exact: true }).click();
    const rows = chart.getByRole('table').getByRole('row');
    expect(await rows.count()).toBe(25);
    const counts = await rows.locator('td:nth-of-type(1)').allTextContents();
    expect(counts.reduce((sum, one) => sum + Number(one), 0)).toBeGreaterThan(0);
    await page.getByRole('region', { name: 'Wait in the queue' }).getByText(/^≤ /).first().waitFor();
    await page.getByRole('link', { name: '30 days' }).click();
    await page.waitForURL('**/figures?range=month');
    await page
      .getByRole('columnheader', { name: 'Day (UTC)', includeHidden: true })
      .first()
      .waitFor({ state: 'attached' });
  });

  describe('a file that is larger than the memory', () => {
    const LARGE = { 'Content-Length': '5000000000', 'Content-Type': 'application/octet-stream' };
    const openReceived = async (page: Page, id: string): Promise<void> => {
      // As if it had been received: the content is asked for, and its size is told by the answer alone.
      await page.route(`**/api/v1/transfers/${id}`, async (route) => {
        const answer = await route.fetch();
        const record = (await answer.json()) as Record<string, unknown>;
        await route.fulfill({ response: answer, json: { ...record, direction: 'RECEIVE' } });
      });
      await page.route(`**/api/v1/transfers/${id}/content`, (route) =>
        route.fulfill({ headers: LARGE, body: 'begin' }),
      );
      await logIn(page, `${node.client}/transfers/${id}`);
    };

    test('goes to the place that the person chooses, as it comes', async () => {
      const { page } = await openTab(browser);
      await page.addInitScript(`window.kept = { text: '', name: '' };
        window.showSaveFilePicker = async ({ suggestedName }) => {
          window.kept.name = suggestedName;
          const write = (part) => { window.kept.text += new TextDecoder().decode(part); };
          return { createWritable: async () => new WritableStream({ write }) };
        };`);
      await openReceived(page, await sendNow('large.bin'));
      await page.getByRole('button', { name: 'Download' }).click();
      await page.waitForFunction('window.kept.text !== ""');
      expect(await page.evaluate('window.kept')).toEqual({ name: 'large.bin', text: 'begin' });
    });

    test('where the browser cannot: the command that can', async () => {
      const { page } = await openTab(browser);
      await page.addInitScript('delete window.showSaveFilePicker');
      const id = await sendNow('large.bin');
      await openReceived(page, id);
      await page.getByRole('button', { name: 'Download' }).click();
      const told = await page.getByRole('alert').locator('code').first().textContent();
      expect(told).toBe(`curl -u 'admin' -o 'large.bin' '${node.client}/api/v1/transfers/${id}/content'`);
    });
  });

  test('a pod that goes away while one looks: the page says so, and comes back by itself', async () => {
    const front = await inFront();
    const { page } = await openTab(browser);
    await page.clock.install();
    await logIn(page, front.address);
    await page.getByText('Live', { exact: true }).waitFor();
    await settled(page);
    await front.goAway();
    await page.getByText('Connecting again …').waitFor();
    // The clock of the page alone: it asks anew every ten seconds.
    await page.clock.fastForward(11_000);
    await page.getByText('The service does not answer. This page tries again by itself.').waitFor();
    await page.getByText('What you see may be old.').waitFor();
    await front.comeBack();
    await page.clock.fastForward(31_000);
    await page.getByText('Live', { exact: true }).waitFor();
    await page.getByRole('alert').waitFor({ state: 'detached' });
  });

  test('events for half an hour do not make the page grow', async () => {
    let events: ServerResponse | undefined;
    const { content } = await ask(node.client, '/api/v1/transfers/history?size=1');
    const [sample] = content as Record<string, unknown>[];
    const running = (id: string) => ({
      ...sample,
      id,
      remoteFilename: id,
      filename: id,
      status: 'IN_PROGRESS',
      endTime: null,
    });
    const names = Array.from({ length: 200 }, (_, index) => `live-${index}`);
    const page200 = { content: names.map(running), totalElements: 200, totalPages: 1, number: 0, size: 500 };
    const front = await inFront({
      '/api/v1/transfers/events': (answer) => {
        answer.writeHead(200, { 'Content-Type': 'text/event-stream' });
        answer.write(': here\n\n');
        events = answer;
      },
      '/api/v1/cluster/transfers': (answer) => {
        answer.writeHead(200, { 'Content-Type': 'application/json' });
        answer.end(JSON.stringify({ ...page200, totalIsExact: true, next: null }));
      },
    });
    const tell = (name: string, data: unknown): Promise<void> =>
      new Promise((resolve) => {
        events?.write(`event: ${name}\ndata: ${JSON.stringify(data)}\n\n`, () => resolve());
      });
    const { page } = await openTab(browser);
    await logIn(page, front.address);
    await page.getByRole('region', { name: 'Running: 200' }).waitFor();
    await page.getByText('Live', { exact: true }).waitFor();
    const session = await page.context().newCDPSession(page);
    await session.send('Performance.enable');
    const heap = async (): Promise<number> => {
      await session.send('HeapProfiler.collectGarbage');
      const { metrics } = await session.send('Performance.getMetrics');
      return metrics.find(({ name }) => name === 'JSHeapUsedSize')?.value ?? NaN;
    };
    /** Twice a second for `minutes`, without the pauses. */
    const live = async (minutes: number, round: string): Promise<void> => {
      for (let step = 0; step < minutes * 120; step += 1) {
        const told = names.slice(0, 20).map((id) => ({
          ...{ id, bytesTransferred: step, expectedBytes: 10_000, isAnnounced: false, rate: step, estimatedEnd: null },
        }));
        await tell('progress', told);
        await tell('transfer', {
          ...running(`${round}-${step}`),
          status: 'COMPLETED',
          endTime: new Date().toISOString(),
        });
      }
      await tell('progress', [
        { id: 'live-0', bytesTransferred: 4711, expectedBytes: null, rate: null, estimatedEnd: null },
      ]);
      await page.getByText('4.71 KB', { exact: true }).waitFor();
      await tell('progress', []);
      await page.getByText('4.71 KB', { exact: true }).waitFor({ state: 'detached' });
    };
    await live(5, 'first');
    const before = await heap();
    await live(30, 'second');
    const growth = (await heap()) - before;
    expect(growth).toBeLessThan(500_000);
  });
});
