/** Pages that do something: sending, traces, metrics, downloads, and what happens while one looks. */
import type { ServerResponse } from 'node:http';

import { afterAll, describe, expect, test } from '@jest/globals';
import type { Page } from 'playwright-core';

import { accessibilityFaults, logIn, LOOKS } from '../support/browser.js';
import { startFront } from '../support/front.js';
import type { Front } from '../support/front.js';
import { ask, PASSWORD } from '../support/node.js';
import { addPartner, send } from '../support/sample.js';
import type { Stage } from '../support/stage.js';
import { keepPicture, settled } from '../support/visit.js';

export const tools = ({ node, openTab }: Stage): void => {
  const fronts: Front[] = [];
  const inFront = async (own?: Parameters<typeof startFront>[1]): Promise<Front> => {
    const front = await startFront(node.client, own);
    fronts.push(front);
    return front;
  };
  afterAll(() => Promise.all(fronts.map(({ goAway }) => goAway())));

  const file = (name: string, size: number) => ({
    ...{ name, mimeType: 'application/octet-stream', buffer: Buffer.alloc(size, 'x') },
  });

  const fillTarget = async (page: Page, server: string, virtualFile: string): Promise<void> => {
    await page.getByLabel('Remote server').selectOption(server);
    await page.getByLabel('Virtual file (PI 12)').fill(virtualFile);
  };

  describe('send', () => {
    test('several files at a time, each to its end, and their virtual file is offered next time', async () => {
      const { page, complaints } = await openTab();
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
      const { page } = await openTab();
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
      const { page } = await openTab();
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
      const { page } = await openTab();
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
      const { page } = await openTab();
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
      const { page } = await openTab();
      await logIn(page, `${node.client}/send`, 'viewer', PASSWORD);
      await page.getByText('Your role may look, and not send.').waitFor();
      expect(await page.getByRole('link', { name: 'Send', exact: true }).count()).toBe(0);
    });
  });

  test('the trace beside a record: switched on, then FPDU by FPDU', async () => {
    const { page } = await openTab(LOOKS.light, 'alone');
    await logIn(page, `${node.client}/transfers/${await send(node, 'sample', 'INBOX', 'untraced.txt')}`);
    const card = page.getByRole('region', { name: 'Trace of the session' });
    await card.getByText(/The trace of this partner was off/).waitFor();
    await card.getByRole('button', { name: 'Trace the next hour' }).click();
    await card.getByText(/^The trace is on/).waitFor();
    const traced = await send(node, 'sample', 'INBOX', 'traced.txt');
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

  test('the trace beside a record of the server app: of the next session of that partner', async () => {
    await addPartner(node, 'TRACED');
    await ask(node.server, '/api/v1/config/files', { fileId: 'TRACED', direction: 'RECEIVE' });
    const { content } = await ask(node.client, '/api/v1/servers?page=0&q=traced');
    const [{ id } = { id: 0 }] = content as { id: number }[];
    /** @returns the record of the server app */
    const arrived = async (name: string): Promise<string> => {
      // Its session is closed with the change: the next transfer opens another one.
      await ask(node.client, `/api/v1/servers/${id}`, { description: name }, 'PUT');
      await send(node, 'traced', 'TRACED', name);
      const { content: found } = await ask(node.server, `/api/v1/transfers?q=${name}`);
      return String((found as { id: string }[])[0]?.id);
    };
    const { page } = await openTab();
    await logIn(page, `${node.server}/transfers/${await arrived('before.txt')}`);
    const card = page.getByRole('region', { name: 'Trace of the session' });
    await card.getByText(/The trace of this partner was off/).waitFor();
    await card.getByRole('button', { name: 'Trace the next hour' }).click();
    await card.getByText(/^The trace is on/).waitFor();
    const traced = await arrived('traced-here.txt');
    await page.getByRole('link', { name: 'All transfers' }).click();
    await page.locator(`a[href="/transfers/${traced}"]`).first().click();
    await card.locator('summary').click();
    const create = card.getByRole('row').filter({ hasText: 'wants to write a file' });
    await create.getByText(/PI 12 \(file name\) "TRACED"/).waitFor();
    expect(await create.getByRole('cell').nth(1).textContent()).toContain('received');
    await card.getByRole('row').filter({ hasText: 'answers CREATE' }).getByText('sent').waitFor();
    expect(await card.textContent()).toContain('PI 5 (access control) ********');
    expect(await card.textContent()).not.toContain('Slow4711');
    await card.getByRole('button', { name: 'Trace off' }).click();
    await card.getByRole('button', { name: 'Trace the next hour' }).waitFor();
  });

  test('metrics: a picture of the day, and its figures in a table', async () => {
    await send(node, 'sample', 'INBOX', 'counted.txt');
    const { page } = await openTab();
    const asked: string[] = [];
    page.on('request', (one) => {
      if (one.url().includes('/transfers/stats')) asked.push(one.url());
    });
    await logIn(page, `${node.client}/figures`);
    const chart = page.getByRole('region', { name: 'Transfers', exact: true });
    await chart.locator('canvas').waitFor();
    await chart.getByText('Figures', { exact: true }).click();
    const rows = chart.getByRole('table').getByRole('row');
    expect(await rows.count()).toBe(25);
    const counts = await rows.locator('td:nth-of-type(1)').allTextContents();
    expect(counts.reduce((sum, one) => sum + Number(one), 0)).toBeGreaterThan(0);
    // One request for all hours.
    expect(asked.filter((url) => !url.includes('groupBy=hour'))).toEqual([]);
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
      const { page } = await openTab(LOOKS.light, 'alone');
      await page.addInitScript(`window.kept = { text: '', name: '' };
        window.showSaveFilePicker = async ({ suggestedName }) => {
          window.kept.name = suggestedName;
          const write = (part) => { window.kept.text += new TextDecoder().decode(part); };
          return { createWritable: async () => new WritableStream({ write }) };
        };`);
      await openReceived(page, await send(node, 'sample', 'INBOX', 'large.bin'));
      await page.getByRole('button', { name: 'Download' }).click();
      await page.waitForFunction('window.kept.text !== ""');
      expect(await page.evaluate('window.kept')).toEqual({ name: 'large.bin', text: 'begin' });
    });

    test('where the browser cannot: the command that can', async () => {
      const { page } = await openTab(LOOKS.light, 'alone');
      await page.addInitScript('delete window.showSaveFilePicker');
      const id = await send(node, 'sample', 'INBOX', 'large.bin');
      await openReceived(page, id);
      await page.getByRole('button', { name: 'Download' }).click();
      const told = await page.getByRole('alert').locator('code').first().textContent();
      expect(told).toBe(`curl -u 'admin' -o 'large.bin' '${node.client}/api/v1/transfers/${id}/content'`);
    });
  });

  test('a pod that goes away while one looks: the page says so, and comes back by itself', async () => {
    const front = await inFront();
    const { page } = await openTab(LOOKS.light, 'alone');
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
    const { page } = await openTab(LOOKS.light, 'alone');
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
};
