/** Pages that configure: partners, virtual files, listeners, remote servers, and the guided set-up. */
import { expect, test } from '@jest/globals';
import type { Locator, Page } from 'playwright-core';

import { accessibilityFaults, logIn } from '../support/browser.js';
import { ask, PASSWORD } from '../support/node.js';
import { addPartner } from '../support/sample.js';
import type { Stage } from '../support/stage.js';
import { keepPicture } from '../support/visit.js';

export const configuration = ({ node, openTab }: Stage): void => {
  const row = (page: Page, name: string) => page.getByRole('row').filter({ hasText: name });

  test('a partner: created with what the form says, changed, disabled, found, deleted', async () => {
    const { page } = await openTab();
    await logIn(page, `${node.server}/partners`);
    await page.getByRole('link', { name: 'New partner' }).click();
    // Said in the browser, before anything is asked of the service.
    await page.getByRole('button', { name: 'New partner' }).click();
    await page.getByText('This is needed.').first().waitFor();
    expect(await page.evaluate('document.activeElement.id')).toBe('field-partnerId');
    await page.getByLabel('Identifier (PI 3)').fill('BAKER');
    await page.getByLabel('Password (PI 5)').fill('Ba4k-er1');
    await page.getByLabel('fetch files from us').uncheck();
    await page.getByText('Limits', { exact: true }).click();
    await page.getByLabel('Bytes a second').fill('12');
    await page.getByText('From 65,536 to 1,000,000,000,000.').waitFor();
    await page.getByLabel('Bytes a second').fill('65536');
    await page.getByRole('button', { name: 'New partner' }).click();
    await page.getByRole('heading', { level: 1, name: 'BAKER' }).waitFor();
    expect(await ask(node.server, '/api/v1/config/partners/BAKER')).toMatchObject({
      ...{ allowedOperations: ['WRITE'], maxBytesPerSecond: 65_536, enabled: true, quotaBytes: null },
    });

    // Only what was changed is sent: another change of the same time stays.
    await ask(node.server, '/api/v1/config/partners/BAKER', { quotaFiles: 7 }, 'PUT');
    await page.getByLabel('Name', { exact: true }).fill('Baker & Sons');
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByText('Saved.').waitFor();
    expect(await ask(node.server, '/api/v1/config/partners/BAKER')).toMatchObject({
      name: 'Baker & Sons',
      quotaFiles: 7,
    });
    await page.getByRole('button', { name: 'Disable' }).click();
    await page.getByRole('button', { name: 'Enable' }).waitFor();
    await page.getByRole('button', { name: 'On for 15 minutes' }).click();
    await page.getByText('traced').waitFor();
    await page.getByRole('button', { name: 'Switch it off' }).click();
    await page.getByText('traced').waitFor({ state: 'detached' });

    await page.getByRole('link', { name: 'All partners' }).click();
    await page.getByRole('search', { name: 'Find' }).getByRole('searchbox').fill('baker');
    await page.keyboard.press('Enter');
    await page.getByText('1 in all').waitFor();
    expect(new URL(page.url()).search).toBe('?q=baker');
    await row(page, 'BAKER').getByText('Disabled').waitFor();
    await page.getByRole('link', { name: 'BAKER' }).click();
    // While it is in use: by what, and the way to do it nevertheless.
    await page.route(/partners\/BAKER$/, (route) =>
      route.request().method() === 'DELETE'
        ? route.fulfill({ status: 409, json: { error: 'CONFLICT', message: 'It is in use: 1 transfer that runs: 17' } })
        : route.fallback(),
    );
    await page.getByRole('button', { name: 'Delete' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click();
    await page.getByRole('dialog').getByText('1 transfer that runs: 17').waitFor();
    await page.getByRole('dialog').getByRole('button', { name: 'Delete it nevertheless' }).click();
    await page.getByRole('link', { name: 'SAMPLE', exact: true }).waitFor();
    await expect(ask(node.server, '/api/v1/config/partners/BAKER')).rejects.toThrow('NOT_FOUND');
  });

  test('what the service refuses stands at its field', async () => {
    const { page } = await openTab();
    await logIn(page, `${node.server}/partners?new=1`);
    await page.getByLabel('Identifier (PI 3)').fill('NOWHERE');
    await page.getByLabel('Password (PI 5)').fill('Ba4k-er1');
    await page.getByText('What it may use, from where').click();
    await page.getByLabel('Addresses from which it may connect').fill('192.0.2.0/24\nnot an address');
    await page.getByRole('button', { name: 'New partner' }).click();
    const fault = page.locator('#field-allowedAddresses-fault');
    await fault.waitFor();
    expect(await page.getByLabel('Addresses from which it may connect').getAttribute('aria-invalid')).toBe('true');
    await page.getByLabel('Addresses from which it may connect').fill('192.0.2.0/24');
    await fault.waitFor({ state: 'detached' });
    await page.getByLabel('Identifier (PI 3)').fill('SAMPLE');
    await page.getByRole('button', { name: 'New partner' }).click();
    await page.getByRole('alert').filter({ hasText: 'SAMPLE' }).waitFor();
  });

  test('what is typed is not lost by a slip', async () => {
    const { page } = await openTab();
    await logIn(page, `${node.server}/files`);
    await page.getByRole('link', { name: 'SAMPLE', exact: true }).click();
    await page.getByLabel('Name', { exact: true }).fill('Typed');
    const stays = async (slip: () => Promise<unknown>): Promise<void> => {
      await slip();
      await page.getByRole('dialog').getByRole('button', { name: 'Stay here' }).click();
      expect(await page.getByLabel('Name', { exact: true }).inputValue()).toBe('Typed');
      expect(new URL(page.url()).pathname).toBe('/files/SAMPLE');
    };
    await stays(() => page.getByRole('link', { name: 'Partners' }).click());
    await stays(() => page.evaluate('history.back()'));
    await page.locator('h1').click();
    await stays(async () => {
      await page.keyboard.press('g');
      await page.keyboard.press('t');
    });
    await page.getByRole('link', { name: 'Partners' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Leave without saving' }).click();
    await page.getByRole('heading', { level: 1, name: 'Partners' }).waitFor();
  });

  test('a listener: stopped and started, and who is connected is told, and sent away', async () => {
    await ask(node.client, '/api/v1/servers/1/test', {});
    const { page } = await openTab();
    await logIn(page, `${node.server}/listeners/SAMPLE`);
    const sessions = page.getByRole('region', { name: 'Sessions' });
    await sessions.getByRole('button', { name: 'End SAMPLE' }).first().click();
    await page.getByRole('dialog').getByRole('button', { name: 'End', exact: true }).click();
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    await page.getByRole('button', { name: 'Stop', exact: true }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Stop at once' }).click();
    await page.getByText('Stopped').first().waitFor();
    await page.getByRole('button', { name: 'Start', exact: true }).click();
    await page.getByText('Running').first().waitFor();
    await page.getByRole('button', { name: 'Restart', exact: true }).waitFor();
  });

  test('a remote server: tested, with an answer that can be read', async () => {
    await addPartner(node, 'TESTED');
    const { page } = await openTab();
    await logIn(page, `${node.client}/servers`);
    await page.getByRole('link', { name: 'tested', exact: true }).click();
    await page.getByRole('button', { name: 'Test the connection' }).click();
    await page.getByText('The connection works.').waitFor();
    await page.getByText('PeSIT E').waitFor();
    await page.getByLabel('Password (PI 5)').fill('wrong');
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByText('Saved.').waitFor();
    await page.getByRole('button', { name: 'Test the connection' }).click();
    await page.getByText('The connection does not work.').waitFor();
    await page.getByText('3-304').first().waitFor();
  });

  test('from the first page to a partner of one’s own that has sent a file: 16 clicks and fields, as the documentation says', async () => {
    let steps = 0;
    const click = (where: Locator) => ((steps += 1), where.click());
    const fill = (where: Locator, text: string) => ((steps += 1), where.fill(text));
    const login = async (page: Page): Promise<void> => {
      await fill(page.locator('[name=username]'), 'admin');
      await fill(page.locator('[name=password]'), 'admin');
      await click(page.locator('button.main'));
    };
    const began = Date.now();
    const { page } = await openTab();
    await page.goto(node.server);
    await login(page);
    await click(page.getByRole('link', { name: 'Partners' }));
    await click(page.getByRole('link', { name: 'Set up a partner' }));
    await fill(page.getByLabel('Identifier (PI 3)'), 'MYFIRST');
    await click(page.getByRole('button', { name: 'Set up a partner' }));
    const sheet = (await page.getByLabel('Parameter sheet').locator('pre').textContent()) ?? '';
    expect(sheet).toContain('MYFIRST');
    const password = /Your password \(PI 5\): +(\S+)/.exec(sheet)?.[1] ?? '';
    expect(password).toMatch(/^\w{8}$/);

    const [other] = await Promise.all([
      page.context().waitForEvent('page'),
      click(page.getByRole('link', { name: 'Play the partner with our client app' })),
    ]);
    expect(other.url()).not.toContain(password);
    await login(other);
    await fill(other.getByLabel('Password (PI 5)'), password);
    await click(other.getByRole('button', { name: 'Save and test' }));
    await other.getByText('The connection works.').waitFor();
    await click(other.getByRole('link', { name: 'Send a first file' }));
    steps += 1;
    const file = { name: 'first.txt', mimeType: 'text/plain', buffer: Buffer.from('Hello, PeSIT!') };
    await other.getByLabel('Choose files').setInputFiles(file);
    const form = other.getByRole('form');
    // Who and which file came along.
    expect(await form.locator('[name=server]').inputValue()).toBe('sample-myfirst');
    expect(await form.locator('[name=virtualFile]').inputValue()).toBe('MYFIRST');
    await click(form.locator('button.main'));

    // The first page says it by itself: its last step is done.
    const crossed = page.locator('.steps li.good').nth(4);
    await crossed.getByRole('link').waitFor();
    expect(steps).toBe(16);
    process.stderr.write(`set up and sent: ${steps} clicks and fields, ${Math.round((Date.now() - began) / 1000)} s\n`);
    expect(await accessibilityFaults(page)).toEqual([]);
    await keepPicture(page, 'set-up-done');
    const { content } = await ask(node.server, '/api/v1/transfers?partnerId=MYFIRST');
    expect(content).toEqual([expect.objectContaining({ status: 'COMPLETED', virtualFileId: 'MYFIRST' })]);
  });

  test('who may not change anything sees the settings, and no button', async () => {
    const { page } = await openTab();
    await logIn(page, `${node.server}/partners/SAMPLE`, 'viewer', PASSWORD);
    await page.getByRole('heading', { name: 'Settings' }).waitFor();
    expect(await page.locator('main').getByRole('button').count()).toBe(0);
    expect(await page.locator('main').getByRole('textbox').count()).toBe(0);
    await page.getByText('send files to us').waitFor();
    await page.getByRole('link', { name: 'Listeners' }).click();
    await page.getByRole('link', { name: 'SAMPLE', exact: true }).waitFor();
    expect(await page.locator('main').getByRole('link', { name: 'New listener' }).count()).toBe(0);
    const operator = await openTab();
    await logIn(operator.page, `${node.server}/listeners/SAMPLE`, 'operator', PASSWORD);
    await operator.page.getByRole('button', { name: 'Restart' }).waitFor();
    expect(await operator.page.getByRole('button', { name: 'Delete' }).count()).toBe(0);
  });
};
