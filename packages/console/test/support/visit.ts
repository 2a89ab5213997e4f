/** Going from page to page as a person does, and what every page must stand. */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';

import type { Locator, Page } from 'playwright-core';

const screens = process.env['PESIT_SCREENS'];

/** Until a page shows what it has. */
export const settled = async (page: Page): Promise<void> => {
  await page.locator('h1').waitFor();
  await page.locator('.empty[role=status]').first().waitFor({ state: 'detached' });
};

/** As a click on a link does: without a new login. The page that one comes from has another title. */
export const goTo = async (page: Page, path: string): Promise<void> => {
  const before = (await page.locator('h1').textContent()) ?? '';
  await page.evaluate(
    `history.pushState(null, '', ${JSON.stringify(path)}); dispatchEvent(new PopStateEvent('popstate'))`,
  );
  await page.waitForURL((url) => url.pathname + url.search === path);
  await page.locator('h1').filter({ hasNotText: before }).waitFor();
  await settled(page);
};

/** Keeps a picture, where PESIT_SCREENS names a folder for it. @param of a whole page, or a part of it */
export const keepPicture = async (of: Page | Locator, name: string, fullPage = true): Promise<void> => {
  if (screens === undefined) return;
  mkdirSync(screens, { recursive: true });
  const path = join(screens, `${name}.png`);
  await ('goto' in of ? of.screenshot({ path, fullPage }) : of.screenshot({ path }));
};
