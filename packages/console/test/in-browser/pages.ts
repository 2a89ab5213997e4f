/** Login, the first page, transfers, license and keys. */
import { truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { describe, expect, test } from '@jest/globals';

import { fillLogin, logIn, LOOKS } from '../support/browser.js';
import { ask, PASSWORD } from '../support/node.js';
import { failedTransfer, send } from '../support/sample.js';
import type { Stage } from '../support/stage.js';

export const pages = ({ node, openTab }: Stage): void => {
  describe('login', () => {
    test('wrong, then right; nothing of it stays in the browser', async () => {
      const { page } = await openTab(LOOKS.light, 'alone');
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

    test('is there after 30 KB: the words of the pages come with the pages', async () => {
      const { page } = await openTab(LOOKS.light, 'alone');
      await page.goto(node.server);
      await page.locator('[name=username]').waitFor();
      const { parts, shownMs } = await page.evaluate<{
        parts: [path: string, bytes: number][];
        shownMs: number;
      }>(`(async () => {
        const named = await (await fetch('/')).text();
        const [self] = performance.getEntriesByType('navigation');
        const parts = performance.getEntriesByType('resource').filter(({ name }) => named.includes(new URL(name).pathname + '"'));
        return {
          parts: [self, ...parts].map(({ name, transferSize }) => [new URL(name).pathname, transferSize]),
          shownMs: performance.getEntriesByName('first-contentful-paint')[0].startTime,
        };
      })()`);
      const bytes = parts.reduce((sum, [, one]) => sum + one, 0);
      process.stderr.write(
        `first load: ${bytes} bytes in ${parts.length} files, a login to fill in after ${Math.round(shownMs)} ms\n`,
      );
      expect(parts.length).toBeGreaterThan(2);
      expect(bytes).toBeLessThan(30_000);
    });

    test('the language changes on a page whose words are not there yet, and stays', async () => {
      const { page } = await openTab(LOOKS.light, 'alone');
      await logIn(page, `${node.server}/transfers`);
      await page.getByRole('heading', { level: 1, name: 'Transfers' }).waitFor();
      await page.getByRole('combobox', { name: 'Language' }).selectOption('fr');
      await page.getByRole('button', { name: 'Filtrer', exact: true }).waitFor();
      await page.getByRole('link', { name: 'Audit' }).click();
      await page.getByRole('heading', { level: 1, name: 'Audit' }).waitFor();
      await page.reload();
      await page.getByRole('button', { name: 'Se connecter' }).waitFor();
    });

    test('leads to the page that was asked for, and a reload asks for it again', async () => {
      const { page } = await openTab();
      await logIn(page, `${node.server}/transfers?status=FAILED`);
      await page.getByRole('listitem').filter({ hasText: 'Status: Failed' }).waitFor();
      await page.reload();
      await page.locator('[name=password]').waitFor();
      expect(page.url()).toContain('status=FAILED');
    });

    test('logs out', async () => {
      const { page } = await openTab();
      await logIn(page, node.client);
      await page.getByRole('button', { name: 'Log out' }).click();
      await page.getByText('You are logged out.').waitFor();
    });
  });

  test('a failed transfer: its cause and what to do, two clicks from the first page', async () => {
    const { page } = await openTab();
    await logIn(page, node.client);
    const matter = page.getByRole('listitem').filter({ hasText: 'payer · failures in 24 hours: 1' });
    await matter.getByRole('link', { name: 'Show it' }).click();
    await page.waitForURL(/\/transfers\/[^/?]+$/);
    await page.getByRole('heading', { name: 'Attempts' }).waitFor();
    const told = await page.locator('main').textContent();
    expect(told).toContain('the virtual file "NOSUCH" is not known here');
    expect(told).toContain('What to do');
  });

  test('failures of many partners: the first twenty, and how many more there are', async () => {
    const { page } = await openTab();
    await page.route('**/api/v1/transfers/history?*size=200*', async (route) => {
      const answer = await route.fetch();
      const { content, ...rest } = (await answer.json()) as { content: Record<string, unknown>[] };
      const many = Array.from({ length: 25 }, (_, index) => ({ ...content[0], serverName: `partner-${index}` }));
      await route.fulfill({ response: answer, json: { ...rest, content: many, next: null } });
    });
    await logIn(page, node.client);
    const matters = page.getByRole('region', { name: 'Needs attention' }).getByRole('listitem');
    await matters.filter({ hasText: 'Further failures in 24 hours: 5' }).waitFor();
    expect(await matters.filter({ hasText: /^Failedpartner-/ }).count()).toBe(20);
    await matters.filter({ hasText: 'partner-5' }).getByText('What to do').waitFor();
  });

  test('filters are chips, and live in the address', async () => {
    const { page } = await openTab();
    await logIn(page, `${node.server}/transfers`);
    await page.getByRole('button', { name: 'Filter', exact: true }).click();
    const form = page.getByRole('form', { name: 'Filters' });
    await form.getByLabel('Status').selectOption('COMPLETED');
    await form.getByLabel('Virtual file').fill('PAYMENTS');
    await form.getByRole('button', { name: 'Apply' }).click();
    await page.getByText('Transfers: 1', { exact: true }).waitFor();
    expect(new URL(page.url()).search).toBe('?status=COMPLETED&virtualFile=PAYMENTS');
    await page.getByRole('button', { name: 'Remove the filter Virtual file' }).click();
    await page.waitForURL((url) => url.search === '?status=COMPLETED');
    await page.goBack();
    await page.getByText('Transfers: 1', { exact: true }).waitFor();
    expect(new URL(page.url()).search).toBe('?status=COMPLETED&virtualFile=PAYMENTS');
  });

  test('a record is one step from its list, by its link and beside it', async () => {
    const { page } = await openTab();
    await logIn(page, `${node.client}/transfers?q=salaries`);
    const link = page.getByRole('link', { name: 'Transfer of salaries.txt' });
    const cell = page.getByRole('row').filter({ has: link }).getByRole('cell').first();
    for (const where of [link, cell]) {
      await where.click();
      await page.getByRole('heading', { level: 1, name: 'salaries.txt' }).waitFor();
      await page.goBack();
      await page.getByRole('heading', { level: 1, name: 'Transfers' }).waitFor();
      await link.waitFor();
      expect(new URL(page.url()).search).toBe('?q=salaries');
    }
  });

  test('a new transfer is told while the list is open', async () => {
    const { page } = await openTab();
    await logIn(page, `${node.server}/transfers`);
    await page.getByText('Live', { exact: true }).waitFor();
    await send(node, 'sample', 'INBOX', 'live.txt');
    await page.getByRole('button', { name: /new: show$/ }).click();
    await page.getByText('live.txt').waitFor();
  });

  test('a running transfer shows how far it is, and is cancelled', async () => {
    const { page } = await openTab();
    await logIn(page, node.client);
    await page.getByText('No transfer runs right now.').waitFor();
    // Six minutes long, were it not cancelled.
    writeFileSync(join(node.sendDirectory, 'slowly.dat'), '');
    truncateSync(join(node.sendDirectory, 'slowly.dat'), 200_000_000);
    await ask(node.client, '/api/v1/transfers/send', {
      ...{ server: 'slow', virtualFile: 'SLOWLY', remoteFilename: 'slowly.dat', filename: 'slowly.dat' },
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
    const { page } = await openTab();
    await logIn(page, `${node.client}/transfers/${await failedTransfer(node)}`, 'viewer', PASSWORD);
    await page.getByRole('heading', { name: 'Attempts' }).waitFor();
    expect(await page.getByRole('button', { name: /^(?:Retry|Replay|Cancel|Download)/ }).count()).toBe(0);
    const admin = await openTab();
    await logIn(admin.page, `${node.client}/transfers/${await failedTransfer(node)}`);
    await admin.page.getByRole('button', { name: 'Retry' }).waitFor();
  });

  test('while the license blocks: the page of the license alone, until it no longer does', async () => {
    const { page } = await openTab();
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
    const { page } = await openTab();
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
    const { page } = await openTab();
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
};
