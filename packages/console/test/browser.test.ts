/**
 * The console in a real browser, over both apps as `npm start` starts them. Left out where the machine has no Chromium
 * (Debian's package `chromium`). With PESIT_SCREENS=<directory> every page is also kept as a picture.
 */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';

import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { Browser, Page } from 'playwright-core';

import {
  accessibilityFaults,
  describeInBrowser,
  fillLogin,
  logIn,
  LOOKS,
  openBrowser,
  openTab,
} from './support/browser.js';
import { ask, PASSWORD, startNode } from './support/node.js';
import type { StartedNode } from './support/node.js';

const screens = process.env['PESIT_SCREENS'];

const CONTENT = Buffer.from('Hello, PeSIT!').toString('base64');

describeInBrowser('in a browser', () => {
  let node: StartedNode;
  let browser: Browser;
  beforeAll(async () => {
    [node, browser] = await Promise.all([startNode(), openBrowser()]);
    const send = (virtualFile: string, remoteFilename: string, label?: string) =>
      ask(node.client, '/api/v1/transfers/send?wait=30', {
        ...{ server: 'sample', virtualFile, remoteFilename, fileContent: CONTENT, label },
      });
    await send('INBOX', 'salaries.txt');
    // Taken for markup the label would be fetched, and the browser complain.
    await send('NOSUCH', 'payments.txt', '<img src=pay>');
  });
  afterAll(async () => {
    await browser.close();
    await node.stop();
  });

  const failed = async (): Promise<string> => {
    const { content } = await ask(node.client, '/api/v1/transfers/history?status=FAILED');
    return String((content as { id: string }[])[0]?.id);
  };

  const settled = async (page: Page): Promise<void> => {
    await page.locator('h1').waitFor();
    await page.locator('[role=status]').first().waitFor({ state: 'detached' });
  };

  describe('login', () => {
    test('wrong, then right; nothing of it stays in the browser', async () => {
      const { page } = await openTab(browser);
      await page.goto(node.server);
      await page.locator('[name=username]').fill('admin');
      await page.locator('[name=password]').fill('not-this-one');
      await page.locator('button.main').click();
      await page.getByRole('alert').waitFor();
      expect(await page.getByRole('alert').textContent()).toContain('does not know this user');
      await page.locator('[name=password]').fill('admin');
      await page.locator('button.main').click();
      await page.getByRole('heading', { level: 1, name: 'Now' }).waitFor();
      const kept = await page.evaluate('JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie])');
      expect(kept).toBe('[{},{},""]');
      expect(await page.context().cookies()).toEqual([]);
    });

    test('leads to the page that was asked for, and a reload asks for it again', async () => {
      const { page } = await openTab(browser);
      await logIn(page, `${node.server}/transfers?status=FAILED`);
      await page.getByRole('listitem').filter({ hasText: 'Status: Failed' }).waitFor();
      await page.reload();
      await page.locator('[name=password]').waitFor();
      expect(page.url()).toContain('status=FAILED');
    });

    test('logs out', async () => {
      const { page } = await openTab(browser);
      await logIn(page, node.client);
      await page.getByRole('button', { name: 'Log out' }).click();
      await page.getByText('You are logged out.').waitFor();
    });
  });

  describe('every page', () => {
    const pages = ['/', '/transfers', '/transfers/{failed}', '/license'];
    const cases = pages.flatMap((path) =>
      Object.keys(LOOKS).map((look) => [path, look as keyof typeof LOOKS] as const),
    );

    test.each(cases)('%s, %s: no complaint of the browser, nothing that axe finds', async (path, look) => {
      const { page, complaints } = await openTab(browser, LOOKS[look]);
      for (const app of ['server', 'client'] as const) {
        if (path.includes('{failed}') && app === 'server') continue;
        const at = path.replace('{failed}', await failed());
        await logIn(page, node[app] + at);
        await settled(page);
        expect(await accessibilityFaults(page)).toEqual([]);
        const width = await page.evaluate<number>('document.documentElement.scrollWidth');
        expect(width).toBeLessThanOrEqual(LOOKS[look].width);
        if (screens !== undefined) {
          mkdirSync(screens, { recursive: true });
          const name = at === '/' ? 'now' : `${at.split('/')[1] ?? ''}${path.includes('{') ? '-one' : ''}`;
          await page.screenshot({ path: join(screens, `${name}-${app}-${look}.png`), fullPage: true });
        }
      }
      expect(complaints).toEqual([]);
      await page.context().close();
    });
  });

  test('a failed transfer: its cause and what to do, two clicks from the first page', async () => {
    const { page } = await openTab(browser);
    await logIn(page, node.client);
    await page.getByRole('link', { name: 'Show them' }).click();
    await page.waitForURL(/\/transfers\/[^/?]+$/);
    await page.getByRole('heading', { name: 'Attempts' }).waitFor();
    const told = await page.locator('main').textContent();
    expect(told).toContain('the virtual file "NOSUCH" is not known here');
    expect(told).toContain('What to do');
  });

  test('filters are chips, and live in the address', async () => {
    const { page } = await openTab(browser);
    await logIn(page, `${node.server}/transfers`);
    await page.getByRole('button', { name: 'Filter', exact: true }).click();
    const form = page.getByRole('form', { name: 'Filters' });
    await form.getByLabel('Status').selectOption('COMPLETED');
    await form.getByLabel('Virtual file').fill('INBOX');
    await form.getByRole('button', { name: 'Apply' }).click();
    await page.getByText('Transfers: 1', { exact: true }).waitFor();
    expect(new URL(page.url()).search).toBe('?status=COMPLETED&virtualFile=INBOX');
    await page.getByRole('button', { name: 'Remove the filter Virtual file' }).click();
    await page.waitForURL((url) => url.search === '?status=COMPLETED');
    await page.goBack();
    await page.getByText('Transfers: 1', { exact: true }).waitFor();
    expect(new URL(page.url()).search).toBe('?status=COMPLETED&virtualFile=INBOX');
  });

  test('a new transfer is told while the list is open', async () => {
    const { page } = await openTab(browser);
    await logIn(page, `${node.server}/transfers`);
    await page.getByText('Live', { exact: true }).waitFor();
    await ask(node.client, '/api/v1/transfers/send?wait=30', {
      ...{ server: 'sample', virtualFile: 'INBOX', remoteFilename: 'live.txt', fileContent: CONTENT },
    });
    await page.getByRole('button', { name: /new: show$/ }).click();
    await page.getByText('live.txt').waitFor();
  });

  test('a running transfer shows how far it is, and is cancelled', async () => {
    await ask(node.server, '/api/v1/config/partners', {
      ...{ partnerId: 'SLOW', password: 'Slow4711', allowedOperations: ['WRITE'], maxBytesPerSecond: 65_536 },
    });
    await ask(node.server, '/api/v1/config/files', { fileId: 'SLOWLY', direction: 'RECEIVE' });
    await ask(node.client, '/api/v1/servers', {
      ...{ name: 'slow', host: '127.0.0.1', port: node.pesitPort, serverId: 'SAMPLE', clientId: 'SLOW' },
      ...{ password: 'Slow4711' },
    });
    const { page } = await openTab(browser);
    await logIn(page, node.client);
    await page.getByText('No transfer runs right now.').waitFor();
    const fileContent = Buffer.alloc(6_000_000, 'x').toString('base64');
    await ask(node.client, '/api/v1/transfers/send', {
      ...{ server: 'slow', virtualFile: 'SLOWLY', remoteFilename: 'slowly.dat', fileContent },
    });
    const bar = page.getByRole('region', { name: /^Running/ }).getByRole('progressbar');
    await bar.waitFor();
    await page.locator('progress[value]:not([value="0"])').first().waitFor();
    await page
      .getByRole('region', { name: /^Running/ })
      .getByRole('link')
      .first()
      .click();
    await page.getByRole('button', { name: 'Cancel the transfer' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Cancel the transfer' }).click();
    await page.getByText('Cancelled', { exact: true }).first().waitFor();
  });

  test('a viewer sees no button that the service would refuse', async () => {
    const { page } = await openTab(browser);
    await logIn(page, `${node.client}/transfers/${await failed()}`, 'viewer', PASSWORD);
    await page.getByRole('heading', { name: 'Attempts' }).waitFor();
    expect(await page.getByRole('button', { name: /^(?:Retry|Replay|Cancel|Download)/ }).count()).toBe(0);
    const admin = await openTab(browser);
    await logIn(admin.page, `${node.client}/transfers/${await failed()}`);
    await admin.page.getByRole('button', { name: 'Retry' }).waitFor();
  });

  test('while the license blocks: the page of the license alone, until it no longer does', async () => {
    const { page } = await openTab(browser);
    const body = { error: 'LICENSE_REQUIRED', message: 'The evaluation is over', licenseUrl: '/api/v1/license' };
    const blocked = '**/api/v1/login';
    await page.route(blocked, (route) => route.fulfill({ status: 402, json: body }));
    await logIn(page, `${node.server}/transfers`);
    await page.getByRole('heading', { level: 1, name: 'License' }).waitFor();
    expect(await page.getByRole('navigation', { name: 'Pages' }).getByRole('link').allTextContents()).toEqual([
      'License',
    ]);
    await page.unroute(blocked);
    await page.getByLabel('Days more').fill('1');
    await page.getByRole('button', { name: 'Extend the evaluation' }).click();
    await page.getByRole('heading', { level: 1, name: 'Transfers' }).waitFor();
  });

  test('keys: / searches, g t goes to the transfers, ? tells them', async () => {
    const { page } = await openTab(browser);
    await logIn(page, node.server);
    await page.keyboard.press('g');
    await page.keyboard.press('t');
    await page.getByRole('heading', { level: 1, name: 'Transfers' }).waitFor();
    await page.keyboard.press('?');
    await page.getByRole('dialog', { name: 'Keys' }).waitFor();
    await page.keyboard.press('Escape');
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    await page.keyboard.press('/');
    await page.keyboard.type('salaries');
    await page.keyboard.press('Enter');
    await page.getByText('Transfers: 1', { exact: true }).waitFor();
  });

  test('a page whose files are gone, as after an update, says so and is loaded again', async () => {
    const { page } = await openTab(browser);
    const files = /\/assets\/transfers-[^/]+\.js$/;
    await page.route(files, (route) => route.fulfill({ status: 404 }));
    await logIn(page, node.server);
    await page.getByRole('link', { name: 'Transfers', exact: true }).click();
    await page.getByRole('heading', { level: 1, name: 'This page could not be loaded' }).waitFor();
    await page.unroute(files);
    await page.getByRole('button', { name: 'Load again' }).click();
    await fillLogin(page);
    await page.getByRole('heading', { level: 1, name: 'Transfers' }).waitFor();
  });
});
