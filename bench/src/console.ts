/** The console of the server app before a large history, in Chromium: from the click to the picture with its result. */
import type { Browser, Page } from 'playwright-core';

import { IN_PAGE, STEPS } from './console-steps.js';
import type { Step } from './console-steps.js';
import { median, percentile } from './figures.js';
import { ADMIN } from './rest.js';

/** Where scripts/bench.mjs says that Chromium is; unset where the machine has none. */
export const CHROMIUM = 'BENCH_CHROMIUM';

/** Each step is done so often. */
const TIMES = 20;
/** An operator waits for none of them longer. */
const LIMIT_MS = 200;

const FLAGS = ['--no-sandbox', '--disable-gpu', '--no-first-run', '--disable-background-networking', '--disable-sync'];

/** Why the row cannot run here; undefined: it can. */
export const missingBrowser = (): string | undefined =>
  process.env[CHROMIUM] === undefined ? "no Chromium found (Debian's package chromium)" : undefined;

const open = async (browser: Browser, base: string): Promise<Page> => {
  const page = await (await browser.newContext({ viewport: { width: 1280, height: 850 }, locale: 'en-GB' })).newPage();
  await page.goto(base);
  await page.locator('[name=username]').fill(ADMIN.username);
  await page.locator('[name=password]').fill(ADMIN.password);
  await page.locator('button.main').click();
  await page.locator('.rail').waitFor();
  // By the debugger: the policy of the page lets no script of others in. In one scope with what the steps say.
  await page.evaluate(`{ ${IN_PAGE}
    window.steps = [${STEPS.map(({ prepare = '', act, seen }) => `[() => { ${act}; }, () => ${seen}, () => { ${prepare} }]`).join(',\n')}]; }`);
  return page;
};

const timed = async (page: Page, { from }: Step, index: number): Promise<number> => {
  if (from !== '') await page.evaluate(`bench.reach(${JSON.stringify(from)})`);
  await page.evaluate(`steps[${index}][2]()`);
  return page.evaluate<number>(`bench.timed(...steps[${index}])`);
};

const lineOf = (name: string, times: readonly number[]): string => {
  const [p50, p99, longest] = [median(times), percentile(times, 0.99), Math.max(...times)];
  const cells = [p50, p99, longest].map((one) => one.toFixed(0).padStart(7)).join(' ');
  return `  ${cells}  ${name}${p50 >= LIMIT_MS ? `  ← ${LIMIT_MS} ms or more` : ''}`;
};

/**
 * Does each step again and again, and prints what each took. The first round does not count: the pages fetch their files.
 * @param base address of the app
 * @returns milliseconds of all of them
 */
export const timeConsole = async (base: string): Promise<readonly number[]> => {
  const { chromium } = await import('playwright-core');
  const browser = await chromium.launch({ executablePath: process.env[CHROMIUM] ?? '', args: FLAGS });
  try {
    const page = await open(browser, base);
    const times = new Map<Step, number[]>(STEPS.map((step) => [step, []]));
    for (let round = 0; round <= TIMES; round++) {
      for (const [index, step] of STEPS.entries()) {
        const ms = await timed(page, step, index);
        if (round > 0) times.get(step)?.push(ms);
      }
    }
    const lines = [...times].map(([{ name }, ms]) => lineOf(name, ms));
    const all = [...times.values()].flat();
    console.error(['     p50     p99 longest  ms', ...lines, lineOf('all of them', all)].join('\n'));
    return all;
  } finally {
    await browser.close();
  }
};
