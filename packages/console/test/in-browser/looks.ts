/** Every page of both apps in every look: light, dark and in French, narrow. */
import { expect, test } from '@jest/globals';

import { accessibilityFaults, focusFaults, logIn, LOOKS } from '../support/browser.js';
import { failedTransfer } from '../support/sample.js';
import type { Stage } from '../support/stage.js';
import { goTo, keepPicture, settled } from '../support/visit.js';

/** Path, and name of its picture. */
const PAGES = {
  server: [
    ['/', 'now-server'],
    ['/transfers', 'transfers-server'],
    ['/audit', 'audit-server'],
    ['/cluster', 'cluster-server'],
    ['/certificates', 'certificates-server'],
    ['/figures', 'figures-server'],
    ['/partners', 'partners'],
    ['/partners?new=1', 'partners-new'],
    ['/partners?setup=1', 'set-up'],
    ['/partners/SAMPLE', 'partners-one'],
    ['/files', 'files'],
    ['/files/SAMPLE', 'files-one'],
    ['/listeners', 'listeners'],
    ['/listeners/SAMPLE', 'listeners-one'],
    ['/license', 'license-server'],
  ],
  client: [
    ['/', 'now-client'],
    ['/transfers', 'transfers-client'],
    ['/transfers/{failed}', 'transfers-one-client'],
    ['/send', 'send-client'],
    ['/audit', 'audit-client'],
    ['/cluster', 'cluster-client'],
    ['/certificates', 'certificates-client'],
    ['/figures', 'figures-client'],
    ['/servers', 'servers'],
    ['/servers?new=1', 'servers-new'],
    ['/servers?setup=1&host=pesit.bank.example&port=6502&serverId=BANK&clientId=NODE1', 'servers-set-up'],
    ['/servers/1', 'servers-one'],
    ['/license', 'license-client'],
  ],
} as const;

export const looks = ({ node, openTab }: Stage): void => {
  const cases = (['light', 'dark', 'narrow'] as const).flatMap((look) =>
    (['server', 'client'] as const).map((app) => [app, look] as const),
  );

  test.each(cases)(
    'of the %s app, %s: no complaint of the browser, nothing that axe finds, nothing that is cut off',
    async (app, look) => {
      const { page, complaints } = await openTab(LOOKS[look]);
      const failed = await failedTransfer(node);
      const [[first]] = PAGES[app];
      await logIn(page, node[app] + first);
      await settled(page);
      for (const [path, name] of PAGES[app]) {
        if (path !== first) await goTo(page, path.replace('{failed}', failed));
        await keepPicture(page, `${name}-${look}`);
        await page.evaluate("document.querySelectorAll('main details').forEach((one) => { one.open = true; })");
        expect([path, ...(await accessibilityFaults(page))]).toEqual([path]);
        expect([path, ...(await focusFaults(page))]).toEqual([path]);
        const width = await page.evaluate<number>('document.documentElement.scrollWidth');
        expect([path, width]).toEqual([path, LOOKS[look].width]);
      }
      // A browser notes each 404: this one says that there is no local CA yet.
      expect(complaints.filter((one) => !/ 404 .*\/certificates\/ca$/.test(one))).toEqual([]);
    },
  );
};
