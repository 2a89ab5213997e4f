/** A real browser, and what every page of the console must stand. */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';

import { describe } from '@jest/globals';
import type { AxeResults } from 'axe-core';
import { chromium } from 'playwright-core';
import type { Browser, Page } from 'playwright-core';

const library = new URL('../../../../scripts/lib/chromium.mjs', import.meta.url).href;
const { findChromium } = (await import(library)) as { findChromium: () => string | undefined };

const browserPath = findChromium();

/** Left out where this machine has no browser; `npm test` says so. */
export const describeInBrowser = browserPath === undefined ? describe.skip : describe;

const FLAGS = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];

export const openBrowser = (): Promise<Browser> => chromium.launch({ executablePath: browserPath ?? '', args: FLAGS });

export interface Look {
  readonly scheme: 'light' | 'dark';
  readonly width: number;
  readonly locale: 'en-GB' | 'fr-FR';
}

export const LOOKS: Readonly<Record<'light' | 'dark' | 'narrow', Look>> = {
  light: { scheme: 'light', width: 1280, locale: 'en-GB' },
  dark: { scheme: 'dark', width: 1280, locale: 'fr-FR' },
  narrow: { scheme: 'light', width: 390, locale: 'en-GB' },
};

export interface Tab {
  readonly page: Page;
  /** What the browser complained about: errors of scripts, what the policy refused, what could not be loaded. */
  readonly complaints: readonly string[];
}

/** What the browser says of a page from now on. */
export const watch = (page: Page): Tab => {
  const complaints: string[] = [];
  page.on('pageerror', ({ message }) => complaints.push(message));
  page.on('console', (message) => {
    if (message.type() === 'error' || message.type() === 'warning')
      complaints.push(`${message.text()} ${message.location().url}`);
  });
  return { page, complaints };
};

/** Logs in at a page of the console. */
export const logIn = async (page: Page, address: string, username = 'admin', password = 'admin'): Promise<void> => {
  await page.goto(address);
  await fillLogin(page, username, password);
};

/** Logs in where the page asks for it. */
export const fillLogin = async (page: Page, username = 'admin', password = 'admin'): Promise<void> => {
  await page.locator('[name=username]').fill(username);
  await page.locator('[name=password]').fill(password);
  await page.locator('button.main').click();
  await page.locator('.shell').waitFor();
};

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/** What axe finds against WCAG 2.2 AA on the page as it is now: rule and place. */
export const accessibilityFaults = async (page: Page): Promise<readonly string[]> => {
  // By the debugger: the policy of the page lets no script of others in. It stays while one goes from page to page.
  if (!(await page.evaluate<boolean>('"axe" in window'))) await page.evaluate(axe);
  const values = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'];
  // Of what passes it keeps a line: the whole of it takes three times as long.
  const options = JSON.stringify({ runOnly: { type: 'tag', values }, resultTypes: ['violations'] });
  const results = await page.evaluate<AxeResults>(`axe.run(document, ${options})`);
  return results.violations.flatMap(({ id, nodes }) => nodes.map(({ target }) => `${id}: ${target.join(' ')}`));
};

/**
 * Where the focus goes up, unless to the next column, or to something that nobody sees (WCAG 2.4.3, 2.4.7). Nothing has a positive
 * `tabindex` (axe says so), so that the focus goes as the document does.
 */
export const focusFaults = (page: Page): Promise<readonly string[]> =>
  page.evaluate<string[]>(`(() => {
    const ones = [...document.querySelectorAll('main :is(a[href], button, input, select, textarea, summary, [tabindex="0"])')]
      .filter((one) => !one.disabled && one.checkVisibility({ visibilityProperty: true }));
    const boxes = ones.map((one) => one.getBoundingClientRect());
    const nameOf = (one) => (one.getAttribute('aria-label') ?? one.id) || one.textContent.trim() || one.outerHTML.slice(0, 80);
    return ones.flatMap((one, index) => {
      const [last, box] = [boxes[index - 1], boxes[index]];
      if (box.width < 1 || box.height < 1) return ['not seen: ' + nameOf(one)];
      const isAbove = last !== undefined && box.bottom <= last.top;
      return isAbove && box.left < last.right ? ['goes up to: ' + nameOf(one)] : [];
    });
  })()`);
